"""The ballot: what kind each failure of a suite is by its words, and what its family says."""

from collections import Counter
from collections.abc import Iterable

from interlock.rca.analyst.triage import TriageResult, triage
from interlock.rca.intake import failure_of
from interlock.rca.knowledge.looks import CaseView


class MajorityVote:
    """What kind each failure is by its words, and what its family says: an odd one out among
    failures with one cause is taken for what most of them are."""

    def __init__(self, looks: Iterable[CaseView]) -> None:
        self._kinds: dict[int, TriageResult] = {}
        self._family_of: dict[int, str] = {}
        self._votes: dict[str, Counter[str]] = {}
        for look in looks:
            kind = triage(failure_of(look.case_id, look.input))
            family = str(look.input.get("family") or look.case_id)
            self._kinds[look.case_no] = kind
            self._family_of[look.case_no] = family
            self._votes.setdefault(family, Counter())[kind.category] += round(100 * kind.confidence)

    def kind_of(self, case_no: int) -> TriageResult | None:
        own = self._kinds.get(case_no)
        if own is None:
            return None
        votes = self._votes[self._family_of[case_no]]
        category, most = min(votes.items(), key=lambda vote: (-vote[1], vote[0]))
        if category == own.category or 2 * most < votes.total():
            return own
        share = most / votes.total()
        return TriageResult(category, round(share, 4), (f"most of its family are {category}",))
