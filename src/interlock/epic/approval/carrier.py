"""Gates on GitHub: the question becomes an issue, a comment there becomes the answer.

Knows when to look, when to come again, and that only the request's id is needed to find an issue
after a restart. Each unclear comment is replied to once, and the question stays open. Deadlines are
the loop's; what words mean is known by `comments`. `CheckpointedGate` notes in the checkpoint that
a review is open and until when an answer counts.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from interlock.agents.carrier import Ask, Carrier, Clock, Deliver, Reply
from interlock.engine.circuit import CRASH
from interlock.epic.approval.comments import CommentReading
from interlock.epic.approval.github import GithubBusyError
from interlock.epic.approval.issues import GithubIssue, IssuePoll, Issues
from interlock.epic.approval.thread import (
    CLOSED,
    Author,
    Request,
    Thread,
    ThreadState,
    format_reply_marker,
    may_answer,
    read_thread,
)
from interlock.epic.progress import CheckpointUpdater
from interlock.system.errors import InterlockError

_LONGEST_QUESTION: Final = 60_000
_COMMANDS: Final = """\
| command | means |
|---|---|
| `/approve` | go on |
| `/revise` and what to change | do it again, with these notes |
| `/discuss` and what about | pause; we talk first |
| `/halt` | stop the work |
| `/defer` | put it off; it can be resumed |"""
_HOW: Final = f"""\
### How to answer

Write a comment whose first line is one of these:

{_COMMANDS}

A comment that says nothing but "Approved", "LGTM" or "Looks good to me" approves, too, and so does
the label `approved`. If you want to say more than that, use a command. People with write access, or
those on the project's list, can answer. Reactions and closing are no answers."""


def title_of(ask: Ask) -> str:
    """A title on one line."""
    return " ".join(f"Review: {ask.case_id} - {ask.step}".split())[:200]


def body_of(ask: Ask, request_id: str) -> str:
    """The issue's body, without the marker."""
    question = ask.prompt.strip()
    if len(question) > _LONGEST_QUESTION:
        question = f"{question[:_LONGEST_QUESTION]}\n\n(cut here: it is longer)"
    question = question.replace("<!--", "&lt;!--")
    head = f"Interlock waits for a decision about `{_code(ask.case_id)}` at `{_code(ask.step)}`"
    again = f", attempt {ask.attempt}" if ask.attempt > 1 else ""
    return (
        f"{head}{again}. Request `{_code(request_id)}`.\n\n{_HOW}\n\n### The question\n\n{question}"
    )


def reply_to_unclear(login: str, why: str) -> str:
    """What is said to a comment that could not be taken for an answer."""
    return (
        f"@{_code(login)}, this could not be taken for an answer: {why}. "
        f"Please write a new comment that begins with a command:\n\n{_COMMANDS}\n\n"
        "Until then the work waits."
    )


def reply_to_closing() -> str:
    return (
        "Closing this issue is no answer. Please write a comment that begins with a command:\n\n"
        f"{_COMMANDS}\n\nUntil then the work waits."
    )


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:200]


POLL_S: Final = 30.0
LONGEST_S: Final = 300.0
"""The longest pause after GitHub failed without saying how long to wait."""
PATIENCE: Final = 20
"""After so many looks at nothing new the pauses grow by one more, up to ten times as long."""
_LONGEST_TIMES: Final = 10


class _Question:
    """One ask and how far it has come."""

    def __init__(self, ask: Ask, request_id: str) -> None:
        self.ask = ask
        self.request_id = request_id
        self.watched: IssuePoll | None = None
        self.pending: Thread | None = None
        """A thread that changed and was not understood yet."""
        self.failures = 0
        self.quiet = 0
        """How many looks there were since something changed."""
        self.hurried = False
        self.told = False
        """Its issue was told."""
        self.cancel: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None


class IssueCarrier:
    """Asks over the issues of one repository."""

    def __init__(
        self,
        issues: Issues,
        clock: Clock,
        workspace: str,
        *,
        allowed: Sequence[str] = (),
        poll_s: float = POLL_S,
        opened: Callable[[Ask, GithubIssue], None] = lambda _ask, _issue: None,
        at_once: bool = False,
    ) -> None:
        self._issues = issues
        self._clock = clock
        self._workspace = workspace
        self._allowed = tuple(allowed)
        self._poll_s = poll_s
        self._opened = opened
        """Told the issue on which a question stands."""
        self._at_once = at_once
        """The first look at a question comes before `send` returns: a sitting that does not wait
        finds an answer that is there already."""
        self._open: dict[int, _Question] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._open:
                question = _Question(ask, self.request_id(ask.dispatch_id))
                self._open[ask.dispatch_id] = question
                if self._at_once:
                    self._take_look(question, *self._looked_at(question))
                else:
                    self._turn(question)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        question = self._open.pop(dispatch_id, None)
        if question is not None:
            self._rest(question)

    async def close(self) -> None:
        for question in self._open.values():
            self._rest(question)
        self._open.clear()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        self._issues.close()

    def request_id(self, dispatch_id: int) -> str:
        """Dispatch ids are unique in a workspace, and several may share a repository."""
        return f"{self._workspace}-{dispatch_id}"

    def bound(self, repo: str, number: int) -> bool:
        """Whether this is an issue that is waited on."""
        watched = (each.watched for each in self._open.values())
        here = repo.lower() == self._issues.repo.lower()
        return here and any(each.issue.number == number for each in watched if each is not None)

    def wake(self, number: int) -> None:
        """Something may have happened there: look at once."""
        for question in self._open.values():
            if question.watched is not None and question.watched.issue.number == number:
                question.hurried = True
                if question.task is None:
                    self._turn(question)

    def _rest(self, question: _Question) -> None:
        """No further look; one that is under way is let finish, its result is dropped."""
        if question.cancel is not None:
            question.cancel()
            question.cancel = None
        if question.task is not None:
            self._leaving.add(question.task)
            question.task.add_done_callback(self._leaving.discard)

    def _turn(self, question: _Question) -> None:
        if question.cancel is not None:
            question.cancel()
            question.cancel = None
        question.task = asyncio.get_running_loop().create_task(self._look(question))

    async def _look(self, question: _Question) -> None:
        reply, delay = await asyncio.to_thread(self._looked_at, question)
        question.task = None
        self._take_look(question, reply, delay)

    def _looked_at(self, question: _Question) -> tuple[Reply | None, float]:
        """One look: the answer if there is one, and when to come again if there is none."""
        now, hurried = self._clock.now(), question.hurried
        question.hurried = False
        try:
            reply = self._ask_github(question, now, hurried)
        except GithubBusyError as error:
            question.failures += 1
            doubled = min(self._poll_s * 2**question.failures, LONGEST_S)
            return None, doubled if error.wait_s is None else max(error.wait_s, self._poll_s)
        except InterlockError as error:
            return Reply(question.ask.dispatch_id, failure=CRASH, reason=str(error)), 0.0
        question.failures = 0
        return reply, self._poll_s * min(1 + question.quiet // PATIENCE, _LONGEST_TIMES)

    def _take_look(self, question: _Question, reply: Reply | None, delay: float) -> None:
        if question.watched is not None and not question.told:
            question.told = True
            self._opened(question.ask, question.watched.issue)
        if self._open.get(question.ask.dispatch_id) is not question:
            return
        if reply is not None:
            del self._open[question.ask.dispatch_id]
            self._deliver(reply)
            return
        at = self._clock.now() + (0 if question.hurried else delay)
        question.cancel = self._clock.call_at(at, lambda: self._turn(question))

    def _ask_github(self, question: _Question, now: float, hurried: bool) -> Reply | None:
        """One look, in a thread of its own: the answer, or nothing yet."""
        ask = question.ask
        if question.watched is None:
            body = body_of(ask, question.request_id)
            issue = self._issues.open(question.request_id, title_of(ask), body, ask.at)
            question.watched = IssuePoll(self._issues, issue)
        # After a failure a reply of ours may stand there that was never acknowledged: whoever does
        # not look at all comments first would write it again.
        all_of_it = hurried or question.failures > 0
        question.pending = question.watched.look(all_of_it=all_of_it) or question.pending
        question.quiet += 1
        if question.pending is None:
            return None
        question.quiet = 0
        state = self._understand(question.pending, question, now)
        if state.answer is not None:
            return _reply(ask.dispatch_id, state.answer, state.answered_by)
        self._reply_to_unclear(question.watched.issue.number, state)
        question.pending = None
        return None

    def _understand(self, thread: Thread, question: _Question, now: float) -> ThreadState:
        assert question.watched is not None  # noqa: S101  it is looked at first
        issue = question.watched.issue
        own = self._issues.own_login() or issue.author
        request = Request(question.request_id, issue.at, own)
        if self._allowed:
            return read_thread(thread, request, may_answer(self._allowed))

        def may(author: Author) -> bool:
            return self._issues.may_write(author.login, now)

        return read_thread(thread, request, may)

    def _reply_to_unclear(self, number: int, state: ThreadState) -> None:
        for judged in state.unclear:
            text = reply_to_unclear(judged.comment.author.login, judged.reading.why)
            self._issues.say(number, f"{text}\n\n{format_reply_marker(judged.mark)}")
        if state.is_closed_unanswered:
            self._issues.say(number, f"{reply_to_closing()}\n\n{format_reply_marker(CLOSED)}")


def _reply(dispatch_id: int, answer: CommentReading, answered_by: str) -> Reply:
    data = {"decision": answer.decision.value.lower(), "comment": answer.notes}
    return Reply(dispatch_id, msgspec.json.encode(data), answered_by=answered_by)


REVIEW: Final = "REVIEW"


class CheckpointedGate:
    """Carries what its `desk` carries, and has each review noted first."""

    def __init__(
        self,
        desk: Carrier,
        keeper: CheckpointUpdater,
        patience: float,
        name: Callable[[int], str] = str,
    ) -> None:
        self.desk = desk
        self._keeper = keeper
        self._patience = patience
        self._name = name

    def start(self, deliver: Deliver) -> None:
        self.desk.start(deliver)

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.step == REVIEW:
                due = ask.at + self._patience
                self._keeper.record_question(self._name(ask.dispatch_id), ask.at, due)
        self.desk.send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self.desk.settle(dispatch_id, error)

    async def close(self) -> None:
        await self.desk.close()
