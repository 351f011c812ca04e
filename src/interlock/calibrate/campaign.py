"""A campaign: the runs of one calibration, as folders that a later command finds again.

Knows where each run's store is and what was agreed. Every run has a suite number of its own, never
given out twice, so that no two share a folder of signals. Refuses to keep the scenario: agents can
read these folders.

Cases one after another: each is brought to its end before the next one begins.

So knowledge grows from case to case, as it does over days. Knows whose turn it is; all else is the
application's that it stands before.

A meter before a carrier that tells no bill: tokens are counted as bytes over four.

So a budget of tokens holds for agents that never say what they used. Knows sizes; refuses to know
what was asked or answered.

Calibrations at work: the runs of a campaign are begun, sat through and captured one by one.

Knows how an agent's word becomes carriers and which manner of capture belongs to it. Refuses to
know scores: it hands over what the agents made of the cases.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.agents.carrier import Ask, Carrier, Deliver, ExecutionContext, Reply
from interlock.api.project import Project
from interlock.api.work import Display, RunResult, load_circuit, work_on_run
from interlock.engine.case import OPEN, Case, Decision, Refused, Signal, Usage
from interlock.engine.circuit import HUMAN
from interlock.journal.journal import Effect
from interlock.journal.runs import NewCase
from interlock.runtime.agent_pool import AgentPool
from interlock.runtime.application import CaseHooks
from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError, StateError
from interlock.system.files import write_file

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.journal.runs import Run
    from interlock.rca.calibration.capture import CaptureMode
    from interlock.rca.calibration.ideal_agent import IdealAgent
    from interlock.rca.calibration.marks import CaseResult
    from interlock.rca.calibration.scenario import Scenario
    from interlock.runtime.application import RunSetup
    from interlock.runtime.circuits import Bundle


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
        write_file(self.home / _PLAN, text)

    def forget(self) -> None:
        """Give the folders back, as long as nothing was written into them."""
        for number in self.plan.numbers:
            with suppress(OSError):
                (self._folder / str(number)).rmdir()


def store_of(folder: Path, number: int) -> Path:
    """Where the run of that number is kept, if the project's own folder is that one."""
    return folder / FOLDER.name / str(number) / _STORE


def find_store(folder: Path, number: int) -> Path | None:
    """The database of the run of that number, where a calibration has one."""
    store = store_of(folder, number)
    return store if store.exists() else None


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


class SequentialCases:
    """An application that holds all cases back but the first that is not over."""

    def __init__(self, application: CaseHooks, waiting: Sequence[str]) -> None:
        self._own = application
        self._waiting = dict.fromkeys(waiting)
        self._turn = next(iter(self._waiting), "")

    def premises(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        return self._own.premises(case_no, case, dispatch_id)

    def facts(self, case_no: int, case: Case, premises: ExecutionContext) -> Mapping[str, Any]:
        return self._own.facts(case_no, case, premises)

    def examine(self, case_no: int, case: Case, signal: Signal) -> Signal | Refused:
        return self._own.examine(case_no, case, signal)

    def effects(
        self, case_no: int, case: Case, decision: Decision, data: Mapping[str, Any], by: str
    ) -> Sequence[Effect]:
        return self._own.effects(case_no, case, decision, data, by)

    def held(self, case_no: int, case: Case) -> bool:
        held = self._own.held(case_no, case)
        if case.status != OPEN:
            self._waiting.pop(case.case_id, None)
        return held or case.case_id != self._turn

    def let_go(self) -> Iterable[str]:
        yield from self._own.let_go()
        first = next(iter(self._waiting), "")
        if first and first != self._turn:
            self._turn = first
            yield first

    def news(self) -> Iterable[NewCase]:
        return self._own.news()

    def notes(self) -> Iterable[str]:
        return self._own.notes()


BYTES_PER_TOKEN = 4


class Metered:
    """A carrier whose replies say what they cost, prompt and answer apart."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._asked: dict[int, int] = {}

    def start(self, deliver: Deliver) -> None:
        self._carrier.start(lambda reply: deliver(self._told(reply)))

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._asked[ask.dispatch_id] = len(ask.prompt.encode()) // BYTES_PER_TOKEN
        self._carrier.send(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._asked.pop(dispatch_id, None)
        self._carrier.settled(dispatch_id, error)

    async def close(self) -> None:
        await self._carrier.close()

    def _told(self, reply: Reply) -> Reply:
        asked = self._asked.get(reply.dispatch_id)
        if asked is None or reply.failure or reply.usage != Usage():
            return reply
        tokens = asked + len(reply.content) // BYTES_PER_TOKEN
        return msgspec.structs.replace(reply, usage=Usage(tokens=tokens))


Rulebook = tuple["Bundle", "Circuit", dict[str, Any]]
"""The circuit as a file, as it is run, and the thresholds that were changed."""
STUB = "stub"
BASIC = "basic"
_UNMETERED = ("exec", "script")
"""Agents that do not say what they cost."""
BLIND = (
    "> This is a blind evaluation. Answer from this prompt and the repositories it names. Do not\n"
    "> read `.interlock/`, files about scenarios, or the folders of other cases.\n\n"
)
"""What every prompt of a calibration begins with."""
_PATIENT = ("done", "unhealthy")


class CampaignResult(msgspec.Struct, frozen=True):
    """What came of a campaign: the results of each run, and how the last sitting ended."""

    runs: list[tuple["CaseResult", ...]]
    sat: RunResult | None
    """None if nothing was left to do."""

    @property
    def whole(self) -> bool:
        return self.sat is None or self.sat.status in _PATIENT


def options_of(
    agent: str, dispatch: str, terms: dict[str, Any], *, parallel: int, budget: int | None
) -> RunConfig:
    """What a run keeps. The stub and the built-in analyst have nobody else who could review."""
    own = agent in (STUB, BASIC)
    agents = {"": BASIC} if own else ({"": agent} if agent else {})
    if not own:
        agents[HUMAN] = agent or dispatch
    limits: dict[str, str | int | float] = {} if budget is None else {"tokens": budget}
    return RunConfig(agents=agents, budget=limits, parallel=parallel, terms=terms)


def work(
    campaign: "Campaign",
    scenario: "Scenario",
    rules: Rulebook,
    *,
    change: Callable[[RunConfig], RunConfig],
    display: Display,
) -> CampaignResult:
    """Sit through all runs that are not over, in order; stop where one cannot be finished."""
    from interlock.journal.database import writing

    found: list[tuple[CaseResult, ...]] = []
    sat: RunResult | None = None
    for turn, number in enumerate(campaign.plan.numbers, 1):
        with writing(campaign.store(number)) as connection:
            run = _begun(connection, campaign, scenario, number, rules, change)
            if run.status not in _PATIENT:
                if len(campaign.plan.numbers) > 1:
                    display.note(f"run {turn} of {len(campaign.plan.numbers)}: suite {number}")
                sat = _sit(connection, run, campaign, scenario, display)
            found.append(_captured(connection, run, campaign, scenario))
        if sat is not None and sat.status not in _PATIENT:
            break
    return CampaignResult(found, sat)


def _begun(
    connection: "Connection",
    campaign: "Campaign",
    scenario: "Scenario",
    number: int,
    rules: Rulebook,
    change: Callable[[RunConfig], RunConfig],
) -> "Run":
    """The run of that number, begun now if it was not; what a new command says is kept with it."""
    from interlock.journal.runs import all_runs, find_run, set_options
    from interlock.rca.calibration.blind_run import begin_scenario

    bundle, circuit, thresholds = rules
    if not all_runs(connection):
        options = msgspec.structs.replace(
            msgspec.convert(campaign.plan.options, RunConfig),
            thresholds=thresholds,
            after=campaign.after(number),
        )
        prompts = {name: BLIND + text for name, text in bundle.prompts.items()}
        text = msgspec.json.encode(msgspec.structs.replace(bundle, prompts=prompts)).decode()
        begin_scenario(
            *(connection, scenario, circuit, text),
            number=number,
            options=msgspec.to_builtins(options),
            at=time.time(),
        )
    run = find_run(connection, number)
    before = msgspec.convert(run.options, RunConfig)
    if (after := change(before)) != before:
        set_options(connection, number, msgspec.to_builtins(after))
    return find_run(connection, number)


def _sit(
    connection: "Connection",
    run: "Run",
    campaign: "Campaign",
    scenario: "Scenario",
    display: Display,
) -> RunResult:
    from interlock.agents.registry import MCP

    options = msgspec.convert(run.options, RunConfig)
    pulled = campaign.plan.dispatch == MCP
    # Workers look for whoever hands out work beside the project's own database.
    project = Project(db=None if pulled else campaign.store(run.run_id), display=display)
    crew = msgspec.structs.replace(project.build_pool(load_circuit(run), options), inbox=None)
    crew, stub = _cast(connection, crew, campaign.plan.agent, scenario)

    def dress(ours: "RunSetup") -> "RunSetup":
        return _dressed(connection, run, ours, campaign, stub)

    return work_on_run(connection, run, crew, display=display, change_setup=dress)


def _cast(
    connection: "Connection", crew: AgentPool, agent: str, scenario: "Scenario"
) -> "tuple[AgentPool, IdealAgent | None]":
    """The crew with our own programs in their places."""
    from interlock.agents.function import PromptlessHandler, answer
    from interlock.rca.calibration.ideal_agent import IdealAgent

    if agent == STUB:
        stub = IdealAgent(scenario, connection)
        desk = PromptlessHandler(stub.answer)
        return msgspec.structs.replace(crew, carriers=dict.fromkeys(crew.carriers, desk)), stub
    if agent == BASIC:
        approval = PromptlessHandler(lambda ask: answer(ask, {"decision": "approve"}))
        return msgspec.structs.replace(crew, carriers={**crew.carriers, HUMAN: approval}), None
    if agent.partition(":")[0] in _UNMETERED:
        meters = {id(each): Metered(each) for each in crew.carriers.values()}
        told = {role: meters[id(each)] for role, each in crew.carriers.items()}
        return msgspec.structs.replace(crew, carriers=told), None
    return crew, None


def _dressed(
    connection: "Connection",
    run: "Run",
    ours: "RunSetup",
    campaign: "Campaign",
    stub: "IdealAgent | None",
) -> "RunSetup":
    """One case after another unless families are investigated; briefings name the scenario."""
    from interlock.engine.case import OPEN
    from interlock.rca.knowledge.suites import looks_of
    from interlock.signals.batch import Briefing

    looks = list(looks_of(connection, run.run_id))
    if stub is not None:
        stub.meet({look.case_id: look.case_no for look in looks})
    enrich, application = ours.enrich, ours.hooks
    if application is not None and not run.options["terms"].get("families"):
        waiting = [look.case_id for look in looks if look.status == OPEN]
        application = SequentialCases(application, waiting)

    def named(briefing: Briefing) -> Briefing:
        plain = msgspec.structs.replace(briefing, scenario=campaign.plan.scenario)
        return enrich(plain) if enrich else plain

    return msgspec.structs.replace(ours, hooks=application, enrich=named)


def _captured(
    connection: "Connection", run: "Run", campaign: "Campaign", scenario: "Scenario"
) -> "tuple[CaseResult, ...]":
    from interlock.rca.calibration.capture import capture

    manner = manner_of(campaign)
    return capture(connection, run.run_id, scenario, load_circuit(run), manner)


def manner_of(campaign: "Campaign") -> "CaptureMode":
    from interlock.agents.cli.profiles import NAMES
    from interlock.rca.calibration.capture import CaptureMode

    agent = campaign.plan.agent
    kind = agent.partition(":")[0]
    return CaptureMode(
        prompted=agent not in (STUB, BASIC),
        billed=kind in NAMES or kind == "acp",
        later=campaign.plan.edition == "v2",
    )
