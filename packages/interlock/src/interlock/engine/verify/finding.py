"""Records of a proof: findings with stable ids, and the worst case of a circuit."""

from typing import Any, Literal

import msgspec

Level = Literal["error", "warning", "note"]


class Finding(msgspec.Struct, frozen=True):
    """One fault or remark: its place, and what to write instead."""

    id: str
    level: Level
    message: str
    fix: str
    file: str = ""
    line: int = 0
    subject: str = ""
    counter_example: Any = None


class Hop(msgspec.Struct, frozen=True):
    """One move on a path through a circuit."""

    step: str
    signal: str
    rule: str
    to: str


class WorstCase(msgspec.Struct, frozen=True):
    """The most dispatches one case can cost.

    Exact means that some order of signals reaches it, provided the values that guards read are
    independent from step to step. Otherwise it is an upper bound.
    """

    dispatches: int
    exact: bool
    path: tuple[Hop, ...] = ()
    reason: str = ""


class VerifyReport(msgspec.Struct, frozen=True):
    """All findings about one circuit."""

    circuit: str
    version: int
    findings: tuple[Finding, ...]
    worst_case: WorstCase

    @property
    def sound(self) -> bool:
        return not any(finding.level == "error" for finding in self.findings)
