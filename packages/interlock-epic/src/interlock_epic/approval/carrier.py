"""Ask people on GitHub: a question becomes an issue, and a comment there the answer.

This module decides when to poll. After a restart, an issue is found again by the request's id
alone. Each unclear comment gets one reply, and the question stays open; the loop handles deadlines.
`CheckpointedGate` records in the checkpoint that a review is open and when it expires.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from interlock.carriers.background import report_failure
from interlock.carriers.contract import Ask, Carrier, CarrierWrapper, Reply
from interlock.engine.circuit import CRASH
from interlock.signals.comments import format_reply_marker
from interlock.system.clock import Clock
from interlock.system.errors import InterlockError
from interlock.system.github import GithubBusyError
from interlock.system.github_comments import Author
from interlock_epic.approval.issues import GithubIssue, IssuePoll, Issues
from interlock_epic.approval.thread import (
    CLOSED,
    Request,
    Thread,
    ThreadState,
    may_answer,
    read_thread,
)
from interlock_epic.progress import CheckpointUpdater

_LONGEST_QUESTION: Final = 60_000
_COMMANDS: Final = """\
| command | means |
|---|---|
| `/approve` | continue |
| `/revise` and what to change | do it again, with these notes |
| `/discuss` and what about | pause and talk first |
| `/halt` | stop the work |
| `/defer` | postpone it; it can be resumed |"""
_HOW_TO_ANSWER: Final = f"""\
### How to answer

Write a comment that begins with one of these:

{_COMMANDS}

Write `/approve` alone. A comment that is nothing but "Approved", "LGTM" or "Ship it" approves too,
and so does the label `approved`. People with write access can answer, or those on the project's
list if it has one. Reactions and closing the issue are not answers."""


def format_body(ask: Ask, request_id: str) -> str:
    """Return the issue's body, without the marker."""
    question = ask.prompt.strip()
    if len(question) > _LONGEST_QUESTION:
        question = f"{question[:_LONGEST_QUESTION]}\n\n(shortened)"
    question = question.replace("<!--", "&lt;!--")
    attempt = f", attempt {ask.attempt}" if ask.attempt > 1 else ""
    head = (
        f"Interlock is waiting for a decision about `{_clean_code(ask.case_id)}` at "
        f"`{_clean_code(ask.step)}`{attempt}. Request `{_clean_code(request_id)}`."
    )
    return f"{head}\n\n{_HOW_TO_ANSWER}\n\n### The question\n\n{question}"


def format_reply(problem: str, mark: str) -> str:
    """Return a reply that asks for a command, with the hidden marker of its comment."""
    return (
        f"{problem} Please write a comment that begins with a command:\n\n{_COMMANDS}\n\n"
        "Until then the work waits, and an earlier approval must be given again.\n\n"
        f"{format_reply_marker(mark)}"
    )


def _clean_code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:200]


POLL_S: Final = 30.0
LONGEST_S: Final = 300.0
"""The longest pause after GitHub failed without saying how long to wait."""
PATIENCE: Final = 20
"""The number of polls without news after which the pause grows by one poll, up to ten."""
_LONGEST_TIMES: Final = 10


class _Question:
    """One dispatch with its issue."""

    def __init__(self, ask: Ask, request_id: str) -> None:
        self.ask = ask
        self.request_id = request_id
        self.poll: IssuePoll | None = None
        self.pending: Thread | None = None
        """A thread that changed and was not read yet."""
        self.failures = 0
        self.quiet_polls = 0
        """The number of polls since something changed."""
        self.announced = False
        self.cancel: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None


class IssueCarrier(Carrier):
    """Asks through the issues of one repository."""

    def __init__(
        self,
        issues: Issues,
        clock: Clock,
        workspace: str,
        *,
        allowed: Sequence[str] = (),
        on_open: Callable[[Ask, GithubIssue], None] = lambda _ask, _issue: None,
        warn: Callable[[str], None] = lambda _text: None,
        at_once: bool = False,
    ) -> None:
        self._issues = issues
        self._clock = clock
        self._workspace = workspace
        self._allowed = tuple(allowed)
        self._on_open = on_open
        self._warn = warn
        """Gets the first of several failures in a row, so that nobody waits without knowing why."""
        self._at_once = at_once
        """Poll once before `send` returns, to find an answer that is already there."""
        self._open: dict[int, _Question] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._open:
                question = _Question(ask, self.request_id(ask.dispatch_id))
                self._open[ask.dispatch_id] = question
                if self._at_once:
                    self._handle(question, *self._poll(question))
                else:
                    self._start_poll(question)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        question = self._open.pop(dispatch_id, None)
        if question is not None:
            self._stop_polling(question)

    async def close(self) -> None:
        for question in self._open.values():
            self._stop_polling(question)
        self._open.clear()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        self._issues.close()

    def request_id(self, dispatch_id: int) -> str:
        """Return an id that is unique among the workspaces that share a repository."""
        return f"{self._workspace}-{dispatch_id}"

    def _stop_polling(self, question: _Question) -> None:
        """Stop polling; a poll in progress may finish, and its result is dropped."""
        if question.cancel is not None:
            question.cancel()
            question.cancel = None
        if question.task is not None:
            self._leaving.add(question.task)
            question.task.add_done_callback(self._leaving.discard)

    def _start_poll(self, question: _Question) -> None:
        if question.cancel is not None:
            question.cancel()
            question.cancel = None
        question.task = asyncio.get_running_loop().create_task(self._run_poll(question))
        question.task.add_done_callback(report_failure)

    async def _run_poll(self, question: _Question) -> None:
        reply, delay = await asyncio.to_thread(self._poll, question)
        question.task = None
        self._handle(question, reply, delay)

    def _poll(self, question: _Question) -> tuple[Reply | None, float]:
        """Return the answer, or the time until the next poll."""
        try:
            reply = self._ask_github(question, self._clock.now())
        except GithubBusyError as error:
            question.failures += 1
            doubled = min(POLL_S * 2**question.failures, LONGEST_S)
            delay = doubled if error.wait_s is None else max(error.wait_s, POLL_S)
            if question.failures == 1:
                what = "the question's issue is not read" if question.poll else "no issue is open"
                self._warn(f"{error} So {what} yet; the next attempt is in {delay:g} s.")
            return None, delay
        except InterlockError as error:
            return Reply(question.ask.dispatch_id, failure=CRASH, reason=str(error)), 0.0
        question.failures = 0
        return reply, POLL_S * min(1 + question.quiet_polls // PATIENCE, _LONGEST_TIMES)

    def _handle(self, question: _Question, reply: Reply | None, delay: float) -> None:
        if question.poll is not None and not question.announced:
            question.announced = True
            self._on_open(question.ask, question.poll.issue)
        if self._open.get(question.ask.dispatch_id) is not question:
            return
        if reply is not None:
            del self._open[question.ask.dispatch_id]
            self._deliver(reply)
            return
        at = self._clock.now() + delay
        question.cancel = self._clock.call_at(at, lambda: self._start_poll(question))

    def _ask_github(self, question: _Question, now: float) -> Reply | None:
        """Poll in the current thread; return the answer, or None."""
        ask = question.ask
        if question.poll is None:
            title = " ".join(f"Review: {ask.case_id} - {ask.step}".split())[:200]
            body = format_body(ask, question.request_id)
            issue = self._issues.open(question.request_id, title, body, ask.at)
            question.poll = IssuePoll(self._issues, issue)
        # After a failure, GitHub may have a reply of ours that it never acknowledged. Read all
        # comments first, so as not to write it again.
        all_of_it = question.failures > 0
        question.pending = question.poll.look(all_of_it=all_of_it) or question.pending
        question.quiet_polls += 1
        if question.pending is None:
            return None
        question.quiet_polls = 0
        issue = question.poll.issue
        state = self._read_thread(question.pending, question.request_id, issue, now)
        if state.answer is not None:
            answer = {"decision": state.answer.decision.lower(), "comment": state.answer.notes}
            return Reply(
                ask.dispatch_id, msgspec.json.encode(answer), answered_by=state.answered_by
            )
        self._reply_to_unclear(issue.number, state)
        question.pending = None
        return None

    def _read_thread(
        self, thread: Thread, request_id: str, issue: GithubIssue, now: float
    ) -> ThreadState:
        def may_write(author: Author) -> bool:
            return self._issues.people.may_write(author.login, now)

        request = Request(request_id, issue.at, self._issues.people.own_login() or issue.author)
        may = may_answer(self._allowed) if self._allowed else may_write
        return read_thread(thread, request, may)

    def _reply_to_unclear(self, number: int, state: ThreadState) -> None:
        for judged in state.unclear:
            login, why = _clean_code(judged.comment.author.login), judged.reading.why
            problem = f"@{login}, this comment is not clear enough to be an answer: {why}."
            self._issues.comment(number, format_reply(problem, judged.mark))
        if state.is_closed_unanswered:
            closed = "Closing this issue is not an answer."
            self._issues.comment(number, format_reply(closed, CLOSED))


REVIEW: Final = "REVIEW"


class CheckpointedGate(CarrierWrapper):
    """Records each review in the checkpoint before the wrapped carrier asks people."""

    def __init__(
        self,
        carrier: Carrier,
        updater: CheckpointUpdater,
        patience: float,
        name_request: Callable[[int], str] = str,
    ) -> None:
        super().__init__(carrier)
        self._updater = updater
        self._patience = patience
        self._name_request = name_request

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.step == REVIEW:
                request_id = self._name_request(ask.dispatch_id)
                self._updater.record_question(request_id, ask.at, ask.at + self._patience)
        self.inner.send(asks)
