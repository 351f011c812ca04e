"""The outbox: which asks are open, until when, and what carriers are told after a commit.

Nothing leaves before `deliver`: what a turn decides is first collected here. Knows carriers and
deadlines; refuses to know why an ask was opened, settled or withdrawn.
"""

from collections.abc import Callable, Mapping

from interlock.agents.carrier import Ask, Carrier, Clock, Deliver
from interlock.runtime.deadlines import Deadlines


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
