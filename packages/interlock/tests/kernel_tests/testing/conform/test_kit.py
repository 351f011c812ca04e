"""The kit tells good watchers from bad ones: for each, exactly the scenarios that must fail."""

import sys
from contextlib import chdir
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.testing.conform.kit import ConformKit
from interlock.testing.conform.scenarios import SCENARIOS
from interlock.testing.conform.stage import Patience, ScenarioResult
from tests.soak import again

WATCHERS = Path(__file__).parent / "watchers"
PATIENCE = Patience(5.0)
EVERY = {each.name for each in SCENARIOS}
ONE_DISPATCH = {"one-step", "stale-artifact", "coordinator-restart"}
BATCHES = {"batch", "briefing-missing", "budget-spent"}


def play(
    *command: str, only: set[str] = EVERY, patience: Patience = PATIENCE
) -> dict[str, ScenarioResult]:
    kit = ConformKit((sys.executable, *command), patience, jobs=len(EVERY))
    chosen = [each for each in SCENARIOS if each.name in only]
    return {each.scenario: each for each in kit.play(chosen)}


def failed(verdicts: dict[str, ScenarioResult]) -> dict[str, str]:
    return {each.scenario: each.seen for each in verdicts.values() if each.verdict == "fail"}


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie, which has no environment left."""
    try:
        return (Path("/proc") / str(pid) / "environ").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_good_single_watcher_passes_and_is_no_parent() -> None:
    verdicts = play(str(WATCHERS / "single.py"))
    assert failed(verdicts) == {}
    assert verdicts["budget-spent"].verdict == "skip"
    assert verdicts["batch"].notes == (
        "the manifest was not touched: the signals were answered as single ones",
    )


def test_good_parent_passes_everything() -> None:
    verdicts = play(str(WATCHERS / "parent.py"))
    assert failed(verdicts) == {}
    assert {each.verdict for each in verdicts.values()} == {"pass"}
    assert verdicts["batch"].notes == ()


def test_respond_passes_everything() -> None:
    agent = f"exec:{sys.executable} -c 'print(input and open(0).read().split(chr(10))[4])'"
    verdicts = play("-m", "interlock", "respond", "--agent", agent, patience=Patience(60.0))
    assert failed(verdicts) == {}
    assert {each.verdict for each in verdicts.values()} == {"pass"}
    assert [note for each in verdicts.values() for note in each.notes] == []


@pytest.mark.parametrize(
    ("fault", "expected", "seen"),
    [
        ("bare", EVERY, "the wrapper has no dispatch_id"),
        again("string_id", EVERY, "dispatch_id is a str, not an integer"),
        ("wrong_id", EVERY, "the artifact belongs to dispatch "),
        ("linked", EVERY, "is a symbolic link, not a file"),
        again("huge", EVERY, "has more than 1,052,672 bytes"),
        ("hesitant", EVERY, "it is not valid JSON"),
        again("list_data", EVERY, "data is a list, not an object"),
        ("first_id", EVERY - ONE_DISPATCH, "the artifact belongs to dispatch 4102"),
        again("first_only", EVERY - ONE_DISPATCH, "no artifact was written"),
        ("fragile", {"partial-signal"}, "the watcher ended with exit code 1, saying: "),
        again("garbage", EVERY, "was destroyed: it is not valid JSON"),
        again("new_status", EVERY, "it was rewritten with "),
        again("finisher", EVERY, "it was rewritten with status done"),
        ("vandal", EVERY, "signal.json was destroyed: the file is gone"),
        ("eager", set(), ""),
        ("late", {"timeout"}, "one for 4102 replaced it"),
        again("blind", {"prompt-missing"}, "an artifact was written"),
        again("mortal", {"prompt-missing"}, "the watcher ended with exit code 1, saying: "),
        ("restless", {"coordinator-restart", "timeout"}, " replaced it"),
        ("content", {"stale-artifact"}, "no artifact was written"),
        (
            "mixed_up",
            EVERY - ONE_DISPATCH - {"prompt-missing"},
            "it answers the prompt of word-4102",
        ),
        ("scribbler", EVERY, "README.md was changed"),
    ],
)
def test_bad_watcher_fails_exactly(fault: str, expected: set[str], seen: str) -> None:
    found = failed(play(str(WATCHERS / "faulty.py"), fault))
    assert set(found) == expected
    assert [each for each in found.values() if seen not in each] == []


def test_slow_watcher_passes_and_its_late_answer_is_noted() -> None:
    verdicts = play(str(WATCHERS / "faulty.py"), "slow")
    assert failed(verdicts) == {}
    assert verdicts["timeout"].notes == (
        "an answer came after its dispatch was given up; its old id fences it",
    )


@pytest.mark.parametrize(
    ("fault", "expected", "seen"),
    [
        ("liar", BATCHES, "is done without one"),
        ("spendthrift", {"budget-spent"}, "C1 was "),
    ],
)
def test_bad_parent_fails_exactly(fault: str, expected: set[str], seen: str) -> None:
    found = failed(play(str(WATCHERS / "parent.py"), fault))
    assert set(found) == expected
    assert [each for each in found.values() if seen not in each] == []


def test_nothing_is_left_running(tmp_path: Path) -> None:
    command = (sys.executable, str(WATCHERS / "faulty.py"), "brood")
    [verdict] = ConformKit(command, PATIENCE, keep=tmp_path / "kept").play(SCENARIOS[:1])
    assert verdict.verdict == "pass"
    case = tmp_path / "kept" / "one-step" / "workspace" / ".asterisk" / "calibrate" / "1" / "101"
    assert not runs(int((case / "brood").read_text()))


def test_scratch_folders_are_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert play(str(WATCHERS / "single.py"), only={"one-step"})["one-step"].verdict == "pass"
    assert list(tmp_path.iterdir()) == []


def test_kept_folder_holds_files_and_what_the_watcher_said(tmp_path: Path) -> None:
    command = (sys.executable, str(WATCHERS / "faulty.py"), "no such fault")
    [verdict] = ConformKit(command, PATIENCE, keep=tmp_path / "kept").play(SCENARIOS[:1])
    assert verdict.seen.startswith("the watcher ended with exit code 1, saying: ")
    assert "KeyError" in (tmp_path / "kept" / "one-step" / "watcher.log").read_text()
    with pytest.raises(SourceError, match="is not empty"):
        ConformKit(command, PATIENCE, keep=tmp_path / "kept").play(SCENARIOS[:1])


def test_command_that_is_not_there_is_a_users_mistake() -> None:
    with pytest.raises(SourceError, match="there is no command 'nosuchwatcher'"):
        ConformKit(("nosuchwatcher",), PATIENCE).play(SCENARIOS)


def test_words_in_braces_and_files_named_from_here(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(
        "import os, sys; print(*sys.argv[1:], os.environ['INTERLOCK_ROOT'], os.getcwd())"
    )
    kept = tmp_path / "kept"
    with chdir(tmp_path):
        command = (sys.executable, "show.py", "{root}", "{workspace}", "{here}", "{other}")
        ConformKit(command, PATIENCE, keep=kept).play(SCENARIOS[:1])
    workspace = kept / "one-step" / "workspace"
    root = workspace / ".asterisk"
    result = (kept / "one-step" / "watcher.log").read_text().split()
    words = [root, workspace, tmp_path, "{other}", root, workspace]
    assert result == [str(word) for word in words]
