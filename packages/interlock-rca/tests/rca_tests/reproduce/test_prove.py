"""`analyze --reproduce` as a user meets it: real repositories, real commands, real kills."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.system.files import exists
from interlock_rca.config import RcaConfig
from interlock_rca.records import Failure, TestRange
from interlock_rca.reproduce.prove import choose_range
from interlock_rca.test_names import name_failed_test
from tests.world.command_line import CliResult, World, until
from tests.world.git_repo import GitRepo

REPORT = """<testsuite name="shop" tests="1" failures="1">
<testcase classname="shop" name="{name}">
<failure type="AssertionError" message="total is 4, not 3">in shop.txt</failure>
</testcase></testsuite>
"""
CHECK = "sh check.sh {name}"


class Shop:
    """A project with a history: its check passes while shop.txt says `good`."""

    def __init__(self, folder: Path, states: Sequence[str], name: str = "test_total") -> None:
        self.world = World(folder)
        self.world.write("report.xml", REPORT.format(name=name))
        self.repo = GitRepo(folder / "shop")
        self.ran = folder / "ran"
        self.ran.touch()
        check = f'git rev-parse HEAD >> "{self.ran}"\ngrep -q broken shop.txt && exit 125\n'
        check += 'if grep -q bad shop.txt; then echo "FAIL $1"; exit 1; fi\n'
        self.hashes = [
            self.repo.commit(
                f"Change {at} to {state}", {"check.sh": check, "shop.txt": f"{state} {at}\n"}
            )
            for at, state in enumerate(states)
        ]
        self.repo.git("tag", "green", self.hashes[0])

    def words(self, *more: str, command: str = CHECK) -> list[str]:
        return [
            *("analyze", "report.xml", "--repo", "shop=shop", "--last-green", "green"),
            *("--reproduce", command, *more),
        ]

    def analyze(self, *more: str, command: str = CHECK) -> CliResult:
        return self.world.say(*self.words(*more, command=command))

    def read_case(self) -> dict[str, Any]:
        said = self.world.say("report", "--json")
        found: dict[str, Any] = said.json["findings"]["cases"][0]
        return found

    def list_runs(self) -> list[int]:
        return [self.hashes.index(each) for each in self.ran.read_text().split()]


def test_a_suspect_becomes_proven_and_the_users_tree_is_not_touched(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 9 + ["bad"] * 4)
    shop.repo.write({"shop.txt": "my work\n", "new.txt": "mine\n"})
    before = shop.repo.git("status", "--porcelain"), shop.repo.git("for-each-ref")
    said = shop.analyze()
    assert said.code == 4, said.err
    assert "(3 of 3 runs)" in said.out
    case = shop.read_case()
    found = case["reproduction"]
    assert (found["verdict"], found["culprit"]["commit"]) == ("proven", shop.hashes[9])
    assert found["parent"] == shop.hashes[8]
    assert found["command"] == "sh check.sh test_total"
    assert (case["suspects"][0]["commit"], case["suspects"][0]["proof"]) == (
        shop.hashes[9],
        "proven",
    )
    codes = {run["commit"]: run["exit_code"] for run in found["runs"]}
    assert (codes[shop.hashes[9]], codes[shop.hashes[8]]) == (1, 0)
    assert "Proven by running" in shop.world.say("explain", "C1").out
    assert before == (shop.repo.git("status", "--porcelain"), shop.repo.git("for-each-ref"))
    assert not exists(shop.repo.folder / ".git" / "worktrees")
    assert list((tmp_path / ".interlock" / "interlock.db.reproduce").iterdir()) == []


@pytest.mark.usefixtures("on_both_databases")
def test_what_was_run_is_not_run_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 3 + ["bad"] * 3)
    shop.analyze()
    runs = shop.list_runs()
    shop.analyze("--new")
    assert shop.list_runs() == runs
    assert shop.read_case()["reproduction"]["verdict"] == "proven"


def test_a_flaky_test_accuses_nobody(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 3 + ["bad"] * 3)
    flips = "test $(($(wc -l < ../../../../ran) % 2)) = 0"
    said = shop.analyze(command=f"echo x >> ../../../../ran; {flips}")
    found = shop.read_case()["reproduction"]
    assert (found["verdict"], found["culprit"]) == ("flaky", None)
    assert "So no commit is accused." in said.out


def test_a_build_that_breaks_in_the_middle_is_passed_over_and_named(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good", "good", "broken", "broken", "good", "bad", "broken", "bad"])
    shop.analyze()
    found = shop.read_case()["reproduction"]
    assert (found["verdict"], found["culprit"]["commit"]) == ("proven", shop.hashes[5])
    shop = Shop(tmp_path / "unclear", ["good", "broken", "broken", "bad", "bad"])
    shop.analyze()
    found = shop.read_case()["reproduction"]
    assert (found["verdict"], found["candidates"]) == ("narrowed", shop.hashes[1:4])
    assert "2 commits could not be tested and were passed over" in found["sentence"]


def test_a_set_up_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good", "bad"])
    shop.analyze("--reproduce-setup", "echo no compiler here; exit 2")
    found = shop.read_case()["reproduction"]
    assert found["verdict"] == "untestable"
    assert "the set-up failed with exit code 2 (it printed: no compiler here)" in found["sentence"]


def test_a_hostile_name_runs_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good", "bad"], name="$(touch pwned); touch pwned &amp; `touch pwned`")
    shop.analyze()
    found = shop.read_case()["reproduction"]
    assert found["verdict"] == "proven"
    assert not list(tmp_path.rglob("pwned"))


def test_the_budget_ends_a_search_and_the_next_analysis_goes_on(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 4 + ["bad"] * 4)
    shop.analyze("--reproduce-minutes", "0.001")
    found = shop.read_case()["reproduction"]
    assert found["verdict"] == "spent"
    assert "Analyse again" in found["sentence"]
    shop.analyze("--reproduce-minutes", "30")
    assert shop.read_case()["reproduction"]["verdict"] == "proven"


def test_a_killed_analysis_goes_on_where_it_was_and_leaves_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 4 + ["bad"] * 4)
    gate = tmp_path / "gate"
    wait = f'test -e {gate} || test "$(wc -l < {shop.ran})" -lt 5 || sleep 300; {CHECK}'
    process = shop.world.start(*shop.words(command=wait))
    until(lambda: len(shop.list_runs()) == 5, "five runs")
    until(_list_sleepers, "the sixth")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    gate.touch()
    assert len(list((tmp_path / ".interlock" / "interlock.db.reproduce").iterdir())) == 1
    shop.analyze(command=wait)
    assert shop.read_case()["reproduction"]["culprit"]["commit"] == shop.hashes[4]
    runs = shop.list_runs()
    assert {runs.count(7), runs.count(0)} == {3}  # both anchors, as often as without the kill
    assert list((tmp_path / ".interlock" / "interlock.db.reproduce").iterdir()) == []
    assert not _list_sleepers()


def _list_sleepers() -> list[int]:
    """The processes that our command left sleeping."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            tagged = b"INTERLOCK_FAILING_COMMIT=" in (folder / "environ").read_bytes()
        except OSError:
            continue
        if words == b"sleep\x00300\x00" and tagged:
            found.append(int(folder.name))
    return found


def test_a_shallow_clone_and_no_green_commit_are_no_obstacle(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ["good"] * 6 + ["bad"] * 3)
    shop.repo.clone(tmp_path / "clone", "--depth=5")
    shop.world.say(*("analyze", "report.xml", "--repo", "shop=clone", "--reproduce", CHECK))
    found = shop.read_case()["reproduction"]
    assert (found["verdict"], found["culprit"]["commit"]) == ("proven", shop.hashes[6])


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("pytest '{test}'", "write it without quotes"),
        ("pytest {tests}", "{tests} is not known"),
    ],
)
def test_a_command_that_cannot_be_right_is_refused_at_once(
    tmp_path: Path, command: str, error: str
) -> None:
    said = Shop(tmp_path, ["good", "bad"]).analyze(command=command)
    assert said.code == 2
    assert error in said.err


def test_a_test_with_a_history_of_its_own_is_searched_in_its_own_range() -> None:
    failure = Failure(id="1", test_name="test_total", class_name="shop")
    own = TestRange(kind="last-pass", reason="", good="g", bad="b")
    config = RcaConfig(
        last_green={"": "auto", "other": "v1"},
        ranges={"shop": {name_failed_test(failure): own}},
    )
    assert choose_range(config, "shop", failure) == ("g", "b")
    assert choose_range(config, "shop", Failure(id="2", test_name="x")) == ("", "")
    assert choose_range(config, "other", failure) == ("v1", "")
