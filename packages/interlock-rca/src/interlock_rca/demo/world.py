"""The demo's world: three repositories with a history, two red runs of their tests, and the truth.

Touches nothing outside its folder, and no folder that is not its own. The same world comes out each
time; only ids, ports and durations of the runs differ.
"""

import hashlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import write_file
from interlock.system.git import is_installed
from interlock.system.locks import hold_lock
from interlock_rca.demo.history import (
    PEOPLE,
    DemoCommit,
    PlantedFault,
    read_history,
    read_pages,
    read_planted,
    replay_trees,
)
from interlock_rca.records import Repo
from interlock_rca.seed_repository import BRANCH, SeedCommit, check_out, seed_repository

_PATIENCE = 120.0


def run_nightly(
    repos: Path, revisions: Mapping[str, str], workspace: Path, results: Path, *, began: str
) -> bool:
    """Run the tests at these revisions; the build's number is the name of the results' folder.

    Returns whether all was green.
    """
    for name, revision in revisions.items():
        check_out(repos / name, revision, workspace / name)
    return run_job(workspace, results, began=began)


def run_job(workspace: Path, results: Path, *, began: str) -> bool:
    """Run the job in a workspace that is ready, as it is."""
    script = workspace / "shop-deploy" / "ci" / "nightly.py"
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, script, workspace, results, "--build", results.name, "--began", began],
            cwd=workspace,
            env=_make_plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"the tests in {workspace} did not end in {_PATIENCE:.0f} s") from None
    if done.returncode not in (0, 1) or not any(results.glob("TEST-*.xml")):
        output = done.stdout.decode(errors="replace").strip().splitlines()
        why = output[-1] if output else f"see {results / 'logs' / 'console.log'}"
        raise SourceError(f"the tests in {workspace} could not be run: {why}")
    return done.returncode == 0


def _make_plain_environment() -> dict[str, str]:
    """The user's environment without what would steer git, Python or Interlock."""
    steering = ("GIT_", "PYTHON", "INTERLOCK_", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


PURPOSES = {
    "shop": "the product: the order service",
    "shop-tests": "the automated tests of the product, and what runs them",
    "shop-deploy": "environments, services and the CI job: configuration",
}
ROLES = {"shop": "product", "shop-tests": "tests", "shop-deploy": "infrastructure"}
GREEN_BEFORE = "build-1183"
EARLIER = ("1184", "2026-10-22T05:30:00+00:00")
TODAY = ("1209", "2026-11-12T05:30:00+00:00")
_MARK = "world.json"
_PARTS = ("repos", "ci", "results")


class DemoWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is. `earlier` and `today` hold JUnit XML, and logs beside it."""

    folder: Path
    repos: tuple[Repo, ...]
    earlier: Path
    today: Path
    green_before: str
    """The tag of what passed before the earlier run."""
    last_green: Mapping[str, str]
    truth: tuple[PlantedFault, ...]


class _WorldMark(msgspec.Struct, frozen=True, kw_only=True):
    """What says that a folder is ours. Without hashes the world is not finished."""

    interlock_demo: str
    hashes: dict[str, dict[str, str]] | None = None


def build_world(folder: Path) -> DemoWorld:
    """The world in that folder: as it is there already, or made anew."""
    if not is_installed():
        raise SourceError("the demo makes git repositories, and git is not there: install git")
    folder = folder.resolve()
    _read_mark(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Whoever makes the same world at the same time waits, and finds it finished.
        with hold_lock(folder, wait=math.inf):
            hashes = _read_finished(folder) or _make_world(folder)
    except OSError as error:
        raise SourceError(f"the demo cannot be made in {folder}: {error}") from None
    return DemoWorld(
        folder=folder,
        repos=tuple(
            Repo(
                name=name,
                path=str(folder / "repos" / name),
                purpose=purpose,
                role=ROLES[name],
                branch=BRANCH,
            )
            for name, purpose in PURPOSES.items()
        ),
        earlier=folder / "results" / EARLIER[0],
        today=folder / "results" / TODAY[0],
        green_before=GREEN_BEFORE,
        last_green=_find_revisions(hashes, "last-green"),
        truth=read_planted(hashes),
    )


def _read_mark(folder: Path) -> _WorldMark | None:
    """The mark of an earlier demo; nothing for a new or empty folder; an error for any other."""
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file; name a folder")
    try:
        return msgspec.json.decode((folder / _MARK).read_bytes(), type=_WorldMark)
    except (OSError, msgspec.DecodeError):
        if folder.exists() and any(not _is_staged_mark(path.name) for path in folder.iterdir()):
            problem = f"{folder} is not empty and not an earlier demo; name another folder"
            raise StateError(problem) from None
    return None


def _read_finished(folder: Path) -> dict[str, dict[str, str]] | None:
    mark = _read_mark(folder)
    if mark is None or mark.interlock_demo != _compute_edition() or not _is_whole(folder):
        return None
    return mark.hashes


def _make_world(folder: Path) -> dict[str, dict[str, str]]:
    """The mark comes first, so that a world half made is known as ours, and is finished last."""
    _write_mark(folder, _WorldMark(interlock_demo=_compute_edition()))
    for part in _PARTS:
        if (folder / part).exists():
            shutil.rmtree(folder / part)
    repos = folder / "repos"
    hashes = {name: write_repository(repos / name, read_history(name)) for name in PURPOSES}
    for (build, began), name in ((EARLIER, f"build-{EARLIER[0]}"), (TODAY, "HEAD")):
        workspace = folder / "ci" / build
        results = folder / "results" / build
        run_nightly(repos, _find_revisions(hashes, name), workspace, results, began=began)
    _write_mark(folder, _WorldMark(interlock_demo=_compute_edition(), hashes=hashes))
    return hashes


def write_repository(folder: Path, changes: Iterable[DemoCommit]) -> dict[str, str]:
    """A repository with that history, checked out. Returns the hash of each id and tag."""
    folder.mkdir(parents=True)
    return seed_repository(
        folder,
        (
            SeedCommit(
                author=PEOPLE[change.by],
                at=datetime.fromisoformat(change.at).astimezone(UTC),
                message=change.say,
                write={path: text for path, text in after.items() if before.get(path) != text},
                remove=tuple(before.keys() - after.keys()),
                id=change.id,
                tags=change.tags,
            )
            for change, before, after in replay_trees(changes)
        ),
    )


def _find_revisions(hashes: Mapping[str, Mapping[str, str]], name: str) -> dict[str, str]:
    """Of each repository, the commit that has this name."""
    return {repo: known[name] for repo, known in hashes.items()}


def _write_mark(folder: Path, mark: _WorldMark) -> None:
    write_file(folder / _MARK, msgspec.json.encode(mark), mode=0o666)


def _is_staged_mark(name: str) -> bool:
    """Whether a crash left it while a mark was written."""
    return name.startswith(f".{_MARK}.") and name.endswith(".new")


def _is_whole(folder: Path) -> bool:
    """Whether somebody tidied up since."""
    kept = [folder / "repos" / name / ".git" for name in PURPOSES]
    runs = [folder / "results" / build for build, _ in (EARLIER, TODAY)]
    return all(path.is_dir() for path in kept) and all(any(run.glob("*.xml")) for run in runs)


def _compute_edition() -> str:
    """Changes with the histories: an old world is made anew."""
    text = "".join(page for name in PURPOSES for page in read_pages(name))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
