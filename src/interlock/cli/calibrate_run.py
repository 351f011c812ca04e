"""The verb of calibrate that runs a scenario: flags in, a scorecard out."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.cli.calibrate import calibrate
from interlock.cli.calibrate_flags import (
    Agent,
    Carried,
    CheckLeaks,
    Dispatch,
    Edition,
    FailUnder,
    Html,
    Markdown,
    Out,
    Parallel,
    Resume,
    Root,
    Runs,
    ScenarioWord,
    TokenBudget,
    Weights,
)
from interlock.cli.filing import BatchSize, Watching, files_of
from interlock.cli.show import Json, Sets, counted, tell
from interlock.rca.analysing import PromptDir
from interlock.rca.opening import circuit_for
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.api.project import RunConfig
    from interlock.calibrate.calibrate_work import CampaignResult, Rulebook
    from interlock.calibrate.campaign import Campaign
    from interlock.calibrate.prices import Prices
    from interlock.calibrate.scorecard import Calibration
    from interlock.engine.circuit import Circuit
    from interlock.rca.calibration.scenario import Scenario


class CalibrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about a calibration."""

    source: str
    agent: str
    dispatch: str
    parallel: int | None
    runs: int
    tokens: int | None
    edition: str
    files: dict[str, str | int]


@calibrate.command("run")
def run(
    scenario: ScenarioWord,
    agent: Agent = "",
    dispatch: Dispatch = None,
    parallel: Parallel = None,
    batch_size: BatchSize = None,
    token_budget: TokenBudget = None,
    runs: Runs = 1,
    resume: Resume = False,
    edition: Edition = "v1",
    weights: Weights = "",
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    root: Root = None,
    watch: Watching = None,
    fail_under: FailUnder = None,
    check_leaks: CheckLeaks = False,
    html: Html = None,
    markdown: Markdown = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Run a scenario whose truth is known and score the agent. The verb need not be named."""
    from interlock.cli.calibrate_report import (
        bill,
        gates_of,
        leaks_told,
        leave,
        page,
        show,
        whole,
        write,
    )
    from interlock.rca.papers import CALIBRATE

    gates = gates_of(fail_under or [])
    said = CalibrateOptions(
        source=scenario,
        agent=agent,
        dispatch=str(dispatch or ""),
        parallel=parallel,
        runs=runs,
        tokens=token_budget,
        edition=edition,
        files=files_of(None, root or Path(CALIBRATE), watch, batch_size),
    )
    known = _read(scenario)
    rules = circuit_for(sets or [], prompt_dir)
    campaign = _resumed(said, known) if resume else _begun(said, known, rules[1])
    done = _work(campaign, known, said, rules)
    told = _scored(campaign, known, said, done, weights)
    prices = _prices()
    write([(html, page), (markdown, lambda one: bill(one, prices)), (out, whole)], told)
    show(told, json=json)
    leaking = check_leaks and leaks_told(campaign, known, Path(str(said.files["root"])))
    leave(done, told.scorecard, gates, leaking=leaking)


def _read(source: str) -> "Scenario":
    from interlock.rca.calibration.scenario_check import check_scenario
    from interlock.rca.calibration.scenario_file import find_scenario
    from interlock.rca.calibration.suite import refuse_unusable

    scenario, unread = find_scenario(source)
    refuse_unusable(scenario)
    faults = [each for each in check_scenario(scenario, unread) if each.level == "error"]
    if faults:
        what = counted(len(faults), "fault", "faults")
        tell(f"note: {what} in the labels make scores wrong: 'interlock calibrate check {source}'")
    return scenario


def _begun(said: CalibrateOptions, scenario: "Scenario", circuit: "Circuit") -> "Campaign":
    """A new campaign: its agent can be asked, its worlds stand, its plan is kept."""
    from interlock.agents.specs import BASIC
    from interlock.calibrate.calibrate_work import options_of
    from interlock.calibrate.campaign import Campaign, CampaignPlan, new_numbers
    from interlock.calibrate.metric_table import metric_table
    from interlock.rca.calibration.suite import terms_of
    from interlock.rca.calibration.world import plant
    from interlock.runtime.roles import PARALLEL

    if said.agent and said.dispatch:
        raise SourceError("--dispatch asks whoever watches, --agent names one: give one of them")
    metric_table().edition(said.edition)
    agent = said.agent or ("" if said.dispatch else BASIC)
    batched = said.dispatch == Carried.BATCH_FILE
    size = int(said.files.get("batch_size", 0))
    parallel = said.parallel or (max(PARALLEL, size) if batched else 1)
    families = batched or parallel > 1
    numbers = new_numbers(Path(), Path(str(said.files["root"])), said.runs)
    plan = CampaignPlan(
        scenario=scenario.name,
        digest=scenario.digest,
        numbers=numbers,
        agent=agent,
        dispatch=said.dispatch,
        edition=said.edition,
        planted=bool(scenario.worlds),
    )
    campaign = Campaign(Path(), plan)
    worlds = campaign.worlds if plan.planted else None
    terms = msgspec.to_builtins(terms_of(scenario, worlds, families=families, cache=campaign.cache))
    options = options_of(agent, said.dispatch, terms, parallel=parallel, budget=said.tokens)
    dispatch = {"dispatch": said.dispatch} if said.dispatch else {}
    options = msgspec.structs.replace(options, files={**said.files, **dispatch})
    _refuse_unknown(circuit, options, campaign)
    if worlds is not None:
        plant(scenario, worlds)
    campaign.keep(msgspec.structs.replace(plan, options=msgspec.to_builtins(options)))
    return campaign


def _refuse_unknown(circuit: "Circuit", options: "RunConfig", campaign: "Campaign") -> None:
    """An agent that cannot be asked is told before anything begins."""
    from interlock.api.project import crew_of

    try:
        crew_of(circuit, options, campaign.store(campaign.plan.numbers[0]))
    except SourceError:
        campaign.forget()
        raise


def _resumed(said: CalibrateOptions, scenario: "Scenario") -> "Campaign":
    from interlock.calibrate.campaign import unfinished

    return unfinished(Path(), scenario.digest, said.agent, said.dispatch)


def _work(
    campaign: "Campaign", scenario: "Scenario", said: CalibrateOptions, rules: "Rulebook"
) -> "CampaignResult":
    from interlock.calibrate.calibrate_work import work

    def change(options: "RunConfig") -> "RunConfig":
        """What may be said anew when a calibration goes on."""
        size = said.files.get("batch_size")
        files = options.files | ({"batch_size": size} if size is not None else {})
        limits = options.budget | ({} if said.tokens is None else {"tokens": said.tokens})
        return msgspec.structs.replace(options, files=files, budget=limits)

    done = work(campaign, scenario, rules, change=change)
    if done.whole and len(done.runs) == len(campaign.plan.numbers):
        campaign.keep(msgspec.structs.replace(campaign.plan, is_done=True))
    return done


def _scored(
    campaign: "Campaign",
    scenario: "Scenario",
    said: CalibrateOptions,
    done: "CampaignResult",
    weights: str,
) -> "Calibration":
    from interlock.calibrate.metrics import ScoringRules
    from interlock.calibrate.scorecard import About, calibration

    plan = campaign.plan
    later = plan.edition == "v2"
    stores = [str(campaign.store(number).resolve()) for number in plan.numbers[: len(done.runs)]]
    about = About(
        agent=plan.agent,
        dispatch=plan.dispatch,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        note=_note(campaign, scenario, done),
        source=said.source,
        stores=tuple(stores),
    )
    rules = ScoringRules(plan.edition, weights, scenario.dry_capped_metrics if later else ())
    return calibration(scenario, done.runs, about=about, rules=rules, prices=_prices())


def _prices() -> "Prices":
    from interlock.calibrate.prices import prices_from
    from interlock.runtime.settings import read_settings

    return prices_from(read_settings(Path()).calibrate.prices)


def _note(campaign: "Campaign", scenario: "Scenario", done: "CampaignResult") -> str:
    """What a partial scorecard says of itself."""
    if done.whole or done.sat is None:
        return ""
    over = sum(not result.pipeline_error for run in done.runs for result in run)
    cases = len(scenario.cases) * len(campaign.plan.numbers)
    why = "the token budget is spent" if done.sat.status == "budget" else done.sat.status
    return f"PARTIAL ({why}): {over} of {cases} cases came to an end; --resume goes on"
