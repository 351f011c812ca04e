"""Limits of a run, the usage counted against them, and the question to a person once one is spent.

Limits hold for the run, for each role and for all runs of a day; users write them as words
(`tokens=200000`, `role.investigate.money=5`, `day.time=8h`). `RunBudget` counts usage and says how
many dispatches are left and which roles get none. A spent budget throws nothing away: the run
rests, and `BudgetQuestion` asks a person whether to raise it.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import (
    NO_LIMITS,
    Budget,
    Spent,
    compute_shares,
    count_dispatches_left,
)
from interlock.journal.journal import Inquiry, InquiryAnswered, Journal, TurnWrites, WorkTime
from interlock.journal.usage import OpenInquiry
from interlock.system.errors import SourceError, UsageError
from interlock.system.strict_json import Problem, read_object
from interlock.system.time import Day, parse_duration

LOW_SHARE = 0.8
"""The share of a limit at which users are warned."""
_FIELDS = {"dispatches": "dispatches", "tokens": "tokens", "money": "money", "time": "seconds"}
"""The field of a Budget for each word that users write."""
_FIELD_WORDS = {field: word for word, field in _FIELDS.items()}
_EXAMPLES = {"time": "2h", "money": "2.50"}
LimitWords = Mapping[str, str | int | float]
"""Limits as users write them: `{"tokens": 200000, "day.time": "8h"}`."""


class BudgetLimits(msgspec.Struct, frozen=True):
    """The limits of a run, of its roles, and of a day."""

    run: Budget = NO_LIMITS
    roles: Mapping[str, Budget] = {}
    day: Budget = NO_LIMITS


class BudgetUsage(msgspec.Struct, frozen=True):
    """The usage of a run, of its roles, and of all runs today."""

    run: Spent = Spent()
    roles: Mapping[str, Spent] = {}
    day: Spent = Spent()


_NO_LIMITS = BudgetLimits()


def read_limits(words: Mapping[str, object], roles: Collection[str] = ()) -> BudgetLimits:
    """Read limits in a user's words; SourceError for an unknown word, role or amount."""
    scopes: dict[str, dict[str, Any]] = {}
    for name, text in words.items():
        scope, _, kind = name.rpartition(".")
        if kind not in _FIELDS or not _is_scope(scope):
            raise SourceError(
                f"budget {name!r} is unknown; use dispatches, tokens, money or time, "
                "alone or after 'role.ROLE.' or 'day.'"
            )
        role = scope.removeprefix("role.")
        if scope.startswith("role.") and roles and role not in roles:
            known = ", ".join(sorted(roles))
            raise SourceError(f"budget {name}: no step has the role {role!r}; roles are {known}")
        scopes.setdefault(scope, {})[_FIELDS[kind]] = _read_amount(name, kind, text)
    of_roles = {
        scope.removeprefix("role."): Budget(**amounts)
        for scope, amounts in scopes.items()
        if scope.startswith("role.")
    }
    return BudgetLimits(Budget(**scopes.get("", {})), of_roles, Budget(**scopes.get("day", {})))


def _is_scope(scope: str) -> bool:
    kind, _, role = scope.partition(".")
    return scope in ("", "day") or (kind == "role" and bool(role))


def _read_amount(name: str, kind: str, text: object) -> float | int:
    try:
        if kind == "time":
            amount: float = parse_duration(str(text))
        elif kind == "money":
            amount = float(str(text))
        else:
            amount = int(str(text))
    except (ValueError, UsageError):
        amount = math.nan
    if not 0 <= amount < math.inf:  # refuses nan, too
        example = _EXAMPLES.get(kind, "100")
        problem = f"{str(text)!r} is not an amount; write {name}={example}"
        raise SourceError(f"budget {name}={text}: {problem}")
    return amount


def flatten_limits(table: Mapping[str, Any], prefix: str = "") -> dict[str, str | int | float]:
    """Flatten nested tables, such as [budget.role.X], into the words of limits."""
    words: dict[str, str | int | float] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            words |= flatten_limits(value, f"{prefix}{name}.")
        else:
            words[f"{prefix}{name}"] = value
    return words


def compute_limit_shares(limits: BudgetLimits, usage: BudgetUsage) -> dict[str, float]:
    """Return the spent share of each limit, by its word; 1.0 is all of it."""
    shares = _name_shares("", limits.run, usage.run)
    for role, budget in sorted(limits.roles.items()):
        shares |= _name_shares(f"role.{role}.", budget, usage.roles.get(role, Spent()))
    return shares | _name_shares("day.", limits.day, usage.day)


def _name_shares(prefix: str, budget: Budget, spent: Spent) -> dict[str, float]:
    return {
        f"{prefix}{_FIELD_WORDS[name]}": share
        for name, share in compute_shares(budget, spent).items()
    }


def describe_low_limit(word: str, share: float) -> str:
    """Return a sentence about a limit that is nearly or wholly spent."""
    return f"{share:.0%} of the budget's {word} is spent"


def _endless_day(_at: float) -> Day:
    return Day("", float("-inf"), float("inf"))


class RunBudget:
    """The usage of a run, counted on from its earlier sessions.

    Work time is counted as it passes but written only about once a second, so every question about
    the present adds the time that is not yet written, from `_since` and `_timers`.
    """

    def __init__(
        self,
        limits: BudgetLimits = BudgetLimits(),  # noqa: B008 - frozen
        before: BudgetUsage = BudgetUsage(),  # noqa: B008 - frozen
        now: float = 0.0,
        day_of: Callable[[float], Day] = _endless_day,
    ) -> None:
        self.limits = limits
        self._run = before.run
        self._roles = dict(before.roles)
        self._today = before.day
        self._day_of = day_of
        self._day = day_of(now)
        self._since = now
        self._timers: dict[str, tuple[int, float]] = {}
        """For each role, the number of its agents at work, and the time from which they are
        counted."""
        self._role_seconds: dict[str, float] = {}
        self._warned = set(self._low_limits(now))

    @property
    def spent(self) -> Spent:
        """The cost of the run."""
        return self._run

    @property
    def has_limits(self) -> bool:
        return self.limits != _NO_LIMITS

    @property
    def day_name(self) -> str:
        return self._day.name

    def change_limits(self, limits: BudgetLimits, at: float) -> None:
        """Use other limits from now on."""
        self.limits = limits
        self._warned = set(self._low_limits(at))

    def charge(self, role: str, dispatches: int = 0, tokens: int = 0, money: float = 0.0) -> None:
        """Count the cost of an agent of that role."""
        cost = Spent(dispatches, tokens, money)
        self._run = _add_spent(self._run, cost)
        if role in self.limits.roles:
            self._roles[role] = _add_spent(self._roles.get(role, Spent()), cost)
        if self.limits.day != NO_LIMITS:
            self._today = _add_spent(self._today, cost)

    def dispatches_left(self, at: float) -> int | None:
        """Return how many dispatches may still go out; None if there is no limit."""
        limits = self.limits
        if limits.run == NO_LIMITS and limits.day == NO_LIMITS:
            return None
        self._begin_day(at)
        usage = self._usage(at)
        left = (
            count_dispatches_left(limits.run, usage.run),
            count_dispatches_left(limits.day, usage.day),
        )
        return min((count for count in left if count is not None), default=None)

    def may_dispatch(self, role: str, at: float) -> bool:
        """Return whether the role's own limits allow one more dispatch."""
        budget = self.limits.roles.get(role)
        return budget is None or count_dispatches_left(budget, self._role_usage(role, at)) != 0

    def closed_roles(self, at: float) -> Collection[str]:
        """Return the roles that have spent their own limits."""
        return [role for role in self.limits.roles if not self.may_dispatch(role, at)]

    def spent_limits(self, at: float) -> list[str]:
        """Return the words of the limits of which nothing is left."""
        return [
            word
            for word, share in compute_limit_shares(self.limits, self._usage(at)).items()
            if share >= 1.0
        ]

    def pop_warnings(self, at: float) -> dict[str, str]:
        """Return a warning for each limit that has just come near its end, once per limit."""
        if not self.has_limits:
            return {}
        fresh = {
            word: describe_low_limit(word, share)
            for word, share in self._low_limits(at).items()
            if word not in self._warned
        }
        self._warned |= fresh.keys()
        return fresh

    def start_timer(self, role: str, at: float) -> None:
        """Start counting the time of one more agent of that role."""
        self._count_time(role, 1, at)

    def stop_timer(self, role: str, at: float) -> None:
        self._count_time(role, -1, at)

    def pop_work_time(self, at: float, *, now: bool) -> list[WorkTime]:
        """Return the work time to write, the run's own first; nothing within a second unless `now`.

        A row in every commit would cost more than it tells.
        """
        seconds = at - self._since
        if seconds < 1.0 and not now:
            return []
        day = self._day.name
        self._since = at
        seconds = max(0.0, seconds)
        self._run = _add_spent(self._run, Spent(seconds=seconds))
        self._today = _add_spent(self._today, Spent(seconds=seconds))
        for role in self._timers:
            self._count_time(role, 0, at)
        by_role, self._role_seconds = self._role_seconds, {}
        for role, worked in by_role.items():
            self._roles[role] = _add_spent(self._roles.get(role, Spent()), Spent(seconds=worked))
        rows = [WorkTime(day, role, worked) for role, worked in sorted(by_role.items()) if worked]
        self._begin_day(at)
        return [WorkTime(day, "", seconds), *rows]

    def _usage(self, at: float) -> BudgetUsage:
        """Return the usage by now, with work time that is not yet written."""
        unwritten = Spent(seconds=max(0.0, at - self._since))
        return BudgetUsage(
            _add_spent(self._run, unwritten),
            {role: self._role_usage(role, at) for role in self.limits.roles},
            _add_spent(self._today, unwritten),
        )

    def _role_usage(self, role: str, at: float) -> Spent:
        working, since = self._timers.get(role, (0, at))
        unwritten = self._role_seconds.get(role, 0.0) + working * max(0.0, at - since)
        return _add_spent(self._roles.get(role, Spent()), Spent(seconds=unwritten))

    def _count_time(self, role: str, more: int, at: float) -> None:
        """Count the time that the role's agents worked so far, and change their number by
        `more`."""
        working, since = self._timers.get(role, (0, at))
        if working:
            passed = working * max(0.0, at - since)
            self._role_seconds[role] = self._role_seconds.get(role, 0.0) + passed
        self._timers[role] = (working + more, at)

    def _low_limits(self, at: float) -> dict[str, float]:
        shares = compute_limit_shares(self.limits, self._usage(at))
        return {word: share for word, share in shares.items() if share >= LOW_SHARE}

    def _begin_day(self, at: float) -> None:
        """Begin the next day with nothing spent, once a day is over."""
        if at >= self._day.ends:
            self._day = self._day_of(at)
            self._today = Spent()
            self._warned = {word for word in self._warned if not word.startswith("day.")}


def _add_spent(one: Spent, other: Spent) -> Spent:
    return Spent(
        one.dispatches + other.dispatches,
        one.tokens + other.tokens,
        one.money + other.money,
        one.seconds + other.seconds,
    )


BUDGET_INQUIRY = "budget"
"""The kind of these questions in the journal."""
RAISE, STOP = "raise", "stop"
_NOT_LIMITS = {"decision", "comment"}


class BudgetQuestion:
    """The question whether to raise a spent budget; without an `inbox`, nobody is asked.

    The answer `raise` names new limits, which are kept with the run in the same commit. After
    `stop` the run rests, and the same limits are not asked about again.
    """

    def __init__(
        self,
        budget: RunBudget,
        words: LimitWords | None = None,
        inbox: Carrier | None = None,
        last: OpenInquiry | None = None,
    ) -> None:
        self.budget = budget
        self._words: LimitWords = words or {}
        self._inbox = inbox
        self._last = last
        self._open: Ask | None = None
        self._to_send = False
        self._settled: list[int] = []

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def start(self, session: Session, writes: TurnWrites) -> None:
        """Continue where the last session stopped; a flag or a new day may have answered the
        question meanwhile, and then that is written as its answer."""
        if self._inbox is None:
            return
        self._inbox.start(session)
        last = self._last
        if last is None or last.answered_at is not None:
            return
        if self.budget.spent_limits(writes.at):
            self._put(
                Inquiry(last.question_id, BUDGET_INQUIRY, last.about), last.run_id, last.asked_at
            )
            return
        self._settled.append(last.question_id)
        answer = {"decision": RAISE, "comment": "The budget was raised before the run went on."}
        writes.inquiry_answers.append(
            InquiryAnswered(last.question_id, "", msgspec.json.encode(answer))
        )

    def ask(self, journal: Journal, writes: TurnWrites) -> Inquiry | None:
        """Ask for more if a limit is spent, unless a person said `stop` to exactly those limits;
        return the question."""
        spent = self.budget.spent_limits(writes.at)
        if self._inbox is None or not spent or self._open is not None:
            return None
        limits = ", ".join(self._describe(word) for word in spent)
        about = f"run {journal.run_id} has spent its budget ({limits}): raise it, or stop?"
        last = self._last
        if last is not None and last.about == about and (last.answer or {}).get("decision") == STOP:
            return None
        inquiry = Inquiry(journal.take_dispatch_id(), BUDGET_INQUIRY, about)
        writes.inquiries.append(inquiry)
        self._put(inquiry, journal.run_id, writes.at)
        return inquiry

    def is_answered_by(self, reply: Reply) -> bool:
        return self._open is not None and reply.dispatch_id == self._open.dispatch_id

    def take_answer(self, reply: Reply, writes: TurnWrites) -> RefusedAnswer | None:
        """Act on the answer, or return the refusal that keeps the question open."""
        ask = self._open
        if ask is None:
            return None
        if reply.refused:
            return RefusedAnswer(reply.refused, reply.reason)
        self._settled.append(ask.dispatch_id)
        try:
            answered = self._apply(ask.dispatch_id, reply, writes.at)
        except (ValueError, SourceError) as error:
            self._to_send = True
            end = "." if isinstance(error, SourceError) else ""
            return RefusedAnswer("Malformed", f"{error}{end}")
        writes.inquiry_answers.append(answered)
        self._last = OpenInquiry(
            ask.dispatch_id,
            ask.run_id,
            BUDGET_INQUIRY,
            ask.prompt,
            ask.at,
            writes.at,
            answered.by,
            msgspec.json.decode(answered.answer),
        )
        self._open = None
        return None

    def publish(self) -> None:
        """Pass the question to the inbox, now that it is committed."""
        if self._inbox is None:
            return
        for question_id in self._settled:
            self._inbox.settle(question_id)
        self._settled = []
        if self._to_send and self._open is not None:
            self._to_send = False
            self._inbox.send([self._open])

    async def close(self) -> None:
        if self._inbox is not None:
            await self._inbox.close()

    def _apply(self, question_id: int, reply: Reply, at: float) -> InquiryAnswered:
        """Raise the limits if the answer says so; ValueError or SourceError if it cannot be
        read."""
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
        self.budget.change_limits(read_limits(merged), at)
        self._words = merged
        return InquiryAnswered(question_id, reply.answered_by, reply.content, {"budget": words})

    def _put(self, inquiry: Inquiry, run_id: int, at: float) -> None:
        """Open the question; it goes out with the next `publish`."""
        self._open = Ask(
            inquiry.question_id, run_id, "", BUDGET_INQUIRY, 1, HUMAN, inquiry.about, at=at
        )
        self._to_send = True

    def _describe(self, word: str) -> str:
        day = f" on {self.budget.day_name}" if word.startswith("day.") else ""
        return f"{word}={self._words.get(word, '…')}{day}"
