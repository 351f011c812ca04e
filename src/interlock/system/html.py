"""The templates of pages: loaded once, every text escaped, an unknown name an error.

Knows which words templates may use, and how much of a text they show. Refuses to know findings as
a whole. Style and script lie beside the templates and are put in as they are: they are ours.
"""

from functools import cache
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from interlock.rca.records import CaseFinding, Evidence, FindingStep
from interlock.rca.report import words
from interlock.rca.report.jira import draft_text
from interlock.rca.report.summary import advice, history, kind_label, made_by, standing
from interlock.system import text

_ERROR, _STACK, _EXCERPT, _MESSAGE, DRAFT = 4_000, 8_000, 6_000, 4_000, 6_000
_TURNS, _EVIDENCE = 60, 20


def render(name: str, **facts: Any) -> str:
    return environment().get_template(name).render(**facts)


def source(name: str) -> str:
    return source_in(environment(), name)


def source_in(made: Environment, name: str) -> str:
    """A file beside the templates, as it is."""
    return made.loader.get_source(made, name)[0] if made.loader else ""


def templates_of(room: str) -> Environment:
    """The templates that lie in a room of ours."""
    return Environment(
        loader=PackageLoader("interlock", room),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> Environment:
    made = templates_of("rca/report")
    made.loader = ChoiceLoader(
        [PackageLoader("interlock", room) for room in ("rca/report", "delivery/report")]
    )
    made.filters.update(
        line=text.line,
        first_line=text.first_line,
        when=text.when,
        day=text.day,
        lasted=text.lasted,
        counted=text.counted,
        machine_time=machine_time,
        link=words.safe_link,
        suspect_link=words.suspect_link,
        launch_link=words.launch_link,
        state=words.state_of,
        trust=words.trust_of,
        meaning=words.defect_meaning,
        standing=standing,
        kind_label=kind_label,
        advice=advice,
        made_by=made_by,
        history=history,
        values=values,
        draft=_draft,
        step_title=words.step_title,
        asks=lambda step: words.QUESTIONS.get(words.step_name(step), ""),
    )
    made.globals.update(
        KINDS=words.KINDS,
        STATES=words.STATES,
        DECISIONS=words.DECISIONS,
        SEVERITIES=words.SEVERITIES,
        error=lambda case: text.block(case.error, _ERROR),
        stack=lambda case: text.block(case.stack, _STACK),
        excerpt=lambda case: text.block(case.excerpt, _EXCERPT),
        message=lambda said: text.block(said, _MESSAGE),
        turns=lambda case: case.trail[:_TURNS],
        evidence=lambda those: those[:_EVIDENCE],
        verdict_word=verdict_word,
    )
    return made


def verdict_word(evidence: Evidence) -> str:
    """One of three: what was neither found nor missed was not checked."""
    return evidence.verdict if evidence.verdict in ("found", "missing") else "unchecked"


def values(turn: FindingStep) -> list[tuple[str, str]]:
    """The values a decision read, by name. That one is there is plain from the value itself."""
    names = sorted((name for name in turn.read if not str(name).startswith("has(")), key=str)
    return [
        (text.line(str(name), 60), text.line(_plain(turn.read[name]), 160)) for name in names[:20]
    ]


def machine_time(at: str) -> str:
    found = text.moment(at)
    return found.isoformat() if found else ""


def _draft(case: CaseFinding) -> str:
    return text.block(draft_text(case), DRAFT)[0]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError):
        return str(value)
