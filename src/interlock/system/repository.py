"""Git for the demo: a repository from a history, and checkouts of it.

The same history gives the same hashes on every machine: nothing of the user's git settings counts.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from interlock.rca.demo.history import PEOPLE, DemoCommit, Tree, trees
from interlock.system.errors import SourceError

BRANCH = "main"
_PATIENCE = 60.0


def require_git() -> None:
    if shutil.which("git") is None:
        raise SourceError("the demo makes git repositories, and git is not there: install git")


def plain_environment() -> dict[str, str]:
    """The user's environment without what would steer git, Python or Interlock."""
    steering = ("GIT_", "PYTHON", "INTERLOCK_", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def git(folder: Path, *words: str, given: bytes = b"") -> str:
    """What git said; what it complained about is an error of the outside world."""
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *words],  # noqa: S607
            cwd=folder,
            env=plain_environment(),
            input=given,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"git {words[0]} did not work in {folder}: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise SourceError(f"git {words[0]} did not work in {folder}: {said}")
    return done.stdout.decode(errors="replace")


def write_repository(folder: Path, changes: Iterable[DemoCommit]) -> dict[str, str]:
    """A repository with that history, checked out. Returns the hash of each id and tag."""
    folder.mkdir(parents=True)
    known = list(changes)
    git(folder, "init", "--quiet", "--template=", "--object-format=sha1")
    git(folder, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    git(folder, "fast-import", "--quiet", "--date-format=raw", given=_stream(known))
    git(folder, "reset", "--quiet", "--hard")
    hashes = git(folder, "rev-list", "--reverse", BRANCH).split()
    return {
        name: commit
        for change, commit in zip(known, hashes, strict=True)
        for name in (change.id, *change.tags)
        if name
    } | {"HEAD": hashes[-1]}


def check_out(repository: Path, revision: str, folder: Path) -> None:
    """A clone at that revision, as a CI job would make it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(folder.parent, "clone", "--quiet", "--no-checkout", str(repository), folder.name)
    git(folder, "checkout", "--quiet", "--detach", revision)


def _stream(changes: list[DemoCommit]) -> bytes:
    parts: list[bytes] = []
    for mark, (change, before, after) in enumerate(trees(changes), 1):
        who = f"{PEOPLE[change.by]} {int(datetime.fromisoformat(change.at).timestamp())} +0000"
        parts.append(f"commit refs/heads/{BRANCH}\nmark :{mark}\n".encode())
        parts.append(f"author {who}\ncommitter {who}\n".encode())
        parts.append(_data(change.say.rstrip("\n") + "\n"))
        parts.append(_files(before, after))
        parts.extend(f"reset refs/tags/{tag}\nfrom :{mark}\n\n".encode() for tag in change.tags)
    return b"".join(parts)


def _files(before: Tree, after: Tree) -> bytes:
    gone = [f"D {path}\n".encode() for path in sorted(before.keys() - after.keys())]
    new = [
        f"M 100644 inline {path}\n".encode() + _data(text)
        for path, text in sorted(after.items())
        if before.get(path) != text
    ]
    return b"".join((*gone, *new, b"\n"))


def _data(text: str) -> bytes:
    body = text.encode()
    return b"data %d\n%b\n" % (len(body), body)


def revisions(told: Mapping[str, Mapping[str, str]], name: str) -> dict[str, str]:
    """Of each repository, the commit that has this name."""
    return {repo: hashes[name] for repo, hashes in told.items()}
