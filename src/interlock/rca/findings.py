"""Findings read back from the store: a suite as a report shows it, and as ReportPortal is told.

Cases with one root cause are one family; of those without, the ones that were alike when they came.
Told outside are only reviewed cases with an item of their own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection

from interlock.engine.circuit import Circuit
from interlock.journal.history import JournalLine, each_line
from interlock.journal.runs import find_run, journal_of
from interlock.rca.config import RcaConfig
from interlock.rca.knowledge.causes import Rca, history_of
from interlock.rca.knowledge.suites import (
    CaseView,
    Suite,
    SuiteCase,
    launches_of,
    looks_of,
    open_questions,
    suite_cases,
)
from interlock.rca.prompt_data.parameters import told
from interlock.rca.records import (
    CaseFinding,
    Evidence,
    FindingFamily,
    Findings,
    FindingStep,
    Repo,
    Suspect,
)
from interlock.rca.sources.reportportal.push import Update, comment
from interlock.rca.steps import F3

_LONGEST_STACK = 4_000


def findings_of(
    connection: Connection,
    suite: Suite,
    circuit: Circuit,
    terms: RcaConfig,
    *,
    at: float,
    agent: str,
) -> Findings:
    """A suite as it stands at that time."""
    run = find_run(connection, suite.run_id)
    cases = suite_cases(connection, suite.suite_id)
    given = {look.case_id: _given(look) for look in looks_of(connection, suite.suite_id)}
    trails = _trails(each_line(connection, suite.run_id), circuit)
    suspects = _suspects(connection, cases)
    before = _seen_before(connection, cases)
    asked = open_questions(connection, suite.run_id)
    own = {case.case_no for case in cases}
    return Findings(
        suite_id=suite.suite_id,
        name=suite.name,
        made_at=told(at),
        agent=agent,
        launches=tuple(each.launch for each in launches_of(connection, suite.suite_id)),
        repos=tuple(map(_shown, terms.repos)),
        thresholds=dict(circuit.thresholds),
        families=tuple(_families(cases, given)),
        cases=tuple(
            msgspec.structs.replace(
                _finding(case, given[case.case_id], trails.get(case.case_id, ()), suspects, before),
                question_id=asked.get(case.case_no, 0),
                inherited=case.rca is not None and case.rca.case_no not in own,
            )
            for case in cases
        ),
        dispatches=run.spent.dispatches,
        tokens=run.spent.tokens,
        money=run.spent.money,
    )


def _finding(
    case: SuiteCase,
    given: "_Given",
    trail: Iterable[FindingStep],
    suspects: Mapping[int, tuple[Suspect, ...]],
    before: Mapping[int, float],
) -> CaseFinding:
    rca, triage, seen = case.rca, case.triage, case.seen
    return CaseFinding(
        case_id=case.case_id,
        case_no=case.case_no,
        test_name=case.name,
        class_name=case.class_name,
        job=case.job,
        launch_id=case.launch_key,
        version=case.version,
        at=told(case.started_at),
        ended_at=told(case.ended_at),
        url=given.url,
        error=case.error_message,
        stack=given.stack,
        excerpt=case.excerpt,
        status=case.status,
        step=case.step if case.engine_status == "open" else "",
        stuck=_stuck(case),
        category=rca.category if rca else triage.category if triage else "",
        triaged=triage.category if triage else "",
        severity=triage.severity if triage else "",
        defect_type=rca.defect_type if rca else triage.hypothesis if triage else "",
        component=rca.component if rca else "",
        message=rca.description if rca else triage.notes if triage else "",
        score=rca.convergence_score if rca else None,
        evidence=tuple(_evidence(rca)),
        suspects=suspects.get(rca.rca_id, ()) if rca else (),
        rca_id=rca.rca_id if rca else 0,
        symptom_id=seen.symptom_id if seen else 0,
        seen=seen.occurrence_count if seen else 1,
        first_seen=told(seen.first_seen_at) if seen else "",
        last_seen=told(before.get(seen.symptom_id)) if seen else "",
        resolved_at=told(rca.resolved_at) if rca else "",
        recalled=case.recalled,
        regression=case.is_regression,
        cascade=bool(triage and triage.cascade),
        clock_skew=bool(triage and triage.clock_skew),
        decision=case.decision,
        reviewed_by=case.reviewed_by,
        notes=case.notes,
        draft=case.draft,
        trail=tuple(trail),
    )


def _seen_before(connection: Connection, cases: Sequence[SuiteCase]) -> dict[int, float]:
    """Of each symptom that earlier launches had, when it was last seen in one."""
    here = Counter(case.seen.symptom_id for case in cases if case.seen)
    launches = {case.launch_id for case in cases}
    found: dict[int, float] = {}
    for case in cases:
        seen = case.seen
        if seen and seen.occurrence_count > here[seen.symptom_id] and seen.symptom_id not in found:
            past = history_of(connection, case.fingerprint)
            others = (
                [each.at for each in past.occurrences if each.launch_id not in launches]
                if past
                else []
            )
            if others:
                found[seen.symptom_id] = max(others)
    return found


class _Given(NamedTuple):
    """What a report tells of a case's input."""

    family: str
    url: str
    stack: str


def _given(look: CaseView) -> _Given:
    stack = look.input.get("stack", "")
    return _Given(
        family=str(look.input.get("family", "")),
        url=str(look.input.get("url", "")),
        stack=_shortened(stack) if isinstance(stack, str) else "",
    )


def _shortened(stack: str) -> str:
    """A long stack keeps its ends: languages differ in which of them has the fault."""
    if len(stack) <= _LONGEST_STACK:
        return stack
    head, tail = stack[: _LONGEST_STACK // 2], stack[-_LONGEST_STACK // 2 :]
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    left = len(stack) - len(head) - len(tail)
    return f"{head}\n… {left:,} characters left out …\n{tail}"


def _stuck(case: SuiteCase) -> str:
    if case.engine_status == "stuck":
        return case.reason
    return "" if case.end in ("", "DONE") else f"it ended as {case.end}"


def _families(cases: Sequence[SuiteCase], given: Mapping[str, _Given]) -> Iterable[FindingFamily]:
    groups: dict[str, list[SuiteCase]] = {}
    for case in cases:
        kin = given[case.case_id].family or case.case_id
        key = f"rca-{case.rca.rca_id}" if case.rca else f"like-{kin}"
        groups.setdefault(key, []).append(case)
    for key, members in groups.items():
        first = next(
            (each for each in members if each.rca and each.rca.case_no == each.case_no), members[0]
        )
        others = [each.case_id for each in members if each is not first]
        yield FindingFamily(family_id=key, title=_title(first), members=(first.case_id, *others))


def _title(case: SuiteCase) -> str:
    if case.rca:
        return case.rca.title
    first_line = case.error_message.strip().partition("\n")[0]
    return first_line or case.name


def _evidence(rca: Rca | None) -> Iterable[Evidence]:
    return [msgspec.convert(each, Evidence) for each in rca.evidence] if rca else ()


def _suspects(connection: Connection, cases: Iterable[SuiteCase]) -> dict[int, tuple[Suspect, ...]]:
    """Of each root cause the suspects that its own case's investigation named."""
    owners = {case.rca.rca_id: case.rca.case_no for case in cases if case.rca}
    found: dict[int, tuple[Suspect, ...]] = {}
    for rca_id, case_no in owners.items():
        answers = [
            answer
            for decision, answer in journal_of(connection, case_no)
            if decision.step == F3 and "rca_message" in answer
        ]
        found[rca_id] = suspects_in(answers[-1]) if answers else ()
    return found


def suspects_in(answer: Mapping[str, Any]) -> tuple[Suspect, ...]:
    """The suspects an answer to F3 names; what is no suspect is passed over."""
    rows = answer.get("suspects")
    found = map(_suspect, rows) if isinstance(rows, list) else ()
    return tuple(each for each in found if each)


def _suspect(row: Any) -> Suspect | None:
    try:
        return msgspec.convert(row, Suspect)
    except msgspec.ValidationError:
        return None


def _trails(lines: Iterable[JournalLine], circuit: Circuit) -> dict[str, list[FindingStep]]:
    trails: dict[str, list[FindingStep]] = {}
    for line in lines:
        decision = line.decision
        rule = circuit.rule(decision.rule) or circuit.otherwise
        trails.setdefault(line.case_id, []).append(
            FindingStep(
                step=intern(decision.step),
                attempt=decision.attempt,
                at=told(line.at),
                rule=intern(decision.rule),
                to=intern(decision.to),
                why=decision.reason or (rule.why if rule else ""),
                read=decision.read,
            )
        )
    return trails


def _shown(repo: Repo) -> Repo:
    """A repository without its place on this machine."""
    return msgspec.structs.replace(repo, path="")


REVIEWED = ("reviewed", "closed")


def updates(
    findings: Findings, cases: Iterable[SuiteCase], submitted_by: str
) -> tuple[list[Update], dict[str, int]]:
    """An update for each reviewed case that ReportPortal has, and how many cases were left out for
    which reason."""
    found: list[Update] = []
    left: dict[str, int] = {}
    known = {each.case_id: each for each in findings.cases}
    for case in cases:
        finding = known[case.case_id]
        why = _unfit(case, finding)
        if why:
            left[why] = left.get(why, 0) + 1
            continue
        found.append(
            Update(
                item_id=case.rp_item_id or 0,
                defect_type=finding.defect_type,
                comment=comment(finding.message, _links(finding.evidence), submitted_by),
                launch_id=case.launch_key,
            )
        )
    return found, left


def _unfit(case: SuiteCase, finding: CaseFinding) -> str:
    if case.status not in REVIEWED or not case.decision:
        return "not reviewed"
    if not case.rp_item_id:
        return "not from ReportPortal"
    return "" if finding.defect_type and finding.message else "without a finding"


def _links(evidence: Iterable[Evidence]) -> list[str]:
    return [each.url for each in evidence if each.url and each.verdict == "found"]
