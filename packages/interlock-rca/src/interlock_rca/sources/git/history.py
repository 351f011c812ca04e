"""Read commits and their changed files from git once, and keep them in a cache file.

Neither a commit nor a range between commits ever changes, so both are kept for good, each row with
a checksum. A damaged or busy cache costs time, never an answer.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git
from interlock.system.time import format_timestamp

_FORM = 2
_KEPT_RANGES = 200
_MOST_ASKED = 500
"""SQLite bounds the values of one query."""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for another analysis that is writing."""
_TABLES = """
CREATE TABLE IF NOT EXISTS commits (
    hash TEXT PRIMARY KEY, body BLOB NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ranges (
    range_id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, remark TEXT NOT NULL,
    hashes TEXT NOT NULL, sum INTEGER NOT NULL);
"""
Result = TypeVar("Result")


class ChangedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file in a commit. The kind is git's letter: A M D R C T; `old` is its earlier name."""

    path: str
    kind: str
    old: str = ""
    same: int = 0
    """For a renamed or copied file, the similarity in per cent."""


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit. A merge lists only what differs from all of its parents."""

    hash: str
    author: str
    at: str
    """The commit time: RFC 3339, UTC; empty if invalid."""
    subject: str
    files: tuple[ChangedFile, ...] = ()
    parents: int = 1
    more: int = 0
    """The number of changed files beyond the listed ones."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Commit).decode


class _UnsoundError(Exception):
    """Raised if the stored data is not what was written."""


# The errors of a damaged file: wrong bytes, wrong kinds of values.
_UNSOUND = (
    sqlite3.Error,
    msgspec.MsgspecError,
    _UnsoundError,
    ValueError,
    TypeError,
    AttributeError,
)


# The file may be sound but unusable now: busy, no rights, no room.
_OUTSIDE = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    )
)


class HistoryCache:
    """A cache file for one repository. Failures are silent, but stored in `trouble`."""

    def __init__(self, folder: Path | None, key: str, *, timeout: float = LOCK_TIMEOUT) -> None:
        name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
        self.file = folder / f"{name}.history-{_FORM}" if folder else None
        self.trouble = ""
        self._timeout = timeout

    def find_range(self, key: str) -> tuple[list[Commit], str] | None:
        """Return the range stored under a key with its remark, if all of its commits are stored."""
        return self._run_transaction(lambda db: _select_range(db, key), None)

    def find_commits(self, wanted: Collection[str]) -> dict[str, Commit]:
        """Return the stored ones among the wanted commits."""
        return self._run_transaction(lambda db: _select_commits(db, list(wanted)), {})

    def add_commits(self, commits: Sequence[Commit]) -> None:
        rows = [
            (commit.hash, body := _encode(commit), _compute_checksum(commit.hash, body))
            for commit in commits
        ]
        put = "INSERT OR REPLACE INTO commits (hash, body, sum) VALUES (?, ?, ?)"
        self._run_transaction(lambda db: db.executemany(put, rows), None)

    def add_range(self, key: str, hashes: Sequence[str], remark: str) -> None:
        self._run_transaction(lambda db: _insert_range(db, key, " ".join(hashes), remark), None)

    def _run_transaction(
        self, work: Callable[[sqlite3.Connection], Result], otherwise: Result
    ) -> Result:
        """Run the work in a transaction of its own; return `otherwise` if the file is unusable."""
        if self.file is None or self.trouble:
            return otherwise
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.file, timeout=self._timeout)) as db:
                db.executescript(_TABLES)
                with db:
                    return work(db)
        except OSError as error:
            self.trouble = f"the history cache {self.file} cannot be used: {error}"
        except _UNSOUND as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE:
                self.trouble = f"the history cache {self.file} cannot be used: {error}"
            else:
                self._discard(self.file)
        return otherwise

    def _discard(self, file: Path) -> None:
        """Delete the file: the next call finds an empty one."""
        try:
            for tail in ("", "-journal", "-wal", "-shm"):
                file.with_name(file.name + tail).unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"the history cache {file} is damaged and stays: {error}"


def _compute_checksum(key: str, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(key.encode()))


def _select_commits(db: sqlite3.Connection, wanted: Sequence[str]) -> dict[str, Commit]:
    found: dict[str, Commit] = {}
    for start in range(0, len(wanted), _MOST_ASKED):
        part = wanted[start : start + _MOST_ASKED]
        marks = ", ".join("?" * len(part))
        ask = f"SELECT hash, body, sum FROM commits WHERE hash IN ({marks})"  # noqa: S608  marks only
        for name, body, written in db.execute(ask, part):
            if written != _compute_checksum(name, body):
                raise _UnsoundError
            found[name] = _decode(body)
    return found


def _select_range(db: sqlite3.Connection, key: str) -> tuple[list[Commit], str] | None:
    ask = "SELECT remark, hashes, sum FROM ranges WHERE key = ?"
    row = db.execute(ask, (key,)).fetchone()
    if row is None:
        return None
    remark, text, written = row
    if written != _compute_checksum(key + remark, text.encode()):
        raise _UnsoundError
    hashes = text.split()
    commits = _select_commits(db, hashes)
    if len(commits) < len(hashes):
        return None
    return [commits[name] for name in hashes], remark


def _insert_range(db: sqlite3.Connection, key: str, hashes: str, remark: str) -> None:
    put = "INSERT OR REPLACE INTO ranges (key, remark, hashes, sum) VALUES (?, ?, ?, ?)"
    db.execute(put, (key, remark, hashes, _compute_checksum(key + remark, hashes.encode())))
    drop = "DELETE FROM ranges WHERE range_id <= (SELECT max(range_id) FROM ranges) - ?"
    db.execute(drop, (_KEPT_RANGES,))


MAX_FILES = 1_000
_BATCH = 4_000
_TIMEOUT = 300.0
_MOST_WORDS = 300
_MARK = b"\x01"
_PARTED = "parted"
_FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an%x00%s"
_ASK = ["log", "--no-walk=unsorted", "--stdin", "-z", "--name-status", "-M", "-l400", "--cc"]
_ASK += ["--no-ext-diff", "--no-textconv", "--no-color", _FORMAT]
_TWO_NAMES = (b"R", b"C")


class CommitRange(msgspec.Struct, frozen=True):
    """Commits, newest first. `cut`: there are more. `parted`: the lower end is no ancestor of the
    upper one."""

    commits: list[Commit]
    cut: bool = False
    parted: bool = False


class GitLog:
    """The commits of one repository; with a cache, each is read from git at most once."""

    def __init__(self, git: Git, shallow: frozenset[str], cache: HistoryCache) -> None:
        self._git = git
        self._shallow = shallow
        self._cache = cache

    def list_between(self, green: str, tip: str, most: int) -> CommitRange:
        """Return the newest commits of `tip` that `green` lacks; all if it is ""."""
        ends = ".".join(sorted(self._shallow))
        key = f"{green}..{tip} {most} {ends}"
        kept = self._cache.find_range(key)
        if kept is not None:
            commits, remark = kept
        else:
            hashes, remark = self._list_hashes(green, tip, most + 1)
            commits = self.read_commits(hashes)
            self._cache.add_range(key, hashes, remark)
        return CommitRange(commits[:most], cut=len(commits) > most, parted=remark == _PARTED)

    def read_commits(self, hashes: Sequence[str]) -> list[Commit]:
        """Return these commits, in this order."""
        found = self._cache.find_commits(hashes)
        fresh = [commit for commit in hashes if commit not in found]
        for start in range(0, len(fresh), _BATCH):
            batch = list(self._read_log(fresh[start : start + _BATCH]))
            found.update((commit.hash, commit) for commit in batch)
            # A commit at a shallow clone's boundary has false files, so it is not cached.
            self._cache.add_commits(
                [commit for commit in batch if commit.hash not in self._shallow]
            )
        return [found[commit] for commit in hashes if commit in found]

    def _list_hashes(self, green: str, tip: str, most: int) -> tuple[list[str], str]:
        """Return the range's commits, and a remark if green does not begin the range."""
        words = ["--boundary", f"--max-count={most}", tip, *([f"^{green}"] if green else []), "--"]
        output = b"".join(self._git.stream("rev-list", *words, timeout=_TIMEOUT)).decode().split()
        hashes = [word for word in output if word[0] != "-"]
        is_whole = len(hashes) < most and green not in ("", tip)
        parted = is_whole and f"-{green}" not in output
        return hashes, _PARTED if parted else ""

    def _read_log(self, hashes: Sequence[str]) -> Iterator[Commit]:
        feed = "".join(f"{commit}\n" for commit in hashes).encode()
        output = self._git.stream(*_ASK, stdin=feed, timeout=_TIMEOUT)
        for commit in parse_log(output):
            if commit.hash in self._shallow:
                yield msgspec.structs.replace(commit, files=(), more=0)
            else:
                yield commit


def parse_log(pieces: Iterable[bytes]) -> Iterator[Commit]:
    """Parse the output of `git log -z --name-status` in our format."""
    words = _split_words(pieces)
    head = next(words, b"")
    while head:
        if not head.startswith(_MARK):
            raise SourceError("git log says what cannot be read here; is this git older than 2.30?")
        parents, stamp, author, subject = (*islice(words, 4), b"", b"", b"", b"")[:4]
        count = parents.count(b" ") + 1 if parents else 0
        files, more, following = _parse_changes(words, is_merge=count > 1)
        yield Commit(
            head[1:].decode(errors="replace"),
            _decode_text(author),
            format_date(stamp),
            _decode_text(subject),
            files,
            count,
            more,
        )
        head = following


def _parse_changes(
    words: Iterator[bytes], *, is_merge: bool
) -> tuple[tuple[ChangedFile, ...], int, bytes]:
    """Return the files of one commit, the number left out, and the head of the next commit."""
    files: list[ChangedFile] = []
    more = 0
    for word in words:
        if word.startswith(_MARK):
            return tuple(files), more, word
        status = word.removeprefix(b"\n")
        if not status:
            continue
        old = next(words, b"") if status[:1] in _TWO_NAMES and not is_merge else b""
        path = next(words, b"")
        if len(files) == MAX_FILES:
            more += 1
        elif is_merge:
            files.append(ChangedFile(_decode_path(path), _choose_merge_letter(status)))
        else:
            same = int(status[1:]) if status[1:].isdigit() else 0
            files.append(ChangedFile(_decode_path(path), chr(status[0]), _decode_path(old), same))
    return tuple(files), more, b""


def _choose_merge_letter(status: bytes) -> str:
    """Return one letter for a merge's status of a file against all parents."""
    letters = set(status.decode(errors="replace"))
    return letters.pop() if letters in ({"A"}, {"D"}) else "M"


def _split_words(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\0")
        yield from complete
    if rest:
        yield rest


def _decode_text(word: bytes) -> str:
    return word[: 4 * _MOST_WORDS].decode(errors="replace")[:_MOST_WORDS]


def _decode_path(word: bytes) -> str:
    return word.decode(errors="replace")


def format_date(stamp: bytes) -> str:
    """Return seconds since 1970 as a date, or "" if invalid."""
    try:
        return format_timestamp(int(stamp))
    except ValueError:
        return ""
