"""Pauses: accounts that met a rate limit take nothing until it is over, then go on by themselves.

An account is what shares one limit: the carrier's word for it or, without one, a role of this run.
Knows until when each account rests, and which open asks wait for that. A limit is not a failure:
no attempt is counted, no rule is asked. Where nobody says when it ends, the schedule says when to
try again.
"""

from collections.abc import Callable, Iterable, Mapping

from interlock.agents.carrier import Ask, Carrier, Clock, Reply, SharesAccount
from interlock.journal.journal import Pause

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
