"""Laws of the memory: order and repetition change nothing, merging is a union, and what it says is
what a naive reference says."""

import random
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history_tests.uploads import DAY, Judged, Upload, judge_naively
from interlock.system.errors import SourceError
from interlock_history.export import find_old_segments, iterate_results
from interlock_history.index import Lane
from interlock_history.memory import History
from interlock_history.segment import read_segment, write_names, write_segment
from interlock_history.settings import HistorySettings
from interlock_history.store import FolderStore, merge_stores
from interlock_rca.ci_run import CiRun, Scope

SETTINGS = HistorySettings(window_verdicts=12, least_verdicts=4, infrastructure_least=3)
"""Small, so that short histories reach every state."""
SCOPES: list[Scope] = ["default", "default", "default", "pull-request", "branch"]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Every write is synced: on a disk, hundreds of examples would wait for it."""


@st.composite
def draw_uploads(draw: st.DrawFn) -> list[Upload]:
    """Some uploads of one project: few sources, several commits of one tree, attempts, shards."""
    count = draw(st.integers(1, 14))
    uploads = []
    for _ in range(count):
        tree = draw(st.integers(0, 5))
        scope = draw(st.sampled_from(SCOPES))
        run = CiRun(
            provider="github",
            project="shop/web",
            run=str(draw(st.integers(1, 5))),
            attempt=draw(st.integers(1, 2)),
            job=draw(st.sampled_from(["unit", "unit", "e2e"])),
            shard=draw(st.sampled_from(["", "1/2", "2/2"])),
            commit=f"{tree}{draw(st.integers(0, 1))}" * 20,
            tree=f"{tree}" * 40,
            branch="topic" if scope == "branch" else "main",
            pr=str(draw(st.integers(1, 2))) if scope == "pull-request" else "",
            scope=scope,
            at=draw(st.integers(0, 40)) * DAY,
        )
        tests = st.dictionaries(
            st.sampled_from([f"mod::test_{name}" for name in "abcde"]),
            st.sampled_from(["P", "P", "P", "F", "FP", "FF", "S", "PF"]),
            min_size=1,
        )
        uploads.append(Upload(run, draw(tests)))
    return uploads


def remember(folder: Path, uploads: list[Upload], *, ask_between: bool = False) -> History:
    store = FolderStore(folder)
    for upload in uploads:
        store.add(upload.to_segment())
        if ask_between:
            History(FolderStore(folder), SETTINGS)
    return History(FolderStore(folder), SETTINGS)


def describe(memory: History) -> dict[tuple[Any, ...], dict[str, Judged]]:
    """Everything that the memory says, in the words of the reference."""
    return {
        (lane.project, lane.scope, lane.branch, lane.label): {
            each.test: Judged(
                each.state,
                each.flips.count,
                each.flips.of,
                each.strip,
                each.failing_since.sources if each.failing_since else 0,
                each.last_pass.commit if each.last_pass else "",
            )
            for each in memory.summarize_lane(lane, only_troubled=False)
        }
        for lane in memory.index.list_lanes()
    }


@settings(max_examples=25)
@given(draw_uploads(), st.randoms(use_true_random=False))
def test_the_memory_says_what_the_reference_says_in_every_order(
    uploads: list[Upload], chance: random.Random
) -> None:
    expected = judge_naively(uploads, SETTINGS)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        memory = remember(Path(folder, "one"), uploads)
        assert describe(memory) == expected
        for lane in memory.index.list_lanes():
            short = [each.test for each in memory.summarize_lane(lane)]
            every = memory.summarize_lane(lane, only_troubled=False)
            quiet = {each.test: each.state for each in every if each.test not in short}
            assert set(quiet.values()) <= {"passing", "skipped"}
        again = [*uploads, *chance.sample(uploads, len(uploads) // 2)]
        chance.shuffle(again)
        # Asking in between makes an index that has to be brought up to date.
        assert describe(remember(Path(folder, "two"), again, ask_between=True)) == expected


@settings(max_examples=20)
@given(draw_uploads(), st.integers(0, 14))
def test_merging_is_a_union(uploads: list[Upload], cut: int) -> None:
    expected = judge_naively(uploads, SETTINGS)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        remember(Path(folder, "a"), uploads[:cut])
        remember(Path(folder, "b"), uploads[max(0, cut - 3) :])
        for one, other in (("a", "b"), ("b", "a")):
            united = FolderStore(Path(folder, f"{one}{other}"))
            for name in (one, other, one):
                merge_stores(FolderStore(Path(folder, name)), united)
            assert describe(History(united, SETTINGS)) == expected
            assert not united.problems


RUN = CiRun(run="7", commit="a" * 40, at=5 * DAY)


@given(st.data())
def test_a_segment_that_is_cut_or_changed_is_refused_and_never_misread(data: st.DataObject) -> None:
    upload = Upload(RUN, {"a::one": "P", "a::two": "FP", "b": "F"})
    table, _ = write_names(["a::one"])
    raw = write_segment(upload.to_segment(), table, {"a::one": 0})
    assert read_segment(raw, "it").unpack(["a::one"]) == upload.to_segment()
    cut = data.draw(st.integers(0, len(raw) - 1))
    at, flip = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(1, 255))
    changed = bytearray(raw)
    changed[at] ^= flip
    for broken in (raw[:cut], bytes(changed), raw + b"x"):
        with pytest.raises(SourceError, match=r"^it "):
            read_segment(broken, "it")


@pytest.mark.parametrize(
    "changes",
    [{"at": float("nan")}, {"at": float("inf")}, {"at": -1.0}, {"attempt": 0}, {"scope": "mine"}],
)
def test_a_forged_segment_with_impossible_values_is_refused(changes: dict[str, Any]) -> None:
    run = msgspec.structs.replace(RUN, **changes)
    raw = write_segment(Upload(run, {"t": "P"}).to_segment(), "0" * 32, {})
    with pytest.raises(SourceError, match=r"^it (?:holds|is damaged)"):
        read_segment(raw, "it")
    forged = msgspec.structs.replace(Upload(RUN, {"t": "P"}).to_segment(), bits=b"\x09")
    with pytest.raises(SourceError, match="status that cannot be"):
        read_segment(write_segment(forged, "0" * 32, {}), "it")


def test_what_cannot_be_read_is_named_and_the_rest_counts(tmp_path: Path) -> None:
    uploads = [
        Upload(msgspec.structs.replace(RUN, run=str(n), commit=f"{n}" * 40, at=n * DAY), {"t": "P"})
        for n in range(1, 6)
    ]
    for upload in uploads:
        FolderStore(tmp_path).add(upload.to_segment())
    good, cut, newer, foreign, gone = sorted((tmp_path / "results").iterdir())
    cut.write_bytes(cut.read_bytes()[:-9])
    raw = bytearray(newer.read_bytes())
    raw[4] = 9
    newer.write_bytes(bytes(raw))
    foreign.write_bytes(b"PK\x03\x04 something else")
    gone.rename(gone.with_name(f"{'0' * 32}.results"))
    (tmp_path / "results" / "notes.txt").write_text("mine")
    memory = History(FolderStore(tmp_path), SETTINGS)
    assert [len(memory.list_columns(lane)) for lane in memory.index.list_lanes()] == [1]
    output = "\n".join(memory.problems)
    for path, why in (
        (cut, "is cut short"),
        (newer, "was written by a newer Interlock (format 9, this one reads 1): upgrade"),
        (foreign, "is no history of Interlock's"),
        (tmp_path / "results" / "notes.txt", "is no results file of ours"),
    ):
        assert f"{path} {why}" in output
    assert "it was renamed" in output
    assert good.stem == memory.list_columns(memory.index.list_lanes()[0])[0].segments[0]
    (tmp_path / "names" / next((tmp_path / "names").iterdir()).name).unlink()
    bare = History(FolderStore(tmp_path, is_new_ok=False), HistorySettings())
    assert "is not there" in "\n".join(bare.problems)


def test_a_run_in_which_nearly_everything_fails_teaches_nothing(tmp_path: Path) -> None:
    tests = [f"t{n}" for n in range(10)]
    good = msgspec.structs.replace(RUN, run="1", commit="b" * 40, at=DAY)
    uploads = [
        Upload(good, dict.fromkeys(tests, "P")),
        Upload(RUN, dict.fromkeys(tests, "F")),  # the machine
        Upload(msgspec.structs.replace(RUN, attempt=2), {**dict.fromkeys(tests, "P"), "t3": "F"}),
        # Repeating only what failed is no broken machine, however much fails again.
        Upload(msgspec.structs.replace(RUN, attempt=3), {"t3": "FF"}),
    ]
    memory = remember(tmp_path, uploads)
    lane = memory.index.list_lanes()[0]
    assert memory.list_columns(lane)[-1].ignored == ("7#1",)
    found = {each.test: each for each in memory.summarize_lane(lane)}
    assert {name: each.strip for name, each in found.items()} == {"t3": ".F"}
    assert [each.is_ignored for each in memory.read_results(lane, "t1")] == [True, False, False]


def test_renamed_tests_are_joined_only_where_it_is_said(tmp_path: Path) -> None:
    later = msgspec.structs.replace(RUN, run="8", commit="b" * 40, at=6 * DAY)
    memory = remember(tmp_path, [Upload(RUN, {"old": "P"}), Upload(later, {"new": "F"})])
    lane = Lane("", "default", "", "")
    apart = memory.summarize_test(lane, "new")
    assert apart is not None
    assert (apart.strip, apart.last_pass) == ("F", None)
    joined = History(FolderStore(tmp_path), HistorySettings(aliases={"old": "new"}))
    result = joined.summarize_test(lane, "new")
    assert result is not None
    assert result.strip == ".F"
    assert result.last_pass is not None
    assert result == joined.summarize_test(lane, "old")
    assert joined.find_tests([lane], "old") == ["new"]
    assert [each.commit[0] for each in joined.read_results(lane, "new")] == ["b", "a"]


def test_old_results_are_pruned_with_the_names_nobody_needs(tmp_path: Path) -> None:
    uploads = [
        Upload(
            msgspec.structs.replace(RUN, run=str(n), commit=f"{n}" * 40, at=n * DAY),
            {f"t{n}::{at}": "P" for at in range(40)},
        )
        for n in range(1, 5)
    ]
    memory = remember(tmp_path, uploads)
    store = FolderStore(tmp_path)
    old = find_old_segments(store, 1.5 * DAY)
    assert len(old) == 2
    store.remove(old)
    memory = History(FolderStore(tmp_path), SETTINGS)
    assert len(memory.list_columns(memory.index.list_lanes()[0])) == 2
    assert not memory.problems
    assert {msgspec.json.decode(row)["run"] for row in iterate_results(store)} == {"3", "4"}
    assert len(list((tmp_path / "names").iterdir())) == 2
