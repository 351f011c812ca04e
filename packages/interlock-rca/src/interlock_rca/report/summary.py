"""Sum up a suite: the verdict in one paragraph, and lines for a terminal.

The numbers add up to all failures, and no sentence sounds surer than the findings. Terminal lines
are plain text with a style word; the caller adds colours.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from interlock.system.text import count_columns, fit_columns, format_line, plural
from interlock.system.time import format_day
from interlock_rca.analyst.answers import SEARCH_LIMITS
from interlock_rca.records import Evidence, Findings
from interlock_rca.report.outline import Cause, Outline, build_outline
from interlock_rca.report.words import (
    KINDS,
    STATES,
    find_case_trust,
    find_state,
    find_suspect_word,
    normalize_step,
)

_ANALYSTS = {
    "basic": "the built-in analyst",
    "manual": "hand",
    "file": "agents that answer in files",
    "batch-file": "agents that answer in batches of files",
    "mcp": "agents that pull their work",
}


def format_verdict(outline: Outline) -> str:
    """Return `40 failures, 6 causes: 1 product regression (14 failures), …`"""
    return " ".join(format_verdict_lines(outline))


def format_verdict_lines(outline: Outline) -> tuple[str, str]:
    """Return the verdict in two lines: what broke, and its state."""
    if not outline.total:
        return "No failures.", "There is nothing to explain."
    head = plural(outline.total, "failure")
    if outline.families:
        parts = ", ".join(_format_kinds(outline.families))
        head += f", {plural(len(outline.families), 'cause')}: {parts}"
    loose = sum(cause.size for cause in outline.causes if cause.loose)
    if loose:
        head += f"; {loose:,} not grouped yet" if outline.families else ", not grouped yet"
    return f"{head}.", " ".join([*_format_seen_before(outline), *_format_states(outline)])


def _format_kinds(causes: Iterable[Cause]) -> list[str]:
    sums: dict[tuple[str, bool], list[int]] = {}
    for cause in causes:
        sums.setdefault((cause.kind, not cause.regression), []).append(cause.size)
    order = sorted(sums, key=lambda each: (tuple(KINDS).index(each[0]), each[1]))
    return [_format_kind(kind, plain, sums[kind, plain]) for kind, plain in order]


def _format_kind(kind: str, plain: bool, sizes: list[int]) -> str:
    words = KINDS[kind]
    one, many = (words.one, words.many) if plain else (words.regression, words.regressions)
    return f"{plural(len(sizes), one, many)} ({plural(sum(sizes), 'failure')})"


def _format_seen_before(outline: Outline) -> list[str]:
    """Say how many causes were seen before; regressions, which the first line names, aside."""
    if not outline.families:
        return []
    if not any(cause.known for cause in outline.families):
        return ["It is new." if len(outline.families) == 1 else "None was seen before."]
    known = sum(cause.known and not cause.regression for cause in outline.families)
    if known == len(outline.families):
        return ["It was seen before." if known == 1 else "All were seen before."]
    return [f"{known:,} {'was' if known == 1 else 'were'} seen before."] if known else []


def _format_states(outline: Outline) -> list[str]:
    states = outline.states
    sentences = []
    if (number := states.get("waiting", 0)) and number == outline.total:
        sentences.append("Nothing is reviewed yet: all wait for a person.")
    elif number:
        causes = count_waiting_causes(outline)
        some = f"{plural(causes, 'cause')} ({plural(number, 'failure')})"
        verb = "waits" if causes == 1 else "wait"
        sentences.append(f"{some} {verb} for review." if causes else f"{number:,} wait for review.")
    if number := states.get("working", 0):
        sentences.append(f"{plural(number, 'failure')} still in analysis.")
    if number := states.get("stopped", 0):
        sentences.append(f"{plural(number, 'failure')} could not be analysed to the end.")
    if states.keys() <= {"reviewed", "closed"}:
        sentences.append("Everything is reviewed.")
    return sentences


def count_waiting_causes(outline: Outline) -> int:
    """Return the number of families with a case that waits for review."""
    return sum("waiting" in cause.states for cause in outline.families)


def format_kind(cause: Cause) -> str:
    """Return the kind of a cause; an unsure one includes the kind from triage."""
    if cause.loose:
        return "Not grouped"
    label = KINDS[cause.kind].label
    first = KINDS[cause.at_first].label.lower() if cause.at_first else ""
    return f"{label}, at first sight {first}" if first else label


_SEARCHED = ("product", "automation", "firmware", "unknown")
"""Kinds of causes that a commit may bring."""


def format_advice(outline: Outline) -> str:
    """Return advice that would improve the findings, or ""."""
    if outline.total and not outline.findings.repos and not any(c.suspects for c in outline.causes):
        return (
            "No commit is suspected, because no repository was named. "
            'Name it and analyse again: --repo "NAME=PATH:PURPOSE".'
        )
    unfound = sum(
        cause.kind in _SEARCHED and cause.score is not None and not (cause.suspects or cause.loose)
        for cause in outline.causes
    )
    if outline.findings.repos and unfound:
        limits = f" {SEARCH_LIMITS}" if outline.findings.agent == "basic" else ""
        return (
            f"No suspect was found for {plural(unfound, 'cause')}: that clears no commit.{limits}"
        )
    return ""


def format_analysts(outline: Outline) -> str:
    """Name the analysts, or return ""."""
    words = [word for word in outline.findings.agent.split(", ") if word != "human=manual"]
    names = dict.fromkeys(_ANALYSTS.get(word, word) for word in words if word)
    return format_line(", ".join(names), 80)


def format_standing(cause: Cause) -> str:
    """Return the states of a cause's cases: `9 wait for review, 5 closed`."""
    if len(cause.states) == 1:
        return STATES[next(iter(cause.states))]
    return ", ".join(_format_state_count(number, state) for state, number in cause.states.items())


def _format_state_count(number: int, state: str) -> str:
    word = STATES[state].lower()
    return f"{number:,} {word if number == 1 else word.replace('waits', 'wait')}"


def find_trust(cause: Cause) -> str:
    """Return who approved all of its cases: human, auto (a rule that somebody chose), or
    unreviewed."""
    met = {find_case_trust(case) for case in cause.cases}
    return next(word for word in ("unreviewed", "auto", "human") if word in met)


def format_history(cause: Cause) -> str:
    """Say whether a cause is new."""
    from_then = f", first on {format_day(cause.since)}" if cause.since else ""
    if cause.regression:
        return f"Came back: seen before{from_then}"
    return f"Seen before{from_then}" if cause.known else "New: not seen before"


_CAUSES = 12
_REASONS = 2
"""The lines for the reasons against a suspect."""
_PLACE = re.compile(r"[^\s:@]+:[^:@]+:\d+(?:-\d+)?")
"""A place: `repository:path:line`."""
_NARROWEST = 30


class SummaryLine(msgspec.Struct, frozen=True):
    """A line and its style: head, cause, alarm, detail, file or plain."""

    text: str
    style: str = "plain"


def format_summary(
    findings: Findings, files: Sequence[str] = (), width: int = 80
) -> list[SummaryLine]:
    """Return the lines that `interlock analyze` prints; only files may be wider than the
    terminal."""
    width = max(width, _NARROWEST)
    overview = build_outline(findings)
    name = format_line(findings.name) or f"suite {findings.suite_id}"
    lines = [SummaryLine(fit_columns(name, width), "head")]
    lines += [SummaryLine(each) for each in wrap_text(format_verdict(overview), width)]
    for cause in overview.causes[:_CAUSES]:
        lines += [SummaryLine(""), *_format_cause(cause, width)]
    if rest := overview.causes[_CAUSES:]:
        size = plural(sum(cause.size for cause in rest), "failure")
        text = f"and {plural(len(rest), 'more cause')} with {size}, in the report"
        lines += [SummaryLine(""), SummaryLine(fit_columns(text, width), "detail")]
    lines += _format_waiting(overview, width)
    if text := format_advice(overview):
        lines += [SummaryLine(""), *(SummaryLine(each) for each in wrap_text(text, width))]
    if files:
        lines += [
            SummaryLine(""),
            SummaryLine("Files", "head"),
            *(SummaryLine(f"  {format_line(f, 4000)}", "file") for f in files),
        ]
    return [msgspec.structs.replace(each, text=_drop_unprintable(each.text)) for each in lines]


def _drop_unprintable(text: str) -> str:
    """Remove characters that terminals do not print, such as joiners in emoji."""
    return "".join(sign for sign in text if sign.isprintable())


def wrap_text(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap words into lines; a word that is too wide is cut."""
    lines, current = [], ""
    for word in text.split():
        longer = f"{current} {word}" if current else word
        if count_columns(indent + longer) > width and current:
            lines.append(current)
            longer = word
        current = longer
    return [fit_columns(indent + each, width) for each in (*lines, current) if each]


def _format_cause(cause: Cause, width: int) -> list[SummaryLine]:
    kind = format_kind(cause).lower()
    came_back = ", regression" if cause.regression else ""
    size = plural(cause.size, "failure")
    head = f"{cause.number:>2}  {kind}{came_back}, {size}"
    rows = [SummaryLine(fit_columns(head, width), "alarm" if cause.regression else "cause")]
    rows += [SummaryLine(each) for each in wrap_text(cause.title, width, "    ")[:3]]
    if place := _find_place(cause):
        rows.append(SummaryLine(fit_columns(f"    at {place}", width), "detail"))
    if suspect := _format_suspect(cause):
        rows.append(SummaryLine(fit_columns(f"    {suspect}", width), "detail"))
        rows += [
            SummaryLine(each, "detail") for each in _format_reasons(cause.suspects[0].why, width)
        ]
    if cause.reproduction:
        lines = wrap_text(cause.reproduction.sentence, width, "    ")
        rows += [SummaryLine(each, "detail") for each in lines]
    return rows + [
        SummaryLine(each, "detail") for each in wrap_text(_format_facts(cause), width, "    ")
    ]


def _format_reasons(why: str, width: int) -> list[str]:
    """Return as many reasons as two lines hold, whole where possible."""
    reasons = format_line(why, 4000).split("; ")
    lines = wrap_text(reasons[0], width, "      ")
    for count in range(2, len(reasons) + 1):
        longer = wrap_text("; ".join(reasons[:count]), width, "      ")
        if len(longer) > _REASONS:
            break
        lines = longer
    return lines[: _REASONS - 1] + [
        fit_columns(" ".join([each, *map(str.strip, lines[_REASONS:])]), width)
        for each in lines[_REASONS - 1 : _REASONS]
    ]


def _find_place(cause: Cause) -> str:
    """Return the place in the code to look at first, among those that exist."""
    return next((format_line(each.ref) for each in cause.evidence if _names_place(each)), "")


def _names_place(evidence: Evidence) -> bool:
    return evidence.verdict == "found" and bool(_PLACE.fullmatch(evidence.ref))


def _format_suspect(cause: Cause) -> str:
    if not cause.suspects:
        return ""
    suspect = cause.suspects[0]
    who = f" by {format_line(suspect.author, 40)}" if suspect.author else ""
    subject = f": {format_line(suspect.subject)}" if suspect.subject else ""
    word = f"{find_suspect_word(suspect)}{' then' if suspect.then else ''}"
    word = "proven" if suspect.proof == "proven" else word
    return f"{word} {format_line(suspect.commit[:10], 10)}{who}{subject}"


def _format_facts(cause: Cause) -> str:
    facts = [format_line(cause.defect_type, 40), format_line(cause.severity, 20)]
    facts.append(f"confidence {cause.score:.2f}" if cause.score is not None else "")
    if cause.reproduction and cause.reproduction.verdict == "proven":
        facts[-1] = "proven by running"
    asked = f" (question {cause.question_id})" if cause.question_id else ""
    parts = [", ".join(each for each in facts if each), format_standing(cause) + asked]
    if not cause.loose:
        parts.insert(1, format_history(cause))
    return "; ".join(each for each in parts if each)


def _format_waiting(outline: Outline, width: int) -> list[SummaryLine]:
    """Return lines that say whose answer is awaited, and for how many failures."""
    waiting = {
        "a person's review": outline.states.get("waiting", 0),
        "a look at why it stopped": outline.states.get("stopped", 0),
    }
    steps = Counter(
        normalize_step(format_line(case.step, 30)) or "the first step"
        for case in outline.findings.cases
        if find_state(case) == "working"
    )
    waiting |= {f"an answer to {step}": number for step, number in sorted(steps.items())}
    rows = [(plural(number, "failure"), whom) for whom, number in waiting.items() if number]
    if not rows:
        return []
    room = max(len(number) for number, _ in rows)
    lines = [fit_columns(f"  {number:<{room}}  for {whom}", width) for number, whom in rows]
    return [SummaryLine(""), SummaryLine("Waiting", "head"), *map(SummaryLine, lines)]
