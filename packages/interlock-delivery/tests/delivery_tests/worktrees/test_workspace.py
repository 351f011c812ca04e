"""Test creating a workspace from every kind of repository, and cleaning it without losing work."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from delivery_tests.world.workspace_bench import Workbench, agent_git, change, fine, merge, write
from interlock.system.errors import SourceError, StateError
from interlock_delivery.worktrees.prepare import prepare_tree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace, clean_workspace
from tests.world.git_repo import GitRepo
from tests.world.places import PYTHONPATH


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def test_nothing_leads_back_to_the_users_repository(bench: Workbench) -> None:
    bench.source.git("branch", "interlock/plan/one")
    bench.source.git("tag", "v1")
    before = bench.facts()
    workspace = bench.open_workspace()
    assert workspace.notes == ()
    assert workspace.git.read_line("remote") == ""
    assert workspace.git.read_line("for-each-ref", "--format=%(refname)").split("\n") == [
        "refs/interlock/plan/line",
        "refs/remotes/origin/interlock/plan/one",
        "refs/remotes/origin/main",
        "refs/tags/v1",
    ]
    assert str(bench.source.folder) not in (workspace.repo / "config").read_text()
    assert bench.facts() == before


def test_the_base_of_the_first_time_stays(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        base = workspace.base
    bench.source.commit("Go on", {"a.txt": "later\n"})
    with bench.open_workspace() as again:
        assert again.base == base
    with DeliveryWorkspace.open(bench.home) as opened:
        assert (opened.base, opened.slug) == (base, "plan")
    with DeliveryWorkspace.create(bench.source.folder, bench.home, "plan", base):
        pass
    with pytest.raises(SourceError, match="this run began at"):
        DeliveryWorkspace.create(bench.source.folder, bench.home, "plan", "main")


def test_uncommitted_work_is_not_part_of_it_and_is_not_touched(bench: Workbench) -> None:
    bench.source.write({"a.txt": "dirty\n", "new.txt": "new\n", "b.txt": "staged\n"})
    bench.source.git("add", "b.txt")
    before = bench.facts()
    workspace = bench.open_workspace()
    (note,) = workspace.notes
    assert note == (
        f"3 files are changed or new in {bench.source.folder} and not committed: this work is not "
        f"part of the run, which starts from {workspace.base[:12]}, and is not touched"
    )
    tree = workspace.open_tree("one")
    assert (tree.root / "a.txt").read_text() == "a\n"
    assert not (tree.root / "new.txt").exists()
    assert bench.facts() == before


def test_a_detached_head(bench: Workbench) -> None:
    bench.source.git("checkout", "-q", "--detach")
    bench.source.commit("Nowhere", {"a.txt": "nowhere\n"})
    workspace = bench.open_workspace()
    (note,) = workspace.notes
    assert workspace.base[:12] in note
    assert (workspace.open_tree("one").root / "a.txt").read_text() == "nowhere\n"


def test_a_work_tree_as_source(bench: Workbench) -> None:
    aside = bench.folder / "aside"
    bench.source.git("worktree", "add", "-q", "-b", "side", str(aside))
    (aside / "a.txt").write_text("side\n")
    bench.source.git("-C", str(aside), "commit", "-qam", "Side")
    workspace = DeliveryWorkspace.create(aside, bench.home, "plan")
    assert (workspace.open_tree("one").root / "a.txt").read_text() == "side\n"
    assert workspace.merge_branch.publish().is_done
    assert bench.source.git("rev-parse", "interlock/plan") == workspace.base


def test_a_shallow_clone(bench: Workbench, tmp_path: Path) -> None:
    bench.source.commit("Go on", {"a.txt": "later\n"})
    shallow = tmp_path / "shallow"
    bench.source.git("clone", "-q", "--depth=1", f"file://{bench.source.folder}", str(shallow))
    workspace = DeliveryWorkspace.create(shallow, bench.home, "plan")
    assert [note.partition(":")[0] for note in workspace.notes] == ["it is a shallow clone"]
    assert (workspace.open_tree("one").root / "a.txt").read_text() == "later\n"
    assert workspace.merge_branch.publish().is_done


def test_a_named_revision(bench: Workbench) -> None:
    first = bench.source.git("rev-parse", "HEAD")
    bench.source.commit("Go on", {"a.txt": "later\n"})
    assert DeliveryWorkspace.create(bench.source.folder, bench.home, "plan", "HEAD~1").base == first


def test_submodules_come_from_what_the_user_has(bench: Workbench) -> None:
    lib = GitRepo(bench.folder / "lib")
    lib.commit("Lib", {"lib.txt": "lib\n"})
    bench.source.git("submodule", "add", "-q", str(lib.folder), "deps/lib")
    bench.source.git("submodule", "add", "-q", str(lib.folder), "deps/gone")
    bench.source.git("commit", "-qm", "Submodules")
    shutil.rmtree(bench.source.folder / ".git" / "modules" / "deps" / "gone")
    shutil.rmtree(lib.folder)
    workspace = bench.open_workspace()
    tree = workspace.open_tree("one")
    assert (tree.root / "deps/lib/lib.txt").read_text() == "lib\n"
    assert not any((tree.root / "deps/gone").iterdir())
    (note,) = prepare_tree(tree).notes
    assert note == (
        "submodule 'deps/gone' is empty in the task trees: it is not checked out in "
        f"{bench.source.folder}"
    )
    assert tree.snapshot("Nothing").sha == workspace.base
    (tree.root / "deps/lib/lib.txt").write_text("changed\n")
    agent_git(tree, "-C", "deps/lib", "commit", "-qam", "Inside")
    taken = tree.snapshot("Moved")
    assert [violation.kind for violation in taken.violations] == ["submodule-moved"]
    assert taken.sha == workspace.base
    tree.restore(workspace.base)
    assert (tree.root / "deps/lib/lib.txt").read_text() == "lib\n"


def empty(folder: Path) -> Path:
    return GitRepo(folder / "empty").folder


def bare(folder: Path) -> Path:
    return GitRepo(folder / "bare", bare=True).folder


def no_repository(folder: Path) -> Path:
    (folder / "plain").mkdir()
    return folder / "plain"


def git_dir(folder: Path) -> Path:
    return folder / "shop" / ".git"


def a_file(folder: Path) -> Path:
    return folder / "shop" / "a.txt"


def new_part(folder: Path) -> Path:
    (folder / "shop" / "new").mkdir()
    return folder / "shop" / "new"


def not_text(folder: Path) -> Path:
    path = folder / "caf\udce9"
    path.mkdir()
    return path


def broken(folder: Path) -> Path:
    for file in (folder / "shop" / ".git" / "objects").rglob("??*"):
        if file.is_file():
            file.unlink()
    return folder / "shop"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (empty, "has no commit yet"),
        (bare, "has no checked-out files"),
        (git_dir, "has no checked-out files"),
        (no_repository, "is not in a git repository"),
        (a_file, "is not a folder"),
        (lambda folder: folder / "missing", "is not a folder"),
        (lambda folder: Path("nul\0"), "is not a folder"),
        (new_part, "is not part of commit"),
        (not_text, "is not UTF-8"),
        (broken, "cannot be read|names no commit|no commit yet"),
    ],
)
def test_what_cannot_be_worked_from_is_refused_with_advice(
    bench: Workbench, source: object, sentence: str
) -> None:
    assert callable(source)
    with pytest.raises(SourceError, match=sentence):
        DeliveryWorkspace.create(source(bench.folder), bench.home, "plan")
    assert not (bench.home / "repo.git").exists()
    if source is not broken:
        bench.open_workspace().close()


@pytest.mark.parametrize("base", ["missing", "", "--all", "HEAD:a.txt", "a b", "main..main", "x\n"])
def test_a_revision_that_is_none(bench: Workbench, base: str) -> None:
    with pytest.raises(SourceError, match="names no commit"):
        DeliveryWorkspace.create(bench.source.folder, bench.home, "plan", base)


@pytest.mark.parametrize("slug", ["", "Plan", "a/b", "-x", "a b", "é", "x" * 61, "a.lock", ".."])
def test_a_slug_that_cannot_name_a_branch(bench: Workbench, slug: str) -> None:
    with pytest.raises(SourceError, match="cannot name a branch"):
        bench.open_workspace(slug=slug)
    assert not bench.home.exists()


def test_a_folder_that_is_not_ours_is_left_alone(bench: Workbench) -> None:
    bench.home.mkdir()
    (bench.home / "repo.git").mkdir()
    (bench.home / "repo.git" / "precious").write_text("x")
    with pytest.raises(SourceError, match="is not empty"):
        bench.open_workspace()
    assert (bench.home / "repo.git" / "precious").read_text() == "x"
    assert [path.name for path in bench.home.iterdir()] == ["repo.git"]
    with pytest.raises(SourceError, match="is not a workspace"):
        DeliveryWorkspace.open(bench.home)


def test_another_source_slug_or_damaged_manifest_is_refused(bench: Workbench) -> None:
    bench.open_workspace().close()
    other = GitRepo(bench.folder / "other")
    other.commit("Begin", {"a.txt": "a"})
    with pytest.raises(SourceError, match="this workspace belongs to"):
        DeliveryWorkspace.create(other.folder, bench.home, "plan")
    with pytest.raises(SourceError, match="belongs to 'plan'"):
        bench.open_workspace(slug="another")
    manifest = bench.home / "workspace.json"
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**facts, "interlock_workspace": 99}))
    with pytest.raises(SourceError, match="another version"):
        bench.open_workspace()
    manifest.write_text("{")
    with pytest.raises(SourceError, match="cannot be read"):
        bench.open_workspace()


def test_one_process_at_a_time(bench: Workbench) -> None:
    workspace = bench.open_workspace()
    with pytest.raises(StateError, match="in use"):
        bench.open_workspace()
    workspace.close()
    bench.open_workspace().close()


def test_a_home_inside_the_repository_is_not_seen_there(bench: Workbench) -> None:
    bench.home = bench.source.folder / ".interlock" / "work"
    before = bench.source.git("status", "--porcelain"), bench.source.git("for-each-ref")
    workspace = bench.open_workspace()
    tree = workspace.open_tree("one")
    (tree.root / ".git").unlink()
    agent_git(tree, "commit", "--allow-empty", "-m", "Above", check=False)
    assert (bench.source.git("status", "--porcelain"), bench.source.git("for-each-ref")) == before


def test_agents_commit_under_the_users_name(bench: Workbench) -> None:
    bench.source.git("config", "user.name", "Grace User")
    bench.source.git("config", "user.email", "grace@example.org")
    tree = bench.open_workspace().open_tree("one")
    agent_git(tree, "commit", "-q", "--allow-empty", "-m", "Mine")
    assert agent_git(tree, "log", "-1", "--format=%an <%ae>") == "Grace User <grace@example.org>"


def test_the_callers_git_variables_lead_nowhere(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitRepo(bench.folder / "other")
    other.commit("Begin", {"a.txt": "other\n"})
    for name, value in {
        "GIT_DIR": str(other.folder / ".git"),
        "GIT_WORK_TREE": str(other.folder),
        "GIT_INDEX_FILE": str(other.folder / "x"),
        "GIT_OBJECT_DIRECTORY": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    tree = bench.open_workspace().open_tree("one")
    (tree.root / "a.txt").write_text("work\n")
    assert tree.snapshot("Work").is_new
    assert (other.folder / "a.txt").read_text() == "other\n"


@pytest.mark.parametrize("name", ["ledger.json", "origin.json", "config"])
def test_a_damaged_file_of_ours_is_a_sentence(bench: Workbench, name: str) -> None:
    bench.open_workspace().close()
    kept = (bench.home / name).read_bytes()
    (bench.home / name).unlink()
    (bench.home / name).mkdir()
    with (
        pytest.raises(SourceError, match=f"{name} cannot be read"),
        bench.open_workspace() as workspace,
    ):
        workspace.open_tree("one").check_violations()
    (bench.home / name).rmdir()
    (bench.home / name).write_bytes(kept)
    with bench.open_workspace() as workspace:
        assert workspace.open_tree("one").check_violations() == []


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_dry_run_says_it_and_does_nothing(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        workspace.open_tree("one")
    before = [name for name in listed(bench.home) if "index" not in name]
    found = clean_workspace(bench.home)
    assert str(bench.home / "repo.git") in [row.path for row in found]
    assert not any(row.is_kept for row in found)
    assert [name for name in listed(bench.home) if "index" not in name] == before


def test_all_goes_if_nothing_is_lost(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        tree = workspace.open_tree("one")
        write(tree, {"a.txt": "one\n"})
        merge(workspace.merge_branch, change(tree), fine)
        workspace.merge_branch.publish()
        sha = workspace.merge_branch.tip
    users = bench.facts()
    found = clean_workspace(bench.home, dry_run=False)
    assert not any(row.is_kept for row in found)
    assert not bench.home.exists()
    assert bench.facts() == users
    assert bench.source.git("rev-parse", "interlock/plan") == sha
    bench.open_workspace().close()


def test_what_would_be_lost_stays_with_its_reason(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        for task_id in ("dirty", "recorded", "merged", "idle"):
            write(
                workspace.open_tree(task_id), {f"{task_id}.txt": "x\n"} if task_id != "idle" else {}
            )
        workspace.open_tree("recorded").snapshot("Work")
        merge(workspace.merge_branch, change(workspace.open_tree("merged")), fine)
    for _ in range(2):
        found = clean_workspace(bench.home, dry_run=False)
        assert [(Path(row.path).name, row.reason) for row in found if row.is_kept] == [
            (
                "repo.git",
                "the merge branch has work that is not published; publish it, or use --force",
            ),
            ("dirty", "it has work that is not recorded; snapshot it, or use --force"),
            ("recorded", "its work is recorded but not merged; merge it, or use --force"),
        ]
    names = sorted(path.name for path in (bench.home / "trees").iterdir())
    assert names == ["_line", "dirty", "recorded"]
    with bench.open_workspace() as workspace:
        assert (workspace.open_tree("dirty").root / "dirty.txt").read_text() == "x\n"


def test_force_takes_all(bench: Workbench) -> None:
    with bench.open_workspace() as workspace:
        write(workspace.open_tree("one"), {"a.txt": "lost\n"})
    (bench.home / "ledger.json").write_text("damaged")
    with pytest.raises(SourceError, match="clean this workspace"):
        clean_workspace(bench.home, dry_run=False)
    clean_workspace(bench.home, dry_run=False, force=True)
    assert not bench.home.exists()


def test_files_of_others_stay(bench: Workbench) -> None:
    bench.open_workspace().close()
    (bench.home / "precious").write_text("x")
    clean_workspace(bench.home, dry_run=False)
    assert listed(bench.home) == ["precious"]


def test_a_half_made_workspace_can_be_cleaned(bench: Workbench) -> None:
    bench.open_workspace().close()
    (bench.home / "repo.git").rename(bench.home / "repo.git.making")
    clean_workspace(bench.home, dry_run=False)
    assert not bench.home.exists()


@pytest.mark.parametrize("kind", ["missing", "empty", "repository", "file", "link"])
def test_a_folder_that_is_not_ours_is_refused(bench: Workbench, kind: str) -> None:
    folder = bench.folder / "other"
    if kind == "repository":
        folder = bench.source.folder
    elif kind == "empty":
        folder.mkdir()
    elif kind == "file":
        folder.write_text("x")
    elif kind == "link":
        bench.open_workspace().close()
        folder.symlink_to(bench.home)
    before = listed(bench.folder)
    with pytest.raises(SourceError, match="nothing is removed"):
        clean_workspace(folder, dry_run=False, force=True)
    assert listed(bench.folder) == before


def test_a_workspace_in_use_is_refused(bench: Workbench) -> None:
    with bench.open_workspace(), pytest.raises(StateError, match="in use"):
        clean_workspace(bench.home, dry_run=False, force=True)
    assert (bench.home / "repo.git").exists()


def test_links_in_a_tree_are_not_followed(bench: Workbench) -> None:
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    with bench.open_workspace() as workspace:
        (workspace.open_tree("one").root / "out").symlink_to(outside)
        (workspace.open_tree("one").root / "locked").mkdir(mode=0o500)
    clean_workspace(bench.home, dry_run=False, force=True)
    assert (outside / "precious").read_text() == "x"
    assert not bench.home.exists()


def test_a_git_that_outlives_us_keeps_the_workspace(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.open_workspace().close()
    text = (
        "from pathlib import Path\n"
        "from interlock_delivery.worktrees.workspace import DeliveryWorkspace\n"
        f"workspace = DeliveryWorkspace.open(Path({str(bench.home)!r}))\n"
        "print('open', flush=True)\n"
        "workspace.git.run('-c', 'alias.hang=!echo $$ >&2; exec cat fifo', 'hang')\n"
    )
    fifo = bench.home / "repo.git" / "fifo"
    os.mkfifo(fifo)
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with fifo.open("wb"):  # opens when the other end is: git is running now
            child.send_signal(signal.SIGKILL)
            child.wait()
            with pytest.raises(StateError, match="in use"):
                bench.open_workspace()
    bench.open_workspace().close()
