"""All documents at once: named, writable, the same every time."""

from pathlib import PurePosixPath

from hypothesis import given, settings
from tests.rca.report.strategies import findings_of_any_kind
from tests.world.findings import example, hostile

from interlock.rca.records import Findings
from interlock.rca.report.document import documents


def test_every_document_is_there() -> None:
    names = [name for name, _ in documents(example())]
    assert names[:4] == ["report.html", "report.md", "report.json", "regression-report.md"]
    assert all(name.startswith("jira-drafts/family-") for name in names[4:])
    assert len(names) == 16


@settings(max_examples=25)
@given(findings_of_any_kind())
def test_whatever_the_findings_names_are_safe_and_texts_writable(findings: Findings) -> None:
    found = list(documents(findings))
    assert found == list(documents(findings))
    for name, raw in found:
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert raw.endswith(b"\n") or name == "report.html"


def test_hostile_findings_are_written() -> None:
    for name, raw in documents(hostile()):
        name.encode("ascii")
        raw.decode()
