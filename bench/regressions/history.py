"""Histories in which a real fix was undone, made from a recipe.

A recipe names a fix on the first-parent line of a project and a later commit of that line. The
history made from it starts at the fix, repeats the real commits, and takes the fix's source change
back at one of them: by a commit of its own, or inside of the real one. Equal recipes give equal
hashes.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from interlock_rca.analyst.names import detect_language
from interlock_rca.analyst.stack import is_test_name

_MESSAGE = "Clean up\n"
_NAMES = (
    *("AUTHOR_NAME", "AUTHOR_EMAIL", "AUTHOR_DATE"),
    *("COMMITTER_NAME", "COMMITTER_EMAIL", "COMMITTER_DATE"),
)


class Recipe(msgspec.Struct, frozen=True):
    """Everything that is needed to make one case again."""

    repository: str
    language: str
    fix: str
    until: str
    """The last real commit of the history."""
    form: str
    """`alone` if a commit of its own undoes the fix, `hidden` if a real commit does so, too."""
    at: int
    """How many real commits stand between the fix and the culprit."""

    @property
    def name(self) -> str:
        return f"{self.repository.partition('/')[2]}-{self.fix[:10]}"


class UndoneHistory(NamedTuple):
    green: str
    before: str
    """The culprit's parent."""
    culprit: str
    head: str


class GitError(Exception):
    """A git command failed."""


def run_git(
    repo: Path, *words: str, text: bytes | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return what git prints; raise GitError if it fails."""
    done = subprocess.run(
        ["git", "-c", "core.quotePath=false", "-C", str(repo), *words],
        capture_output=True,
        check=False,
        input=text,
        env={**os.environ, **(env or {})},
    )
    if done.returncode:
        raise GitError(f"git {words[0]}: {done.stderr.decode('utf-8', 'replace')}")
    return done.stdout.decode("utf-8", "surrogateescape")


def list_changes(repo: Path, commit: str) -> tuple[list[str], list[str]]:
    """Return the source files and the test files that a commit changed against its first parent."""
    found = run_git(repo, "diff", "--name-only", f"{commit}^1", commit).split("\n")
    code = [path for path in found if detect_language(path)]
    return (
        [path for path in code if not is_test_name(path)],
        [path for path in code if is_test_name(path)],
    )


def list_line(repo: Path, fix: str, until: str) -> list[str]:
    """Return the first-parent line from the fix to the last commit, oldest first."""
    found = run_git(repo, "rev-list", "--first-parent", "--reverse", f"{fix}..{until}").split()
    return [fix, *found]


def build_history(repo: Path, recipe: Recipe) -> UndoneHistory:
    """Write the commits of a recipe; raise GitError if the fix cannot be taken back in one."""
    line = list_line(repo, recipe.fix, recipe.until)
    sources, _ = list_changes(repo, recipe.fix)
    patch = run_git(repo, "diff", "-U1", f"{recipe.fix}^1", recipe.fix, "--", *sources)
    parent = recipe.fix
    for real in line[1 : recipe.at + 1]:
        parent = _write_commit(repo, run_git(repo, "rev-parse", f"{real}^{{tree}}"), parent, real)
    before, rest = parent, line[recipe.at + 1 :]
    if recipe.form == "alone":
        tree = _undo(repo, line[recipe.at], patch)
        culprit = parent = _write_commit(repo, tree, parent, line[recipe.at], _MESSAGE)
    else:
        culprit = parent = _write_commit(repo, _undo(repo, rest[0], patch), parent, rest[0])
        rest = rest[1:]
    for real in rest:
        parent = _write_commit(repo, _undo(repo, real, patch), parent, real)
    return UndoneHistory(recipe.fix, before, culprit, parent)


def count_undoable(repo: Path, line: list[str]) -> Iterator[int]:
    """Yield the place of each commit of a line after the fix, up to the last that undoes it."""
    sources, _ = list_changes(repo, line[0])
    patch = run_git(repo, "diff", "-U1", f"{line[0]}^1", line[0], "--", *sources)
    for place, real in enumerate(line[1:], 1):
        try:
            _undo(repo, real, patch)
        except GitError:
            return
        yield place


def _undo(repo: Path, commit: str, patch: str) -> str:
    index = {"GIT_INDEX_FILE": str(repo / ".git" / "undo-index")}
    run_git(repo, "read-tree", commit, env=index)
    text = patch.encode("utf-8", "surrogateescape")
    run_git(repo, "apply", "--cached", "-R", "-", env=index, text=text)
    return run_git(repo, "write-tree", env=index)


def _write_commit(repo: Path, tree: str, parent: str, like: str, message: str = "") -> str:
    told = run_git(repo, "log", "-1", "--format=%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI", like)
    env = {f"GIT_{key}": value for key, value in zip(_NAMES, told.strip().split("\0"), strict=True)}
    body = message or run_git(repo, "log", "-1", "--format=%B", like) or "-"
    written = run_git(
        repo,
        *("commit-tree", tree.strip(), "-p", parent),
        env=env,
        text=body.encode("utf-8", "surrogateescape"),
    )
    return written.strip()
