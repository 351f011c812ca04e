"""Build the outline that all documents share: every case in exactly one cause, causes by
importance.

Sums up the cases of a family, and gives each cause and case an anchor that stays the same when a
report is rewritten. Contradictory findings (a member that is no case, a case in two families) still
add up here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import msgspec

from interlock.system.text import find_first_line, format_line
from interlock.system.time import parse_time
from interlock_rca.records import (
    CaseFinding,
    Evidence,
    FindingFamily,
    Findings,
    Reproduction,
    Suspect,
)
from interlock_rca.report.words import (
    KINDS,
    STATES,
    find_first_kind,
    find_kind,
    find_state,
    rank_severity,
)

_LONGEST_TITLE = 160
_LOOSE = FindingFamily(family_id="", title="Not grouped yet", members=())


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A family, summed up over its cases. The first case represents the others."""

    number: int
    family_id: str
    title: str
    cases: tuple[CaseFinding, ...]
    kind: str
    at_first: str
    """The kind from triage, if no later look was sure of one; else empty."""
    defect_type: str
    severity: str
    """The worst severity of its cases."""
    component: str
    message: str
    score: float | None
    suspects: tuple[Suspect, ...]
    reproduction: Reproduction | None
    """The result of running the test of one of its cases."""
    evidence: tuple[Evidence, ...]
    versions: tuple[str, ...]
    states: Mapping[str, int]
    """The number of cases in each state, in the order of STATES."""
    regression: bool
    known: bool
    """True if it was seen before this suite."""
    since: str
    """The time when it was first seen, if known."""
    seen: int
    loose: bool
    """True for the ungrouped cases, which are no family."""
    inherited: bool
    """True if an earlier suite found it, with its suspects; they are not new in this one."""
    question_id: int
    """The question that a reviewer answers for all of it; 0 if none is open."""

    @property
    def lead(self) -> CaseFinding:
        return self.cases[0]

    @property
    def beyond(self) -> str:
        """Return the rest of the message after the title, if it begins with the title."""
        rest = self.message.removeprefix(self.title)
        begins = rest.lstrip(" .:;,\n")
        is_torn = rest[:1].isalnum() or (rest[:1] == "." and begins[:1].islower())
        return self.message if is_torn else begins

    @property
    def size(self) -> int:
        return len(self.cases)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The content of all documents, in order."""

    findings: Findings
    causes: tuple[Cause, ...]
    kinds: Mapping[str, int]
    """Cases by kind of cause; only kinds that occur."""
    states: Mapping[str, int]

    @property
    def total(self) -> int:
        return len(self.findings.cases)

    @property
    def families(self) -> tuple[Cause, ...]:
        return tuple(cause for cause in self.causes if not cause.loose)


def build_outline(findings: Findings) -> Outline:
    """Return causes by importance: product first, then by size; ungrouped cases come last."""
    here = Counter(case.symptom_id for case in findings.cases if case.symptom_id)
    causes = [_build_cause(family, cases, here) for family, cases in _group_cases(findings)]
    causes.sort(key=_sort_key)
    causes = [
        msgspec.structs.replace(cause, number=number) for number, cause in enumerate(causes, 1)
    ]
    kinds: Counter[str] = Counter()
    for cause in causes:
        kinds[cause.kind] += cause.size
    return Outline(
        findings=findings,
        causes=tuple(causes),
        kinds={kind: kinds[kind] for kind in KINDS if kinds[kind]},
        states=_count_states(findings.cases),
    )


def is_known(case: CaseFinding, here: Mapping[int, int]) -> bool:
    """Return True if the case or its cause was seen before this suite."""
    return case.inherited or _is_repeated(case, here)


def _is_repeated(case: CaseFinding, here: Mapping[int, int]) -> bool:
    return case.recalled or case.regression or case.seen > here.get(case.symptom_id, 1)


def _group_cases(findings: Findings) -> list[tuple[FindingFamily, tuple[CaseFinding, ...]]]:
    waiting: dict[str, list[CaseFinding]] = {}
    for case in findings.cases:
        waiting.setdefault(case.case_id, []).append(case)
    found = []
    for family in findings.families:
        cases = [case for name in family.members for case in waiting.pop(name, ())]
        if cases:
            found.append((family, tuple(cases)))
    if left := tuple(case for cases in waiting.values() for case in cases):
        found.append((_LOOSE, left))
    return found


def _build_cause(
    family: FindingFamily, cases: tuple[CaseFinding, ...], here: Mapping[int, int]
) -> Cause:
    loose = family is _LOOSE
    suspects = () if loose else next((case.suspects for case in cases if case.suspects), ())
    stored = _complete_title(format_line(family.title), cases)
    known = [case for case in cases if is_known(case, here)]
    return Cause(
        number=0,
        family_id=family.family_id,
        title=_choose_title(stored, suspects, cases),
        cases=cases,
        kind="unknown" if loose else _choose_kind(cases),
        at_first="" if loose else _choose_first_kind(cases),
        defect_type="" if loose else _find_first_text(case.defect_type for case in cases),
        severity=min((case.severity for case in cases), key=rank_severity),
        component="" if loose else _find_first_text(case.component for case in cases),
        message="" if loose else _find_first_text(case.message for case in cases),
        score=None if loose else next(filter(_is_score, (case.score for case in cases)), None),
        suspects=suspects,
        reproduction=None
        if loose
        else next((case.reproduction for case in cases if case.reproduction), None),
        evidence=() if loose else _merge_evidence(cases),
        versions=tuple(sorted({case.version for case in cases if case.version})),
        states=_count_states(cases),
        regression=any(case.regression for case in cases),
        known=bool(known),
        since=_find_earliest(case.first_seen for case in known if _is_repeated(case, here)),
        seen=max(case.seen for case in cases),
        loose=loose,
        inherited=any(case.inherited for case in cases),
        question_id=0 if loose else _find_question(cases),
    )


def _sort_key(cause: Cause) -> tuple[bool, int, int, int, str, str]:
    rank = tuple(KINDS).index(cause.kind)
    return (
        cause.loose,
        rank,
        -cause.size,
        rank_severity(cause.severity),
        cause.title,
        cause.family_id,
    )


_CLEAR = 0.7
"""The chance at which a suspect's change names the cause better than one test's message."""


def _choose_title(stored: str, suspects: Sequence[Suspect], cases: Sequence[CaseFinding]) -> str:
    """Return the stored title, or the change of a clear suspect if that only repeats a failure."""
    title = stored or _make_title(cases[0])
    start = title.removesuffix("…")
    if start and any(" ".join(case.error.split()).startswith(start) for case in cases):
        return _name_clear_suspect(suspects) or title
    return title


def _name_clear_suspect(suspects: Sequence[Suspect]) -> str:
    first = next(iter(suspects), None)
    if first is None or not first.subject or first.proof == "cleared" or first.then:
        return ""
    is_clear = first.proof == "proven" or (_is_score(first.score) and first.score >= _CLEAR)
    if not is_clear:
        return ""
    return f"{format_line(first.subject, _LONGEST_TITLE)} ({first.commit[:12]})"


def _complete_title(title: str, cases: Iterable[CaseFinding]) -> str:
    """Restore a title that was cut for storage, up to the first sentence of a message."""
    if not title.endswith("…"):
        return title
    start = title[:-1]
    messages = (find_first_line(case.message, 2 * _LONGEST_TITLE) for case in cases)
    found = next((each for each in messages if each.startswith(start)), "")
    sentence = start + found[len(start) :].partition(". ")[0].removesuffix(".")
    return format_line(sentence, _LONGEST_TITLE) if found else title


def _find_question(cases: Iterable[CaseFinding]) -> int:
    return next((each.question_id for each in cases if find_state(each) == "waiting"), 0)


def _make_title(case: CaseFinding) -> str:
    return (
        find_first_line(case.message)
        or find_first_line(case.error)
        or format_line(case.test_name)
        or "No title"
    )


def _choose_kind(cases: Iterable[CaseFinding]) -> str:
    """Return the kind of the first case that has one."""
    return next((kind for kind in map(find_kind, cases) if kind != "unknown"), "unknown")


def _choose_first_kind(cases: Sequence[CaseFinding]) -> str:
    if _choose_kind(cases) != "unknown":
        return ""
    return next((kind for kind in map(find_first_kind, cases) if kind != "unknown"), "")


def _is_score(score: float | None) -> bool:
    return score is not None and isfinite(score)


def _find_first_text(texts: Iterable[str]) -> str:
    return next((text for text in texts if text.strip()), "")


def _merge_evidence(cases: Iterable[CaseFinding]) -> tuple[Evidence, ...]:
    """Return the evidence of all cases, each reference once, the first case's first."""
    found: dict[str, Evidence] = {}
    for case in cases:
        for evidence in case.evidence:
            found.setdefault(evidence.ref, evidence)
    return tuple(found.values())


def _count_states(cases: Iterable[CaseFinding]) -> dict[str, int]:
    counts = Counter(map(find_state, cases))
    return {state: counts[state] for state in STATES if counts[state]}


def _find_earliest(times: Iterable[str]) -> str:
    read = [(found, at) for at in times if (found := parse_time(at))]
    return min(read)[1] if read else ""


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,47}")


class Anchors(msgspec.Struct, frozen=True):
    """Anchors in page order: by cause number, and by failure number."""

    causes: tuple[str, ...]
    cases: tuple[str, ...]

    def cause(self, number: int) -> str:
        return self.causes[number - 1]

    def case(self, number: int) -> str:
        return self.cases[number - 1]


def build_anchors(outline: Outline) -> Anchors:
    families = [cause.family_id for cause in outline.causes]
    cases = [case.case_id for cause in outline.causes for case in cause.cases]
    return Anchors(_name_anchors(families, "family-", "f"), _name_anchors(cases, "case-", "c"))


def _name_anchors(ids: Sequence[str], prefix: str, short: str) -> tuple[str, ...]:
    met = Counter(ids)
    return tuple(
        f"{prefix}{each}" if met[each] == 1 and _PLAIN.fullmatch(each) else f"{short}{number}"
        for number, each in enumerate(ids, 1)
    )
