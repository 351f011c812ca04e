"""Manage the runs of one calibration, as folders that a later command finds again.

Every run has its own database and a number that is never reused, so that no two share a folder of
signals. The scenario is not stored, since agents can read these folders.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.project import Project
from interlock.engine.circuit import HUMAN, Circuit
from interlock.runtime.agent_pool import PARALLEL
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError, SourceError, StateError, UsageError
from interlock.system.files import make_own_folder, write_file
from interlock_calibrate.benchmark import AnyBenchmark, Scenario

FOLDER = Path(".interlock") / "calibrate"
FIRST_NUMBER = 1001
"""The first number; suites of `analyze` use lower ones, and both may share a root for signals."""
IDEAL_AGENT = "stub"
"""The agent that answers from the labels."""
_BATCH_FILE = "batch-file"
_PLAN_FILE = "plan.json"
_DATABASE_FILE = "run.db"
_MAX_RUNS = 100
_DISPATCHES_PER_RUN = 1_000_000
"""The distance between the first dispatches of two runs, since watchers know only their numbers."""


class CampaignRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for a calibration."""

    agent: str = ""
    """The agent's words; "" for the watchers of `dispatch`, or else the application's own agent."""
    dispatch: str = ""
    parallel: int | None = None
    runs: int = 1
    tokens: int | None = None
    edition: str
    files: dict[str, str | int]

    @property
    def root(self) -> Path:
        """Return the folder of the signals."""
        return Path(str(self.files["root"]))


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The stored plan of a calibration; `digest` identifies the labels of the scenario."""

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

    def __init__(self, project: Project, plan: CampaignPlan) -> None:
        self.plan = plan
        self._project = project
        self._folder = project.path / FOLDER

    @property
    def home(self) -> Path:
        return self._folder / str(self.plan.numbers[0])

    def database_of(self, number: int) -> Path:
        return locate_database(self._folder.parent, number)

    def open_run(self, number: int) -> Project:
        """Return the project with the database of that run."""
        database = self.database_of(number)
        return Project(self._project.path, db=database, display=self._project.display)

    def first_dispatch_after(self, number: int) -> int:
        """Return a number below all dispatches of a run and above those of earlier runs."""
        return (number - FIRST_NUMBER + 1) * _DISPATCHES_PER_RUN

    def write_plan(self, plan: CampaignPlan) -> None:
        """Replace the plan and write it."""
        self.plan = plan
        text = msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"
        write_file(self.home / _PLAN_FILE, text)

    def remove_folders(self) -> None:
        """Remove the folders that are still empty."""
        for number in self.plan.numbers:
            with suppress(OSError):
                (self._folder / str(number)).rmdir()


def locate_database(folder: Path, number: int) -> Path:
    """Return the path of a run's database in the project's state folder."""
    return folder / FOLDER.name / str(number) / _DATABASE_FILE


def find_database(folder: Path, number: int) -> Path | None:
    """Return the database of a run, or None if no calibration has one."""
    store = locate_database(folder, number)
    return store if store.exists() else None


def begin_campaign(
    project: Project,
    benchmark: AnyBenchmark,
    scenario: Scenario,
    circuit: Circuit,
    request: CampaignRequest,
) -> Campaign:
    """Begin a campaign: check its agent, make its world, and store its plan."""
    if request.agent and request.dispatch:
        raise UsageError("--agent and --dispatch exclude each other; give only one")
    benchmark.metrics.find_edition(request.edition)
    plan = CampaignPlan(
        scenario=scenario.name,
        digest=scenario.digest,
        numbers=reserve_numbers(project.path, request.root, request.runs),
        agent=request.agent or ("" if request.dispatch else benchmark.own_agent),
        dispatch=request.dispatch,
        edition=request.edition,
        planted=scenario.has_world,
    )
    campaign = Campaign(project, plan)
    config = _make_config(campaign, benchmark, scenario, request)
    try:  # Refuse an agent that cannot be asked before anything begins.
        campaign.open_run(plan.numbers[0]).build_pool(circuit, config)
    except InterlockError:
        campaign.remove_folders()
        raise
    if plan.planted:
        benchmark.make_world(scenario, campaign.home)
    campaign.write_plan(msgspec.structs.replace(plan, options=msgspec.to_builtins(config)))
    return campaign


def _make_config(
    campaign: Campaign, benchmark: AnyBenchmark, scenario: Scenario, request: CampaignRequest
) -> RunConfig:
    """Return the configuration of each run."""
    plan = campaign.plan
    batched = plan.dispatch == _BATCH_FILE
    size = int(request.files.get("batch_size", 0))
    parallel = request.parallel or (max(PARALLEL, size) if batched else 1)
    if plan.agent in (IDEAL_AGENT, benchmark.own_agent):
        # Nobody else can review, so our own carrier answers instead.
        agents = {"": benchmark.own_agent}
    else:
        agents = {"": plan.agent} if plan.agent else {}
        agents[HUMAN] = plan.agent or plan.dispatch
    in_families = is_worked_together(plan, parallel)
    return RunConfig(
        agents=agents,
        budget={} if request.tokens is None else {"tokens": request.tokens},
        parallel=parallel,
        application_config=benchmark.make_config(scenario, campaign.home, in_families=in_families),
        files={**request.files, **({"dispatch": plan.dispatch} if plan.dispatch else {})},
    )


def is_worked_together(plan: CampaignPlan, parallel: int | None) -> bool:
    """Return True if cases run at the same time, with one of each family for all.

    Otherwise each case ends before the next begins.
    """
    return plan.dispatch == _BATCH_FILE or (parallel or 1) > 1


def reserve_numbers(project: Path, root: Path, runs: int) -> tuple[int, ...]:
    """Reserve numbers for the runs that have no folder yet, here or among the signals."""
    if not 1 <= runs <= _MAX_RUNS:
        raise UsageError(f"--runs {runs}: give a number from 1 to {_MAX_RUNS}")
    taken: list[int] = []
    number = max((*_list_numbers(project / FOLDER), *_list_numbers(root), FIRST_NUMBER - 1)) + 1
    while len(taken) < runs:
        try:
            make_own_folder(project / FOLDER)
            (project / FOLDER / str(number)).mkdir()
            taken.append(number)
        except FileExistsError:
            pass
        except OSError as error:
            raise SourceError(
                f"{project / FOLDER}: {error.strerror}; the folders of the runs go there"
            ) from None
        number += 1
    return tuple(taken)


def find_unfinished(project: Project, digest: str, agent: str, dispatch: str) -> Campaign:
    """Return the newest unfinished calibration of these labels.

    Agent and dispatch choose among several, if given.
    """
    folder = project.path / FOLDER
    for number in sorted(_list_numbers(folder), reverse=True):
        plan = _read_plan(folder / str(number) / _PLAN_FILE)
        if plan is None or plan.is_done or plan.digest != digest:
            continue
        if agent in ("", plan.agent) and dispatch in ("", plan.dispatch):
            return Campaign(project, plan)
    raise StateError("there is no unfinished calibration of this scenario; omit --resume")


def _read_plan(path: Path) -> CampaignPlan | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CampaignPlan)
    except (OSError, msgspec.DecodeError):
        return None


def _list_numbers(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        names = (each.name for each in folder.iterdir())
        yield from (int(name) for name in names if name.isdecimal() and len(name) < 10)
