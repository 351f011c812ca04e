"""Collect what a person should know about a failure: finding, suspects, evidence, past.

Links lead to the repository's web page if it has one, else to our own page of the commit, file or
log.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from interlock.journal.connection import Connection
from interlock.runtime.case_overview import CaseOverview, Item, Passage
from interlock.system.text import find_first_line
from interlock.system.time import format_time
from interlock_rca.config import RcaConfig
from interlock_rca.findings import (
    limit_confidence,
    mark_suspects,
    read_evidence,
    read_investigated_suspects,
)
from interlock_rca.knowledge.reproductions import find_reproduction
from interlock_rca.knowledge.suites import (
    SuiteCase,
    count_cases_of_rca,
    find_position,
    find_suite_case,
    list_briefs,
)
from interlock_rca.records import Evidence, Reproduction, Suspect
from interlock_rca.report.words import build_suspect_link, explain_defect, find_suspect_word
from interlock_rca.steps import F5

_MOST: Final = 12
_LONGEST_QUOTE: Final = 4_000
_CHOICES: Final = {
    "approve": "The finding is right: it is kept as reviewed and reported.",
    "reassess": "Look again: your comment is shown to whoever does.",
    "overturn": "It is something else: say what in the further fields.",
}
_FIELDS: Final = (
    'human_override = {"defect_type": "ab001", "rca_message": "the test reads the old field"}'
)


def name_failures(connection: Connection, case_nos: Collection[int]) -> Mapping[int, str]:
    """Return the names of the failed tests by case number."""
    return {
        each.case_no: f"{each.class_name}.{each.name}" if each.class_name else each.name
        for each in list_briefs(connection, case_nos)
    }


def read_overview(connection: Connection, case_no: int, config: RcaConfig) -> CaseOverview | None:
    """Return the overview of a case; None if it is about no failure."""
    case, place = find_suite_case(connection, case_no), find_position(connection, case_no)
    if case is None or place is None:
        return None
    owner = case.rca.case_no if case.rca else case_no
    suspects = list(read_investigated_suspects(connection, owner))
    proof = find_reproduction(connection, place.suite_id, place.rca_id)
    if proof is not None:
        suspects = list(mark_suspects(suspects, proof))
    score = limit_confidence(case.rca.convergence_score, suspects) if case.rca else None
    name = f"{case.class_name}.{case.name}" if case.class_name else case.name
    return CaseOverview(
        title=name,
        asks=_ask(case, score) if case.step == F5 and case.engine_status == "open" else "",
        facts=tuple(_list_facts(connection, case, place.suite_id, score)),
        passages=tuple(_list_passages(case, suspects, proof, config)),
        choices=_CHOICES,
        fields=_FIELDS,
    )


def _ask(case: SuiteCase, score: float | None) -> str:
    code = case.rca.defect_type if case.rca else case.triage.hypothesis if case.triage else ""
    word = explain_defect(code).lower()
    found = f"a {word} ({code})" if word else "of a kind that nobody has named"
    sure = f", confidence {score:.2f}" if score is not None else ""
    return f"The analysis takes this failure for {found}{sure}. Is it right?"


def _list_facts(
    connection: Connection, case: SuiteCase, suite_id: int, score: float | None
) -> Iterator[tuple[str, Item]]:
    report = f"/suites/{suite_id}/report.html"
    yield "Report", Item("this failure in the report", f"{report}#case-{quote(case.case_id)}")
    if case.rca:
        count = count_cases_of_rca(connection, case.rca.rca_id)
        yield "Cause", Item(case.rca.title, f"/causes/{case.rca.rca_id}", f"{count} failures")
    if case.triage:
        yield "Severity", Item(case.triage.severity)
    if score is not None:
        yield "Confidence", Item(f"{score:.2f}")
    if case.rca and case.rca.component:
        yield "Component", Item(case.rca.component)
    yield "Ran in", Item(case.job or "an unnamed job", detail=f"version {case.version}")
    yield "History", Item(_describe_history(case))
    if case.decision:
        yield "Review", Item(case.decision, detail=case.reviewed_by)


def _describe_history(case: SuiteCase) -> str:
    seen = case.seen
    if seen is None or seen.occurrence_count < 2:
        return "not seen before"
    since = format_time(seen.first_seen_at)
    back = "; it was fixed and came back" if case.is_regression else ""
    return f"seen {seen.occurrence_count} times since {since}{back}"


def _list_passages(
    case: SuiteCase, suspects: list[Suspect], proof: Reproduction | None, config: RcaConfig
) -> Iterator[Passage]:
    if case.rca:
        yield Passage("What was found", case.rca.description)
    elif case.triage and case.triage.notes:
        yield Passage("What was found", f"Nothing was investigated. {case.triage.notes}")
    else:
        yield Passage("What was found", "Nothing yet.")
    if suspects:
        items = [_show_suspect(each, case.case_no, config) for each in suspects[:_MOST]]
        yield Passage("Suspects", items=tuple(items))
    if proof is not None:
        yield Passage("Proof by running the test", proof.sentence)
    evidence = list(read_evidence(case.rca))
    if evidence:
        shown = [_show_evidence(each, case.case_no) for each in evidence[:_MOST]]
        yield Passage("Evidence", items=tuple(shown))
    log = Item("the log of this failure, as far as it was kept", f"/failures/{case.case_no}/log")
    error = case.error_message[:_LONGEST_QUOTE] or "The test gave no message."
    yield Passage("The failure", items=(log,), quote=error)


def _show_suspect(suspect: Suspect, case_no: int, config: RcaConfig) -> Item:
    own = link_source(case_no, f"{suspect.repo}@{suspect.commit}")
    about = f"{suspect.repo}, {suspect.author or 'author unknown'}, {suspect.at[:10]}"
    sure = f", chance {suspect.score:.2f}" if suspect.score else ""
    return Item(
        f"{suspect.commit[:10]} {find_first_line(suspect.subject, 120)}",
        build_suspect_link(suspect, config.repos) or own,
        f"{about}{sure}: {suspect.why}" if suspect.why else f"{about}{sure}",
        suspect.proof or find_suspect_word(suspect),
    )


def _show_evidence(evidence: Evidence, case_no: int) -> Item:
    own = link_source(case_no, evidence.ref) if evidence.verdict == "found" else ""
    return Item(evidence.ref, evidence.url or own, evidence.why, evidence.verdict)


def link_source(case_no: int, ref: str) -> str:
    """Return the address of the page that shows a reference of a finding."""
    return f"/failures/{case_no}/source?ref={quote(ref, safe='')}#here"
