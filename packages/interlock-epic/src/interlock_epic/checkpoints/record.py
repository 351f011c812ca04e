"""Define the checkpoint of an epic, version 2: everything a fresh session needs.

Also applies a session's stated position, and encodes the file: JSON with a checksum, within limits,
and always readable again. Reading distinguishes damaged files, invalid ones, and those of a newer
version.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.strict_json import INT64, Problem, format_json, read_object
from interlock_epic.status import NEXT, Status, change_status

VERSION: Final = 2
_MOST_FAILURES: Final = 50
_MOST_RECOVERIES: Final = 50

ActionType = Literal["continue", "retry", "revise", "hitl", "spawn", "complete"]


class Epic(msgspec.Struct, frozen=True, kw_only=True):
    """The epic as a whole."""

    id: str
    title: str = ""
    file: str = ""
    status: Status = Status.IN_PROGRESS
    stories_total: int = 0


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A story of the epic."""

    id: str
    file: str = ""
    status: Status = Status.IN_PROGRESS
    commit: str = ""
    reason: str = ""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """The position of the work, as the signal states it."""

    story_id: str = ""
    phase: str = ""
    task: str = ""


class GitWork(msgspec.Struct, frozen=True, kw_only=True):
    """The state of git when the checkpoint was written; "" for an unknown commit."""

    commit: str = ""
    branch: str = ""
    dirt: str = ""
    """A digest of uncommitted changes; "" if there were none."""
    unborn: bool = False
    """True if the repository had no commit."""


class NextAction(msgspec.Struct, frozen=True, kw_only=True):
    """The first action of the next session."""

    type: ActionType = "continue"
    description: str = ""
    subagent: str = ""


class Hitl(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a human, and its answer."""

    request_id: str = ""
    type: str = "issue"
    issue: int = 0
    url: str = ""
    waiting_since: str = ""
    deadline: str = ""
    response: str = ""
    comment: str = ""
    answered_at: str = ""


class EpicFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure that the next session must know about."""

    at: str = ""
    story_id: str = ""
    task: str = ""
    type: str = ""
    message: str = ""


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the recovery journal; a stash is identified by its commit."""

    number: int
    at: str = ""
    reason: str = ""
    action: str = ""
    state: Literal["started", "stashed", "complete", "failed", "restored"] = "started"
    head: str = ""
    stash: str = ""
    error: str = ""


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of clears and recoveries."""

    clears_performed: int = 0
    recoveries_performed: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The whole checkpoint. `generation` rises with every write: the higher of two sound files is
    newer.
    """

    version: int = VERSION
    generation: int = 0
    created: str = ""
    updated: str = ""
    epic: Epic
    stories: tuple[Story, ...] = ()
    position: Position = Position()
    git: GitWork = GitWork()
    next_action: NextAction = NextAction()
    hitl: Hitl | None = None
    failures: tuple[EpicFailure, ...] = ()
    attempts: dict[str, int] = {}
    metrics: Metrics = Metrics()
    recoveries: tuple[Recovery, ...] = ()
    note: str = ""
    extra: dict[str, Any] = {}

    def story(self, story_id: str) -> Story | None:
        return next((story for story in self.stories if story.id == story_id), None)

    def with_story(self, story: Story) -> "Checkpoint":
        """Return the checkpoint with a story replaced or added at the end."""
        known = [story if other.id == story.id else other for other in self.stories]
        stories = known if self.story(story.id) else [*known, story]
        return msgspec.structs.replace(self, stories=tuple(stories))

    def with_failure(self, failure: EpicFailure) -> "Checkpoint":
        failures = (*self.failures, failure)[-_MOST_FAILURES:]
        return msgspec.structs.replace(self, failures=failures)

    def with_recovery(self, entry: Recovery) -> "Checkpoint":
        """Return the checkpoint with an entry replaced or added; entries with a stash stay."""
        others = [other for other in self.recoveries if other.number != entry.number]
        entries = sorted([*others, entry], key=lambda other: other.number)
        old, new = entries[:-_MOST_RECOVERIES], entries[-_MOST_RECOVERIES:]
        kept = (*(other for other in old if other.state == "stashed"), *new)
        return msgspec.structs.replace(self, recoveries=kept)


class StatedPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position that a session states when it writes a checkpoint."""

    epic_id: str
    story_id: str
    phase: str
    task: str
    status: Status = Status.IN_PROGRESS
    note: str | None = None
    next_action: NextAction | None = None


def apply_position(
    before: Checkpoint | None, stated: StatedPosition, work: GitWork, at: str
) -> Checkpoint:
    """Return the checkpoint after a session stated its position; its context is cleared then."""
    checkpoint = before or Checkpoint(epic=Epic(id=stated.epic_id), created=at)
    epic = _mark_in_progress(checkpoint.epic)
    known = checkpoint.story(stated.story_id) or Story(id=stated.story_id, status=stated.status)
    status = change_status(known.status, stated.status, f"story {stated.story_id}")
    commit = work.commit if status == Status.DONE else known.commit
    checkpoint = checkpoint.with_story(msgspec.structs.replace(known, status=status, commit=commit))
    position = Position(story_id=stated.story_id, phase=stated.phase, task=stated.task)
    note = checkpoint.note if stated.note is None else stated.note
    clears = checkpoint.metrics.clears_performed + 1
    return msgspec.structs.replace(
        checkpoint,
        epic=epic,
        position=position,
        git=work,
        updated=at,
        note=note,
        next_action=stated.next_action or NextAction(),
        metrics=msgspec.structs.replace(checkpoint.metrics, clears_performed=clears),
    )


def _mark_in_progress(epic: Epic) -> Epic:
    if not NEXT[epic.status]:
        raise StateError(
            f"epic {epic.id} is {epic.status}: start a new one, or clear its checkpoint first"
        )
    return msgspec.structs.replace(epic, status=Status.IN_PROGRESS)


LARGEST: Final = 1 << 20
DEEPEST: Final = 40
_MOST_STORIES: Final = 2_000
_LONGEST_NOTE: Final = 4_000
_RESERVED: Final = frozenset({"active", "archive", "checkpoint", "context", "current-checkpoint"})
_EPIC_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,99}\Z")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}\Z")
_COMMIT: Final = re.compile(r"(?:[0-9a-f]{7,64})?\Z")


def check_epic_id(epic_id: str) -> str:
    """Return the id; raise SourceError if it cannot be a file name."""
    if not _EPIC_ID.match(epic_id) or epic_id.lower() in _RESERVED:
        raise SourceError(
            f"{epic_id[:60]!r} is not an epic's id; use at most 100 letters, digits and . _ # -, "
            f"beginning with a letter or digit, and none of {', '.join(sorted(_RESERVED))}"
        )
    return epic_id


def find_faults(checkpoint: Checkpoint) -> list[str]:
    """Return what is wrong with the values of a checkpoint whose types are right."""
    found = [] if _EPIC_ID.match(checkpoint.epic.id) else ["epic.id is not an id"]
    ids = [("position.story_id", checkpoint.position.story_id)]
    ids += [(f"stories[{at}].id", story.id) for at, story in enumerate(checkpoint.stories)]
    found += [f"{name} is not an id" for name, value in ids if value and not _ID.match(value)]
    found += ["a story has no id"] * any(not story.id for story in checkpoint.stories)
    commits = [("git.commit", checkpoint.git.commit)]
    commits += [(f"stories[{at}].commit", s.commit) for at, s in enumerate(checkpoint.stories)]
    commits += [(f"recoveries[{n}].stash", r.stash) for n, r in enumerate(checkpoint.recoveries)]
    found += [f"{name} is not a commit" for name, value in commits if not _COMMIT.match(value)]
    if len({story.id for story in checkpoint.stories}) != len(checkpoint.stories):
        found.append("a story is named twice")
    if len(checkpoint.stories) > _MOST_STORIES:
        found.append(f"there are more than {_MOST_STORIES:,} stories")
    if len(checkpoint.note) > _LONGEST_NOTE:
        found.append(f"note has more than {_LONGEST_NOTE:,} characters")
    return found + _find_negative_numbers(checkpoint)


def _find_negative_numbers(checkpoint: Checkpoint) -> list[str]:
    counts: dict[str, int] = {
        "generation": checkpoint.generation,
        "epic.stories_total": checkpoint.epic.stories_total,
        **{f"attempts.{name[:40]}": value for name, value in checkpoint.attempts.items()},
        **{f"metrics.{k}": v for k, v in msgspec.structs.asdict(checkpoint.metrics).items()},
    }
    return [f"{name} is below 0" for name, value in sorted(counts.items()) if value < 0]


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return the file, pretty JSON with a checksum; raise SourceError if it is unreadable."""
    body = msgspec.to_builtins(checkpoint)
    wrong = explain_unsound(body) or "; ".join(find_faults(checkpoint))
    if wrong:
        raise SourceError(
            f"the checkpoint of {checkpoint.epic.id[:60]!r} cannot be written: {wrong}"
        )
    raw = format_json({**body, "checksum": compute_checksum(body)})
    if len(raw) > LARGEST:
        raise SourceError(
            f"the checkpoint of {checkpoint.epic.id} has {len(raw):,} bytes, more than "
            f"{LARGEST:,}: shorten its notes"
        )
    return raw


def compute_checksum(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content, independent of layout and key order."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def explain_unsound(value: Any) -> str:
    """Return why a JSON value cannot be stored unchanged, or ""."""
    level, depth = [value], 0
    while level:
        for item in level:
            wrong = _explain_leaf(item)
            if wrong:
                return wrong
        depth += 1
        if depth > DEEPEST:
            return f"it is nested deeper than {DEEPEST} levels"
        level = [part for item in level for part in _list_parts(item)]
    return ""


def _list_parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return list(value) if isinstance(value, list | tuple) else []


def _explain_leaf(value: Any) -> str:
    if isinstance(value, str):
        if "\x00" in value:
            return f"{value[:40]!r} contains a NUL character"
        if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            return f"{value[:40]!r} contains a lone surrogate"
    if isinstance(value, int) and value not in INT64:
        return "a number does not fit into 64 bits"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "a number is infinite"
    return ""


UnreadKind = Literal["MISSING", "CORRUPT", "INVALID", "VERSION"]
ErrorCode = Literal["NO_CHECKPOINT", "CHECKPOINT_CORRUPT"]


class UnreadableCheckpoint(msgspec.Struct, frozen=True):
    """The reason why there is no usable checkpoint."""

    kind: UnreadKind
    sentence: str

    @property
    def code(self) -> ErrorCode:
        """Return the signals' error code, which is one for all unusable files."""
        return "NO_CHECKPOINT" if self.kind == "MISSING" else "CHECKPOINT_CORRUPT"


def read_checkpoint(raw: bytes) -> Checkpoint | UnreadableCheckpoint:
    """Return the checkpoint in a file, or why there is none."""
    if len(raw) > LARGEST:
        return UnreadableCheckpoint("CORRUPT", f"it has more than {LARGEST:,} bytes")
    value = read_object(raw)
    if isinstance(value, Problem):
        return UnreadableCheckpoint("CORRUPT", value.sentence)
    wrong = explain_unsound(value)
    if wrong:
        return UnreadableCheckpoint("CORRUPT", wrong)
    body = dict(value)
    checksum, version = body.pop("checksum", None), value.get("version")
    # The checksum comes first: a damaged file may claim any version.
    if checksum is not None and checksum != compute_checksum(body):
        return UnreadableCheckpoint("CORRUPT", "its checksum does not match its content")
    if not isinstance(version, int) or version < VERSION:
        return UnreadableCheckpoint("INVALID", f"it is not a checkpoint of version {VERSION}")
    if version > VERSION:
        sentence = f"it has version {version}, but this Interlock knows {VERSION}; use a newer one"
        return UnreadableCheckpoint("VERSION", sentence)
    if checksum is None:
        return UnreadableCheckpoint("CORRUPT", "it has no checksum")
    return _read_body(body)


def _read_body(body: dict[str, Any]) -> Checkpoint | UnreadableCheckpoint:
    try:
        checkpoint = msgspec.convert(body, Checkpoint)
    except msgspec.ValidationError as error:
        return UnreadableCheckpoint("INVALID", str(error))
    unknown = _find_unknown(body, msgspec.to_builtins(checkpoint))
    if unknown:
        extra = {**checkpoint.extra, **unknown}
        checkpoint = msgspec.structs.replace(checkpoint, extra=extra)
    wrong = find_faults(checkpoint)
    return UnreadableCheckpoint("INVALID", "; ".join(wrong[:5])) if wrong else checkpoint


def _find_unknown(given: Any, known: Any) -> dict[str, Any]:
    """Return the fields of `given` that `known` lacks, in their places; a list's by number."""
    if isinstance(given, list):
        given = {str(at): item for at, item in enumerate(given)}
        known = {str(at): item for at, item in enumerate(known)}
    if not isinstance(given, dict) or not isinstance(known, dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in given.items():
        part = _find_unknown(value, known[name]) if name in known else value
        if name not in known or part:
            found[name] = part
    return found
