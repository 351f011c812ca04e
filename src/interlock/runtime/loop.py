"""The loop: takes what came back, lets the engine decide, commits, then sends what is next.

One turn handles everything that has arrived since the last one, for any number of cases, in one
transaction. Nothing is carried out before it is committed; what was committed but not carried out
when the process died is carried out again under the same dispatch_id.

Asking: a case at a step becomes a dispatch, with a number of its own and its prompt filled.

Knows how an ask is made, anew or from the journal. Refuses to know whether it may go out.

The tally: how a run stands, in numbers, for whoever watches it.

Newcomers: cases that join a run while it is worked on, and open ones that are changed.

Knows which cases a run has, also those that are over, and that what joins is written with the batch
of its turn. Refuses to know where they come from: an application brings them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from interlock.agents.carrier import Ask, Carrier, Clock, ExecutionContext, Reply
from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import ENDED, OPEN, STUCK, Case, Refused, Signal
from interlock.engine.circuit import CRASH, FAILURES, RATE_LIMIT, TIMEOUT, UNREADABLE, Circuit
from interlock.engine.schedule import Schedule, Spent, ready
from interlock.journal.events import Tell, silence
from interlock.journal.journal import (
    CaseRow,
    Journal,
    JournalEntry,
    NewDispatch,
    Pause,
    Refusal,
    TurnWrites,
)
from interlock.journal.runs import (
    FINISHED,
    LoadedCase,
    NewCase,
    OpenDispatch,
    RunStatus,
    change_case,
    insert_cases,
)
from interlock.runtime.answers import absorb
from interlock.runtime.application import CaseHooks, DefaultHooks
from interlock.runtime.occasions import EventCollector
from interlock.runtime.outbox import CarrierCapacity, DispatchQueue
from interlock.runtime.prompts import fill
from interlock.runtime.purse import RunBudget
from interlock.runtime.treasury import BudgetQuestion
from interlock.system.errors import CircuitError


class DispatchFactory:
    """Makes asks for the cases of a run; `numbers` are those of its cases in the database."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        application: CaseHooks,
        numbers: Mapping[str, int],
    ) -> None:
        self._journal = journal
        self._circuit = circuit
        self._application = application
        self._numbers = numbers

    def open(self, case: Case, at: float) -> tuple[Ask, NewDispatch, str]:
        """A new dispatch for the case's step; with the reason if its prompt cannot be filled."""
        step = self._circuit.steps[case.step]
        dispatch_id = self._journal.new_dispatch_id()
        number = self._numbers[case.case_id]
        premises = self._application.premises(number, case, dispatch_id)
        prompt, problem = self._prompt(number, case, premises)
        ask = Ask(
            *(dispatch_id, self._journal.run_id, case.case_id, step.name, case.attempt),
            *(step.role, prompt, number, at, case),
            language=step.language,
            premises=premises,
        )
        new = NewDispatch(
            dispatch_id, ask.case_no, ask.step, ask.attempt, ask.role, prompt, step.gate
        )
        return ask, new, problem

    def again(self, dispatch: OpenDispatch, case: Case) -> Ask:
        """The ask of a dispatch that was sent, or about to be, when an earlier sitting ended."""
        number, dispatch_id = self._numbers[dispatch.case_id], dispatch.dispatch_id
        return Ask(
            *(dispatch_id, self._journal.run_id, dispatch.case_id, dispatch.step),
            *(dispatch.attempt, dispatch.role, dispatch.prompt, number),
            *(dispatch.at, case),
            language=self._circuit.steps[dispatch.step].language,
            premises=self._application.premises(number, case, dispatch_id),
        )

    def _prompt(self, case_no: int, case: Case, premises: ExecutionContext) -> tuple[str, str]:
        """The filled prompt, or why it cannot be filled."""
        try:
            facts = self._application.facts(case_no, case, premises)
            return fill(self._circuit, case, facts), ""
        except CircuitError as error:
            return "", str(error)


class RunCounts(msgspec.Struct):
    """How a run stands, in numbers."""

    cases: int = 0
    ended: int = 0
    unhealthy: int = 0
    stuck: int = 0
    halted: str = ""
    """The case whose end stopped the run."""
    in_flight: int = 0
    questions: int = 0
    refused: int = 0
    limited: int = 0
    """Dispatches that wait for the end of a rate limit."""
    limited_until: float = 0.0
    """When the first account goes on again; 0 if none rests."""


class JoiningCases:
    """Lets cases join: into the database, the plan, and the loop's `cases` and `numbers`."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        suite: Schedule,
        cases: dict[str, Case],
        numbers: dict[str, int],
        tally: RunCounts,
        place: Callable[[Case], None],
    ) -> None:
        self._journal = journal
        self._circuit = circuit
        self._suite = suite
        self._cases = cases
        self._numbers = numbers
        self._tally = tally
        self._place = place
        self._over: dict[str, bool] = {}

    def ended(self, case_id: str, healthy: bool) -> None:
        self._over[case_id] = healthy

    def take(self, news: Iterable[NewCase], batch: TurnWrites) -> None:
        """New ones are placed, open ones changed; those that are over stay as they are."""
        new: list[NewCase] = []
        for each in news:
            if each.case_id in self._cases:
                self._change(each, batch)
            elif each.case_id not in self._numbers:
                new.append(each)
        if new:
            self._join(new, batch)

    def _change(self, new: NewCase, batch: TurnWrites) -> None:
        run_id, blobs = self._journal.run_id, self._journal.blobs
        self._journal.carry_out(lambda raw, _at: change_case(raw, run_id, new, blobs), batch.at)
        batch.joined = True
        before = self._cases[new.case_id]
        self._cases[new.case_id] = msgspec.structs.replace(before, input=new.input)
        self._suite.change(new.case_id, new.priority, self._open(new.needs))

    def _join(self, new: list[NewCase], batch: TurnWrites) -> None:
        journal, circuit = self._journal, self._circuit

        def note(some: list[tuple[int, NewCase]]) -> None:
            self._numbers.update((each.case_id, number) for number, each in some)

        journal.carry_out(
            lambda raw, _at: insert_cases(raw, circuit, journal.run_id, new, note, journal.blobs),
            batch.at,
        )
        batch.joined = True
        for each in new:
            self._suite.add(each.case_id, each.priority, self._open(each.needs))
        for each in new:
            case = open_case(circuit, each.case_id, each.input)
            self._cases[each.case_id] = case
            self._tally.cases += 1
            self._place(case)

    def _open(self, needs: Iterable[str]) -> list[str]:
        """The needs that are not met: one that ended badly never will be."""
        return [need for need in needs if not self._over.get(need)]


_encode = msgspec.json.Encoder().encode
_PATIENCE = 0.002
"""Seconds for which arrivals are worked off before other parts of the program get their turn."""


class RunLoop:
    """Works one run until nothing more can be done without a human, a budget or a new start."""

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        suite: Schedule,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        *,
        treasury: BudgetQuestion | None = None,
        application: CaseHooks | None = None,
        wait_for_humans: bool = False,
        wait_for_limits: bool = True,
        pauses: Iterable[Pause] = (),
        tell: Tell = silence,
        watch: Callable[[RunCounts, Spent], None] = lambda _tally, _spent: None,
    ) -> None:
        self._journal = journal
        self._application = application or DefaultHooks()
        self._circuit = circuit
        self._suite = suite
        self._rations = CarrierCapacity(carriers)
        self._clock = clock
        self._treasury = treasury or BudgetQuestion(RunBudget(now=clock.now()))
        self._purse = self._treasury.purse
        self._wait_for_humans = wait_for_humans
        self._wait_for_limits = wait_for_limits
        self._watch = watch
        self._cases: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._held: set[str] = set()
        self._ends: Counter[str] = Counter()
        self._asking = DispatchFactory(journal, circuit, self._application, self._numbers)
        self._traffic = DispatchQueue(
            *(circuit, suite, carriers, clock, self._wake_up),
            purse=self._purse,
            run_id=journal.run_id,
            pauses=pauses,
        )
        self._outbox, self._pauses = self._traffic.outbox, self._traffic.pauses
        self._occasions = EventCollector(journal.run_id, tell)
        self._inbox: list[Reply] = []
        self._awake = asyncio.Event()
        self._yielded = 0.0
        self._stops = 0
        self.tally = RunCounts()
        self._newcomers = JoiningCases(
            *(journal, circuit, suite, self._cases, self._numbers, self.tally, self._place)
        )

    def take_up(
        self,
        cases: Iterable[LoadedCase],
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
                self._traffic.take_up(self._asking.again(out[case.case_id], case))
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
        self._outbox.start(self._deliver)
        try:
            began = TurnWrites(self._clock.now(), status="running")
            self._treasury.start(self._deliver, began)
            self._commit(began)
            self._turn()
            while not self._finished():
                await self._arrivals()
                self._turn()
            status = self._status()
            if status in FINISHED:
                self._occasions.over(status, self._ends)
            self._commit(TurnWrites(self._clock.now(), status=status))
            return status
        finally:
            await self._treasury.close()
            await self._traffic.close()

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
        batch = TurnWrites(self._clock.now())
        replies, self._inbox = self._inbox, []
        for reply in replies:
            self._take(reply, batch)
        for ask in self._outbox.overdue(batch.at):
            self._decide(ask, Signal(TIMEOUT, {"reason": "no answer in time"}), batch)
        for case_id in self._application.let_go():
            self._held.discard(case_id)
            self._queue(self._cases[case_id])
        self._newcomers.take(self._application.news(), batch)
        if not self._stops:
            self._traffic.send_again(batch.at)
            self._dispatch(batch)
            if self._purse.limited and ready(self._suite):
                self._treasury.ask(self._journal, batch, self._occasions)
        self._commit(batch)
        while self._rations and not self._stops and (more := self._more()):
            self._commit(more)

    def _take(self, reply: Reply, batch: TurnWrites) -> None:
        if self._treasury.mine(reply):
            self._refuse(None, reply, self._treasury.take(reply, batch), batch)
            return
        ask = self._outbox.find(reply.dispatch_id)
        if ask is None:
            sentence = f"Dispatch {reply.dispatch_id} is not open: it is settled, or never was."
            self._refuse(None, reply, Refused("Stale", sentence), batch)
            return
        if reply.refused:
            self._refuse(ask, reply, Refused(reply.refused, reply.reason), batch)
            return
        if reply.failure == RATE_LIMIT and not self._circuit.rows(ask.step, RATE_LIMIT):
            self._traffic.pause(ask, reply, batch, self._occasions)
            return
        found = absorb(reply, self._circuit.steps[ask.step], ask.case_id, ask.premises)
        if not isinstance(found, Refused) and found.name not in FAILURES:
            case = self._cases[ask.case_id]
            found = self._application.examine(ask.case_no, case, found)
        if isinstance(found, Refused):
            self._refuse(ask, reply, found, batch)
            if reply.answered_by:
                self._outbox.again(ask)
                return
            found = Signal(UNREADABLE, {"reason": found.sentence}, usage=reply.usage)
        self._decide(ask, found, batch, reply.answered_by)

    def _decide(self, ask: Ask, signal: Signal, batch: TurnWrites, answered_by: str = "") -> None:
        before = self._cases[ask.case_id]
        decision = advance(self._circuit, before, signal)
        case = apply(self._circuit, before, decision, signal.data)
        self._cases[ask.case_id] = case
        number = ask.case_no
        for effect in self._application.effects(number, before, decision, signal.data, answered_by):
            self._journal.carry_out(effect, batch.at)
        batch.entries.append(
            JournalEntry(
                number, ask.dispatch_id, decision, _encode(signal.data), signal.usage, answered_by
            )
        )
        batch.standings[number] = CaseRow(number, case, None)
        error = str(signal.data["reason"]) if signal.name in FAILURES else ""
        self._traffic.settle(ask, error, batch.at)
        self._purse.pay(ask.role, tokens=signal.usage.tokens, money=signal.usage.money)
        if decision.hold:
            self._suite.hold(decision.hold, case.case_id)
        if decision.release:
            self._suite.release(decision.release)
        if case.status == STUCK:
            self._occasions.stuck(case)
        self._place(case)

    def _dispatch(self, batch: TurnWrites) -> None:
        """Open a dispatch for every case that may have one now. One that crashed at once, because
        its prompt cannot be filled, or that a carrier has no room for, makes room for another."""
        self._rations.deal()
        more = True
        while more:
            asked = ready(self._suite, self._purse.left(batch.at), self._closed(batch.at))
            more = sum(self._open(self._cases[case_id], batch) for case_id in asked) < len(asked)

    def _closed(self, at: float, *, limited: bool = True) -> set[str]:
        """Roles that get nothing now; those whose account rests are among them if `limited`."""
        resting = self._pauses.closed if limited else ()
        return {*self._rations.closed, *self._purse.closed(at), *resting}

    def _more(self) -> TurnWrites:
        """What may go now that the carriers know what was settled, and have room again."""
        batch = TurnWrites(self._clock.now())
        self._dispatch(batch)
        return batch

    def _open(self, case: Case, batch: TurnWrites) -> bool:
        """Open a dispatch for the case's step, if its role may have one and there is room; False if
        not, or if it crashed before it could be sent."""
        role = self._circuit.steps[case.step].role
        if not (self._purse.may(role, batch.at) and self._rations.take(role)):
            return False
        ask, new, problem = self._asking.open(case, batch.at)
        batch.dispatches.append(new)
        batch.standings[ask.case_no] = CaseRow(ask.case_no, case, ask.dispatch_id)
        self._traffic.send(ask, batch.at)
        self._purse.pay(ask.role, dispatches=0 if new.human else 1)
        if new.human:
            self._occasions.gate(ask)
        if problem:
            self._decide(ask, Signal(CRASH, {"reason": problem}), batch)
        return not problem

    def _commit(self, batch: TurnWrites) -> None:
        """Write the batch; then, and only then, act on it."""
        if batch:
            batch.worked = self._purse.seconds_to_note(batch.at, now=batch.status is not None)
            batch.seconds = batch.worked[0].seconds if batch.worked else 0.0
            self._journal.commit(batch)
        self._outbox.deliver()
        self._treasury.deliver()
        self._occasions.running_low(self._purse.running_low(batch.at))
        self._occasions.hand_over(batch.at)
        self.tally.in_flight = self._suite.busy
        self.tally.questions = self._suite.awaited() + self._treasury.waits
        self.tally.limited = len(self._pauses.parked)
        self.tally.limited_until = self._pauses.until
        self._watch(self.tally, self._purse.spent)

    def _refuse(
        self, ask: Ask | None, reply: Reply, why: Refused | None, batch: TurnWrites
    ) -> None:
        if why is not None:
            number = ask.case_no if ask else None
            batch.refusals.append(Refusal(number, reply.dispatch_id, *why, reply.content))
            self.tally.refused += 1

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
        self._newcomers.ended(case.case_id, healthy)
        if case.status == ENDED and case.end in self._circuit.halts:
            self.tally.halted = case.case_id
            self._stops = 2
        del self._cases[case.case_id]
        self._ends[case.end or case.status] += 1
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
        asked = self._suite.awaited() or self._treasury.waits
        waits = (self._wait_for_humans and asked) or (self._wait_for_limits and self._limited())
        return bool(self._stops) or not waits

    def _limited(self) -> bool:
        """Whether something waits for the end of a rate limit, and for nothing else."""
        if self._pauses.parked or not self._pauses.closed:
            return bool(self._pauses.parked)
        now = self._clock.now()
        return bool(ready(self._suite, self._purse.left(now), self._closed(now, limited=False)))

    def _status(self) -> RunStatus:
        if self._stops and (self._pauses.parked or not self._suite.idle()):
            return "stopped"
        if self._limited():
            return "rate-limited"
        if ready(self._suite):
            return "budget"
        if self._suite.awaited():
            return "waiting"
        if self._held:
            return "stopped"
        healthy = self.tally.ended == self.tally.cases and not self.tally.unhealthy
        return "done" if healthy else "unhealthy"
