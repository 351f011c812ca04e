"""The demo's git histories as data, and the truth that was planted in them.

Reads `histories/`: who changed what, when and why, the files as each change left them, which tests
fail for which reason, and which commit brought it.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

import msgspec
import yaml

PEOPLE = {
    "aiko": "Aiko Reyes <aiko@shop.example>",
    "jonah": "Jonah Feld <jonah@shop.example>",
    "mara": "Mara Lindqvist <mara@shop.example>",
    "tomasz": "Tomasz Brandt <tomasz@shop.example>",
}
_HISTORIES = resources.files("interlock_rca.demo") / "histories"
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # words stay words

Tree = Mapping[str, str]


class DemoCommit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One commit. `id` is our own name for it and is not told to git."""

    at: str
    by: str
    say: str
    id: str = ""
    tags: tuple[str, ...] = ()
    write: dict[str, str] = {}
    edit: dict[str, str] = {}
    move: dict[str, str] = {}


def read_pages(name: str) -> list[str]:
    """The texts of that history, first things first."""
    files = sorted((_HISTORIES / name).iterdir(), key=lambda each: each.name)
    return [file.read_text(encoding="utf-8") for file in files]


def read_page(name: str) -> Any:
    """A page of `histories/` itself, as plain values."""
    return yaml.load((_HISTORIES / name).read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506


def read_history(name: str) -> list[DemoCommit]:
    found = [yaml.load(page, Loader=_Loader) for page in read_pages(name)]  # noqa: S506
    return [change for page in found for change in msgspec.convert(page, list[DemoCommit])]


def replay_trees(changes: Iterable[DemoCommit]) -> Iterator[tuple[DemoCommit, Tree, Tree]]:
    """Each change with the files before and after it."""
    before: Tree = {}
    for change in changes:
        after = apply_commit(before, change)
        yield change, before, after
        before = after


def apply_commit(tree: Tree, change: DemoCommit) -> Tree:
    """The files after a change. A place that an edit does not find exactly once is our mistake."""
    files = dict(tree)
    for old, new in change.move.items():
        files[new] = files.pop(old)
    for path, hunks in change.edit.items():
        for hunk in hunks.split("\n~\n"):
            files[path] = _apply_hunk(files[path], hunk.splitlines(), f"{change.say} ({path})")
    files.update(change.write)
    return files


def _apply_hunk(text: str, hunk: list[str], where: str) -> str:
    old = "".join(f"{line[1:]}\n" for line in hunk if line[0] in "-=")
    new = "".join(f"{line[1:]}\n" for line in hunk if line[0] in "+=")
    if f"\n{text}".count(f"\n{old}") != 1:
        raise ValueError(f"{where}: the place is not there exactly once:\n{old}")
    at = f"\n{text}".index(f"\n{old}")
    return text[:at] + new + text[at + len(old) :]


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault and the tests it fails, each named `module.Class.test`. A flake has no culprit."""

    family_id: str
    title: str
    category: str
    defect_type: str
    repo: str = ""
    culprit: str = ""
    """Our own name of the commit, in the history of `repo`."""
    commit: str = ""
    seen_before: bool = False
    cascade: bool = False
    tests: tuple[str, ...] = ()


def read_planted(hashes: Mapping[str, Mapping[str, str]]) -> tuple[PlantedFault, ...]:
    """The truth, with the hashes that the culprits have in these repositories."""
    faults = msgspec.convert(read_page("truth.yaml"), tuple[PlantedFault, ...], strict=False)
    return tuple(
        msgspec.structs.replace(each, commit=hashes[each.repo][each.culprit])
        if each.culprit
        else each
        for each in faults
    )
