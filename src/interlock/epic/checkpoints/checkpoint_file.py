"""The checkpoint as a file: bytes with a checksum, and what may not stand in them.

Knows limits, ids and what could not be read back. Refuses to know older shapes and where the bytes
are kept.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.epic.checkpoints.checkpoint import Checkpoint
from interlock.system.errors import SourceError
from interlock.system.strict_json import INT64, encode_pretty

LARGEST: Final = 1 << 20
DEEPEST: Final = 40
_MOST_STORIES: Final = 2_000
_LONGEST_NOTE: Final = 4_000
_RESERVED: Final = frozenset({"active", "archive", "checkpoint", "context", "current-checkpoint"})
_EPIC_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,99}\Z")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}\Z")
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{7,64})?\Z")


def check_epic_id(epic_id: str) -> str:
    """The id, if it can name a file; SourceError otherwise."""
    if not _EPIC_ID.match(epic_id) or epic_id.lower() in _RESERVED:
        raise SourceError(
            f"{epic_id[:60]!r} cannot be an epic's id: use letters, digits and . _ # -, at most "
            f"100, beginning with a letter or digit, and none of {', '.join(sorted(_RESERVED))}"
        )
    return epic_id


def faults(checkpoint: Checkpoint) -> list[str]:
    """What is wrong with the values of a checkpoint whose fields have the right types."""
    found = [] if _EPIC_ID.match(checkpoint.epic.id) else ["epic.id is no id"]
    ids = [("position.story_id", checkpoint.position.story_id)]
    ids += [(f"stories[{at}].id", each.id) for at, each in enumerate(checkpoint.stories)]
    found += [f"{name} is no id" for name, value in ids if value and not _ID.match(value)]
    found += ["a story has no id"] * any(not each.id for each in checkpoint.stories)
    commits = [("git.commit", checkpoint.git.commit)]
    commits += [(f"stories[{at}].commit", s.commit) for at, s in enumerate(checkpoint.stories)]
    commits += [(f"recoveries[{n}].stash", r.stash) for n, r in enumerate(checkpoint.recoveries)]
    found += [f"{name} is no commit" for name, value in commits if not _COMMIT.match(value)]
    if len({each.id for each in checkpoint.stories}) != len(checkpoint.stories):
        found.append("a story is named twice")
    if len(checkpoint.stories) > _MOST_STORIES:
        found.append(f"there are more than {_MOST_STORIES:,} stories")
    if len(checkpoint.note) > _LONGEST_NOTE:
        found.append(f"note has more than {_LONGEST_NOTE:,} characters")
    return found + _odd_numbers(checkpoint)


def _odd_numbers(checkpoint: Checkpoint) -> list[str]:
    counts: dict[str, int] = {
        "generation": checkpoint.generation,
        "epic.stories_total": checkpoint.epic.stories_total,
        "position.task_total": checkpoint.position.task_total,
        **{f"attempts.{name[:40]}": value for name, value in checkpoint.attempts.items()},
        **{f"metrics.{k}": v for k, v in msgspec.structs.asdict(checkpoint.metrics).items()},
    }
    return [f"{name} is below 0" for name, value in sorted(counts.items()) if value < 0]


def encode(checkpoint: Checkpoint) -> bytes:
    """The file: pretty JSON with its checksum. SourceError if it would not be read back."""
    body = msgspec.to_builtins(checkpoint)
    wrong = unsound(body) or "; ".join(faults(checkpoint))
    if wrong:
        raise SourceError(f"the checkpoint of {checkpoint.epic.id[:60]!r} cannot be kept: {wrong}")
    raw = encode_pretty({**body, "checksum": checksum(body)})
    if len(raw) > LARGEST:
        raise SourceError(
            f"the checkpoint of {checkpoint.epic.id} would have {len(raw):,} bytes; at most "
            f"{LARGEST:,} are kept: shorten its notes"
        )
    return raw


def checksum(body: Mapping[str, Any]) -> str:
    """SHA-256 over the content, whatever its layout and the order of its keys."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def unsound(value: Any) -> str:
    """Why a JSON value cannot be kept as it is; empty if it can."""
    level, depth = [value], 0
    while level:
        for each in level:
            wrong = _wrong_leaf(each)
            if wrong:
                return wrong
        depth += 1
        if depth > DEEPEST:
            return f"it is nested deeper than {DEEPEST} levels"
        level = [part for each in level for part in _parts(each)]
    return ""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return list(value) if isinstance(value, list | tuple) else []


def _wrong_leaf(value: Any) -> str:
    if isinstance(value, str):
        if "\x00" in value:
            return f"{value[:40]!r} holds a NUL character"
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            return f"{value[:40]!r} holds half a character"
    if isinstance(value, int) and value not in INT64:
        return "a number does not fit into 64 bits"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "a number is infinite"
    return ""
