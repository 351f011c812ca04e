"""Write `report.md` for a pull request or a chat, and `regression-report.md` for regressions.

Causes come first, within the size of a comment. All text from outside is escaped.
"""

from interlock.system.text import (
    clip_block,
    escape_markdown,
    format_code,
    format_code_list,
    format_fence,
    format_line,
    format_link,
    plural,
    replace_unencodable,
)
from interlock.system.time import format_day, format_elapsed, format_utc_time, parse_time
from interlock_rca.records import CaseFinding, Findings, Launch, Reproduction, Suspect
from interlock_rca.report.outline import Cause, Outline
from interlock_rca.report.summary import (
    find_trust,
    format_analysts,
    format_history,
    format_kind,
    format_standing,
    format_verdict_lines,
)
from interlock_rca.report.words import (
    STATES,
    build_launch_link,
    build_suspect_link,
    explain_defect,
    find_state,
    find_suspect_word,
)
from interlock_rca.reproduce.sentences import find_decisive_runs, format_runs

MAX_LENGTH = 60_000
"""The most characters; a comment on a pull request holds 65,536."""
_ROWS, _TESTS, _LAUNCHES = 30, 20, 5
_RUNS, _TAIL = 12, 1_500


def render_markdown(outline: Outline) -> str:
    """Return the text of `report.md`."""
    parts = [*_format_head(outline), *_format_overview(outline)]
    spent = sum(map(len, parts))
    for cause in outline.causes:
        section = _format_section(cause, outline)
        if spent + len(section) > MAX_LENGTH:
            left = len(outline.causes) - cause.number + 1
            parts.append(f"*{plural(left, 'more cause')} in `report.html` and `report.json`.*")
            break
        parts.append(section)
        spent += len(section)
    return replace_unencodable("\n\n".join(parts) + "\n")


def _format_head(outline: Outline) -> list[str]:
    findings = outline.findings
    by = (
        f", analysed by {escape_markdown(format_analysts(outline))}"
        if format_analysts(outline)
        else ""
    )
    made = f", {escape_markdown(format_utc_time(findings.made_at))}" if findings.made_at else ""
    first, second = format_verdict_lines(outline)
    parts = [
        f"# {escape_markdown(findings.name, 160) or f'Suite {findings.suite_id}'}",
        f"**{escape_markdown(first)}** {escape_markdown(second)}",
        f"Suite {findings.suite_id}{made}{by}.",
    ]
    if findings.launches:
        rows = [_format_launch(launch) for launch in findings.launches[:_LAUNCHES]]
        if (more := len(findings.launches) - _LAUNCHES) > 0:
            rows.append(f"- and {plural(more, 'more launch', 'more launches')}")
        parts.append("\n".join(rows))
    return parts


def _format_launch(launch: Launch) -> str:
    number = f" #{launch.number}" if launch.number else ""
    name = escape_markdown(format_line(launch.name or launch.launch_id, 80) + number)
    parts = [format_link(name, launch.url)]
    if launch.tally.tests:
        parts.append(f"{launch.tally.tests:,} tests, {launch.tally.failed:,} failed")
    if launch.version:
        parts.append(f"version {format_code(launch.version, 40)}")
    if launch.branch or launch.commit:
        commit = (
            format_link(format_code(launch.commit[:10]), build_launch_link(launch))
            if launch.commit
            else ""
        )
        branch = format_code(launch.branch, 60)
        parts.append(f"{branch} at {commit}" if branch and commit else branch or commit)
    if launch.started_at:
        took = format_elapsed(launch.started_at, launch.ended_at)
        parts.append(
            escape_markdown(format_utc_time(launch.started_at)) + (f", took {took}" if took else "")
        )
    if launch.ci_url:
        parts.append(format_link("CI job", launch.ci_url))
    return "- " + " · ".join(parts)


def _format_overview(outline: Outline) -> list[str]:
    if not outline.causes:
        return []
    rows = [
        "| | cause | kind | failures | suspect | history | review |",
        "|--:|---|---|--:|---|---|---|",
    ]
    for cause in outline.causes[:_ROWS]:
        suspect = _format_first_suspect(cause, outline.findings)
        kind = format_kind(cause)
        rows.append(
            f"| {cause.number} | {escape_markdown(cause.title, 120)} | {kind}"
            f"{' **regression**' if cause.regression else ''} | {cause.size:,} | {suspect} |"
            f" {escape_markdown(format_history(cause))} | "
            f"{escape_markdown(format_standing(cause))} |"
        )
    if len(outline.causes) > _ROWS:
        rest = outline.causes[_ROWS:]
        size = sum(cause.size for cause in rest)
        rows.append(f"| | *{plural(len(rest), 'more cause')}* | | {size:,} | | | |")
    rows.append(f"| | **all** | | **{outline.total:,}** | | | |")
    return ["\n".join(rows)]


def _format_first_suspect(cause: Cause, findings: Findings) -> str:
    if not cause.suspects:
        return ""
    first = cause.suspects[0]
    who = f" {escape_markdown(first.author, 40)}" if first.author else ""
    weak = "" if find_suspect_word(first) == "suspect" else "weak: "
    return weak + ("then " if first.then else "") + _format_commit(first, findings) + who


def _format_section(cause: Cause, outline: Outline) -> str:
    parts = [f"## {cause.number}. {escape_markdown(cause.title, 160)}", f"*{_format_facts(cause)}*"]
    if cause.beyond:
        parts.append(escape_markdown(cause.beyond, 1500))
    if cause.suspects:
        rows = [_format_suspect(suspect, outline.findings) for suspect in cause.suspects[:3]]
        parts.append("**Suspects**\n\n" + "\n".join(rows))
    if cause.evidence:
        parts.append("**Evidence**\n\n" + _format_evidence(cause))
    if cause.reproduction:
        parts.append("**Runs**\n\n" + _format_reproduction(cause.reproduction))
    parts.append(_format_tests(cause))
    return "\n\n".join(parts)


def _format_facts(cause: Cause) -> str:
    parts = [] if cause.loose else [format_kind(cause)]
    if cause.regression:
        parts.append("regression")
    if cause.defect_type:
        meaning = explain_defect(cause.defect_type)
        parts.append(escape_markdown(f"{cause.defect_type} ({meaning})", 120))
    if cause.severity:
        parts.append(escape_markdown(f"{cause.severity} severity", 60))
    if cause.score is not None:
        parts.append(f"confidence {cause.score:.2f}")
    if cause.component:
        parts.append(escape_markdown(cause.component, 80))
    parts.append(escape_markdown(format_history(cause)))
    parts.append(escape_markdown(f"{format_standing(cause)} [{find_trust(cause)}]"))
    return " · ".join(parts)


def _format_suspect(suspect: Suspect, findings: Findings) -> str:
    who = f" by {escape_markdown(suspect.author, 60)}" if suspect.author else ""
    at = f", {escape_markdown(format_day(suspect.at))}" if suspect.at else ""
    at += f" (**{suspect.proof} by running**)" if suspect.proof in ("proven", "cleared") else ""
    at += ", suspected when it was seen before" if suspect.then else ""
    why = f"  \n  {escape_markdown(suspect.why, 300)}" if suspect.why else ""
    size = f" (+{suspect.added:,} -{suspect.removed:,})" if suspect.added or suspect.removed else ""
    return (
        f"- {_format_commit(suspect, findings)} "
        f"{escape_markdown(suspect.subject, 140)}{who}{at}{size}{why}"
    )


def _format_commit(suspect: Suspect, findings: Findings) -> str:
    return format_link(
        format_code(suspect.commit[:10]), build_suspect_link(suspect, findings.repos)
    )


def _format_reproduction(found: Reproduction) -> str:
    """Return the verdict, a line per run, and the output of the deciding runs."""
    lines = format_runs(found)
    rows = [f"- {escape_markdown(line, 300)}" for line in lines[:_RUNS]]
    if (more := len(lines) - _RUNS) > 0:
        rows.append(f"- and at {plural(more, 'more commit')}, in `report.json`")
    tails = [
        f"At `{run.commit[:12]}`:\n\n{format_fence(clip_block(run.tail, _TAIL)[0])}"
        for run in find_decisive_runs(found)
    ]
    return "\n\n".join([escape_markdown(found.sentence, 1500), "\n".join(rows), *tails])


def _format_evidence(cause: Cause) -> str:
    marks = {"found": "✓ found", "missing": "✗ missing"}
    rows = [
        f"- {marks.get(each.verdict, '○ unchecked')}: "
        f"{format_link(format_code(each.ref, 200), each.url)}"
        f"{f' ({escape_markdown(each.why, 200)})' if each.why else ''}"
        for each in cause.evidence[:8]
    ]
    if (more := len(cause.evidence) - 8) > 0:
        rows.append(f"- and {more:,} more")
    return "\n".join(rows)


def _format_tests(cause: Cause) -> str:
    rows = ["| test | where | state |", "|---|---|---|"]
    for case in cause.cases[:_TESTS]:
        name = format_link(format_code(format_line(case.test_name, 160) or "no name"), case.url)
        where = format_code_list(
            [
                each
                for each in (format_line(case.class_name, 100), format_line(case.job, 60))
                if each
            ]
        )
        rows.append(f"| {name} | {where} | {STATES[find_state(case)]} |")
    if cause.size > _TESTS:
        rows.append(f"| *and {cause.size - _TESTS:,} more in `report.html`* | | |")
    error_text, cut = clip_block(cause.lead.error, 1500)
    note = f"\n\n*{cut:,} more characters in `report.json`.*" if cut else ""
    error = f"\n\nThe error of the first:\n\n{format_fence(error_text)}{note}" if error_text else ""
    return (
        f"<details><summary>{plural(cause.size, 'failing test')}</summary>\n\n"
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


def render_regressions(outline: Outline) -> str:
    """Return the text of `regression-report.md`."""
    findings = outline.findings
    name = escape_markdown(findings.name, 160) or f"Suite {findings.suite_id}"
    made = f", {escape_markdown(format_utc_time(findings.made_at))}" if findings.made_at else ""
    parts = [
        f"# Regressions: {name}",
        f"Suite {findings.suite_id}{made}.",
        *_format_regressions(outline),
        "## New and known",
        *_format_new_and_known(outline),
    ]
    return replace_unencodable("\n\n".join(parts) + "\n")


def _format_regressions(outline: Outline) -> list[str]:
    symptoms = _group_by_symptom(outline)
    if not symptoms:
        return ["**No regressions.** Nothing that was resolved or dormant came back."]
    failing = sum(len(cases) for _, cases in symptoms)
    head = (
        f"**{plural(len(symptoms), 'symptom')} came back, in {plural(failing, 'failing test')}.**"
    )
    rows = [
        "| " + " | ".join(_COLUMNS) + " |",
        "|---" * len(_COLUMNS) + "|",
        *(
            _format_regression_row(cause, cases, outline.findings)
            for cause, cases in symptoms[:_REGRESSION_ROWS]
        ),
    ]
    if (more := len(symptoms) - _REGRESSION_ROWS) > 0:
        rows.append(f"| *and {more:,} more in `report.json`* | | | | | | |")
    return [head, "\n".join(rows)]


def _group_by_symptom(outline: Outline) -> list[tuple[Cause, list[CaseFinding]]]:
    """Return the regressions by cause and symptom, in the order of the causes."""
    found: dict[tuple[int, int], tuple[Cause, list[CaseFinding]]] = {}
    for cause in outline.causes:
        for case in cause.cases:
            if case.regression:
                found.setdefault((cause.number, case.symptom_id), (cause, []))[1].append(case)
    return list(found.values())


def _format_regression_row(cause: Cause, cases: list[CaseFinding], findings: Findings) -> str:
    lead = cases[0]
    symptom = escape_markdown(cause.title, 120) + (
        f" (symptom {lead.symptom_id})" if lead.symptom_id else ""
    )
    cells = [
        symptom,
        _format_date(
            min((case.first_seen for case in cases if parse_time(case.first_seen)), default="")
        ),
        _format_date(
            max((case.last_seen for case in cases if parse_time(case.last_seen)), default="")
        ),
        _format_resolved(lead),
        format_code_list(sorted({case.version for case in cases if case.version}), 3)
        or "not known",
        _format_tests_cell(cases),
        _format_suspect_cell(cause, findings),
    ]
    return "| " + " | ".join(cells) + " |"


def _format_date(at: str) -> str:
    return escape_markdown(format_day(at)) or "not known"


def _format_resolved(case: CaseFinding) -> str:
    if not case.rca_id:
        return "none"
    return f"RCA {case.rca_id}" + (
        f", {escape_markdown(format_day(case.resolved_at))}" if case.resolved_at else ""
    )


def _format_tests_cell(cases: list[CaseFinding]) -> str:
    names = "<br>".join(
        format_code(case.test_name, 120) or "no name" for case in cases[:_TESTS_PER_ROW]
    )
    more = len(cases) - _TESTS_PER_ROW
    return f"{len(cases):,}: {names}" + (f"<br>and {more:,} more" if more > 0 else "")


def _format_suspect_cell(cause: Cause, findings: Findings) -> str:
    if not cause.suspects:
        return "none found"
    suspect = cause.suspects[0]
    commit = format_code(suspect.commit[:10]) or "unnamed"
    who = f" by {escape_markdown(suspect.author, 60)}" if suspect.author else ""
    return format_link(commit, build_suspect_link(suspect, findings.repos)) + who


def _format_new_and_known(outline: Outline) -> list[str]:
    if not outline.causes:
        return ["No failures."]
    new = sum(not cause.known for cause in outline.families)
    back = sum(cause.regression for cause in outline.families)
    known = len(outline.families) - new - back
    total = plural(len(outline.families), "cause")
    head = f"Of {total}: {new:,} new, {known:,} known, {back:,} back."
    return [head, *_format_overview(outline)]
