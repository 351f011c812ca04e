"""Test users' repositories: dirty, detached, empty, deep, with hooks and submodules."""

import os
from pathlib import Path

import pytest

from delivery_tests.world.delivery_world import DeliveryWorld, develop, plan, ready, task
from interlock.carriers.contract import Ask
from interlock.system.errors import InterlockError, SourceError
from interlock_delivery.config import DeliverySettings
from tests.world.git_repo import git


def test_a_dirty_repository_is_told_and_not_touched(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    (project.repo / "calc.py").write_text("half done\n")
    (project.repo / "new.txt").write_text("mine\n")
    project.begin()
    assert project.work() == "done"
    assert any("2 files are changed or new" in note for note in project.notes)
    assert (project.repo / "calc.py").read_text() == "half done\n"
    assert git(project.repo, "status", "--porcelain") == "M calc.py\n?? new.txt"
    assert "new.txt" not in git(project.repo, "ls-tree", "--name-only", "interlock/calc")


def test_a_detached_head(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    git(project.repo, "checkout", "-q", "--detach")
    project.begin()
    assert project.work() == "done"
    assert project.merged() == ["Add sub"]
    assert any("no branch" in note for note in project.notes)


def test_no_commits_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    bare = tmp_path / "fresh"
    bare.mkdir()
    git(bare, "init", "-q", "-b", "main")
    project.repo = bare
    project.begin()
    with pytest.raises(SourceError, match="commit"):
        project.work()


def test_a_project_in_a_subfolder(tmp_path: Path) -> None:
    project = DeliveryWorld(
        tmp_path, plan(task("sub", files="calc.py"), task("dif", files="other.py"))
    )
    (project.repo / "app").mkdir()
    for name in ("calc.py", "test_calc.py"):
        git(project.repo, "mv", name, f"app/{name}")
    project.commit("deeper")
    project.repo = project.repo / "app"
    project.begin()

    def trespasses(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif" and ask.attempt > 1:
            git(folder, "checkout", "-q", "HEAD~1", "--", "calc.py")
            (folder / "test_dif.py").unlink()
            (folder / "other.py").write_text("other = 1\n")
            return ready("dif")
        return develop(ask, folder)

    project.work({"developer": trespasses})
    assert project.ends()["sub"] == "COMPLETE"
    assert "app/calc.py is declared by task sub" in str(project.findings("dif", "CHECK")[0])
    assert "def sub" in git(project.repo, "show", "interlock/calc:app/calc.py")


def test_hooks_that_reject_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    for name in ("pre-commit", "commit-msg", "pre-push", "reference-transaction"):
        hook = project.repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    project.begin()

    def commits(ask: Ask, folder: Path) -> str:
        result = develop(ask, folder)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "my own commit")
        return result

    assert project.work({"developer": commits}) == "done"
    assert project.merged() == ["Add sub"]


def test_a_submodule_is_there_for_the_agent(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    (library / "lib.txt").write_text("lib\n")
    git(library, "add", "-A")
    git(library, "commit", "-q", "-m", "lib")
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    git(
        project.repo,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(library),
    )
    project.commit("with a library")
    project.begin()

    def looks(ask: Ask, folder: Path) -> str:
        assert (folder / "library" / "lib.txt").read_text() == "lib\n"
        return develop(ask, folder)

    assert project.work({"developer": looks}) == "done"
    before = git(project.repo, "ls-tree", "main", "library")
    assert git(project.repo, "ls-tree", "interlock/calc", "library") == before


def test_files_are_copied_the_set_up_is_run_and_ports_are_given(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), command="sh check.sh"))
    (project.repo / ".gitignore").write_text(".env\nready\n")
    check = 'test "$INTERLOCK_PORT_COUNT" = 5 && grep -q word .env && test -e ready\n'
    (project.repo / "check.sh").write_text(check)
    project.commit("a check")
    (project.repo / ".env").write_text("word\n")
    project.begin(
        DeliverySettings(
            copy=(".env",), setup=("sh", "-c", "cp .env ready"), first_port=65_530, ports=5
        )
    )
    seen: dict[str, str] = {}

    def looks(ask: Ask, folder: Path) -> str:
        seen.update(ask.execution.variables)
        assert (folder / "ready").exists()
        return develop(ask, folder)

    assert project.work({"developer": looks}) == "done"
    assert int(seen["INTERLOCK_PORT_BASE"]) + 5 <= 65_536
    assert ".env" not in git(project.repo, "ls-tree", "-r", "--name-only", "interlock/calc").split()


def test_a_set_up_that_fails_goes_to_a_human(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin(DeliverySettings(setup=("sh", "-c", "echo no network; exit 3")))
    assert project.work() == "waiting"
    assert project.rules("sub") == ["unready", "unready", "unprepared"]
    assert "no network" in project.findings("sub", "PREPARE")[0]["problem"]


def test_one_delivery_is_worked_on_by_one_process(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()

    def within(ask: Ask, folder: Path) -> str:
        with pytest.raises(InterlockError, match="in use"):
            project.work()
        return develop(ask, folder)

    assert project.work({"developer": within}) == "done"


def test_the_published_branch_is_checked_out_by_the_user(tmp_path: Path) -> None:
    project = DeliveryWorld(tmp_path, plan(task("sub"), task("dif", after="sub")))
    project.begin()

    def looks(ask: Ask, folder: Path) -> str:
        if ask.case_id == "dif":
            git(project.repo, "checkout", "-q", "interlock/calc")
        return develop(ask, folder)

    assert project.work({"developer": looks}) == "done"
    assert any("is checked out; switch to another" in note for note in project.notes)
    assert git(project.repo, "status", "--porcelain") == ""
    assert project.merged() == ["Add sub"], "not moved under the user's feet"
    git(project.repo, "checkout", "-q", "main")
    assert project.work() == "done"
    assert project.merged() == ["Add sub", "Add dif"], "running it again publishes what is left"


def test_a_task_is_checked_in_its_own_environment(tmp_path: Path) -> None:
    places = (
        "\n## Environments\n\n| Name | Description | How to Execute |\n|---|---|---|\n"
        "| Desk | here | directly |\n| Box | not there | `no-such-box run` |\n"
    )
    here = task("sub").replace("**Required", "**Environment**: Desk\n\n**Required")
    project = DeliveryWorld(tmp_path, plan(here, more=places))
    project.begin()
    assert project.work() == "done"
    rows = [row["environment"] for row in project.findings("sub", "CHECK")[0]["results"]]
    assert rows == ["Desk"]


def test_no_variable_of_ours_reaches_a_check(tmp_path: Path) -> None:
    project = DeliveryWorld(
        tmp_path, plan(task("sub"), command="sh -c 'test -z \"$SECRET_TOKEN\"'")
    )
    project.begin()
    os.environ["SECRET_TOKEN"] = "hush"
    try:
        assert project.work() == "done"
    finally:
        del os.environ["SECRET_TOKEN"]
