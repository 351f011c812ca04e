"""Planted worlds: real git repositories grown from a scenario, the same to the hash everywhere.

Written through git's import stream. Nothing is planted over what exists already, and no file of a
world can leave its repository.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from interlock.system.errors import SourceError
from interlock_rca.calibration.scenario import PlantedCommit, Scenario
from interlock_rca.seed_repository import SeedCommit, seed_repository

World = Sequence[PlantedCommit]
_REPO_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_AUTHOR_PATTERN = re.compile(r"[^<>\x00-\x1f]+ <[^<>\s\x00-\x1f]+>")
_SHORTEST_HASH = 7
_TAG_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def plant_worlds(scenario: Scenario, folder: Path) -> dict[str, dict[str, str]]:
    """The scenario's repositories below `folder`. Returns repo -> commit's id or tag -> hash."""
    for repo, fault in find_world_faults(scenario.worlds):
        raise SourceError(f"the world of {repo!r} cannot be planted: {fault}")
    return {
        repo: _plant_world(folder / repo, scenario.worlds[repo]) for repo in sorted(scenario.worlds)
    }


def find_world_faults(worlds: Mapping[str, World]) -> Iterator[tuple[str, str]]:
    """What git would not take, or what would leave the repository: repo and a sentence."""
    for repo in sorted(worlds):
        if not _REPO_PATTERN.fullmatch(repo) or repo.endswith((".", ".lock", ".git")):
            yield repo, f"{repo[:80]!r} is not a valid folder name"
        if not worlds[repo]:
            yield repo, "there are no commits"
        yield from ((repo, fault) for fault in _find_faults(worlds[repo]))


def _find_faults(world: World) -> Iterator[str]:
    tree: set[str] = set()
    names: set[str] = set()
    last = 0.0
    for number, commit in enumerate(world, 1):
        place = f"commit {number}"
        if not _AUTHOR_PATTERN.fullmatch(commit.author):
            yield f"{place}: the author is not 'Name <mail>'"
        moment = parse_date(commit.date)
        if moment is None:
            yield f"{place}: {commit.date[:40]!r} is not a time like 2026-03-01T09:30:00Z"
        elif moment.timestamp() < last:
            yield f"{place}: older than the commit before it"
        else:
            last = moment.timestamp()
        if not commit.message.strip():
            yield f"{place}: the message is missing"
        yield from (
            f"{place}: {path[:80]!r} is not a valid path"
            for path in commit.files
            if _is_bad_path(path)
        )
        gone = set(commit.remove) - tree
        yield from (
            f"{place}: {path[:80]!r} cannot be removed: it does not exist" for path in sorted(gone)
        )
        tree = (tree - set(commit.remove)) | set(commit.files)
        for name in filter(None, (commit.id, *commit.tags)):
            if name in names or not _TAG_PATTERN.fullmatch(name):
                yield f"{place}: {name[:80]!r} is used twice or is not a valid name"
            names.add(name)
    yield from _find_collisions(tree)


def _find_collisions(tree: set[str]) -> Iterator[str]:
    for path in sorted(tree):
        parts = path.split("/")
        if any("/".join(parts[:end]) in tree for end in range(1, len(parts))):
            yield f"{path[:80]!r} is below a path that is also a file"


def _is_bad_path(path: str) -> bool:
    parts = path.split("/")
    return (
        not path
        or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
        or not path.isprintable()
        or any(sign in path for sign in '"\\')
        or len(path.encode()) > 1_000
    )


def parse_date(date: str) -> datetime | None:
    """A time with an offset, later than 1970."""
    try:
        found = datetime.fromisoformat(date)
    except ValueError:
        return None
    return found if found.tzinfo and found.timestamp() >= 0 else None


def find_commit(worlds: Mapping[str, World], repo: str, hash_: str) -> PlantedCommit | None:
    """The planted commit that a hash, perhaps shortened, is of."""
    if len(hash_) < _SHORTEST_HASH or repo not in worlds:
        return None
    hashes = _hash_commits(msgspec.json.encode(worlds[repo]))
    known = zip(worlds[repo], hashes, strict=True)
    return next((commit for commit, full in known if full.startswith(hash_)), None)


@cache
def _hash_commits(world: bytes) -> tuple[str, ...]:
    """The hashes of a world's commits, which git alone can tell: they are the same everywhere."""
    commits = msgspec.json.decode(world, type=tuple[PlantedCommit, ...])
    named = [
        msgspec.structs.replace(commit, id=f"c{number}", tags=())
        for number, commit in enumerate(commits)
    ]
    with TemporaryDirectory(prefix="interlock-world-") as folder:
        hashes = _plant_world(Path(folder) / "repo", named)
    return tuple(hashes[commit.id] for commit in named)


def _plant_world(folder: Path, world: World) -> dict[str, str]:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SourceError(
            f"{folder} cannot be created: {error.strerror}; choose a new one"
        ) from None
    commits = (
        SeedCommit(
            author=commit.author,
            at=datetime.fromisoformat(commit.date),
            message=commit.message,
            write=commit.files,
            remove=tuple(commit.remove),
            id=commit.id,
            tags=tuple(commit.tags),
        )
        for commit in world
    )
    return seed_repository(folder, commits)
