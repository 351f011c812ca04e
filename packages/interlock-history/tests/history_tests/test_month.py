"""A month of pipelines against the truth: verdicts, intervals and ranges."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from history_tests.month import VARIANTS, Month
from history_tests.uploads import DAY, Upload
from interlock.system.git import SEED, Git
from interlock_history.ci.digest import build_digest
from interlock_history.index import Lane
from interlock_history.memory import History
from interlock_history.ranges import RangeFinder
from interlock_history.store import FolderStore, merge_stores
from interlock_rca.ci_run import CiRun
from interlock_rca.records import TestRange, unite_ranges


def remember(folder: Path, month: Month, until: int) -> History:
    """The memory as it was after that merge, uploads in the order in which they came."""
    store = FolderStore(folder)
    for upload in month.uploads:
        if int(upload.run.run) <= until:
            store.add(upload.to_segment())
    return History(store)


def check_month(folder: Path, seed: int, merges: int) -> None:
    (folder / "repo").mkdir(parents=True)
    month = Month(folder / "repo", seed, merges)
    last = len(month.merges) - 1
    memory = remember(folder / "memory", month, last)
    check_flips(month, memory)
    for number, regression in enumerate(month.regressions):
        known = [merge for merge in sorted(month.tested) if merge >= regression.first]
        if known and known[0] <= regression.last:
            then = remember(folder / f"memory-{number}", month, known[0])
            check_range(month, then, regression.test, regression.culprit, known[0])
        if regression.first in month.tested:
            before = remember(folder / f"before-{number}", month, regression.first - 1)
            check_pull_request(folder / f"pull-{number}", month, before, regression.first)


def check_flips(month: Month, memory: History) -> None:
    default = [lane for lane in memory.index.list_lanes() if lane.scope == "default"]
    assert sorted(lane.label for lane in default) == [f"unit os={name}" for name in VARIANTS]
    for lane in default:
        places = {month.merges.index(column.commits[0]) for column in memory.list_columns(lane)}
        variant = lane.label.partition("=")[2]
        for each in memory.summarize_lane(lane, only_troubled=False):
            truth = month.flips.get((each.test, variant), set()) & places
            assert each.flips.count == len(truth), each
            assert each.flips.low <= each.flips.count / each.flips.of <= each.flips.high
            if each.test not in month.flaky:
                assert each.state in ("passing", "fixed", "failing", "broken"), each
            elif month.flaky[each.test] >= 0.1 and len(truth) >= 2:
                assert each.state == "flaky", each
                # Two of two tries must differ: that is how often it shows.
                rate = month.flaky[each.test]
                assert each.flips.low <= 2 * rate * (1 - rate)


def check_range(month: Month, memory: History, test: str, culprit: str, merge: int) -> None:
    run = CiRun(project="shop/web", commit=month.merges[merge], branch="main")
    finder = RangeFinder(memory, run, month.folder)
    found = finder.find_range(test)
    assert found.kind in ("last-pass", "born-red"), found
    git = Git(month.folder, SEED)
    inside = git.read_line("rev-list", found.bad, f"^{found.good}").split()
    assert culprit in inside, found
    # As tight as the results allow: from the last merge that was tested before.
    before = max(place for place in month.tested if place < merge)
    assert found.good == month.merges[before]
    assert found.bad == month.merges[merge]
    for name in month.flaky:
        sure = finder.find_range(name)
        flips = {place for variant in VARIANTS for place in month.flips.get((name, variant), ())}
        if any(merge - 5 < place <= merge for place in flips) and sure.kind == "last-pass":
            pytest.fail(f"{name} flipped just before, and {sure.good} is accused")


def check_pull_request(folder: Path, month: Month, memory: History, merge: int) -> None:
    """The words of a pull request's report, as they must be by what is true of its base and of
    itself; and whom it accuses."""
    upload = month.draw_pull_request(merge)
    store = FolderStore(folder)
    merge_stores(memory.store, store)
    store.add(upload.to_segment())
    now = History(store)
    digest = build_digest([upload.to_segment()], now, now.settings)
    base = max(place for place in month.tested if place < merge)
    lane = Lane("shop/web", "default", "", upload.run.label)
    on_main = {month.merges.index(column.commits[0]) for column in now.list_columns(lane)}
    finder = RangeFinder(now, upload.run, month.folder)
    for each in digest.failures:
        if each.test in month.flaky:
            is_known = month.flaky[each.test] and each.word == "flaky"
            assert is_known or "P" not in upload.tries[each.test], each
            continue
        failed_before = month.fails_for_sure(each.test, max(on_main & set(range(merge))))
        is_there = any(month.is_there(each.test, place) for place in on_main if place < merge)
        want = "still failing" if failed_before and is_there else "new"
        assert each.word == want, (each, merge)
        found = finder.find_range(each.test)
        culprit = next(one for one in month.regressions if one.test == each.test).culprit
        git = Git(month.folder, SEED)
        inside = git.read_line("rev-list", found.bad, f"^{found.good}").split()
        assert culprit in inside, found
        if want == "new" and not month.fails_for_sure(each.test, base):
            assert found.good == month.merges[base], found
    sure = {test for test in upload.tries if month.fails_for_sure(test, merge)}
    assert sure <= {each.test for each in digest.failures}


def test_a_month_of_pipelines_against_the_truth(tmp_path: Path) -> None:
    check_month(tmp_path, seed=3, merges=40)


def measure_coverage(folder: Path, seed: int, sources: int = 100) -> float:
    """Of many tests with known rates, the share whose interval has the true one in it."""
    chance = random.Random(seed)
    rates = {f"t::{number}": chance.uniform(0.01, 0.5) for number in range(250)}
    store = FolderStore(folder)
    for number in range(sources):
        tries = {}
        for test, rate in rates.items():
            first, second = chance.random() < rate, chance.random() < rate
            tries[test] = ("FF" if second else "FP") if first else "P"
        run = CiRun(run=str(number), commit=f"{number:040x}", at=1e9 + number * DAY / 4)
        store.add(Upload(run, tries).to_segment())
    memory = History(store)
    (lane,) = memory.index.list_lanes()
    within = 0
    for each in memory.summarize_lane(lane, only_troubled=False):
        rate = rates[each.test]
        assert each.flips.of == sources
        # It flips where it fails first and passes when it is tried again.
        within += each.flips.low <= rate * (1 - rate) <= each.flips.high
    return within / len(rates)


def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    assert 0.91 <= measure_coverage(tmp_path, seed=5) <= 0.99


@pytest.mark.soak
def test_intervals_hold_the_truth_over_many_months(tmp_path: Path) -> None:
    found = [measure_coverage(tmp_path / str(seed), seed) for seed in range(12)]
    assert 0.94 <= sum(found) / len(found) <= 0.97


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20, 30))
def test_more_months_against_the_truth(seed: int, tmp_path: Path) -> None:
    check_month(tmp_path, seed, merges=90)


def write_commits(folder: Path, *names: str) -> list[str]:
    """Commits on main, one file each."""
    folder.mkdir(exist_ok=True)
    git = Git(folder, SEED)
    git.read_line("init", "--quiet", "--template=", "--initial-branch=main")
    return [commit(folder, name) for name in names]


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    words = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["add", name], [*words, "commit", "-qm", name]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return Git(folder, SEED).read_line("rev-parse", "HEAD")


def put(store: FolderStore, run: CiRun, **tries: str) -> None:
    store.add(Upload(run, tries).to_segment())


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    return write_commits(tmp_path / "repo", *"abcdef")


def make_runs(commits: list[str], job: str = "unit") -> Iterator[CiRun]:
    for number, each in enumerate(commits):
        at = 1e9 + number * 1e5
        yield CiRun(run=f"{job}{number}", job=job, commit=each, branch="main", at=at)


def find(tmp_path: Path, store: FolderStore, run: CiRun, test: str = "t") -> TestRange:
    return RangeFinder(History(FolderStore(store.folder)), run, tmp_path / "repo").find_range(test)


def test_fall_backs_each_with_its_reason(tmp_path: Path, commits: list[str]) -> None:
    store = FolderStore(tmp_path / "memory")
    runs = list(make_runs(commits))
    now = runs[5]
    nothing = find(tmp_path, store, now)
    assert (nothing.kind, nothing.is_accusing) == ("none", False)
    base = msgspec.structs.replace(now, previous=commits[4])
    assert find(tmp_path, store, base).kind == "previous"
    put(store, runs[1], other="P")
    assert find(tmp_path, store, now).kind == "born-red"  # it was not there
    put(store, now, t="F", other="P")
    born = find(tmp_path, store, now)
    assert (born.kind, born.good, born.bad) == ("born-red", commits[1], commits[5])
    for run in make_runs(commits[:3], "macos"):
        put(store, run, t="P")
    other = find(tmp_path, store, now)
    assert (other.kind, other.good, other.confidence) == ("other-variant", commits[2], "low")
    put(store, runs[3], t="P", other="P")
    own = find(tmp_path, store, now)
    assert (own.kind, own.good, own.bad) == ("last-pass", commits[3], commits[5])
    put(store, runs[4], t="F", other="P")
    put(store, runs[2], t="P", other="P")
    sure = find(tmp_path, store, now)
    assert (sure.good, sure.bad, sure.confidence) == (commits[3], commits[4], "high")
    assert sure.reason == (
        f"it passed on {commits[3][:12]} and failed 2 times from {commits[4][:12]} on"
    )
    put(store, msgspec.structs.replace(runs[2], attempt=2), t="F", other="P")
    flip = find(tmp_path, store, now)
    assert (flip.kind, flip.is_accusing) == ("unsteady", False)
    assert f"passed and failed on the same source, {commits[2][:12]}" in flip.reason
    unknown = msgspec.structs.replace(now, commit="9" * 40)
    assert "does not have the tested commit 999999999999" in find(tmp_path, store, unknown).reason


def test_results_of_other_pull_requests_and_branches_anchor_nothing(
    tmp_path: Path, commits: list[str]
) -> None:
    store = FolderStore(tmp_path / "memory")
    runs = list(make_runs(commits))
    put(store, runs[1], t="P")
    put(store, msgspec.structs.replace(runs[3], scope="pull-request", pr="8"), t="P")
    put(store, msgspec.structs.replace(runs[4], scope="branch", branch="topic"), t="P")
    assert find(tmp_path, store, runs[5]).good == commits[1]
    own = msgspec.structs.replace(runs[5], scope="pull-request", pr="8")
    assert find(tmp_path, store, own).good == commits[3]


def test_a_pull_request_against_a_moved_base_and_a_queue(
    tmp_path: Path, commits: list[str]
) -> None:
    folder = tmp_path / "repo"
    store = FolderStore(tmp_path / "memory")
    for run in list(make_runs(commits))[:5]:
        put(store, run, t="P")
    git = Git(folder, SEED)
    git.read_line("checkout", "--quiet", "-b", "topic", commits[2])
    head = commit(folder, "work")
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "--no-ff"]
    git.read_line("checkout", "--quiet", "--detach", commits[5])
    subprocess.run([*words, "-m", "merge", "topic"], cwd=folder, check=True)
    merged = git.read_line("rev-parse", "HEAD")
    pull = CiRun(job="unit", commit=merged, head=head, pr="3", scope="pull-request", target="main")
    found = find(tmp_path, store, pull)
    # Its own commits, and the one of the target that was not tested yet.
    inside = git.read_line("rev-list", found.bad, f"^{found.good}").split()
    assert set(inside) == {merged, head, commits[5]}
    bare = find(tmp_path, FolderStore(tmp_path / "empty"), pull)
    assert (bare.kind, bare.good) == ("merge-base", commits[5])
    queue = msgspec.structs.replace(pull, scope="queue", base=commits[5], pr="")
    assert find(tmp_path, store, queue).good == commits[4]
    finder = RangeFinder(History(store), queue, folder)
    steps = finder.list_steps(finder.find_range("t"))
    assert [subject for _, subject in steps] == ["merge", "f"]


def test_a_shallow_clone_is_deepened_or_named(tmp_path: Path, commits: list[str]) -> None:
    store = FolderStore(tmp_path / "memory")
    runs = list(make_runs(commits))
    put(store, runs[0], t="P")
    put(store, runs[5], t="F")
    words = ["git", "clone", "-q", "--depth", "2", f"file://{tmp_path / 'repo'}"]
    subprocess.run([*words, str(tmp_path / "clone")], check=True)
    finder = RangeFinder(History(store), runs[5], tmp_path / "clone")
    assert finder.find_ranges(["t"])["t"].kind == "none"
    assert "the clone ends after 2 commits" in finder.notes[0]
    deeper = RangeFinder(History(store), runs[5], tmp_path / "clone", may_deepen=True)
    assert deeper.find_ranges(["t"])["t"].good == commits[0]


def make_range(
    good: int, bad: int, confidence: str = "medium", kind: str = "last-pass"
) -> TestRange:
    return msgspec.convert(
        {
            "kind": kind,
            "reason": "why",
            "good": f"{good}" * 40,
            "bad": f"{bad}" * 40,
            "good_at": good,
            "bad_at": bad,
            "confidence": confidence,
        },
        TestRange,
    )


def test_a_family_takes_the_tightest_range_that_it_agrees_on() -> None:
    wide, late, early = make_range(9, 0), make_range(5, 1), make_range(8, 3)
    found = unite_ranges([wide, late, early, make_range(2, 0, "low", "green-source")])
    assert found is not None
    assert (found.good_at, found.bad_at) == (5, 3)
    unsteady = TestRange(kind="unsteady", reason="it flips")
    assert unite_ranges([wide, unsteady]) == wide
    assert unite_ranges([unsteady]) is None
    assert unite_ranges([make_range(2, 0), make_range(9, 4)]) is None
    weak = make_range(7, 0, "low", "born-red")
    assert unite_ranges([weak]) == weak


def test_lanes_of_other_projects_say_nothing(tmp_path: Path, commits: list[str]) -> None:
    store = FolderStore(tmp_path / "memory")
    runs = list(make_runs(commits))
    put(store, msgspec.structs.replace(runs[2], project="other/one"), t="P")
    assert find(tmp_path, store, runs[5]).kind == "none"
    assert Lane("other/one", "default", "", "unit") in History(store).index.list_lanes()
