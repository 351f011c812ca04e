"""Sessions on another host: the project goes out by a git remote, and comes back, or is refused."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.world.git_repo import GitRepo

from interlock.agents.carrier import Ask, PushedWork, Reply
from interlock.agents.worker.checkout import CheckoutStore
from interlock.engine.case import Case
from interlock.epic.checkpoints.place import find_state_folder
from interlock.epic.checkpoints.record import (
    Checkpoint,
    Epic,
    StatedPosition,
    Story,
    apply_position,
)
from interlock.epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock.epic.progress import CheckpointUpdater
from interlock.epic.recovery.git_state import compare_git, read_git_work
from interlock.epic.sessions.record import RecordedSignal, SessionAttempt
from interlock.epic.sessions.remote import SessionExchange
from interlock.epic.sessions.transfer import SessionLimits, SessionReport
from interlock.epic.sessions.user_tree import record_tree
from interlock.epic.sessions.worker import decode_parcel, describe_end, unpack
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError

WRITE = RecordedSignal(
    at=1,
    via="stream",
    type="CHECKPOINT:WRITE",
    payload="epic-3:3-1:p:1",
    fields={"epic_id": "epic-3", "story_id": "3-1", "phase": "p", "task": "1"},
)
ATTEMPT = SessionAttempt(
    ended_by="CHECKPOINT_WRITE", signal=WRITE, signals=(WRITE,), before="not what we say"
)
Act = Callable[["Clone"], None]


class Clone(GitRepo):
    """The project as a session sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_800_000_000

    def write_checkpoint(self, note: str = "mind the rudder") -> None:
        checkpoints = Checkpoints(find_state_folder(self.folder))
        stated = StatedPosition(epic_id="epic-3", story_id="3-1", phase="p", task="1", note=note)
        work = read_git_work(self.folder)
        checkpoints.update(
            "epic-3", lambda known: apply_position(known, stated, work, "now"), "now"
        )


class Scene:
    """A coordinator's project, a remote, and another host."""

    def __init__(self, repo: GitRepo, folder: Path) -> None:
        self.repo = repo
        self.remote = GitRepo(folder / "remote.git", bare=True)
        self.store = CheckoutStore(folder / "host")
        self.checkpoints = Checkpoints(find_state_folder(repo.folder))
        first = Checkpoint(
            epic=Epic(id="epic-3"), stories=(Story(id="3-1"),), git=read_git_work(repo.folder)
        )
        self.checkpoints.update("epic-3", lambda _: first, "then")
        self.notes: list[str] = []
        self.folder = folder
        self.exchange = self.build_exchange()
        self.ask = Ask(7, 1, "epic-3", "SESSION", 1, "session", f"In {repo.folder}.", 3)
        self.ask = msgspec.structs.replace(self.ask, case=Case("epic-3", "SESSION"))

    def build_exchange(self) -> SessionExchange:
        clock = SystemClock()
        return SessionExchange(
            self.checkpoints,
            CheckpointUpdater(self.checkpoints, "epic-3", clock.now, self.notes.append),
            application="epic",
            epic_id="epic-3",
            remote=str(self.remote.folder),
            setup=("sh", "-c", "echo made > made.txt"),
            workspace="w",
            notes=self.folder / "notes",
            limits=SessionLimits(),
            bare=False,
            clock=clock,
        )

    def work(self, act: Act, fence: int = 1, sent: Ask | None = None) -> Reply:
        """A session on the other host, and what comes back."""
        told = msgspec.structs.replace(sent or self.exchange.send(self.ask), case=None)
        there = msgspec.json.decode(msgspec.json.encode(told), type=Ask)
        ask, tree = self.store.prepare(there, fence)
        assert tree is not None
        root = Path(ask.execution.folder)
        parcel = decode_parcel(ask)
        checkpoints, handed = unpack(parcel, root)
        act(Clone(root))
        report = describe_end(parcel, ATTEMPT, checkpoints, handed, root)
        reply = self.store.record(tree, ask, Reply(7, msgspec.json.encode(report)))
        tree.release()
        return reply

    def show(self) -> tuple[str, str, str, Checkpoint]:
        """All that a session can change here."""
        loaded = self.checkpoints.read("epic-3")
        assert isinstance(loaded, LoadedCheckpoint)
        return (
            self.repo.git("rev-parse", "HEAD"),
            self.repo.git("status", "--porcelain"),
            "".join(path.read_text() for path in sorted(self.repo.folder.glob("*.txt"))),
            loaded.checkpoint,
        )


@pytest.fixture
def scene(repo: GitRepo, tmp_path: Path) -> Scene:
    return Scene(repo, tmp_path)


def do_work(clone: Clone) -> None:
    """Commits, and things that are left uncommitted."""
    assert (clone.folder / "open.txt").read_text() == "open\n"
    clone.git("rm", "-q", "b.txt")
    clone.commit("three", {"c.txt": "c\n"})
    clone.write({"a.txt": "half\n", "open.txt": "closed\n", "new.txt": "new\n"})
    clone.write_checkpoint()


def do_nothing(_clone: Clone) -> None:
    pass


def leave_open(scene: Scene) -> None:
    scene.repo.write({"a.txt": "begun\n", "open.txt": "open\n"})


def test_what_a_session_made_comes_back_and_taking_it_again_changes_nothing(scene: Scene) -> None:
    leave_open(scene)
    reply = scene.work(do_work)
    taken = scene.exchange.take(scene.ask, reply)
    artifact = msgspec.json.decode(taken.content)
    assert (artifact["ended_by"], artifact["moved"]) == ("CHECKPOINT_WRITE", True)
    assert scene.repo.git("log", "--format=%s") == "three\ntwo\none"
    assert scene.repo.git("status", "--porcelain").split("\n") == [
        " M a.txt",
        " M open.txt",
        "?? new.txt",
    ]
    after = scene.show()
    assert after[2] == "half\nc\nnew\nclosed\n"
    assert (after[3].note, after[3].generation) == ("mind the rudder", 2)
    # For the next session, git is as this one left it.
    found = compare_git(scene.repo.folder, after[3].git)
    assert found.findings == ("equal", "dirty_as_left")
    assert not (scene.repo.folder / "made.txt").exists()
    again = scene.build_exchange()
    again.send(scene.ask)
    assert msgspec.json.decode(again.take(scene.ask, reply).content) == artifact
    assert scene.show() == after
    scene.exchange.clean_up(scene.ask)
    assert scene.remote.git("for-each-ref") == ""
    assert "refs/interlock" not in scene.repo.git("for-each-ref")


@pytest.mark.parametrize("stage", ["files", "branch", "index"])
def test_a_taking_that_was_killed_half_way_is_finished(scene: Scene, stage: str) -> None:
    before = scene.show()
    leave_open(scene)
    reply = scene.work(do_work)
    scene.exchange.take(scene.ask, reply)
    after = scene.show()
    if stage == "index":
        scene.repo.git("read-tree", before[0])
    else:
        scene.repo.git("update-ref", "refs/heads/main", before[0])
    if stage == "files":
        scene.repo.write({"b.txt": "b\n", "open.txt": "open\n", "new.txt": None})
    again = scene.build_exchange()
    again.send(scene.ask)
    assert not again.take(scene.ask, reply).failure
    assert scene.show() == after


def commit_state(path: str) -> Act:
    def act(clone: Clone) -> None:
        clone.write({path: "{}"})
        clone.git("add", "--force", path)
        clone.git("commit", "-qm", "ours")

    return act


def rewrite(clone: Clone) -> None:
    """History that does not contain what was handed out."""
    clone.git("reset", "-q", "--hard", "HEAD~1")
    clone.commit("another", {"c.txt": "c\n"})
    clone.write_checkpoint()


def link_away(clone: Clone) -> None:
    """A link in the history, though not in the tree."""
    for path in (".sage", ".git/interlock"):
        (clone.folder / path).rename(clone.folder / f"{path}.old")
    (clone.folder / ".sage").symlink_to("/etc")
    clone.git("add", "--force", ".sage")
    clone.git("commit", "-qm", "a link")
    (clone.folder / ".sage").unlink()
    for path in (".sage", ".git/interlock"):
        (clone.folder / f"{path}.old").rename(clone.folder / path)


def forget(clone: Clone) -> None:
    for path in (".sage", ".git/interlock"):
        shutil.rmtree(clone.folder / path)


def forge_note(clone: Clone) -> None:
    """The checkpoint with a word changed by hand, in both its places."""
    clone.write_checkpoint()
    for folder in (".sage/state", ".git/interlock/epics"):
        path = clone.folder / folder / "epic-3.json"
        path.write_text(path.read_text().replace("rudder", "keel"))


REFUSED: dict[str, Act] = {
    "it changes .sage/state": commit_state(".sage/state/epic-3.json"),
    "it changes .interlock": commit_state(".interlock/interlock.toml"),
    "a file or a link in the place of the folder .sage": link_away,
    "which is not in the work that came with it": rewrite,
    "the session left no usable checkpoint": forget,
    "its checksum does not match its content": forge_note,
}


@pytest.mark.parametrize("why", REFUSED)
def test_work_that_no_session_may_make_is_refused(scene: Scene, why: str) -> None:
    leave_open(scene)
    before = scene.show()
    reply = scene.exchange.take(scene.ask, scene.work(REFUSED[why]))
    assert reply.failure == "unreadable"
    assert why in reply.reason
    assert scene.show() == before


def forge(reply: Reply, **changes: object) -> Reply:
    report = msgspec.json.decode(reply.content, type=SessionReport)
    changed = msgspec.structs.replace(report, **changes)
    return msgspec.structs.replace(reply, content=msgspec.json.encode(changed))


def test_a_reply_that_does_not_fit_what_was_handed_out_is_refused(scene: Scene) -> None:
    leave_open(scene)
    before = scene.show()
    reply = scene.work(do_work)
    pushed = reply.pushed
    assert pushed is not None
    older = PushedWork(pushed.ref, pushed.commit, scene.repo.git("rev-parse", "HEAD~1"))
    elsewhere = PushedWork("refs/interlock/w-1/3/70-1", pushed.commit, pushed.head)
    other = PushedWork(pushed.ref, before[0], before[0])
    ref, past = "refs/interlock/w-1/3/7-9", older.head
    scene.repo.git("push", "-q", str(scene.remote.folder), f"{past}:{ref}")
    behind = PushedWork(ref, past, past)
    for forged, why in (
        (msgspec.structs.replace(reply, pushed=behind), "does not come after"),
        (msgspec.structs.replace(reply, pushed=older), "do not lie on top of its commit"),
        (msgspec.structs.replace(reply, pushed=elsewhere), "which is not its to make"),
        (msgspec.structs.replace(reply, pushed=other), "as it was announced"),
        (msgspec.structs.replace(reply, pushed=None), "nothing is known here"),
        (msgspec.structs.replace(reply, content=b"{}"), "use the same version"),
        (forge(reply, base="0" * 40), "files that were replaced"),
        (forge(reply, checkpoint=b"{}"), "cannot be read"),
        (forge(reply, checkpoint=b"", problem="it is too large"), "it is too large"),
        (forge(reply, attempt=msgspec.structs.replace(ATTEMPT, signal=None)), "no signal that"),
    ):
        found = scene.exchange.take(scene.ask, forged)
        assert (found.failure, found.content) == ("unreadable", forged.content)
        assert why in found.reason
    assert scene.show() == before
    assert not scene.exchange.take(scene.ask, reply).failure


def test_what_changed_here_meanwhile_is_not_overwritten(scene: Scene) -> None:
    leave_open(scene)
    reply = scene.work(do_work)
    scene.repo.write({"new.txt": "somebody's\n"})
    before = scene.show()
    found = scene.exchange.take(scene.ask, reply)
    assert "new.txt changed in" in found.reason
    assert scene.show() == before
    kept = found.reason.rpartition(" ")[2]
    assert scene.repo.git("show", f"{kept}:a.txt") == "half"


def test_what_is_asked_again_is_about_the_project_as_it_is_now(scene: Scene) -> None:
    late = scene.work(do_nothing)
    scene.repo.commit("by hand", {"d.txt": "d\n"})
    sent = scene.exchange.send(scene.ask)
    assert "files that were replaced" in scene.exchange.take(scene.ask, late).reason
    assert not scene.exchange.take(scene.ask, scene.work(do_nothing, 2, sent)).failure
    assert scene.repo.git("log", "-1", "--format=%s") == "by hand"


def test_a_project_that_cannot_be_sent_says_why(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for words, why in (
        ((), "make it a git repository"),
        (("init", "-q", "-b", "main"), "commit something"),
        (("commit", "-qm", "one", "--allow-empty"), ""),
        (("checkout", "-q", "--detach"), "check a branch out"),
        (("checkout", "-q", "main"), ""),
    ):
        if words:
            Clone(plain).git(*words)
        if why:
            with pytest.raises(SourceError, match=why):
                record_tree(find_state_folder(plain))
        else:
            assert record_tree(find_state_folder(plain)).branch == "main"
    commit_state(".sage/state/epic-3.json")(Clone(plain))
    with pytest.raises(SourceError, match=r"git rm -r --cached \.sage/state"):
        record_tree(find_state_folder(plain))
