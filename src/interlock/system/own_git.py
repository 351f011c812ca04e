"""git in the user's own work tree: with their settings, without hooks, questions or colours.

Unlike `sources/git`, which reads repositories of strangers, this may change one (a stash). Knows
how git is called and when to stop waiting. Refuses to know what the output means.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from interlock.system.errors import SourceError

PATIENCE: Final = 120.0
OURS: Final = (".sage", ".interlock", ".asterisk")
"""Folders at the top that belong to the tools: never dirt, and never stashed."""
_SETTINGS: Final = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false", "-c", "color.ui=false", "-c", "gc.auto=0"),
    *("-c", "submodule.recurse=false", "-c", "log.showSignature=false"),
)
_ENVIRONMENT: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "LC_ALL": "C",
}


class GitResult(msgspec.Struct, frozen=True):
    """What came of one call."""

    code: int
    out: bytes
    complaint: str

    @property
    def fine(self) -> bool:
        return self.code == 0

    @property
    def line(self) -> str:
        """The output, when it is one line."""
        return os.fsdecode(self.out).removesuffix("\n")

    @property
    def reason(self) -> str:
        """The line of a complaint that tells most."""
        lines = self.complaint.splitlines() or ["git gave no reason"]
        told = [each for each in lines if each.startswith(("fatal:", "error:"))]
        return (told or lines)[0].removeprefix("fatal: ").removeprefix("error: ")[:300]


class Git:
    """git in one folder of the user's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> GitResult:
        """Run to the end; SourceError if git is not there or does not come to one."""
        try:
            done = subprocess.run(  # noqa: S603
                _command(words),
                cwd=self.folder,
                env=_environment(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"git {words[0]} took longer than {PATIENCE:g} s") from None
        except (OSError, ValueError) as error:
            raise SourceError(f"git cannot be run in {self.folder}: {error}") from None
        return GitResult(done.returncode, done.stdout, done.stderr.decode(errors="replace").strip())

    def line(self, *words: str) -> str:
        """The one line it says; empty when it says no."""
        ran = self.run(*words)
        return ran.line if ran.fine else ""

    def digest(self, *words: str) -> str:
        """The SHA-256 of what it says, however long that is."""
        found = hashlib.sha256()
        with subprocess.Popen(  # noqa: S603
            _command(words),
            cwd=self.folder,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.stdout and (chunk := process.stdout.read(1 << 16)):
                found.update(chunk)
        return found.hexdigest()


def is_installed() -> bool:
    return shutil.which("git") is not None


def _command(words: tuple[str, ...]) -> list[str]:
    program = shutil.which("git")
    if program is None:
        raise SourceError("git is not installed, or not on the PATH")
    return [program, "--no-pager", *_SETTINGS, *words]


def _environment(around: Mapping[str, str]) -> dict[str, str]:
    """The user's, but for variables that would lead git to another repository."""
    kept = {name: value for name, value in around.items() if not name.startswith("GIT_")}
    return {**kept, **_ENVIRONMENT}
