"""How an agent's process ended: the facts, for whoever judges what they are worth.

A good exit code proves nothing; neither does a bad one. That is why all the rest is here.
"""

from typing import Literal

import msgspec

from interlock.agents.cli.health import AgentHealth
from interlock.agents.cli.timeouts import ClockName, Timeouts
from interlock.system.process_tree import Survivor

By = Literal["itself", "us"] | ClockName


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended. Times are those of the clock that was given."""

    exit_code: int | None
    """Negative for a signal. None: it hangs in the kernel and cannot be waited for."""
    by: By
    started_at: float
    ended_at: float
    first_byte_at: float | None = None
    result_at: float | None = None
    """When the reader last saw a result that counts."""
    signalled_at: float | None = None
    """When we first sent it, or what it left behind, a signal: what came later does not count."""
    stderr: bytes = b""
    """The last 16 KB of it, before our own signal."""
    lines: int = 0
    cut_lines: int = 0
    stdout_bytes: int = 0
    open_tools: tuple[str, ...] = ()
    left: tuple[Survivor, ...] = ()
    """What it left running, or was ended with it: everything but the agent itself."""
    remaining: tuple[Survivor, ...] = ()
    """What lives although it was killed. Empty, unless the kernel holds it."""
    slept: float = 0.0
    last: AgentHealth
    """How it stood in the moment before it ended or was ended."""


def why(ended: ProcessEnd, clocks: Timeouts) -> str:
    """One sentence for a person, without judging the answer."""
    if ended.by == "itself":
        return _exit_words(ended.exit_code)
    if ended.by == "us":
        return "it was stopped"
    return _RANG[ended.by].format(seconds=f"{getattr(clocks, ended.by):g}")


def _exit_words(code: int | None) -> str:
    if code is None:
        return "its exit code is not known"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


_RANG: dict[ClockName, str] = {
    "first_byte": "it said nothing within {seconds} s of its start and was ended",
    "silence": "it was silent for {seconds} s and was ended",
    "after_result": "it gave its result, did not exit within {seconds} s and was ended",
    "tool": "a tool was open and it was silent for {seconds} s; it was ended",
    "wall": "it ran for {seconds} s and was ended",
}
