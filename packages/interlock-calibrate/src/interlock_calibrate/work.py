"""Carry out a campaign: begin its runs, work on them, capture and score the results.

The agent's name decides who answers: the ideal agent, the application's own, or any other, which is
metered if it does not report what it used.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.api.circuits import Circuit
from interlock.api.project import Project
from interlock.api.work import RunResult, SessionTerms, load_circuit, work_on_run
from interlock.carriers.cli.profiles import PROFILE_NAMES
from interlock.carriers.contract import Ask, Carrier, CarrierWrapper, Reply, Session
from interlock.carriers.function import PromptlessHandler
from interlock.carriers.registry import MCP, list_endpoints
from interlock.engine.case import OPEN, Case, Usage
from interlock.engine.circuit import HUMAN
from interlock.journal.connection import Connection
from interlock.journal.history import list_cases
from interlock.journal.runs import Run, find_run, list_runs, set_options
from interlock.runtime.agent_pool import AgentPool
from interlock.runtime.application import Pace, RunSetup
from interlock.runtime.settings import RunConfig
from interlock.signals.batch import Briefing
from interlock.system.time import format_timestamp
from interlock_calibrate.benchmark import (
    BYTES_PER_TOKEN,
    AnyBenchmark,
    CaptureMode,
    CaseResult,
    Scenario,
)
from interlock_calibrate.campaign import IDEAL_AGENT, Campaign, is_worked_together
from interlock_calibrate.metrics import ScoringRules
from interlock_calibrate.prices import Prices
from interlock_calibrate.scorecard import Calibration, CalibrationInfo, score_runs

BLIND_NOTICE = (
    "> This is a blind evaluation. Answer from this prompt and the repositories it names. Do not\n"
    "> read `.interlock/`, files about scenarios, or the folders of other cases.\n\n"
)
"""The beginning of every prompt in a calibration."""
_UNMETERED = ("exec", "script")
"""Agents that do not report their cost."""
_FINISHED = ("done", "unhealthy")


class CampaignResult(msgspec.Struct, frozen=True):
    """The results of each run, and the end of the last work on one."""

    runs: list[tuple[CaseResult, ...]]
    last: RunResult | None
    """None if no work was left."""

    @property
    def is_whole(self) -> bool:
        return self.last is None or self.last.status in _FINISHED


class CampaignWork:
    """Finishes the runs of one campaign."""

    def __init__(
        self,
        project: Project,
        benchmark: AnyBenchmark,
        scenario: Scenario,
        campaign: Campaign,
    ) -> None:
        self._project = project
        self._benchmark = benchmark
        self._scenario = scenario
        self._campaign = campaign
        self._plan = campaign.plan

    def work(
        self,
        circuit: Circuit,
        thresholds: Mapping[str, Any],
        change: Callable[[RunConfig], RunConfig],
    ) -> CampaignResult:
        """Work on all unfinished runs in order, and stop at one that cannot be finished.

        New runs begin with this circuit and these thresholds; `change` applies a later command's
        options, which are stored with each run.
        """
        results: list[tuple[CaseResult, ...]] = []
        last: RunResult | None = None
        numbers = self._plan.numbers
        for turn, number in enumerate(numbers, 1):
            with self._campaign.open_run(number).write() as connection:
                if not list_runs(connection):
                    self._begin(connection, number, circuit, thresholds)
                run = _change_config(connection, number, change)
                if run.status not in _FINISHED:
                    if len(numbers) > 1:
                        note = f"run {turn} of {len(numbers)}: suite {number}"
                        self._project.display.note(note)
                    last = self._work_on(connection, run)
                results.append(self._capture(connection, run))
            if last is not None and last.status not in _FINISHED:
                break
        result = CampaignResult(results, last)
        if result.is_whole and len(results) == len(numbers):
            self._campaign.write_plan(msgspec.structs.replace(self._plan, is_done=True))
        return result

    def score(
        self, result: CampaignResult, *, source: str, weights: str, prices: Prices
    ) -> Calibration:
        """Return the scorecard; `source` is the scenario as the user named it."""
        plan = self._plan
        numbers = plan.numbers[: len(result.runs)]
        about = CalibrationInfo(
            agent=plan.agent,
            dispatch=plan.dispatch,
            at=format_timestamp(time.time()),
            note=self._describe_partial(result),
            source=source,
            stores=tuple(str(self._campaign.database_of(number).resolve()) for number in numbers),
        )
        left_out = self._benchmark.list_left_out(self._scenario, plan.edition)
        rules = ScoringRules(self._benchmark.metrics, plan.edition, weights, left_out)
        return score_runs(
            self._benchmark, self._scenario, result.runs, about=about, rules=rules, prices=prices
        )

    def _describe_partial(self, result: CampaignResult) -> str:
        """Return a note about an unfinished campaign, or ""."""
        if result.is_whole or result.last is None:
            return ""
        over = sum(not each.pipeline_error for run in result.runs for each in run)
        cases = len(self._scenario.cases) * len(self._plan.numbers)
        status = result.last.status
        why = "the token budget is spent" if status == "budget" else status
        return f"PARTIAL ({why}): {over} of {cases} cases are finished; --resume continues"

    def _begin(
        self,
        connection: Connection,
        number: int,
        circuit: Circuit,
        thresholds: Mapping[str, Any],
    ) -> None:
        config = msgspec.structs.replace(
            msgspec.convert(self._plan.options, RunConfig),
            thresholds=dict(thresholds),
            after=self._campaign.first_dispatch_after(number),
        )
        prompts = {name: BLIND_NOTICE + text for name, text in circuit.bundle.prompts.items()}
        bundle = msgspec.structs.replace(circuit.bundle, prompts=prompts)
        self._benchmark.begin(
            self._scenario,
            connection,
            circuit.source.circuit,
            bundle.encode(),
            number=number,
            options=msgspec.to_builtins(config),
            at=time.time(),
        )

    def _work_on(self, connection: Connection, run: Run) -> RunResult:
        config = msgspec.convert(run.options, RunConfig)
        # Workers look for the server beside the project's own database.
        by_workers = self._plan.dispatch == MCP
        project = self._project if by_workers else self._campaign.open_run(run.run_id)
        pool = project.build_pool(load_circuit(run), config)
        pool = msgspec.structs.replace(
            pool, carriers=self._choose_carriers(connection, run, pool), inbox=None
        )
        waiting = [
            case.case_id for case in list_cases(connection, run.run_id) if case.status == OPEN
        ]

        def change_setup(setup: RunSetup) -> RunSetup:
            return self._change_setup(setup, config, waiting)

        terms = SessionTerms(change_setup=change_setup)
        return work_on_run(connection, run, pool, terms, display=project.display)

    def _choose_carriers(
        self, connection: Connection, run: Run, pool: AgentPool
    ) -> Mapping[str, Carrier]:
        """Return the carrier of each role, with our own agents in place of the pool's."""
        agent = self._plan.agent
        if agent == IDEAL_AGENT:
            ideal = self._benchmark.make_ideal_agent(self._scenario, connection, run.run_id)
            return dict.fromkeys(pool.carriers, PromptlessHandler(ideal))
        if agent == self._benchmark.own_agent:
            return {**pool.carriers, HUMAN: PromptlessHandler(self._benchmark.approve)}
        if agent.partition(":")[0] in _UNMETERED:
            # Roles that share a carrier share its meter.
            meters = {id(each): MeteredCarrier(each) for each in pool.carriers.values()}
            return {role: meters[id(each)] for role, each in pool.carriers.items()}
        return pool.carriers

    def _change_setup(self, setup: RunSetup, config: RunConfig, waiting: Sequence[str]) -> RunSetup:
        """Run cases in turn unless they run together, and name the scenario in briefings."""
        together = is_worked_together(self._plan, config.parallel)
        pace = setup.pace if together else SequentialCases(waiting)

        def name_scenario(briefing: Briefing) -> Briefing:
            plain = msgspec.structs.replace(briefing, scenario=self._plan.scenario)
            return setup.enrich(plain)

        return msgspec.structs.replace(setup, pace=pace, enrich=name_scenario)

    def _capture(self, connection: Connection, run: Run) -> tuple[CaseResult, ...]:
        agent = self._plan.agent
        kind = agent.partition(":")[0]
        mode = CaptureMode(
            prompted=agent not in (IDEAL_AGENT, self._benchmark.own_agent),
            billed=kind in (*PROFILE_NAMES, "acp", *list_endpoints(self._project.settings.agent)),
            edition=self._plan.edition,
        )
        results: tuple[CaseResult, ...] = self._benchmark.capture(
            self._scenario, connection, run.run_id, load_circuit(run), mode
        )
        return results


def _change_config(
    connection: Connection, number: int, change: Callable[[RunConfig], RunConfig]
) -> Run:
    """Return the run of that number, with a new command's options applied."""
    run = find_run(connection, number)
    before = msgspec.convert(run.options, RunConfig)
    if (after := change(before)) != before:
        set_options(connection, number, msgspec.to_builtins(after))
    return find_run(connection, number)


class SequentialCases(Pace):
    """Holds back all cases but the first unfinished one, so that knowledge grows over time."""

    def __init__(self, waiting: Sequence[str]) -> None:
        self._waiting = dict.fromkeys(waiting)
        self._turn = next(iter(self._waiting), "")

    def must_rest(self, case: Case) -> bool:
        if case.status != OPEN:
            self._waiting.pop(case.case_id, None)
        return case.case_id != self._turn

    def released_cases(self) -> Iterable[str]:
        first = next(iter(self._waiting), "")
        if first and first != self._turn:
            self._turn = first
            yield first


class MeteredCarrier(CarrierWrapper):
    """Estimates the cost of replies from bytes, so that budgets hold for all agents."""

    def __init__(self, inner: Carrier) -> None:
        super().__init__(inner)
        self._asked: dict[int, int] = {}

    def start(self, session: Session) -> None:
        def deliver(reply: Reply) -> None:
            session.deliver(self._add_usage(reply))

        super().start(msgspec.structs.replace(session, deliver=deliver))

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._asked[ask.dispatch_id] = len(ask.prompt.encode()) // BYTES_PER_TOKEN
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._asked.pop(dispatch_id, None)
        super().settle(dispatch_id, error)

    def _add_usage(self, reply: Reply) -> Reply:
        asked = self._asked.get(reply.dispatch_id)
        if asked is None or reply.failure or reply.usage != Usage():
            return reply
        tokens = asked + len(reply.content) // BYTES_PER_TOKEN
        return msgspec.structs.replace(reply, usage=Usage(tokens=tokens))
