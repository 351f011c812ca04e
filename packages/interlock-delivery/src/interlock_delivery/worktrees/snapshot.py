"""Stage what changed in a tree, and compare it with what the task declared.

A separate index is used, so that an agent's index does not matter. Huge files, links out of the
tree, nested repositories and moved submodules are left out and reported. In declared patterns `*`
and `?` stay within a folder, `**` does not, and a folder means everything in it.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from interlock.system.files import remove_tree
from interlock.system.git import Git
from interlock_delivery.worktrees.names import Violation, format_path

LARGEST = 50_000_000
_LINK = b"160000"


def reset_index(git: Git, index: Path, commit: str) -> None:
    """Set our index to a commit, keeping what it knows about unchanged files."""
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    if not index.is_file() or not git.is_true("read-tree", "-m", commit):
        index.unlink(missing_ok=True)
        git.read_line("read-tree", commit)
    git.run("update-index", "-q", "--refresh")


def check_out_commit(git: Git, index: Path, root: Path, commit: str) -> None:
    """Check out the files of a commit; remove all others except ignored ones."""
    reset_index(git, index, commit)
    git.run("clean", "-ffdq")
    git.read_line("read-tree", "--reset", "-u", commit)
    # This commit's ignore rules may differ from those of the files before.
    if list_untracked(git):
        git.run("clean", "-ffdq")
        for path in list_untracked(git):
            remove_tree(root / path.decode(errors="surrogateescape"))


def list_untracked(git: Git) -> list[bytes]:
    return git.read_paths("ls-files", "--others", "--exclude-standard", "-z")


def list_changed(git: Git) -> dict[bytes, bool]:
    """Return the paths whose files differ from the index, and whether each is a submodule."""
    rows = git.read_paths("diff-files", "--raw", "-z", "--ignore-submodules=dirty")
    return {path: _LINK in facts[:15] for facts, path in zip(rows[::2], rows[1::2], strict=True)}


def stage_changes(git: Git, root: Path, forced: list[bytes], largest: int) -> list[Violation]:
    """Stage every change that is allowed, and return the others as violations."""
    found: list[Violation] = []
    gone, new = [], []
    differing = list_changed(git)
    others = {path.rstrip(b"/") for path in (*list_untracked(git), *forced)}
    for path in sorted({*differing, *others}):
        place = os.path.join(os.fsencode(root), path)  # noqa: PTH118 - bytes, as git has them
        is_submodule = differing.get(path, False)
        is_folder = os.path.isdir(place) and not os.path.islink(place)  # noqa: PTH112, PTH114
        was_file = is_folder and path not in others and not is_submodule
        if was_file or not os.path.lexists(place) or _is_under_link(os.fsencode(root), path):
            gone += [path] if path in differing else []
            continue
        problem = _check_path(path, place, is_submodule, largest)
        if problem is None:
            new.append(path)
        else:
            found.append(problem)
            gone += [path] if problem.kind == "special-file" and path in differing else []
    _update_index(git, "--force-remove", gone)
    found += _add_paths(git, new)
    return sorted(set(found))


def check_staged(git: Git, base: str, largest: int) -> list[Violation]:
    """Unstage forbidden entries that an agent committed itself, and return them as violations."""
    rows = git.read_paths("diff-index", "--cached", "--raw", "-z", "--no-renames", base)
    entries = [(facts.split(b" "), path) for facts, path in zip(rows[::2], rows[1::2], strict=True)]
    entries = [(facts, path) for facts, path in entries if facts[4] != b"D"]
    asked = b"".join(facts[3] + b"\n" for facts, _ in entries)
    sizes = git.read_line("cat-file", "--batch-check=%(objectsize)", stdin=asked).split("\n")
    found, right = [], []
    for (facts, path), size in zip(entries, sizes if entries else [], strict=True):
        problem = _check_staged_entry(git, facts, path, int(size) if size.isdigit() else 0, largest)
        if problem is not None:
            found.append(problem)
            right.append(b"%s %s 0\t%s\0" % (facts[0][1:].replace(b"000000", b"0"), facts[2], path))
    if right:
        git.read_line("update-index", "-z", "--index-info", stdin=b"".join(right))
    return found


def _check_staged_entry(
    git: Git, facts: list[bytes], path: bytes, size: int, largest: int
) -> Violation | None:
    mode = facts[1]
    if mode == _LINK:
        return _nested_repository(path) if facts[0] != b":160000" else _moved_submodule(path)
    if mode == b"120000":
        return _outside_link(path, git.run("cat-file", "blob", facts[3].decode()).stdout)
    return _too_large(path, size, largest) if size > largest else None


def list_forced(git: Git, commit: str) -> list[bytes]:
    """Return what an agent added to its own index, even if ignored; nothing if that is broken."""
    ran = git.run("diff-index", "--cached", "--diff-filter=A", "--name-only", "-z", commit)
    return ran.stdout.split(b"\0")[:-1] if ran.is_ok else []


def _add_paths(git: Git, paths: list[bytes]) -> list[Violation]:
    """Stage paths together, or one by one if git refuses any of them."""
    if _update_index(git, "--add", paths):
        return []
    refused = [path for path in paths if not _update_index(git, "--add", [path])]
    return [
        _build_violation("unreadable", path, "cannot be recorded; rename it or take it away")
        for path in refused
    ]


def _update_index(git: Git, how: str, paths: list[bytes]) -> bool:
    if not paths:
        return True
    feed = b"".join(path + b"\0" for path in paths)
    words = ("update-index", "--replace", how, "-z", "--stdin")
    return git.run(*words, stdin=feed).code == 0


def _check_path(path: bytes, place: bytes, is_submodule: bool, largest: int) -> Violation | None:
    if is_submodule:
        return _moved_submodule(path)
    facts = os.lstat(place)
    if stat.S_ISDIR(facts.st_mode):
        return _nested_repository(path)
    if stat.S_ISLNK(facts.st_mode):
        return _outside_link(path, os.readlink(place))  # noqa: PTH115 - bytes, as git has them
    if not stat.S_ISREG(facts.st_mode):
        return _build_violation("special-file", path, "is no plain file; take it away")
    if facts.st_size > largest:
        return _too_large(path, facts.st_size, largest)
    if not os.access(place, os.R_OK):
        return _build_violation("unreadable", path, "cannot be read; make it readable")
    return None


def _moved_submodule(path: bytes) -> Violation:
    return _build_violation(
        "submodule-moved", path, "is a submodule and was moved; put it back as it was"
    )


def _nested_repository(path: bytes) -> Violation:
    return _build_violation("nested-repository", path, "is a repository; put plain files there")


def _outside_link(path: bytes, target: bytes) -> Violation | None:
    away = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
    if not target.startswith(b"/") and away != b".." and not away.startswith(b"../"):
        return None
    return _build_violation(
        "symlink-outside", path, f"leads out of the tree, to {format_path(target)}"
    )


def _too_large(path: bytes, size: int, largest: int) -> Violation:
    what = f"has {size:,} bytes, more than {largest:,}; make it smaller or ignore it"
    return _build_violation("too-large", path, what)


def _build_violation(kind: str, path: bytes, what: str) -> Violation:
    return Violation(kind, f"{format_path(path)!r} {what}. It is not recorded")


def _is_under_link(root: bytes, path: bytes) -> bool:
    """Return True if a folder above a path became a link, so that the path left the tree."""
    parts = path.split(b"/")[:-1]
    ways = (b"/".join(parts[: count + 1]) for count in range(len(parts)))
    return any(os.path.islink(os.path.join(root, way)) for way in ways)  # noqa: PTH114, PTH118


class WriteSet(msgspec.Struct, frozen=True):
    """The changed paths, each once. `others` are declared by an open task and not by this one."""

    inside: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    """Path and task id, one row for each task that declared the path."""


def compare_write_set(
    actual: Iterable[str],
    declared: Sequence[str],
    open_tasks: Mapping[str, Sequence[str]] | None = None,
    prefix: str = "",
) -> WriteSet:
    """Sort the changed paths; without a declaration none is outside.

    Patterns are relative to the user's folder, which lies at `prefix` in the repository.
    """
    inside: list[str] = []
    outside: list[str] = []
    others: list[tuple[str, str]] = []
    for path in sorted(set(actual)):
        if declared and covers(declared, path, prefix):
            inside.append(path)
            continue
        owners = sorted(
            task_id
            for task_id, patterns in (open_tasks or {}).items()
            if covers(patterns, path, prefix)
        )
        others += [(path, task_id) for task_id in owners]
        if not owners:
            (outside if declared else inside).append(path)
    return WriteSet(tuple(inside), tuple(outside), tuple(others))


def covers(patterns: Iterable[str], path: str, prefix: str = "") -> bool:
    """Return True if one of the patterns matches a path."""
    return any(
        _compile_pattern(prefix + pattern.removeprefix("./")).fullmatch(path)
        for pattern in patterns
    )


def may_overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if a pattern of one declaration covers a pattern of the other."""
    return any(covers(one, pattern) for pattern in other) or any(
        covers(other, pattern) for pattern in one
    )


@lru_cache(maxsize=4_096)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    words = pattern.rstrip("/")
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", words)
    meaning = {"**/": "(?:[^/]+/)*", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(meaning.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL
    )
