"""Record our own moves of refs in a ledger, and undo those of others.

The ledger lies where no git command reaches. A move is recorded before it is made and finished on
opening, since a crash may come between. The guard compares all refs with the ledger, restores those
that others moved, and keeps the commits they pointed to. Several agents share the clone: a task is
blamed only if no other open task can have moved the ref.
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
    """The content of the ledger's file. `moving` has begun; an empty value deletes a ref."""

    refs: dict[str, str] = {}
    moving: dict[str, str] = {}
    published: tuple[str, ...] = ()
    """The commits at which the user's repository may have our branch if only we moved it."""
    accepted: dict[str, str] = {}
    """Where a human allows the user's branches to be."""
    claims: dict[str, str] = {}
    """The task that asks a human about each moved branch and its new commit."""


class MovedError(StateError):
    """A ref is not where it was expected; read it again and decide anew."""


class RefLedger:
    """The refs of one clone, for several threads."""

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
        """Keep other threads from moving refs."""
        with self._turn:
            yield

    def move(self, git: Git, changes: Mapping[str, str], old: Mapping[str, str] = {}) -> None:
        """Move refs, those in `old` only from there; raise MovedError if they are elsewhere."""
        with self._turn:
            self._write(msgspec.structs.replace(self._record, moving=dict(changes)))
            problem = _update_refs(git, changes, old)
            if problem:
                self._write(msgspec.structs.replace(self._record, moving={}))
                raise MovedError(problem) if old else SourceError(problem)
            self._write(_apply_moves(self._record))

    def restore(self, git: Git, refs: Mapping[str, str]) -> None:
        """Restore refs that others moved, without changing the ledger."""
        with self._turn:
            problem = _update_refs(git, refs, {})
            if problem:
                raise SourceError(problem)

    def finish_moves(self, git: Git) -> None:
        """Finish the moves that a crash interrupted."""
        with self._turn:
            if not self._record.moving:
                return
            problem = _update_refs(git, self._record.moving, {})
            if problem:
                raise SourceError(problem)
            self._write(_apply_moves(self._record))

    def record_published(self, *commits: str) -> None:
        """Record the commits at which the published branch may be if only we moved it."""
        with self._turn:
            self._write(msgspec.structs.replace(self._record, published=tuple(commits)))

    def accept(self, places: Mapping[str, str]) -> None:
        """Accept these commits of the user's branches from now on."""
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
                f"{self.file} cannot be read ({error}); restore it from a copy, or clean this "
                "workspace with --force and start a new run"
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
    """Move all refs or none; return what went wrong, or ""."""
    lines = [
        f"delete {name}" if at == GONE else f"update {name} {at} {old.get(name, '')}".rstrip()
        for name, at in sorted(changes.items())
    ]
    feed = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
    ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", stdin=feed)
    if not ran.is_ok and ".lock" in ran.stderr and "File exists" in ran.stderr:
        # git waited for the locks' holder before it complained, so that process is dead.
        for name in (*changes, "packed-refs"):
            (git.folder / f"{name}.lock").unlink(missing_ok=True)
        ran = git.run("update-ref", "--no-deref", "--stdin", "-m", "interlock", stdin=feed)
    return "" if ran.is_ok else f"git did not move {lines[0]}: {ran.reason}"


_STASH = "refs/stash"


class RefPosition(msgspec.Struct, frozen=True):
    """An open task's branch and git directory."""

    branch: str
    admin: str


class RefGuard:
    """Checks all refs on behalf of one task."""

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
        """Return what is wrong with the refs, after restoring them."""
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
            "branch is restored and your files are as you left them; add commits, never remove any"
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
        """Restore refs, deleting first, since a name may stand where another needs a folder."""
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
        return [Violation(kind, f"{what}; it is restored. Commit on {own} only")]

    def _check_stashes(self, there: Mapping[str, str]) -> list[Violation]:
        """Remove this task's entries from the shared stash, and keep their commits."""
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
        """Return True if another open task is on the ref and will find the move itself."""
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
