"""Write `report.json` with its JSON Schema, and list all documents of a suite.

The JSON cuts nothing: everything that other documents leave out is in it. Equal findings give equal
documents, byte for byte.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from interlock.system.text import replace_unencodable
from interlock_rca.records import CaseFinding, Findings
from interlock_rca.report.jira import render_drafts
from interlock_rca.report.markdown import render_markdown, render_regressions
from interlock_rca.report.outline import Outline, build_outline
from interlock_rca.report.page import render_page, render_parts
from interlock_rca.report.summary import format_verdict

SCHEMA_VERSION = 1


class FamilySummary(msgspec.Struct, frozen=True, kw_only=True):
    """A cause in numbers. `family_id` is empty for ungrouped cases."""

    number: int
    family_id: str
    title: str
    kind: str
    defect_type: str
    severity: str
    failures: int
    states: Mapping[str, int]
    regression: bool
    seen_before: bool
    first_seen: str
    suspect: str
    """The first suspect's commit, or ""."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict in numbers."""

    verdict: str
    failures: int
    causes: int
    regressions: int
    seen_before: int
    by_kind: Mapping[str, int]
    """Failures by kind of cause; they add up to all failures."""
    by_state: Mapping[str, int]
    """Failures by state; they add up to all failures."""
    families: tuple[FamilySummary, ...]
    """The most important families first."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    schema_version: int
    summary: Summary
    findings: Findings


def render_json(outline: Outline) -> Iterator[bytes]:
    """Yield `report.json` in pieces."""
    yield from insert_cases(encode_document(outline), outline)
    yield b"\n"


def encode_document(outline: Outline) -> dict[str, Any]:
    """Return the document as plain values without its cases, with only text that UTF-8 can
    encode."""
    findings = msgspec.structs.replace(outline.findings, cases=())
    document = Document(
        schema_version=SCHEMA_VERSION, summary=build_summary(outline), findings=findings
    )
    plain: dict[str, Any] = _make_plain(document)
    return plain


_NO_CASES = b'\n    "cases": []'


def insert_cases(fields: Mapping[str, Any], outline: Outline) -> Iterator[bytes]:
    """Yield the text of an object that holds a document and its cases. Cases are written one by
    one, because all cases of a very red night would fill much memory."""
    text = msgspec.json.format(msgspec.json.encode(fields), indent=2)
    if not outline.findings.cases:
        yield text
        return
    before, _, after = text.partition(_NO_CASES)
    yield before + b'\n    "cases": ['
    for number, case in enumerate(outline.findings.cases):
        body = msgspec.json.format(_encode_case(case), indent=2).replace(b"\n", b"\n      ")
        yield (b",\n      " if number else b"\n      ") + body
    yield b"\n    ]" + after


def _encode_case(case: CaseFinding) -> bytes:
    try:
        return msgspec.json.encode(case, order="deterministic")
    except UnicodeEncodeError:
        return msgspec.json.encode(_make_plain(case))


def _make_plain(value: Any) -> Any:
    return _make_writable(msgspec.to_builtins(value, order="deterministic", str_keys=True))


def build_summary(outline: Outline) -> Summary:
    return Summary(
        verdict=format_verdict(outline),
        failures=outline.total,
        causes=len(outline.families),
        regressions=sum(cause.regression for cause in outline.families),
        seen_before=sum(cause.known for cause in outline.families),
        by_kind=outline.kinds,
        by_state=outline.states,
        families=tuple(
            FamilySummary(
                number=cause.number,
                family_id=cause.family_id,
                title=cause.title,
                kind=cause.kind,
                defect_type=cause.defect_type,
                severity=cause.severity,
                failures=cause.size,
                states=cause.states,
                regression=cause.regression,
                seen_before=cause.known,
                first_seen=cause.since,
                suspect=cause.suspects[0].commit if cause.suspects else "",
            )
            for cause in outline.causes
        ),
    )


def build_schema() -> dict[str, Any]:
    """The JSON Schema of report.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlock report",
        **msgspec.json.schema(Document),
    }


def _make_writable(value: Any) -> Any:
    """Return the value with only text that UTF-8 can encode."""
    if isinstance(value, str):
        return value if value.isascii() else replace_unencodable(value)
    if isinstance(value, dict):
        return {_make_writable(name): _make_writable(each) for name, each in value.items()}
    return [_make_writable(each) for each in value] if isinstance(value, list | tuple) else value


_LONG = 2_000
"""The number of failures at which causes get pages of their own, so that the first page opens at
once."""


def render_pages(overview: Outline) -> Iterator[tuple[str, bytes]]:
    """Yield the browser report: one page, or one more for each cause."""
    in_parts = overview.total > _LONG
    yield "report.html", render_page(overview, in_parts=in_parts).encode()
    for name, page in render_parts(overview) if in_parts else ():
        yield name, page.encode()


def render_documents(findings: Findings) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield every file in pieces, with its path below the report's folder; the file that marks the
    folder as a report comes first. Files are made on demand, as those of a very red night fill much
    memory."""
    overview = build_outline(findings)
    yield "report.json", render_json(overview)
    for name, page in render_pages(overview):
        yield name, (page,)
    yield "report.md", (render_markdown(overview).encode(),)
    yield "regression-report.md", (render_regressions(overview).encode(),)
    for name, text in render_drafts(overview).items():
        yield name, (text.encode(),)
