"""Repositories as users have them: dirty, detached, empty, deep, with hooks and submodules."""

import os
from pathlib import Path

import pytest
from tests.world.delivery_world import Yard, develop, git, plan, ready, task

from interlock.agents.carrier import Ask
from interlock.delivery.config import DeliverySettings
from interlock.system.errors import InterlockError, SourceError


def test_a_dirty_repository_is_told_and_not_touched(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    (yard.repo / "calc.py").write_text("half done\n")
    (yard.repo / "new.txt").write_text("mine\n")
    yard.begin()
    assert yard.work() == "done"
    assert any("2 files are changed or new" in note for note in yard.notes)
    assert (yard.repo / "calc.py").read_text() == "half done\n"
    assert git(yard.repo, "status", "--porcelain") == "M calc.py\n?? new.txt"
    assert "new.txt" not in git(yard.repo, "ls-tree", "--name-only", "interlock/calc")


def test_a_detached_head(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    git(yard.repo, "checkout", "-q", "--detach")
    yard.begin()
    assert yard.work() == "done"
    assert yard.merged() == ["Add sub"]
    assert any("HEAD is at no branch" in note for note in yard.notes)


def test_no_commits_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    bare = tmp_path / "fresh"
    bare.mkdir()
    git(bare, "init", "-q", "-b", "main")
    yard.repo = bare
    yard.begin()
    with pytest.raises(SourceError, match="commit"):
        yard.work()


def test_a_project_in_a_subfolder(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub", files="calc.py"), task("dif", files="other.py")))
    (yard.repo / "app").mkdir()
    for name in ("calc.py", "test_calc.py"):
        git(yard.repo, "mv", name, f"app/{name}")
    yard.commit("deeper")
    yard.repo = yard.repo / "app"
    yard.begin()

    def trespasses(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif" and ask.attempt > 1:
            git(folder, "checkout", "-q", "HEAD~1", "--", "calc.py")
            (folder / "test_dif.py").unlink()
            (folder / "other.py").write_text("other = 1\n")
            return ready("dif")
        return develop(ask, folder)

    yard.work({"developer": trespasses})
    assert yard.ends()["sub"] == "COMPLETE"
    assert "app/calc.py is declared by task sub" in str(yard.findings("dif", "CHECK")[0])
    assert "def sub" in git(yard.repo, "show", "interlock/calc:app/calc.py")


def test_hooks_that_reject_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    for name in ("pre-commit", "commit-msg", "pre-push", "reference-transaction"):
        hook = yard.repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    yard.begin()

    def commits(ask: Ask, folder: Path) -> str:
        said = develop(ask, folder)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "my own commit")
        return said

    assert yard.work({"developer": commits}) == "done"
    assert yard.merged() == ["Add sub"]


def test_a_submodule_is_there_for_the_agent(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    (library / "lib.txt").write_text("lib\n")
    git(library, "add", "-A")
    git(library, "commit", "-q", "-m", "lib")
    yard = Yard(tmp_path, plan(task("sub")))
    git(yard.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library))
    yard.commit("with a library")
    yard.begin()

    def looks(ask: Ask, folder: Path) -> str:
        assert (folder / "library" / "lib.txt").read_text() == "lib\n"
        return develop(ask, folder)

    assert yard.work({"developer": looks}) == "done"
    before = git(yard.repo, "ls-tree", "main", "library")
    assert git(yard.repo, "ls-tree", "interlock/calc", "library") == before


def test_files_are_copied_the_set_up_is_run_and_ports_are_given(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub"), command="sh check.sh"))
    (yard.repo / ".gitignore").write_text(".env\nready\n")
    check = 'test "$INTERLOCK_PORT_COUNT" = 5 && grep -q word .env && test -e ready\n'
    (yard.repo / "check.sh").write_text(check)
    yard.commit("a check")
    (yard.repo / ".env").write_text("word\n")
    yard.begin(
        DeliverySettings(
            copy=(".env",), setup=("sh", "-c", "cp .env ready"), first_port=65_530, ports=5
        )
    )
    seen: dict[str, str] = {}

    def looks(ask: Ask, folder: Path) -> str:
        seen.update(ask.execution.variables)
        assert (folder / "ready").exists()
        return develop(ask, folder)

    assert yard.work({"developer": looks}) == "done"
    assert int(seen["INTERLOCK_PORT_BASE"]) + 5 <= 65_536
    assert ".env" not in git(yard.repo, "ls-tree", "-r", "--name-only", "interlock/calc").split()


def test_a_set_up_that_fails_goes_to_a_human(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    yard.begin(DeliverySettings(setup=("sh", "-c", "echo no network; exit 3")))
    assert yard.work() == "waiting"
    assert yard.rules("sub") == ["unready", "unready", "unprepared"]
    assert "no network" in yard.findings("sub", "PREPARE")[0]["problem"]


def test_one_delivery_is_worked_on_by_one_process(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub")))
    yard.begin()

    def within(ask: Ask, folder: Path) -> str:
        with pytest.raises(InterlockError, match="in use"):
            yard.work()
        return develop(ask, folder)

    assert yard.work({"developer": within}) == "done"


def test_the_published_branch_is_checked_out_by_the_user(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub"), task("dif", after="sub")))
    yard.begin()

    def looks(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif":
            git(yard.repo, "checkout", "-q", "interlock/calc")
        return develop(ask, folder)

    assert yard.work({"developer": looks}) == "done"
    assert any("is checked out; switch to another" in note for note in yard.notes)
    assert git(yard.repo, "status", "--porcelain") == ""
    assert yard.merged() == ["Add sub"], "not moved under the user's feet"
    git(yard.repo, "checkout", "-q", "main")
    assert yard.work() == "done"
    assert yard.merged() == ["Add sub", "Add dif"], "running it again publishes what is left"


def test_a_task_is_checked_in_its_own_environment(tmp_path: Path) -> None:
    places = (
        "\n## Environments\n\n| Name | Description | How to Execute |\n|---|---|---|\n"
        "| Desk | here | directly |\n| Box | not there | `no-such-box run` |\n"
    )
    here = task("sub").replace("**Required", "**Environment**: Desk\n\n**Required")
    yard = Yard(tmp_path, plan(here, more=places))
    yard.begin()
    assert yard.work() == "done"
    rows = [row["environment"] for row in yard.findings("sub", "CHECK")[0]["results"]]
    assert rows == ["Desk"]


def test_no_variable_of_ours_reaches_a_check(tmp_path: Path) -> None:
    yard = Yard(tmp_path, plan(task("sub"), command="sh -c 'test -z \"$SECRET_TOKEN\"'"))
    yard.begin()
    os.environ["SECRET_TOKEN"] = "hush"
    try:
        assert yard.work() == "done"
    finally:
        del os.environ["SECRET_TOKEN"]
