"""The steps around the sessions of an epic: RESUME before each of them, CLOSE after the last.

RESUME loads the checkpoint and compares git with it before anything runs; CLOSE writes the outcome
into the checkpoint. Both are idempotent. `SignalLog` shows and stores the line signals that the
coordinator emits; after a crash a line may appear twice, which the protocol allows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.engine.case import Case
from interlock.signals.lines import format_line
from interlock.system.errors import SourceError
from interlock.system.files import append_line
from interlock.system.time import format_timestamp
from interlock_epic import progress
from interlock_epic.checkpoints.record import Checkpoint, Epic, Story, UnreadableCheckpoint
from interlock_epic.checkpoints.store import Change, Checkpoints, LoadedCheckpoint
from interlock_epic.config import EpicConfig
from interlock_epic.recovery.git_state import read_git_work
from interlock_epic.recovery.policy import Action, read_policy
from interlock_epic.recovery.recover import RecoveryResult, recover
from interlock_epic.status import NEXT, OUTCOMES, Status

_LONGEST_LINE: Final = 500


class SignalLog:
    """Emits line signals: stores each, and shows it at once."""

    def __init__(self, path: Path, show: Callable[[str], None], now: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self.show = show
        self._path = path
        self._now = now

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        with suppress(OSError):  # a line that cannot be stored is still shown
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            append_line(self._path, msgspec.json.encode({"at": self._now(), "line": line}))
        self.show(line)

    def emit(
        self, kind: str, payload: Sequence[str] | Mapping[str, str] | str | None = None
    ) -> None:
        """Emit a signal, replacing characters that no payload may hold by blanks."""
        if isinstance(payload, str):
            payload = _clean_text(payload)
        elif isinstance(payload, Sequence):
            payload = [_clean_text(field) for field in payload]
        self(format_line(kind, payload))


def _clean_text(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_LONGEST_LINE]


OWN_ROLES: Final = ("checkpoints",)
_HUMAN_SIGNALS: Final = {"approve": "HITL_APPROVED", "revise": "HITL_REVISE"}
_GIT_ANSWERS: Final = {"continue": Action.CONTINUE, "stash": Action.STASH}
_LONGEST_COMMENT: Final = 1_000


class EpicSteps:
    """Answers RESUME and CLOSE of one epic; `issue` returns the number of the last question."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        config: EpicConfig,
        signals: SignalLog,
        now: Callable[[], float],
        issue: Callable[[], int],
    ) -> None:
        self._checkpoints = checkpoints
        self._config = config
        self._signals = signals
        self._now = now
        self._issue = issue

    def __call__(self, ask: Ask) -> Reply:
        """Answer a step. This blocks as long as git does, so an event loop must use a thread."""
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        work = self.resume if ask.step == "RESUME" else self.close
        return build_answer(ask, work(ask.case))

    def resume(self, case: Case) -> dict[str, Any]:
        found = self._checkpoints.read(self._config.epic_id)
        if isinstance(found, UnreadableCheckpoint):
            if found.kind == "MISSING":
                self._signals.emit("CHECKPOINT:MISSING")
                if self._config.fresh and case.attempt == 1:
                    return self._start()
            return _build_answer(checkpoint=found.kind, code=found.code, summary=found.sentence)
        status = found.checkpoint.epic.status
        if status == Status.DONE:
            return _build_answer(ready=True, finished=True, summary="it is already complete")
        if not NEXT[status]:
            return _build_answer(
                summary=f"the epic is {status.value}; clear its checkpoint to start again"
            )
        story_id = progress.find_current_story(found.checkpoint)
        self._signals.emit("CHECKPOINT:LOADED", [self._config.epic_id, story_id])
        outcome = recover(
            self._checkpoints,
            found,
            self._signals,
            self._timestamp(),
            policy=read_policy(self._config.settings.git),
            answer=_GIT_ANSWERS.get(str(case.context.get("git_answer", ""))),
            most=self._config.settings.max_recoveries,
        )
        if not outcome.may_continue:
            return _build_recovery_answer(outcome, code=outcome.code)
        checkpoint = self._prepare_session(outcome.checkpoint or found.checkpoint, case)
        return _build_recovery_answer(
            outcome, ready=True, review=progress.is_unanswered(checkpoint)
        )

    def _start(self) -> dict[str, Any]:
        """Write the first checkpoint, so that even a session that dies at once can be resumed."""
        epic = Epic(id=self._config.epic_id, title=self._config.title, file=self._config.file)
        work = read_git_work(self._checkpoints.place.root)
        self._update(lambda before: before or self._add_stories(Checkpoint(epic=epic, git=work)))
        self._signals.emit("EPIC_STARTED", [self._config.epic_id])
        return _build_answer(
            ready=True, fresh=True, checkpoint="MISSING", summary="it starts from the beginning"
        )

    def close(self, case: Case) -> dict[str, Any]:
        outcome = str(case.context.get("outcome", "FATAL"))
        status, review = OUTCOMES[outcome].status, _read_review(case)
        found = self._checkpoints.read(self._config.epic_id)
        if status is not None and isinstance(found, LoadedCheckpoint):
            known = found.checkpoint
            self._update(
                lambda before: self._apply_review(before or known, review, status), if_changed=True
            )
        self._emit_outcome(outcome, case)
        return {"outcome": outcome}

    def _emit_outcome(self, outcome: str, case: Case) -> None:
        kind, epic_id = OUTCOMES[outcome].signal, self._config.epic_id
        if kind == "EPIC_COMPLETE":
            self._signals.emit(kind, [epic_id, "success" if outcome == "COMPLETE" else "partial"])
        elif kind == "FATAL_ERROR":
            code = str(case.context.get("code", "")) or "SUBAGENT_FAILED"
            self._signals.emit(kind, [code.replace(":", " "), str(case.context.get("reason", ""))])
        elif kind:
            self._emit_human(kind)

    def _prepare_session(self, checkpoint: Checkpoint, case: Case) -> Checkpoint:
        """Return the checkpoint that the session finds: in progress, with the human's answer."""
        review = _read_review(case)
        decision = str(review.get("decision", ""))
        given = review if decision in _HUMAN_SIGNALS else {}
        after = self._update(
            lambda before: self._add_stories(self._apply_review(before or checkpoint, given)),
            if_changed=True,
        )
        if given:
            self._emit_human(_HUMAN_SIGNALS[decision])
        return after

    def _apply_review(
        self, checkpoint: Checkpoint, review: Mapping[str, Any], status: Status | None = None
    ) -> Checkpoint:
        """Apply a human's answer, if one is open, and the status that follows."""
        decision, comment = str(review.get("decision", "")), str(review.get("comment", ""))
        if decision and progress.is_unanswered(checkpoint):
            checkpoint = progress.apply_answer(
                checkpoint, decision, comment[:_LONGEST_COMMENT], self._timestamp()
            )
        if status is None:
            waits = progress.is_unanswered(checkpoint)
            status = Status.WAITING if waits else Status.IN_PROGRESS
        epic = msgspec.structs.replace(checkpoint.epic, status=status)
        return msgspec.structs.replace(checkpoint, epic=epic)

    def _add_stories(self, checkpoint: Checkpoint) -> Checkpoint:
        """Add the stories of the epic's file that the checkpoint lacks."""
        for story in self._config.stories:
            if checkpoint.story(story.id) is None:
                unstarted = story.status in (Status.BACKLOG, Status.DRAFT)
                status = Status.READY if unstarted else story.status
                checkpoint = checkpoint.with_story(Story(id=story.id, status=status))
        total = max(len(checkpoint.stories), checkpoint.epic.stories_total)
        epic = msgspec.structs.replace(checkpoint.epic, stories_total=total)
        return msgspec.structs.replace(checkpoint, epic=epic)

    def _emit_human(self, kind: str) -> None:
        """Emit a human's decision, if the question's number is known."""
        number = self._issue()
        if number > 0:
            self._signals.emit(kind, [str(number)])

    def _update(self, change: Change, *, if_changed: bool = False) -> Checkpoint:
        return self._checkpoints.update(
            self._config.epic_id, change, self._timestamp(), if_changed=if_changed
        ).checkpoint

    def _timestamp(self) -> str:
        return format_timestamp(self._now())


def _read_review(case: Case) -> Mapping[str, Any]:
    found = case.context.get("review")
    return found if isinstance(found, Mapping) else {}


def _build_recovery_answer(outcome: RecoveryResult, **more: Any) -> dict[str, Any]:
    stashed = f"; stashed as {outcome.stash[:12]}" if outcome.stash else ""
    return _build_answer(
        git=", ".join(outcome.state.findings) if outcome.state else "",
        action=outcome.action.word,
        summary=f"{outcome.sentence}{stashed}",
        **more,
    )


def _build_answer(**fields: Any) -> dict[str, Any]:
    return {
        "ready": False,
        "fresh": False,
        "finished": False,
        "review": False,
        "code": "",
        "checkpoint": "LOADED",
        "git": "",
        "action": "continue" if fields.get("ready") else "refuse",
        "summary": "",
        **fields,
    }
