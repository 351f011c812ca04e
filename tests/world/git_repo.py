"""A small git repository made by real git, the same on every machine and at every time.

Author, dates and settings are fixed, so hashes are too. Knows nothing of what reads it.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

START = 1_700_000_000
"""When the first commit is made; each further one comes a minute later."""
_FIXED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada Fixed",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Fixed",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "LC_ALL": "C",
}


class GitRepo:
    """A repository in a folder of its own, on branch `main`."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self.folder = folder
        self._clock = START
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *(["--bare"] if bare else []))

    def git(self, *words: str, feed: bytes | None = None) -> str:
        """Run git here; its output without the last line end."""
        stamp = f"{self._clock} +0000"
        around = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        dates = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        ran = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *words],
            cwd=self.folder,
            env={**around, **_FIXED, **dates},
            input=feed,
            stdin=None if feed is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        if ran.returncode:
            raise AssertionError(f"git {' '.join(words)}: {ran.stderr.decode(errors='replace')}")
        return ran.stdout.decode(errors="replace").rstrip("\n")

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Put these files there; None takes one away."""
        for name, content in files.items():
            path = self.folder / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(
        self, subject: str, files: Mapping[str, str | bytes | None] = {}, *, author: str = ""
    ) -> str:
        """A commit of these files, a minute after the last one; its hash."""
        self.write(files)
        self._clock += 60
        words = [f"--author={author} <author@example.org>"] if author else []
        self.git("add", "--all")
        self.git(
            "commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", subject, *words
        )
        return self.git("rev-parse", "HEAD")

    def move(self, old: str, new: str) -> None:
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        self.git("mv", old, new)

    def branch(self, name: str, start: str = "HEAD") -> None:
        """Make a branch and stand on it."""
        self.git("checkout", "--quiet", "-b", name, start)

    def checkout(self, name: str) -> None:
        self.git("checkout", "--quiet", name)

    def merge(self, name: str, subject: str) -> str:
        self._clock += 60
        self.git("merge", "--quiet", "--no-ff", "-m", subject, name)
        return self.git("rev-parse", "HEAD")

    def clone(self, folder: Path, *words: str) -> "GitRepo":
        """A clone of it; `--depth=2`, `--bare` and the like are passed on."""
        self.git("clone", "--quiet", *words, f"file://{self.folder}", str(folder))
        made = GitRepo.__new__(GitRepo)
        made.folder, made._clock = folder, self._clock
        return made


GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def git(folder: Path, *words: str) -> str:
    around = {"PATH": os.environ["PATH"], "HOME": "/none", **GIT}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=around, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
