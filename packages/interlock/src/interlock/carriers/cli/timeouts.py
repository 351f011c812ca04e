"""The five timeouts of an agent: how long it may take for each thing, and which expires next.

Pure: it is told what came and when, and says when to look again. Time is the awake time of the
machine; a suspended laptop is noticed because the wall clock went on without it, and an agent that
slept along is given its whole silence again: its connections are gone, it must retry. What a line
of output means is said by a `LineReader`, which belongs to a profile.
"""

from collections.abc import Callable, Iterable
from math import inf, isnan
from typing import Literal

import msgspec

from interlock.system.errors import SourceError
from interlock.system.process_tree import OutputLine


class Alive(msgspec.Struct, frozen=True, gc=False):
    """The agent goes on: it waits neither for a permission nor for a limit any more."""


class ToolBegan(msgspec.Struct, frozen=True, gc=False):
    """A tool is open until its end is seen: silence now counts against the tool clock."""

    tool_id: str


class ToolEnded(msgspec.Struct, frozen=True, gc=False):
    tool_id: str


class ResultSeen(msgspec.Struct, frozen=True, gc=False):
    """The agent gave its result, good or bad: it should exit soon."""


class WaitsForPermission(msgspec.Struct, frozen=True, gc=False):
    what: str = ""


class RateLimited(msgspec.Struct, frozen=True, gc=False):
    """The account is limited; until `resets_at` (seconds since the epoch) silence is no fault."""

    resets_at: float | None = None


StreamSign = Alive | ToolBegan | ToolEnded | ResultSeen | WaitsForPermission | RateLimited
LineReader = Callable[[OutputLine], Iterable[StreamSign]]


ClockName = Literal["first_byte", "silence", "after_result", "tool", "wall"]
CLOCK_NAMES: tuple[ClockName, ...] = ("first_byte", "silence", "after_result", "tool", "wall")
_MAX_TOOLS = 1_000
_MAX_ID = 200
_SUSPEND_SECONDS = 5.0


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; `math.inf` turns a clock off. The defaults let every healthy habit pass that is
    known: retries after 300 silent seconds, an exit 5 seconds after the result."""

    first_byte: float = 60.0
    """From the start to the first byte on stdout."""
    silence: float = 600.0
    """Between two bytes, on stdout or stderr, while no tool is open."""
    after_result: float = 15.0
    """From the result to the exit."""
    tool: float = 1_800.0
    """The same as `silence`, while a tool is open."""
    wall: float = 7_200.0
    """From the start to the exit."""
    grace: float = 5.0
    """Between SIGTERM and SIGKILL."""
    sleep_counts: bool = False
    """Whether the time for which the machine was suspended counts against `wall`."""

    def __post_init__(self) -> None:
        for name in (*CLOCK_NAMES, "grace"):
            seconds = getattr(self, name)
            if isnan(seconds) or seconds < 0:
                raise SourceError(f"the clock {name} must be 0 or more seconds, not {seconds}")


class DueClock(msgspec.Struct, frozen=True):
    name: ClockName
    when: float


class TimeoutWatch:
    """What is known of one agent's time."""

    def __init__(self, timeouts: Timeouts, now: float, wall: float) -> None:
        self.timeouts = timeouts
        self.started = now
        self.heard_at = now
        self.first_byte_at: float | None = None
        self.result_at: float | None = None
        self.tools: dict[str, float] = {}
        self.permission: str | None = None
        self.limited = False
        self.resets_at: float | None = None
        self.slept = 0.0
        self._ahead = wall - now
        self._woke_at = now

    def note_stdout(self, now: float) -> None:
        """Bytes on stdout."""
        self.heard_at = now
        if self.first_byte_at is None:
            self.first_byte_at = now

    def note_stderr(self, now: float) -> None:
        """Bytes on stderr: a sign of life, but no answer."""
        self.heard_at = now

    def note_sign(self, sign: StreamSign, now: float) -> None:
        match sign:
            case Alive():
                self._clear_waits()
            case ToolBegan(tool_id):
                self._clear_waits()
                if len(self.tools) < _MAX_TOOLS:
                    self.tools.setdefault(tool_id[:_MAX_ID], now)
            case ToolEnded(tool_id):
                self._clear_waits()
                self.tools.pop(tool_id[:_MAX_ID], None)
            case ResultSeen():
                self._clear_waits()
                self.result_at = now
            case WaitsForPermission(what):
                self.permission = what[:_MAX_ID]
            case RateLimited(resets_at):
                known = resets_at is not None and not isnan(resets_at)
                self.limited, self.resets_at = True, resets_at if known else None

    def check_suspend(self, now: float, wall: float) -> bool:
        """Whether the machine slept since the last check; the silence is then forgiven."""
        nap = wall - now - self._ahead
        self._ahead = wall - now
        if nap < _SUSPEND_SECONDS:
            return False
        self.slept += nap
        self.heard_at = self._woke_at = now
        return True

    def next_due(self) -> DueClock:
        """The timeout that expires next if nothing more comes."""
        timeouts = self.timeouts
        wall = self.started + timeouts.wall - (self.slept if timeouts.sleep_counts else 0.0)
        other = self._next_besides_wall()
        return other if other.when <= wall else DueClock("wall", wall)

    def _next_besides_wall(self) -> DueClock:
        timeouts = self.timeouts
        if self.result_at is not None:
            return DueClock(
                "after_result", max(self.result_at, self._woke_at) + timeouts.after_result
            )
        if self.first_byte_at is None:
            return DueClock("first_byte", max(self.started, self._woke_at) + timeouts.first_byte)
        if self.tools:
            return DueClock("tool", self.heard_at + timeouts.tool)
        return DueClock("silence", max(self.heard_at, self._limit_end()) + timeouts.silence)

    def _limit_end(self) -> float:
        return self.resets_at - self._ahead if self.limited and self.resets_at else -inf

    def _clear_waits(self) -> None:
        self.permission = None
        self.limited, self.resets_at = False, None
