"""The window's pages of calibrations: scorecards, and the comparison of two.

A scorecard is a file that `interlock calibrate --out FILE` wrote in the project. Only files found
by searching the project are read, whatever the address says.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from jinja2 import PackageLoader
from litestar import Response, get

from interlock.api.project import Project
from interlock.system.errors import InterlockError, NotFoundError
from interlock_calibrate.benchmark import AnyBenchmark, find_benchmarks
from interlock_web.extend import NavLink, Section, Window, reading, send_document

if TYPE_CHECKING:
    from interlock_calibrate.compare import Comparison
    from interlock_calibrate.scorecard import Calibration

_FOLDERS: Final = ("*.json", "*/*.json", "*/*/*.json")
_MOST_FILES: Final = 2_000
_LARGEST: Final = 50 << 20
_MARK: Final = b'"kind": "calibration"'
_HEAD: Final = 400


class ScorecardFile(msgspec.Struct, frozen=True):
    """A scorecard file."""

    key: str
    """Its name in addresses."""
    name: str
    """Its path in the project."""
    changed_at: float
    calibration: "Calibration"
    benchmark: AnyBenchmark


@get("/scorecards", sync_to_thread=True)
def show_scorecards(window: Window, a: str = "", b: str = "") -> Response[str]:
    """Show all scorecards, and the comparison of two if both are named."""
    files = list(_find_scorecards(window.project.path))
    comparison, problem = _compare(files, a, b)
    if not a and not b and len(files) > 1:  # preselect the two newest
        a, b = files[1].key, files[0].key
    return window.render(
        "calibrate/scorecards.html",
        title="Scorecards",
        path="/scorecards",
        files=files,
        comparison=comparison,
        problem=problem,
        a=a,
        b=b,
    )


@get("/scorecards/{key:str}", sync_to_thread=True)
def show_scorecard(window: Window, key: str) -> Response[bytes]:
    """Send one scorecard, as `interlock calibrate --html` writes it."""
    from interlock_calibrate.page import render_scorecard_html

    for found in _find_scorecards(window.project.path):
        if found.key == key:
            return send_document(render_scorecard_html(found.calibration, found.benchmark))
    raise NotFoundError("there is no such scorecard; it may have been moved")


def _compare(files: list[ScorecardFile], a: str, b: str) -> "tuple[Comparison | None, str]":
    from interlock_calibrate.compare import compare

    chosen = {each.key: each for each in files}
    if a not in chosen or b not in chosen:
        return None, ""
    one, other = chosen[a], chosen[b]
    try:
        return compare(one.calibration, other.calibration, one.benchmark.metrics), ""
    except InterlockError as error:
        return None, str(error)


def _find_scorecards(folder: Path) -> Iterator[ScorecardFile]:
    """Yield the scorecards, newest first."""
    paths = [path for pattern in _FOLDERS for path in folder.glob(pattern)][:_MOST_FILES]
    known = []
    for path in paths:
        try:
            about = path.stat()
            with path.open("rb") as file:
                is_ours = _MARK in file.read(_HEAD)
        except OSError:
            continue
        if is_ours and about.st_size <= _LARGEST and path.is_file() and not path.is_symlink():
            known.append((about.st_mtime, path))
    for changed_at, path in sorted(known, reverse=True):
        found = _read(path, changed_at)
        if found is not None:
            name = str(path.relative_to(folder))
            key = blake2b(name.encode(), digest_size=8).hexdigest()
            yield ScorecardFile(key, name, changed_at, *found)


@lru_cache(maxsize=64)
def _read(path: Path, _changed_at: float) -> "tuple[Calibration, AnyBenchmark] | None":
    """Return the calibration in a file, or None if no benchmark can read it; cached until it
    changes.
    """
    from interlock_calibrate.scorecard import read_calibration

    for benchmark in find_benchmarks().values():
        with suppress(InterlockError):
            return read_calibration(path, benchmark.result_type), benchmark
    return None


class ScorecardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A scorecard in a list."""

    name: str
    """Its path in the project."""
    scenario: str
    agent: str
    passed: bool
    solved: float
    cases: int
    runs: int
    changed_at: float


class ScorecardList(msgspec.Struct, frozen=True):
    scorecards: list[ScorecardRecord]


@reading("/scorecards", "Scorecards", sync_to_thread=True)
def list_scorecards(project: Project) -> ScorecardList:
    """Return the scorecards in the project's folder, newest first."""
    return ScorecardList([_describe(each) for each in _find_scorecards(project.path)])


def _describe(found: ScorecardFile) -> ScorecardRecord:
    card = found.calibration.scorecard
    return ScorecardRecord(
        name=found.name,
        scenario=card.scenario,
        agent=card.about.agent,
        passed=card.passed,
        solved=card.parts[0].solved,
        cases=card.parts[0].cases,
        runs=card.runs,
        changed_at=found.changed_at,
    )


SECTION: Final = Section(
    "Measure",
    (NavLink("/scorecards", "Scorecards", "s"),),
    (show_scorecards, show_scorecard),
    PackageLoader("interlock_calibrate", "templates"),
    api=(list_scorecards,),
    rank=30,
)
