"""Compare git with the checkpoint before a session resumes, and carry out the policy.

Every action is in the checkpoint's recovery journal before it begins, and its result afterwards.
Attempts are counted in an append-only file in the folder that no reset can touch, since a reset
would otherwise start the count again. No work is ever thrown away.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from interlock.signals.lines import format_line
from interlock.system.errors import SourceError, StateError
from interlock.system.files import UnreadableFile, append_line, read_file
from interlock.system.git import USER_TREE, Git
from interlock_epic.checkpoints.place import StateFolder, make_folders
from interlock_epic.checkpoints.record import Checkpoint, GitWork, Recovery, UnreadableCheckpoint
from interlock_epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock_epic.recovery.git_state import (
    apply_stash,
    compare_git,
    find_stash,
    keep_stash,
    push_stash,
    read_git_work,
)
from interlock_epic.recovery.policy import (
    DEFAULTS,
    Action,
    GitState,
    Policy,
    ResumeDecision,
    decide_resume,
)

_LARGEST: Final = 1 << 22


class RecoveryAttempt(msgspec.Struct, frozen=True):
    """One attempt."""

    key: str
    at: str


def attempts_file(place: StateFolder, epic_id: str) -> Path:
    return place.safest / f"{epic_id}.attempts"


def count_attempts(place: StateFolder, epic_id: str, key: str) -> int:
    """Return the number of attempts; a damaged line counts for every key."""
    raw = read_file(attempts_file(place, epic_id), _LARGEST)
    if isinstance(raw, UnreadableFile):
        if raw.kind == "gone":
            return 0
        raise SourceError(
            f"{attempts_file(place, epic_id)}: {raw.reason}; inspect it, then remove it"
        )
    return sum(_read_key(line) in (key, None) for line in raw.splitlines())


def add_attempt(place: StateFolder, epic_id: str, key: str, at: str) -> int:
    """Record one more attempt durably, and return their number."""
    make_folders(place)
    path = attempts_file(place, epic_id)
    try:
        append_line(path, msgspec.json.encode(RecoveryAttempt(key, at)), sync=True)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
    return count_attempts(place, epic_id, key)


def _read_key(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=RecoveryAttempt).key
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


MISMATCH: Final = "GIT_STATE_MISMATCH"
TOO_MANY: Final = "MAX_RETRIES_EXCEEDED"
MAX_ATTEMPTS: Final = 5
_LONGEST: Final = 500

Emit = Callable[[str], None]


class RecoveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a recovery; `code` is "" if the session may continue."""

    action: Action
    code: str = ""
    sentence: str = ""
    state: GitState | None = None
    checkpoint: Checkpoint | None = None
    stash: str = ""
    notices: tuple[str, ...] = ()

    @property
    def may_continue(self) -> bool:
        return not self.code


def recover(
    checkpoints: Checkpoints,
    loaded: LoadedCheckpoint,
    emit: Emit,
    at: str,
    *,
    policy: Policy = DEFAULTS,
    answer: Action | None = None,
    most: int = MAX_ATTEMPTS,
) -> RecoveryResult:
    """Compare git with the checkpoint, decide, and act; `answer` is a human's, if one was asked."""
    attempt = _RecoveryRun(checkpoints, loaded.checkpoint.epic.id, emit, at)
    checkpoint = attempt.note_lost_stashes(loaded.checkpoint)
    state = compare_git(checkpoints.place.root, checkpoint.git)
    decision = decide_resume(state, policy)
    known = RecoveryResult(
        action=decision.action,
        sentence=decision.reason,
        state=state,
        checkpoint=checkpoint,
        notices=loaded.notices,
    )
    if decision.action == Action.CONTINUE:
        return known
    return attempt.carry_out(known, decision, answer, most)


class _RecoveryRun:
    """One recovery of one epic."""

    def __init__(self, checkpoints: Checkpoints, epic_id: str, emit: Emit, at: str) -> None:
        self._checkpoints = checkpoints
        self._epic_id = epic_id
        self._emit = emit
        self._at = at
        self._git = Git(checkpoints.place.root, USER_TREE)

    def carry_out(
        self, known: RecoveryResult, decision: ResumeDecision, answer: Action | None, most: int
    ) -> RecoveryResult:
        self._emit_signal("RECOVERY_STARTED", decision.reason)
        is_asked = decision.action == Action.ASK
        action = answer if is_asked and answer is not None else decision.action
        if action == Action.ASK:
            return msgspec.structs.replace(known, code=MISMATCH)
        if action == Action.REFUSE:
            return self._fail(known, MISMATCH, decision.reason)
        key = attempt_key(known.checkpoint)
        recorded = known.checkpoint.attempts.get(key, 0) if known.checkpoint else 0
        count = max(count_attempts(self._checkpoints.place, self._epic_id, key), recorded)
        if count >= most:
            reason = f"recovery was tried {count} times for this task: {decision.reason}"
            return self._fail(known, TOO_MANY, reason)
        add_attempt(self._checkpoints.place, self._epic_id, key, self._at)
        entry = self._start_entry(known, decision, action)
        try:
            done = self._carry_out_entry(entry, action)
        except SourceError as error:
            self._write(msgspec.structs.replace(entry, state="failed", error=str(error)))
            return self._fail(known, MISMATCH, str(error))
        checkpoint = self._write(done, anchor=is_asked)
        state = compare_git(self._checkpoints.place.root, checkpoint.git) if done.stash else None
        if state and state.tracked:
            paths = ", ".join(state.tracked[:3])
            reason = f"still changed after the stash {done.stash[:12]}: {paths}"
            return self._fail(known, MISMATCH, reason)
        self._emit_signal("RECOVERY_COMPLETE", done.head)
        return msgspec.structs.replace(
            known, action=action, checkpoint=checkpoint, stash=done.stash
        )

    def _start_entry(
        self, known: RecoveryResult, decision: ResumeDecision, action: Action
    ) -> Recovery:
        entries = known.checkpoint.recoveries if known.checkpoint else ()
        entry = Recovery(
            number=max((entry.number for entry in entries), default=0) + 1,
            at=self._at,
            reason=decision.reason[:_LONGEST],
            action=action.word,
            head=known.state.head if known.state else "",
        )
        self._write(entry, counted=attempt_key(known.checkpoint))
        return entry

    def _carry_out_entry(self, entry: Recovery, action: Action) -> Recovery:
        if action != Action.STASH:
            return msgspec.structs.replace(entry, state="complete")
        commit = push_stash(self._git, _stash_label(self._epic_id, entry))
        keep_stash(self._git, commit)
        return msgspec.structs.replace(entry, state="stashed", stash=commit)

    def note_lost_stashes(self, checkpoint: Checkpoint) -> Checkpoint:
        """Record stashes that were made just before the process died."""
        for entry in checkpoint.recoveries:
            if entry.state != "started":
                continue
            commit = find_stash(self._git, _stash_label(self._epic_id, entry))
            if commit:
                keep_stash(self._git, commit)
            state = "stashed" if commit else "failed"
            error = "" if commit else "it was interrupted"
            checkpoint = self._write(
                msgspec.structs.replace(entry, state=state, stash=commit, error=error)
            )
        return checkpoint

    def _write(self, entry: Recovery, *, anchor: bool = False, counted: str = "") -> Checkpoint:
        """Write an entry to the journal; with `anchor`, the current git becomes the reference."""
        work = read_git_work(self._checkpoints.place.root) if anchor else None
        return self._checkpoints.update(
            self._epic_id, lambda before: _apply_recovery(before, entry, work, counted), self._at
        ).checkpoint

    def _fail(self, known: RecoveryResult, code: str, reason: str) -> RecoveryResult:
        self._emit_signal("RECOVERY_FAILED", f"{code} {reason}")
        return msgspec.structs.replace(known, action=Action.REFUSE, code=code, sentence=reason)

    def _emit_signal(self, kind: str, text: str) -> None:
        printable = "".join(char if char.isprintable() else "?" for char in text)[:_LONGEST]
        self._emit(format_line(kind, printable))


def _apply_recovery(
    before: Checkpoint | None, entry: Recovery, work: GitWork | None = None, counted: str = ""
) -> Checkpoint:
    """Return the checkpoint with a journal entry, a new reference, and one more attempt."""
    if before is None:
        raise StateError("the checkpoint is gone, so nothing was recovered")
    after = before.with_recovery(entry)
    if work:
        after = msgspec.structs.replace(after, git=work)
    if not counted:
        return after
    attempts = {**after.attempts, counted: after.attempts.get(counted, 0) + 1}
    performed = after.metrics.recoveries_performed + 1
    metrics = msgspec.structs.replace(after.metrics, recoveries_performed=performed)
    return msgspec.structs.replace(after, attempts=attempts, metrics=metrics)


def attempt_key(checkpoint: Checkpoint | None) -> str:
    """Return the key that attempts are counted by: the current task."""
    position = checkpoint.position if checkpoint else None
    return f"recovery:{position.story_id}:{position.task}" if position else "recovery"


def _stash_label(epic_id: str, entry: Recovery) -> str:
    return f"interlock: {epic_id}, recovery {entry.number} of {entry.at}"


def restore_stash(checkpoints: Checkpoints, epic_id: str, number: int | None, at: str) -> Recovery:
    """Restore the work that a recovery stashed, by its number or the newest."""
    loaded = checkpoints.read(epic_id)
    if isinstance(loaded, UnreadableCheckpoint):
        raise SourceError(loaded.sentence)
    kept = [entry for entry in loaded.checkpoint.recoveries if entry.state == "stashed"]
    wanted = [entry for entry in kept if number in (None, entry.number)]
    if not wanted:
        numbers = ", ".join(str(entry.number) for entry in kept)
        known = f"there are {numbers}" if kept else "there is none"
        raise StateError(f"no such stash is recorded for {epic_id}: {known}")
    state = compare_git(checkpoints.place.root, loaded.checkpoint.git)
    if state.tracked or state.operation:
        changed = ", ".join(state.tracked[:3]) or f"a {state.operation}"
        raise StateError(f"there is uncommitted work ({changed}); commit it first")
    apply_stash(Git(checkpoints.place.root, USER_TREE), wanted[-1].stash)
    done = msgspec.structs.replace(wanted[-1], state="restored")
    checkpoints.update(epic_id, lambda before: _apply_recovery(before, done), at)
    return done
