"""Read what changed between two commits: files, status, added lines, and a bounded patch.

Git's patch format is read here because a patch may hold any bytes and may be cut at our bound, and
unidiff refuses both. Names that are not UTF-8 are escaped.
"""

import re

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git
from interlock_delivery.worktrees.names import format_path

MOST_PATCH = 400_000
_MOST_READ = 32_000_000
_MOST_LINE = 2_000
_WORDS = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=none",
)
_STATUS = {"A": "added", "M": "modified", "D": "deleted", "T": "retyped"}
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([abtnvfr\"\\]|[0-7]{3})")
_PLAIN = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


class FileChange(msgspec.Struct, frozen=True):
    """One file; `status` is added, modified, deleted or retyped (a link for a file, and so on)."""

    path: str
    status: str
    added: tuple[tuple[int, str], ...] = ()
    """The number and text of each added line."""
    is_executable: bool = False


class Diff(msgspec.Struct, frozen=True):
    """A change. `is_cut` is True if more changed than `patch` and the added lines show."""

    files: tuple[FileChange, ...] = ()
    patch: str = ""
    is_cut: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)


def read_diff(git: Git, base: str, sha: str, most: int = MOST_PATCH) -> Diff:
    """Return what changed from `base` to `sha`."""
    rows = git.read_paths(*_WORDS, "--raw", "-z", base, sha)
    bare = git.run(*_WORDS, "-p", "-U0", base, sha, max_output=_MOST_READ)
    full = git.run(*_WORDS, "-p", "-U3", base, sha, max_output=most)
    for ran in (bare, full):
        if not ran.is_ok:
            raise SourceError(f"the change {sha[:12]} cannot be read: {ran.reason}")
    added = find_added_lines(bare.stdout)
    files = [
        _build_change(facts.decode(), path, added)
        for facts, path in zip(rows[::2], rows[1::2], strict=True)
    ]
    return Diff(tuple(sorted(files, key=lambda file: file.path)), full.text, bare.cut or full.cut)


def find_added_lines(patch: bytes) -> dict[bytes, list[tuple[int, str]]]:
    """Return the lines that a patch without context adds, by path."""
    found: dict[bytes, list[tuple[int, str]]] = {}
    path, number, left = b"", 0, 0
    for line in patch.split(b"\n"):
        if left and line.startswith(b"+"):
            text = line[1 : 1 + 4 * _MOST_LINE].decode(errors="replace")[:_MOST_LINE]
            found.setdefault(path, []).append((number, text.removesuffix("\r")))
            number, left = number + 1, left - 1
        elif hunk := _HUNK.match(line):
            number, left = int(hunk[1]), int(hunk[2] or b"1")
        elif line.startswith(b"diff --git "):
            path, left = b"", 0
        elif line.startswith(b"+++ "):
            path = _parse_path(line[4:])
    return found


def _build_change(facts: str, path: bytes, added: dict[bytes, list[tuple[int, str]]]) -> FileChange:
    mode, status = facts.split(" ")[1], facts.split(" ")[4]
    return FileChange(
        path=format_path(path),
        status=_STATUS.get(status[:1], "modified"),
        added=tuple(added.get(path, ())),
        is_executable=mode == "100755",
    )


def _parse_path(word: bytes) -> bytes:
    """Return the path in a patch: after b/, before a tab if it has blanks, unquoted."""
    if word.startswith(b'"'):
        word = _ESCAPE.sub(_unescape, word.rstrip(b"\t")[1:-1])
    else:
        word = word.removesuffix(b"\t")
    return word.removeprefix(b"b/")


def _unescape(found: re.Match[bytes]) -> bytes:
    word = found[1]
    return bytes([int(word, 8)]) if len(word) == 3 else bytes([_PLAIN[word[0]]])
