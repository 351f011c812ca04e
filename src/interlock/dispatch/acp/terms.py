"""On which terms an agent works: what it may do unasked, what never, and how long it may take.

Knows the words of `[acp]` in interlock.toml. Refuses to know the protocol: no SDK is loaded here.
Least privilege: an agent may read; for everything else somebody is asked, and silence is a no.
"""

from typing import Literal

import msgspec

from interlock.core.format import seconds_of

Verdict = Literal["allow", "ask", "reject"]
_STRICT: tuple[Verdict, ...] = ("reject", "ask", "allow")


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict for each kind of tool the protocol knows."""

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

    def verdict(self, *kinds: str | None) -> Verdict:
        """The strictest of what is said about these kinds; a kind that nobody named is `other`."""
        known = [kind if kind in self.__struct_fields__ else "other" for kind in kinds if kind]
        found = [getattr(self, kind) for kind in known or ["other"]]
        return min(found, key=_STRICT.index)


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[acp]`: times are words like `10m`, files are those of the work folder."""

    permissions: Policy = Policy()
    files: Literal["none", "read", "write"] = "none"
    permission_timeout: str = "10m"
    start_timeout: str = "2m"
    silence_timeout: str = "10m"
    tool_timeout: str = "1h"
    timeout: str = "2h"

    def seconds(self, name: str) -> float:
        """One of the times, in seconds; CircuitError if it is none."""
        return seconds_of(getattr(self, name))
