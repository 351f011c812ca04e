"""The page: findings as one HTML file that needs nothing else.

Chooses what goes where and how much fits; templates lie beside this file. Nothing from outside
becomes markup: templates escape all text, links are checked, and the page's policy allows only its
own style and script.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from interlock.system.html import build_content_policy, load_templates, read_source
from interlock.system.text import clip_block, format_line, plural, replace_unencodable
from interlock.system.time import parse_time
from interlock_rca.records import CaseFinding, Evidence, FindingStep
from interlock_rca.report import words
from interlock_rca.report.jira import build_draft, format_case_draft, format_plain_text
from interlock_rca.report.outline import Anchors, Cause, Outline, build_anchors
from interlock_rca.report.summary import (
    count_waiting_causes,
    find_trust,
    format_advice,
    format_analysts,
    format_history,
    format_kind,
    format_standing,
    format_verdict_lines,
)
from interlock_rca.report.words import KINDS, find_kind, find_state
from interlock_rca.reproduce.sentences import find_decisive_runs, format_runs

MAX_MEMBERS = 25
"""The most cases of a family shown in full; all are in the list."""
MAX_CARDS = 250
"""The most causes with a card; all are in the list."""
MAX_BYTES = 10_000_000
"""The most bytes of cards and the cases that they show in full."""
_PART_BYTES = 1_000_000
"""The same limit when causes have pages of their own."""
_CASES = 7_000_000
"""The part of it for cases, in bytes."""
MAX_ROWS = 20_000
"""The most failures in the list."""
_SHARE = 20
"""No cause takes more than one part in this many of the remaining room, so that the first do not
take all."""
_LAUNCHES = 20
_GLANCE = 9
"""The most causes named at a glance; one more if it is the last."""


class PageRow(msgspec.Struct, frozen=True):
    """A case in the list, with a flag for those shown in full above."""

    number: int
    case: CaseFinding
    state: str
    is_full: bool


def render_page(outline: Outline, *, in_parts: bool = False) -> str:
    """Return `report.html`. With `in_parts`, most cases and the list of failures are left to
    `render_parts`."""
    colours = assign_shades(outline.causes)
    marks = build_anchors(outline)
    cards, full = _render_cards(outline, colours, marks, in_parts=in_parts)
    style, script = read_template("page.css"), read_template("page.js")
    html = render_template(
        "page.html.j2",
        outline=outline,
        verdict=format_verdict_lines(outline),
        tiles=_build_tiles(outline),
        marks=marks,
        cards=cards,
        groups=[(cause, []) for cause in outline.causes]
        if in_parts
        else _group_rows(outline, full),
        in_parts=in_parts,
        glance=outline.causes[: _GLANCE if len(outline.causes) > _GLANCE + 1 else _GLANCE + 1],
        first=_find_first(outline),
        colours=colours,
        launches=outline.findings.launches[:_LAUNCHES],
        cuts=[] if in_parts else _list_cuts(outline, len(cards), len(full)),
        style=Markup(style),  # noqa: S704 -- our own file
        script=Markup(script),  # noqa: S704 -- our own file
        policy=build_content_policy(style, script),
    )
    return replace_unencodable(html)


PART_CASES = 5
"""The most cases of a cause shown in full on its own page."""
PART_ROWS = 5_000
"""The most failures listed on one page; more go to the next."""


def render_parts(outline: Outline) -> Iterator[tuple[str, str]]:
    """Yield the pages of single causes by name, for reports too long for one page."""
    colours, marks = assign_shades(outline.causes), build_anchors(outline)
    style, script = read_template("page.css"), read_template("page.js")
    first = 1
    for cause in outline.causes:
        pages = range(0, cause.size, PART_ROWS)
        details = _render_cases(cause, first, _CASES, outline, marks, PART_CASES)
        for page, begin in enumerate(pages):
            html = render_template(
                "cause.html.j2",
                outline=outline,
                cause=cause,
                colour=colours[cause.number],
                details=() if page else details,
                rows=[(case, find_state(case)) for case in cause.cases[begin : begin + PART_ROWS]],
                pages=[name_part(cause.number, other) for other in range(len(pages))],
                page=page,
                style=Markup(style),  # noqa: S704 -- our own file
                script=Markup(script),  # noqa: S704 -- our own file
                policy=build_content_policy(style, script),
            )
            yield f"{PARTS_FOLDER}/{name_part(cause.number, page)}", replace_unencodable(html)
        first += cause.size


PARTS_FOLDER = "causes"


def name_part(number: int, page: int = 0) -> str:
    return f"{number}-{page + 1}.html" if page else f"{number}.html"


def assign_shades(causes: Sequence[Cause]) -> dict[int, int]:
    """Return a shade for each cause's number: causes of one kind get different ones."""
    met: Counter[str] = Counter()
    found = {}
    for cause in causes:
        found[cause.number] = met[cause.kind] % 4
        met[cause.kind] += 1
    return found


def _find_first(outline: Outline) -> tuple[str, str] | None:
    """Return the name and the time of the first failure, if the source gave times."""
    times = [(at, case) for case in outline.findings.cases if (at := parse_time(case.at))]
    if not times:
        return None
    at, case = min(times, key=lambda each: (each[0], each[1].case_no, each[1].case_id))
    return (
        format_line(case.test_name, 60) or "a test without a name",
        f"{at:%Y-%m-%d %H:%M:%S} UTC",
    )


def _build_tiles(outline: Outline) -> list[tuple[int, str]]:
    """Return the numbers for a reader in a hurry."""
    causes = outline.families
    back = sum(cause.regression for cause in causes)
    known = sum(cause.known and not cause.regression for cause in causes)
    return [
        (outline.total, "failure" if outline.total == 1 else "failures"),
        (len(causes), "cause" if len(causes) == 1 else "causes"),
        (len(causes) - known - back, "new"),
        (known, "seen before"),
        (back, "regression" if back == 1 else "regressions"),
        (count_waiting_causes(outline) or outline.states.get("waiting", 0), "to review"),
    ]


def _render_cards(
    outline: Outline, colours: dict[int, int], marks: Anchors, *, in_parts: bool
) -> tuple[list[Markup], frozenset[int]]:
    """Return the cards that fit, and the numbers of the cases that they show in full and list."""
    cards: list[Markup] = []
    full: set[int] = set()
    room, spent, first = _CASES, 0, 1
    for cause in outline.causes[:MAX_CARDS]:
        if first > MAX_ROWS and not in_parts:
            break
        left = min(_SHARE, len(outline.causes) - len(cards))
        most = 1 if in_parts else MAX_MEMBERS
        details = _render_cases(cause, first, room // left, outline, marks, most)
        room -= sum(map(_count_bytes, details))
        rest = f"{PARTS_FOLDER}/{name_part(cause.number)}" if in_parts else f"#list-{cause.number}"
        card = _render_card(cause, details, colours[cause.number], outline, marks, rest)
        full.update(range(first, first + len(details)))
        spent += _count_bytes(card)
        first += cause.size
        cards.append(card)
        if spent > (_PART_BYTES if in_parts else MAX_BYTES):
            break
    return cards, frozenset(full)


def _render_cases(
    cause: Cause, first: int, room: int, outline: Outline, marks: Anchors, most: int
) -> list[Markup]:
    """Return the first cases of a cause in full. Their numbers are ours: short, and unique in the
    page."""
    details: list[Markup] = []
    length = 0
    for number, case in enumerate(cause.cases[:most], first):
        facts = {"case": case, "number": number, "mark": marks.case(number)}
        html = render_template("case.html.j2", cause=cause, outline=outline, **facts)
        length += _count_bytes(html)
        if length > room:
            break
        details.append(Markup(html))  # noqa: S704 -- escaped by its template
    return details


def _count_bytes(html: str) -> int:
    return len(html.encode("utf-8", "replace"))


def _render_card(
    cause: Cause, details: list[Markup], colour: int, outline: Outline, marks: Anchors, rest: str
) -> Markup:
    html = render_template(
        "card.html.j2",
        cause=cause,
        shown=details,
        outline=outline,
        colour=colour,
        mark=marks.cause(cause.number),
        jira="" if cause.loose else clip_block(format_plain_text(build_draft(cause)), DRAFT)[0],
        trust=find_trust(cause),
        rest=rest,
        other_kinds=_format_other_kinds(cause),
    )
    return Markup(html)  # noqa: S704 -- escaped by its template


def _format_other_kinds(cause: Cause) -> str:
    """Name the members whose kind differs from their family's."""
    met = Counter(find_kind(case) for case in cause.cases)
    others = [(kind, met[kind]) for kind in KINDS if met[kind] and kind != cause.kind]
    return ", ".join(f"{number:,} as {KINDS[kind].label.lower()}" for kind, number in others)


def _group_rows(outline: Outline, full: frozenset[int]) -> list[tuple[Cause, list[PageRow]]]:
    found, first = [], 1
    for cause in outline.causes:
        rows = [
            PageRow(number, case, find_state(case), number in full)
            for number, case in enumerate(cause.cases[: MAX_ROWS - first + 1], first)
        ]
        first += cause.size
        found.append((cause, rows))
        if first > MAX_ROWS:
            break
    return found


def _list_cuts(outline: Outline, cards: int, full: int) -> list[str]:
    """Return sentences about what the page leaves out."""
    found = []
    if cards < len(outline.causes):
        found.append(
            f"{len(outline.causes) - cards:,} of {len(outline.causes):,} causes have no card"
        )
    if full < outline.total:
        found.append(
            f"{outline.total - full:,} of {outline.total:,} failures are not shown in full"
        )
    if outline.total > MAX_ROWS:
        found.append(f"{outline.total - MAX_ROWS:,} of {outline.total:,} failures are not listed")
    if (more := len(outline.findings.launches) - _LAUNCHES) > 0:
        found.append(f"{plural(more, 'launch', 'launches')} not shown")
    return found


_ERROR, _STACK, _EXCERPT, _MESSAGE, DRAFT = 4_000, 8_000, 6_000, 4_000, 6_000
_TURNS, _EVIDENCE = 60, 20


def render_template(name: str, **facts: Any) -> str:
    return load_environment().get_template(name).render(**facts)


def read_template(name: str) -> str:
    return read_source(load_environment(), name)


@cache
def load_environment() -> Environment:
    """Return the template environment of this page."""
    made = load_templates("interlock_rca", "report")
    made.filters.update(
        suspect_link=words.build_suspect_link,
        launch_link=words.build_launch_link,
        state=words.find_state,
        trust=words.find_case_trust,
        meaning=words.explain_defect,
        standing=format_standing,
        kind_label=format_kind,
        advice=format_advice,
        made_by=format_analysts,
        history=format_history,
        values=list_values,
        draft=_format_draft,
        step_title=words.format_step,
        run_lines=format_runs,
        decisive_runs=find_decisive_runs,
        asks=lambda step: words.QUESTIONS.get(words.normalize_step(step), ""),
    )
    made.globals.update(
        KINDS=words.KINDS,
        STATES=words.STATES,
        DECISIONS=words.DECISIONS,
        SEVERITIES=words.SEVERITIES,
        error=lambda case: clip_block(case.error, _ERROR),
        stack=lambda case: clip_block(case.stack, _STACK),
        excerpt=lambda case: clip_block(case.excerpt, _EXCERPT),
        message=lambda text: clip_block(text, _MESSAGE),
        turns=lambda case: case.trail[:_TURNS],
        evidence=lambda references: references[:_EVIDENCE],
        verdict_word=choose_verdict_word,
    )
    return made


def choose_verdict_word(evidence: Evidence) -> str:
    """Return one of three words; evidence neither found nor missed was not checked."""
    return evidence.verdict if evidence.verdict in ("found", "missing") else "unchecked"


def list_values(turn: FindingStep) -> list[tuple[str, str]]:
    """Return the values that a decision read, by name. Presence flags are left out."""
    names = sorted((name for name in turn.read if not str(name).startswith("has(")), key=str)
    return [
        (format_line(str(name), 60), format_line(_format_value(turn.read[name]), 160))
        for name in names[:20]
    ]


def _format_draft(case: CaseFinding) -> str:
    return clip_block(format_case_draft(case), DRAFT)[0]


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError):
        return str(value)
