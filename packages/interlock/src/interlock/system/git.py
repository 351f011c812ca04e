"""Running git: a list of words, no shell, a time limit, and a limit on its output.

What git may do depends on whose repository it is, and that is a table of five policies: READ a
stranger's, change our OWN_CLONE, work in the USER_TREE, SEED a new one, talk to a REMOTE. None runs
hooks, pagers or editors, asks at the terminal, or follows variables of the caller's shell to
another repository.
"""

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.process_table import HOST_VARIABLE
from interlock.system.process_tree import kill_group

NAME, MAIL = "Interlock", "interlock@localhost"
_DEV_NULL: Final = os.devnull
_MAX_STDERR: Final = 8_000
_CHUNK: Final = 1 << 16
_LANGUAGES: Final = str(Path(__file__).with_name("languages.gitattributes"))
_ECMASCRIPT = (
    r"^[ \t]*((export[ \t]+)?(default[ \t]+)?(async[ \t]+)?(function|class)[ \t*].*"
    r"|(export[ \t]+)?(const|let|var)[ \t]+[A-Za-z_$][A-Za-z0-9_$]*[ \t]*=[ \t]*(async[ \t]*)?"
    r"(function.*|\(.*|[A-Za-z_$][A-Za-z0-9_$]*[ \t]*=>.*)"
    r"|[A-Za-z_$.]+[ \t]*=[ \t]*(async[ \t]*)?function.*)$"
)
"""Where a function begins in JavaScript and TypeScript, which git does not know."""


class GitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, environment and limits of every command."""

    settings: Mapping[str, str]
    environment: Mapping[str, str]
    as_user: bool = False
    """With the user's own settings and environment; otherwise neither counts."""
    timeout: float
    """Seconds that a command may take."""
    max_output: int
    """Bytes of output that are kept."""


_QUIET: Final = {
    "core.hooksPath": _DEV_NULL,
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "submodule.recurse": "false",
    "color.ui": "false",
    "gc.auto": "0",
}
_NO_PROMPTS: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "GIT_EDITOR": "true"}
_NO_PROMPTS_PLAIN: Final = {**_NO_PROMPTS, "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_NO_USER_CONFIG: Final = {
    **_NO_PROMPTS_PLAIN,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": _DEV_NULL,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}

READ: Final = GitPolicy(
    settings={
        **_QUIET,
        "core.attributesFile": _LANGUAGES,
        "diff.ecmascript.xfuncname": _ECMASCRIPT,
        "core.excludesFile": _DEV_NULL,
        "protocol.allow": "never",
        "log.showSignature": "false",
        "log.mailmap": "false",
        "blame.ignoreRevsFile": "",
        "i18n.logOutputEncoding": "UTF-8",
    },
    environment={
        **_NO_USER_CONFIG,
        "GIT_OPTIONAL_LOCKS": "0",
        # More specific protocol settings of a repository do not count.
        "GIT_ALLOW_PROTOCOL": "none",
    },
    timeout=30.0,
    max_output=8_000_000,
)
"""A repository that may be a stranger's: nothing is written, nothing it names is run."""

OWN_CLONE: Final = GitPolicy(
    settings={
        **_QUIET,
        "core.attributesFile": _DEV_NULL,
        "core.excludesFile": _DEV_NULL,
        "core.logAllRefUpdates": "true",
        "core.filesRefLockTimeout": "2000",
        "core.packedRefsTimeout": "5000",
        "advice.detachedHead": "false",
        "commit.gpgSign": "false",
        "diff.noprefix": "false",
        "diff.mnemonicPrefix": "false",
        "merge.conflictStyle": "merge",
        "rerere.enabled": "false",
        "protocol.file.allow": "always",
        "maintenance.auto": "false",
    },
    environment={
        **_NO_USER_CONFIG,
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_AUTHOR_NAME": NAME,
        "GIT_AUTHOR_EMAIL": MAIL,
        "GIT_COMMITTER_NAME": NAME,
        "GIT_COMMITTER_EMAIL": MAIL,
    },
    timeout=300.0,
    max_output=64_000_000,
)
"""A clone of ours, and once at the end the user's repository: a fixed identity, no network."""

USER_TREE: Final = GitPolicy(
    settings={**_QUIET, "log.showSignature": "false"},
    environment={**_NO_PROMPTS_PLAIN, "GIT_OPTIONAL_LOCKS": "0"},
    as_user=True,
    timeout=120.0,
    max_output=1 << 30,
)
"""The user's own work tree, with their settings: it may be changed (a stash)."""

SEED: Final = GitPolicy(
    settings=_QUIET,
    environment={
        key: value for key, value in _NO_USER_CONFIG.items() if key != "GIT_NO_LAZY_FETCH"
    },
    timeout=60.0,
    max_output=64_000_000,
)
"""A new repository: the same history gives the same hashes on every machine."""

REMOTE: Final = GitPolicy(
    settings={
        **_QUIET,
        "protocol.allow": "never",
        **{f"protocol.{name}.allow": "always" for name in ("file", "git", "http", "https", "ssh")},
        # What others have pushed may be made to harm: it is looked at before it is taken.
        "transfer.fsckObjects": "true",
        "maintenance.auto": "false",
        "push.followTags": "false",
    },
    environment={**_NO_PROMPTS_PLAIN, "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"},
    as_user=True,
    timeout=600.0,
    max_output=8_000_000,
)
"""From a clone of ours to a remote that the user has named, with the user's own credentials."""

_USER_CONFIG: Final = GitPolicy(
    settings={}, environment=_NO_PROMPTS, as_user=True, timeout=30.0, max_output=1_000_000
)
"""To read settings, which those of other policies would hide."""

OnStep = Callable[[str], None]
"""Called before each step that changes something, with its name. Tests stop there."""


def ignore_step(_: str) -> None:
    """Nobody wants to know."""


class GitResult(msgspec.Struct, frozen=True):
    """What came of one call; `cut` if there was more output than was asked for."""

    code: int
    stdout: bytes
    stderr: str = ""
    cut: bool = False

    @property
    def is_ok(self) -> bool:
        return self.code == 0 or self.cut

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def line(self) -> str:
        """The output without its last line end, every byte of a path kept."""
        return self.stdout.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def reason(self) -> str:
        """The line of stderr that says the essential: git prints hints and warnings beside it."""
        lines = self.stderr.splitlines() or ["no reason was given"]
        grave = [line for line in lines if line.startswith(("fatal:", "error:"))]
        return (grave or lines)[0].removeprefix("fatal: ").removeprefix("error: ")[:300]


class Git:
    """git in one folder, under one policy.

    `safe` are the folders of others that the user has declared safe. With OWN_CLONE and REMOTE the
    folder is the git directory, named outright, with or without a work `tree`, with an `index` of
    its own and the directory it is `shared` with: the file that leads from a work tree to its clone
    is in an agent's hands. A git that outlives us keeps the `lock`: who comes next waits until it
    has ended.
    """

    def __init__(
        self,
        folder: Path,
        policy: GitPolicy = READ,
        *,
        safe: tuple[str, ...] = (),
        tree: Path | None = None,
        index: Path | None = None,
        shared: Path | None = None,
        on_step: OnStep = ignore_step,
        lock: int = -1,
    ) -> None:
        self.folder = folder
        self.policy = policy
        self.safe = safe
        self.tree = tree
        self._on_step = on_step
        self._inherited = (lock,) if lock >= 0 else ()
        settings = [*policy.settings.items(), *(("safe.directory", each) for each in safe)]
        self._settings = [word for item in settings for word in ("-c", "=".join(item))]
        places = {"GIT_WORK_TREE": tree, "GIT_INDEX_FILE": index, "GIT_COMMON_DIR": shared}
        places["GIT_DIR"] = folder if policy in (OWN_CLONE, REMOTE) else None
        self._places = {name: str(place) for name, place in places.items() if place is not None}

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        max_output: int | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run to the end, or until there is more output than asked for. A failure is for the caller
        to judge. `env` are further variables; an empty one takes away what the policy sets."""
        max_output = self.policy.max_output if max_output is None else max_output
        out = bytearray()
        with tempfile.TemporaryFile() as errors:
            with self._start(words, stdin, errors, env) as process:
                for chunk in _read_chunks(process, words[0], self._find_deadline(timeout)):
                    out += chunk[: max_output + 1 - len(out)]
                    if len(out) > max_output:
                        break
            stderr = _read_stderr(errors)
        cut = len(out) > max_output
        return GitResult(-1 if cut else process.returncode, bytes(out[:max_output]), stderr, cut)

    def stream(
        self, *words: str, stdin: bytes = b"", timeout: float | None = None
    ) -> Iterator[bytes]:
        """The output, piece by piece. SourceError if git fails."""
        with tempfile.TemporaryFile() as errors:
            with self._start(words, stdin, errors) as process:
                yield from _read_chunks(process, words[0], self._find_deadline(timeout))
            if process.returncode:
                self._fail(words, GitResult(process.returncode, b"", _read_stderr(errors)))

    def read_line(
        self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> str:
        """The output without its last line end. SourceError if git fails."""
        result = self.run(*words, stdin=stdin, env=env)
        if not result.is_ok:
            self._fail(words, result)
        return result.line

    def try_line(self, *words: str) -> str:
        """The output without its last line end; empty if git fails."""
        result = self.run(*words)
        return result.line if result.is_ok else ""

    def is_true(self, *words: str) -> bool:
        """Whether git exits with 0."""
        return self.run(*words).code == 0

    def read_paths(self, *words: str, stdin: bytes = b"") -> list[bytes]:
        """What a command prints with -z. SourceError if it fails."""
        result = self.run(*words, stdin=stdin)
        if not result.is_ok or result.cut:
            self._fail(words, result)
        return result.stdout.split(b"\0")[:-1]

    def _fail(self, words: tuple[str, ...], result: GitResult) -> None:
        why = "it printed too much" if result.cut else result.reason
        raise SourceError(f"git {words[0]} failed in {self.tree or self.folder}: {why}")

    def _find_deadline(self, timeout: float | None) -> tuple[float, float]:
        seconds = self.policy.timeout if timeout is None else timeout
        return time.monotonic() + seconds, seconds

    @contextmanager
    def _start(
        self,
        words: tuple[str, ...],
        stdin: bytes,
        errors: IO[bytes],
        env: Mapping[str, str] | None = None,
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """The running git; what is left of it at the end is killed, with its children."""
        self._on_step(f"git {words[0]}")
        variables = build_environment(self.policy, os.environ) | self._places | dict(env or {})
        with _open_stdin(stdin) as file:
            try:
                process = subprocess.Popen(  # noqa: S603
                    [_find_program(), "--no-pager", *self._settings, *words],
                    cwd=self.tree or self.folder,
                    env={name: value for name, value in variables.items() if value},
                    stdin=file,
                    stdout=subprocess.PIPE,
                    # A file: a git that outlives us must not fail because nobody reads a pipe.
                    stderr=errors,
                    start_new_session=True,
                    pass_fds=self._inherited,
                )
            except (OSError, ValueError) as error:
                raise SourceError(f"git cannot be run in {self.folder}: {error}") from None
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    kill_group(process.pid)


def write_files(git: Git, commit: str, but: Sequence[bytes] = ()) -> str:
    """Return the tree of all files as they are now, without those in `but` and the ignored ones.

    Uses the index that `git` has, and starts from what it knows of the commit.
    """
    git.read_line("read-tree", commit)
    git.read_line("add", "--all")
    if but:
        words = ("rm", "--quiet", "--cached", "--ignore-unmatch", "--pathspec-from-file=-")
        feed = b"".join(b"%s\0" % path for path in but)
        git.read_line(*words, "--pathspec-file-nul", stdin=feed)
    return git.read_line("write-tree")


_KEPT_VARIABLES = ("PATH", "TMPDIR", HOST_VARIABLE)


def build_environment(policy: GitPolicy, variables: Mapping[str, str]) -> dict[str, str]:
    """Only what git needs: a variable of the caller's shell must not redirect it."""
    if policy is _USER_CONFIG:
        kept = {
            name: value
            for name, value in variables.items()
            if not name.startswith("GIT_") or name.startswith("GIT_CONFIG")
        }
    elif policy.as_user:
        kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    else:
        kept = {name: variables[name] for name in _KEPT_VARIABLES if name in variables}
    return {**kept, **policy.environment}


def read_user_setting(folder: Path, key: str) -> str:
    """A setting as the user's own git sees it in that folder; empty if there is none."""
    try:
        return Git(folder, _USER_CONFIG).try_line("config", "--get", key).strip()
    except SourceError:
        return ""


def read_safe_folders() -> tuple[str, ...]:
    """The folders the user told git to trust (safe.directory), by their own settings."""
    try:
        result = Git(Path("/"), _USER_CONFIG).run("config", "--get-all", "safe.directory")
    except SourceError:
        return ()
    return tuple(result.text.split("\n")[:-1])[:1000]


def date_variables(moment: int) -> dict[str, str]:
    """A commit's two dates, in seconds since 1970."""
    return {"GIT_AUTHOR_DATE": f"@{moment} +0000", "GIT_COMMITTER_DATE": f"@{moment} +0000"}


def is_installed() -> bool:
    return shutil.which("git") is not None


def _find_program() -> str:
    return _which(os.environ.get("PATH", ""))


@lru_cache(maxsize=4)
def _which(path: str) -> str:
    found = shutil.which("git", path=path)
    if found is None:
        raise SourceError("git is not installed, or not on the PATH; install it and run this again")
    return found


@contextmanager
def _open_stdin(stdin: bytes) -> Iterator[IO[bytes] | int]:
    """Standard input is a file: writing into a pipe that nobody reads would stop both sides."""
    if not stdin:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        yield file


def _read_chunks(
    process: "subprocess.Popen[bytes]", word: str, end: tuple[float, float]
) -> Iterator[bytes]:
    """Its output as it comes, until it has ended; SourceError if it takes too long."""
    deadline, seconds = end
    late = f"git {word} took longer than {seconds:g} s and was stopped"
    stream = process.stdout
    if stream is None:
        return
    waiting = select.poll()
    waiting.register(stream, select.POLLIN | select.POLLHUP)
    while (left := deadline - time.monotonic()) > 0 and waiting.poll(left * 1000):
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            break
        yield chunk
    else:
        raise SourceError(late)
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise SourceError(late) from None


def _read_stderr(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_STDERR).decode(errors="replace").strip()
