"""Calibrations at work: the runs of a campaign are begun, sat through and captured one by one.

Knows how an agent's word becomes carriers and which manner of capture belongs to it. Refuses to
know scores: it hands over what the agents made of the cases.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.api.project import AgentPool, RunConfig, crew_of, open_run
from interlock.api.sitting import RunResult, sit
from interlock.cli.show import tell
from interlock.engine.circuit import HUMAN

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.calibrate.campaign import Campaign
    from interlock.engine.circuit import Circuit
    from interlock.journal.runs import Run
    from interlock.rca.calibration.capture import CaptureMode
    from interlock.rca.calibration.case_result import CaseResult
    from interlock.rca.calibration.ideal_agent import IdealAgent
    from interlock.rca.calibration.scenario import Scenario
    from interlock.runtime.library import Bundle
    from interlock.runtime.staff import RunSetup

Rulebook = tuple["Bundle", "Circuit", dict[str, Any]]
"""The circuit as a file, as it is run, and the thresholds that were changed."""
STUB = "stub"
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
    from interlock.agents.specs import BASIC

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
                    tell(f"run {turn} of {len(campaign.plan.numbers)}: suite {number}")
                sat = _sit(connection, run, campaign, scenario)
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
    from interlock.rca.calibration.suite import begin_scenario

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
    connection: "Connection", run: "Run", campaign: "Campaign", scenario: "Scenario"
) -> RunResult:
    from interlock.agents.wiring_files import PULL
    from interlock.runtime.settings import database

    options = msgspec.convert(run.options, RunConfig)
    pulled = campaign.plan.dispatch == PULL
    # Workers look for whoever hands out work beside the project's own database.
    path = database(Path(), None) if pulled else campaign.store(run.run_id)
    crew = msgspec.structs.replace(crew_of(open_run(run), options, path), desk=None)
    crew, stub = _cast(connection, crew, campaign.plan.agent, scenario)

    def dress(ours: "RunSetup") -> "RunSetup":
        return _dressed(connection, run, ours, campaign, stub)

    return sit(connection, run, crew, wait=False, dress=dress)


def _cast(
    connection: "Connection", crew: AgentPool, agent: str, scenario: "Scenario"
) -> "tuple[AgentPool, IdealAgent | None]":
    """The crew with our own programs in their places."""
    from interlock.agents.program import PromptlessHandler, answer
    from interlock.agents.specs import AGENTS, BASIC
    from interlock.calibrate.meter import Metered
    from interlock.rca.calibration.ideal_agent import IdealAgent

    if agent == STUB:
        stub = IdealAgent(scenario, connection)
        desk = PromptlessHandler(stub.answer)
        return msgspec.structs.replace(crew, carriers=dict.fromkeys(crew.carriers, desk)), stub
    if agent == BASIC:
        approval = PromptlessHandler(lambda ask: answer(ask, {"decision": "approve"}))
        return msgspec.structs.replace(crew, carriers={**crew.carriers, HUMAN: approval}), None
    if agent.partition(":")[0] in AGENTS:
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
    from interlock.calibrate.in_order import SequentialCases
    from interlock.engine.case import OPEN
    from interlock.rca.knowledge.looks import looks_of
    from interlock.signals.briefing import Briefing

    looks = list(looks_of(connection, run.run_id))
    if stub is not None:
        stub.meet({look.case_id: look.case_no for look in looks})
    enrich, application = ours.enrich, ours.application
    if application is not None and not run.options["terms"].get("families"):
        waiting = [look.case_id for look in looks if look.status == OPEN]
        application = SequentialCases(application, waiting)

    def named(briefing: Briefing) -> Briefing:
        plain = msgspec.structs.replace(briefing, scenario=campaign.plan.scenario)
        return enrich(plain) if enrich else plain

    return msgspec.structs.replace(ours, application=application, enrich=named)


def _captured(
    connection: "Connection", run: "Run", campaign: "Campaign", scenario: "Scenario"
) -> "tuple[CaseResult, ...]":
    from interlock.rca.calibration.capture import capture

    manner = manner_of(campaign)
    return capture(connection, run.run_id, scenario, open_run(run), manner)


def manner_of(campaign: "Campaign") -> "CaptureMode":
    from interlock.agents.agents import CLI_AGENTS
    from interlock.agents.specs import ACP, BASIC
    from interlock.rca.calibration.capture import CaptureMode

    agent = campaign.plan.agent
    kind = agent.partition(":")[0]
    return CaptureMode(
        prompted=agent not in (STUB, BASIC),
        billed=kind in CLI_AGENTS or kind == ACP,
        later=campaign.plan.edition == "v2",
    )
