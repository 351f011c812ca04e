"""The loop of a run: take replies, let the engine decide, commit, send.

One turn handles everything that has arrived since the last one, for any number of cases, in one
transaction. Nothing is carried out before it is committed; what was committed when the process died
is carried out again under the same dispatch_id. `RunLoop` takes turns and commits, `CaseTable` is
the only place that adds, changes or replaces a case.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from interlock.carriers.background import tell_user
from interlock.carriers.contract import (
    Ask,
    Carrier,
    ExecutionContext,
    Reply,
    RunProgress,
    Session,
)
from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import ENDED, OPEN, STUCK, Case, RefusedAnswer, Signal
from interlock.engine.circuit import CRASH, FAILURES, RATE_LIMIT, TIMEOUT, UNREADABLE, Circuit
from interlock.engine.schedule import Schedule, Spent, ready
from interlock.journal.connection import Connection
from interlock.journal.journal import (
    CaseRow,
    Journal,
    JournalEntry,
    NewDispatch,
    Refusal,
    TurnWrites,
)
from interlock.journal.runs import (
    FINISHED,
    LoadedCase,
    NewCase,
    OpenDispatch,
    RunStatus,
    insert_cases,
    load_cases,
    load_holds,
    load_open_dispatches,
    update_case,
)
from interlock.runtime.answers import decode_answer
from interlock.runtime.application import CaseHooks, Pace, find_application
from interlock.runtime.budget import BudgetQuestion, RunBudget
from interlock.runtime.notify import EventCollector
from interlock.runtime.outbox import Outbox
from interlock.runtime.prompts import render_prompt
from interlock.runtime.terms import RunCounts, RunTerms
from interlock.system.clock import Clock
from interlock.system.errors import CircuitError

_encode = msgspec.json.Encoder().encode
_MAX_WITHOUT_YIELD = 0.002
"""Seconds for which arrivals are handled before other parts of the program get their turn."""


class CaseTable:
    """The cases of a run: the open ones as they stand, their numbers, and the ends of the others.

    It keeps the schedule in step.
    """

    def __init__(
        self,
        journal: Journal,
        circuit: Circuit,
        schedule: Schedule,
        application: CaseHooks,
        pace: Pace,
    ) -> None:
        self.counts = RunCounts()
        self.ends: Counter[str] = Counter()
        """The number of cases per end."""
        self._journal = journal
        self._circuit = circuit
        self._schedule = schedule
        self._application = application
        self._pace = pace
        self._open: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._held: set[str] = set()
        self._resting: set[str] = set()
        self._ended_healthy: dict[str, bool] = {}

    def __getitem__(self, case_id: str) -> Case:
        """Return an open case as it stands."""
        return self._open[case_id]

    def number(self, case_id: str) -> int:
        """Return the number of any case in the database, open or over."""
        return self._numbers[case_id]

    @property
    def has_held(self) -> bool:
        """Return whether open cases wait for their application, or for a later session."""
        return bool(self._held or self._resting)

    def load(self, cases: Iterable[LoadedCase]) -> list[Case]:
        """Load the cases from the journal and return them all; none is queued yet."""
        for loaded in cases:
            case = loaded.case
            self._schedule.add(case.case_id, loaded.priority, loaded.needs)
            self._numbers[case.case_id] = loaded.case_no
            self._open[case.case_id] = case
        self.counts.cases = len(self._open)
        return list(self._open.values())

    def replace(self, case: Case) -> None:
        """Store the new state of a case: queue it, hold it, or end it and make room for others."""
        self._open[case.case_id] = case
        held = self._application.must_wait(self._numbers[case.case_id], case)
        rests = self._pace.must_rest(case)
        if case.status != OPEN:
            self._end(case)
        elif held:
            self._held.add(case.case_id)
        elif rests:
            self._resting.add(case.case_id)
        else:
            self._queue(case)

    def release(self) -> None:
        """Queue the cases that neither the application nor the pace holds any more."""
        for case_id in self._application.released_cases():
            self._held.discard(case_id)
            if self._pace.must_rest(self._open[case_id]):
                self._resting.add(case_id)
            else:
                self._queue(self._open[case_id])
        for case_id in self._pace.released_cases():
            if case_id in self._resting:
                self._resting.remove(case_id)
                self._queue(self._open[case_id])

    def join(self, news: Iterable[NewCase], writes: TurnWrites) -> None:
        """Add new cases and change open ones in this turn's transaction; cases that are over stay
        as they are."""
        new: list[NewCase] = []
        for case in news:
            if case.case_id in self._open:
                self._change(case, writes)
            elif case.case_id not in self._numbers:
                new.append(case)
        if new:
            self._add(new, writes)

    def _queue(self, case: Case) -> None:
        self._schedule.enqueue(case.case_id, self._circuit.steps[case.step].role)

    def _end(self, case: Case) -> None:
        ended = case.status == ENDED
        healthy = ended and self._circuit.ends[case.end]
        del self._open[case.case_id]
        self._ended_healthy[case.case_id] = healthy
        self._schedule.mark_ended(case.case_id, healthy)
        self.ends[case.end or case.status] += 1
        self.counts.ended += ended
        self.counts.unhealthy += ended and not healthy
        self.counts.stuck += not ended
        if ended and case.end in self._circuit.halts:
            self.counts.halted = case.case_id

    def _change(self, new: NewCase, writes: TurnWrites) -> None:
        run_id, blobs = self._journal.run_id, self._journal.blobs
        self._journal.apply_effect(lambda raw, _at: update_case(raw, run_id, new, blobs), writes.at)
        writes.cases_changed = True
        before = self._open[new.case_id]
        self._open[new.case_id] = msgspec.structs.replace(before, input=new.input)
        self._schedule.change(new.case_id, new.priority, self._list_unmet(new.needs))

    def _add(self, new: list[NewCase], writes: TurnWrites) -> None:
        journal, circuit = self._journal, self._circuit

        def note_numbers(inserted: list[tuple[int, NewCase]]) -> None:
            self._numbers.update((case.case_id, number) for number, case in inserted)

        journal.apply_effect(
            lambda raw, _at: insert_cases(
                raw, circuit, journal.run_id, new, note_numbers, journal.blobs
            ),
            writes.at,
        )
        writes.cases_changed = True
        # All are known to the schedule before the first is queued: they may need each other.
        for case in new:
            self._schedule.add(case.case_id, case.priority, self._list_unmet(case.needs))
        for case in new:
            self.counts.cases += 1
            self.replace(open_case(circuit, case.case_id, case.input))

    def _list_unmet(self, needs: Iterable[str]) -> list[str]:
        """Return the needs that are not met; one that ended badly never will be."""
        return [need for need in needs if not self._ended_healthy.get(need)]


class RunLoop:
    """Work on one run until it needs a person, a budget or a new start."""

    def __init__(
        self, journal: Journal, terms: RunTerms, carriers: Mapping[str, Carrier], clock: Clock
    ) -> None:
        self._journal = journal
        self._terms = terms
        self._application = terms.hooks
        self._circuit = terms.circuit
        self._clock = clock
        self._schedule = terms.build_schedule()
        self._budget_question = terms.budget or BudgetQuestion(RunBudget(now=clock.now()))
        self._budget = self._budget_question.budget
        self._cases = CaseTable(journal, terms.circuit, self._schedule, terms.hooks, terms.pace)
        self._session = Session(
            self._receive,
            clock,
            circuit=terms.circuit.name,
            steps=terms.circuit.steps,
            judge=terms.judge_answer,
            wake_up=self.wake_up,
            notify=terms.tell,
            read_progress=self._read_progress,
            enrich=terms.enrich,
            phase_of=find_application(terms.circuit.name).phase_of,
        )
        self._outbox = Outbox(
            journal.run_id, terms, carriers, self._session, self._schedule, self._budget
        )
        self._events = EventCollector(journal.run_id, terms.tell)
        self._inbox: list[Reply] = []
        self._awake = asyncio.Event()
        self._yielded_at = 0.0
        self._stops = 0
        self._in_doubt = False
        self.is_handed_over = False
        """True if other processes continue the run at once when this one stops."""

    @property
    def counts(self) -> RunCounts:
        """The counts of the run; the same record, kept up to date."""
        return self._cases.counts

    @property
    def spent(self) -> Spent:
        return self._budget.spent

    def restore(self, connection: Connection) -> None:
        """Restore the state from the journal: open dispatches go out again, the rest waits."""
        run_id = self._journal.run_id
        loaded = self._cases.load(load_cases(connection, self._circuit, run_id))
        out = {each.case_id: each for each in load_open_dispatches(connection, run_id)}
        for case in loaded:
            if case.case_id in out:
                self._outbox.restore(self._rebuild_ask(out[case.case_id], case))
            else:
                self._cases.replace(case)
        for name, holder in load_holds(connection, self._circuit, run_id).items():
            self._schedule.hold(name, holder)

    def stop(self) -> None:
        """Stop: the first call lets open answers come in, the second ends at once."""
        self._stops += 1
        self.wake_up()

    def keeps_answers(self) -> bool:
        """Return whether nothing is lost if nobody waits for open answers; then one stop ends at
        once."""
        return not self._inbox and self._outbox.keeps_answers()

    async def run(self) -> RunStatus:
        """Work until nothing more can be done; return the status that says why."""
        self._outbox.start()
        try:
            writes = TurnWrites(self._clock.now(), status="running")
            self._budget_question.start(self._session, writes)
            self._commit(writes)
            self._turn()
            while not self._is_finished():
                await self._wait_for_arrivals()
                self._turn()
            status = self._final_status()
            if status in FINISHED:
                self._events.add_end(status, self._cases.ends)
            self._commit(TurnWrites(self._clock.now(), status=status))
            if self.counts.problem:
                tell_user(self.counts.problem)
            return status
        finally:
            await self._budget_question.close()
            await self._outbox.close()

    def _receive(self, reply: Reply) -> None:
        self._inbox.append(reply)
        self._awake.set()

    def _read_progress(self) -> RunProgress:
        counts = self.counts
        return RunProgress(counts.cases, counts.ended + counts.stuck, self.spent.tokens)

    def wake_up(self) -> None:
        """Make the loop look for something to do."""
        self._awake.set()

    async def _wait_for_arrivals(self) -> None:
        """Wait until there is something to do, and let carriers work in between."""
        now = self._clock.now()
        if self._inbox and 0 <= now - self._yielded_at < _MAX_WITHOUT_YIELD:
            return
        self._yielded_at = now
        if self._inbox:
            await asyncio.sleep(0)
        else:
            self._awake.clear()
            await self._awake.wait()

    def _turn(self) -> None:
        """Take one turn, in ten steps."""
        self._journal.check_owned()
        writes = TurnWrites(self._clock.now())
        # 1. Take all replies.
        replies, self._inbox = self._inbox, []
        for reply in replies:
            # 2. What is stale, refused or rate-limited is noted, and decides nothing.
            ask = self._find_asked(reply, writes)
            if ask is None:
                continue
            # 3. The answer becomes a signal, which the application checks.
            signal = self._read_signal(ask, reply, writes)
            # 4. The engine decides; 5. effects in the open transaction, and the case is replaced.
            if signal is not None:
                self._decide(ask, signal, writes, reply.answered_by)
        # 6. Overdue dispatches become timeout signals and go the same way.
        for ask in self._outbox.pop_overdue(writes.at):
            self._decide(ask, Signal(TIMEOUT, {"reason": "no answer in time"}), writes)
        # 7. Released and new cases join.
        self._cases.release()
        self._cases.join(self._application.new_cases(), writes)
        # 8. Open a dispatch for every case that may have one; ask for a budget if that is missing.
        if self._may_send_more():
            self._outbox.resume_paused(writes.at)
            self._open_dispatches(writes)
            self._ask_for_budget(writes)
        # 9. Commit; 10. only now carriers, people and watchers are told.
        self._commit(writes)
        # Carriers that take only so many may have room again, now that they know what is settled.
        while self._outbox.capacity and self._may_send_more():
            more = TurnWrites(self._clock.now())
            self._open_dispatches(more)
            if not more:
                break
            self._commit(more)

    def _may_send_more(self) -> bool:
        self._in_doubt = not self._journal.may_start
        return not self._is_stopping() and not self._in_doubt

    def _find_asked(self, reply: Reply, writes: TurnWrites) -> Ask | None:
        """Return the open dispatch that a reply answers, or None after noting a reply that decides
        nothing."""
        if self._budget_question.is_answered_by(reply):
            if refused := self._budget_question.take_answer(reply, writes):
                self._refuse(None, reply, refused, writes)
            return None
        ask = self._outbox.find(reply.dispatch_id)
        if reply.refused:
            self._refuse(ask, reply, RefusedAnswer(reply.refused, reply.reason), writes)
            if reply.stops_run and ask is not None:
                self._outbox.withdraw(ask, writes.at)
                self.counts.problem = self.counts.problem or reply.reason
            return None
        if ask is None:
            sentence = f"Dispatch {reply.dispatch_id} is not open: it is settled, or never was."
            self._refuse(None, reply, RefusedAnswer("Stale", sentence), writes)
            return None
        if reply.call is not None:
            writes.calls.append((ask.dispatch_id, reply.call))
        if reply.failure == RATE_LIMIT and not self._circuit.find_rules(ask.step, RATE_LIMIT):
            pause, is_new = self._outbox.pause(ask, reply, writes.at)
            writes.pauses.append(pause)
            if is_new:
                self._events.add_rate_limit(pause)
            return None
        return ask

    def _read_signal(self, ask: Ask, reply: Reply, writes: TurnWrites) -> Signal | None:
        """Return the signal of a reply, or None if a person must be asked again.

        An unusable answer of an agent becomes the signal `unreadable`.
        """
        found = decode_answer(reply, self._circuit.steps[ask.step], ask.case_id, ask.execution)
        if not isinstance(found, RefusedAnswer) and found.name not in FAILURES:
            found = self._application.check_answer(ask.case_no, self._cases[ask.case_id], found)
        if not isinstance(found, RefusedAnswer):
            return found
        self._refuse(ask, reply, found, writes)
        if reply.answered_by:
            self._outbox.send_again(ask)
            return None
        return Signal(UNREADABLE, {"reason": found.sentence}, usage=reply.usage)

    def _refuse(
        self, ask: Ask | None, reply: Reply, why: RefusedAnswer, writes: TurnWrites
    ) -> None:
        number = ask.case_no if ask else None
        writes.refusals.append(
            Refusal(number, reply.dispatch_id, why.reason, why.sentence, reply.content)
        )
        self.counts.refused += 1

    def _decide(self, ask: Ask, signal: Signal, writes: TurnWrites, answered_by: str = "") -> None:
        """Let the engine decide on a signal, and apply the decision in memory and in the
        transaction."""
        before = self._cases[ask.case_id]
        decision = advance(self._circuit, before, signal)
        case = apply(self._circuit, before, decision, signal.data)
        number = ask.case_no
        for effect in self._application.effects(number, before, decision, signal.data, answered_by):
            self._journal.apply_effect(effect, writes.at)
        writes.entries.append(
            JournalEntry(
                number, ask.dispatch_id, decision, _encode(signal.data), signal.usage, answered_by
            )
        )
        writes.cases[number] = CaseRow(number, case, None)
        error = str(signal.data["reason"]) if signal.name in FAILURES else ""
        self._outbox.settle(ask, error, writes.at)
        self._budget.charge(ask.role, tokens=signal.usage.tokens, money=signal.usage.money)
        if decision.hold:
            self._schedule.hold(decision.hold, case.case_id)
        if decision.release:
            self._schedule.release(decision.release)
        if case.status == STUCK:
            self._events.add_stuck(case)
        # Last: the application is asked whether it holds the case, and reads what effects wrote.
        self._cases.replace(case)

    def _open_dispatches(self, writes: TurnWrites) -> None:
        """Open a dispatch for every case that may have one now.

        One that crashed because its prompt cannot be filled, or for which a carrier has no room,
        makes room for another.
        """
        self._outbox.capacity.refresh()
        again = True
        while again:
            left = self._budget.dispatches_left(writes.at)
            chosen = ready(self._schedule, left, self._closed_roles(writes.at))
            opened = sum(self._open_dispatch(self._cases[case_id], writes) for case_id in chosen)
            again = opened < len(chosen)

    def _open_dispatch(self, case: Case, writes: TurnWrites) -> bool:
        """Open a dispatch for the case's step; return False if there is no room or it crashed at
        once."""
        role = self._circuit.steps[case.step].role
        if not (self._budget.may_dispatch(role, writes.at) and self._outbox.capacity.reserve(role)):
            return False
        ask, problem = self._build_ask(case, writes.at)
        is_gate = self._circuit.steps[case.step].gate
        writes.dispatches.append(
            NewDispatch(
                ask.dispatch_id, ask.case_no, ask.step, ask.attempt, ask.role, ask.prompt, is_gate
            )
        )
        writes.cases[ask.case_no] = CaseRow(ask.case_no, case, ask.dispatch_id)
        self._outbox.send(ask, writes.at)
        self._budget.charge(ask.role, dispatches=0 if is_gate else 1)
        if is_gate:
            self._events.add_gate(ask)
        if problem:
            self._decide(ask, Signal(CRASH, {"reason": problem}), writes)
        return not problem

    def _build_ask(self, case: Case, at: float) -> tuple[Ask, str]:
        """Build a new dispatch for the case's step, and the reason if its prompt cannot be
        filled."""
        step = self._circuit.steps[case.step]
        dispatch_id = self._journal.take_dispatch_id()
        number = self._cases.number(case.case_id)
        context = self._application.context_for(number, case, dispatch_id)
        self._terms.pace.note_dispatch(case)
        prompt, problem = self._render_prompt(number, case, context)
        ask = Ask(
            dispatch_id,
            self._journal.run_id,
            case.case_id,
            step.name,
            case.attempt,
            step.role,
            prompt,
            number,
            at,
            case,
            language=step.language,
            execution=context,
            run_at=self._terms.run_at,
        )
        return ask, problem

    def _rebuild_ask(self, dispatch: OpenDispatch, case: Case) -> Ask:
        """Build the dispatch anew that was open when an earlier session ended."""
        number = self._cases.number(case.case_id)
        self._terms.pace.note_dispatch(case)
        return Ask(
            dispatch.dispatch_id,
            self._journal.run_id,
            dispatch.case_id,
            dispatch.step,
            dispatch.attempt,
            dispatch.role,
            dispatch.prompt,
            number,
            dispatch.at,
            case,
            language=self._circuit.steps[dispatch.step].language,
            execution=self._application.context_for(number, case, dispatch.dispatch_id),
            run_at=self._terms.run_at,
        )

    def _render_prompt(self, number: int, case: Case, context: ExecutionContext) -> tuple[str, str]:
        """Return the prompt and "", or "" and why it cannot be filled."""
        try:
            values = self._application.prompt_values(number, case, context)
            return render_prompt(self._circuit, case, values), ""
        except CircuitError as error:
            return "", str(error)

    def _ask_for_budget(self, writes: TurnWrites) -> None:
        """Ask to raise a spent budget if cases could go on with more."""
        if not self._budget.has_limits or not ready(self._schedule):
            return
        if inquiry := self._budget_question.ask(self._journal, writes):
            self._events.add_budget_question(inquiry)

    def _commit(self, writes: TurnWrites) -> None:
        """Write the turn, and only then act on it."""
        if writes:
            final = writes.status is not None
            writes.worked = self._budget.pop_work_time(writes.at, now=final)
            writes.seconds = writes.worked[0].seconds if writes.worked else 0.0
            self._journal.commit(writes)
        self._outbox.publish()
        self._budget_question.publish()
        self._events.add_low_limits(self._budget.pop_warnings(writes.at))
        self._events.publish(writes.at)
        counts = self.counts
        counts.in_flight = self._schedule.busy
        counts.questions = self._schedule.count_awaited() + self._budget_question.is_open
        counts.limited = len(self._outbox.pauses.waiting)
        counts.limited_until = self._outbox.pauses.until
        self._terms.watch(counts, self._budget.spent)

    def _closed_roles(self, at: float, *, with_paused: bool = True) -> Collection[str]:
        """Return the roles that get nothing now; `with_paused` adds those whose account rests."""
        paused = self._outbox.pauses.closed_roles if with_paused else ()
        return {*self._outbox.capacity.closed_roles, *self._budget.closed_roles(at), *paused}

    def _is_stopping(self, *, at_once: bool = False) -> bool:
        """Return whether nothing new is begun; with `at_once`, whether open answers are not waited
        for."""
        return self._stops > (1 if at_once else 0) or bool(
            self.counts.halted or self.counts.problem
        )

    def _is_finished(self) -> bool:
        if self._is_stopping(at_once=True) or (self._is_stopping() and self.keeps_answers()):
            return True
        if self._schedule.busy or self._inbox:
            return False
        if self._in_doubt and not self._is_stopping():
            return False  # what may go was held back; whoever renews the lease wakes us up
        asked = self._schedule.count_awaited() or self._budget_question.is_open
        waits = (self._terms.wait_for_humans and asked) or (
            self._terms.wait_for_limits and self._is_rate_limited()
        )
        return self._is_stopping() or not waits

    def _is_rate_limited(self) -> bool:
        """Return whether the run waits for the end of a rate limit, and for nothing else."""
        pauses = self._outbox.pauses
        if pauses.waiting or not pauses.closed_roles:
            return bool(pauses.waiting)
        now = self._clock.now()
        closed = self._closed_roles(now, with_paused=False)
        return bool(ready(self._schedule, self._budget.dispatches_left(now), closed))

    def _final_status(self) -> RunStatus:
        waiting = self.counts.problem or self._outbox.pauses.waiting or not self._schedule.is_idle()
        if self._is_stopping() and waiting:
            return "running" if self.is_handed_over else "stopped"
        if self._is_rate_limited():
            return "rate-limited"
        if ready(self._schedule):
            return "budget"
        if self._schedule.count_awaited():
            return "waiting"
        if self._cases.has_held:
            return "stopped"
        counts = self.counts
        healthy = counts.ended == counts.cases and not counts.unhealthy
        return "done" if healthy else "unhealthy"
