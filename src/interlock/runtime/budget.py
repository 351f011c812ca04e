"""Limits of what may be spent: by the run, by each role in it, and by all runs of a day.

Knows the words in which users say them (`tokens=200000`, `role.investigate.money=5`, `day.time=8h`)
and what has been spent of each. Refuses to know when it was spent, and on what.

The purse of a run: what it may cost, what it has cost, and for how long it was worked on.

Adds up for the run, for each role and for the day. Refuses to know what was bought: the plan is
told how many dispatches are left and which roles get none, the journal what time is to be noted.

The treasury: a spent budget is a question to a human, and the answer is honoured.

Nothing is thrown away when a budget is spent: the run rests, and its inbox asks whether to raise
it. `raise` names new limits, which are kept with the run in the same commit; `stop` leaves it at
rest, and it is not asked again about the same limits.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from interlock.agents.carrier import Ask, Carrier, Deliver, Reply
from interlock.engine.case import Refused
from interlock.engine.circuit import HUMAN
from interlock.engine.circuit_file import seconds_of
from interlock.engine.schedule import NO_LIMITS, Budget, Spent, dispatches_left, used
from interlock.journal.journal import Inquiry, InquiryAnswered, Journal, TurnWrites, WorkTime
from interlock.journal.usage import OpenInquiry
from interlock.system.errors import CircuitError, SourceError
from interlock.system.runner_strict_json import decode
from interlock.system.time import Day

LOW = 0.8
"""The part of a limit from which on users are warned."""
_KINDS = {"dispatches": "dispatches", "tokens": "tokens", "money": "money", "time": "seconds"}
_WORDS = {field: word for word, field in _KINDS.items()}
Words = Mapping[str, str | int | float]


class BudgetLimits(msgspec.Struct, frozen=True):
    """What may be spent."""

    run: Budget = NO_LIMITS
    roles: Mapping[str, Budget] = {}
    day: Budget = NO_LIMITS


class BudgetUsage(msgspec.Struct, frozen=True):
    """What is spent, by the same measures; `day` is what all runs spent today."""

    run: Spent = Spent()
    roles: Mapping[str, Spent] = {}
    day: Spent = Spent()


def read_limits(words: Mapping[str, object], roles: Collection[str] = ()) -> BudgetLimits:
    """Limits in a user's words; SourceError if they are none, or name a role that is not there."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in words.items():
        scope, _, kind = name.rpartition(".")
        if kind not in _KINDS or not _is_scope(scope):
            raise SourceError(
                f"budget {name!r} is unknown; use dispatches, tokens, money, time, "
                "alone or behind 'role.ROLE.' or 'day.'"
            )
        role = scope.removeprefix("role.")
        if scope.startswith("role.") and roles and role not in roles:
            known = ", ".join(sorted(roles))
            raise SourceError(f"budget {name}: no step has the role {role!r}; roles are {known}")
        found.setdefault(scope, {})[_KINDS[kind]] = _amount(name, kind, text)
    of_roles = {
        scope.removeprefix("role."): Budget(**given)
        for scope, given in found.items()
        if scope.startswith("role.")
    }
    return BudgetLimits(Budget(**found.get("", {})), of_roles, Budget(**found.get("day", {})))


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, str | int | float]:
    """The words of nested tables: what interlock.toml calls [budget.role.X]."""
    words: dict[str, str | int | float] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            words |= flat(value, f"{before}{name}.")
        else:
            words[f"{before}{name}"] = value
    return words


def parts(limits: BudgetLimits, spending: BudgetUsage) -> dict[str, float]:
    """For each limit, by its word, the part of it that is spent: 1.0 is all."""
    found = _parts("", limits.run, spending.run)
    for role, budget in sorted(limits.roles.items()):
        found |= _parts(f"role.{role}.", budget, spending.roles.get(role, Spent()))
    return found | _parts("day.", limits.day, spending.day)


def low(word: str, part: float) -> str:
    """What is said of a limit that is nearly or wholly spent."""
    return f"{part:.0%} of the budget's {word} is spent"


def _parts(before: str, budget: Budget, spent: Spent) -> dict[str, float]:
    return {f"{before}{_WORDS[name]}": part for name, part in used(budget, spent).items()}


def _is_scope(scope: str) -> bool:
    kind, _, role = scope.partition(".")
    return scope in ("", "day") or (kind == "role" and bool(role))


def _amount(name: str, kind: str, text: object) -> float | int:
    try:
        if kind == "time":
            amount: float = seconds_of(str(text))
        elif kind == "money":
            amount = float(str(text))
        else:
            amount = int(str(text))
    except (ValueError, CircuitError):
        raise SourceError(_no_amount(name, kind, text)) from None
    if not 0 <= amount < math.inf:
        raise SourceError(_no_amount(name, kind, text))
    return amount


def _no_amount(name: str, kind: str, text: object) -> str:
    example = {"time": "2h", "money": "2.50"}.get(kind, "100")
    return f"budget {name}={text}: {str(text)!r} is no amount; write {name}={example}"


_NO_LIMITS = BudgetLimits()
_NONE: frozenset[str] = frozenset()


def _one_long_day(_at: float) -> Day:
    return Day("", float("-inf"), float("inf"))


class RunBudget:
    """What is spent, counted on from what earlier sittings spent."""

    def __init__(
        self,
        limits: BudgetLimits = BudgetLimits(),  # noqa: B008 - frozen
        before: BudgetUsage = BudgetUsage(),  # noqa: B008 - frozen
        now: float = 0.0,
        day_of: Callable[[float], Day] = _one_long_day,
    ) -> None:
        self.limits = limits
        self._run = before.run
        self._roles = dict(before.roles)
        self._today = before.day
        self._day_of = day_of
        self._day = day_of(now)
        self._since = now
        self._out: dict[str, tuple[int, float]] = {}
        self._role_seconds: dict[str, float] = {}
        self._warned = {word for word, part in self.parts(now).items() if part >= LOW}

    @property
    def spent(self) -> Spent:
        """What the run has cost."""
        return self._run

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.limits != _NO_LIMITS

    @property
    def day_name(self) -> str:
        return self._day.name

    @property
    def day_ends(self) -> float:
        """When what may be spent in a day is fresh again."""
        return self._day.ends

    def raise_to(self, limits: BudgetLimits, at: float) -> None:
        """Other limits from now on."""
        self.limits = limits
        self._warned = {word for word, part in self.parts(at).items() if part >= LOW}

    def pay(self, role: str, dispatches: int = 0, tokens: int = 0, money: float = 0.0) -> None:
        cost = Spent(dispatches, tokens, money)
        self._run = _sum(self._run, cost)
        if role in self.limits.roles:
            self._roles[role] = _sum(self._roles.get(role, Spent()), cost)
        if self.limits.day != NO_LIMITS:
            self._today = _sum(self._today, cost)

    def left(self, at: float) -> int | None:
        """How many dispatches may still go, counting the time since it was last noted."""
        limits = self.limits
        if limits.run == NO_LIMITS and limits.day == NO_LIMITS:
            return None
        self._turn_page(at)
        spent = self._spending(at)
        found = (dispatches_left(limits.run, spent.run), dispatches_left(limits.day, spent.day))
        return min((each for each in found if each is not None), default=None)

    def closed(self, at: float) -> Collection[str]:
        """Roles that may not be asked any more."""
        if not self.limits.roles:
            return _NONE
        return {role for role in self.limits.roles if self._left_of(role, at) == 0}

    def parts(self, at: float) -> dict[str, float]:
        """For each limit the part of it that is spent."""
        return parts(self.limits, self._spending(at))

    def running_low(self, at: float) -> dict[str, str]:
        """What is said of the limits that have just come near their end; each is told once."""
        if not self.limited:
            return {}
        fresh = {
            word: low(word, part)
            for word, part in self.parts(at).items()
            if part >= LOW and word not in self._warned
        }
        self._warned |= fresh.keys()
        return fresh

    def went_out(self, role: str, at: float) -> None:
        """An agent of that role works from now on."""
        self._count(role, 1, at)

    def came_back(self, role: str, at: float) -> None:
        self._count(role, -1, at)

    def seconds_to_note(self, at: float, *, now: bool) -> list[WorkTime]:
        """Working time is noted once a second, or `now`: a row more in each commit costs more. The
        run's own is the first."""
        seconds = at - self._since
        if seconds < 1.0 and not now:
            return []
        day = self._day.name
        self._since = at
        seconds = max(0.0, seconds)
        self._run = _sum(self._run, Spent(seconds=seconds))
        self._today = _sum(self._today, Spent(seconds=seconds))
        for role in self._out:
            self._count(role, 0, at)
        by_role, self._role_seconds = self._role_seconds, {}
        for role, spent in by_role.items():
            self._roles[role] = _sum(self._roles.get(role, Spent()), Spent(seconds=spent))
        rows = [WorkTime(day, role, spent) for role, spent in sorted(by_role.items()) if spent]
        self._turn_page(at)
        return [WorkTime(day, "", seconds), *rows]

    def _left_of(self, role: str, at: float) -> int | None:
        budget = self.limits.roles.get(role, NO_LIMITS)
        return dispatches_left(budget, self._role_spent(role, at))

    def may(self, role: str, at: float) -> bool:
        """Whether that role may be asked once more."""
        return role not in self.limits.roles or self._left_of(role, at) != 0

    def _spending(self, at: float) -> BudgetUsage:
        since = Spent(seconds=max(0.0, at - self._since))
        return BudgetUsage(
            _sum(self._run, since),
            {role: self._role_spent(role, at) for role in self.limits.roles},
            _sum(self._today, since),
        )

    def _role_spent(self, role: str, at: float) -> Spent:
        many, since = self._out.get(role, (0, at))
        unnoted = self._role_seconds.get(role, 0.0) + many * max(0.0, at - since)
        return _sum(self._roles.get(role, Spent()), Spent(seconds=unnoted))

    def _count(self, role: str, more: int, at: float) -> None:
        many, since = self._out.get(role, (0, at))
        if many:
            passed = many * max(0.0, at - since)
            self._role_seconds[role] = self._role_seconds.get(role, 0.0) + passed
        self._out[role] = (many + more, at)

    def _turn_page(self, at: float) -> None:
        """A new day begins with nothing spent."""
        if at >= self._day.ends:
            self._day = self._day_of(at)
            self._today = Spent()
            self._warned = {word for word in self._warned if not word.startswith("day.")}


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.dispatches + other.dispatches,
        one.tokens + other.tokens,
        one.money + other.money,
        one.seconds + other.seconds,
    )


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

    def ask(self, journal: Journal, batch: TurnWrites) -> Inquiry | None:
        """Ask for more, if a limit is reached and nobody said stop to just that; the question."""
        spent = self._spent(batch.at)
        if self._desk is None or not spent or self._open is not None:
            return None
        limits = ", ".join(self._named(word) for word in spent)
        about = f"run {journal.run_id} has spent its budget ({limits}): raise it, or stop?"
        if self._last is not None and self._last.about == about and _stopped(self._last):
            return None
        inquiry = Inquiry(journal.new_dispatch_id(), KIND, about)
        batch.inquiries.append(inquiry)
        self._ask(inquiry, journal.run_id, batch.at)
        return inquiry

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
        data = decode(reply.content)
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
