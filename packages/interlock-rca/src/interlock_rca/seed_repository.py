"""New git repositories with a history that is given: the same history, the same hashes everywhere.

For worlds in which the answers are known: the demo and the scenarios of calibration.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from interlock.system.git import SEED, Git

BRANCH: Final = "main"


class SeedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of a new repository. `id` is our own name for it; git does not know it."""

    author: str
    """Name <mail>"""
    at: datetime
    message: str
    write: Mapping[str, str] = {}
    remove: tuple[str, ...] = ()
    id: str = ""
    tags: tuple[str, ...] = ()


def seed_repository(folder: Path, commits: Iterable[SeedCommit]) -> dict[str, str]:
    """A new repository with that history, checked out. Returns the hash of each id and tag."""
    known = list(commits)
    git = Git(folder, SEED)
    git.read_line("init", "--quiet", "--template=", "--object-format=sha1")
    git.read_line("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    git.read_line("fast-import", "--quiet", "--date-format=raw", stdin=_import_stream(known))
    git.read_line("reset", "--quiet", "--hard")
    hashes = git.read_line("rev-list", "--reverse", "--topo-order", BRANCH).split()
    named = {
        name: hash_
        for commit, hash_ in zip(known, hashes, strict=True)
        for name in (commit.id, *commit.tags)
        if name
    }
    return {**named, "HEAD": hashes[-1]}


def check_out(repository: Path, revision: str, folder: Path) -> None:
    """A clone at that revision, as a CI job would make it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    Git(folder.parent, SEED).read_line(
        "clone", "--quiet", "--no-checkout", str(repository), folder.name
    )
    Git(folder, SEED).read_line("checkout", "--quiet", "--detach", revision)


def _import_stream(commits: list[SeedCommit]) -> bytes:
    """What `git fast-import` reads."""
    parts: list[bytes] = []
    for mark, commit in enumerate(commits, 1):
        who = f"{commit.author} {int(commit.at.timestamp())} {commit.at:%z}"
        parts.append(f"commit refs/heads/{BRANCH}\nmark :{mark}\n".encode())
        parts.append(f"author {who}\ncommitter {who}\n".encode())
        parts.append(_format_data(commit.message.rstrip("\n") + "\n"))
        parts.extend(f"D {path}\n".encode() for path in sorted(commit.remove))
        for path, text in sorted(commit.write.items()):
            parts.append(f"M 100644 inline {path}\n".encode() + _format_data(text))
        parts.append(b"\n")
        parts.extend(f"reset refs/tags/{tag}\nfrom :{mark}\n\n".encode() for tag in commit.tags)
    return b"".join(parts)


def _format_data(text: str) -> bytes:
    body = text.encode()
    return b"data %d\n%b\n" % (len(body), body)
