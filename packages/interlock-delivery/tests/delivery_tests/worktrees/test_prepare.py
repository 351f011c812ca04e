"""Test that preparing a tree leaves no change in it."""

import json
import sys
from pathlib import Path

import pytest

from delivery_tests.world.workspace_bench import Workbench, agent_git, change, fine, merge, write
from interlock_delivery.worktrees.merge_branch import Merged
from interlock_delivery.worktrees.prepare import prepare_tree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.source.write({".env": "SECRET=1\n", "conf/local.toml": "x = 1\n", "conf/other": "o"})
    return made


@pytest.fixture
def workspace(bench: Workbench) -> DeliveryWorkspace:
    return bench.open_workspace()


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_files_are_copied_and_never_recorded(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    done = prepare_tree(tree, [".env", "conf"])
    assert (done.is_ready, done.copied, done.notes) == (True, (".env", "conf"), ())
    assert (tree.root / ".env").read_text() == "SECRET=1\n"
    assert (tree.root / "conf/local.toml").exists()
    write(tree, {"a.txt": "work\n", ".env": "SECRET=2\n"})
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("a.txt",)
    assert agent_git(tree, "status", "--porcelain") == ""
    tree.restore(workspace.base)
    assert (tree.root / ".env").exists()


def test_copied_by_pattern(workspace: DeliveryWorkspace) -> None:
    assert prepare_tree(workspace.open_tree("one"), ["conf/*.toml"]).copied == ("conf/local.toml",)


def test_what_cannot_be_copied_is_a_note(bench: Workbench, workspace: DeliveryWorkspace) -> None:
    (bench.source.folder / "away").symlink_to("/etc/passwd")
    (bench.source.folder / "dead").symlink_to("nowhere")
    tree = workspace.open_tree("one")
    wanted = ["missing", "/etc/passwd", "../x", "a.txt", "away", "dead", "", ".git/config", "*\0"]
    done = prepare_tree(tree, wanted)
    assert done.is_ready
    assert done.copied == ()
    assert len(done.notes) == len(wanted)
    assert (tree.root / "a.txt").read_text() == "a\n"
    assert not (tree.root / "away").exists()


def test_an_agents_link_does_not_lead_a_copy_out(
    bench: Workbench, workspace: DeliveryWorkspace
) -> None:
    tree = workspace.open_tree("one")
    outside = bench.folder / "outside"
    outside.mkdir()
    (tree.root / "conf").symlink_to(outside)
    (note,) = prepare_tree(tree, ["conf/local.toml"]).notes
    assert "leads elsewhere" in note
    assert list(outside.iterdir()) == []


def test_the_set_up_command_runs_in_the_tree_with_its_ports(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    text = "import json, os; json.dump([dict(os.environ), os.getcwd()], open('x.log', 'w'))"
    done = prepare_tree(tree, setup=python(text), ports=(4000, 20))
    assert (done.is_ready, done.exit_code, done.notes) == (True, 0, ())
    environ, folder = json.loads((tree.root / "x.log").read_text())
    assert folder == str(tree.folder)
    assert environ["INTERLOCK_PORT_BASE"] == "4000"
    assert environ["INTERLOCK_PORT_COUNT"] == "20"
    assert environ["INTERLOCK_TREE"] == str(tree.folder)
    assert environ["INTERLOCK_BRANCH"] == "interlock/plan/one"


def test_what_the_command_leaves_is_nobodys_change(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    text = "open('a.txt', 'w').write('x'); open('a [b]*', 'w'); open('b.txt', 'a').write('x')"
    done = prepare_tree(tree, setup=python(text))
    assert done.notes == (
        "the set-up command left a [b]*, which will not be recorded",
        "the set-up command changed a.txt, b.txt; this is undone",
    )
    write(tree, {"ab": "not excluded\n"})
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("ab",)


def test_work_that_is_there_already_is_kept(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "work\n", "new.txt": "new\n"})
    assert prepare_tree(tree, setup=python("")).notes == ()
    assert tree.diff(workspace.base, tree.snapshot("Work").sha).paths == ("a.txt", "new.txt")


def test_a_command_that_fails(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    done = prepare_tree(tree, setup=python("print('no network'); raise SystemExit(3)"))
    assert (done.is_ready, done.exit_code, done.output) == (False, 3, "no network\n")
    missing = prepare_tree(tree, setup=["no-such-command-at-all"])
    assert (missing.is_ready, missing.exit_code) == (False, 127)
    assert "correct the set-up command" in missing.output
    assert not prepare_tree(tree, setup=["x\0"]).is_ready


def test_a_command_that_does_not_end_is_ended(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    text = "import time, sys; print('begun', flush=True); time.sleep(600)"
    done = prepare_tree(tree, setup=python(text), patience=1.0)
    assert (done.is_ready, done.is_late, done.output) == (False, True, "begun\n")


def test_a_flood_is_cut_to_its_end(workspace: DeliveryWorkspace) -> None:
    text = "import sys; sys.stdout.buffer.write(b'\\xff' * 5_000_000 + b'the end')"
    done = prepare_tree(workspace.open_tree("one"), setup=python(text))
    assert done.is_ready
    assert len(done.output) == 16_000
    assert done.output.endswith("the end")


def test_the_tree_for_merges_can_be_made_ready_too(workspace: DeliveryWorkspace) -> None:
    tree = workspace.open_tree("one")
    write(tree, {"a.txt": "one\n"})
    scratch = workspace.merge_branch.merge_tree
    scratch.check_out(workspace.merge_branch.tip)
    assert prepare_tree(scratch, [".env"], python("")).copied == (".env",)
    seen = []

    def verify(folder: Path) -> str:
        seen.append((folder / ".env").read_text())
        return fine(folder)

    assert isinstance(merge(workspace.merge_branch, change(tree), verify), Merged)
    assert seen == ["SECRET=1\n"]
