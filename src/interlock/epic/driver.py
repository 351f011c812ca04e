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
from interlock.agents.function import answer
from interlock.engine.case import Case
from interlock.epic import progress
from interlock.epic.checkpoints.legacy import UnreadableCheckpoint
from interlock.epic.checkpoints.record import Checkpoint, Epic, Story
from interlock.epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock.epic.progress import moment
from interlock.epic.recovery.git_state import current_work
from interlock.epic.recovery.policy import Action
from interlock.epic.recovery.recover import RecoveryResult, recover
from interlock.epic.status import ENDINGS, NEXT, Status
from interlock.epic.terms import EpicConfig
from interlock.signals.lines import canonical_line
from interlock.system.errors import SourceError
from interlock.system.files import append_line

_LONGEST_LINE: Final = 500


class SignalLog:
    """Says signals. `show` gets each line at once."""

    def __init__(self, path: Path, show: Callable[[str], None], now: Callable[[], float]) -> None:
        self.said: list[str] = []
        self._path = path
        self._show = show
        self._now = now

    def __call__(self, line: str) -> None:
        self.said.append(line)
        self._keep({"at": self._now(), "line": line})
        self._show(line)

    def say(
        self, kind: str, payload: Sequence[str] | Mapping[str, str] | str | None = None
    ) -> None:
        """A signal by its type and fields; signs that no payload may hold become blanks."""
        if isinstance(payload, str):
            payload = _plain(payload)
        elif isinstance(payload, Sequence):
            payload = [_plain(each) for each in payload]
        self(canonical_line(kind, payload))

    def _keep(self, what: Mapping[str, object]) -> None:
        """One that cannot be kept is still shown."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            append_line(self._path, msgspec.json.encode(what))


def _plain(text: str) -> str:
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
        return answer(ask, work(ask.case))

    def resume(self, case: Case) -> dict[str, Any]:
        found = self._checkpoints.read(self._terms.epic_id)
        fresh = (
            isinstance(found, UnreadableCheckpoint)
            and found.kind == "MISSING"
            and case.attempt == 1
        )
        if fresh and self._terms.fresh:
            self._signals.say("CHECKPOINT:MISSING")
            self._update(self._begun)
            self._signals.say("EPIC_STARTED", [self._terms.epic_id])
            return _said(ready=True, fresh=True, checkpoint="MISSING", summary="it begins")
        if isinstance(found, UnreadableCheckpoint):
            if found.kind == "MISSING":
                self._signals.say("CHECKPOINT:MISSING")
            return _said(checkpoint=found.kind, code=found.code, summary=found.sentence)
        if found.checkpoint.epic.status == Status.DONE:
            return _said(ready=True, finished=True, summary="it was complete already")
        if not NEXT[found.checkpoint.epic.status]:
            status = found.checkpoint.epic.status.value
            return _said(summary=f"the epic is {status}: clear its checkpoint to begin anew")
        place = found.checkpoint.position
        self._signals.say("CHECKPOINT:LOADED", [self._terms.epic_id, place.story_id])
        outcome = recover(
            self._checkpoints,
            self._terms.epic_id,
            self._signals,
            self._at(),
            policy=self._terms.policy(),
            answer=_ANSWERS.get(str(case.context.get("git_answer", ""))),
            most=self._terms.settings.max_recoveries,
        )
        if not outcome.may_go_on:
            return _compared(outcome, code=outcome.code)
        checkpoint = self._ready(outcome.checkpoint or found.checkpoint, case)
        return _compared(outcome, ready=True, review=progress.is_unanswered(checkpoint))

    def close(self, case: Case) -> dict[str, Any]:
        outcome = str(case.context.get("outcome", "FATAL"))
        ending = ENDINGS[outcome]
        review = _review(case)
        found = self._checkpoints.read(self._terms.epic_id)
        if ending.status is not None and isinstance(found, LoadedCheckpoint):
            closed = _closed(found.checkpoint, ending.status, review, self._at())
            if closed != found.checkpoint:
                self._update(lambda before: _closed(before, ending.status, review, self._at()))
        self._say_ending(outcome, case)
        return {"outcome": outcome}

    def _say_ending(self, outcome: str, case: Case) -> None:
        kind, epic_id = ENDINGS[outcome].signal, self._terms.epic_id
        if kind == "EPIC_COMPLETE":
            self._signals.say(kind, [epic_id, "success" if outcome == "COMPLETE" else "partial"])
        elif kind == "FATAL_ERROR":
            code = str(case.context.get("code", "")) or "SUBAGENT_FAILED"
            self._signals.say(kind, [code.replace(":", " "), str(case.context.get("reason", ""))])
        else:
            self._say_human(kind)

    def _ready(self, checkpoint: Checkpoint, case: Case) -> Checkpoint:
        """The checkpoint as a session finds it: at work, with what a human said."""
        review = _review(case)
        after = self._awake(checkpoint, review)
        if after != checkpoint:
            after = self._update(lambda before: self._awake(before or checkpoint, review))
        decision = str(review.get("decision", ""))
        if decision in _HUMAN:
            self._say_human(_HUMAN[decision])
        return after

    def _awake(self, before: Checkpoint, review: Mapping[str, Any]) -> Checkpoint:
        after, decision = before, str(review.get("decision", ""))
        if decision in _HUMAN and progress.is_unanswered(before):
            after = progress.with_answer(after, decision, _comment(review), self._at())
        waits = progress.is_unanswered(after)
        status = Status.WAITING if waits else Status.IN_PROGRESS
        epic = msgspec.structs.replace(after.epic, status=status)
        return self._with_stories(msgspec.structs.replace(after, epic=epic))

    def _begun(self, before: Checkpoint | None) -> Checkpoint:
        """The first checkpoint: even a session that dies at once leaves a place to go on from."""
        if before is not None:
            return before
        epic = Epic(id=self._terms.epic_id, title=self._terms.title, file=self._terms.file)
        work = current_work(self._checkpoints.place.root)
        return self._with_stories(Checkpoint(epic=epic, git=work))

    def _with_stories(self, checkpoint: Checkpoint) -> Checkpoint:
        """Stories that the epic's file names and the checkpoint does not know yet."""
        for story in self._terms.stories:
            if checkpoint.story(story.id) is None:
                raw = story.status in (Status.BACKLOG, Status.DRAFT)
                status = Status.READY if raw else story.status
                checkpoint = checkpoint.with_story(Story(id=story.id, status=status))
        total = max(len(checkpoint.stories), checkpoint.epic.stories_total)
        epic = msgspec.structs.replace(checkpoint.epic, stories_total=total)
        return msgspec.structs.replace(checkpoint, epic=epic)

    def _say_human(self, kind: str) -> None:
        """A human's decision; without a number to name it by there is no such signal."""
        number = self._issue()
        if number > 0:
            self._signals.say(kind, [str(number)])

    def _update(self, change: Callable[[Checkpoint | None], Checkpoint]) -> Checkpoint:
        return self._checkpoints.update(self._terms.epic_id, change, self._at()).checkpoint

    def _at(self) -> str:
        return moment(self._now())


def _closed(
    before: Checkpoint | None, status: Status | None, review: Mapping[str, Any], at: str
) -> Checkpoint:
    if before is None or status is None:
        raise SourceError("the checkpoint is gone; there is nothing to close")
    after, decision = before, str(review.get("decision", ""))
    if decision and progress.is_unanswered(before):
        after = progress.with_answer(after, decision, _comment(review), at)
    epic = msgspec.structs.replace(after.epic, status=status)
    return msgspec.structs.replace(after, epic=epic)


def _review(case: Case) -> Mapping[str, Any]:
    found = case.context.get("review")
    return found if isinstance(found, Mapping) else {}


def _comment(review: Mapping[str, Any]) -> str:
    return str(review.get("comment", ""))[:_LONGEST_COMMENT]


def _compared(outcome: RecoveryResult, **more: Any) -> dict[str, Any]:
    state = outcome.state
    findings = ", ".join(state.findings) if state else ""
    if outcome.stash:
        more["summary"] = f"{outcome.sentence}; set aside as {outcome.stash[:12]}"
    facts = {"git": findings, "action": outcome.action.word, "summary": outcome.sentence}
    return _said(**{**facts, **more})


def _said(**facts: Any) -> dict[str, Any]:
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
