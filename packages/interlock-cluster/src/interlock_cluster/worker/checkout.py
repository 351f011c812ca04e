"""Files of git repositories on a worker's host: a mirror per remote, a tree per case.

An agent works in a clone that shares the mirror's objects. Its files are recorded from outside the
clone, and pushed to a ref of this dispatch and fence that never moves, so late work lies where
nobody looks for it. Files that are only read are checked out once per commit, read-only.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from interlock.carriers.contract import Ask, Checkout, ExecutionContext, PushedWork, Reply
from interlock.system.errors import SourceError
from interlock.system.files import make_private_folder, remove_tree
from interlock.system.git import MAIL, NAME, OWN_CLONE, Git, GitPlaces, date_variables, write_files
from interlock.system.git_remote import fetch_commit, is_safe_ref, push_new_ref
from interlock.system.locks import take_lock
from interlock.system.process_tree import kill_group

_PATIENCE = 600.0
"""Seconds for the set-up command, and to wait for another process that fetches the same."""
_MAX_OUTPUT = 1_000


class WorkTree(msgspec.Struct):
    """A tree that an agent of this host works in."""

    checkout: Checkout
    mirror: Path
    folder: Path
    fence: int
    lock: int
    at: int
    """When the tree was made, in seconds since 1970: the date of the commit that records it."""
    made: tuple[bytes, ...] = ()
    """Files that the set-up command has left, which are no part of the work."""

    def release(self) -> None:
        """Let the next dispatch of the case have the folder."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


class CheckoutStore:
    """The mirrors and trees of one host, in one folder. Its methods block: for threads."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self, ask: Ask, fence: int) -> tuple[Ask, WorkTree | None]:
        """Fetch an ask's files and return it with their paths here; raise SourceError if that
        fails."""
        if not ask.execution.checkouts:
            if ask.execution.folder:
                raise SourceError(
                    f"step {ask.step} works in a folder of the coordinator's host, which is not "
                    "here; name a git remote, or let an agent of that host play this role"
                )
            return ask, None
        tree: WorkTree | None = None
        places: dict[str, str] = {}
        for each in ask.execution.checkouts:
            if each.branch:
                tree = self._make_tree(ask, each, fence)
                places[each.folder] = str(tree.folder)
            else:
                places[each.folder] = str(self._make_readable(each))
        try:
            return _move_ask(ask, tree, places), tree
        except BaseException:
            if tree is not None:
                tree.release()
            raise

    def record(self, tree: WorkTree, ask: Ask, reply: Reply) -> Reply:
        """Push the agent's work, and return the reply with the coordinator's paths."""
        checkout = tree.checkout
        if checkout.folder:
            here, there = str(tree.folder).encode(), checkout.folder.encode()
            reply = msgspec.structs.replace(reply, content=reply.content.replace(here, there))
        if not checkout.push or reply.failure:
            return reply
        ref = f"{checkout.push}-{tree.fence}"
        commit = self._commit(tree, f"{ask.case_id}: {ask.step.lower()} {ask.attempt}")
        push_new_ref(tree.mirror, checkout.remote, commit, ref)
        return msgspec.structs.replace(reply, pushed=PushedWork(ref, commit))

    def _open_mirror(self, remote: str) -> Path:
        mirror = self._root / "mirrors" / f"{_digest(remote)}.git"
        if not (mirror / "HEAD").exists():
            make_private_folder(mirror.parent)
            making = mirror.with_name(f"{mirror.name}.{os.getpid()}")
            remove_tree(making)
            words = ("init", "--quiet", "--bare", "--template=", "--", str(making))
            Git(mirror.parent, OWN_CLONE).read_line(*words, env={"GIT_DIR": ""})
            Git(making, OWN_CLONE).read_line("config", "gc.auto", "0")
            with suppress(OSError):  # another process was faster
                making.rename(mirror)
            remove_tree(making)
        return mirror

    def _fetch(self, checkout: Checkout) -> Path:
        mirror = self._open_mirror(checkout.remote)
        keep = f"refs/interlock/kept/{checkout.commit}"
        git = Git(mirror, OWN_CLONE)
        lock = take_lock(mirror / "interlock.lock", wait=_PATIENCE)
        if lock is None:
            raise SourceError(f"{mirror} is in use by another process for too long")
        try:
            if not git.is_true("rev-parse", "--verify", "--quiet", f"{keep}^{{commit}}"):
                fetch_commit(mirror, checkout.remote, checkout.commit, checkout.ref, keep)
        finally:
            os.close(lock)
        return mirror

    def _make_tree(self, ask: Ask, checkout: Checkout, fence: int) -> WorkTree:
        """Make a clone. A second attempt at a case gets the folder of the first, where a CLI finds
        its session, unless that folder is in use."""
        if checkout.push and not is_safe_ref(checkout.push):
            raise SourceError(f"{checkout.push[:80]!r} is no ref that work could be pushed to")
        mirror = self._fetch(checkout)
        home = self._root / "trees" / f"{ask.run_id}"
        make_private_folder(home)
        for name in (f"{ask.case_no}-{ask.step}", f"{ask.dispatch_id}-{fence}"):
            lock = take_lock(home / f"{name}.lock")
            if lock is not None:
                break
        else:
            raise SourceError(f"dispatch {ask.dispatch_id} is worked on in {home} already")
        folder = home / name
        try:
            remove_tree(folder)
            words = ("clone", "--quiet", "--shared", "--no-checkout", "--template=")
            git = Git(home, OWN_CLONE)
            git.read_line(*words, "--", str(mirror), str(folder), env={"GIT_DIR": ""})
            own = Git(folder / ".git", OWN_CLONE, places=GitPlaces(folder))
            for key, value in {"user.name": NAME, "user.email": MAIL, "gc.auto": "0"}.items():
                own.read_line("config", key, value)
            own.run("config", "--remove-section", "remote.origin")
            own.read_line("checkout", "--quiet", "-B", checkout.branch, checkout.commit)
            (folder / checkout.inside).mkdir(parents=True, exist_ok=True)
            made: list[bytes] = []
            if checkout.setup:
                _run_setup(checkout.setup, folder / checkout.inside, ask.execution.variables)
                own.read_line("checkout", "--quiet", "--force", checkout.branch)
                made = own.read_paths("ls-files", "--others", "--exclude-standard", "-z")
                _ignore_paths(folder, made)
        except BaseException:
            os.close(lock)
            raise
        return WorkTree(checkout, mirror, folder, fence, lock, int(time.time()), tuple(made))

    def _make_readable(self, checkout: Checkout) -> Path:
        """Return the folder of a commit's files, made once for all dispatches of this host."""
        mirror = self._fetch(checkout)
        place = self._root / "sources" / _digest(checkout.remote) / checkout.commit
        if not place.is_dir():
            make_private_folder(place.parent)
            making = place.with_name(f"{place.name}.{os.getpid()}")
            remove_tree(making)
            making.mkdir()
            git = Git(mirror, OWN_CLONE, places=GitPlaces(making, making.with_suffix(".index")))
            git.read_line("read-tree", checkout.commit)
            git.read_line("checkout-index", "--all", "--force")
            making.with_suffix(".index").unlink(missing_ok=True)
            for path in making.rglob("*"):
                if not path.is_symlink():
                    path.chmod(0o555 if path.is_dir() else path.stat().st_mode & 0o555)
            with suppress(OSError):
                making.rename(place)
            remove_tree(making)
        return place

    def _commit(self, tree: WorkTree, message: str) -> str:
        """Return a commit in the mirror of all files of the tree, on top of the agent's own.

        The agent's clone is only read: its settings count for nothing.
        """
        base, folder = tree.checkout.commit, tree.folder
        mirror = Git(tree.mirror, OWN_CLONE)
        keep = f"refs/interlock/work/{_digest(str(folder))}-{tree.fence}"
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--force")
        parent = base
        if mirror.run(*fetch, "--", str(folder / ".git"), f"+HEAD:{keep}").is_ok and mirror.is_true(
            "merge-base", "--is-ancestor", base, keep
        ):
            parent = mirror.read_line("rev-parse", "--verify", keep)
        index = folder.with_name(f"{folder.name}.index")
        index.unlink(missing_ok=True)
        git = Git(tree.mirror, OWN_CLONE, places=GitPlaces(folder, index))
        made = write_files(git, parent, tree.made)
        index.unlink(missing_ok=True)
        if made == git.read_line("rev-parse", f"{parent}^{{tree}}"):
            return parent
        when = date_variables(tree.at)
        words = ("commit-tree", made, "-p", parent)
        commit = git.read_line(*words, stdin=message.encode(), env=when)
        git.read_line("update-ref", keep, commit)
        return commit


def _move_ask(ask: Ask, tree: WorkTree | None, places: dict[str, str]) -> Ask:
    """Return the ask with the folders of this host in place of the coordinator's."""

    def move(text: str) -> str:
        # The longest first: one repository may lie in another.
        for there in sorted(places, key=len, reverse=True):
            if "/" in there:
                whole = rf"(?<![\w./-]){re.escape(there)}(?![\w-])"
                text = re.sub(whole, places[there].replace("\\", r"\\"), text)
        return text

    before = ask.execution
    work = str(tree.folder) if tree is not None else ""
    sources = tuple(dict.fromkeys(here for here in places.values() if here != work))
    variables = {name: move(value) for name, value in before.variables.items()}
    folder = ""
    if tree is not None:
        folder = str(tree.folder / tree.checkout.inside)
        if "GIT_CEILING_DIRECTORIES" in variables:
            variables["GIT_CEILING_DIRECTORIES"] = str(tree.folder.parent)
    context: ExecutionContext = msgspec.structs.replace(
        before, folder=folder, variables=variables, folders=sources, checkouts=()
    )
    return msgspec.structs.replace(ask, prompt=move(ask.prompt), execution=context)


def _ignore_paths(clone: Path, paths: Sequence[bytes]) -> None:
    """Let git ignore these paths, even when an agent adds all files."""
    lines = [
        b"/%s\n" % re.sub(rb"([\\*?\[ ])", rb"\\\1", path) for path in paths if b"\n" not in path
    ]
    place = clone / ".git" / "info" / "exclude"
    place.parent.mkdir(exist_ok=True)
    with place.open("ab") as file:
        file.writelines(lines)


def _run_setup(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
    """Run the set-up command; raise SourceError if it fails or takes too long."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - the project's own command
                list(command),
                cwd=folder,
                env={**os.environ, **variables, "INTERLOCK_TREE": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            code = process.wait(_PATIENCE)
        except OSError as error:
            raise SourceError(f"the set-up command cannot be run: {error}") from None
        except subprocess.TimeoutExpired:
            kill_group(process.pid)
            process.wait()
            raise SourceError(f"the set-up command took longer than {_PATIENCE:g} s") from None
        output.seek(max(0, output.tell() - _MAX_OUTPUT))
        said = output.read().decode(errors="replace").strip()
    if code:
        raise SourceError(f"the set-up command failed with exit code {code}: {said}")


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=10).hexdigest()
