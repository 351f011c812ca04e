"""History as records: commits with the files they changed, read from git and kept once read.

Knows how `git log` tells a commit. What lies between two commits never changes, nor does a commit,
so both are kept in a cache for good. Refuses to know which commit is to blame.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

import msgspec

from interlock.rca.sources.git.git_cache import HistoryCache
from interlock.system.errors import SourceError
from interlock.system.git import Git

MOST_FILES = 1_000
_BATCH = 4_000
_PATIENCE = 300.0
_MOST_WORDS = 300
_MARK = b"\x01"
_PARTED = "parted"
_FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an%x00%s"
_ASK = (
    *("log", "--no-walk=unsorted", "--stdin", "-z", "--name-status", "-M", "-l400", "--cc"),
    *("--no-ext-diff", "--no-textconv", "--no-color", _FORMAT),
)
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


class Range(msgspec.Struct, frozen=True):
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

    def between(self, green: str, tip: str, most: int) -> Range:
        """The newest commits of `tip` that `green` does not have; all, if it is ""."""
        ends = ".".join(sorted(self._shallow))
        key = f"{green}..{tip} {most} {ends}"
        kept = self._cache.recall(key)
        if kept is not None:
            commits, remark = kept
        else:
            hashes, remark = self._hashes(green, tip, most + 1)
            commits = self.commits(hashes)
            self._cache.remember(key, hashes, remark)
        return Range(commits[:most], cut=len(commits) > most, parted=remark == _PARTED)

    def commits(self, hashes: Sequence[str]) -> list[Commit]:
        """These commits, in this order."""
        found = self._cache.find(hashes)
        fresh = [commit for commit in hashes if commit not in found]
        for start in range(0, len(fresh), _BATCH):
            batch = list(self._read(fresh[start : start + _BATCH]))
            found.update((commit.hash, commit) for commit in batch)
            # A commit where a shallow clone ends tells no truth about its files: not kept.
            self._cache.add([commit for commit in batch if commit.hash not in self._shallow])
        return [found[commit] for commit in hashes if commit in found]

    def _hashes(self, green: str, tip: str, most: int) -> tuple[list[str], str]:
        """The range's commits, and a remark if green is not where the range begins."""
        words = ["--boundary", f"--max-count={most}", tip, *([f"^{green}"] if green else []), "--"]
        said = b"".join(self._git.stream("rev-list", *words, patience=_PATIENCE)).decode().split()
        hashes = [word for word in said if word[0] != "-"]
        is_whole = len(hashes) < most and green not in ("", tip)
        parted = is_whole and f"-{green}" not in said
        return hashes, _PARTED if parted else ""

    def _read(self, hashes: Sequence[str]) -> Iterator[Commit]:
        feed = "".join(f"{commit}\n" for commit in hashes).encode()
        said = self._git.stream(*_ASK, feed=feed, patience=_PATIENCE)
        for commit in parse_log(said):
            if commit.hash in self._shallow:
                yield msgspec.structs.replace(commit, files=(), more=0)
            else:
                yield commit


def parse_log(pieces: Iterable[bytes]) -> Iterator[Commit]:
    """The commits in what `git log -z --name-status` says in our format."""
    words = _words(pieces)
    head = next(words, b"")
    while head:
        if not head.startswith(_MARK):
            raise SourceError("git log says what cannot be read here; is this git older than 2.30?")
        parents, stamp, author, subject = (*islice(words, 4), b"", b"", b"", b"")[:4]
        count = parents.count(b" ") + 1 if parents else 0
        files, more, following = _changes(words, is_merge=count > 1)
        yield Commit(
            head[1:].decode(errors="replace"),
            _text(author),
            rfc3339(stamp),
            _text(subject),
            files,
            count,
            more,
        )
        head = following


def _changes(
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
        if len(files) == MOST_FILES:
            more += 1
        elif is_merge:
            files.append(ChangedFile(_path(path), _of_merge(status)))
        else:
            same = int(status[1:]) if status[1:].isdigit() else 0
            files.append(ChangedFile(_path(path), chr(status[0]), _path(old), same))
    return tuple(files), more, b""


def _of_merge(status: bytes) -> str:
    """One letter for what was done to a file beside all parents of a merge."""
    letters = set(status.decode(errors="replace"))
    return letters.pop() if letters in ({"A"}, {"D"}) else "M"


def _words(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _text(word: bytes) -> str:
    return word[: 4 * _MOST_WORDS].decode(errors="replace")[:_MOST_WORDS]


def _path(word: bytes) -> str:
    return word.decode(errors="replace")


def rfc3339(stamp: bytes) -> str:
    """Seconds since 1970 as a date, or "" if that is none."""
    try:
        return datetime.fromtimestamp(int(stamp), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""
