"""Tools for tests of circuits: scripted agents, a clock that jumps, a temporary project.

Nothing here replaces the engine: a test runs the real loop on a real journal. Only the agents are
scripted, and business time passes as soon as nobody works.
"""

import asyncio
import heapq
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.circuits import Circuit
from interlock.api.project import AgentLike, Project
from interlock.api.run import Event
from interlock.carriers.background import TaskCarrier, wait_until
from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.function import (
    Dispatch,
    build_crash,
    build_dispatch,
    build_reply,
    call_function,
)
from interlock.engine.circuit import RATE_LIMIT
from interlock.engine.verify.finding import Finding
from interlock.system.clock import Clock
from interlock.system.errors import UsageError

START = 1_767_225_600.0
"""The start of a fake clock by default: 2026-01-01, midnight UTC."""
_ROUNDS = 16
"""The rounds of an event loop without a question for the time, after which it is at rest."""


class ManualClock:
    """A clock that moves to its next timer only when `advance` is called.

    `reads` counts how often it was asked, which tells a busy loop from one at rest.
    """

    def __init__(self, now: float = START) -> None:
        self.time = now
        self.reads = 0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()
        self._numbers = count()

    def now(self) -> float:
        self.reads += 1
        return self.time

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        number = next(self._numbers)
        heapq.heappush(self._timers, (when, number, callback))
        return lambda: self._cancelled.add(number)

    def forget_timers(self) -> None:
        """Drop all timers, as a new process would."""
        self._timers = []

    def advance(self) -> bool:
        """Move to the next timer and let it ring; return False if there is none."""
        found = self.pop_timer()
        if found is None:
            return False
        self.time = max(self.time, found[0])
        found[1]()
        return True

    def pop_timer(self) -> tuple[float, Callable[[], None]] | None:
        """Remove and return the next timer that was not cancelled."""
        while self._timers:
            when, number, callback = heapq.heappop(self._timers)
            if number not in self._cancelled:
                return when, callback
        return None


class FakeClock:
    """Business time for `Project(clock=…)`.

    It stands while anybody works, and jumps to the next timeout, delay or end of a rate limit as
    soon as everybody waits. Nothing sleeps. Functions and `Script` hold it while they work. It
    cannot see other processes at work, so it is not for circuits whose agents are commands or agent
    CLIs.
    """

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._reads = 0
        self._held = 0
        self._lock = threading.Lock()
        self._timers: dict[asyncio.AbstractEventLoop, ManualClock] = {}
        self._watched: set[asyncio.AbstractEventLoop] = set()

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        self._reads += 1
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at that time, unless the returned function is called first."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._timers = {each: own for each, own in self._timers.items() if not each.is_closed()}
            timers = self._timers.setdefault(loop, ManualClock(self._now))
        cancel = timers.call_at(when, callback)
        self._watch_loop(loop)
        return cancel

    def advance(self, seconds: float) -> None:
        """Let time pass, from any thread. Timers that are due ring at once in a running run, and on
        resume in another."""
        if seconds < 0:
            raise UsageError("time does not run backwards: give seconds from 0")
        with self._lock:
            self._now += seconds
            loops = [each for each in self._timers if not each.is_closed()]
        for loop in loops:
            loop.call_soon_threadsafe(self._watch_loop, loop)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep time from jumping until the context is left."""
        loop = asyncio.get_running_loop()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._watch_loop(loop)

    def _watch_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._watched:
            self._watched.add(loop)
            loop.call_soon(self._jump_when_idle, loop, self._reads, 0)

    def _jump_when_idle(self, loop: asyncio.AbstractEventLoop, reads: int, rounds: int) -> None:
        """Jump when the loop has gone round often enough without asking for the time."""
        timers = self._timers.get(loop)
        if self._held or timers is None:
            self._watched.discard(loop)  # whoever lets go of it watches again
            return
        if rounds < _ROUNDS:
            quiet = rounds + 1 if self._reads == reads else 0
            loop.call_soon(self._jump_when_idle, loop, self._reads, quiet)
            return
        self._watched.discard(loop)
        found = timers.pop_timer()
        if found is not None:
            self._now = max(self._now, found[0])
            found[1]()
            self._watch_loop(loop)


class Delay(msgspec.Struct, frozen=True):
    """A scripted answer, or failure, that comes after so many seconds of business time."""

    seconds: float
    answer: Any = msgspec.field(default_factory=dict)


class Silence(msgspec.Struct, frozen=True):
    """A scripted silence: no answer ever comes, and the step's timeout decides."""


class RateLimit(msgspec.Struct, frozen=True):
    """A scripted rate limit of so many seconds; the same dispatch comes again after it and takes
    the next answer."""

    seconds: float
    reason: str = "the script says so"


class Script(Mapping[str, "Carrier"]):
    """Scripted agents, by role: give it as `agents` of a run.

    A list gives one entry each time the role is asked; anything else answers every time. An entry
    is an answer (text, a dict, a record, a whole `Reply`), an exception (a crash), a callable that
    takes the dispatch (plain or async), `Delay`, `Silence` or `RateLimit`. At the end of a list,
    the role crashes with a reason that says so.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._asked: dict[str, list[Dispatch]] = defaultdict(list)
        self._roles: dict[str, Carrier] = {
            role: _ScriptedRole(role, given, self._asked[role].append)
            for role, given in answers.items()
        }

    def __getitem__(self, role: str) -> Carrier:
        return self._roles[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._roles)

    def __len__(self) -> int:
        return len(self._roles)

    def dispatches(self, role: str = "") -> list[Dispatch]:
        """Return the dispatches of a role, in order; without a role, those of all roles by
        number."""
        if role:
            return list(self._asked.get(role, ()))
        every = (each for asked in self._asked.values() for each in asked)
        return sorted(every, key=lambda each: each.id)


class _ScriptedRole(TaskCarrier):
    """The carrier of one role of a script."""

    def __init__(self, role: str, given: Any, remember: Callable[[Dispatch], None]) -> None:
        super().__init__()
        self._role = role
        self._entries = iter(given) if isinstance(given, list | tuple) else None
        self._always = given
        self._remember = remember

    async def answer(self, ask: Ask) -> Reply:
        self._remember(build_dispatch(ask, self.session.steps.get(ask.step)))
        nothing = AssertionError(f"the script has no answer left for {self._role}")
        entry = self._always if self._entries is None else next(self._entries, nothing)
        return await self._act(entry, ask)

    async def _act(self, entry: Any, ask: Ask) -> Reply:
        clock = self.session.clock
        if isinstance(entry, Delay):
            await wait_until(clock, clock.now() + entry.seconds)
            return await self._act(entry.answer, ask)
        if isinstance(entry, Silence):
            never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            return await never
        if isinstance(entry, RateLimit):
            until = clock.now() + entry.seconds
            return Reply(ask.dispatch_id, failure=RATE_LIMIT, reason=entry.reason, until=until)
        if isinstance(entry, type) and issubclass(entry, BaseException):
            entry = entry()
        if isinstance(entry, BaseException):
            return build_crash(ask, entry)
        if callable(entry):
            return await call_function(entry, ask, self.session)
        try:
            return build_reply(ask, entry, self.session.steps.get(ask.step))
        except TypeError as error:
            return build_crash(ask, error)


class Trial(msgspec.Struct, frozen=True):
    """The results of cases that a test sent through a circuit."""

    status: str
    """The run's status: `done`, `unhealthy`, `waiting`, …"""
    ends: dict[str, str]
    """By case: the end it came to, or the step where it stands."""
    events: tuple[Event, ...]
    text: str
    """The output of `interlock explain` for each case; print it where a test fails."""

    def path(self, case: str) -> list[str]:
        """Return the steps of a case, and its end."""
        moves = [each for each in self.events if each.case_id == case]
        return [*(each.step for each in moves), *([moves[-1].to] if moves else [])]

    def __str__(self) -> str:
        return self.text


def run_cases(
    circuit: "str | Path | Circuit",
    cases: Iterable[Mapping[str, Any]],
    agents: Mapping[str, AgentLike] | AgentLike,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as the flag --set
    clock: Clock | None = None,
    timeout: float = 60,
) -> Trial:
    """Send cases through a circuit in a temporary project, under a fake clock, until the run is
    settled.

    The role `human` can be scripted like any other; otherwise the run stops at its gates.
    TimeoutError after `timeout` real seconds.
    """
    with Project.temporary(clock=clock or FakeClock()) as project:
        run = project.start(circuit, cases, agents=agents, set=set)
        result = run.wait(timeout)
        found = run.cases()
        return Trial(
            result.status,
            {each.case_id: each.end or each.step for each in found},
            tuple(run.events()),
            "\n\n".join(str(run.explain(each.case_id)) for each in found),
        )


def make_project(
    folder: Path,
    *,
    circuits: Mapping[str, str] | None = None,
    settings: str = "",
    clock: Clock | None = None,
) -> Project:
    """Create a project in a test's folder, with circuits as YAML by name and the text of its
    interlock.toml."""
    if settings:
        (folder / "interlock.toml").write_text(settings, encoding="utf-8")
    for name, text in (circuits or {}).items():
        (folder / "circuits").mkdir(exist_ok=True)
        (folder / "circuits" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Project(folder, clock=clock)


def assert_sound(circuit: "str | Path | Circuit", project: Path = Path()) -> None:
    """Raise AssertionError if the circuit may not be run, with every finding, its place, its remedy
    and its counter-example."""
    own = circuit if isinstance(circuit, Circuit) else Circuit.load(circuit, project)
    report = own.verify()
    if not report.sound:
        errors = [each for each in report.findings if each.level == "error"]
        raise AssertionError(
            "\n".join([f"circuit {own.name} is not sound:", *map(_format_finding, errors)])
        )


def _format_finding(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}: " if finding.line else ""
    lines = [f"- {place}{finding.message}", f"  {finding.fix}"]
    if finding.counter_example is not None:
        lines.append(f"  for example: {msgspec.json.encode(finding.counter_example).decode()}")
    return "\n".join(lines)
