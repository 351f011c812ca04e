"""Read findings back from the store: a suite for reports, and updates for ReportPortal.

Cases with one root cause form a family; cases without one keep the family that they came with. Only
reviewed cases that have a ReportPortal item are pushed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

import msgspec

from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection
from interlock.journal.history import JournalLine, iterate_lines
from interlock.journal.runs import find_run, load_decisions
from interlock.system.time import format_timestamp
from interlock_rca.config import RcaConfig
from interlock_rca.knowledge.causes import Rca, read_history
from interlock_rca.knowledge.reproductions import load_reproductions, name_family
from interlock_rca.knowledge.suites import (
    CaseView,
    Suite,
    SuiteCase,
    find_open_questions,
    iterate_case_views,
    iterate_suite_cases,
    list_launches,
)
from interlock_rca.records import (
    CaseFinding,
    Evidence,
    FindingFamily,
    Findings,
    FindingStep,
    Repo,
    Reproduction,
    Suspect,
)
from interlock_rca.sources.reportportal.push import DefectUpdate, format_comment
from interlock_rca.steps import F3

_LONGEST_STACK = 4_000


def read_findings(
    connection: Connection,
    suite: Suite,
    circuit: Circuit,
    config: RcaConfig,
    *,
    at: float,
    agent: str,
) -> Findings:
    """Return the findings of a suite at that time."""
    run = find_run(connection, suite.run_id)
    inputs, brief = _read_inputs(connection, suite)
    cases = [
        _shorten_case(case) if case.case_id in brief else case
        for case in iterate_suite_cases(connection, suite.suite_id)
    ]
    owners = {case.rca.case_no for case in cases if case.rca}
    brief -= {case.case_id for case in cases if case.case_no in owners}
    lines = iterate_lines(connection, suite.run_id)
    trails = _build_trails((line for line in lines if line.case_id not in brief), circuit)
    suspects = _read_suspects(connection, cases, trails)
    before = _find_seen_before(connection, cases)
    asked = find_open_questions(connection, suite.run_id)
    own = {case.case_no for case in cases}
    proofs = load_reproductions(connection, suite.suite_id)
    return Findings(
        suite_id=suite.suite_id,
        name=suite.name,
        made_at=format_timestamp(at),
        agent=agent,
        launches=tuple(each.launch for each in list_launches(connection, suite.suite_id)),
        repos=tuple(map(_hide_path, config.repos)),
        thresholds=dict(circuit.thresholds),
        families=tuple(_group_families(cases, inputs)),
        brief_cases=len(brief),
        cases=tuple(
            msgspec.structs.replace(
                _add_proof(
                    _build_finding(
                        case, inputs[case.case_id], trails.get(case.case_id, ()), suspects, before
                    ),
                    proofs.get(_name_family(case, inputs[case.case_id])),
                ),
                question_id=asked.get(case.case_no, 0),
                inherited=case.rca is not None and case.rca.case_no not in own,
            )
            for case in _take_each(cases)
        ),
        dispatches=run.spent.dispatches,
        tokens=run.spent.tokens,
        money=run.spent.money,
    )


def _take_each(cases: list[SuiteCase]) -> Iterator[SuiteCase]:
    """Yield each case and drop the reference, to bound memory on very red nights."""
    cases.reverse()
    while cases:
        yield cases.pop()


_MANY = 20_000
"""The number of cases beyond which a report tells most of them only in brief."""
_FULL_MEMBERS = 25
"""The members of each family that are still told in full."""
_BRIEF_ERROR = 300


def _read_inputs(connection: Connection, suite: Suite) -> tuple[dict[str, "_CaseInput"], set[str]]:
    """Return the inputs by case and, on very red nights, the cases whose stacks are dropped because
    many of their family are told in full."""
    members: Counter[str] = Counter()
    inputs: dict[str, _CaseInput] = {}
    brief: set[str] = set()
    for view in iterate_case_views(connection, suite.suite_id):
        found = _read_input(view)
        members[found.family] += 1
        if members[found.family] > _FULL_MEMBERS:
            brief.add(view.case_id)
            found = found._replace(stack="") if len(inputs) > _MANY else found
        inputs[view.case_id] = found
    if len(inputs) <= _MANY:
        return inputs, set()
    inputs |= {case_id: inputs[case_id]._replace(stack="") for case_id in brief}
    return inputs, brief


def _shorten_case(case: SuiteCase) -> SuiteCase:
    error = case.error_message[:_BRIEF_ERROR]
    return msgspec.structs.replace(case, excerpt="", error_message=error, draft={})


def _build_finding(
    case: SuiteCase,
    inputs: "_CaseInput",
    trail: Iterable[FindingStep],
    suspects: Mapping[int, tuple[Suspect, ...]],
    before: Mapping[int, float],
) -> CaseFinding:
    rca, triage, seen = case.rca, case.triage, case.seen
    accused = suspects.get(rca.rca_id, ()) if rca else ()
    return CaseFinding(
        case_id=case.case_id,
        case_no=case.case_no,
        test_name=case.name,
        class_name=case.class_name,
        job=case.job,
        launch_id=case.launch_key,
        version=case.version,
        at=format_timestamp(case.started_at),
        ended_at=format_timestamp(case.ended_at),
        url=inputs.url,
        error=case.error_message,
        stack=inputs.stack,
        excerpt=case.excerpt,
        status=case.status,
        step=case.step if case.engine_status == "open" else "",
        stuck=_explain_stuck(case),
        category=rca.category if rca else triage.category if triage else "",
        triaged=triage.category if triage else "",
        severity=triage.severity if triage else "",
        defect_type=rca.defect_type if rca else triage.hypothesis if triage else "",
        component=rca.component if rca else "",
        message=rca.description if rca else triage.notes if triage else "",
        score=limit_confidence(rca.convergence_score, accused) if rca else None,
        evidence=tuple(read_evidence(rca)),
        suspects=accused,
        rca_id=rca.rca_id if rca else 0,
        symptom_id=seen.symptom_id if seen else 0,
        seen=seen.occurrence_count if seen else 1,
        first_seen=format_timestamp(seen.first_seen_at) if seen else "",
        last_seen=format_timestamp(before.get(seen.symptom_id)) if seen else "",
        resolved_at=format_timestamp(rca.resolved_at) if rca else "",
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


def _find_seen_before(connection: Connection, cases: Sequence[SuiteCase]) -> dict[int, float]:
    """Return when each symptom was last seen in an earlier launch."""
    here = Counter(case.seen.symptom_id for case in cases if case.seen)
    launches = {case.launch_id for case in cases}
    found: dict[int, float] = {}
    for case in cases:
        seen = case.seen
        if seen and seen.occurrence_count > here[seen.symptom_id] and seen.symptom_id not in found:
            past = read_history(connection, case.fingerprint)
            others = (
                [each.at for each in past.occurrences if each.launch_id not in launches]
                if past
                else []
            )
            if others:
                found[seen.symptom_id] = max(others)
    return found


class _CaseInput(NamedTuple):
    """The parts of a case's input that a report shows."""

    family: str
    url: str
    stack: str


def _read_input(view: CaseView) -> _CaseInput:
    stack = view.input.get("stack", "")
    return _CaseInput(
        family=intern(str(view.input.get("family", ""))),
        url=str(view.input.get("url", "")),
        stack=_shorten_stack(stack) if isinstance(stack, str) else "",
    )


def _shorten_stack(stack: str) -> str:
    """Keep both ends of a long stack: languages differ in which of them has the fault."""
    if len(stack) <= _LONGEST_STACK:
        return stack
    head, tail = stack[: _LONGEST_STACK // 2], stack[-_LONGEST_STACK // 2 :]
    head, tail = head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail
    left = len(stack) - len(head) - len(tail)
    return f"{head}\n… {left:,} characters left out …\n{tail}"


def _explain_stuck(case: SuiteCase) -> str:
    if case.engine_status == "stuck":
        return case.reason
    return "" if case.end in ("", "DONE") else f"it ended as {case.end}"


def _group_families(
    cases: Sequence[SuiteCase], inputs: Mapping[str, _CaseInput]
) -> Iterable[FindingFamily]:
    groups: dict[str, list[SuiteCase]] = {}
    for case in cases:
        groups.setdefault(_name_family(case, inputs[case.case_id]), []).append(case)
    for key, members in groups.items():
        first = next(
            (each for each in members if each.rca and each.rca.case_no == each.case_no), members[0]
        )
        others = [each.case_id for each in members if each is not first]
        yield FindingFamily(
            family_id=key, title=_make_title(first), members=(first.case_id, *others)
        )


def _name_family(case: SuiteCase, inputs: "_CaseInput") -> str:
    return name_family(case.rca.rca_id if case.rca else None, inputs.family or case.case_id)


def _add_proof(finding: CaseFinding, found: Reproduction | None) -> CaseFinding:
    """Return a finding with the result of running its family's test."""
    if found is None:
        return finding
    accused = finding.suspects[0].commit if finding.suspects else ""
    is_other = found.culprit is not None and accused not in ("", found.culprit.commit)
    turn = "But the first suspect is not it." if is_other else ""
    message = " ".join(each for each in (finding.message, turn, found.sentence) if each)
    return msgspec.structs.replace(
        finding,
        message=message,
        suspects=tuple(mark_suspects(finding.suspects, found)),
        reproduction=found,
    )


def mark_suspects(suspects: Sequence[Suspect], found: Reproduction) -> Iterable[Suspect]:
    """Return the suspects, the proven one first. A suspect is cleared if it passed itself, or if
    the test failed before it already."""
    culprit = found.culprit
    if culprit:
        before = next((each for each in suspects if each.commit == culprit.commit), culprit)
        yield msgspec.structs.replace(before, proof="proven")
    outcomes = {run.commit: run.outcome for run in found.runs}
    is_decided = found.verdict in ("proven", "narrowed")
    for suspect in suspects:
        if culprit and suspect.commit == culprit.commit:
            continue
        is_cleared = is_decided and outcomes.get(suspect.commit) == "pass"
        yield msgspec.structs.replace(suspect, proof="cleared") if is_cleared else suspect


def _make_title(case: SuiteCase) -> str:
    if case.rca:
        return case.rca.title
    first_line = case.error_message.strip().partition("\n")[0]
    return first_line or case.name


def read_evidence(rca: Rca | None) -> Iterable[Evidence]:
    """Return a root cause's evidence with its verdicts."""
    return [msgspec.convert(each, Evidence) for each in rca.evidence] if rca else ()


def _read_suspects(
    connection: Connection,
    cases: Sequence[SuiteCase],
    trails: Mapping[str, Sequence[FindingStep]],
) -> dict[int, tuple[Suspect, ...]]:
    """Return each root cause's suspects as its own investigation named them. A regression has a new
    commit, so suspects named by an investigated case of this suite come first."""
    owners = {case.rca.rca_id: case.rca.case_no for case in cases if case.rca}
    own = {case.case_no for case in cases}
    now: dict[int, tuple[Suspect, ...]] = {}
    for case in cases:
        if case.rca is None or case.rca.case_no in own or now.get(case.rca.rca_id):
            continue
        if any(step.step == F3 for step in trails.get(case.case_id, ())):
            now[case.rca.rca_id] = read_investigated_suspects(connection, case.case_no)
    found: dict[int, tuple[Suspect, ...]] = {}
    for rca_id, case_no in owners.items():
        known = read_investigated_suspects(connection, case_no)
        if case_no not in own:
            newer = {each.commit for each in now.get(rca_id, ())}
            known = tuple(
                msgspec.structs.replace(each, then=True)
                for each in known
                if each.commit not in newer
            )
        found[rca_id] = (*now.get(rca_id, ()), *known)
    return found


def read_investigated_suspects(connection: Connection, case_no: int) -> tuple[Suspect, ...]:
    """Return the suspects that a case's last investigation named."""
    answers = [
        answer
        for decision, answer in load_decisions(connection, case_no)
        if decision.step == F3 and "rca_message" in answer
    ]
    return read_suspects(answers[-1]) if answers else ()


def limit_confidence(convergence: float | None, suspects: Sequence[Suspect]) -> float | None:
    """Return the confidence in a finding as a whole: its kind may be surer than its first suspect,
    but the reader relies on both."""
    chance = suspects[0].score if suspects else 0.0
    return min(convergence, chance) if convergence is not None and chance else convergence


def read_suspects(answer: Mapping[str, Any]) -> tuple[Suspect, ...]:
    """Return the suspects in an answer to F3; malformed ones are skipped."""
    rows = answer.get("suspects")
    found = map(_read_suspect, rows) if isinstance(rows, list) else ()
    return tuple(each for each in found if each)


def _read_suspect(row: Any) -> Suspect | None:
    try:
        return msgspec.convert(row, Suspect)
    except msgspec.ValidationError:
        return None


def _build_trails(lines: Iterable[JournalLine], circuit: Circuit) -> dict[str, list[FindingStep]]:
    trails: dict[str, list[FindingStep]] = {}
    for line in lines:
        decision = line.decision
        rule = circuit.find_rule(decision.rule) or circuit.otherwise
        trails.setdefault(line.case_id, []).append(
            FindingStep(
                step=intern(decision.step),
                attempt=decision.attempt,
                at=format_timestamp(line.at),
                rule=intern(decision.rule),
                to=intern(decision.to),
                why=decision.reason or (rule.why if rule else ""),
                read=decision.read,
            )
        )
    return trails


def _hide_path(repo: Repo) -> Repo:
    """Return a repository without its path on this machine."""
    return msgspec.structs.replace(repo, path="")


REVIEWED_STATUSES = ("reviewed", "closed")


def collect_updates(
    findings: Findings, cases: Iterable[SuiteCase], submitted_by: str
) -> tuple[list[DefectUpdate], dict[str, int]]:
    """Return an update for each reviewed case that ReportPortal has, and the number of omitted
    cases by reason."""
    found: list[DefectUpdate] = []
    left: dict[str, int] = {}
    known = {each.case_id: each for each in findings.cases}
    for case in cases:
        finding = known[case.case_id]
        why = _explain_unfit(case, finding)
        if why:
            left[why] = left.get(why, 0) + 1
            continue
        found.append(
            DefectUpdate(
                item_id=case.rp_item_id or 0,
                defect_type=finding.defect_type,
                comment=format_comment(
                    finding.message, _list_links(finding.evidence), submitted_by
                ),
                launch_id=case.launch_key,
            )
        )
    return found, left


def _explain_unfit(case: SuiteCase, finding: CaseFinding) -> str:
    if case.status not in REVIEWED_STATUSES or not case.decision:
        return "not reviewed"
    if not case.rp_item_id:
        return "not from ReportPortal"
    return "" if finding.defect_type and finding.message else "without a finding"


def _list_links(evidence: Iterable[Evidence]) -> list[str]:
    return [each.url for each in evidence if each.url and each.verdict == "found"]
