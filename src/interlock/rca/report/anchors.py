"""Anchors: the names by which a link leads to a cause or a case, also in a report written anew.

Knows that ids come from outside: one that is odd, or there twice, gets a number of the page.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from interlock.rca.report.outline import Outline

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,47}")


class Anchors(msgspec.Struct, frozen=True):
    """In the order of the page: of the cause with number n, and of the nth failure."""

    causes: tuple[str, ...]
    cases: tuple[str, ...]

    def cause(self, number: int) -> str:
        return self.causes[number - 1]

    def case(self, number: int) -> str:
        return self.cases[number - 1]


def anchors(told: Outline) -> Anchors:
    families = [cause.family_id for cause in told.causes]
    cases = [case.case_id for cause in told.causes for case in cause.cases]
    return Anchors(_named(families, "family-", "f"), _named(cases, "case-", "c"))


def _named(ids: Sequence[str], prefix: str, short: str) -> tuple[str, ...]:
    met = Counter(ids)
    return tuple(
        f"{prefix}{each}" if met[each] == 1 and _PLAIN.fullmatch(each) else f"{short}{number}"
        for number, each in enumerate(ids, 1)
    )
