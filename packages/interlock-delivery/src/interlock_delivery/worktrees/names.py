"""Derive names and refs from ids, and define `Violation`.

Every task has a folder and a branch, whatever its id contains. Two ids never share a name, not even
where case is ignored.
"""

import hashlib
import re

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git

_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_MARKED = re.compile(r".*-[0-9a-f]{12}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_MOST_ID = 1_000


def folder_name(task_id: str) -> str:
    """Return the id if it is plain, else its plain part with a digest."""
    if not task_id or len(task_id) > _MOST_ID:
        raise SourceError(
            f"a task id has 1 to {_MOST_ID} characters; give {task_id[:40]!r} another"
        )
    if _PLAIN.fullmatch(task_id) and not _MARKED.fullmatch(task_id):
        return task_id
    plain = re.sub(r"[^a-z0-9]+", "-", task_id.lower()).strip("-")[:40].strip("-")
    mark = hashlib.sha256(task_id.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{plain or 'task'}-{mark}"


def check_slug(slug: str) -> str:
    if not _SLUG.fullmatch(slug):
        raise SourceError(
            f"{slug[:80]!r} cannot name a branch: use up to 60 lower-case letters, digits, hyphens"
        )
    return slug


def task_branch(slug: str, task_id: str) -> str:
    return f"refs/heads/interlock/{slug}/{folder_name(task_id)}"


def is_kept_ref(ref: str) -> bool:
    """Return True if a ref only keeps a commit from git's garbage collection."""
    return ref.startswith("refs/interlock/") and "/kept/" in ref


def merge_ref(slug: str) -> str:
    """Return the merge branch's ref, outside refs/heads, where its name would be a folder."""
    return f"refs/interlock/{slug}/line"


def kept_ref(slug: str, commit: str) -> str:
    """Return a ref that keeps a commit, whatever an agent does to its branch."""
    return f"refs/interlock/{slug}/kept/{commit}"


def published_ref(slug: str) -> str:
    """Return the ref of our one branch in the user's repository."""
    return f"refs/heads/interlock/{slug}"


def format_path(path: bytes) -> str:
    """Return a path for people and JSON, with bytes that are not UTF-8 escaped."""
    return path.decode(errors="backslashreplace")


def read_refs(git: Git) -> dict[str, str]:
    """Return every ref of a repository with its commit."""
    listing = git.read_line("for-each-ref", "--format=%(objectname) %(refname)")
    pairs = (line.partition(" ") for line in listing.split("\n") if line)
    # The refs are stored as JSON, which cannot hold names that are not UTF-8: their bytes are
    # escaped. A ref name never contains a blank, so the partition above is exact.
    return {
        name.encode(errors="surrogateescape").decode(errors="backslashreplace"): commit
        for commit, _, name in pairs
    }


class Violation(msgspec.Struct, frozen=True, order=True):
    """Something an agent did against the rules; it is undone already, and `sentence` says what to
    do.

    Kinds of git: tree-replaced, git-file, head-moved, history-rewritten, line-moved, ref-made,
    ref-moved, ref-deleted, stash. Kinds of files, which are left out of the snapshot: too-large,
    symlink-outside, nested-repository, submodule-moved, special-file, unreadable.
    """

    kind: str
    sentence: str
