"""Which refs of our clone we moved, and where to: kept where no git command reaches.

Knows that a crash may come between the two: what is about to be moved is written first, and moved
again on opening. Whatever differs later was moved by somebody else. Refuses to know what refs mean.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import save_file
from interlock.system.git import Git, Heed, unheeded

GONE = ""


class RefRecord(msgspec.Struct, frozen=True):
    """What the ledger's file holds. `moving` is what was begun; an empty value takes a ref away."""

    refs: dict[str, str] = {}
    moving: dict[str, str] = {}
    published: tuple[str, ...] = ()
    """Where the branch in the user's repository may be if nobody but us moved it."""


class MovedError(StateError):
    """A ref is not where it was expected; look again and decide anew."""


class RefLedger:
    """The refs of one clone. Threads take turns."""

    def __init__(self, file: Path, heed: Heed = unheeded) -> None:
        self.file = file
        self._heed = heed
        self._turn = threading.RLock()
        self._page = self._read()

    @property
    def refs(self) -> Mapping[str, str]:
        return self._page.refs

    @property
    def published(self) -> tuple[str, ...]:
        return self._page.published

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While this lasts, no other thread moves a ref."""
        with self._turn:
            yield

    def move(self, git: Git, changes: Mapping[str, str], old: Mapping[str, str] = {}) -> None:
        """Move these refs, those in `old` only from there. MovedError if they are elsewhere."""
        with self._turn:
            self._write(msgspec.structs.replace(self._page, moving=dict(changes)))
            ran_into = _update(git, changes, old)
            if ran_into:
                self._write(msgspec.structs.replace(self._page, moving={}))
                raise MovedError(ran_into) if old else SourceError(ran_into)
            self._write(_moved(self._page))

    def restore(self, git: Git, refs: Mapping[str, str]) -> None:
        """Put refs back that somebody else moved. The ledger knows them already, or never did."""
        with self._turn:
            ran_into = _update(git, refs, {})
            if ran_into:
                raise SourceError(ran_into)

    def settle(self, git: Git) -> None:
        """After a crash: what was begun is done to its end."""
        with self._turn:
            if not self._page.moving:
                return
            ran_into = _update(git, self._page.moving, {})
            if ran_into:
                raise SourceError(ran_into)
            self._write(_moved(self._page))

    def publishing(self, *commits: str) -> None:
        """The branch in the user's repository is at one of these, if nobody else moved it."""
        with self._turn:
            self._write(msgspec.structs.replace(self._page, published=tuple(commits)))

    def _read(self) -> RefRecord:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=RefRecord)
        except FileNotFoundError:
            return RefRecord()
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceError(
                f"{self.file} cannot be read ({error}); bring it back from a copy, or clean this "
                "workshop with force and start the run anew"
            ) from None

    def _write(self, page: RefRecord) -> None:
        self._heed("ledger")
        save_file(self.file, msgspec.json.encode(page, order="sorted"))
        self._page = page


def _moved(page: RefRecord) -> RefRecord:
    refs = {name: at for name, at in {**page.refs, **page.moving}.items() if at != GONE}
    return msgspec.structs.replace(page, refs=refs, moving={})


def _update(git: Git, changes: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Move them all or none. What went wrong, or nothing."""
    lines = [
        f"delete {name}" if at == GONE else f"update {name} {at} {old.get(name, '')}".rstrip()
        for name, at in sorted(changes.items())
    ]
    feed = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", feed=feed)
    if not ran.fine and ".lock" in ran.complaint and "File exists" in ran.complaint:
        # git waited for the holder before it complained: who held these is dead.
        for name in (*changes, "packed-refs"):
            (git.folder / f"{name}.lock").unlink(missing_ok=True)
        ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", feed=feed)
    return "" if ran.fine else f"git did not move {lines[0]}: {ran.reason}"
