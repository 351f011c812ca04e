"""What a run means, word by word: new, still failing, flaky, quarantined, infrastructure, fixed."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from history_tests.uploads import DAY, Upload
from interlock_history.ci.digest import Digest, ExpectedJobs, FailOn, build_digest
from interlock_history.memory import History
from interlock_history.settings import HistorySettings
from interlock_history.store import FolderStore
from interlock_rca.ci_run import CiRun, Scope
from interlock_rca.report.outline import Outline

SETTINGS = HistorySettings(least_verdicts=4, infrastructure_least=4)
NIGHTS = [
    {"a": "P", "broken": "P", "flips": "FP", "healed": "F", "gone": "P"},
    {"a": "P", "broken": "F", "flips": "P", "healed": "F", "gone": "P"},
    {"a": "P", "broken": "F", "flips": "FP", "healed": "F", "gone": "P"},
    {"a": "P", "broken": "F", "flips": "P", "healed": "F", "gone": "P"},
]


def make_run(number: int, scope: Scope = "default", shard: str = "") -> CiRun:
    tree = f"{number:040x}"
    return CiRun(
        project="shop/web",
        run=str(number),
        job="unit",
        commit=tree,
        tree=tree,
        branch="main" if scope == "default" else "topic",
        pr="7" if scope == "pull-request" else "",
        scope=scope,
        at=number * DAY,
        shard=shard,
    )


def digest(
    folder: Path,
    *uploads: Upload,
    nights: list[dict[str, str]] = NIGHTS,
    quarantined: dict[str, str] | None = None,
    expected_shards: int = 0,
    outline: Outline | None = None,
    has_all_jobs: bool = False,
    expected_variants: Sequence[tuple[str, str]] = (),
) -> Digest:
    store = FolderStore(folder)
    for number, night in enumerate(nights, 1):
        store.add(Upload(make_run(number), night).to_segment())
    segments = [upload.to_segment() for upload in uploads]
    for segment in segments:
        store.add(segment)
    return build_digest(
        segments,
        History(store, SETTINGS),
        SETTINGS,
        outline=outline,
        excuse=lambda test, _: (quarantined or {}).get(test, ""),
        expected=ExpectedJobs(
            shards=expected_shards, variants=tuple(expected_variants), every_known=has_all_jobs
        ),
    )


@pytest.mark.parametrize("scope", ["pull-request", "default"])
def test_each_failure_has_the_word_its_own_history_gives_it(tmp_path: Path, scope: Scope) -> None:
    tests = {"a": "F", "broken": "F", "flips": "F", "healed": "P", "late": "FP", "born": "F"}
    tests |= {"aside": "F", **{f"ok{number}": "P" for number in range(9)}}
    found = digest(tmp_path, Upload(make_run(9, scope), tests), quarantined={"aside": "known, ops"})
    words = {each.test: (each.word, each.age) for each in found.failures}
    assert words == {
        "a": ("new", 0),
        "born": ("new", 0),
        "broken": ("still failing", 3),
        "flips": ("flaky", 0),
        "late": ("flaky", 0),
        "aside": ("quarantined", 0),
    }
    assert found.fixed == ("healed",)
    assert found.absent == 1, "of the tests that the branch ran last, 'gone' was not run"
    broken = next(each for each in found.failures if each.test == "broken")
    assert broken.last_pass is not None
    assert broken.last_pass.commit == make_run(1).commit
    assert (found.verdict, found.passed) == ("new", 10)
    assert found.baseline == "4 earlier sources of the default branch"


def test_a_job_that_is_red_all_over_says_nothing_about_its_tests(tmp_path: Path) -> None:
    tests = {"a": "F", "broken": "F", "flips": "F", "healed": "F", "gone": "F"}
    found = digest(tmp_path, Upload(make_run(9), tests))
    assert {each.word for each in found.failures} == {"infrastructure"}
    assert not found.is_refused("new")
    assert found.is_refused("unquarantined")


@pytest.mark.parametrize(
    ("tests", "stops"),
    [
        ({"a": "P"}, []),
        ({"a": "F", "b": "P"}, ["new", "unquarantined", "any"]),
        ({"broken": "F", "b": "P"}, ["unquarantined", "any"]),
        ({"aside": "F", "b": "P"}, ["any"]),
        ({"a": "FP", "b": "P"}, []),
    ],
)
def test_gates(tmp_path: Path, tests: dict[str, str], stops: list[FailOn]) -> None:
    found = digest(tmp_path, Upload(make_run(9), tests), quarantined={"aside": "known"})
    kinds: list[FailOn] = ["new", "unquarantined", "any", "none"]
    assert [each for each in kinds if found.is_refused(each)] == stops


def test_a_missing_shard_is_never_green(tmp_path: Path) -> None:
    parts = [Upload(make_run(9, shard=f"{n}/3"), {f"t{n}": "P"}) for n in (1, 3)]
    found = digest(tmp_path, *parts)
    assert found.missing_shards == ("unit shard 2 of 3",)
    assert (found.verdict, found.is_green) == ("incomplete", False)
    assert found.is_refused("new")
    assert digest(tmp_path / "b", *parts, expected_shards=3).missing_shards


def test_without_history_everything_is_new_and_that_is_said(tmp_path: Path) -> None:
    found = digest(tmp_path, Upload(make_run(9), {"a": "F", "b": "P"}), nights=[])
    assert [(each.word, each.why) for each in found.failures] == [
        ("new", "no earlier result is known")
    ]
    later = msgspec.structs.replace(make_run(9), attempt=2)
    again = digest(tmp_path, Upload(later, {"a": "F", "b": "P"}), nights=[])
    assert [each.word for each in again.failures] == ["new"], "an earlier attempt is the same run"


def test_a_variant_of_which_nothing_came_is_missing(tmp_path: Path) -> None:
    """By the runs before, where all jobs should be here; or because it was declared."""
    store = FolderStore(tmp_path)
    for number in (1, 2, 3):
        for system in ("linux", "macos"):
            run = msgspec.structs.replace(make_run(number), variant=(("os", system),))
            store.add(Upload(run, {"a": "P"}).to_segment())
    once = msgspec.structs.replace(make_run(2), job="experiment")
    store.add(Upload(once, {"a": "P"}).to_segment())
    now = msgspec.structs.replace(make_run(4), variant=(("os", "linux"),))
    upload = Upload(now, {"a": "P"})
    one = digest(tmp_path, upload, nights=[])
    assert one.is_green, "a job that reports for itself misses nobody"
    both = digest(tmp_path, upload, nights=[], has_all_jobs=True)
    assert both.missing_shards == ("unit os=macos, which took part in the runs before",)
    assert (both.verdict, both.is_refused("new")) == ("incomplete", True)
    told = digest(tmp_path, upload, nights=[], expected_variants=[("os", "linux"), ("os", "bsd")])
    assert told.missing_shards == ("os=bsd",)
