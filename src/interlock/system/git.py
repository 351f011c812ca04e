"""Running git: as a program with a list of words, for reading only, with an end to its patience.

Knows how to keep surprises out: no shell, hooks, pager, network, user settings or lazy fetches, no
programs that a repository's own settings name. Refuses to know what the output means.
"""

import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError

PATIENCE = 30.0
MOST = 8_000_000
_MOST_COMPLAINT = 4_000
_CHUNK = 1 << 16
_NOWHERE = os.devnull
_LANGUAGES = str(Path(__file__).with_name("languages.gitattributes"))
_ECMASCRIPT = (
    r"^[ \t]*((export[ \t]+)?(default[ \t]+)?(async[ \t]+)?(function|class)[ \t*].*"
    r"|(export[ \t]+)?(const|let|var)[ \t]+[A-Za-z_$][A-Za-z0-9_$]*[ \t]*=[ \t]*(async[ \t]*)?"
    r"(function.*|\(.*|[A-Za-z_$][A-Za-z0-9_$]*[ \t]*=>.*)"
    r"|[A-Za-z_$.]+[ \t]*=[ \t]*(async[ \t]*)?function.*)$"
)
"""Where a function begins in JavaScript and TypeScript, which git does not know."""
_SETTINGS = {
    "core.hooksPath": _NOWHERE,
    "core.fsmonitor": "false",
    "core.attributesFile": _LANGUAGES,
    "diff.ecmascript.xfuncname": _ECMASCRIPT,
    "core.excludesFile": _NOWHERE,
    "core.quotePath": "false",
    "protocol.allow": "never",
    "log.showSignature": "false",
    "log.mailmap": "false",
    "blame.ignoreRevsFile": "",
    "i18n.logOutputEncoding": "UTF-8",
    "submodule.recurse": "false",
    "color.ui": "false",
    "gc.auto": "0",
}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": _NOWHERE,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # more specific protocol settings of a repository do not count
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


class GitResult(msgspec.Struct, frozen=True):
    """What came of one call: `cut` when there was more to say than was asked for."""

    code: int
    out: bytes
    complaint: str = ""
    cut: bool = False

    @property
    def fine(self) -> bool:
        return self.code == 0 or self.cut

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")


class Git:
    """git in one folder. `safe` are the folders of others that the user has declared safe."""

    def __init__(self, folder: Path, safe: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.safe = safe

    def run(
        self, *words: str, feed: bytes = b"", most: int = MOST, patience: float = PATIENCE
    ) -> GitResult:
        """Run to the end, or until `most` bytes were said."""
        out, complaint, cut = bytearray(), bytearray(), False
        with self._started(words, feed) as process:
            for is_out, chunk in _pump(process, words, patience):
                target, bound = (out, most) if is_out else (complaint, _MOST_COMPLAINT)
                target += chunk[: bound - len(target)]
                if is_out and len(out) >= most:
                    cut = True
                    break
            code = -1 if cut else process.wait()
        return GitResult(code, bytes(out), complaint.decode(errors="replace").strip(), cut)

    def stream(self, *words: str, feed: bytes = b"", patience: float = PATIENCE) -> Iterator[bytes]:
        """What git says, piece by piece. SourceError if it does not come to a good end."""
        complaint = bytearray()
        with self._started(words, feed) as process:
            for is_out, chunk in _pump(process, words, patience):
                if is_out:
                    yield chunk
                else:
                    complaint += chunk[: _MOST_COMPLAINT - len(complaint)]
            if process.wait():
                said = complaint.decode(errors="replace").strip()
                raise SourceError(f"git {words[0]} failed in {self.folder}: {first_line(said)}")

    @contextmanager
    def _started(self, words: tuple[str, ...], feed: bytes) -> "Iterator[subprocess.Popen[bytes]]":
        settings = [word for item in _SETTINGS.items() for word in ("-c", "=".join(item))]
        settings += [word for folder in self.safe for word in ("-c", f"safe.directory={folder}")]
        command = [_program(), "--no-pager", *settings, *words]
        with tempfile.TemporaryFile() as given:
            # From a file: a pipe that nobody reads while we write would stop both.
            given.write(feed)
            given.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603
                    command,
                    cwd=self.folder,
                    env=environment(os.environ),
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise SourceError(f"git cannot be run in {self.folder}: {error}") from None
        with process:
            try:
                yield process
            finally:
                process.kill()


def environment(around: Mapping[str, str]) -> dict[str, str]:
    """Only what git needs: a variable of the caller's shell must not redirect it."""
    kept = {name: around[name] for name in ("PATH", "TMPDIR") if name in around}
    return {**kept, **_ENVIRONMENT}


def declared_safe() -> tuple[str, ...]:
    """The folders the user told git to trust (safe.directory), by their own settings."""
    try:
        ran = subprocess.run(  # noqa: S603
            [_program(), "config", "--get-all", "safe.directory"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(ran.stdout.decode(errors="replace").split("\n")[:-1])[:1000]


def first_line(said: str) -> str:
    """The line of a complaint that tells most: git's hints and warnings come around it."""
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))]
    found = (lines or said.splitlines() or ["no reason was given"])[0]
    return found.removeprefix("fatal: ").removeprefix("error: ")[:300]


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise SourceError("git is not installed, or not on the PATH; install it to read history")
    return found


def _pump(
    process: "subprocess.Popen[bytes]", words: tuple[str, ...], patience: float
) -> Iterator[tuple[bool, bytes]]:
    """What is said, as (whether it is output, bytes), from both pipes as it comes."""
    deadline = time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready or time.monotonic() > deadline:
                raise SourceError(f"git {words[0]} took longer than {patience:g} s and was stopped")
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if chunk:
                    yield key.fileobj is process.stdout, chunk
                else:
                    selector.unregister(key.fileobj)
