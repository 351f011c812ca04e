"""A campaign: the runs of one calibration, as folders that a later command finds again.

Knows where each run's store is and what was agreed. Every run has a suite number of its own, never
given out twice, so that no two share a folder of signals. Refuses to keep the scenario: agents can
read these folders.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.safe_file import write_whole

FOLDER = Path(".interlock") / "calibrate"
FIRST = 1001
"""Numbers of suites of `analyze` are lower: both may share a root for signals."""
_PLAN = "plan.json"
_STORE = "run.db"
_WORLDS = "worlds"
_MOST_RUNS = 100
_APART = 1_000_000
"""Dispatches between the first ones of two runs: watchers know each by its number alone."""


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a calibration was begun with. `scenario` is its name, `digest` tells its labels."""

    scenario: str
    digest: str
    numbers: tuple[int, ...]
    agent: str
    dispatch: str
    edition: str
    planted: bool = False
    options: dict[str, Any] = {}
    is_done: bool = False


class Campaign:
    """A plan and its folders."""

    def __init__(self, project: Path, plan: CampaignPlan) -> None:
        self.plan = plan
        self._folder = project / FOLDER

    @property
    def home(self) -> Path:
        return self._folder / str(self.plan.numbers[0])

    @property
    def worlds(self) -> Path:
        return self.home / _WORLDS

    @property
    def cache(self) -> Path:
        return self.home / "histories"

    def store(self, number: int) -> Path:
        return store_of(self._folder.parent, number)

    def after(self, number: int) -> int:
        """Dispatches of a run come after this number: no other run of the project has them."""
        return (number - FIRST + 1) * _APART

    def keep(self, plan: CampaignPlan) -> None:
        """The plan as it is from now on."""
        self.plan = plan
        text = msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"
        write_whole(self.home / _PLAN, text)

    def forget(self) -> None:
        """Give the folders back, as long as nothing was written into them."""
        for number in self.plan.numbers:
            with suppress(OSError):
                (self._folder / str(number)).rmdir()


def store_of(folder: Path, number: int) -> Path:
    """Where the run of that number is kept, if the project's own folder is that one."""
    return folder / FOLDER.name / str(number) / _STORE


def new_numbers(project: Path, root: Path, runs: int) -> tuple[int, ...]:
    """Numbers for so many runs: none has a folder yet, here or among the signals."""
    if not 1 <= runs <= _MOST_RUNS:
        raise SourceError(f"--runs {runs}: give a number from 1 to {_MOST_RUNS}")
    taken: list[int] = []
    number = max((*_numbered(project / FOLDER), *_numbered(root), FIRST - 1)) + 1
    while len(taken) < runs:
        try:
            (project / FOLDER / str(number)).mkdir(parents=True)
            taken.append(number)
        except FileExistsError:
            pass
        except OSError as error:
            raise SourceError(f"{project / FOLDER}: {error.strerror}; make room there") from None
        number += 1
    return tuple(taken)


def unfinished(project: Path, digest: str, agent: str, dispatch: str) -> Campaign:
    """The newest calibration of these labels that did not come to its end; agent and dispatch
    choose among several, if they are said."""
    for number in sorted(_numbered(project / FOLDER), reverse=True):
        plan = _plan(project / FOLDER / str(number) / _PLAN)
        if plan is None or plan.is_done or plan.digest != digest:
            continue
        if agent in ("", plan.agent) and dispatch in ("", plan.dispatch):
            return Campaign(project, plan)
    raise StateError("there is no unfinished calibration of this scenario; begin without --resume")


def _plan(path: Path) -> CampaignPlan | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CampaignPlan)
    except (OSError, msgspec.DecodeError):
        return None


def _numbered(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        names = (each.name for each in folder.iterdir())
        yield from (int(name) for name in names if name.isdecimal() and len(name) < 10)
