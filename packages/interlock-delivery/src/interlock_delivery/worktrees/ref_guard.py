"""Who moved which ref of our clone: the ledger of our own moves, and the guard against others'.

The ledger is kept where no git command reaches. What is about to be moved is written first and
finished on opening, since a crash may come in between. The guard compares all refs with the ledger;
what somebody else moved is put back, and what it pointed to is kept. Several agents share the
clone: a ref is blamed on a task only if no other open task can have moved it.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import save_file
from interlock.system.git import Git, OnStep, ignore_step
from interlock_delivery.worktrees.names import (
    Violation,
    is_kept_ref,
    kept_ref,
    merge_ref,
    read_refs,
)

GONE = ""


class RefRecord(msgspec.Struct, frozen=True):
    """What the ledger's file holds. `moving` is what was begun; an empty value takes a ref away."""

    refs: dict[str, str] = {}
    moving: dict[str, str] = {}
    published: tuple[str, ...] = ()
    """Where the branch in the user's repository may be if nobody but us moved it."""
    accepted: dict[str, str] = {}
    """Where a human says that branches of the user's may be."""
    claims: dict[str, str] = {}
    """Which task asks a human about a branch of the user's and its new place."""


class MovedError(StateError):
    """A ref is not where it was expected; look again and decide anew."""


class RefLedger:
    """The refs of one clone. Threads take turns."""

    def __init__(self, file: Path, on_step: OnStep = ignore_step) -> None:
        self.file = file
        self._heed = on_step
        self._turn = threading.RLock()
        self._record = self._read()

    @property
    def refs(self) -> Mapping[str, str]:
        return self._record.refs

    @property
    def published(self) -> tuple[str, ...]:
        return self._record.published

    @property
    def accepted(self) -> Mapping[str, str]:
        return self._record.accepted

    @property
    def claims(self) -> Mapping[str, str]:
        return self._record.claims

    @contextmanager
    def hold(self) -> Iterator[None]:
        """While this lasts, no other thread moves a ref."""
        with self._turn:
            yield

    def move(self, git: Git, changes: Mapping[str, str], old: Mapping[str, str] = {}) -> None:
        """Move these refs, those in `old` only from there. MovedError if they are elsewhere."""
        with self._turn:
            self._write(msgspec.structs.replace(self._record, moving=dict(changes)))
            problem = _update_refs(git, changes, old)
            if problem:
                self._write(msgspec.structs.replace(self._record, moving={}))
                raise MovedError(problem) if old else SourceError(problem)
            self._write(_apply_moves(self._record))

    def restore(self, git: Git, refs: Mapping[str, str]) -> None:
        """Put refs back that somebody else moved. The ledger knows them already, or never did."""
        with self._turn:
            problem = _update_refs(git, refs, {})
            if problem:
                raise SourceError(problem)

    def finish_moves(self, git: Git) -> None:
        """After a crash: what was begun is done to its end."""
        with self._turn:
            if not self._record.moving:
                return
            problem = _update_refs(git, self._record.moving, {})
            if problem:
                raise SourceError(problem)
            self._write(_apply_moves(self._record))

    def record_published(self, *commits: str) -> None:
        """The branch in the user's repository is at one of these, if nobody else moved it."""
        with self._turn:
            self._write(msgspec.structs.replace(self._record, published=tuple(commits)))

    def accept(self, places: Mapping[str, str]) -> None:
        """Branches of the user's may be at these places from now on."""
        self._add("accepted", places)

    def claim(self, claims: Mapping[str, str]) -> None:
        self._add("claims", claims)

    def _add(self, field: str, more: Mapping[str, str]) -> None:
        with self._turn:
            known: dict[str, str] = getattr(self._record, field)
            if not more.items() <= known.items():
                self._write(msgspec.structs.replace(self._record, **{field: {**known, **more}}))

    def _read(self) -> RefRecord:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=RefRecord)
        except FileNotFoundError:
            return RefRecord()
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceError(
                f"{self.file} cannot be read ({error}); bring it back from a copy, or clean this "
                "workspace with force and start the run anew"
            ) from None

    def _write(self, record: RefRecord) -> None:
        self._heed("ledger")
        save_file(self.file, msgspec.json.encode(record, order="sorted"))
        self._record = record


def _apply_moves(record: RefRecord) -> RefRecord:
    refs = {
        name: at
        for name, at in {**record.refs, **record.moving}.items()
        if at != GONE and not is_kept_ref(name)
    }
    return msgspec.structs.replace(record, refs=refs, moving={})


def _update_refs(git: Git, changes: Mapping[str, str], old: Mapping[str, str]) -> str:
    """Move them all or none. What went wrong, or nothing."""
    lines = [
        f"delete {name}" if at == GONE else f"update {name} {at} {old.get(name, '')}".rstrip()
        for name, at in sorted(changes.items())
    ]
    feed = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", stdin=feed)
    if not ran.is_ok and ".lock" in ran.stderr and "File exists" in ran.stderr:
        # git waited for the holder before it complained: who held these is dead.
        for name in (*changes, "packed-refs"):
            (git.folder / f"{name}.lock").unlink(missing_ok=True)
        ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", stdin=feed)
    return "" if ran.is_ok else f"git did not move {lines[0]}: {ran.reason}"


_STASH = "refs/stash"


class RefPosition(msgspec.Struct, frozen=True):
    """One open task, as git knows it."""

    branch: str
    admin: str


class RefGuard:
    """One look at all refs, on behalf of one task."""

    def __init__(
        self,
        git: Git,
        ledger: RefLedger,
        slug: str,
        origin: Mapping[str, str],
        own: RefPosition,
        others: Iterable[RefPosition],
    ) -> None:
        self.git, self.ledger, self.slug, self.own = git, ledger, slug, own
        self.others = tuple(others)
        self.origin = origin
        self._kept = f"refs/interlock/{slug}/kept/"

    def check(self, expected: str, base: str) -> list[Violation]:
        """What is wrong with the refs. Afterwards they are right."""
        with self.ledger.hold():
            there = read_refs(self.git)
            found = [*self._check_stashes(there), *self._check_others(there)]
            found += self._check_own(there.get(self.own.branch, GONE), expected, base)
        return found

    def _check_own(self, tip: str, expected: str, base: str) -> list[Violation]:
        name = self.own.branch.removeprefix("refs/heads/")
        if tip != GONE and all(self._is_descendant(tip, from_) for from_ in (expected, base)):
            return []
        self._keep_commit(tip)
        self.ledger.move(self.git, {self.own.branch: expected})
        sentence = (
            f"the history of {name} was rewritten: {expected[:12]} is no longer part of it. The "
            "branch is put back and your files are as you left them; add commits, never remove any"
        )
        return [Violation("history-rewritten", sentence)]

    def _check_others(self, there: Mapping[str, str]) -> list[Violation]:
        right = {**self.origin, **self.ledger.refs}
        mine = {self.own.branch, _STASH} | {other.branch for other in self.others}
        wrong = {
            ref: there.get(ref, GONE)
            for ref in sorted({*there, *right})
            if there.get(ref, GONE) != right.get(ref, GONE)
            and ref not in mine
            and not ref.startswith(self._kept)
        }
        wrong = {ref: at for ref, at in wrong.items() if not self._is_in_use(ref)}
        found = []
        for ref, at in wrong.items():
            found += self._describe_violation(ref, at, right.get(ref, GONE))
            self._keep_commit(at)
        if wrong:
            self._restore({ref: right.get(ref, GONE) for ref in wrong})
        return found

    def _restore(self, refs: Mapping[str, str]) -> None:
        """A name may stand where another needs a folder: first what is too much, then the rest."""
        there = {
            ref: at for ref, at in refs.items() if at and self.git.is_true("cat-file", "-e", at)
        }
        for chosen in ({ref: at for ref, at in refs.items() if not at}, there):
            if chosen:
                self.ledger.restore(self.git, chosen)

    def _describe_violation(self, ref: str, at: str, was: str) -> list[Violation]:
        if not self._can_be_mine(at or was):
            return []
        name = ref.removeprefix("refs/heads/").removeprefix("refs/")
        if ref == merge_ref(self.slug):
            kind, what = "line-moved", "the branch that all tasks are merged to was moved"
        elif at == GONE:
            kind, what = "ref-deleted", f"{name} was deleted"
        elif was == GONE:
            kind, what = "ref-made", f"{name} was made"
        else:
            kind, what = "ref-moved", f"{name} was moved"
        own = self.own.branch.removeprefix("refs/heads/")
        return [Violation(kind, f"{what}; it is put back. Commit on {own} only")]

    def _check_stashes(self, there: Mapping[str, str]) -> list[Violation]:
        """All trees share one stash. What this task put there is taken out and kept."""
        if _STASH not in there:
            return []
        name = self.own.branch.removeprefix("refs/heads/")
        reflog = self.git.read_line("log", "--walk-reflogs", "--format=%H %gs", _STASH, "--")
        found, dropped = [], 0
        for number, row in enumerate(reflog.split("\n")):
            commit, _, subject = row.partition(" ")
            if f"on {name}:" not in subject.replace("On", "on"):
                continue
            self._keep_commit(commit)
            self.git.run(
                "reflog", "delete", "--updateref", "--rewrite", f"stash@{{{number - dropped}}}"
            )
            dropped += 1
            found.append(
                Violation(
                    "stash",
                    "work was left in a stash, which all tasks share; "
                    f"git stash apply {commit[:12]} brings it back. Commit on your branch instead",
                )
            )
        if dropped and not self.git.run("reflog", "show", _STASH).stdout:
            self.git.run("update-ref", "-d", _STASH)
        return found

    def _is_descendant(self, tip: str, from_: str) -> bool:
        return tip == from_ or self.git.is_true("merge-base", "--is-ancestor", from_, tip)

    def _keep_commit(self, commit: str) -> None:
        if commit != GONE and self.git.is_true("cat-file", "-e", commit):
            self.git.read_line("update-ref", kept_ref(self.slug, commit), commit)

    def _is_in_use(self, ref: str) -> bool:
        """Another open task stands on it; its own look will find it."""
        heads = (Path(other.admin) / "HEAD" for other in self.others)
        return any(_read_text(head).strip() == f"ref: {ref}" for head in heads)

    def _can_be_mine(self, commit: str) -> bool:
        if not self.others:
            return True
        if any(commit in _read_text(Path(other.admin) / "logs" / "HEAD") for other in self.others):
            return False
        return commit in _read_text(Path(self.own.admin) / "logs" / "HEAD")


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
