"""`[acp]` in interlock.toml: what an agent may do unasked, what never, and its time limits.

An agent may read; for everything else a person is asked, and silence is a no. The protocol's SDK is
not loaded here.
"""

from typing import Literal

import msgspec

from interlock.carriers.cli.timeouts import CLOCK_NAMES, Timeouts
from interlock.system.errors import SourceError
from interlock.system.time import parse_duration

Verdict = Literal["allow", "ask", "reject"]
_CLOCK_KEYS = {*CLOCK_NAMES, "grace"}
_STRICTEST_FIRST: tuple[Verdict, ...] = ("reject", "ask", "allow")


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict for each kind of tool in the protocol."""

    read: Verdict = "allow"
    search: Verdict = "ask"
    edit: Verdict = "ask"
    delete: Verdict = "ask"
    move: Verdict = "ask"
    execute: Verdict = "ask"
    fetch: Verdict = "ask"
    think: Verdict = "ask"
    switch_mode: Verdict = "ask"
    other: Verdict = "ask"

    def find_verdict(self, *kinds: str | None) -> Verdict:
        """Return the strictest verdict for these kinds; an unknown kind counts as `other`."""
        known = [kind if kind in self.__struct_fields__ else "other" for kind in kinds if kind]
        found = [getattr(self, kind) for kind in known or ["other"]]
        return min(found, key=_STRICTEST_FIRST.index)


class AcpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of agents that speak the Agent Client Protocol."""

    permissions: Policy = Policy()
    files: Literal["none", "read", "write"] = "none"
    """True if the agent may read and write files of its work folder through Interlock."""
    permission_timeout: str = "10m"
    """How long a permission question waits for a person before it is denied."""
    let_in: tuple[str, ...] = ()
    """The environment variables of Interlock that the agent may see, such as GEMINI_*."""
    env: dict[str, str] = {}
    """Environment variables to set for the agent."""
    clocks: dict[str, float] = {}
    """Seconds for the agent's timeouts, by name."""
    folder: Literal["own", "project"] = "own"
    """`own` or `project`: the folder in which the agent works."""
    resume: bool = True
    """True if a conversation continues after a restart, where the agent can load it."""

    @property
    def permission_seconds(self) -> float:
        """Return the seconds that a question waits; UsageError if the setting is not a time."""
        return parse_duration(self.permission_timeout)

    @property
    def timeouts(self) -> Timeouts:
        """Return the timeouts; SourceError for an unknown name."""
        if not self.clocks.keys() <= _CLOCK_KEYS:
            known = ", ".join(sorted(_CLOCK_KEYS))
            raise SourceError(f"[acp] clocks: use only {known}")
        return msgspec.convert(self.clocks, Timeouts)
