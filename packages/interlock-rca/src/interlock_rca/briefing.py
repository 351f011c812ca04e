"""The briefing that the workers of a batch get about an investigation.

It grows from batch to batch with the contents of the store.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from interlock.journal.connection import Connection
from interlock.signals.batch import (
    Briefing,
    BriefingCause,
    BriefingSymptom,
    Cluster,
    ErrorPattern,
)
from interlock_rca.analyst.masking import mask_line
from interlock_rca.families import FamilyQueue
from interlock_rca.knowledge.suites import SuiteCase, list_suite_cases
from interlock_rca.taxonomy import TAXONOMY

_OFTEN = 2
_KEY_WORDS = 6
_WORD = re.compile(r"[^\W_]+")
_MOST_PATTERNS = 20
_TOKEN = re.compile(r"<(?:num|id|ip|url|uuid|time|tmp|path)>")


def add_findings(
    briefing: Briefing, connection: Connection, suite_id: int, families: FamilyQueue | None
) -> Briefing:
    """Return the briefing with everything that the store knows by now."""
    cases = list_suite_cases(connection, suite_id)
    return msgspec.structs.replace(
        briefing,
        symptoms=tuple(_list_symptoms(cases)),
        clusters=tuple(_list_clusters(families, cases))
        if families and briefing.phase != "triage"
        else (),
        rcas=tuple(_list_causes(cases)),
        patterns=tuple(_list_patterns(cases)),
    )


def _list_symptoms(cases: Iterable[SuiteCase]) -> Iterable[BriefingSymptom]:
    for case in cases:
        if case.triage:
            found = case.triage
            component = next(iter(found.candidate_repos), "")
            yield BriefingSymptom(
                case.case_id, found.category, component, _describe_hypothesis(case), found.severity
            )


def _list_clusters(families: FamilyQueue, cases: Iterable[SuiteCase]) -> Iterable[Cluster]:
    by_id = {case.case_id: case for case in cases}
    seen: Counter[str] = Counter()
    for number, members in enumerate(families.list_shared(), 1):
        key = _make_key(by_id[members[0]])
        seen[key] += 1
        same = f"_{seen[key]}" if seen[key] > 1 else ""
        yield Cluster(f"K{number}", members[0], tuple(members), key + same)


def _make_key(case: SuiteCase) -> str:
    """Return the key that groups cases: category, component, and the words of the message."""
    category = case.triage.category if case.triage else "unknown"
    words = _WORD.findall(_mask_head(case).lower())[:_KEY_WORDS]
    return f"{category}|{_find_component(case) or 'unknown'}|{'_'.join(words) or 'no_message'}"


def _describe_hypothesis(case: SuiteCase) -> str:
    """Describe the kind of defect and what failed."""
    code = case.triage.hypothesis if case.triage else ""
    meaning = TAXONOMY.describe_code(code) or code
    head = _mask_head(case)
    return f"{meaning}: {head}" if head else meaning


def _list_causes(cases: Iterable[SuiteCase]) -> Iterable[BriefingCause]:
    found = {case.rca.rca_id: case.rca for case in cases if case.rca}
    for rca_id, cause in sorted(found.items()):
        yield BriefingCause(f"R{rca_id}", cause.component, cause.defect_type, cause.title)


def _list_patterns(cases: Sequence[SuiteCase]) -> Iterable[ErrorPattern]:
    """Yield the messages that several cases share, most frequent first."""
    heads = Counter(head for case in cases if (head := _mask_head(case)))
    components = {_mask_head(case): _find_component(case) for case in reversed(cases)}
    for head, count in heads.most_common(_MOST_PATTERNS):
        if count >= _OFTEN:
            yield ErrorPattern(head, count, len(cases), components[head])


def _mask_head(case: SuiteCase) -> str:
    """Return the first line of the message with a star for each changing part."""
    masked = mask_line(case.error_message.strip().partition("\n")[0][:400])
    return _TOKEN.sub("*", masked)[:120]


def _find_component(case: SuiteCase) -> str:
    if case.rca and case.rca.component:
        return case.rca.component
    return next(iter(case.triage.candidate_repos), "") if case.triage else ""
