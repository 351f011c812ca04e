"""Run git: a list of words, no shell, a time limit, and a limit on output.

What git may do depends on whose repository it is, so there are five policies: READ a stranger's,
change our OWN_CLONE, work in the USER_TREE, SEED a new one, talk to a REMOTE. No policy runs hooks,
pagers or editors, prompts at the terminal, or follows variables of the caller's shell to another
repository.
"""

import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
"""The start of a function in JavaScript and TypeScript, which git does not know."""


class GitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings, environment and limits that apply to every command."""

    settings: Mapping[str, str]
    environment: Mapping[str, str]
    as_user: bool = False
    """Use the user's own settings and environment; otherwise both are ignored."""
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
        # A repository's more specific protocol settings must not override this.
        "GIT_ALLOW_PROTOCOL": "none",
    },
    timeout=30.0,
    max_output=8_000_000,
)
"""For a repository that may be a stranger's: write nothing, and run nothing it names."""

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
"""For our own clones, and for the final write to the user's repository: fixed identity, no
network."""

USER_TREE: Final = GitPolicy(
    settings={**_QUIET, "log.showSignature": "false"},
    environment={**_NO_PROMPTS_PLAIN, "GIT_OPTIONAL_LOCKS": "0"},
    as_user=True,
    timeout=120.0,
    max_output=1 << 30,
)
"""For the user's work tree, under their settings; it may be changed (a stash)."""

SEED: Final = GitPolicy(
    settings=_QUIET,
    environment={
        key: value for key, value in _NO_USER_CONFIG.items() if key != "GIT_NO_LAZY_FETCH"
    },
    timeout=60.0,
    max_output=64_000_000,
)
"""For a new repository: the same history gives the same hashes on every machine."""

REMOTE: Final = GitPolicy(
    settings={
        **_QUIET,
        "protocol.allow": "never",
        **{f"protocol.{name}.allow": "always" for name in ("file", "git", "http", "https", "ssh")},
        # Pushed objects may be malicious, so they are checked before they are accepted.
        "transfer.fsckObjects": "true",
        "maintenance.auto": "false",
        "push.followTags": "false",
    },
    environment={**_NO_PROMPTS_PLAIN, "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"},
    as_user=True,
    timeout=600.0,
    max_output=8_000_000,
)
"""For traffic between our clone and a remote the user named, with the user's credentials."""

_USER_CONFIG: Final = GitPolicy(
    settings={}, environment=_NO_PROMPTS, as_user=True, timeout=30.0, max_output=1_000_000
)
"""For reading the user's settings, which the other policies hide."""

OnStep = Callable[[str], None]
"""Called with the name of each step that changes something, before it runs. Tests stop there."""


def ignore_step(_: str) -> None:
    """Ignore the step."""


class GitResult(msgspec.Struct, frozen=True):
    """The outcome of one call; `cut` if there was more output than asked for."""

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
        """The output without its last line end; bytes of paths are preserved."""
        return self.stdout.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def reason(self) -> str:
        """The first fatal line of stderr, without the hints and warnings around it."""
        lines = self.stderr.splitlines() or ["no reason was given"]
        grave = [line for line in lines if line.startswith(("fatal:", "error:"))]
        return (grave or lines)[0].removeprefix("fatal: ").removeprefix("error: ")[:300]


@dataclass(frozen=True)
class GitPlaces:
    """Where git finds the parts of a clone that are not in its folder.

    They are passed explicitly because an agent can change the file that links a work tree to its
    clone.
    """

    tree: Path | None = None
    index: Path | None = None
    shared: Path | None = None
    """The git directory that several work trees share."""


NO_PLACES = GitPlaces()


class Git:
    """Run git in one folder, under one policy.

    `safe` lists folders of other owners that the user declared safe. With OWN_CLONE and REMOTE,
    `folder` is the git directory itself. A git process that outlives us keeps the `lock`, so the
    next owner waits for it.
    """

    def __init__(
        self,
        folder: Path,
        policy: GitPolicy = READ,
        *,
        safe: tuple[str, ...] = (),
        places: GitPlaces = NO_PLACES,
        on_step: OnStep = ignore_step,
        lock: int = -1,
    ) -> None:
        self.folder = folder
        self.policy = policy
        self.safe = safe
        self.tree = places.tree
        self._on_step = on_step
        self._inherited = (lock,) if lock >= 0 else ()
        settings = [*policy.settings.items(), *(("safe.directory", each) for each in safe)]
        self._settings = [word for item in settings for word in ("-c", "=".join(item))]
        named = {
            "GIT_DIR": folder if policy in (OWN_CLONE, REMOTE) else None,
            "GIT_WORK_TREE": places.tree,
            "GIT_INDEX_FILE": places.index,
            "GIT_COMMON_DIR": places.shared,
        }
        self._places = {name: str(place) for name, place in named.items() if place is not None}

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        max_output: int | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run to the end, or until there is more output than asked for; the caller judges failures.

        `env` adds variables; an empty value removes one that the policy sets.
        """
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
        """Yield the output piece by piece; raise SourceError if git fails."""
        with tempfile.TemporaryFile() as errors:
            with self._start(words, stdin, errors) as process:
                yield from _read_chunks(process, words[0], self._find_deadline(timeout))
            if process.returncode:
                self._fail(words, GitResult(process.returncode, b"", _read_stderr(errors)))

    def read_line(
        self, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> str:
        """Return the output without its last line end; raise SourceError if git fails."""
        result = self.run(*words, stdin=stdin, env=env)
        if not result.is_ok:
            self._fail(words, result)
        return result.line

    def try_line(self, *words: str) -> str:
        """Return the output without its last line end; empty if git fails."""
        result = self.run(*words)
        return result.line if result.is_ok else ""

    def is_true(self, *words: str) -> bool:
        """Return True if git exits with 0."""
        return self.run(*words).code == 0

    def read_paths(self, *words: str, stdin: bytes = b"") -> list[bytes]:
        """Return the NUL-separated output of a -z command; raise SourceError if it fails."""
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
        """Start git, and at the end kill it with its children if it still runs."""
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
                    # A file, because a git process that outlives us must not block or fail on a
                    # pipe.
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
    """Return the tree of all current files, except `but` and the ignored ones.

    Uses the index of `git`, and starts from what it knows of the commit.
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
    """Keep only the variables that git needs: the caller's shell must not redirect it."""
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
    """Return a setting as the user's own git sees it in that folder; empty if it is unset."""
    try:
        return Git(folder, _USER_CONFIG).try_line("config", "--get", key).strip()
    except SourceError:
        return ""


def read_safe_folders() -> tuple[str, ...]:
    """Return the folders that the user's own settings declare safe (safe.directory)."""
    try:
        result = Git(Path("/"), _USER_CONFIG).run("config", "--get-all", "safe.directory")
    except SourceError:
        return ()
    return tuple(result.text.split("\n")[:-1])[:1000]


def date_variables(moment: int) -> dict[str, str]:
    """Return the variables for a commit's two dates, in seconds since 1970."""
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
    """Open standard input as a file: writing to a pipe that git does not read would block both."""
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
    """Yield git's output as it comes until it ends; raise SourceError if it takes too long."""
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
