"""Names and refs derived from ids, and `Violation`, what an agent did that it may not do.

Every task has a folder and a branch, whatever characters its id has; two ids never share a name,
also where upper and lower case are the same.
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
    """The id itself if it is plain; otherwise what is plain in it, and a mark made of all of it."""
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
    """Whether it only keeps git from throwing a commit away."""
    return ref.startswith("refs/interlock/") and "/kept/" in ref


def merge_ref(slug: str) -> str:
    """The merge branch in our clone. Not under refs/heads: tasks' branches have its name above."""
    return f"refs/interlock/{slug}/line"


def kept_ref(slug: str, commit: str) -> str:
    """What is kept here is never thrown away by git, whatever an agent does to its branch."""
    return f"refs/interlock/{slug}/kept/{commit}"


def published_ref(slug: str) -> str:
    """The one branch in the user's repository."""
    return f"refs/heads/interlock/{slug}"


def format_path(path: bytes) -> str:
    """A path for people and JSON: bytes that are no UTF-8 are written out."""
    return path.decode(errors="backslashreplace")


def read_refs(git: Git) -> dict[str, str]:
    """Every ref of a repository and the commit it points to."""
    listing = git.read_line("for-each-ref", "--format=%(objectname) %(refname)")
    pairs = (line.partition(" ") for line in listing.split("\n") if line)
    # The refs are stored as JSON, which cannot hold names that are not UTF-8: their bytes are
    # escaped. A ref name never contains a blank, so the partition above is exact.
    return {
        name.encode(errors="surrogateescape").decode(errors="backslashreplace"): commit
        for commit, _, name in pairs
    }


class Violation(msgspec.Struct, frozen=True, order=True):
    """What it was is put right already; the sentence tells the agent what to do instead.

    Kinds of git: tree-replaced, git-file, head-moved, history-rewritten, line-moved, ref-made,
    ref-moved, ref-deleted, stash. Kinds of files, which are left out of the snapshot: too-large,
    symlink-outside, nested-repository, submodule-moved, special-file, unreadable.
    """

    kind: str
    sentence: str
