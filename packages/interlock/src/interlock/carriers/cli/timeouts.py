"""The five timeouts of an agent, and which expires next.

Pure. Time is the awake time of the machine. A suspended laptop is noticed because the wall clock
went on; an agent that was suspended gets its whole silence again, because its connections are gone
and it must retry. A `LineReader`, which belongs to a profile, says what a line of output means.
"""

from collections.abc import Callable, Iterable
from math import inf, isnan
from typing import Literal

import msgspec

from interlock.system.errors import SourceError
from interlock.system.process_tree import OutputLine


class Alive(msgspec.Struct, frozen=True, gc=False):
    """The agent goes on; it waits for no permission and no limit."""


class ToolBegan(msgspec.Struct, frozen=True, gc=False):
    """A tool began; silence counts against the tool timeout until it ends."""

    tool_id: str


class ToolEnded(msgspec.Struct, frozen=True, gc=False):
    tool_id: str


class ResultSeen(msgspec.Struct, frozen=True, gc=False):
    """The agent gave its result, good or bad, and should exit soon."""


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
    """The timeouts in seconds; `math.inf` turns one off.

    The defaults allow every healthy habit that is known, such as retries after 300 silent seconds
    and an exit 5 seconds after the result.
    """

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
    """True if time for which the machine was suspended counts against `wall`."""

    def __post_init__(self) -> None:
        for name in (*CLOCK_NAMES, "grace"):
            seconds = getattr(self, name)
            if isnan(seconds) or seconds < 0:
                raise SourceError(f"the clock {name} must be 0 or more seconds, not {seconds}")


class DueClock(msgspec.Struct, frozen=True):
    name: ClockName
    when: float


class TimeoutWatch:
    """The times of one agent."""

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
        """Note bytes on stdout."""
        self.heard_at = now
        if self.first_byte_at is None:
            self.first_byte_at = now

    def note_stderr(self, now: float) -> None:
        """Note bytes on stderr, a sign of life but no answer."""
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
        """Return whether the machine was suspended since the last check; if so, forgive the
        silence."""
        nap = wall - now - self._ahead
        self._ahead = wall - now
        if nap < _SUSPEND_SECONDS:
            return False
        self.slept += nap
        self.heard_at = self._woke_at = now
        return True

    def next_due(self) -> DueClock:
        """Return the timeout that expires next if nothing more comes."""
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
