"""What travels between the coordinator of an epic and the host where a session works.

A session gets the checkpoint and its limits; what comes back is what was heard, and the checkpoint
as the session left it. The coordinator takes from that what a session may state: where the work
stands. What it keeps itself (questions to people, failures, recoveries, how the epic stands) is not
a session's to change. Pure.
"""

from typing import Final

import msgspec

from interlock.epic.checkpoints.legacy import UnreadableCheckpoint, read_checkpoint
from interlock.epic.checkpoints.record import Checkpoint, GitWork, Recovery
from interlock.epic.progress import MOST_SIGNALS
from interlock.epic.sessions.record import RecordedSignal, SessionAttempt, find_deciding_signal
from interlock.epic.status import EFFECTS, NEXT, Status
from interlock.system.errors import SourceError

LARGEST: Final = 600_000
"""Bytes of a checkpoint that comes back; with what was heard, it must fit into an answer."""
_SILENT: Final = ("CRASH", "SESSION_TIMEOUT", "IDLE_TIMEOUT", "NOTHING")
"""How a session ends that gave no signal."""
_OURS: Final = ("created", "hitl", "failures", "attempts")
"""Fields of a checkpoint that only the coordinator writes."""
_STATED: Final = ("position", "git", "next_action", "note", "extra")
"""Fields that a session states as a whole."""


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long sessions may take, in seconds."""

    session: float = 4 * 3600.0
    """One session, from its start."""
    idle: float = 1800.0
    """Without a byte of output."""
    grace: float = 20.0
    """To exit by itself after its last signal."""
    backoff: float = 2.0
    """The pause after a crash; it doubles with each crash in a row."""


class SessionParcel(msgspec.Struct, frozen=True, kw_only=True):
    """What a session on another host gets, beside its prompt and its files."""

    checkpoint: bytes
    limits: SessionLimits
    bare: bool = False
    """Whether the prompt is sent as it is, though it may be a command of the agent's own."""
    base: str
    """The commit that it is given; what comes back names it."""


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What comes back, beside the work."""

    base: str
    attempt: SessionAttempt
    checkpoint: bytes = b""
    problem: str = ""
    """Why there is no checkpoint."""
    work: GitWork = GitWork()
    """How git stood at the end."""


def choose_signals(signals: tuple[RecordedSignal, ...]) -> tuple[RecordedSignal, ...]:
    """Those that must travel: the first of all, and each that changes a story."""
    return tuple(
        each
        for at, each in enumerate(signals)
        if at < MOST_SIGNALS or (each.counts and EFFECTS.get(each.type) == "story")
    )


def check_attempt(attempt: SessionAttempt, epic_id: str) -> None:
    """SourceError if a session cannot have ended as it is said."""
    signal = attempt.signal
    if signal is None:
        if attempt.ended_by not in _SILENT:
            raise SourceError(f"{attempt.ended_by[:40]!r} is said, and no signal that says so")
        return
    named = signal.fields.get("epic_id", epic_id)
    if named != epic_id:
        raise SourceError(f"its signal is of epic {str(named)[:60]!r}, not of {epic_id}")
    decides = signal.counts and find_deciding_signal([signal]) is signal
    if not decides or attempt.ended_by != signal.type.replace(":", "_"):
        raise SourceError(f"{attempt.ended_by[:40]!r} does not follow from {signal.type[:40]!r}")


def check_checkpoint(handed: Checkpoint, raw: bytes) -> Checkpoint:
    """The checkpoint that a session left; SourceError unless it is one that it may have made of
    what it was handed."""
    if len(raw) > LARGEST:
        raise SourceError(f"the checkpoint has {len(raw):,} bytes; {LARGEST:,} are the most")
    read = read_checkpoint(raw)
    if isinstance(read, UnreadableCheckpoint):
        raise SourceError(f"the checkpoint cannot be read: {read.sentence}")
    found, epic_id = read.checkpoint, handed.epic.id
    if found.epic.id != epic_id:
        raise SourceError(f"the checkpoint is of epic {found.epic.id!r}, not of {epic_id}")
    if read.shape != "version-2" or found.generation < handed.generation:
        raise SourceError(
            f"the checkpoint is of generation {found.generation}, older than "
            f"{handed.generation}, which the session was given"
        )
    if found.generation == handed.generation and found != handed:
        raise SourceError(f"the checkpoint is not what generation {found.generation} was")
    changed = [name for name in _OURS if getattr(found, name) != getattr(handed, name)]
    before, after = (
        msgspec.structs.replace(each.epic, status=Status.DONE) for each in (handed, found)
    )
    if before != after or found.epic.status not in (handed.epic.status, Status.IN_PROGRESS):
        changed.append("epic")
    restored = handed
    for entry in list_restored(handed, found):
        restored = restored.with_recovery(entry)
    if restored.recoveries != found.recoveries:
        changed.append("recoveries")
    changed += [
        f"story {story.id}"
        for story in handed.stories
        if (now := found.story(story.id)) is None
        or (now.status != story.status and not NEXT[story.status])
    ]
    if changed:
        raise SourceError(
            f"the checkpoint changes {', '.join(changed[:3])}, which is not for a session to change"
        )
    return found


def list_restored(handed: Checkpoint, found: Checkpoint) -> list[Recovery]:
    """The recoveries whose stash the session has brought back."""
    stashed = {each for each in handed.recoveries if each.state == "stashed"}
    return [
        each
        for each in found.recoveries
        if each.state == "restored" and msgspec.structs.replace(each, state="stashed") in stashed
    ]


def merge_checkpoint(known: Checkpoint, handed: Checkpoint, found: Checkpoint) -> Checkpoint:
    """The coordinator's checkpoint with what the session has changed in its own. What others have
    changed meanwhile stays, as far as the session did not state it too."""
    stated = {
        name: getattr(found, name)
        for name in _STATED
        if getattr(found, name) != getattr(handed, name)
    }
    clears = max(known.metrics.clears_performed, found.metrics.clears_performed)
    metrics = msgspec.structs.replace(known.metrics, clears_performed=clears)
    merged = msgspec.structs.replace(known, metrics=metrics, **stated)
    for story in found.stories:
        if story != handed.story(story.id):
            merged = merged.with_story(story)
    for entry in list_restored(handed, found):
        merged = merged.with_recovery(entry)
    return merged
