"""Running git to change something: in our own clone, and once at the end in the user's repository.

Knows how to keep surprises out: a list of words, a git directory named outright, no hooks, pager,
prompts, network, user settings; a fixed identity; an end to its patience. Refuses to know what a
command is for.
"""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO

from interlock.system.errors import SourceError
from interlock.system.git import GitResult, first_line

PATIENCE = 300.0
MOST = 64_000_000
NAME, MAIL = "Interlock", "interlock@localhost"
_MOST_COMPLAINT = 8_000
_CHUNK = 1 << 16
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.quotePath": "false",
    "core.logAllRefUpdates": "true",
    "core.filesRefLockTimeout": "2000",
    "core.packedRefsTimeout": "5000",
    "advice.detachedHead": "false",
    "commit.gpgSign": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "merge.conflictStyle": "merge",
    "rerere.enabled": "false",
    "submodule.recurse": "false",
    "protocol.file.allow": "always",
    "color.ui": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_SET = tuple(word for item in _SETTINGS.items() for word in ("-c", "=".join(item)))
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_AUTHOR_NAME": NAME,
    "GIT_AUTHOR_EMAIL": MAIL,
    "GIT_COMMITTER_NAME": NAME,
    "GIT_COMMITTER_EMAIL": MAIL,
    "LC_ALL": "C",
}

Heed = Callable[[str], None]
"""Told what is about to happen, before each step that changes something. A test stops there."""


def unheeded(_: str) -> None:
    """Nobody is told."""


class CloneGit:
    """git on one git directory, with or without a work tree, with an index of its own if given."""

    def __init__(
        self,
        git_dir: Path,
        *,
        tree: Path | None = None,
        index: Path | None = None,
        shared: Path | None = None,
        heed: Heed = unheeded,
        safe: tuple[str, ...] = (),
        lock: int = -1,
    ) -> None:
        self.git_dir = git_dir
        self.tree = tree
        self._heed = heed
        # A git that outlives us keeps the lock: who comes next waits until it has ended.
        self._held = (lock,) if lock >= 0 else ()
        self._safe = [word for folder in safe for word in ("-c", f"safe.directory={folder}")]
        places = {"GIT_DIR": git_dir, "GIT_WORK_TREE": tree, "GIT_INDEX_FILE": index}
        # Named outright: the file that leads from a work tree to its clone is in an agent's hands.
        places["GIT_COMMON_DIR"] = shared
        self._places = {name: str(place) for name, place in places.items() if place is not None}

    def run(
        self,
        *words: str,
        feed: bytes = b"",
        most: int = MOST,
        patience: float = PATIENCE,
        also: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run to the end, or until `most` bytes were said. A failure is for the caller to judge."""
        self._heed(f"git {words[0]}")
        command = [program(), "--no-pager", *_SET, *self._safe, *words]
        environ = environment(os.environ) | self._places | dict(also or {})
        environ = {name: value for name, value in environ.items() if value}
        with _fed(feed) as given, tempfile.TemporaryFile() as complaint:
            try:
                process = subprocess.Popen(  # noqa: S603
                    command,
                    cwd=self.tree or self.git_dir,
                    env=environ,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=complaint,
                    start_new_session=True,
                    pass_fds=self._held,
                )
            except (OSError, ValueError) as error:
                raise SourceError(f"git cannot be run in {self.git_dir}: {error}") from None
            out, cut = _listen(process, words[0], most, patience)
            complaint.seek(0)
            said = complaint.read(_MOST_COMPLAINT).decode(errors="replace").strip()
        return GitResult(-1 if cut else process.returncode, out, said, cut)

    def ask(self, *words: str, feed: bytes = b"", also: Mapping[str, str] | None = None) -> str:
        """What git says, without the last line end. SourceError if it fails."""
        ran = self.run(*words, feed=feed, also=also)
        if not ran.fine:
            said = first_line(ran.complaint)
            raise SourceError(f"git {words[0]} failed in {self.tree or self.git_dir}: {said}")
        return ran.out.decode(errors="surrogateescape").removesuffix("\n")

    def holds(self, *words: str) -> bool:
        """Whether a question that git answers by its exit code is answered by yes."""
        return self.run(*words).code == 0

    def paths(self, *words: str, feed: bytes = b"") -> list[bytes]:
        """What a command prints with -z. SourceError if it fails."""
        ran = self.run(*words, feed=feed)
        if not ran.fine or ran.cut:
            said = first_line(ran.complaint) if not ran.cut else "it said too much"
            raise SourceError(f"git {words[0]} failed in {self.tree or self.git_dir}: {said}")
        return ran.out.split(b"\0")[:-1]


def environment(around: Mapping[str, str]) -> dict[str, str]:
    """Only what git needs: a variable of the caller's shell must not redirect it."""
    kept = {name: around[name] for name in ("PATH", "TMPDIR") if name in around}
    return {**kept, **_ENVIRONMENT}


def dated(moment: int) -> dict[str, str]:
    """A commit's two dates, in seconds since 1970."""
    return {"GIT_AUTHOR_DATE": f"@{moment} +0000", "GIT_COMMITTER_DATE": f"@{moment} +0000"}


def program() -> str:
    return _found(os.environ.get("PATH", ""))


@lru_cache(maxsize=4)
def _found(path: str) -> str:
    found = shutil.which("git", path=path)
    if found is None:
        raise SourceError("git is not installed, or not on the PATH; install it and run this again")
    return found


@contextmanager
def _fed(feed: bytes) -> Iterator[IO[bytes] | int]:
    """What a command reads: a file, for a pipe could be full before anybody reads it."""
    if not feed:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as given:
        given.write(feed)
        given.seek(0)
        yield given


def _listen(
    process: "subprocess.Popen[bytes]", word: str, most: int, patience: float
) -> tuple[bytes, bool]:
    """Output up to `most` bytes, and whether there was more. It is ended when time is up."""
    give_up = time.monotonic() + patience
    out = bytearray()
    with process:
        try:
            for chunk in _chunks(process, give_up):
                out += chunk[: most + 1 - len(out)]
                if len(out) > most:
                    _kill(process)
                    break
            process.wait(max(0.0, give_up - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise SourceError(
                f"git {word} took longer than {patience:g} s and was stopped"
            ) from None
        finally:
            if process.poll() is None:
                _kill(process)
    return bytes(out[:most]), len(out) > most


def _chunks(process: "subprocess.Popen[bytes]", give_up: float) -> Iterator[bytes]:
    """Its output as it comes; TimeoutError if it takes too long."""
    stream = process.stdout
    if stream is None:
        return
    waiting = select.poll()
    waiting.register(stream, select.POLLIN | select.POLLHUP)
    while waiting.poll(max(0.0, give_up - time.monotonic()) * 1000):
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            return
        yield chunk
    raise TimeoutError


def _kill(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
