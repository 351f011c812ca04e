"""What each tool writes, and where.

The telling line: what a tool says about a failure, where its message is only a name.
"""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.test_output import TestCounts
from interlock_rca.records import Failure
from interlock_rca.sources.junit import JUnitReport
from interlock_rca.sources.junit_elements import pick_informative_line


def read(text: str, name: str = "report.xml") -> tuple[list[Failure], JUnitReport]:
    report = JUnitReport(io.BytesIO(text.encode()), name)
    return list(report), report


def test_pytest_file_line_and_captured_output() -> None:
    (failure,), _ = read(
        '<testsuites><testsuite name="pytest" timestamp="2025-03-01T10:00:00.5+00:00" '
        'hostname="runner-3" time="4.5"><testcase classname="tests.test_lamp" name="test_on[1-2]" '
        'file="tests/test_lamp.py" line="17" time="0.25"><failure message="assert 1 == 2">'
        "def test_on():\n&gt; assert 1 == 2</failure><system-out>hum</system-out>"
        "<system-err>buzz</system-err></testcase></testsuite></testsuites>"
    )
    assert failure.id == "tests.test_lamp.test_on-1-2"
    assert (failure.file, failure.line) == ("tests/test_lamp.py", 17)
    assert failure.stack == "def test_on():\n> assert 1 == 2"
    assert failure.log == "hum\nbuzz"
    assert failure.at == "2025-03-01T10:00:00.500Z"
    assert failure.attributes == {"result": "failure", "time": "0.25", "hostname": "runner-3"}


def test_surefire_reruns_and_flaky_tests() -> None:
    failures, report = read(
        '<testsuite name="yard.LampTest"><testcase classname="yard.LampTest" name="glows">'
        '<flakyFailure message="dark"><stackTrace>x</stackTrace><system-out>no</system-out>'
        "</flakyFailure></testcase>"
        '<testcase classname="yard.LampTest" name="dims"><failure message="bright" type="yard.E">'
        "<![CDATA[yard.E: bright\n\tat yard.Lamp.dim(Lamp.java:3)]]></failure>"
        '<rerunFailure message="bright again"><stackTrace>y</stackTrace></rerunFailure>'
        "</testcase></testsuite>"
    )
    (failure,) = failures
    assert (failure.test_name, failure.attributes["reruns"]) == ("dims", "1")
    assert failure.stack == "yard.E: bright\n\tat yard.Lamp.dim(Lamp.java:3)"
    assert report.tally == TestCounts(tests=2, failed=1)
    assert report.notes == ["report.xml: passed only when run again: 1 (glows)"]


def test_gotestsum_a_test_that_passed_when_run_again_is_marked() -> None:
    failures, report = read(
        '<testsuites><testsuite name="example.org/lamp"><testcase classname="example.org/lamp" '
        'name="TestGlow"><failure message="Failed" type="">=== RUN</failure></testcase>'
        '<testcase classname="example.org/lamp" name="TestGlow"/></testsuite></testsuites>'
    )
    assert [each.id for each in failures] == ["example.org-lamp.TestGlow"]
    assert report.flipped == {"example.org-lamp.TestGlow"}
    assert report.tally == TestCounts(tests=2, failed=1), "as it stands there"
    assert report.repeats == {"example.org/lamp": TestCounts(tests=1)}, "the same test, twice"


def test_jest_names_with_spaces_and_the_same_name_twice() -> None:
    case = '<testcase classname="lamp glows" name="lamp glows"><failure>E</failure></testcase>'
    failures, _ = read(
        f'<testsuites name="jest tests"><testsuite>{case * 3}</testsuite></testsuites>'
    )
    assert [each.id for each in failures] == ["lamp-glows", "lamp-glows#2", "lamp-glows#3"]
    assert {each.job for each in failures} == {"report"}


def test_playwright_attachments() -> None:
    (failure,), _ = read(
        '<testsuite name="lamp.spec.ts"><testcase name="glows"><failure message="lamp.spec.ts:3">E'
        "</failure><system-out>[[ATTACHMENT|out/shot-1.png]]\n[[ATTACHMENT|out/trace.zip]]"
        "</system-out></testcase></testsuite>"
    )
    assert failure.attributes["attachments"] == "out/shot-1.png\nout/trace.zip"


def test_nunit_converted_suites_in_suites() -> None:
    (failure,), report = read(
        '<testsuites><testsuite name="Yard.dll"><testsuite name="Yard"><testsuite name="LampTests">'
        '<testcase name="Glows" classname="Yard.LampTests"><failure message="dark">at Yard'
        "</failure></testcase></testsuite></testsuite></testsuite></testsuites>"
    )
    assert (failure.path, failure.job) == ("Yard.dll / Yard / LampTests", "LampTests")
    assert [job.name for job in report.jobs] == ["LampTests"]


def test_namespaces_and_phpunits_class() -> None:
    (failure,), _ = read(
        '<j:testsuite xmlns:j="urn:junit" name="s"><j:testcase name="glows" class="Lamp">'
        "<j:error>E</j:error></j:testcase></j:testsuite>"
    )
    assert failure.id == "Lamp.glows"
    assert failure.attributes == {"result": "error"}


def test_no_names_at_all() -> None:
    failures, report = read(
        "<testsuite><testcase><failure/></testcase><testcase><error/></testcase></testsuite>"
    )
    assert [(each.id, each.test_name) for each in failures] == [("report", ""), ("report#2", "")]
    assert report.tally.failed == 2


def test_several_results_of_one_case_are_one_failure() -> None:
    (failure,), report = read(
        '<testsuite><testcase name="t"><skipped/><failure message="first" type="">one</failure>'
        '<error message="then" type="E">two</error></testcase></testsuite>'
    )
    assert (failure.type, failure.message, failure.stack) == ("E", "first\nthen", "one\n\ntwo")
    assert report.tally == TestCounts(tests=1, failed=1)


def test_properties_become_attributes_but_secrets_do_not() -> None:
    (failure,), report = read(
        '<testsuite><properties><property name="os" value="linux"/>'
        '<property name="note">in text</property></properties>'
        '<testcase name="t"><properties><property name="issue" value="Y-1"/>'
        '<property name="api_token" value="abc"/></properties><failure/></testcase></testsuite>'
    )
    assert failure.attributes == {"issue": "Y-1", "result": "failure"}
    assert report.properties == {"os": "linux", "note": "in text"}


def test_the_log_of_a_suite_is_that_of_its_failures_without_one() -> None:
    failures, _ = read(
        '<testsuites><testsuite name="s"><testcase name="a"><failure/></testcase>'
        '<testcase name="b"><failure/><system-out>mine</system-out></testcase>'
        "<system-out>ours</system-out></testsuite>"
        '<testsuite name="z"><testcase name="c"><failure/></testcase></testsuite></testsuites>'
    )
    assert {each.test_name: each.log for each in failures} == {"a": "ours", "b": "mine", "c": ""}


def test_failures_wait_for_a_suites_log_only_within_a_bound() -> None:
    stack = "x" * 200_000
    case = f'<testcase name="t"><failure>{stack}</failure></testcase>'
    report = JUnitReport(
        io.BytesIO(f"<testsuite>{case * 60}<system-out>late</system-out></testsuite>".encode()),
        "r.xml",
    )
    logs = [each.log for each in report]
    assert len(logs) == 60
    assert logs[0] == ""
    assert logs[-1] == "late"


def test_an_error_of_a_suite_itself_is_said() -> None:
    _, report = read('<testsuite name="s"><error message="no compiler"/></testsuite>')
    assert report.notes == ["report.xml: the suite s has an error: no compiler"]


def test_times_of_a_case_and_of_a_job() -> None:
    (failure,), report = read(
        '<testsuite name="s" timestamp="2025-03-01T10:00:00Z" time="1,200.5">'
        '<testcase name="a" timestamp="2025-03-01T10:00:07Z" time="2"><failure/></testcase>'
        "</testsuite>"
    )
    assert (failure.at, failure.ended_at) == ("2025-03-01T10:00:07Z", "2025-03-01T10:00:09Z")
    assert report.jobs[0].ended_at == "2025-03-01T10:20:00.500Z"


GO = "=== RUN   TestLid\n    lid_test.go:4: Lids() = 3, want 2\n--- FAIL: TestLid (0.00s)"
BROWSER = (
    "  [chrome] > lid.spec.ts:3:5 > opens a lid ---\n\n    Error: no lid\n    at lid.spec.ts:3:9"
)
COLLECTED = "tests/lids.py:5: in open_lid\n    lid(shut=1)\nE   TypeError: lid() takes no 'shut'"


@pytest.mark.parametrize(
    ("message", "body", "test_name", "result"),
    [
        ("Failed", GO, "TestLid", "lid_test.go:4: Lids() = 3, want 2"),
        ("lid.spec.ts:3:5 opens a lid", BROWSER, "opens a lid", "Error: no lid"),
        ("", "LidTest::testOpen\nthe lid is shut", "testOpen", "the lid is shut"),
        ("", "the lid is shut\nsecond", "testOpen", "the lid is shut"),
        ("add returned 3", "another line", "add", "add returned 3"),
        ("the lid is shut", GO, "TestLid", "the lid is shut"),
        ("Failed", "", "TestLid", "Failed"),
        ("collection failure", COLLECTED, "", "TypeError: lid() takes no 'shut'"),
        ("the lid is shut", COLLECTED, "", "the lid is shut"),
        ("", "", "", ""),
    ],
)
def test_the_telling_line(message: str, body: str, test_name: str, result: str) -> None:
    assert pick_informative_line(message, body, test_name) == result


@given(st.text(), st.text(), st.text())
def test_nothing_is_made_up(message: str, body: str, test_name: str) -> None:
    result = pick_informative_line(message, body, test_name)
    assert result in message or result in body
