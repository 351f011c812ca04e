"""Experts: texts that make an agent one. From the project's files, or made on request.

Knows where they lie, what a usable one looks like, and how many ask each of them. Refuses to know
what is asked.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.delivery.brief import Expert
from interlock.engine.case import Case
from interlock.signals.grammar import ID

_LEAST: Final = 100
_MOST: Final = 200_000
_HEAD: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD: Final = re.compile(r"^(domain|description|name):[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NAME: Final = re.compile(ID)


class Experts:
    """The experts of a run: those of the project, and those that were made for it."""

    def __init__(self, project: Path, made: Path) -> None:
        self._folders = (made, project)
        self._made = made

    def known(self, name: str) -> bool:
        return bool(self.text(name))

    def text(self, name: str) -> str:
        """What makes the agent an expert; empty if there is no usable text."""
        for folder in self._folders if is_name(name) else ():
            if text := _read(folder / f"{name}.md"):
                return text
        return ""

    def all(self) -> tuple[Expert, ...]:
        found: dict[str, Expert] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                text = _read(path) if path.stem not in found and is_name(path.stem) else ""
                if text:
                    found[path.stem] = _expert(path.stem, text)
        return tuple(found[name] for name in sorted(found))

    def place_for(self, name: str) -> Path:
        """Where the text of a new expert belongs; its folder is made."""
        self._made.mkdir(parents=True, exist_ok=True)
        return self._made / f"{name}.md"


def is_name(name: str) -> bool:
    """Whether it can be the name of an expert, and so of a file: an id without a folder."""
    return _NAME.fullmatch(name) is not None and "/" not in name


def asked_for(case: Case) -> str:
    """The expert whom the step that a detour left asked for last; empty if it asked for none."""
    asker = case.stack[-1] if case.stack else ""
    found = case.answers.get(asker, {})
    return str(found.get("target_agent", "")) if isinstance(found, Mapping) else ""


def _read(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST:
            return ""
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) >= _LEAST else ""


def _expert(name: str, text: str) -> Expert:
    head = _HEAD.match(text)
    fields = dict(_FIELD.findall(head[1])) if head else {}
    return Expert(name, fields.get("domain", ""), fields.get("description", ""))
