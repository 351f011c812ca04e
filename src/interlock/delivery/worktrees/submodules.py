"""Filling the submodules of a tree from what the user's repository has of them, without a network.

What cannot be had is a note, not an error: many tasks never look there. Refuses to know tasks.
"""

import re
from pathlib import Path

from interlock.delivery.worktrees.source import SourceRepo
from interlock.system.git import Git

_KEY = re.compile(r"submodule\.(.+)\.path\n(.*)", re.DOTALL)


def fill_submodules(git: Git, found: SourceRepo) -> list[str]:
    """A note for each that stays empty."""
    if git.tree is None or not (git.tree / ".gitmodules").is_file():
        return []
    said = git.run("config", "--file", ".gitmodules", "-z", "--get-regexp", r"\.path$")
    rows = [row.decode(errors="surrogateescape") for row in said.out.split(b"\0") if row]
    pairs = [(key[1], key[2]) for row in rows if (key := _KEY.fullmatch(row))]
    return [note for name, path in pairs if (note := _fill(git, found, name, path))]


def _fill(git: Git, found: SourceRepo, name: str, path: str) -> str:
    store = Path(found.shared) / "modules" / name
    inside = Path(found.shared, "modules") in store.resolve().parents
    if not inside or not (store / "objects").is_dir() or name.startswith("-"):
        return (
            f"submodule {path!r} is empty in the task trees: it is not checked out in {found.top}"
        )
    url = f"submodule.{name}.url"
    words = ("-c", f"{url}={store}", "-c", f"submodule.{name}.update=checkout")
    ran = git.run(*words, "submodule", "update", "--init", "--force", "--no-fetch", "--", path)
    git.run("config", "--remove-section", f"submodule.{name}")
    if ran.fine:
        return ""
    return f"submodule {path!r} is empty in the task trees: {ran.reason}"
