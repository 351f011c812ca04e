"""A tell: something in a change that a machine can point at and a reviewer should look at."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "notice"]


class DiffFinding(msgspec.Struct, frozen=True, order=True):
    path: str
    line: int
    kind: str
    sentence: str
    severity: Severity = "warning"
