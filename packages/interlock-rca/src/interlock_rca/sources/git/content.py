"""Read the files of a revision and the authors of lines from git's objects only.

Everything is bounded, and a path may be hostile: nothing outside the repository is reached, and
links are not followed. Revisions are full hashes here.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git, GitResult
from interlock_rca.sources.git.history import format_date

MAX_FILE_SIZE = 4_000_000
_MOST_KEPT = 32_000_000
_MOST_LISTING = 100_000_000
_MOST_PATH = 4_096
_MOST_LINE = 400
_MOST_HITS = 1_000_000
_SEARCH_TIMEOUT = 10.0
_LINK = b"160000"
_FULL_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_WRITTEN = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)", re.MULTILINE)
"""The head of a blamed line: the commit, its old line number, and its new one."""


class TreeEntry(msgspec.Struct, frozen=True):
    """The object at a path: blob, tree, or "" for nothing. A large blob has no content here."""

    kind: str = ""
    size: int = 0
    content: bytes | None = None

    @property
    def line_count(self) -> int:
        if not self.content:
            return 0
        return self.content.count(b"\n") + (not self.content.endswith(b"\n"))


class Listing(msgspec.Struct, frozen=True):
    """All files of a revision, and the folders that are other repositories."""

    paths: tuple[str, ...]
    submodules: tuple[str, ...] = ()
    cut: bool = False


class TextHit(msgspec.Struct, frozen=True):
    """A line that contains a searched text."""

    path: str
    line: int
    text: str


class Blame(msgspec.Struct, frozen=True):
    """The last change of a line: the commit, and the line's number in it."""

    commit: str
    author: str = ""
    at: str = ""
    """The commit time: RFC 3339, UTC."""
    subject: str = ""
    path: str = ""
    line: int = 0


def normalize_path(path: str) -> str:
    """Return the path as git writes it, or "" if it is invalid or leaves the repository."""
    if not path or len(path) > _MOST_PATH or not path.isprintable() or path[0] in "/\\":
        return ""
    names = [name for name in path.split("/") if name not in ("", ".")]
    return "" if ".." in names or ".git" in names else "/".join(names)


class RevisionFiles:
    """The files of one repository at any of its commits."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._entries: OrderedDict[tuple[str, str], TreeEntry] = OrderedDict()
        self._kept = 0
        self._listing: tuple[str, Listing] | None = None

    def read_entry(self, path: str, rev: str) -> TreeEntry:
        """Return the object at a path. Raise SourceError if git cannot tell."""
        path = normalize_path(path)
        if not path or not _FULL_HASH.fullmatch(rev):
            return TreeEntry()
        found = self._entries.get((rev, path))
        if found is None:
            found = self._read_object(f"{rev}:{path}")
            self._cache_entry((rev, path), found)
        return found

    def read_many(self, names: Sequence[str], most: int) -> dict[str, bytes]:
        """Return the blobs named `revision:path` in one call. Other objects, too large ones, and
        those beyond the bound are left out."""
        asked = [name for name in names if "\n" not in name]
        feed = "".join(f"{name}\n" for name in asked).encode(errors="surrogateescape")
        ran = self._git.run("cat-file", "--batch", stdin=feed, max_output=most)
        found: dict[str, bytes] = {}
        rest, at = ran.stdout, 0
        for name in asked:
            end = rest.find(b"\n", at)
            if end < 0:
                break
            words = rest[at:end].rsplit(b" ", 2)
            at = end + 1
            if len(words) < 3 or not words[2].isdigit() or words[1] == b"ambiguous":
                continue
            size = int(words[2])
            if words[1] == b"blob" and len(rest) >= at + size <= at + MAX_FILE_SIZE:
                found[name] = rest[at : at + size]
            at += size + 1
        return found

    def list_files(self, rev: str) -> Listing:
        """Return all files of a revision; the latest list is cached."""
        if self._listing is None or self._listing[0] != rev:
            ran = self._run_git("ls-tree", "-r", "-z", "--full-tree", rev, most=_MOST_LISTING)
            self._listing = (rev, _parse_listing(ran))
        return self._listing[1]

    def search_text(self, texts: Sequence[str], within: Sequence[str], rev: str) -> list[TextHit]:
        """Return lines that contain one of the texts, in files whose path contains one of the words
        `within`, ignoring case."""
        if not _FULL_HASH.fullmatch(rev):
            return []
        asked = [word for text in texts if text and "\n" not in text for word in ("-e", text)]
        words = ["grep", "-n", "-I", "-F", "-z", "--full-name", "--no-color", "--no-textconv"]
        paths = [f":(top,icase)*{word}*" for word in within]
        # The patterns are ours, so regular expressions are safe.
        ran = self._git.run(
            *(*words, *asked, rev, "--", *paths),
            max_output=_MOST_HITS,
            timeout=_SEARCH_TIMEOUT,
            env={"GIT_LITERAL_PATHSPECS": ""},
        )
        found: list[TextHit] = []
        for row in ran.text.split("\n")[:-1]:
            place, _, rest = row.partition("\0")
            number, _, text = rest.partition("\0")
            if number.isdigit():
                found.append(TextHit(place.partition(":")[2], int(number), text[:_MOST_LINE]))
        return found

    def blame_line(self, path: str, line: int, rev: str) -> Blame | None:
        """Return the author of a line, ignoring commits that only moved it, also between files."""
        path = normalize_path(path)
        if not path or not 0 < line < 10**9 or not _FULL_HASH.fullmatch(rev):
            return None
        words = ("blame", "-w", "-M", "-C", "--porcelain", "--no-textconv", "-L", f"{line},{line}")
        ran = self._git.run(*words, rev, "--", path)
        return _parse_blame(ran.text) if ran.is_ok else None

    def find_line_origins(self, path: str, first: int, last: int, rev: str) -> dict[int, str]:
        """Return the commits that wrote these lines, by line. This is a quick look: a commit that
        moved a line counts as its writer."""
        path = normalize_path(path)
        if not path or not 0 < first <= last < 10**9 or not _FULL_HASH.fullmatch(rev):
            return {}
        words = ("blame", "-w", "--porcelain", "--no-textconv", f"-L{first},{last}")
        ran = self._git.run(*words, rev, "--", path)
        return {
            int(found[2]): found[1] for found in _WRITTEN.finditer(ran.text if ran.is_ok else "")
        }

    def find_merge_of(self, commit: str, rev: str) -> str:
        """Return the main line's commit that brought a commit into a revision; the commit itself if
        it is on the main line."""
        words = ("rev-list", "--first-parent", "--ancestry-path", f"{commit}..{rev}")
        ran = self._git.run(*words, max_output=_MOST_LISTING)
        listed = ran.text.split()
        return listed[-1] if ran.is_ok and listed else commit

    def read_merged_diff(self, merge: str, most: int) -> GitResult:
        """Return the diff that a merge brought to its main line, without context lines."""
        words = ["diff", "-M", "-l400", "--unified=0", "--no-ext-diff", "--no-textconv"]
        words += ["--no-color", "--src-prefix=a/", "--dst-prefix=b/", f"{merge}^1", merge, "--"]
        return self._run_git(*words, most=most)

    def read_diff(self, commit: str, most: int) -> GitResult:
        """Return a commit's diff without context lines."""
        words = ["show", "--cc", "--format=", "-M", "-l400", "--unified=0"]
        words += ["--no-ext-diff", "--no-textconv", "--no-color"]
        words += ["--src-prefix=a/", "--dst-prefix=b/", commit, "--"]
        return self._run_git(*words, most=most)

    def _run_git(self, *words: str, most: int) -> GitResult:
        ran = self._git.run(*words, max_output=most)
        if not ran.is_ok:
            raise SourceError(f"git {words[0]} failed: {ran.reason}")
        return ran

    def _read_object(self, name: str) -> TreeEntry:
        ran = self._git.run(
            "cat-file", "--batch", stdin=f"{name}\n".encode(), max_output=MAX_FILE_SIZE + 200
        )
        head, _, content = ran.stdout.partition(b"\n")
        words = head.rsplit(b" ", 2)
        if head.endswith(b" missing") or len(words) < 3:
            # git reports a damaged object as missing too, but with a complaint.
            if not ran.is_ok or ran.stderr:
                raise SourceError(f"git cat-file failed: {ran.reason}")
            return TreeEntry()
        kind, size = words[1].decode(errors="replace"), int(words[2])
        is_complete = kind == "blob" and size <= MAX_FILE_SIZE and len(content) >= size
        if not is_complete and not ran.is_ok:
            raise SourceError(f"git cat-file failed: {ran.reason}")
        return TreeEntry(kind, size, content[:size] if is_complete else None)

    def _cache_entry(self, key: tuple[str, str], entry: TreeEntry) -> None:
        self._entries[key] = entry
        self._kept += len(entry.content or b"") + _MOST_LINE
        while self._kept > _MOST_KEPT:
            _, dropped = self._entries.popitem(last=False)
            self._kept -= len(dropped.content or b"") + _MOST_LINE


def _parse_listing(ran: GitResult) -> Listing:
    paths, links = list[str](), list[str]()
    for row in ran.stdout.split(b"\0")[:-1]:
        facts, _, name = row.partition(b"\t")
        (links if facts.startswith(_LINK) else paths).append(name.decode(errors="replace"))
    return Listing(tuple(paths), tuple(links), ran.cut)


def _parse_blame(output: str) -> Blame | None:
    first, _, rest = output.partition("\n")
    words = first.split(" ")
    if len(words) < 3 or not _FULL_HASH.fullmatch(words[0]):
        return None
    facts = dict[str, str]()
    for row in rest.split("\n"):
        if row.startswith("\t"):
            break
        name, _, value = row.partition(" ")
        facts[name] = value
    return Blame(
        commit=words[0],
        author=facts.get("author", ""),
        at=format_date(facts.get("committer-time", "").encode()),
        subject=facts.get("summary", ""),
        path=facts.get("filename", ""),
        line=int(words[1]),
    )
