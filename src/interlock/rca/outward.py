"""What of a suite may be told outside: reviewed cases with an item of their own, and no others."""

from collections.abc import Iterable

from interlock.rca.findings import CaseFinding, Evidence, Findings
from interlock.rca.knowledge.suites import SuiteCase
from interlock.rca.sources.reportportal.push import Update, comment

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
