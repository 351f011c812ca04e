"""`report.json`: everything, in a stable order, by its schema.

All documents at once: named, writable, the same every time.
"""

import json
from pathlib import PurePosixPath

import jsonschema
import msgspec
from hypothesis import given, settings

from interlock_rca.records import FindingFamily, Findings
from interlock_rca.report.document import Document, build_schema, render_documents, render_json
from interlock_rca.report.outline import build_outline
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import example, hostile


def write_json(findings: Findings) -> bytes:
    return b"".join(render_json(build_outline(findings)))


def write_all(findings: Findings) -> dict[str, bytes]:
    return {name: b"".join(pieces) for name, pieces in render_documents(findings)}


def test_nothing_is_lost() -> None:
    read = msgspec.json.decode(write_json(example()), type=Document)
    assert read.schema_version == 1
    assert read.findings == example()


def test_the_summary_adds_up() -> None:
    summary = msgspec.json.decode(write_json(example()), type=Document).summary
    assert summary.failures == 40
    assert sum(summary.by_kind.values()) == sum(summary.by_state.values()) == 40
    assert sum(family.failures for family in summary.families) == 40
    assert (summary.causes, summary.regressions, summary.seen_before) == (6, 1, 3)
    assert summary.families[0].suspect.startswith("4be1c07d92")


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_fit_the_schema(findings: Findings) -> None:
    jsonschema.validate(json.loads(write_json(findings)), build_schema())


def test_hostile_texts_are_kept_as_far_as_utf8_can() -> None:
    read = json.loads(write_json(hostile()))
    assert read["findings"]["name"] == hostile().name
    write_json(hostile()).decode()


def test_keys_have_one_order() -> None:
    turned = msgspec.structs.replace(
        example(), thresholds=dict(reversed(list(example().thresholds.items())))
    )
    assert write_json(turned) == write_json(example())
    assert list(json.loads(write_json(example()))) == [
        "schema_version",
        "summary",
        "findings",
    ]


def test_every_document_is_there() -> None:
    names = list(write_all(example()))
    assert names[:4] == ["report.json", "report.html", "report.md", "regression-report.md"]
    assert all(name.startswith("jira-drafts/family-") for name in names[4:])
    assert len(names) == 10


@settings(max_examples=25)
@given(findings_of_any_kind())
def test_whatever_the_findings_names_are_safe_and_texts_writable(findings: Findings) -> None:
    found = write_all(findings)
    assert list(found.items()) == list(write_all(findings).items())
    for name, raw in found.items():
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert raw.endswith(b"\n") or name == "report.html"


def test_hostile_findings_are_written() -> None:
    for name, raw in write_all(hostile()).items():
        name.encode("ascii")
        raw.decode()


def test_long_reports_open_page_by_page() -> None:
    (case,) = example().cases[:1]
    cases = tuple(
        msgspec.structs.replace(case, case_id=f"C{number}", case_no=number)
        for number in range(1, 6_001)
    )
    family = FindingFamily(
        family_id="F", title="one", members=tuple(each.case_id for each in cases)
    )
    findings = msgspec.structs.replace(example(), cases=cases, families=(family,))
    pages = {name: raw.decode() for name, raw in write_all(findings).items() if "html" in name}
    assert list(pages) == ["report.html", "causes/1.html", "causes/1-2.html"]
    assert len(pages["report.html"]) < 200_000
    assert 'href="causes/1.html"' in pages["report.html"]
    assert 'href="1-2.html"' in pages["causes/1.html"]
    rows = [page.count("<li><span>") for page in pages.values()]
    assert rows == [0, 5_000, 1_000]
