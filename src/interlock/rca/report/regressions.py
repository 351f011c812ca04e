"""`regression-report.md`: what was gone and came back, and which causes are new or known.

Knows what makes a regression readable: when it was there, when it was resolved, what fails now.
"""

from interlock.rca.findings import CaseFinding, Findings
from interlock.rca.report.kinds import KINDS
from interlock.rca.report.links import suspect_link
from interlock.rca.report.outline import Cause, Outline, outline
from interlock.rca.report.verdict import standing
from interlock.system.markdown_text import code, code_list, link, prose
from interlock.system.text import counted, day, moment, when, writable

_ROWS, _TESTS = 200, 5
_COLUMNS = (
    "symptom",
    "first seen",
    "last seen before",
    "resolved RCA",
    "version",
    "now failing tests",
    "suspect",
)


def regressions(findings: Findings) -> str:
    """`regression-report.md`."""
    return regressions_of(outline(findings))


def regressions_of(told: Outline) -> str:
    findings = told.findings
    name = prose(findings.name, 160) or f"Suite {findings.suite_id}"
    made = f", {prose(when(findings.made_at))}" if findings.made_at else ""
    parts = [
        f"# Regressions: {name}",
        f"Suite {findings.suite_id}{made}.",
        *_came_back(told),
        "## New and known",
        *_new_and_known(told),
    ]
    return writable("\n\n".join(parts) + "\n")


def _came_back(told: Outline) -> list[str]:
    symptoms = _symptoms(told)
    if not symptoms:
        return ["**No regressions.** Nothing that was resolved or dormant came back."]
    failing = sum(len(cases) for _, cases in symptoms)
    head = (
        f"**{counted(len(symptoms), 'symptom')} came back, in {counted(failing, 'failing test')}.**"
    )
    rows = [
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
        *(_row(cause, cases, told.findings) for cause, cases in symptoms[:_ROWS]),
    ]
    if (more := len(symptoms) - _ROWS) > 0:
        rows.append(f"| *and {more:,} more in `report.json`* | | | | | | |")
    return [head, "\n".join(rows)]


def _symptoms(told: Outline) -> list[tuple[Cause, list[CaseFinding]]]:
    """Cases that came back, by cause and symptom, in the order of the causes."""
    found: dict[tuple[int, int], tuple[Cause, list[CaseFinding]]] = {}
    for cause in told.causes:
        for case in cause.cases:
            if case.regression:
                found.setdefault((cause.number, case.symptom_id), (cause, []))[1].append(case)
    return list(found.values())


def _row(cause: Cause, cases: list[CaseFinding], findings: Findings) -> str:
    lead = cases[0]
    symptom = prose(cause.title, 120) + (f" (symptom {lead.symptom_id})" if lead.symptom_id else "")
    cells = [
        symptom,
        _date(min((case.first_seen for case in cases if moment(case.first_seen)), default="")),
        _date(max((case.last_seen for case in cases if moment(case.last_seen)), default="")),
        _resolved(lead),
        code_list(sorted({case.version for case in cases if case.version}), 3) or "not known",
        _tests(cases),
        _suspect(cause, findings),
    ]
    return "| " + " | ".join(cells) + " |"


def _date(at: str) -> str:
    return prose(day(at)) or "not known"


def _resolved(case: CaseFinding) -> str:
    if not case.rca_id:
        return "none"
    return f"RCA {case.rca_id}" + (f", {prose(day(case.resolved_at))}" if case.resolved_at else "")


def _tests(cases: list[CaseFinding]) -> str:
    names = "<br>".join(code(case.test_name, 120) or "no name" for case in cases[:_TESTS])
    more = len(cases) - _TESTS
    return f"{len(cases):,}: {names}" + (f"<br>and {more:,} more" if more > 0 else "")


def _suspect(cause: Cause, findings: Findings) -> str:
    if not cause.suspects:
        return "none found"
    suspect = cause.suspects[0]
    said = code(suspect.commit[:10]) or "unnamed"
    who = f" by {prose(suspect.author, 60)}" if suspect.author else ""
    return link(said, suspect_link(suspect, findings.repos)) + who


def _new_and_known(told: Outline) -> list[str]:
    if not told.causes:
        return ["No failures."]
    new = sum(not cause.known for cause in told.families)
    back = sum(cause.regression for cause in told.families)
    known = len(told.families) - new - back
    head = (
        f"Of {counted(len(told.families), 'cause')}: {new:,} new, {known:,} known, {back:,} back."
    )
    rows = [
        "| | cause | kind | history | since | seen | failures | review |",
        "|--:|---|---|---|---|--:|--:|---|",
    ]
    rows += [_known_row(cause) for cause in told.causes[:_ROWS]]
    if rest := told.causes[_ROWS:]:
        size = sum(cause.size for cause in rest)
        rows.append(f"| | *{counted(len(rest), 'more cause')}* | | | | | {size:,} | |")
    rows.append(f"| | **all** | | | | | **{told.total:,}** | |")
    return [head, "\n".join(rows)]


def _known_row(cause: Cause) -> str:
    word = "back" if cause.regression else "known" if cause.known else "new"
    kind = "not grouped" if cause.loose else KINDS[cause.kind].label
    cells = [
        str(cause.number),
        prose(cause.title, 120),
        kind,
        "not grouped" if cause.loose else word,
        prose(day(cause.since)) if cause.known else "",
        f"{cause.seen:,}",
        f"{cause.size:,}",
        prose(standing(cause)),
    ]
    return "| " + " | ".join(cells) + " |"
