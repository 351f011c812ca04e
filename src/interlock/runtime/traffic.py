"""Traffic: what is out. Sending, settling and pausing keep places, time and papers in step.

An ask that goes out takes a place, starts the clock of its role and gets a deadline; one that comes
back gives them up. One that met a rate limit does too, stays open, and goes out again by itself.
"""

from collections.abc import Callable, Iterable, Mapping

from interlock.agents.carrier import Ask, Carrier, Clock, Reply
from interlock.engine.circuit import Circuit
from interlock.engine.schedule import Schedule
from interlock.journal.journal import Pause, TurnWrites
from interlock.runtime.occasions import EventCollector
from interlock.runtime.outbox import Outbox
from interlock.runtime.pauses import RateLimitPauses
from interlock.runtime.purse import RunBudget


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

    def pause(self, ask: Ask, reply: Reply, batch: TurnWrites, occasions: EventCollector) -> None:
        """It met a rate limit, which decides nothing: it stays open, and waits for the end."""
        if ask.dispatch_id not in self.pauses.parked:
            self._come_back(ask, batch.at)
            self.outbox.withdraw(ask)
        self._purse.pay(ask.role, tokens=reply.usage.tokens, money=reply.usage.money)
        pause, new = self.pauses.limit(ask, reply, batch.at)
        batch.pauses.append(pause)
        if new:
            occasions.limited(pause)

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
