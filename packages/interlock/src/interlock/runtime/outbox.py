"""The open dispatches of a run: who works on each, until when, and what carriers must be told.

What a turn decides is only collected; `publish` passes it to the carriers once it is committed. A
dispatch that goes out takes a place, starts its role's timer and gets a deadline; when it comes
back it gives them up. A dispatch that met a rate limit gives them up too, but stays open and goes
out again when its account may work. Carriers with limited room are asked for it before each round.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b

import msgspec

from interlock.carriers.background import CarrierGuard
from interlock.carriers.contract import (
    Ask,
    Carrier,
    Reply,
    Session,
    Traits,
)
from interlock.engine.circuit import HUMAN, Step
from interlock.engine.schedule import Schedule
from interlock.journal.journal import Pause
from interlock.runtime.budget import RunBudget
from interlock.runtime.terms import RunTerms
from interlock.system.clock import Clock

BACK_OFF = (60.0, 120.0, 300.0, 900.0, 1800.0)
"""Seconds to the next try after the first, second, … rate limit without a known end; the last value
repeats. `spread_delay` adds up to a quarter."""
LONGEST_LIMIT = 8 * 86400.0
"""The longest rate limit that is believed. A later end is a mistake, such as milliseconds, and
ignored."""
_NEVER = float("inf")


def _do_nothing() -> None:
    pass


def spread_delay(delay: float, *seed: object) -> float:
    """Add up to a quarter to a delay, always the same for the same seed, so that runs that met a
    limit together do not come back together."""
    return delay * (1 + blake2b(repr(seed).encode(), digest_size=1).digest()[0] / 1024)


def _find_timeout(step: Step, traits: Traits) -> float | None:
    """Return the seconds after which the loop gives up on a step.

    A carrier whose work is pulled counts them itself; a step that nobody would miss has a limit
    anyway.
    """
    if traits.times_itself:
        return None
    return traits.default_timeout if step.timeout is None else step.timeout


class Outbox:
    """The open dispatches, each with a carrier or waiting for the end of a rate limit."""

    def __init__(
        self,
        run_id: int,
        terms: RunTerms,
        carriers: Mapping[str, Carrier],
        session: Session,
        schedule: Schedule,
        budget: RunBudget,
    ) -> None:
        self._steps = terms.circuit.steps
        self._schedule = schedule
        self._session = session
        self._clock = session.clock
        self._budget = budget
        self._guards = {id(each): CarrierGuard(each) for each in carriers.values()}
        self._carriers = {role: self._guards[id(each)] for role, each in carriers.items()}
        self._timeouts = {
            step.name: _find_timeout(step, self._carriers[step.role].traits)
            for step in self._steps.values()
            if step.role in carriers
        }
        self.capacity = CarrierCapacity(self._carriers)
        self._deadlines = Deadlines(self._clock, session.wake_up)
        self.pauses = RateLimitPauses(
            self._carriers, session.clock, session.wake_up, run_id, terms.pauses
        )
        self._open: dict[int, Ask] = {}
        self._to_send: dict[int, Ask] = {}
        self._to_settle: list[tuple[Ask, str]] = []
        """The dispatches that need no more work, each with its error or ""."""

    def start(self) -> None:
        for guard in self._guards.values():
            guard.start(self._session)

    async def close(self) -> None:
        self.pauses.close()
        self._deadlines.close()
        for guard in self._guards.values():
            await guard.close()

    def keeps_answers(self) -> bool:
        """Return whether nothing is lost if nobody waits for the open dispatches."""
        roles = {ask.role for ask in self._open.values()} - {HUMAN}
        return all(self._carriers[role].keeps_answers() for role in roles)

    def find(self, dispatch_id: int) -> Ask | None:
        """Return the open dispatch of that number."""
        return self._open.get(dispatch_id)

    # What happens to a dispatch; carriers hear of it with the next `publish`.

    def send(self, ask: Ask, at: float, since: float | None = None) -> None:
        """Send a dispatch; its time runs from now, or from `since`."""
        self._schedule.mark_sent(ask.case_id, ask.role)
        self._budget.start_timer(ask.role, at)
        self._open[ask.dispatch_id] = ask
        self._to_send[ask.dispatch_id] = ask
        timeout = self._timeouts.get(ask.step)
        if timeout is not None:
            self._deadlines.add((at if since is None else since) + timeout, ask.dispatch_id)

    def restore(self, ask: Ask) -> None:
        """Send a dispatch of an earlier session again, or let it wait if its account rests.

        An agent gets all its time again, a person does not.
        """
        if self.pauses.must_wait(ask):
            self._open[ask.dispatch_id] = ask
        else:
            gate = self._steps[ask.step].gate
            self.send(ask, self._clock.now(), ask.at if gate else None)

    def send_again(self, ask: Ask) -> None:
        """Send a dispatch again because its answer cannot be used; its time runs on."""
        self._to_settle.append((ask, ""))
        self._to_send[ask.dispatch_id] = ask

    def settle(self, ask: Ask, error: str, at: float) -> None:
        """Settle a dispatch that was answered or, with an `error`, given up."""
        if not self.pauses.has(ask):
            self._give_up_place(ask, at)
        del self._open[ask.dispatch_id]
        self._recall(ask, error)
        self.pauses.forget(ask)

    def pause(self, ask: Ask, reply: Reply, at: float) -> tuple[Pause, bool]:
        """Keep a dispatch that met a rate limit open; return the pause to write, and whether the
        account worked until now."""
        if not self.pauses.has(ask):
            self._give_up_place(ask, at)
            self._recall(ask, "")
        self._budget.charge(ask.role, tokens=reply.usage.tokens, money=reply.usage.money)
        return self.pauses.add_limit(ask, reply, at)

    def withdraw(self, ask: Ask, at: float) -> None:
        """Withdraw a dispatch that nobody can answer in this session; it stays open for the next
        one."""
        self._give_up_place(ask, at)
        self._recall(ask, "")

    def resume_paused(self, at: float) -> None:
        """Send dispatches whose rate limit is over, as far as there are places."""
        if self.pauses.closed_roles:
            self.pauses.refresh(at)
        elif not self.pauses.waiting:
            return
        for ask in self.pauses.list_due():
            if self._schedule.places is not None and self._schedule.busy >= self._schedule.places:
                return
            del self.pauses.waiting[ask.dispatch_id]
            self.send(ask, at)

    def pop_overdue(self, at: float) -> list[Ask]:
        """Return the dispatches whose time is over, earliest first, each once."""
        overdue = (self._open.get(dispatch_id) for dispatch_id in self._deadlines.pop_passed(at))
        return [ask for ask in overdue if ask is not None]

    def publish(self) -> None:
        """Tell the carriers what was committed, each all its dispatches at once."""
        settled, sent = self._to_settle, self._to_send
        self._to_settle, self._to_send = [], {}
        for ask, error in settled:
            self._carriers[ask.role].settle(ask.dispatch_id, error)
        batches: dict[CarrierGuard, list[Ask]] = {}
        for ask in sent.values():
            batches.setdefault(self._carriers[ask.role], []).append(ask)
        for carrier, asks in batches.items():
            carrier.send(asks)
            if carrier.traits.forgets_prompts:
                self._drop_prompts(asks)

    def _drop_prompts(self, asks: Sequence[Ask]) -> None:
        """Forget the prompts: questions to people may be many, and open for days."""
        for ask in asks:
            if ask.dispatch_id in self._open:
                self._open[ask.dispatch_id] = msgspec.structs.replace(ask, prompt="")

    def _recall(self, ask: Ask, error: str) -> None:
        """Stop the work and the time of a dispatch."""
        self._to_send.pop(ask.dispatch_id, None)
        self._deadlines.drop(ask.dispatch_id)
        self._to_settle.append((ask, error))

    def _give_up_place(self, ask: Ask, at: float) -> None:
        self._schedule.mark_answered(ask.case_id)
        self._budget.stop_timer(ask.role, at)


class Deadlines:
    """The deadlines of all open dispatches, with one timer.

    The heap may still hold dispatches that were dropped; they are skipped when they surface.
    """

    def __init__(self, clock: Clock, wake_up: Callable[[], None]) -> None:
        self._clock = clock
        self._wake_up = wake_up
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._set_for = _NEVER
        self._rang = False
        self._cancel: Callable[[], None] = _do_nothing

    def add(self, when: float, dispatch_id: int) -> None:
        self._due[dispatch_id] = when
        heapq.heappush(self._heap, (when, dispatch_id))
        if len(self._heap) > 2 * len(self._due) + 1000:  # mostly dropped ones
            self._heap = sorted((when, dispatch_id) for dispatch_id, when in self._due.items())
        if when < self._set_for:
            self._set_timer(when)

    def drop(self, dispatch_id: int) -> None:
        self._due.pop(dispatch_id, None)

    def pop_passed(self, now: float) -> list[int]:
        """Return the dispatches whose time is over, earliest first, and set the timer for the
        next."""
        if now < self._set_for:
            if self._rang:
                # The machine's clock was set back, and the timer rang too early.
                self._set_timer(self._set_for)
            return []
        passed: list[int] = []
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._due):
            _, dispatch_id = heapq.heappop(self._heap)
            if dispatch_id in self._due:
                del self._due[dispatch_id]
                passed.append(dispatch_id)
        self._set_timer(self._heap[0][0] if self._heap else _NEVER)
        return passed

    def close(self) -> None:
        self._cancel()

    def _set_timer(self, when: float) -> None:
        self._cancel()
        self._set_for = when
        self._rang = False
        self._cancel = _do_nothing if when == _NEVER else self._clock.call_at(when, self._ring)

    def _ring(self) -> None:
        self._rang = True
        self._wake_up()


class RateLimitPauses:
    """The accounts that rest because of a rate limit, and the dispatches that wait for them.

    An account shares one limit: the carrier names it, or it is a role of this run. A rate limit is
    not a failure: no attempt is counted, no rule is asked. If nobody says when it ends, `BACK_OFF`
    says when to try again.
    """

    def __init__(
        self,
        carriers: Mapping[str, Carrier],
        clock: Clock,
        wake_up: Callable[[], None],
        run_id: int,
        before: Iterable[Pause] = (),
    ) -> None:
        self.closed_roles: frozenset[str] = frozenset()
        """The roles whose account rests."""
        self.waiting: dict[int, Ask] = {}
        """The open dispatches that wait for their account."""
        self._clock = clock
        self._wake_up = wake_up
        self._run_id = run_id
        self._accounts = {
            role: carrier.account_of(role) or f"{role} of run {run_id}"
            for role, carrier in carriers.items()
        }
        self._until: dict[str, float] = {}
        self._guesses: dict[str, int] = {}
        self._cancel: Callable[[], None] = _do_nothing
        now = clock.now()
        for pause in before:
            # One that is over still counts for a while: the next guess is then a longer one.
            if pause.account in self._accounts.values() and pause.until + BACK_OFF[-1] > now:
                self._until[pause.account] = pause.until
                self._guesses[pause.account] = pause.guesses
        self._close_roles(now)

    @property
    def until(self) -> float:
        """The time when the first account may work again; 0 if none rests."""
        return min((self._until[self._accounts[role]] for role in self.closed_roles), default=0.0)

    def has(self, ask: Ask) -> bool:
        """Return whether the dispatch waits here."""
        return ask.dispatch_id in self.waiting

    def add_limit(self, ask: Ask, reply: Reply, at: float) -> tuple[Pause, bool]:
        """Let a dispatch wait and its account rest; return the pause, and whether the account
        worked until now."""
        account = self._accounts[ask.role]
        rests = self._until.get(account, 0.0) > at
        guesses = self._guesses.get(account, 0)
        if at < reply.until <= at + LONGEST_LIMIT:
            # A known end replaces a guess; of two known ends the later one counts.
            until = max(reply.until, self._until[account] if rests and not guesses else 0.0)
            guesses = 0
        elif rests:
            until = self._until[account]
        else:
            guesses += 1
            delay = BACK_OFF[min(guesses, len(BACK_OFF)) - 1]
            until = at + spread_delay(delay, account, self._run_id, at)
        self._until[account] = until
        self._guesses[account] = guesses
        self.waiting[ask.dispatch_id] = ask
        self.refresh(at)
        pause = Pause(
            ask.dispatch_id, account, until, guesses, reply.reason, usage=reply.usage, at=at
        )
        return pause, not rests

    def must_wait(self, ask: Ask) -> bool:
        """Return whether a dispatch must wait because its account rests; if so, let it wait."""
        if ask.role in self.closed_roles:
            self.waiting[ask.dispatch_id] = ask
        return ask.role in self.closed_roles

    def list_due(self) -> list[Ask]:
        """Return the dispatches that have waited long enough, oldest first."""
        return [ask for _, ask in sorted(self.waiting.items()) if ask.role not in self.closed_roles]

    def forget(self, ask: Ask) -> None:
        """Forget a dispatch; an account that answered needs no more guesses about its limit."""
        self.waiting.pop(ask.dispatch_id, None)
        account = self._accounts[ask.role]
        if account in self._guesses and ask.role not in self.closed_roles:
            del self._guesses[account], self._until[account]

    def refresh(self, at: float) -> None:
        """Update which accounts rest, and wake up when the next one may work; needs a running event
        loop."""
        if not self._until:
            return
        self._close_roles(at)
        self._cancel()
        resting = bool(self.closed_roles)
        self._cancel = self._clock.call_at(self.until, self._wake_up) if resting else _do_nothing

    def close(self) -> None:
        self._cancel()

    def _close_roles(self, at: float) -> None:
        self.closed_roles = frozenset(
            role for role, account in self._accounts.items() if self._until.get(account, 0.0) > at
        )


class CarrierCapacity:
    """The room that carriers have left for dispatches.

    Roles with one carrier share its room, unless the carrier has some for each. Carriers without a
    limit cost nothing here.
    """

    def __init__(self, carriers: Mapping[str, Carrier]) -> None:
        self.closed_roles: set[str] = set()
        """The roles whose carrier has no room left."""
        self._ask: dict[str, Callable[[], int]] = {}
        self._keys: dict[str, object] = {}
        for role, carrier in carriers.items():
            if carrier.traits.capacity != "unlimited":
                self._ask[role] = partial(carrier.free_capacity, role)
                self._keys[role] = carrier if carrier.traits.capacity == "shared" else role
        self._left: dict[object, int] = {}

    def __bool__(self) -> bool:
        return bool(self._ask)

    def refresh(self) -> None:
        """Ask each carrier again for its room."""
        self._left = {self._keys[role]: ask() for role, ask in self._ask.items()}
        self._close_roles()

    def reserve(self, role: str) -> bool:
        """Take room for one dispatch of that role; return False if there is none."""
        if role not in self._ask:
            return True
        if role in self.closed_roles:
            return False
        self._left[self._keys[role]] -= 1
        self._close_roles()
        return True

    def _close_roles(self) -> None:
        self.closed_roles = {role for role in self._ask if self._left[self._keys[role]] <= 0}
