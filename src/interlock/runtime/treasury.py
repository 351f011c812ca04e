"""The treasury: a spent budget is a question to a human, and the answer is honoured.

Nothing is thrown away when a budget is spent: the run rests, and its inbox asks whether to raise
it. `raise` names new limits, which are kept with the run in the same commit; `stop` leaves it at
rest, and it is not asked again about the same limits.
"""

import msgspec

from interlock.agents.carrier import Ask, Carrier, Deliver, Reply
from interlock.engine.case import Refused
from interlock.engine.circuit import HUMAN
from interlock.journal.journal import Inquiry, InquiryAnswered, Journal, TurnWrites
from interlock.journal.usage import OpenInquiry
from interlock.runtime.limits import Words, read_limits
from interlock.runtime.occasions import EventCollector
from interlock.runtime.purse import RunBudget
from interlock.system.errors import SourceError
from interlock.system.strict_json import Problem, read_object

KIND = "budget"
RAISE, STOP = "raise", "stop"
_NOT_LIMITS = {"decision", "comment"}


class BudgetQuestion:
    """Whether a run is asked to spend more, and what was said. Without a desk nobody is asked."""

    def __init__(
        self,
        purse: RunBudget,
        words: Words | None = None,
        desk: Carrier | None = None,
        last: OpenInquiry | None = None,
    ) -> None:
        self.purse = purse
        self._words: Words = words or {}
        self._desk = desk
        self._last = last
        self._open: Ask | None = None
        self._to_send = False
        self._settled: list[int] = []

    @property
    def waits(self) -> bool:
        """A question is open."""
        return self._open is not None

    def start(self, deliver: Deliver, batch: TurnWrites) -> None:
        """Stand where the last sitting left off. A question that a flag, or a new day, has answered
        in the meantime is told so."""
        if self._desk is None:
            return
        self._desk.start(deliver)
        last = self._last
        if last is None or last.answered_at is not None:
            return
        if self._spent(batch.at):
            self._ask(Inquiry(last.question_id, KIND, last.about), last.run_id, last.asked_at)
            return
        self._settled.append(last.question_id)
        said = {"decision": RAISE, "comment": "There was more to spend when the run went on."}
        batch.told.append(InquiryAnswered(last.question_id, "", msgspec.json.encode(said)))

    def ask(self, journal: Journal, batch: TurnWrites, occasions: EventCollector) -> None:
        """Ask for more, if a limit is reached and nobody said stop to just that."""
        spent = self._spent(batch.at)
        if self._desk is None or not spent or self._open is not None:
            return
        limits = ", ".join(self._named(word) for word in spent)
        about = f"run {journal.run_id} has spent its budget ({limits}): raise it, or stop?"
        if self._last is not None and self._last.about == about and _stopped(self._last):
            return
        inquiry = Inquiry(journal.new_dispatch_id(), KIND, about)
        batch.inquiries.append(inquiry)
        self._ask(inquiry, journal.run_id, batch.at)
        occasions.spent(inquiry)

    def mine(self, reply: Reply) -> bool:
        """Whether a reply answers our question."""
        return self._open is not None and reply.dispatch_id == self._open.dispatch_id

    def take(self, reply: Reply, batch: TurnWrites) -> Refused | None:
        """Honour the answer, or say why it cannot be."""
        ask = self._open
        if ask is None:
            return None
        if reply.refused:
            return Refused(reply.refused, reply.reason)
        self._settled.append(ask.dispatch_id)
        try:
            told = self._told(ask.dispatch_id, reply, batch.at)
        except ValueError as error:
            self._to_send = True
            return Refused("Malformed", str(error))
        except SourceError as error:
            self._to_send = True
            return Refused("Malformed", f"{error}.")
        batch.told.append(told)
        self._last = OpenInquiry(
            *(ask.dispatch_id, ask.run_id, KIND, ask.prompt, ask.at, batch.at, told.by),
            msgspec.json.decode(told.answer),
        )
        self._open = None
        return None

    def deliver(self) -> None:
        """Tell the desk, now that it is committed."""
        if self._desk is None:
            return
        for question_id in self._settled:
            self._desk.settled(question_id)
        self._settled = []
        if self._to_send and self._open is not None:
            self._to_send = False
            self._desk.send([self._open])

    async def close(self) -> None:
        if self._desk is not None:
            await self._desk.close()

    def _told(self, question_id: int, reply: Reply, at: float) -> InquiryAnswered:
        if reply.failure:
            raise ValueError(f"The answer cannot be read ({reply.reason}).")
        data = read_object(reply.content)
        if isinstance(data, Problem):
            raise ValueError(f"The answer cannot be read ({data.sentence}).")
        words = {name: value for name, value in data.items() if name not in _NOT_LIMITS}
        if data.get("decision") == STOP:
            return InquiryAnswered(question_id, reply.answered_by, reply.content)
        if data.get("decision") != RAISE or not words:
            raise ValueError("Answer raise with new limits (--set tokens=200000), or stop.")
        merged = {**self._words, **words}
        limits = read_limits(merged)
        self.purse.raise_to(limits, at)
        self._words = merged
        return InquiryAnswered(question_id, reply.answered_by, reply.content, {"budget": words})

    def _ask(self, inquiry: Inquiry, run_id: int, at: float) -> None:
        number = inquiry.question_id
        self._open = Ask(number, run_id, "", KIND, 1, HUMAN, inquiry.about, at=at)
        self._to_send = True

    def _named(self, word: str) -> str:
        day = f" on {self.purse.day_name}" if word.startswith("day.") else ""
        return f"{word}={self._words.get(word, '…')}{day}"

    def _spent(self, at: float) -> list[str]:
        return [word for word, part in self.purse.parts(at).items() if part >= 1.0]


def _stopped(asked: OpenInquiry) -> bool:
    return (asked.answer or {}).get("decision") == STOP
