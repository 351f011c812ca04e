"""The handler around the sessions of an epic: RESUME before each of them, CLOSE after the last.

RESUME loads the checkpoint and compares git before anything runs; CLOSE writes the outcome into the
checkpoint. Run twice for one dispatch, both come to the same. `SignalLog` shows and stores the line
signals that the coordinator emits itself; a crash may repeat a line, which the protocol allows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.agents.carrier import Ask, Reply
from interlock.agents.function import build_answer
from interlock.engine.case import Case
from interlock.epic import progress
from interlock.epic.checkpoints.legacy import UnreadableCheckpoint
from interlock.epic.checkpoints.record import Checkpoint, Epic, Story
from interlock.epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock.epic.recovery.git_state import read_git_work
from interlock.epic.recovery.policy import Action
from interlock.epic.recovery.recover import RecoveryResult, recover
from interlock.epic.status import NEXT, OUTCOMES, Status
from interlock.epic.terms import EpicConfig
from interlock.signals.lines import format_line
from interlock.system.errors import SourceError
from interlock.system.files import append_line
from interlock.system.time import format_timestamp

_LONGEST_LINE: Final = 500


class SignalLog:
    """Says signals. `show` gets each line at once."""

    def __init__(self, path: Path, show: Callable[[str], None], now: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self._path = path
        self._show = show
        self._now = now

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self._store({"at": self._now(), "line": line})
        self._show(line)

    def emit(
        self, kind: str, payload: Sequence[str] | Mapping[str, str] | str | None = None
    ) -> None:
        """A signal by its type and fields; signs that no payload may hold become blanks."""
        if isinstance(payload, str):
            payload = _clean_text(payload)
        elif isinstance(payload, Sequence):
            payload = [_clean_text(each) for each in payload]
        self(format_line(kind, payload))

    def _store(self, what: Mapping[str, object]) -> None:
        """One that cannot be kept is still shown."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            append_line(self._path, msgspec.json.encode(what))


def _clean_text(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_LONGEST_LINE]


PROGRAMS: Final = ("pilot",)
_HUMAN: Final = {"approve": "HITL_APPROVED", "revise": "HITL_REVISE"}
_ANSWERS: Final = {"continue": Action.CONTINUE, "stash": Action.STASH}
_LONGEST_COMMENT: Final = 1_000


class EpicDriver:
    """Answers RESUME and CLOSE of one epic. `issue` is the number of the question asked last."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        terms: EpicConfig,
        signals: SignalLog,
        now: Callable[[], float],
        issue: Callable[[], int],
    ) -> None:
        self._checkpoints = checkpoints
        self._terms = terms
        self._signals = signals
        self._now = now
        self._issue = issue

    def __call__(self, ask: Ask) -> Reply:
        """Takes as long as git does: not for the thread of an event loop."""
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        work = self.resume if ask.step == "RESUME" else self.close
        return build_answer(ask, work(ask.case))

    def resume(self, case: Case) -> dict[str, Any]:
        found = self._checkpoints.read(self._terms.epic_id)
        fresh = (
            isinstance(found, UnreadableCheckpoint)
            and found.kind == "MISSING"
            and case.attempt == 1
        )
        if fresh and self._terms.fresh:
            self._signals.emit("CHECKPOINT:MISSING")
            self._update(self._build_first)
            self._signals.emit("EPIC_STARTED", [self._terms.epic_id])
            return _build_answer(ready=True, fresh=True, checkpoint="MISSING", summary="it begins")
        if isinstance(found, UnreadableCheckpoint):
            if found.kind == "MISSING":
                self._signals.emit("CHECKPOINT:MISSING")
            return _build_answer(checkpoint=found.kind, code=found.code, summary=found.sentence)
        if found.checkpoint.epic.status == Status.DONE:
            return _build_answer(ready=True, finished=True, summary="it was complete already")
        if not NEXT[found.checkpoint.epic.status]:
            status = found.checkpoint.epic.status.value
            return _build_answer(
                summary=f"the epic is {status}: clear its checkpoint to begin anew"
            )
        place = found.checkpoint.position
        self._signals.emit("CHECKPOINT:LOADED", [self._terms.epic_id, place.story_id])
        outcome = recover(
            self._checkpoints,
            self._terms.epic_id,
            self._signals,
            self._timestamp(),
            policy=self._terms.policy(),
            answer=_ANSWERS.get(str(case.context.get("git_answer", ""))),
            most=self._terms.settings.max_recoveries,
        )
        if not outcome.may_continue:
            return _build_recovery_answer(outcome, code=outcome.code)
        checkpoint = self._prepare_session(outcome.checkpoint or found.checkpoint, case)
        return _build_recovery_answer(
            outcome, ready=True, review=progress.is_unanswered(checkpoint)
        )

    def close(self, case: Case) -> dict[str, Any]:
        outcome = str(case.context.get("outcome", "FATAL"))
        ending = OUTCOMES[outcome]
        review = _read_review(case)
        found = self._checkpoints.read(self._terms.epic_id)
        if ending.status is not None and isinstance(found, LoadedCheckpoint):
            closed = _close_checkpoint(found.checkpoint, ending.status, review, self._timestamp())
            if closed != found.checkpoint:
                self._update(
                    lambda before: _close_checkpoint(
                        before, ending.status, review, self._timestamp()
                    )
                )
        self._emit_outcome(outcome, case)
        return {"outcome": outcome}

    def _emit_outcome(self, outcome: str, case: Case) -> None:
        kind, epic_id = OUTCOMES[outcome].signal, self._terms.epic_id
        if kind == "EPIC_COMPLETE":
            self._signals.emit(kind, [epic_id, "success" if outcome == "COMPLETE" else "partial"])
        elif kind == "FATAL_ERROR":
            code = str(case.context.get("code", "")) or "SUBAGENT_FAILED"
            self._signals.emit(kind, [code.replace(":", " "), str(case.context.get("reason", ""))])
        else:
            self._emit_human(kind)

    def _prepare_session(self, checkpoint: Checkpoint, case: Case) -> Checkpoint:
        """The checkpoint as a session finds it: at work, with what a human said."""
        review = _read_review(case)
        after = self._mark_active(checkpoint, review)
        if after != checkpoint:
            after = self._update(lambda before: self._mark_active(before or checkpoint, review))
        decision = str(review.get("decision", ""))
        if decision in _HUMAN:
            self._emit_human(_HUMAN[decision])
        return after

    def _mark_active(self, before: Checkpoint, review: Mapping[str, Any]) -> Checkpoint:
        after, decision = before, str(review.get("decision", ""))
        if decision in _HUMAN and progress.is_unanswered(before):
            after = progress.apply_answer(after, decision, _read_comment(review), self._timestamp())
        waits = progress.is_unanswered(after)
        status = Status.WAITING if waits else Status.IN_PROGRESS
        epic = msgspec.structs.replace(after.epic, status=status)
        return self._add_stories(msgspec.structs.replace(after, epic=epic))

    def _build_first(self, before: Checkpoint | None) -> Checkpoint:
        """The first checkpoint: even a session that dies at once leaves a place to go on from."""
        if before is not None:
            return before
        epic = Epic(id=self._terms.epic_id, title=self._terms.title, file=self._terms.file)
        work = read_git_work(self._checkpoints.place.root)
        return self._add_stories(Checkpoint(epic=epic, git=work))

    def _add_stories(self, checkpoint: Checkpoint) -> Checkpoint:
        """Stories that the epic's file names and the checkpoint does not know yet."""
        for story in self._terms.stories:
            if checkpoint.story(story.id) is None:
                raw = story.status in (Status.BACKLOG, Status.DRAFT)
                status = Status.READY if raw else story.status
                checkpoint = checkpoint.with_story(Story(id=story.id, status=status))
        total = max(len(checkpoint.stories), checkpoint.epic.stories_total)
        epic = msgspec.structs.replace(checkpoint.epic, stories_total=total)
        return msgspec.structs.replace(checkpoint, epic=epic)

    def _emit_human(self, kind: str) -> None:
        """A human's decision; without a number to name it by there is no such signal."""
        number = self._issue()
        if number > 0:
            self._signals.emit(kind, [str(number)])

    def _update(self, change: Callable[[Checkpoint | None], Checkpoint]) -> Checkpoint:
        return self._checkpoints.update(self._terms.epic_id, change, self._timestamp()).checkpoint

    def _timestamp(self) -> str:
        return format_timestamp(self._now())


def _close_checkpoint(
    before: Checkpoint | None, status: Status | None, review: Mapping[str, Any], at: str
) -> Checkpoint:
    if before is None or status is None:
        raise SourceError("the checkpoint is gone; there is nothing to close")
    after, decision = before, str(review.get("decision", ""))
    if decision and progress.is_unanswered(before):
        after = progress.apply_answer(after, decision, _read_comment(review), at)
    epic = msgspec.structs.replace(after.epic, status=status)
    return msgspec.structs.replace(after, epic=epic)


def _read_review(case: Case) -> Mapping[str, Any]:
    found = case.context.get("review")
    return found if isinstance(found, Mapping) else {}


def _read_comment(review: Mapping[str, Any]) -> str:
    return str(review.get("comment", ""))[:_LONGEST_COMMENT]


def _build_recovery_answer(outcome: RecoveryResult, **more: Any) -> dict[str, Any]:
    state = outcome.state
    findings = ", ".join(state.findings) if state else ""
    if outcome.stash:
        more["summary"] = f"{outcome.sentence}; set aside as {outcome.stash[:12]}"
    facts = {"git": findings, "action": outcome.action.word, "summary": outcome.sentence}
    return _build_answer(**{**facts, **more})


def _build_answer(**facts: Any) -> dict[str, Any]:
    usual = {
        "ready": False,
        "fresh": False,
        "finished": False,
        "review": False,
        "code": "",
        "checkpoint": "LOADED",
        "git": "",
        "action": "continue",
        "summary": "",
    }
    if not facts.get("ready"):
        usual["action"] = "refuse"
    return {**usual, **facts}
