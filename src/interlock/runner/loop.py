"""The loop: takes what came back, lets the engine decide, commits, then sends what is next.

One turn handles everything that has arrived since the last one, for any number of cases, in one
transaction. Nothing is carried out before it is committed; what was committed but not carried out
when the process died is carried out again under the same dispatch_id.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import msgspec

from interlock.core.case import ENDED, OPEN, Case, Refused, Signal
from interlock.core.circuit import CRASH, FAILURES, TIMEOUT, UNREADABLE, Circuit
from interlock.core.engine import advance, apply
from interlock.core.errors import CircuitError
from interlock.core.plan import Budget, Spent, Suite, ready
from interlock.dispatch.carrier import Ask, Carrier, Clock, Reply
from interlock.runner.absorb import absorb
from interlock.runner.application import Application, Plain
from interlock.runner.deadlines import Deadlines
from interlock.runner.prompt import fill
from interlock.runner.purse import Purse
from interlock.runner.rations import Rations
from interlock.store.journal import Batch, Entry, Journal, NewDispatch, Refusal, Standing
from interlock.store.runs import Loaded, OpenDispatch, RunStatus

_encode = msgspec.json.Encoder().encode
_PATIENCE = 0.002
"""Seconds for which arrivals are worked off before other parts of the program get their turn."""


class Tally(msgspec.Struct):
    """How a run stands, in numbers."""

    cases: int = 0
    ended: int = 0
    unhealthy: int = 0
    stuck: int = 0
    in_flight: int = 0
    questions: int = 0
    refused: int = 0


class Loop:
    """Works one run until nothing more can be done without a human, a budget or a new start."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        suite: Suite,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        *,
        budget: Budget | None = None,
        spent: Spent | None = None,
        application: Application | None = None,
        wait_for_humans: bool = False,
        watch: Callable[[Tally, Spent], None] = lambda _tally, _spent: None,
    ) -> None:
        self._journal = journal
        self._application = application or Plain()
        self._circuit = circuit
        self._suite = suite
        self._carriers = carriers
        self._rations = Rations(carriers)
        self._clock = clock
        self._purse = Purse(budget, spent, clock.now())
        self._wait_for_humans = wait_for_humans
        self._watch = watch
        self._cases: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._held: set[str] = set()
        self._asks: dict[int, Ask] = {}
        self._to_send: dict[int, Ask] = {}
        self._settled: list[tuple[Ask, str]] = []
        self._deadlines = Deadlines(clock, self._wake_up)
        self._inbox: list[Reply] = []
        self._awake = asyncio.Event()
        self._yielded = 0.0
        self._stops = 0
        self.tally = Tally()

    def take_up(
        self,
        cases: Iterable[Loaded],
        open_dispatches: Iterable[OpenDispatch],
        holds: Mapping[str, str],
    ) -> None:
        """Stand where the journal left off: what was out goes out again, the rest waits."""
        for loaded in cases:
            self._suite.add(loaded.case.case_id, loaded.priority, loaded.needs)
            self._numbers[loaded.case.case_id] = loaded.case_no
            self._cases[loaded.case.case_id] = loaded.case
        self.tally.cases = len(self._cases)
        out = {each.case_id: each for each in open_dispatches}
        for case in list(self._cases.values()):
            if case.case_id in out:
                self._reopen(out[case.case_id])
            else:
                self._place(case)
        for name, holder in holds.items():
            self._suite.hold(name, holder)

    @property
    def spent(self) -> Spent:
        return self._purse.spent

    def stop(self) -> None:
        """Once: let what is out come in, then end. Twice: end at once."""
        self._stops += 1
        self._wake_up()

    async def run(self) -> RunStatus:
        """Work until nothing more can be done; the status says why it ended."""
        carriers = {id(each): each for each in self._carriers.values()}.values()
        for carrier in carriers:
            carrier.start(self._deliver)
        try:
            self._commit(Batch(self._clock.now(), status="running"))
            self._turn()
            while not self._finished():
                await self._arrivals()
                self._turn()
            status = self._status()
            self._commit(Batch(self._clock.now(), status=status))
            return status
        finally:
            self._deadlines.close()
            for carrier in carriers:
                await carrier.close()

    async def _arrivals(self) -> None:
        """Return when there is something to do; let carriers work in between, soon enough."""
        now = self._clock.now()
        if self._inbox and 0 <= now - self._yielded < _PATIENCE:
            return
        self._yielded = now
        if self._inbox:
            await asyncio.sleep(0)
        else:
            self._awake.clear()
            await self._awake.wait()

    def _turn(self) -> None:
        batch = Batch(self._clock.now())
        replies, self._inbox = self._inbox, []
        for reply in replies:
            self._take(reply, batch)
        for dispatch_id in self._deadlines.passed(batch.at):
            ask = self._asks.get(dispatch_id)
            if ask is not None:
                self._decide(ask, Signal(TIMEOUT, {"reason": "no answer in time"}), batch)
        for case_id in self._application.let_go():
            self._held.discard(case_id)
            self._queue(self._cases[case_id])
        if not self._stops:
            self._dispatch(batch)
        self._commit(batch)
        while self._rations and not self._stops and (more := self._more()):
            self._commit(more)

    def _take(self, reply: Reply, batch: Batch) -> None:
        ask = self._asks.get(reply.dispatch_id)
        if ask is None:
            sentence = f"Dispatch {reply.dispatch_id} is not open: it is settled, or never was."
            self._refuse(None, reply, Refused("Stale", sentence), batch)
            return
        if reply.refused:
            self._refuse(ask, reply, Refused(reply.refused, reply.reason), batch)
            return
        found = absorb(reply, self._circuit.steps[ask.step])
        if not isinstance(found, Refused) and found.name not in FAILURES:
            case = self._cases[ask.case_id]
            found = self._application.examine(ask.case_no, case, found)
        if isinstance(found, Refused):
            self._refuse(ask, reply, found, batch)
            if reply.answered_by:
                self._ask_again(ask)
                return
            found = Signal(UNREADABLE, {"reason": found.sentence}, usage=reply.usage)
        self._decide(ask, found, batch, reply.answered_by)

    def _decide(self, ask: Ask, signal: Signal, batch: Batch, answered_by: str = "") -> None:
        before = self._cases[ask.case_id]
        decision = advance(self._circuit, before, signal)
        case = apply(self._circuit, before, decision, signal.data)
        self._cases[ask.case_id] = case
        number = ask.case_no
        for effect in self._application.effects(number, before, decision, signal.data, answered_by):
            self._journal.carry_out(effect, batch.at)
        batch.entries.append(
            Entry(
                number, ask.dispatch_id, decision, _encode(signal.data), signal.usage, answered_by
            )
        )
        batch.standings[number] = Standing(number, case, None)
        self._settle(ask, str(signal.data["reason"]) if signal.name in FAILURES else "")
        self._purse.pay(tokens=signal.usage.tokens, money=signal.usage.money)
        if decision.hold:
            self._suite.hold(decision.hold, case.case_id)
        if decision.release:
            self._suite.release(decision.release)
        self._place(case)

    def _dispatch(self, batch: Batch) -> None:
        """Open a dispatch for every case that may have one now. One that crashed at once, because
        its prompt cannot be filled, or that a carrier has no room for, makes room for another."""
        self._rations.deal()
        more = True
        while more:
            asked = ready(self._suite, self._purse.left(batch.at), self._rations.closed)
            more = sum(self._offer(self._cases[case_id], batch) for case_id in asked) < len(asked)

    def _offer(self, case: Case, batch: Batch) -> bool:
        """Open its dispatch, if the carrier has room for it; True if it is out."""
        if not self._rations.take(self._circuit.steps[case.step].role):
            return False
        return self._open(case, batch)

    def _more(self) -> Batch:
        """What may go now that the carriers know what was settled, and have room again."""
        batch = Batch(self._clock.now())
        self._dispatch(batch)
        return batch

    def _open(self, case: Case, batch: Batch) -> bool:
        """Open a dispatch for the case's step; False if it crashed before it could be sent."""
        step = self._circuit.steps[case.step]
        dispatch_id = self._journal.new_dispatch_id()
        prompt, problem = self._prompt(case)
        ask = Ask(
            *(dispatch_id, self._journal.run_id, case.case_id, step.name, case.attempt),
            *(step.role, prompt, self._numbers[case.case_id], batch.at, case),
        )
        number = ask.case_no
        batch.dispatches.append(
            NewDispatch(dispatch_id, number, ask.step, ask.attempt, ask.role, prompt, step.gate)
        )
        batch.standings[number] = Standing(number, case, dispatch_id)
        self._send_out(ask, batch.at)
        self._purse.pay(dispatches=0 if step.gate else 1)
        if problem:
            self._decide(ask, Signal(CRASH, {"reason": problem}), batch)
        return not problem

    def _prompt(self, case: Case) -> tuple[str, str]:
        """The filled prompt, or why it cannot be filled."""
        try:
            facts = self._application.facts(self._numbers[case.case_id], case)
            return fill(self._circuit, case, facts), ""
        except CircuitError as error:
            return "", str(error)

    def _commit(self, batch: Batch) -> None:
        """Write the batch; then, and only then, act on it."""
        if batch:
            batch.seconds = self._purse.seconds_to_note(batch.at, now=batch.status is not None)
            self._journal.commit(batch)
        for ask, error in self._settled:
            self._carriers[ask.role].settled(ask.dispatch_id, error)
        asks: dict[int, list[Ask]] = {}
        for ask in self._to_send.values():
            asks.setdefault(id(self._carriers[ask.role]), []).append(ask)
        self._settled = []
        self._to_send = {}
        for many in asks.values():
            self._carriers[many[0].role].send(many)
        self.tally.in_flight = self._suite.busy
        self.tally.questions = self._suite.awaited()
        self._watch(self.tally, self._purse.spent)

    def _refuse(self, ask: Ask | None, reply: Reply, why: Refused, batch: Batch) -> None:
        number = ask.case_no if ask else None
        batch.refusals.append(
            Refusal(number, reply.dispatch_id, why.reason, why.sentence, reply.content)
        )
        self.tally.refused += 1

    def _ask_again(self, ask: Ask) -> None:
        """A question to a human stays open when an answer to it cannot be used."""
        self._settled.append((ask, ""))
        self._to_send[ask.dispatch_id] = ask

    def _reopen(self, dispatch: OpenDispatch) -> None:
        ask = Ask(
            *(dispatch.dispatch_id, self._journal.run_id, dispatch.case_id, dispatch.step),
            *(dispatch.attempt, dispatch.role, dispatch.prompt, self._numbers[dispatch.case_id]),
            *(dispatch.at, self._cases[dispatch.case_id]),
        )
        gate = self._circuit.steps[ask.step].gate
        self._send_out(ask, dispatch.at if gate else self._clock.now())

    def _send_out(self, ask: Ask, since: float) -> None:
        self._asks[ask.dispatch_id] = ask
        self._suite.sent(ask.case_id, ask.role)
        timeout = self._circuit.steps[ask.step].timeout
        if timeout is not None:
            self._deadlines.add(since + timeout, ask.dispatch_id)
        self._to_send[ask.dispatch_id] = ask

    def _settle(self, ask: Ask, error: str) -> None:
        del self._asks[ask.dispatch_id]
        self._to_send.pop(ask.dispatch_id, None)
        self._deadlines.drop(ask.dispatch_id)
        self._suite.answered(ask.case_id)
        self._settled.append((ask, error))

    def _place(self, case: Case) -> None:
        """An open case waits for its next dispatch, unless its application holds it; one that is
        over makes room for others."""
        held = self._application.held(self._numbers[case.case_id], case)
        if case.status == OPEN:
            if held:
                self._held.add(case.case_id)
            else:
                self._queue(case)
            return
        healthy = case.status == ENDED and self._circuit.ends[case.end]
        self._suite.ended(case.case_id, healthy)
        del self._cases[case.case_id]
        self.tally.ended += case.status == ENDED
        self.tally.unhealthy += case.status == ENDED and not healthy
        self.tally.stuck += case.status != ENDED

    def _queue(self, case: Case) -> None:
        self._suite.wants(case.case_id, self._circuit.steps[case.step].role)

    def _deliver(self, reply: Reply) -> None:
        self._inbox.append(reply)
        self._awake.set()

    def _wake_up(self) -> None:
        self._awake.set()

    def _finished(self) -> bool:
        if self._stops > 1:
            return True
        if self._suite.busy or self._inbox:
            return False
        return bool(self._stops) or not (self._wait_for_humans and self._suite.awaited())

    def _status(self) -> RunStatus:
        if self._stops and not self._suite.idle():
            return "stopped"
        if ready(self._suite):
            return "budget"
        if self._suite.awaited():
            return "waiting"
        if self._held:
            return "stopped"
        healthy = self.tally.ended == self.tally.cases and not self.tally.unhealthy
        return "done" if healthy else "unhealthy"
