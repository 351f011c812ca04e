"""The user's repository as it is found: read once, never changed.

Knows every way in which it can be less than hoped, each with a sentence: what stops the work is an
error, what does not is a note. Refuses to know what is made of it.
"""

import re
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError
from interlock.system.git import Git, declared_safe

_FACTS = ("is-bare-repository", "is-shallow-repository", "absolute-git-dir", "show-prefix")
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.promisor)$"
_MOST_SHOWN = 200


class SourceRepo(msgspec.Struct, frozen=True, kw_only=True):
    """Where it lies, what is worked from, and what there is to say."""

    folder: str
    top: str
    shared: str
    """The git directory that all work trees of this repository have in common."""
    prefix: str
    """The way from its top to the folder that was named: "" or "part/of/it/"."""
    base: str
    branch: str
    safe: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def look(source: Path, base: str = "HEAD") -> SourceRepo:
    """The repository at or around that folder, and the commit that `base` means there."""
    folder = _folder(source)
    git, facts = _enter(folder)
    is_bare, is_shallow, git_dir, prefix = facts
    if is_bare == "true" or git_dir == str(folder) or f"{git_dir}/" in f"{folder}/":
        raise SourceError(f"{folder} has no checked-out files; give the folder of a clone that has")
    top = folder.parents[len(Path(prefix).parts) - 1] if prefix else folder
    shared = git.run("rev-parse", "--git-common-dir").out.removesuffix(b"\n")
    tip, branch = _tip(git, base)
    _whole(git, tip)
    if prefix and not git.run("cat-file", "-e", f"{tip}:{prefix.rstrip('/')}").fine:
        raise SourceError(f"{folder} is not part of commit {tip[:12]}; commit it, or name its top")
    return SourceRepo(
        folder=str(folder),
        top=str(top),
        shared=str((folder / shared.decode(errors="surrogateescape")).resolve()),
        prefix=prefix,
        base=tip,
        branch=branch,
        safe=git.safe,
        notes=tuple(_notes(git, tip, branch, is_shallow == "true")),
    )


def _folder(source: Path) -> Path:
    try:
        if source.is_dir():
            folder = source.resolve()
            str(folder).encode()
            return folder
    except UnicodeEncodeError:
        raise SourceError(
            f"{str(source)!a} is not UTF-8; give the repository another path"
        ) from None
    except (OSError, ValueError):
        pass
    raise SourceError(f"{str(source)!r} is not a folder; give the folder of a git repository")


def _enter(folder: Path) -> tuple[Git, list[str]]:
    words = ("rev-parse", *(f"--{fact}" for fact in _FACTS))
    git = Git(folder)
    ran = git.run(*words)
    if not ran.fine and "dubious ownership" in ran.complaint:
        git = Git(folder, safe=declared_safe())
        ran = git.run(*words)
    if ran.fine:
        said = ran.out.decode(errors="surrogateescape").split("\n")
        return git, [*said, "", "", "", ""][:4]
    if "dubious ownership" in ran.complaint:
        raise SourceError(
            f"{folder} belongs to another user, so git does not read it; if you trust it: "
            f"git config --global --add safe.directory {folder}"
        )
    if "not a git repository" in ran.complaint:
        raise SourceError(
            f"{folder} is not in a git repository; make it one: git init, git add, git commit"
        )
    raise SourceError(f"{folder} cannot be read: {ran.reason}")


def _tip(git: Git, base: str) -> tuple[str, str]:
    named = git.run("symbolic-ref", "--quiet", "--short", "HEAD").text.strip()
    if not base or base.startswith("-") or any(ord(sign) < 33 for sign in base):
        raise SourceError(f"{base[:100]!r} names no commit; give a branch, a tag or a commit")
    tip = git.run("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}").text.strip()
    if re.fullmatch(r"[0-9a-f]{40,64}", tip):
        return tip, named
    if not git.run("rev-parse", "--verify", "--quiet", "HEAD").fine and base == "HEAD":
        raise SourceError(
            f"{git.folder} has no commit yet, so there is nothing to work from; make a first one: "
            "git add, git commit"
        )
    raise SourceError(
        f"{base[:100]!r} names no commit in {git.folder}; give a branch, a tag or a commit of it"
    )


def _whole(git: Git, tip: str) -> None:
    """All files of the commit can be read. A partial clone would fetch them, which we do not."""
    ran = git.run("rev-list", "--objects", "--no-walk", "--missing=print", tip, most=1 << 28)
    missing = not ran.fine or ran.out.startswith(b"?") or b"\n?" in ran.out
    if not missing:
        return
    if git.run("config", "--local", "--get-regexp", _PARTIAL).text:
        raise SourceError(
            f"{git.folder} is a partial clone without all files of {tip[:12]}; bring them: "
            "git fetch --refetch --no-filter"
        )
    raise SourceError(f"{git.folder}: {tip[:12]} cannot be read whole; try git fsck, or clone anew")


_OURS = b".interlock"
"""The folder of our own database, which may well lie in the user's."""


def _notes(git: Git, tip: str, branch: str, is_shallow: bool) -> list[str]:
    found = []
    dirty = git.run("status", "--porcelain", "-z", "--ignore-submodules=dirty")
    rows = [row for row in dirty.out.split(b"\0") if row]
    count = len([row for row in rows if _OURS not in row[3:].split(b"/")])
    if count:
        files = "1 file is" if count == 1 else f"{count} files are"
        found.append(
            f"{files} changed or new in {git.folder} and not committed: this work is not part of "
            f"the run, which starts from {tip[:12]}, and is not touched"
        )
    if not branch:
        found.append(f"HEAD is at no branch; the run starts from {tip[:12]}")
    if is_shallow:
        found.append("it is a shallow clone: agents see only the history that is there")
    attributes = git.run("grep", "-h", "filter=lfs", tip, "--", ".gitattributes", most=4_000)
    if attributes.out:
        found.append("it uses git LFS: large files are only pointers in the task trees")
    return found
