"""Commits with the files they changed, read from git once and kept in a cache file.

What lies between two commits never changes, nor does a commit, so both are kept for good: blocks of
commits, and ranges as places in those blocks, each with a checksum. A cache that is damaged or busy
costs time, never an answer.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git

_FORM = 1
_KEPT_RANGES = 200
LOCK_TIMEOUT = 30.0
"""How many seconds to wait for another analysis that is writing."""
_TABLES = """
CREATE TABLE IF NOT EXISTS blocks (
    block_id INTEGER PRIMARY KEY, hashes TEXT NOT NULL, body BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ranges (
    range_id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, remark TEXT NOT NULL,
    runs BLOB NOT NULL, sum INTEGER NOT NULL);
"""


class HasHash(Protocol):
    """Whatever is kept has a hash that names it for good."""

    @property
    def hash(self) -> str: ...


Row = TypeVar("Row", bound=HasHash)
Result = TypeVar("Result")
Run = tuple[int, int, int]
"""Commits that stand side by side: the block, the first, how many."""


class _UnsoundError(Exception):
    """What is kept is not what was written."""


# Whatever a damaged file may bring: wrong bytes, wrong kinds of values, wrong counts.
_UNSOUND = (
    sqlite3.Error,
    msgspec.MsgspecError,
    _UnsoundError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
)


# The file may be sound, but cannot be used now: busy, no rights, no room.
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


class HistoryCache(Generic[Row]):
    """A file for one repository. Every failure of it is silent but kept in `trouble`."""

    def __init__(
        self, folder: Path | None, key: str, row: type[Row], *, patience: float = LOCK_TIMEOUT
    ) -> None:
        name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
        self.file = folder / f"{name}.history-{_FORM}" if folder else None
        self.trouble = ""
        self._patience = patience
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[row])  # type: ignore[valid-type]
        self._runs = msgspec.msgpack.Decoder(list[Run])

    def find_range(self, key: str) -> tuple[list[Row], str] | None:
        """The range kept under that key, and what was remarked of it."""
        return self._run_transaction(lambda db: self._select_range(db, key), None)

    def find_commits(self, wanted: Collection[str]) -> dict[str, Row]:
        """Those of the wanted commits that are here."""
        asked = frozenset(wanted)
        return self._run_transaction(lambda db: self._select_commits(db, asked), {})

    def add_commits(self, rows: Sequence[Row]) -> None:
        """Keep a block of commits."""
        if not rows:
            return
        body = self._encoder.encode(rows)
        hashes = " ".join(row.hash for row in rows)
        values = (hashes, body, _compute_checksum(hashes.encode(), body))
        put = "INSERT INTO blocks (hashes, body, sum) VALUES (?, ?, ?)"
        self._run_transaction(lambda db: db.execute(put, values), None)

    def add_range(self, key: str, hashes: Sequence[str], remark: str) -> None:
        """Keep a range, if all of its commits are here."""
        self._run_transaction(lambda db: self._insert_range(db, key, hashes, remark), None)

    def _select_commits(self, db: sqlite3.Connection, asked: frozenset[str]) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for block_id, hashes in db.execute("SELECT block_id, hashes FROM blocks"):
            names = hashes.split()
            if not asked.isdisjoint(names):
                pairs = zip(names, self._select_block(db, block_id), strict=True)
                found.update(pair for pair in pairs if pair[0] in asked)
        return found

    def _insert_range(
        self, db: sqlite3.Connection, key: str, hashes: Sequence[str], remark: str
    ) -> None:
        runs = _build_runs(_find_places(db, hashes), hashes)
        if runs is None:
            return
        body = self._encoder.encode(runs)
        put = "INSERT OR REPLACE INTO ranges (key, remark, runs, sum) VALUES (?, ?, ?, ?)"
        db.execute(put, (key, remark, body, _compute_checksum((key + remark).encode(), body)))
        drop = "DELETE FROM ranges WHERE range_id <= (SELECT max(range_id) FROM ranges) - ?"
        db.execute(drop, (_KEPT_RANGES,))

    def _select_range(self, db: sqlite3.Connection, key: str) -> tuple[list[Row], str] | None:
        ask = "SELECT remark, runs, sum FROM ranges WHERE key = ?"
        row = db.execute(ask, (key,)).fetchone()
        if row is None:
            return None
        remark, runs, written = row
        if written != _compute_checksum((key + remark).encode(), runs):
            raise _UnsoundError
        found: list[Row] = []
        block_id, block = 0, list[Row]()
        for wanted, first, count in self._runs.decode(runs):
            if wanted != block_id:
                block_id, block = wanted, self._select_block(db, wanted)
            found += block[first : first + count]
        return found, remark

    def _select_block(self, db: sqlite3.Connection, block_id: int) -> list[Row]:
        ask = "SELECT hashes, body, sum FROM blocks WHERE block_id = ?"
        row = db.execute(ask, (block_id,)).fetchone()
        if row is None or row[2] != _compute_checksum(row[0].encode(), row[1]):
            raise _UnsoundError
        return self._decoder.decode(row[1])

    def _run_transaction(
        self, work: Callable[[sqlite3.Connection], Result], otherwise: Result
    ) -> Result:
        """What the work finds, in a transaction of its own; `otherwise` if the file is no good."""
        if self.file is None or self.trouble:
            return otherwise
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.file, timeout=self._patience)) as db:
                db.executescript(_TABLES)
                with db:
                    return work(db)
        except OSError as error:
            self.trouble = f"the history cache {self.file} cannot be used: {error}"
        except _UNSOUND as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTSIDE:
                self.trouble = f"the history cache {self.file} cannot be used: {error}"
            else:
                self._discard()
        return otherwise

    def _discard(self) -> None:
        """Begin anew: the next call finds an empty file."""
        if self.file is None:
            return
        try:
            for tail in ("", "-journal", "-wal", "-shm"):
                self.file.with_name(self.file.name + tail).unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"the history cache {self.file} is damaged and stays: {error}"


def _compute_checksum(key: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(key))


def _find_places(db: sqlite3.Connection, hashes: Sequence[str]) -> dict[str, tuple[int, int]]:
    asked = frozenset(hashes)
    found: dict[str, tuple[int, int]] = {}
    for block_id, names in db.execute("SELECT block_id, hashes FROM blocks"):
        for place, name in enumerate(names.split()):
            if name in asked:
                found[name] = (block_id, place)
    return found


def _build_runs(places: dict[str, tuple[int, int]], hashes: Sequence[str]) -> list[Run] | None:
    runs: list[Run] = []
    for name in hashes:
        if name not in places:
            return None
        block_id, place = places[name]
        if runs and runs[-1][0] == block_id and sum(runs[-1][1:]) == place:
            runs[-1] = (block_id, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((block_id, place, 1))
    return runs


MAX_FILES = 1_000
_BATCH = 4_000
_PATIENCE = 300.0
_MOST_WORDS = 300
_MARK = b"\x01"
_PARTED = "parted"
_FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an%x00%s"
_ASK = ["log", "--no-walk=unsorted", "--stdin", "-z", "--name-status", "-M", "-l400", "--cc"]
_ASK += ["--no-ext-diff", "--no-textconv", "--no-color", _FORMAT]
_TWO_NAMES = (b"R", b"C")


class ChangedFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file in a commit. The kind is git's letter: A M D R C T; `old` is its earlier name."""

    path: str
    kind: str
    old: str = ""
    same: int = 0
    """Of a renamed or copied file: how much stayed the same, in per cent."""


class Commit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit. A merge lists only what differs from all of its parents."""

    hash: str
    author: str
    at: str
    """When it was committed: RFC 3339, UTC. Empty if that is no date."""
    subject: str
    files: tuple[ChangedFile, ...] = ()
    parents: int = 1
    more: int = 0
    """How many further files it changed, beyond those that are listed."""


class CommitRange(msgspec.Struct, frozen=True):
    """Commits, newest first. `cut`: there are more. `parted`: the lower end is not among the
    ancestors of the upper one."""

    commits: list[Commit]
    cut: bool = False
    parted: bool = False


class GitLog:
    """The commits of one repository, each read from git at most once if there is a cache."""

    def __init__(self, git: Git, shallow: frozenset[str], cache: HistoryCache[Commit]) -> None:
        self._git = git
        self._shallow = shallow
        self._cache = cache

    def list_between(self, green: str, tip: str, most: int) -> CommitRange:
        """The newest commits of `tip` that `green` does not have; all, if it is ""."""
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
        """These commits, in this order."""
        found = self._cache.find_commits(hashes)
        fresh = [commit for commit in hashes if commit not in found]
        for start in range(0, len(fresh), _BATCH):
            batch = list(self._read_log(fresh[start : start + _BATCH]))
            found.update((commit.hash, commit) for commit in batch)
            # A commit where a shallow clone ends tells no truth about its files: not kept.
            self._cache.add_commits(
                [commit for commit in batch if commit.hash not in self._shallow]
            )
        return [found[commit] for commit in hashes if commit in found]

    def _list_hashes(self, green: str, tip: str, most: int) -> tuple[list[str], str]:
        """The range's commits, and a remark if green is not where the range begins."""
        words = ["--boundary", f"--max-count={most}", tip, *([f"^{green}"] if green else []), "--"]
        output = b"".join(self._git.stream("rev-list", *words, patience=_PATIENCE)).decode().split()
        hashes = [word for word in output if word[0] != "-"]
        is_whole = len(hashes) < most and green not in ("", tip)
        parted = is_whole and f"-{green}" not in output
        return hashes, _PARTED if parted else ""

    def _read_log(self, hashes: Sequence[str]) -> Iterator[Commit]:
        feed = "".join(f"{commit}\n" for commit in hashes).encode()
        output = self._git.stream(*_ASK, feed=feed, patience=_PATIENCE)
        for commit in parse_log(output):
            if commit.hash in self._shallow:
                yield msgspec.structs.replace(commit, files=(), more=0)
            else:
                yield commit


def parse_log(pieces: Iterable[bytes]) -> Iterator[Commit]:
    """The commits in what `git log -z --name-status` says in our format."""
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
            format_timestamp(stamp),
            _decode_text(subject),
            files,
            count,
            more,
        )
        head = following


def _parse_changes(
    words: Iterator[bytes], *, is_merge: bool
) -> tuple[tuple[ChangedFile, ...], int, bytes]:
    """The files of one commit, how many were left out, and the head of the next commit."""
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
    """One letter for what was done to a file beside all parents of a merge."""
    letters = set(status.decode(errors="replace"))
    return letters.pop() if letters in ({"A"}, {"D"}) else "M"


def _split_words(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _decode_text(word: bytes) -> str:
    return word[: 4 * _MOST_WORDS].decode(errors="replace")[:_MOST_WORDS]


def _decode_path(word: bytes) -> str:
    return word.decode(errors="replace")


def format_timestamp(stamp: bytes) -> str:
    """Seconds since 1970 as a date, or "" if that is none."""
    try:
        return datetime.fromtimestamp(int(stamp), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""
