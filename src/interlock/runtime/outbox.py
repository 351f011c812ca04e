"""The outbox: which asks are open, until when, and what carriers are told after a commit.

Nothing leaves before `deliver`: what a turn decides is first collected here. Knows carriers and
deadlines; refuses to know why an ask was opened, settled or withdrawn.

Deadlines of open dispatches: one timer for all of them.

Pauses: accounts that met a rate limit take nothing until it is over, then go on by themselves.

An account is what shares one limit: the carrier's word for it or, without one, a role of this run.
Knows until when each account rests, and which open asks wait for that. A limit is not a failure:
no attempt is counted, no rule is asked. Where nobody says when it ends, the schedule says when to
try again.

Traffic: what is out. Sending, settling and pausing keep places, time and papers in step.

An ask that goes out takes a place, starts the clock of its role and gets a deadline; one that comes
back gives them up. One that met a rate limit does too, stays open, and goes out again by itself.

Rations: how many asks the carriers take in one turn, where a carrier takes only so many.

Knows that roles with one carrier share its room. Most carriers take everything, and cost nothing
here.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping

from interlock.agents.carrier import Ask, Carrier, Clock, Deliver, HasCapacity, Reply, SharesAccount
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Schedule
from interlock.journal.journal import Pause, TurnWrites
from interlock.runtime.budget import RunBudget


class Deadlines:
    """When each open dispatch runs out of time. Dropped ones are forgotten when they surface."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._set_for = float("inf")
        self._rung = False
        self._cancel: Callable[[], None] = lambda: None

    def add(self, when: float, dispatch_id: int) -> None:
        self._due[dispatch_id] = when
        heapq.heappush(self._heap, (when, dispatch_id))
        if len(self._heap) > 2 * len(self._due) + 1000:
            self._heap = sorted((when, dispatch_id) for dispatch_id, when in self._due.items())
        if when < self._set_for:
            self._set(when)

    def drop(self, dispatch_id: int) -> None:
        self._due.pop(dispatch_id, None)

    def passed(self, now: float) -> list[int]:
        """The dispatches whose time is over, earliest first; the timer is set for the next."""
        if now < self._set_for:
            if self._rung:
                self._set(self._set_for)
            return []
        over: list[int] = []
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._due):
            _, dispatch_id = heapq.heappop(self._heap)
            if dispatch_id in self._due:
                del self._due[dispatch_id]
                over.append(dispatch_id)
        self._set(self._heap[0][0] if self._heap else float("inf"))
        return over

    def close(self) -> None:
        self._cancel()

    def _set(self, when: float) -> None:
        self._cancel()
        self._set_for = when
        self._rung = False
        if when != float("inf"):
            self._cancel = self._clock.call_at(when, self._rings)
        else:
            self._cancel = lambda: None

    def _rings(self) -> None:
        """A wall clock that was set back can make the timer ring too early."""
        self._rung = True
        self._ring()


class Outbox:
    """Open asks, and what is to be sent and settled."""

    def __init__(
        self, carriers: Mapping[str, Carrier], clock: Clock, ring: Callable[[], None]
    ) -> None:
        self._carriers = carriers
        self._each = {id(each): each for each in carriers.values()}
        self._deadlines = Deadlines(clock, ring)
        self._asks: dict[int, Ask] = {}
        self._to_send: dict[int, Ask] = {}
        self._settled: list[tuple[Ask, str]] = []

    def start(self, deliver: Deliver) -> None:
        for carrier in self._each.values():
            carrier.start(deliver)

    async def close(self) -> None:
        self._deadlines.close()
        for carrier in self._each.values():
            await carrier.close()

    def find(self, dispatch_id: int) -> Ask | None:
        """The open ask of that number."""
        return self._asks.get(dispatch_id)

    def keep(self, ask: Ask) -> None:
        """It is open, and not sent now."""
        self._asks[ask.dispatch_id] = ask

    def put(self, ask: Ask, due: float | None) -> None:
        """It is open and goes out; without an answer by then, it is overdue."""
        self._asks[ask.dispatch_id] = ask
        self._to_send[ask.dispatch_id] = ask
        if due is not None:
            self._deadlines.add(due, ask.dispatch_id)

    def again(self, ask: Ask) -> None:
        """What came back is no answer: the same ask goes out anew, and its time runs on."""
        self._settled.append((ask, ""))
        self._to_send[ask.dispatch_id] = ask

    def withdraw(self, ask: Ask) -> None:
        """It stays open; nobody needs to work on it now, and no time runs."""
        self._to_send.pop(ask.dispatch_id, None)
        self._deadlines.drop(ask.dispatch_id)
        self._settled.append((ask, ""))

    def settle(self, ask: Ask, error: str) -> None:
        """It is decided, by its answer or, as `error` says, without one."""
        del self._asks[ask.dispatch_id]
        self._to_send.pop(ask.dispatch_id, None)
        self._deadlines.drop(ask.dispatch_id)
        self._settled.append((ask, error))

    def overdue(self, at: float) -> list[Ask]:
        """Asks whose time is over, earliest first."""
        found = (self._asks.get(each) for each in self._deadlines.passed(at))
        return [ask for ask in found if ask is not None]

    def deliver(self) -> None:
        """Tell the carriers, now that it is committed; each gets its asks at once."""
        for ask, error in self._settled:
            self._carriers[ask.role].settled(ask.dispatch_id, error)
        asks: dict[int, list[Ask]] = {}
        for ask in self._to_send.values():
            asks.setdefault(id(self._carriers[ask.role]), []).append(ask)
        self._settled = []
        self._to_send = {}
        for carrier, many in asks.items():
            self._each[carrier].send(many)


BACK_OFF = (60.0, 120.0, 300.0, 900.0, 1800.0)
"""Seconds to the next try where the end of a limit is not known: after the first, the second… time
in a row; the last one repeats."""
LONGEST = 8 * 86400.0
"""No limit lasts longer. A later end is a mistake (milliseconds?), and taken for none."""


class RateLimitPauses:
    """Which accounts rest, until when, and what waits for them."""

    def __init__(
        self,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        ring: Callable[[], None],
        run_id: int,
        before: Iterable[Pause] = (),
    ) -> None:
        self.closed: frozenset[str] = frozenset()
        """Roles whose account rests."""
        self.parked: dict[int, Ask] = {}
        """Open asks that wait for their account."""
        self._clock = clock
        self._ring = ring
        self._accounts = {
            role: _named(carrier, role) or f"{role} of run {run_id}"
            for role, carrier in carriers.items()
        }
        self._until: dict[str, float] = {}
        self._guesses: dict[str, int] = {}
        self._cancel: Callable[[], None] = lambda: None
        now = clock.now()
        for pause in before:
            if pause.account in self._accounts.values() and pause.until + BACK_OFF[-1] > now:
                self._until[pause.account] = pause.until
                self._guesses[pause.account] = pause.guesses
        self._see(now)

    @property
    def until(self) -> float:
        """When the first account goes on; 0 if none rests."""
        return min((self._until[self._accounts[role]] for role in self.closed), default=0.0)

    def limit(self, ask: Ask, reply: Reply, at: float) -> tuple[Pause, bool]:
        """The ask met a limit: it waits, and its account rests. Whether it did not rest before."""
        account = self._accounts[ask.role]
        rests = self._until.get(account, 0.0) > at
        guesses = self._guesses.get(account, 0)
        if at < reply.until <= at + LONGEST:
            until = max(reply.until, self._until[account] if rests and not guesses else 0.0)
            guesses = 0
        elif rests:
            until = self._until[account]
        else:
            guesses += 1
            until = at + BACK_OFF[min(guesses, len(BACK_OFF)) - 1]
        self._until[account] = until
        self._guesses[account] = guesses
        self.parked[ask.dispatch_id] = ask
        self.look(at)
        usage = reply.usage
        pause = Pause(ask.dispatch_id, account, until, guesses, reply.reason, usage, at)
        return pause, not rests

    def park(self, ask: Ask) -> bool:
        """Whether an open ask must wait because its account rests."""
        if ask.role in self.closed:
            self.parked[ask.dispatch_id] = ask
        return ask.role in self.closed

    def due(self) -> list[Ask]:
        """What waited long enough, first things first."""
        return [ask for _, ask in sorted(self.parked.items()) if ask.role not in self.closed]

    def answered(self, ask: Ask) -> None:
        """It waits no more; an account that answers has no limit to be guessed any more."""
        self.parked.pop(ask.dispatch_id, None)
        account = self._accounts[ask.role]
        if account in self._guesses and ask.role not in self.closed:
            del self._guesses[account], self._until[account]

    def look(self, at: float) -> None:
        """See who rests now; ring when the next one goes on. Needs a running event loop."""
        if not self._until:
            return
        self._see(at)
        self._cancel()
        self._cancel = self._clock.call_at(self.until, self._ring) if self.closed else _nothing

    def _see(self, at: float) -> None:
        self.closed = frozenset(
            role for role, account in self._accounts.items() if self._until.get(account, 0.0) > at
        )

    def close(self) -> None:
        self._cancel()


def _named(carrier: Carrier, role: str) -> str:
    return carrier.account(role) if isinstance(carrier, SharesAccount) else ""


def _nothing() -> None:
    pass


class DispatchQueue:
    """The open asks of a run: out, or waiting for the end of a rate limit."""

    def __init__(
        self,
        circuit: Circuit,
        suite: Schedule,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        ring: Callable[[], None],
        *,
        purse: RunBudget,
        run_id: int,
        pauses: Iterable[Pause],
    ) -> None:
        self.outbox = Outbox(carriers, clock, ring)
        self.pauses = RateLimitPauses(carriers, clock, ring, run_id, pauses)
        self._circuit = circuit
        self._suite = suite
        self._clock = clock
        self._purse = purse

    def send(self, ask: Ask, at: float, since: float | None = None) -> None:
        """Out it goes; its time runs from now on, or from earlier."""
        self._suite.sent(ask.case_id, ask.role)
        self._purse.went_out(ask.role, at)
        timeout = self._circuit.steps[ask.step].timeout
        self.outbox.put(
            ask, None if timeout is None else (at if since is None else since) + timeout
        )

    def take_up(self, ask: Ask) -> None:
        """An ask of an earlier sitting goes out again, or waits if its account rests. An agent has
        all its time anew, a human has not."""
        if self.pauses.park(ask):
            self.outbox.keep(ask)
        else:
            gate = self._circuit.steps[ask.step].gate
            self.send(ask, self._clock.now(), ask.at if gate else None)

    def settle(self, ask: Ask, error: str, at: float) -> None:
        """It is decided."""
        if ask.dispatch_id not in self.pauses.parked:
            self._come_back(ask, at)
        self.outbox.settle(ask, error)
        self.pauses.answered(ask)

    def pause(self, ask: Ask, reply: Reply, batch: TurnWrites) -> Pause | None:
        """It met a rate limit, which decides nothing: it stays open, and waits for the end. The
        pause, if its account did not rest before."""
        if ask.dispatch_id not in self.pauses.parked:
            self._come_back(ask, batch.at)
            self.outbox.withdraw(ask)
        self._purse.pay(ask.role, tokens=reply.usage.tokens, money=reply.usage.money)
        pause, new = self.pauses.limit(ask, reply, batch.at)
        batch.pauses.append(pause)
        return pause if new else None

    def send_again(self, at: float) -> None:
        """What waited for the end of a rate limit goes out, as far as there are places."""
        if self.pauses.closed:
            self.pauses.look(at)
        for ask in self.pauses.due():
            if self._suite.places is not None and self._suite.busy >= self._suite.places:
                return
            del self.pauses.parked[ask.dispatch_id]
            self.send(ask, at)

    async def close(self) -> None:
        self.pauses.close()
        await self.outbox.close()

    def _come_back(self, ask: Ask, at: float) -> None:
        self._suite.answered(ask.case_id)
        self._purse.came_back(ask.role, at)


class CarrierCapacity:
    """The room that is left in this turn. Roles whose carrier has none are closed."""

    def __init__(self, carriers: Mapping[str, Carrier]) -> None:
        self.closed: set[str] = set()
        self._of = {role: each for role, each in carriers.items() if isinstance(each, HasCapacity)}
        self._left: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def deal(self) -> None:
        """A new turn: ask each carrier for its room."""
        self._left = {id(each): each.room() for each in self._of.values()}
        self._close()

    def take(self, role: str) -> bool:
        """One ask for that role, if there is room."""
        if role not in self._of:
            return True
        if role in self.closed:
            return False
        self._left[id(self._of[role])] -= 1
        self._close()
        return True

    def _close(self) -> None:
        self.closed = {role for role, each in self._of.items() if self._left[id(each)] <= 0}
