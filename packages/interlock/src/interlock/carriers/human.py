"""The role `human`: a question stays open until an answer is in the mailbox.

Answers are messages in the database, one per question, written whole by `interlock answer`, so they
can be given while the run works, while it waits, and while nothing runs. An answer counts only for
the question it names. One that comes too late is handed over too, so that the journal records its
refusal. A user may answer in another's name only if the policy allows it.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.carriers.background import report_error
from interlock.carriers.contract import MAX_ANSWER, Ask, Carrier, Reply, Traits
from interlock.engine.circuit import UNREADABLE
from interlock.journal.mailbox import Mailbox, MessageName
from interlock.system.clock import Clock
from interlock.system.errors import StoreError


class AnswerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy under [inbox] in interlock.toml; without names, everybody may answer."""

    answerers: tuple[str, ...] = ()
    """The people who may answer."""
    proxies: tuple[str, ...] = ()
    """The people who may answer in another's name."""
    step: Mapping[str, tuple[str, ...]] = {}
    """The people who may answer at a step instead; `budget` is the question for more budget."""

    def find_problem(self, step: str, by: str, user: str) -> str:
        """Return why an answer that `user` gives in the name of `by` does not count; empty if it
        does."""
        names = self.step.get(step, self.answerers)
        if not names:
            return ""
        allowed = ", ".join(names)
        if user not in names:
            return f"{user} may not answer at {step}; these may: {allowed}"
        if by != user and user not in self.proxies:
            return f"{user} may not answer in the name of {by}; [inbox] proxies says who may"
        if by not in names:
            return f"{by} may not answer at {step}; these may: {allowed}"
        return ""


EVERYBODY = AnswerPolicy()


_POLL = 0.25
"""The seconds between two looks."""
_NUMBER = re.compile(r"[1-9][0-9]*", re.ASCII)
_REFUSED = re.compile(r"([1-9][0-9]*)\.refused-[0-9a-f]+", re.ASCII)
_SOMEBODY = "somebody"


class HumanAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer to one question, and its author."""

    question_id: int
    by: str
    data: dict[str, Any]
    run_id: int = 0
    """The run of the question, if it is known."""
    refused: str = ""
    """Why the answer does not count: another came first, or the question was settled before."""


def write_answer(mail: Mailbox, answer: HumanAnswer) -> bool:
    """Leave an answer where the run will find it, whole or not at all; return whether it is the
    first."""
    return bool(write_answers(mail, answer, [answer.question_id]))


def write_answers(mail: Mailbox, answer: HumanAnswer, question_ids: Sequence[int]) -> list[int]:
    """Give one answer to several questions of a run; return those that had none yet."""
    answers = [msgspec.structs.replace(answer, question_id=each) for each in question_ids]
    bodies = {str(each.question_id): msgspec.json.encode(each) for each in answers}
    return [int(name) for name in mail.put_all(bodies, answer.run_id or None)]


def write_refused_answer(mail: Mailbox, answer: HumanAnswer) -> None:
    """Leave an answer that does not count where the run will find it and journal it."""
    name = f"{answer.question_id}.refused-{secrets.token_hex(8)}"
    mail.put(name, msgspec.json.encode(answer), answer.run_id or None)


def list_refused(mail: Mailbox, run_id: int) -> dict[str, HumanAnswer]:
    """Return the refused answers of a run that are not journaled yet, by the names of their
    messages."""
    found = {}
    for each in mail.list_names():
        if number := _REFUSED.fullmatch(each.name):
            answer, _ = _read_answer(mail, each.name, int(number[1]))
            if isinstance(answer, HumanAnswer) and answer.run_id == run_id:
                found[each.name] = answer
    return found


def find_saved_answer(mail: Mailbox, question_id: int) -> HumanAnswer | None:
    """Return the saved answer that no run has taken yet."""
    found, _ = _read_answer(mail, str(question_id), question_id)
    return found if isinstance(found, HumanAnswer) else None


def list_answered(mail: Mailbox) -> set[int]:
    """Return the questions with a saved answer that no run has taken yet."""
    names = (each.name for each in mail.list_names())
    return {int(name) for name in names if _NUMBER.fullmatch(name)}


class HumanCarrier(Carrier):
    """Look for answers to the open questions."""

    traits = Traits(answered="inbox", forgets_prompts=True)

    def __init__(self, mail: Mailbox, clock: Clock, policy: AnswerPolicy = EVERYBODY) -> None:
        self._mail = mail
        self._clock = clock
        self._policy = policy
        self._open: dict[int, str] = {}
        """The step of each open question; the question itself is in the journal."""
        self._runs: set[int] = set()
        self._seen_foreign: set[MessageName] = set()
        self._cancel: Callable[[], None] | None = None

    def send(self, asks: Sequence[Ask]) -> None:
        self._open |= {ask.dispatch_id: ask.step for ask in asks}
        self._runs |= {ask.run_id for ask in asks}
        self._check_mail()

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._open.pop(dispatch_id, None)
        self._mail.remove(str(dispatch_id))

    async def close(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _check_mail(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        for message in self._list_mail():
            number = _NUMBER.match(message.name)
            try:
                if _NUMBER.fullmatch(message.name):
                    self._read_message(message, int(message.name))
                elif found := _REFUSED.fullmatch(message.name):
                    self._read_refused(message.name, int(found[1]))
            except Exception as error:
                report_error(error, int(number[0]) if number else 0)
        if self._open:
            self._cancel = self._clock.call_at(self._clock.now() + _POLL, self._check_mail)

    def _list_mail(self) -> list[MessageName]:
        """Return the messages; none while the mailbox cannot be reached."""
        try:
            return self._mail.list_names()
        except StoreError:
            return []

    def _read_message(self, message: MessageName, question_id: int) -> None:
        """Read a message about one of our questions, and leave those of others alone."""
        step = self._open.get(question_id)
        if step is None and message in self._seen_foreign:
            return
        found, owner = _read_answer(self._mail, message.name, question_id)
        if step is None:
            self._seen_foreign.add(message)
            if isinstance(found, HumanAnswer) and found.run_id in self._runs:
                self._deliver_answer(found)
                self._mail.remove(message.name)
            return
        if isinstance(found, Reply):
            del self._open[question_id]
            self._deliver(found)
            return
        problem = self._policy.find_problem(step, found.by or _SOMEBODY, owner)
        if problem:
            content = msgspec.json.encode(found.data)
            reason = f"{problem[:1].upper()}{problem[1:]}."
            self._mail.remove(message.name)
            self._deliver(Reply(question_id, content, refused="WrongRole", reason=reason))
            return
        del self._open[question_id]
        self._deliver_answer(found)

    def _read_refused(self, name: str, question_id: int) -> None:
        """Hand over an answer that came too late for this run, which journals it."""
        found, _ = _read_answer(self._mail, name, question_id)
        if isinstance(found, HumanAnswer) and found.run_id in self._runs:
            content = encode_refused(found)
            self._deliver(Reply(question_id, content, refused="Stale", reason=found.refused))
            self._mail.remove(name)

    def _deliver_answer(self, answer: HumanAnswer) -> None:
        content = msgspec.json.encode(answer.data)
        self._deliver(Reply(answer.question_id, content, answered_by=answer.by or _SOMEBODY))


def _read_answer(mail: Mailbox, name: str, question_id: int) -> tuple[HumanAnswer | Reply, str]:
    """Return the answer in a message, or the reply that says why there is none, and its author."""
    message = mail.find(name, MAX_ANSWER)
    if message is None:
        return _build_unreadable(question_id, f"message {name} is not there"), ""
    if message.is_cut:
        problem = f"it has more than {MAX_ANSWER:,} bytes"
        return _build_unreadable(question_id, f"message {name}: {problem}"), message.written_by
    try:
        answer = msgspec.json.decode(message.body, type=HumanAnswer)
    except (ValueError, RecursionError) as error:
        return _build_unreadable(question_id, f"message {name}: {error}"), message.written_by
    if answer.question_id != question_id:
        reason = f"message {name} answers question {answer.question_id}"
        return _build_unreadable(question_id, reason), message.written_by
    return answer, message.written_by


def encode_refused(answer: HumanAnswer) -> bytes:
    """Encode an answer that does not count for the journal."""
    return msgspec.json.encode({**answer.data, "by": answer.by or _SOMEBODY})


def _build_unreadable(question_id: int, reason: str) -> Reply:
    return Reply(question_id, failure=UNREADABLE, reason=reason, answered_by=_SOMEBODY)
