"""Reads a checkpoint from bytes: version 2, or one of the four shapes that older tools write.

Tells a damaged file from an invalid one and from one of a newer version. An older shape is read
field by field, and what version 2 has no field for is kept under `extra`.
"""

import copy
import re
from typing import Any, Final, Literal, get_args

import msgspec

from interlock.epic.checkpoints.record import (
    LARGEST,
    VERSION,
    ActionType,
    Checkpoint,
    Epic,
    EpicFailure,
    GitWork,
    Hitl,
    Metrics,
    NextAction,
    Position,
    Story,
    compute_checksum,
    explain_unsound,
    find_faults,
)
from interlock.epic.status import Kind, Status, read_status
from interlock.system.errors import SourceError
from interlock.system.strict_json import Problem, read_object

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}\Z")


class InvalidError(ValueError):
    """The file is whole, but has an impossible value."""


class LegacyFields:
    """A JSON object from which fields are removed as they are read."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = copy.deepcopy(value)
        self._lists: dict[str, list[LegacyFields]] = {}

    def rest(self) -> dict[str, Any]:
        """What was not read, the objects of a list under their numbers, without empty values."""
        lists = {
            path: {str(at): item.rest() for at, item in enumerate(items) if item.rest()}
            for path, items in self._lists.items()
        }
        left = {**self._value, **lists}
        return {name: value for name, value in left.items() if value not in ({}, [], None)}

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

    def drop(self, *names: str) -> None:
        for name in names:
            self._value.pop(name, None)

    def take(self, path: str) -> Any:
        """The value at `a.b`, or None."""
        *folders, name = path.split(".")
        place = self._value
        for folder in folders:
            inner = place.get(folder)
            if inner is None:
                return None
            if not isinstance(inner, dict):
                raise InvalidError(f"{folder} must be an object")
            place = inner
        return place.pop(name, None)

    def text(self, path: str, needed: bool = False) -> str:
        return _read_text(self.take(path), path, needed)

    def words(self, path: str) -> str:
        """The text there; anything else is left where it is."""
        return self.text(path) if isinstance(self._value.get(path), str) else ""

    def count(self, path: str, needed: bool = False, rounded: bool = False) -> int:
        """A count; with `rounded`, one that some tools write with a fraction."""
        value = self.take(path)
        if value is None and not needed:
            return 0
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 18:
            value = int(value)
        if isinstance(value, float) and (rounded or value.is_integer()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            problem = "is missing" if value is None else "must be a whole number from 0"
            raise InvalidError(f"{path} {problem}")
        return value

    def status(self, path: str, kind: Kind, default: Status = Status.IN_PROGRESS) -> Status:
        word = self.text(path)
        try:
            return read_status(word, kind) if word else default
        except SourceError as error:
            raise InvalidError(f"{path}: {error}") from None

    def commit(self, path: str, needed: bool = False) -> str:
        """A commit's hash; "" for another word, such as HEAD in an empty repository."""
        value = self.take(path)
        if value is None and needed:
            raise InvalidError(f"{path} is missing")
        return _read_commit(_read_text(value, path))

    def items(self, path: str) -> list["LegacyFields"]:
        """The objects of a list; a plain text or number counts as one with an `id`."""
        value = self.take(path)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidError(f"{path} must be a list")
        items = [LegacyFields(item if isinstance(item, dict) else {"id": item}) for item in value]
        self._lists[path] = items
        return items


def _read_text(value: Any, path: str, needed: bool = False) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value.strip()):
        raise InvalidError(f"{path} is missing" if not value else f"{path} must be text")
    return value


def _read_commit(word: str) -> str:
    word = word.strip()
    return word.lower() if _COMMIT.match(word) else ""


_ACTIONS: Final[tuple[ActionType, ...]] = get_args(ActionType)
_OTHER_ACTIONS: Final[dict[str, ActionType]] = {
    "resume": "continue",
    "spawn-fixer": "spawn",
    "hitl-clarification": "hitl",
}
_PHASES: Final = ("DESIGN", "PLAN", "BUILD", "VALIDATE")


def read_nested(left: LegacyFields) -> Checkpoint:
    """`.sage/state/{epic_id}.json`, "1.0": sections within the file."""
    epic_id = left.text("epic.id", needed=True)
    story_id = left.text("current.story_id", needed=True)
    retries = left.count("current.retry_count")
    status = left.status("current.status", "story")
    stories = {story.id: story for story in map(_read_completed, left.items("completed"))}
    current = Story(id=story_id, file=left.text("current.story_file"), status=status)
    if story_id not in stories or status != Status.IN_PROGRESS:
        stories[story_id] = current
    left.take("epic.stories_complete")
    commit = left.commit("git.last_checkpoint_commit", needed=True)
    return Checkpoint(
        created=left.text("created"),
        updated=left.text("updated"),
        epic=Epic(
            id=epic_id,
            file=left.text("epic.file"),
            status=left.status("epic.status", "epic"),
            stories_total=left.count("epic.stories_total"),
        ),
        stories=tuple(stories.values()),
        position=_read_nested_position(left, story_id),
        git=GitWork(commit=commit, branch=left.text("git.branch")),
        next_action=_read_next_action(left),
        hitl=_read_hitl(left),
        failures=tuple(_read_failure(item) for item in left.items("failure_history")),
        attempts={"retry": retries} if retries else {},
        metrics=_read_metrics(left),
    )


def _read_nested_position(left: LegacyFields, story_id: str) -> Position:
    number, name = left.count("lifecycle.phase"), left.text("lifecycle.phase_name")
    by_number = _PHASES[number - 1] if 0 < number <= len(_PHASES) else ""
    return Position(
        story_id=story_id,
        phase=name or by_number,
        task=str(left.count("current.task_index", needed=True)),
        task_total=left.count("current.task_total"),
        step=left.text("current.step"),
    )


def read_flat(left: LegacyFields) -> Checkpoint:
    """`current-checkpoint.json`, "1.0": all fields beside each other."""
    commit = left.commit("commit_hash", needed=True)
    story_id = left.text("story_id", needed=True)
    word = left.text("status", needed=True)
    status = LegacyFields({"status": word}).status("status", "story")
    return Checkpoint(
        created=left.text("started_at"),
        updated=left.text("updated_at"),
        epic=Epic(id=left.text("epic_id", needed=True)),
        stories=(Story(id=story_id, status=status),),
        position=Position(
            story_id=story_id,
            phase=left.text("phase", needed=True),
            task=str(left.count("task_index", needed=True)),
        ),
        git=GitWork(commit=commit, branch=left.text("branch")),
        note=left.text("notes"),
    )


def read_ad_hoc(left: LegacyFields) -> Checkpoint:
    """`checkpoint.json`: what the commands that show and clear one expect."""
    story_id = left.text("story")
    status = left.status("state", "story")
    stories = (Story(id=story_id, status=status),) if story_id else ()
    step, ref = left.text("step"), left.text("git_ref")
    commit = _read_commit(ref)
    return Checkpoint(
        updated=left.text("timestamp"),
        epic=Epic(id=left.text("epic", needed=True)),
        stories=stories,
        position=Position(story_id=story_id, phase=left.text("phase") or step, step=step),
        git=GitWork(commit=commit, branch="" if commit else ref.removeprefix("refs/heads/")),
        next_action=_read_next_action(left, needed=False),
        note=left.words("context"),
    )


def read_epic_state(left: LegacyFields) -> Checkpoint:
    """`epic-{id}-state.json`: the state of a run over a queue of stories."""
    at = left.count("current_story_index")
    queue = [_read_story_id(item) for item in left.items("story_queue")]
    current = left.text("current_story") or (queue[at] if at < len(queue) else "")
    states = dict.fromkeys(queue, Status.READY)
    if current:
        states[current] = Status.IN_PROGRESS
    stories = {name: Story(id=name, status=status) for name, status in states.items()}
    stories |= {
        name: Story(id=name, status=Status.SKIPPED) for name in _read_names(left, "skipped")
    }
    for item in left.items("failed_stories"):
        name, reason = _read_story_id(item), item.text("reason")
        stories[name] = Story(id=name, status=Status.FAILED, reason=reason)
    stories |= {name: Story(id=name, status=Status.DONE) for name in _read_names(left, "completed")}
    counters = ("chunk_retry_count", "test_attempt", "review_iteration")
    attempts = {name: left.count(name) for name in counters}
    has_chunk = left.has("current_chunk_index")
    error = left.take("error")
    return Checkpoint(
        updated=left.text("last_updated"),
        epic=Epic(
            id=left.text("epic_id", needed=True),
            title=left.text("epic_title"),
            file=left.text("epic_path"),
            stories_total=len(queue),
        ),
        stories=tuple(stories.values()),
        position=Position(
            story_id=current,
            phase=left.text("phase", needed=True),
            task=str(left.count("current_chunk_index")) if has_chunk else "",
        ),
        git=GitWork(branch=left.text("story_branch") or left.text("epic_branch")),
        attempts={name: value for name, value in attempts.items() if value},
        failures=(EpicFailure(type="error", message=str(error)[:2_000]),) if error else (),
    )


def _read_names(left: LegacyFields, word: str) -> list[str]:
    return [_read_story_id(item) for item in left.items(f"{word}_stories")]


def _read_story_id(item: LegacyFields) -> str:
    return item.text("id") or item.text("story_id") or item.text("story_key", needed=True)


def _read_completed(item: LegacyFields) -> Story:
    return Story(
        id=item.text("story_id") or item.text("id", needed=True),
        status=item.status("status", "story", Status.DONE),
        commit=item.commit("checkpoint_commit"),
    )


def _read_next_action(left: LegacyFields, needed: bool = True) -> NextAction:
    word = left.text("next_action.type", needed)
    kind = next((action for action in _ACTIONS if action == word), None) or _OTHER_ACTIONS.get(word)
    if word and kind is None:
        raise InvalidError(f"next_action.type {word[:40]!r} is none of {', '.join(_ACTIONS)}")
    return NextAction(
        type=kind or "continue",
        description=left.text("next_action.description"),
        subagent=left.text("next_action.subagent") or ("FIXER" if "fixer" in word else ""),
    )


def _read_hitl(left: LegacyFields) -> Hitl | None:
    found = Hitl(
        type=left.text("hitl.type") or "issue",
        issue=left.count("hitl.github_issue_id"),
        url=left.text("hitl.github_url"),
        waiting_since=left.text("hitl.waiting_since"),
        response=left.text("hitl.response_status"),
        comment=left.text("hitl.response_comment"),
        answered_at=left.text("hitl.response_at"),
    )
    return None if found == Hitl() else found


def _read_failure(item: LegacyFields) -> EpicFailure:
    return EpicFailure(
        at=item.text("timestamp"),
        task=item.text("task_id"),
        type=item.text("failure_type"),
        message=item.text("error_message"),
        retry_count=item.count("retry_count"),
        reverted_to=item.commit("reverted_to"),
        recovered=item.take("recovered") is True,
    )


def _read_metrics(left: LegacyFields) -> Metrics:
    return Metrics(
        **{name: left.count(f"metrics.{name}", rounded=True) for name in Metrics.__struct_fields__}
    )


Shape = Literal["version-2", "nested-1.0", "flat-1.0", "ad-hoc", "epic-state"]
UnreadKind = Literal["MISSING", "CORRUPT", "INVALID", "VERSION"]
ErrorCode = Literal["NO_CHECKPOINT", "CHECKPOINT_CORRUPT"]
_OLD: Final = "1.0"


class ReadCheckpoint(msgspec.Struct, frozen=True):
    """A sound checkpoint, and the shape it was found in."""

    checkpoint: Checkpoint
    shape: Shape


class UnreadableCheckpoint(msgspec.Struct, frozen=True):
    """Why there is no usable checkpoint."""

    kind: UnreadKind
    sentence: str

    @property
    def code(self) -> ErrorCode:
        """The error code of the signals, which has one code for all unusable files."""
        return "NO_CHECKPOINT" if self.kind == "MISSING" else "CHECKPOINT_CORRUPT"


def read_checkpoint(raw: bytes) -> ReadCheckpoint | UnreadableCheckpoint:
    """The checkpoint in a file, or why there is none."""
    if len(raw) > LARGEST:
        return UnreadableCheckpoint("CORRUPT", f"it has more than {LARGEST:,} bytes")
    value = read_object(raw)
    if isinstance(value, Problem):
        return UnreadableCheckpoint("CORRUPT", value.sentence)
    wrong = explain_unsound(value)
    if wrong:
        return UnreadableCheckpoint("CORRUPT", wrong)
    try:
        return _interpret(value)
    except InvalidError as error:
        return UnreadableCheckpoint("INVALID", str(error))


def _interpret(value: dict[str, Any]) -> ReadCheckpoint | UnreadableCheckpoint:
    version, body = value.get("version"), dict(value)
    checksum = body.pop("checksum", None)
    # A checksum must match, whatever the file then claims to be.
    if checksum is not None and checksum != compute_checksum(body):
        return UnreadableCheckpoint("CORRUPT", "its checksum does not match its content")
    if version == VERSION and isinstance(version, int):
        return _read_version_2(body, signed=checksum is not None)
    if version is not None and version != _OLD:
        return _describe_version(version)
    shape = detect_shape(value)
    if shape is None:
        raise InvalidError("it has no known format: no epic is named where one should be")
    left = LegacyFields(value)
    left.drop("version", "checksum")
    readers = {
        "nested-1.0": read_nested,
        "flat-1.0": read_flat,
        "ad-hoc": read_ad_hoc,
        "epic-state": read_epic_state,
    }
    checkpoint = readers[shape](left)
    checkpoint = msgspec.structs.replace(checkpoint, extra=left.rest())
    return _check_faults(checkpoint, shape)


def detect_shape(value: dict[str, Any]) -> Shape | None:
    """Which of the older shapes this is, by what it names."""
    epic = value.get("epic")
    if isinstance(epic, dict):
        return "nested-1.0"
    if "epic_id" in value:
        return "flat-1.0" if value.get("version") == _OLD else "epic-state"
    return "ad-hoc" if isinstance(epic, str) else None


def _describe_version(version: Any) -> UnreadableCheckpoint:
    if not isinstance(version, str | int | float) or isinstance(version, bool):
        raise InvalidError("version is not a number")
    shown = str(version)[:20]
    whole = shown.partition(".")[0]
    newer = whole.isdecimal() and int(whole) >= VERSION
    if newer:
        sentence = (
            f"it has version {shown}, and this Interlock knows {VERSION}: use a newer Interlock"
        )
    else:
        sentence = f"it has the unknown version {shown!r}; known are 1.0 and {VERSION}"
    return UnreadableCheckpoint("VERSION", sentence)


def _read_version_2(body: dict[str, Any], signed: bool) -> ReadCheckpoint | UnreadableCheckpoint:
    if not signed:
        return UnreadableCheckpoint("CORRUPT", "it has no checksum")
    try:
        checkpoint = msgspec.convert(body, Checkpoint)
    except msgspec.ValidationError as error:
        raise InvalidError(str(error)) from None
    unknown = _find_unknown(body, msgspec.to_builtins(checkpoint))
    if unknown:
        extra = {**checkpoint.extra, **unknown}
        checkpoint = msgspec.structs.replace(checkpoint, extra=extra)
    return _check_faults(checkpoint, "version-2")


def _find_unknown(given: Any, known: Any) -> dict[str, Any]:
    """The fields of `given` that `known` lacks, in their places; a list's under their numbers."""
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


def _check_faults(checkpoint: Checkpoint, shape: Shape) -> ReadCheckpoint | UnreadableCheckpoint:
    wrong = find_faults(checkpoint)
    if wrong:
        raise InvalidError("; ".join(wrong[:5]))
    return ReadCheckpoint(checkpoint, shape)
