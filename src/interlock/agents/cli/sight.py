"""What a line of an agent's stream means to the clocks, and who says so.

A `Reader` belongs to a profile: it is handed every line, keeps of it what it wants, and tells what
it saw. Nothing here knows the language of any agent.
"""

from collections.abc import Callable, Iterable

import msgspec


class OutputLine(msgspec.Struct, frozen=True, gc=False):
    """One line of stdout as bytes, without its end of line. Never longer than the limit."""

    text: bytes
    cut: bool = False
    """It was longer than the limit; `text` is how it began."""
    half: bool = False
    """The stream ended before the line did."""
    late: bool = False
    """It came after our own signal to the agent: it does not count, and its sights are ignored."""


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


Sight = Alive | ToolBegan | ToolEnded | ResultSeen | WaitsForPermission | RateLimited
Reader = Callable[[OutputLine], Iterable[Sight]]
