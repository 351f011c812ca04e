"""Files on a worker's host: taken from a remote, recorded from outside, pushed where none was."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from interlock.carriers.contract import Ask, Checkout, ExecutionContext, Reply
from interlock.system.errors import SourceError, UsageError
from interlock.system.git_remote import check_remote, fetch_commit
from interlock_cluster.worker.checkout import CheckoutStore
from tests.world.git_repo import git

PUSH = "refs/interlock/w-1/1/7"


class Scene:
    """A remote with one commit, and the store of a host."""

    def __init__(self, folder: Path) -> None:
        self.remote = folder / "remote.git"
        source = folder / "source"
        git(folder, "init", "-q", "--bare", str(self.remote))
        git(folder, "init", "-q", str(source))
        (source / "part").mkdir()
        (source / "part" / "code.py").write_text("old\n")
        (source / ".gitignore").write_text("*.log\n")
        git(source, "add", "-A")
        git(source, "commit", "-qm", "first")
        self.base = git(source, "rev-parse", "HEAD")
        git(source, "push", "-q", str(self.remote), f"HEAD:{PUSH}-base")
        self.store = CheckoutStore(folder / "host")

    def ask(self, **changes: str) -> Ask:
        given = {
            "remote": str(self.remote),
            "commit": self.base,
            "ref": f"{PUSH}-base",
            "folder": "/there/tree",
            "inside": "part/",
            "branch": "interlock/plan/a",
            "push": PUSH,
            **changes,
        }
        context = ExecutionContext(
            folder="/there/tree/part",
            variables={"INTERLOCK_TREE": "/there/tree/part"},
            checkouts=(msgspec.convert(given, Checkout),),
        )
        ask = Ask(7, 1, "A", "IMPLEMENT", 1, "developer", "In /there/tree/part, not /there/trees.")
        return msgspec.structs.replace(ask, execution=context, case_no=1)

    def show(self, commit: str) -> dict[str, str]:
        names = git(self.remote, "ls-tree", "-r", "--name-only", commit).splitlines()
        return {name: git(self.remote, "show", f"{commit}:{name}") for name in names}


def test_work_is_recorded_whatever_the_agent_did_to_git(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    ask, tree = scene.store.prepare(scene.ask(), 1)
    assert tree is not None
    here = Path(ask.execution.folder)
    assert ask.prompt == f"In {here}, not /there/trees."
    assert ask.execution.variables == {"INTERLOCK_TREE": str(here)}
    assert git(here, "branch", "--show-current") == "interlock/plan/a"
    assert git(here, "remote") == ""
    (here / "code.py").write_text("new\n")
    git(here, "commit", "-qam", "mine")
    mine = git(here, "rev-parse", "HEAD")
    (here / "more.py").write_text("more\n")
    (here / "out.log").write_text("ignored\n")
    # What its clone says is not asked: hooks, filters and a broken index do nothing.
    (tree.folder / ".git" / "index").write_bytes(b"broken")
    with (tree.folder / ".git" / "config").open("a") as config:
        config.write(f"[core]\nfsmonitor = touch {tmp_path}/run\n")
    reply = scene.store.record(tree, ask, Reply(7, f"see {here}/code.py".encode()))
    tree.release()
    assert reply.content == b"see /there/tree/part/code.py"
    assert reply.pushed is not None
    assert reply.pushed.ref == f"{PUSH}-1"
    assert scene.show(reply.pushed.commit) == {
        ".gitignore": "*.log",
        "part/code.py": "new",
        "part/more.py": "more",
    }
    assert git(scene.remote, "rev-parse", f"{reply.pushed.commit}^") == mine
    assert not (tmp_path / "run").exists()


def test_what_the_set_up_leaves_is_nobodys_work(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    command = ("sh", "-c", "echo made > made; echo changed > code.py; exit $1", "sh")
    plain = scene.ask()
    asks = [
        msgspec.structs.replace(
            plain,
            execution=msgspec.structs.replace(
                plain.execution,
                checkouts=(
                    msgspec.structs.replace(plain.execution.checkouts[0], setup=(*command, code)),
                ),
            ),
        )
        for code in ("0", "3")
    ]
    ask, tree = scene.store.prepare(asks[0], 1)
    assert tree is not None
    here = Path(ask.execution.folder)
    assert ((here / "made").read_text(), (here / "code.py").read_text()) == ("made\n", "old\n")
    (here / "own.py").write_text("own\n")
    reply = scene.store.record(tree, ask, Reply(7))
    tree.release()
    assert reply.pushed is not None
    assert {*scene.show(reply.pushed.commit)} == {".gitignore", "part/code.py", "part/own.py"}
    with pytest.raises(SourceError, match="the set-up command failed with exit code 3"):
        scene.store.prepare(asks[1], 2)


def test_a_ref_is_made_once_and_a_second_fence_has_another(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    ask, tree = scene.store.prepare(scene.ask(), 1)
    again, other = scene.store.prepare(scene.ask(), 2)
    assert tree is not None
    assert other is not None
    assert tree.folder != other.folder
    for number, each in enumerate((tree, other)):
        (each.folder / "part" / "code.py").write_text(f"{number}\n")
    first = scene.store.record(tree, ask, Reply(7))
    assert scene.store.record(tree, ask, Reply(7)) == first
    (tree.folder / "part" / "code.py").write_text("changed later\n")
    with pytest.raises(SourceError, match=f"{PUSH}-1 could not be created"):
        scene.store.record(tree, ask, Reply(7))
    second = scene.store.record(other, again, Reply(7))
    assert first.pushed is not None
    assert second.pushed is not None
    assert scene.show(first.pushed.commit)["part/code.py"] == "0"
    assert scene.show(second.pushed.commit)["part/code.py"] == "1"
    tree.release()
    other.release()
    _, third = scene.store.prepare(scene.ask(), 3)
    assert third is not None
    assert third.folder == tree.folder, "a CLI finds its session where it left it"
    assert (third.folder / "part" / "code.py").read_text() == "old\n"
    third.release()


BAD: dict[str, tuple[dict[str, str], str]] = {
    "a commit that is another": ({"commit": "1" * 40}, "not the announced 111111111111"),
    "no commit": ({"commit": "HEAD"}, "commit that can be fetched"),
    "a ref that is a flag": ({"ref": "--upload-pack=touch x"}, "commit that can be"),
    "a ref out of place": ({"push": "refs/heads/../main"}, "is no ref that work could be pushed"),
    "a remote that runs": ({"remote": "ext::sh -c touch% x"}, "git remote"),
    "a remote that is a flag": ({"remote": "--upload-pack=x"}, "git remote"),
    "a remote that is not there": ({"remote": "/nowhere.git"}, "could not be fetched"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_had_is_said(what: str, tmp_path: Path) -> None:
    changes, sentence = BAD[what]
    scene = Scene(tmp_path)
    with pytest.raises((SourceError, UsageError), match=sentence):
        scene.store.prepare(scene.ask(**changes), 1)


def test_a_folder_of_another_host_is_not_worked_in(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    ask = scene.ask()
    bare = msgspec.structs.replace(ask, execution=ExecutionContext(folder=str(tmp_path)))
    with pytest.raises(SourceError, match="name a git remote"):
        scene.store.prepare(bare, 1)
    with pytest.raises(UsageError, match="must not hold a password"):
        check_remote("https://ann:hunter2@example.org/x.git")


def test_what_was_pushed_is_looked_at_before_it_is_taken(tmp_path: Path) -> None:
    scene, ours = Scene(tmp_path), tmp_path / "ours.git"
    git(tmp_path, "init", "-q", "--bare", str(ours))
    fetch_commit(ours, str(scene.remote), scene.base, f"{PUSH}-base", "refs/kept/one")
    entry = f"100644 blob {git(scene.remote, 'rev-parse', f'{scene.base}:part/code.py')}\t.git\n"
    words = ["git", "-C", str(scene.remote), "mktree"]
    made = subprocess.run(
        words, input=entry, text=True, capture_output=True, check=True
    ).stdout.strip()
    harm = git(scene.remote, "commit-tree", made, "-m", "x")
    git(scene.remote, "update-ref", f"{PUSH}-1", harm)
    with pytest.raises(SourceError, match="could not be fetched"):
        fetch_commit(ours, str(scene.remote), harm, f"{PUSH}-1", "refs/kept/two")
