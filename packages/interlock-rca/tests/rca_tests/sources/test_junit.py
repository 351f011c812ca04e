"""JUnit XML as it streams: whole, broken, cut off, hostile."""

import io
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock_rca.records import Failure
from interlock_rca.sources.junit import JUnitReport

WHOLE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="all">\n'
    '<testsuite name="gate" tests="3">\n'
    '<testcase classname="yard.Gate" name="opens"><failure message="shut" type="Shut">'
    "Gate.open:12</failure></testcase>\n"
    '<testcase classname="yard.Gate" name="closes"/>\n'
    '<testcase classname="yard.Gate" name="rusts"><skipped message="dry"/></testcase>\n'
    "</testsuite>\n"
    '<testsuite name="well"><testcase classname="yard.Well" name="fills">'
    "<error>dry</error></testcase></testsuite>\n</testsuites>\n"
)


def read(text: str | bytes, name: str = "r.xml") -> tuple[list[Failure], JUnitReport]:
    raw = text if isinstance(text, bytes) else text.encode()
    report = JUnitReport(io.BytesIO(raw), name)
    return list(report), report


def named(text: str | bytes) -> list[str]:
    return [failure.test_name for failure in read(text)[0]]


def test_a_whole_report_gives_failures_counts_and_jobs() -> None:
    failures, report = read(WHOLE)
    assert [(each.id, each.type, each.message, each.stack, each.job) for each in failures] == [
        ("yard.Gate.opens", "Shut", "shut", "Gate.open:12", "gate"),
        ("yard.Well.fills", "", "dry", "dry", "well"),
    ]
    assert report.tally == TestCounts(tests=4, failed=2, skipped=1)
    assert [(job.name, job.status, job.tally.tests) for job in report.jobs] == [
        ("gate", "FAILED", 3),
        ("well", "FAILED", 1),
    ]
    assert (report.title, report.notes) == ("all", [])


@given(st.integers(min_value=0, max_value=len(WHOLE)))
def test_a_report_cut_anywhere_gives_all_failures_that_stand_before_the_cut(cut: int) -> None:
    text = WHOLE[:cut]
    standing = [
        name
        for name, end in (("opens", WHOLE.index("</failure>")), ("fills", WHOLE.index("</error>")))
        if cut >= end
    ]
    try:
        failures, report = read(text)
    except SourceError:
        assert not standing
        return
    found = [failure.test_name for failure in failures]
    assert [name for name in found if name in standing] == standing
    assert set(found) <= {"opens", "fills"}
    if WHOLE[cut:].strip():
        assert "r.xml: it ends too early" in " ".join(report.notes)


@pytest.mark.parametrize(
    ("broken", "sign"),
    [
        ('message="shut &amp; <locked> & barred"', "locked"),
        ('message="shut" other="1" other="2"', "shut"),
        ("message='shut", "Gate.open"),
    ],
)
def test_a_broken_result_is_still_a_failure_and_the_rest_is_read(broken: str, sign: str) -> None:
    failures, report = read(WHOLE.replace('message="shut"', broken))
    assert [each.test_name for each in failures] == ["opens", "fills"]
    assert sign in failures[0].message + failures[0].stack
    assert report.tally.failed == 2
    assert "r.xml: broken XML" in report.notes[0]


@pytest.mark.parametrize(
    ("old", "new", "tests"),
    [
        ('name="opens"', 'name="opens <wide> & loud"', 4),
        ("Gate.open:12", "Gate<T>.open & shut &nbsp; :12", 4),
        ("</failure></testcase>", "</failure>", 4),
        ('<testcase classname="yard.Gate" name="closes"/>', "<<<>>> & junk", 3),
        ('<testcase classname="yard.Gate" name="rusts">', "</oops>", 3),
        ("</testsuite>\n", "</testsuite></testsuite>\n", 4),
        ("</testsuite>\n", "\n", 4),
        ("</testsuites>", '</testsuites><?xml version="1.0"?><testsuites></testsuites>', 4),
    ],
)
def test_one_broken_place_loses_no_failure(old: str, new: str, tests: int) -> None:
    failures, report = read(WHOLE.replace(old, new, 1))
    assert len(failures) == 2
    assert sorted(each.test_name[:5] for each in failures) == ["fills", "opens"]
    assert (report.tally.tests, report.tally.failed) == (tests, 2)
    assert report.notes


@given(st.integers(min_value=40, max_value=len(WHOLE)), st.text(alphabet="<>&\"'/]a ", max_size=8))
def test_no_text_anywhere_makes_it_fail(at: int, odd: str) -> None:
    try:
        failures, report = read(WHOLE[:at] + odd + WHOLE[at:])
    except SourceError:
        return
    assert report.tally.failed == len(failures)
    assert len({failure.id for failure in failures}) == len(failures)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(raw: bytes) -> None:
    for start in (b"", b"<testsuite>", b"<testsuite><testcase><failure>"):
        with suppress(SourceError):
            read(start + raw)


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:1/x">',
    ],
)
def test_entities_are_refused_with_what_to_do(declared: str) -> None:
    text = f"<!DOCTYPE testsuite [{declared}]><testsuite><testcase name='&a;'/></testsuite>"
    with pytest.raises(SourceError, match=r"declares XML entities.*Remove its <!DOCTYPE"):
        read(text)


def test_a_doctype_without_entities_is_no_harm() -> None:
    assert named(f'<!DOCTYPE testsuites SYSTEM "x.dtd">{WHOLE[39:]}') == ["opens", "fills"]


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        (b"", "r.xml is empty"),
        (b" \n ", "r.xml is empty"),
        (b"hello", "r.xml is not JUnit XML"),
        (b"<html><body/></html>", "r.xml is not JUnit XML"),
        (b"\x89PNG\r\n\x1a\n<", "r.xml is not JUnit XML"),
    ],
)
def test_what_is_no_report_is_said(raw: bytes, result: str) -> None:
    with pytest.raises(SourceError, match=result):
        read(raw)


def test_a_report_without_failures_has_none() -> None:
    failures, report = read('<testsuite name="s"><testcase name="a"/></testsuite>')
    assert (failures, report.tally) == ([], TestCounts(tests=1))
    assert read("<testsuites/>")[1].tally == TestCounts()


def test_a_tag_without_end_is_left_behind() -> None:
    huge = "x" * (5 * 1024 * 1024)
    text = WHOLE.replace('message="shut"', f'message="{huge}"')
    failures, report = read(text)
    assert [each.test_name for each in failures] == ["opens", "fills"]
    assert len(failures[0].message) < 20_000
    assert "a tag has no end" in report.notes[0]


def test_many_broken_places_are_counted_and_passed() -> None:
    case = '<testcase name="t"><failure message="a & b"/></testcase>'
    failures, report = read(f"<testsuite>{case * 3000}</testsuite>")
    assert len(failures) == 3000
    assert "r.xml: broken in 3000 places; the rest was read" in report.notes


def test_deep_suites_are_no_harm() -> None:
    depth = 20_000
    text = '<testsuite name="s">' * depth + '<testcase name="t"><failure/></testcase>'
    failures, _ = read(text + "</testsuite>" * depth)
    assert failures[0].path.count("s") == 20


def test_logs_of_any_size_are_cut_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    with path.open("w") as file:
        file.write("<testsuite><testcase name='t'><failure>f</failure><system-out>begin")
        for number in range(100_000):
            file.write(f"line {number} of a log that never ends\n")
        file.write("end</system-out></testcase></testsuite>")
    with path.open("rb") as stream:
        (failure,) = JUnitReport(stream, "r.xml", log_bound=1_000)
    assert failure.log.startswith("beginline 0")
    assert failure.log.endswith("end")
    assert "characters cut]" in failure.log
    assert len(failure.log) < 1_100
    assert failure.log_truncated
