"""`report.md` for a pull request or a chat, and `regression-report.md` for what came back.

Causes first, within what a comment can hold. All text from outside is escaped.
"""

from interlock.rca.records import CaseFinding, Findings, Launch, Suspect
from interlock.rca.report.outline import Cause, Outline
from interlock.rca.report.summary import (
    history,
    kind_label,
    made_by,
    standing,
    trust,
    verdict_lines,
)
from interlock.rca.report.words import (
    KINDS,
    STATES,
    defect_meaning,
    launch_link,
    state_of,
    suspect_link,
)
from interlock.system.text import (
    block,
    code,
    code_list,
    counted,
    day,
    fence,
    lasted,
    line,
    link,
    moment,
    prose,
    when,
    writable,
)

ROOM = 60_000
"""Characters; a comment on a pull request holds 65,536."""
_ROWS, _TESTS, _LAUNCHES = 30, 20, 5


def markdown_of(outline: Outline) -> str:
    """`report.md`."""
    parts = [*_head(outline), *_overview(outline)]
    spent = sum(map(len, parts))
    for cause in outline.causes:
        section = _section(cause, outline)
        if spent + len(section) > ROOM:
            left = len(outline.causes) - cause.number + 1
            parts.append(f"*{counted(left, 'more cause')} in `report.html` and `report.json`.*")
            break
        parts.append(section)
        spent += len(section)
    return writable("\n\n".join(parts) + "\n")


def _head(outline: Outline) -> list[str]:
    findings = outline.findings
    by = f", analysed by {prose(made_by(outline))}" if made_by(outline) else ""
    made = f", {prose(when(findings.made_at))}" if findings.made_at else ""
    first, second = verdict_lines(outline)
    parts = [
        f"# {prose(findings.name, 160) or f'Suite {findings.suite_id}'}",
        f"**{prose(first)}** {prose(second)}",
        f"Suite {findings.suite_id}{made}{by}.",
    ]
    if findings.launches:
        rows = [_launch(launch) for launch in findings.launches[:_LAUNCHES]]
        if (more := len(findings.launches) - _LAUNCHES) > 0:
            rows.append(f"- and {counted(more, 'more launch', 'more launches')}")
        parts.append("\n".join(rows))
    return parts


def _launch(launch: Launch) -> str:
    number = f" #{launch.number}" if launch.number else ""
    name = prose(line(launch.name or launch.launch_id, 80) + number)
    parts = [link(name, launch.url)]
    if launch.tally.tests:
        parts.append(f"{launch.tally.tests:,} tests, {launch.tally.failed:,} failed")
    if launch.version:
        parts.append(f"version {code(launch.version, 40)}")
    if launch.branch or launch.commit:
        commit = link(code(launch.commit[:10]), launch_link(launch)) if launch.commit else ""
        branch = code(launch.branch, 60)
        parts.append(f"{branch} at {commit}" if branch and commit else branch or commit)
    if launch.started_at:
        took = lasted(launch.started_at, launch.ended_at)
        parts.append(prose(when(launch.started_at)) + (f", took {took}" if took else ""))
    if launch.ci_url:
        parts.append(link("CI job", launch.ci_url))
    return "- " + " · ".join(parts)


def _overview(outline: Outline) -> list[str]:
    if not outline.causes:
        return []
    rows = [
        "| | cause | kind | failures | suspect | history | review |",
        "|--:|---|---|--:|---|---|---|",
    ]
    for cause in outline.causes[:_ROWS]:
        suspect = _first_suspect(cause, outline.findings)
        kind = kind_label(cause)
        rows.append(
            f"| {cause.number} | {prose(cause.title, 120)} | {kind}"
            f"{' **regression**' if cause.regression else ''} | {cause.size:,} | {suspect} |"
            f" {prose(history(cause))} | {prose(standing(cause))} |"
        )
    if len(outline.causes) > _ROWS:
        rest = outline.causes[_ROWS:]
        size = sum(cause.size for cause in rest)
        rows.append(f"| | *{counted(len(rest), 'more cause')}* | | {size:,} | | | |")
    rows.append(f"| | **all** | | **{outline.total:,}** | | | |")
    return ["\n".join(rows)]


def _first_suspect(cause: Cause, findings: Findings) -> str:
    if not cause.suspects:
        return ""
    first = cause.suspects[0]
    who = f" {prose(first.author, 40)}" if first.author else ""
    return ("then " if cause.inherited else "") + _commit(first, findings) + who


def _section(cause: Cause, outline: Outline) -> str:
    parts = [f"## {cause.number}. {prose(cause.title, 160)}", f"*{_facts(cause)}*"]
    if cause.beyond:
        parts.append(prose(cause.beyond, 1500))
    if cause.suspects:
        rows = [_suspect(suspect, outline.findings) for suspect in cause.suspects[:3]]
        head = "Suspects when it was seen before" if cause.inherited else "Suspects"
        parts.append(f"**{head}**\n\n" + "\n".join(rows))
    if cause.evidence:
        parts.append("**Evidence**\n\n" + _evidence(cause))
    parts.append(_tests(cause))
    return "\n\n".join(parts)


def _facts(cause: Cause) -> str:
    parts = [] if cause.loose else [kind_label(cause)]
    if cause.regression:
        parts.append("regression")
    if cause.defect_type:
        meaning = defect_meaning(cause.defect_type)
        parts.append(prose(f"{cause.defect_type} ({meaning})", 120))
    if cause.severity:
        parts.append(prose(f"{cause.severity} severity", 60))
    if cause.score is not None:
        parts.append(f"confidence {cause.score:.2f}")
    if cause.component:
        parts.append(prose(cause.component, 80))
    parts.append(prose(history(cause)))
    parts.append(prose(f"{standing(cause)} [{trust(cause)}]"))
    return " · ".join(parts)


def _suspect(suspect: Suspect, findings: Findings) -> str:
    who = f" by {prose(suspect.author, 60)}" if suspect.author else ""
    at = f", {prose(day(suspect.at))}" if suspect.at else ""
    why = f"  \n  {prose(suspect.why, 300)}" if suspect.why else ""
    size = f" (+{suspect.added:,} -{suspect.removed:,})" if suspect.added or suspect.removed else ""
    return f"- {_commit(suspect, findings)} {prose(suspect.subject, 140)}{who}{at}{size}{why}"


def _commit(suspect: Suspect, findings: Findings) -> str:
    return link(code(suspect.commit[:10]), suspect_link(suspect, findings.repos))


def _evidence(cause: Cause) -> str:
    marks = {"found": "✓ found", "missing": "✗ missing"}
    rows = [
        f"- {marks.get(each.verdict, '○ unchecked')}: {link(code(each.ref, 200), each.url)}"
        f"{f' ({prose(each.why, 200)})' if each.why else ''}"
        for each in cause.evidence[:8]
    ]
    if (more := len(cause.evidence) - 8) > 0:
        rows.append(f"- and {more:,} more")
    return "\n".join(rows)


def _tests(cause: Cause) -> str:
    rows = ["| test | where | state |", "|---|---|---|"]
    for case in cause.cases[:_TESTS]:
        name = link(code(line(case.test_name, 160) or "no name"), case.url)
        where = code_list(
            [each for each in (line(case.class_name, 100), line(case.job, 60)) if each]
        )
        rows.append(f"| {name} | {where} | {STATES[state_of(case)]} |")
    if cause.size > _TESTS:
        rows.append(f"| *and {cause.size - _TESTS:,} more in `report.html`* | | |")
    error_text, cut = block(cause.lead.error, 1500)
    note = f"\n\n*{cut:,} more characters in `report.json`.*" if cut else ""
    error = f"\n\nThe error of the first:\n\n{fence(error_text)}{note}" if error_text else ""
    return (
        f"<details><summary>{counted(cause.size, 'failing test')}</summary>\n\n"
        + "\n".join(rows)
        + f"{error}\n\n</details>"
    )


_REGRESSION_ROWS, _TESTS_PER_ROW = 200, 5
_COLUMNS = (
    "symptom",
    "first seen",
    "last seen before",
    "resolved RCA",
    "version",
    "now failing tests",
    "suspect",
)


def regressions_of(outline: Outline) -> str:
    """`regression-report.md`."""
    findings = outline.findings
    name = prose(findings.name, 160) or f"Suite {findings.suite_id}"
    made = f", {prose(when(findings.made_at))}" if findings.made_at else ""
    parts = [
        f"# Regressions: {name}",
        f"Suite {findings.suite_id}{made}.",
        *_came_back(outline),
        "## New and known",
        *_new_and_known(outline),
    ]
    return writable("\n\n".join(parts) + "\n")


def _came_back(outline: Outline) -> list[str]:
    symptoms = _symptoms(outline)
    if not symptoms:
        return ["**No regressions.** Nothing that was resolved or dormant came back."]
    failing = sum(len(cases) for _, cases in symptoms)
    head = (
        f"**{counted(len(symptoms), 'symptom')} came back, in {counted(failing, 'failing test')}.**"
    )
    rows = [
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
        *(_row(cause, cases, outline.findings) for cause, cases in symptoms[:_REGRESSION_ROWS]),
    ]
    if (more := len(symptoms) - _REGRESSION_ROWS) > 0:
        rows.append(f"| *and {more:,} more in `report.json`* | | | | | | |")
    return [head, "\n".join(rows)]


def _symptoms(outline: Outline) -> list[tuple[Cause, list[CaseFinding]]]:
    """Cases that came back, by cause and symptom, in the order of the causes."""
    found: dict[tuple[int, int], tuple[Cause, list[CaseFinding]]] = {}
    for cause in outline.causes:
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
        _tests_cell(cases),
        _suspect_cell(cause, findings),
    ]
    return "| " + " | ".join(cells) + " |"


def _date(at: str) -> str:
    return prose(day(at)) or "not known"


def _resolved(case: CaseFinding) -> str:
    if not case.rca_id:
        return "none"
    return f"RCA {case.rca_id}" + (f", {prose(day(case.resolved_at))}" if case.resolved_at else "")


def _tests_cell(cases: list[CaseFinding]) -> str:
    names = "<br>".join(code(case.test_name, 120) or "no name" for case in cases[:_TESTS_PER_ROW])
    more = len(cases) - _TESTS_PER_ROW
    return f"{len(cases):,}: {names}" + (f"<br>and {more:,} more" if more > 0 else "")


def _suspect_cell(cause: Cause, findings: Findings) -> str:
    if not cause.suspects:
        return "none found"
    suspect = cause.suspects[0]
    commit = code(suspect.commit[:10]) or "unnamed"
    who = f" by {prose(suspect.author, 60)}" if suspect.author else ""
    return link(commit, suspect_link(suspect, findings.repos)) + who


def _new_and_known(outline: Outline) -> list[str]:
    if not outline.causes:
        return ["No failures."]
    new = sum(not cause.known for cause in outline.families)
    back = sum(cause.regression for cause in outline.families)
    known = len(outline.families) - new - back
    total = counted(len(outline.families), "cause")
    head = f"Of {total}: {new:,} new, {known:,} known, {back:,} back."
    rows = [
        "| | cause | kind | history | since | seen | failures | review |",
        "|--:|---|---|---|---|--:|--:|---|",
    ]
    rows += [_known_row(cause) for cause in outline.causes[:_REGRESSION_ROWS]]
    if rest := outline.causes[_REGRESSION_ROWS:]:
        size = sum(cause.size for cause in rest)
        rows.append(f"| | *{counted(len(rest), 'more cause')}* | | | | | {size:,} | |")
    rows.append(f"| | **all** | | | | | **{outline.total:,}** | |")
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
