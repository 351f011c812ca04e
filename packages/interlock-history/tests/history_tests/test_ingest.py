"""Reports as runners write them, taken into the memory: tries, masked names, excerpts."""

from pathlib import Path

import msgspec
import pytest

from interlock.system.errors import SourceError
from interlock.system.secrets import mask_secrets
from interlock_history.ingest import Results, describe_tries, ingest_results, read_results
from interlock_history.segment import FAIL, FLIP, PASS, SKIP, decode_duration, encode_duration
from interlock_history.store import FolderStore
from interlock_rca.ci_run import CiRun
from interlock_rca.test_names import find_unstable_names, make_test_id, match_tests

REPORT = """<testsuites><testsuite name="pytest" timestamp="2026-11-15T02:00:00Z">
<testcase classname="t.test_a" name="test_pass" time="1.5"/>
<testcase classname="t.test_a" name="test_skip"><skipped/></testcase>
<testcase classname="t.test_a" name="test_rerun"><flakyFailure message="no"/></testcase>
<testcase classname="t.test_a" name="test_fail"><failure message="assert 1 == 2 token=s3cr3tv4lue"
 type="AssertionError">trace</failure><rerunFailure message="again"/></testcase>
<testcase classname="t.test_a" name="test_twice"><failure message="x">x</failure></testcase>
<testcase classname="t.test_a" name="test_twice"/>
<testcase classname="t.test_a" name="test_at[2026-11-15T02:00:01Z]"/>
<testcase classname="t.test_a" name="test_at[2026-11-15T02:00:02Z]"><error/></testcase>
<testcase classname="t.test_a" name="test_n[1]"/><testcase classname="t.test_a" name="test_n[2]"/>
</testsuite></testsuites>"""


def read(folder: Path, *texts: str) -> Results:
    for number, text in enumerate(texts):
        (folder / f"r{number}.xml").write_text(text, encoding="utf-8")
    return read_results([str(folder)])


def test_tries_are_one_test_and_a_late_pass_is_never_just_passed(tmp_path: Path) -> None:
    found = read(tmp_path, REPORT, REPORT)
    assert {test: bits for test, (bits, _) in found.statuses.items()} == {
        "t.test_a::test_pass": PASS,
        "t.test_a::test_skip": SKIP,
        "t.test_a::test_rerun": FLIP,
        "t.test_a::test_fail": FAIL,
        "t.test_a::test_twice": FLIP,
        # One of two that differ in a time only has failed: no try of the other.
        "t.test_a::test_at[<time>]": FAIL,
        "t.test_a::test_n[1]": PASS,
        "t.test_a::test_n[2]": PASS,
    }
    failed = {each.test.partition("::")[2]: each for each in found.failures}
    assert {name: describe_tries(each.tries) for name, each in failed.items()} == {
        "test_rerun": "failed, then passed",
        "test_fail": "failed",
        "test_twice": "failed, then passed",
        "test_at[<time>]": "failed",
    }
    assert failed["test_fail"].tries == "FF"
    assert failed["test_fail"].excerpt == "AssertionError: assert 1 == 2 token=[masked]"
    assert len(failed["test_fail"].fingerprint) == 16
    assert "the same file as another one" in "\n".join(found.notes)
    assert "1 test counted with another" in "\n".join(found.notes)
    assert found.started_at == 1794708000.0


def test_two_reports_of_one_job_are_tries_of_its_tests(tmp_path: Path) -> None:
    case = '<testsuite name="s"><testcase classname="c" name="t">{}</testcase></testsuite>'
    found = read(tmp_path, case.format('<failure message="m"/>'), case.format(""))
    assert found.statuses["s::c::t"][0] == FLIP


def test_taking_in_again_changes_nothing_and_clocks_may_lie(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT)
    store = FolderStore(tmp_path / "memory")
    run = CiRun(run="1", commit="a" * 40)
    first = ingest_results([str(tmp_path / "r.xml")], run, store, now=1794750000.0)
    assert (first.is_new, first.segment.run.at) == (True, 1794708000.0)
    again = ingest_results([str(tmp_path / "r.xml")], run, store, now=1794800000.0)
    assert (again.is_new, again.segment.id) == (False, first.segment.id)
    lying = (tmp_path / "r.xml").read_text().replace("2026-11-15T02:00:00Z", "2099-01-01T00:00:00")
    (tmp_path / "r.xml").write_text(lying)
    early = ingest_results([str(tmp_path / "r.xml")], run, store, now=1794600000.0)
    assert "far from now" in "\n".join(early.notes)
    assert (early.is_new, early.segment.run.at) == (False, 1794600000.0)
    kept = store.read(first.segment.id)
    assert kept is not None
    assert kept.run.at == 1794600000.0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JUnit XML"),
        ("<testsuite name='x'></testsuite>", "no JUnit XML"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><testsuite><testcase name="&b;"/></testsuite>',
            "XML entities",
        ),
    ],
)
def test_reports_without_results_are_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=why):
        read(tmp_path, text)


def test_names() -> None:
    assert make_test_id("pytest", "a.B", "test_x") == "a.B::test_x"
    assert make_test_id("a.B", "a.B", "x()") == "a.B::x()"
    assert make_test_id("web", "", "opens a page") == "web::opens a page"
    assert make_test_id("", "", "\x1b[31mx") == "x"
    uuid = "0b9ea1d5-5b0c-4e7c-a6e9-3f1d2c4b5a69"
    assert make_test_id("", "", f"t[{uuid}-0x7f00aa12bc30]") == "t[<uuid>-<address>]"
    assert make_test_id("", "", "t[/tmp/pytest-1/x]") == "t[<tmp>]"
    assert make_test_id("", "", "t[1-2-3]") == "t[1-2-3]"
    known = ["a::test_x", "b::test_x", "a::test_xy"]
    assert match_tests(known, "a::test_x") == ["a::test_x"]
    assert match_tests(known, "test_x") == ["a::test_x", "b::test_x"]
    assert match_tests(known, "XY") == ["a::test_xy"]
    drawn = {f"t[user-{n * 7919}]": 1 for n in range(12)}
    steady = {f"t[case {n}]": 9 for n in range(12)}
    assert find_unstable_names(drawn | steady, 9) == [("t[user-<num>]", 12)]
    assert find_unstable_names(steady, 9) == []


def test_durations_are_kept_to_a_few_per_cent() -> None:
    for seconds in (0.001, 0.02, 1.0, 61.0, 3_600.0):
        kept = decode_duration(encode_duration(seconds))
        assert kept == pytest.approx(seconds, rel=0.04, abs=0.0005)
    assert decode_duration(encode_duration(-1.0)) is None
    assert decode_duration(encode_duration(float("nan"))) is None


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "glpat-abcdefghij0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sflKxwRJSMeKKF2QT4",
        "hunter2hunter2",
    ],
)
def test_secrets_are_masked(secret: str) -> None:
    named = f"refused: password={secret}; retry"
    assert secret not in mask_secrets(named)
    assert mask_secrets(named).endswith("; retry")
    if secret != "hunter2hunter2":
        assert mask_secrets(f"got {secret} back") == "got [masked] back"
    assert mask_secrets(f"at https://bot:{secret}@host/x") == "at https://[masked]@host/x"
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----"
    assert mask_secrets(f"a {block} b") == "a [masked] b"
    plain = "expected token count 7 but was 8: author is Bo"
    assert mask_secrets(plain) == plain


def make_report(project: str) -> str:
    cases = "".join(f'<testcase classname="{project}" name="t{n}"/>' for n in range(12))
    return f'<testsuite name="pytest">{cases}</testsuite>'


def test_reports_of_another_project_among_known_ones_are_named(tmp_path: Path) -> None:
    store, run = FolderStore(tmp_path / "memory"), CiRun(project="shop/web", run="1")
    for name in ("shop", "bank"):
        (tmp_path / f"{name}.xml").write_text(make_report(name))
    one = ingest_results([str(tmp_path / "shop.xml")], run, store)
    assert not one.notes
    words = [str(tmp_path / "shop.xml"), str(tmp_path / "bank.xml")]
    mixed = ingest_results(words, msgspec.structs.replace(run, run="2"), store)
    (note,) = mixed.notes
    assert "bank.xml: none of its 12 tests was seen here before" in note
    again = ingest_results(words, msgspec.structs.replace(run, run="3"), store)
    assert not again.notes, "said once"


def test_a_clock_far_behind_does_not_put_a_job_into_the_past(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT)
    now = 1794708000.0 + 10 * 86_400
    store = FolderStore(tmp_path / "memory")
    job = CiRun(provider="github", run="1")
    late = ingest_results([str(tmp_path / "r.xml")], job, store, now)
    assert (late.segment.run.at, "far from now" in late.notes[-1]) == (now, True)
    by_hand = ingest_results([str(tmp_path / "r.xml")], CiRun(run="2"), store, now)
    assert by_hand.segment.run.at == 1794708000.0, "old results may be taken in by hand"
