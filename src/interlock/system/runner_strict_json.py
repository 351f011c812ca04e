"""JSON as it is taken from outside: one value, every name once, nothing too deep.

Stricter than JSON: an object that names a field twice says two things at once, and a text with a
NUL in it ends early in other programs. Nothing is guessed; what is wrong is said.
"""

import json
import re
from typing import Any

import msgspec

MAX_DEPTH = 60
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def decode(content: bytes) -> Any:
    """The value written in `content`; ValueError with the reason if there is none."""
    try:
        value = msgspec.json.decode(content)
        written = msgspec.json.encode(value)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels") from None
    if content.count(b"{") + content.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    # Without escapes, a name that was dropped for being there twice is two quotes fewer.
    if b"\\" in content or content.count(b'"') != written.count(b'"'):
        json.loads(content, object_pairs_hook=_each_once)
    if b"u0000" in written and _NUL.search(written):
        raise ValueError("there is a NUL character in it")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ValueError(f"{name[:80]!r} is written twice")
        seen.add(name)


def _depth(value: Any) -> int:
    deepest = 0
    level = [[value]]
    while level and deepest <= MAX_DEPTH:
        items = (item for each in level for item in each)
        level = [
            list(item.values()) if isinstance(item, dict) else item
            for item in items
            if isinstance(item, dict | list)
        ]
        deepest += bool(level)
    return deepest
