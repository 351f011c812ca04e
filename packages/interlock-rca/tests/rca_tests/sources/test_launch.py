"""Files that form one launch, and what its logs add to it."""

from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock_rca.records import Failure, Launch
from interlock_rca.sources.job_log import FAILED, SUCCEEDED, UNKNOWN
from interlock_rca.sources.read import SourceLaunch, read_sources
from rca_tests.worlds.job_logs import GREEN_TESTS, JOBS


def suite(name: str, *tests: str, more: str = "") -> str:
    cases = "".join(
        f'<testcase classname="yard.Lamp" name="{test}"><failure message="{test}"/></testcase>'
        for test in tests
    )
    return (
        f'<testsuite name="{name}" timestamp="2025-03-01T10:00:00Z" time="5">{more}'
        f'{cases}<testcase name="fine"/></testsuite>'
    )


def read(*words: Path, name: str = "") -> SourceLaunch:
    (intake,) = read_sources([str(word) for word in words], name=name)
    return intake


def test_files_of_one_call_are_one_launch(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text(suite("one", "glows"))
    (tmp_path / "two.xml").write_text(suite("two", "glows", "dims"))
    found = read(tmp_path)
    assert [each.id for each in found.failures] == [
        "yard.Lamp.glows",
        "two.yard.Lamp.glows",
        "yard.Lamp.dims",
    ]
    assert {each.launch for each in found.failures} == {found.launch.launch_id}
    assert found.launch.tally == TestCounts(tests=5, failed=3)
    assert [(job.name, job.status) for job in found.launch.jobs] == [
        ("one", "FAILED"),
        ("two", "FAILED"),
    ]
    assert (found.launch.started_at, found.launch.ended_at) == (
        "2025-03-01T10:00:00Z",
        "2025-03-01T10:00:05Z",
    )


def test_the_content_names_the_launch_and_nothing_else_does(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.xml", "b.xml", "c.xml")]
    for path, name in zip(paths, ("one", "two", "one"), strict=True):
        path.write_text(suite(name, "glows"))
    one, other = read(*paths[:2]), read(*reversed(paths[1:]), name="other")
    assert one.launch.launch_id == other.launch.launch_id
    assert read(paths[0]).launch.launch_id != one.launch.launch_id


@pytest.mark.parametrize(
    ("title", "name", "found"),
    [("", "", "lamps"), ("nightly", "", "nightly"), ("t", "mine", "mine")],
)
def test_the_name_is_given_or_told_or_the_files_own(
    tmp_path: Path, title: str, name: str, found: str
) -> None:
    path = tmp_path / "lamps.xml"
    path.write_text(f'<testsuites name="{title}">{suite("s", "t")}</testsuites>')
    assert read(path, name=name).launch.name == found


def test_several_files_are_called_like_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "night" / "deep"
    folder.mkdir(parents=True)
    (folder / "a.xml").write_text(suite("a", "t"))
    (folder.parent / "b.xml").write_text(suite("b", "t"))
    assert read(folder.parent).launch.name == "night"


def test_the_same_content_twice_is_read_once(tmp_path: Path) -> None:
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_text(suite("s", "glows"))
    found = read(tmp_path)
    assert found.launch.tally == TestCounts(tests=2, failed=1)
    assert found.notes == [f"{tmp_path}/b.xml: the same as {tmp_path}/a.xml: read once"]


def test_a_sum_of_reports_beside_them_counts_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "TEST-one.xml").write_text(suite("one", "glows"))
    (tmp_path / "TESTS-all.xml").write_text(f"<testsuites>{suite('one', 'glows')}</testsuites>")
    found = read(tmp_path)
    assert len(found.failures) == 1
    assert found.launch.tally == TestCounts(tests=2, failed=1)
    assert "1 failures stand in an earlier report too" in found.notes[0]


def test_reports_that_overlap_count_what_is_in_both_once(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(suite("one", "glows"))
    (tmp_path / "b.xml").write_text(suite("one", "glows", "dims"))
    found = read(tmp_path)
    assert [each.test_name for each in found.failures] == ["glows", "dims"]
    assert found.launch.tally.failed == 2


def test_facts_of_the_build_come_from_properties(tmp_path: Path) -> None:
    facts = {"GITHUB_SHA": "abc", "GIT_BRANCH": "origin/main", "version": "2.1", "my.token": "x"}
    rows = "".join(f'<property name="{key}" value="{value}"/>' for key, value in facts.items())
    (tmp_path / "a.xml").write_text(suite("s", "t", more=f"<properties>{rows}</properties>"))
    launch = read(tmp_path).launch
    assert (launch.commit, launch.branch, launch.version) == ("abc", "main", "2.1")
    assert "my.token" not in launch.attributes


def test_a_log_beside_a_report_helps_those_without_one(tmp_path: Path) -> None:
    own = '<testcase name="dims"><failure/><system-out>mine</system-out></testcase>'
    (tmp_path / "a.xml").write_text(
        suite("s", "glows").replace("</testsuite>", own + "</testsuite>")
    )
    (tmp_path / "a.log").write_text("switch on\nglows: no\n")
    (tmp_path / "z.log").write_text("not ours")
    found = read(tmp_path)
    assert {each.test_name: each.log for each in found.failures} == {
        "dims": "mine",
        "glows": "switch on\nglows: no",
    }
    assert found.notes == [f"{tmp_path}/a.log: taken as the log of 1 failure"]


def test_a_log_given_with_a_report_is_its_log_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(suite("s", "glows"))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "out.txt").write_text("glows: no")
    assert read(tmp_path / "a.xml", tmp_path / "far" / "out.txt").failures[0].log == "glows: no"


def test_without_reports_logs_are_read_for_failures(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        "=== RUN   TestGlow\n    lamp_test.go:9: dark\n--- FAIL: TestGlow (0.00s)\nFAIL\n"
    )
    found = read(tmp_path)
    assert [(each.test_name, each.job) for each in found.failures] == [("TestGlow", "run")]
    assert found.launch.name == "run"


def test_a_test_that_passed_when_run_again_is_marked_as_flaky(tmp_path: Path) -> None:
    again = '<testcase classname="yard.Lamp" name="glows"/></testsuite>'
    (tmp_path / "a.xml").write_text(suite("s", "glows").replace("</testsuite>", again))
    found = read(tmp_path)
    assert found.failures[0].attributes["flaky"] == "true"
    assert found.launch.tally == TestCounts(tests=2, failed=1)
    assert "1 failed test passed when run again" in found.notes[0]


def test_several_results_of_one_test_are_one_test_with_attempts(tmp_path: Path) -> None:
    passed = '<testcase classname="yard.Lamp" name="glows"/>'
    failed = '<testcase classname="yard.Lamp" name="glows"><failure message="dark"/></testcase>'
    other = failed.replace("glows", "dims")
    cases = passed + failed + failed + other + other
    (tmp_path / "a.xml").write_text(f'<testsuite name="s">{cases}</testsuite>')
    found = read(tmp_path)
    facts = {each.test_name: each.attributes for each in found.failures}
    assert [(facts[name].get("attempts"), facts[name].get("flaky")) for name in facts] == [
        ("3", "true"),
        ("2", None),
    ]
    assert found.launch.tally == TestCounts(tests=2, failed=2)


def test_no_failures_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(suite("s"))
    found = read(tmp_path)
    assert found.failures == []
    assert found.launch.status == "PASSED"
    assert found.notes == ["there are no failures in there"]
    assert isinstance(found.launch, Launch)


def test_a_run_that_broke_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "build.log").write_text("error: no matching package named `hinge` found\n")
    found = read(tmp_path)
    (broken,) = found.failures
    assert (broken.test_name, broken.job) == ("build", "build")
    assert broken.message == "no matching package named `hinge` found"
    assert "no test ran; the run itself is taken as one failure" in found.notes[0]
    (tmp_path / "junit.xml").write_text('<testsuite name="pytest" tests="0"/>')
    assert [each.message for each in read(tmp_path).failures] == [broken.message]


def test_a_log_that_only_counts_failures_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "ci.log").write_text("error: no hinge\n  5 passing (20ms)\n  2 failing\n")
    found = read(tmp_path)
    assert [each.message for each in found.failures] == ["no hinge"]
    assert "2 tests failed, but none by name" in found.notes[0]


def read_log(folder: Path, log: str, job_exit: int | None = None) -> list[Failure] | str:
    """The failures of a log, or why it cannot be told whether there are any."""
    path = folder / "console.log"
    path.write_text(log)
    try:
        (found,) = read_sources([str(path)], job_exit=job_exit)
    except SourceError as error:
        return str(error)
    return found.failures


def test_every_log_of_a_failed_job_has_a_failure_and_only_these(tmp_path: Path) -> None:
    wrong = []
    for name, status, _, log in JOBS:
        found = read_log(tmp_path, log)
        outcome = UNKNOWN if isinstance(found, str) else FAILED if found else SUCCEEDED
        if outcome != status:
            wrong.append(f"{name}: {outcome}, not {status}: {found}")
    assert not wrong, f"{len(wrong)} of {len(JOBS)}:\n" + "\n".join(wrong)


def test_what_a_long_log_complained_of_earlier_did_not_break_it(tmp_path: Path) -> None:
    early = "Could not read the cache: it is built anew\n" + "fetching\n" * 900
    found = read_log(tmp_path, f"{early}lamp.c:7:3: error: no glow\nFinished: FAILURE\n")
    assert not isinstance(found, str)
    assert [failure.message for failure in found] == ["no glow"]
    assert found[0].attributes == {"kind": "compile", "tool": "compiler"}


GREEN = GREEN_TESTS["<pytest>"]
LINT = "yard/lamp.py:3:1: F401 'os' imported but unused\nmake: *** [lint] Error 1\n"


def test_a_step_that_failed_after_green_tests_is_a_failure_of_its_own_kind(tmp_path: Path) -> None:
    found = read_log(tmp_path, GREEN + LINT)
    assert not isinstance(found, str)
    (failure,) = found
    assert (failure.test_name, failure.job) == ("console (lint)", "console")
    assert failure.message == "yard/lamp.py:3:1: F401 'os' imported but unused"
    assert failure.attributes == {"kind": "lint", "tool": "flake8"}
    assert failure.log.endswith("make: *** [lint] Error 1")


def test_a_log_that_does_not_say_how_its_job_ended_proves_nothing(tmp_path: Path) -> None:
    why = read_log(tmp_path, "make: *** [probe] Error 1\n" + GREEN)
    assert isinstance(why, str)
    assert "12 tests ran and none failed, but no line says how the job itself ended" in why
    assert "Line 1 says 'make: *** [probe] Error 1'" in why
    assert "--job-exit CODE" in why


def test_the_exit_code_of_the_job_settles_it(tmp_path: Path) -> None:
    assert read_log(tmp_path, GREEN, job_exit=0) == []
    assert read_log(tmp_path, GREEN + LINT, job_exit=0) == []
    found = read_log(tmp_path, GREEN, job_exit=3)
    assert not isinstance(found, str)
    assert [failure.message for failure in found] == [
        "the job ended with exit code 3, and nothing that was read says why"
    ]
    explained = read_log(tmp_path, GREEN + LINT, job_exit=3)
    assert not isinstance(explained, str)
    assert [failure.test_name for failure in explained] == ["console (lint)"]


def test_green_reports_prove_nothing_about_the_log_beside_them(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(suite("s"))
    assert read(report).failures == []
    (tmp_path / "console.log").write_text(GREEN)
    assert read(report).failures == [], "the reports are proof enough for the tests"
    (tmp_path / "console.log").write_text(GREEN + LINT)
    for word in (report, tmp_path):
        assert [failure.test_name for failure in read(word).failures] == ["console (lint)"]
    ((found,),) = ([launch.failures for launch in read_sources([str(report)], job_exit=0)],)
    assert found == []


def test_failures_that_a_log_counts_and_does_not_name_are_said(tmp_path: Path) -> None:
    log = "--- FAIL: TestGlow (0.1s)\nDONE 5 tests, 3 failures in 1.0s\n"
    (tmp_path / "ci.log").write_text(log)
    found = read(tmp_path)
    assert len(found.failures) == 1
    assert found.notes[0].endswith("ci.log: counts 3 failed tests and names 1 of them")
