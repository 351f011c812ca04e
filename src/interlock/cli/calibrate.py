"""The verbs of calibrate: scenarios with a known truth, whether they are sound, and comparisons.

The verb of calibrate that runs a scenario: flags in, a scorecard out.

What a calibration leaves behind: pages and files, the scorecard shown, gates, the exit code.

The verb `tune`: what other thresholds would have made of recorded calibrations.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import DefaultVerb, ExitCode, app
from interlock.cli.options import (
    BatchSize,
    CalibrateAgent,
    CalibrateDispatch,
    CalibrateParallel,
    CalibrateRoot,
    Carried,
    CheckLeaks,
    Edition,
    FailUnder,
    Html,
    Markdown,
    Out,
    Resume,
    Runs,
    ScenarioWord,
    TokenBudget,
    Watching,
    Weights,
    files_of,
    read_thresholds,
)
from interlock.cli.output import (
    Json,
    Sets,
    counted,
    document,
    harmless,
    open_project,
    say,
    table,
    tell,
)
from interlock.cli.rca import PromptDir
from interlock.cli.run import exit_with
from interlock.rca.analyze import load_rca
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.calibrate.campaign import Campaign, CampaignResult, Rulebook
    from interlock.calibrate.prices import Prices
    from interlock.calibrate.scorecard import Calibration, Scorecard
    from interlock.calibrate.tune import Recording, Trial
    from interlock.engine.circuit import Circuit
    from interlock.rca.calibration.scenario import Scenario
    from interlock.runtime.settings import RunConfig


calibrate = typer.Typer(
    name="calibrate",
    cls=DefaultVerb,
    help="Measure an agent against failures whose causes are known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(calibrate)


@calibrate.command()
def scenarios(json: Json = False) -> None:
    """The scenarios that come with Interlock."""
    from interlock.rca.calibration.scenario import find_scenario, shipped

    found = [find_scenario(name).scenario for name in shipped()]
    rows = [
        {
            "name": each.name,
            "description": each.description,
            "cases": len(each.cases),
            "causes": len(each.rcas),
            "versions": len({case.version for case in each.cases}),
            "repositories": len(each.workspace.repos),
            "planted": len(each.worlds),
            "test": sum(case.split == "test" for case in each.cases),
            "digest": each.digest,
        }
        for each in found
    ]
    if json:
        return document({"scenarios": rows})
    shown = (
        "name",
        "cases",
        "test",
        "causes",
        "versions",
        "repositories",
        "planted",
        "description",
    )
    return table(shown, [[row[name] for name in shown] for row in rows])


@calibrate.command()
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A scenario, as JSON or YAML, or a shipped name.")
    ],
    json: Json = False,
) -> None:
    """Look for faults in a scenario's labels. Exit 6 if there is one that makes scores wrong."""
    from interlock.rca.calibration.scenario import find_scenario
    from interlock.rca.calibration.scenario_check import check_scenario, sound

    scenario, unread = find_scenario(file)
    findings = check_scenario(scenario, unread)
    good = sound(findings)
    if json:
        document(
            {
                "name": scenario.name,
                "cases": len(scenario.cases),
                "sound": good,
                "findings": msgspec.to_builtins(findings),
            }
        )
    else:
        for each in findings:
            place = f"{each.subject}: " if each.subject else ""
            say(f"{each.level}: {place}{each.message} [{each.id}]\n  {each.fix}")
        cases = counted(len(scenario.cases), "case", "cases")
        told = counted(len(findings), "finding", "findings")
        say(f"{scenario.name}: {cases}, {told}, {'sound' if good else 'not sound'}")
    raise typer.Exit(ExitCode.DONE if good else ExitCode.FINDINGS)


@calibrate.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A result of calibrate, as JSON.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another of the same scenario.")],
    json: Json = False,
) -> None:
    """Say in what two results differ, and which differences are more than noise."""
    from interlock.calibrate.compare import compare as compared
    from interlock.calibrate.scorecard import read_calibration
    from interlock.calibrate.text import comparison_text

    found = compared(read_calibration(a), read_calibration(b))
    if json:
        return document(found)
    for line in comparison_text(found):
        say(line)
    return None


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
    agent: CalibrateAgent = "",
    dispatch: CalibrateDispatch = None,
    parallel: CalibrateParallel = None,
    batch_size: BatchSize = None,
    token_budget: TokenBudget = None,
    runs: Runs = 1,
    resume: Resume = False,
    edition: Edition = "v1",
    weights: Weights = "",
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    root: CalibrateRoot = None,
    watch: Watching = None,
    fail_under: FailUnder = None,
    check_leaks: CheckLeaks = False,
    html: Html = None,
    markdown: Markdown = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Run a scenario whose truth is known and score the agent. The verb need not be named."""
    from interlock.rca.briefing import CALIBRATE

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
    circuit, changes = load_rca(open_project(), read_thresholds(sets or ()), prompt_dir)
    rules = (circuit.bundle, circuit.source.circuit, changes)
    campaign = _resumed(said, known) if resume else _begun(said, known, rules[1])
    done = _work(campaign, known, said, rules)
    told = _scored(campaign, known, said, done, weights)
    prices = _prices()
    write([(html, page), (markdown, lambda one: bill(one, prices)), (out, whole)], told)
    show(told, json=json)
    leaking = check_leaks and leaks_told(campaign, known, Path(str(said.files["root"])))
    leave(done, told.scorecard, gates, leaking=leaking)


def _read(source: str) -> "Scenario":
    from interlock.rca.calibration.blind_run import refuse_unusable
    from interlock.rca.calibration.scenario import find_scenario
    from interlock.rca.calibration.scenario_check import check_scenario

    scenario, unread = find_scenario(source)
    refuse_unusable(scenario)
    faults = [each for each in check_scenario(scenario, unread) if each.level == "error"]
    if faults:
        what = counted(len(faults), "fault", "faults")
        tell(f"note: {what} in the labels make scores wrong: 'interlock calibrate check {source}'")
    return scenario


def _begun(said: CalibrateOptions, scenario: "Scenario", circuit: "Circuit") -> "Campaign":
    """A new campaign: its agent can be asked, its worlds stand, its plan is kept."""
    from interlock.calibrate.campaign import (
        BASIC,
        Campaign,
        CampaignPlan,
        new_numbers,
        options_of,
    )
    from interlock.calibrate.metrics import metric_table
    from interlock.rca.calibration.blind_run import terms_of
    from interlock.rca.calibration.world import plant
    from interlock.runtime.agent_pool import PARALLEL

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
    try:
        project = open_project(campaign.store(campaign.plan.numbers[0]))
        project.build_pool(circuit, options)
    except SourceError:
        campaign.forget()
        raise


def _resumed(said: CalibrateOptions, scenario: "Scenario") -> "Campaign":
    from interlock.calibrate.campaign import unfinished

    return unfinished(Path(), scenario.digest, said.agent, said.dispatch)


def _work(
    campaign: "Campaign", scenario: "Scenario", said: CalibrateOptions, rules: "Rulebook"
) -> "CampaignResult":
    from interlock.calibrate.campaign import work

    def change(options: "RunConfig") -> "RunConfig":
        """What may be said anew when a calibration goes on."""
        size = said.files.get("batch_size")
        files = options.files | ({"batch_size": size} if size is not None else {})
        limits = options.budget | ({} if said.tokens is None else {"tokens": said.tokens})
        return msgspec.structs.replace(options, files=files, budget=limits)

    done = work(campaign, scenario, rules, change=change, display=open_project().display)
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
    from interlock.calibrate.prices import CalibrateTables, prices_from

    tables = open_project().settings.read_tables(CalibrateTables)
    return prices_from(tables.calibrate.prices)


def _note(campaign: "Campaign", scenario: "Scenario", done: "CampaignResult") -> str:
    """What a partial scorecard says of itself."""
    if done.whole or done.sat is None:
        return ""
    over = sum(not result.pipeline_error for run in done.runs for result in run)
    cases = len(scenario.cases) * len(campaign.plan.numbers)
    why = "the token budget is spent" if done.sat.status == "budget" else done.sat.status
    return f"PARTIAL ({why}): {over} of {cases} cases came to an end; --resume goes on"


Gate = tuple[str, float]
Make = Callable[["Calibration"], str]


def gates_of(words: Sequence[str]) -> list[Gate]:
    """`0.85` is of M19, `M1=0.8` of M1."""
    from interlock.calibrate.metrics import OVERALL, metric_table

    known = [metric.id for metric in metric_table().metrics]
    found: list[Gate] = []
    for word in words:
        metric, equals, text = word.rpartition("=")
        metric = metric if equals else OVERALL
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if metric not in known or not isfinite(value):
            raise SourceError(f"--fail-under {word!r}: write 0.85, or M1=0.8 up to {known[-1]}=…")
        found.append((metric, value))
    return found


def page(told: "Calibration") -> str:
    from interlock.calibrate.page import scorecard_html

    return scorecard_html(told)


def whole(told: "Calibration") -> str:
    from interlock.calibrate.scorecard import calibration_json

    return calibration_json(told)


def bill(told: "Calibration", prices: "Prices") -> str:
    from interlock.calibrate.prices import cost_bill

    runs = [
        [record.result for record in records]
        for _, records in groupby(told.records, lambda record: record.run)
    ]
    return cost_bill(told.scorecard.scenario, runs, prices)


def write(wanted: Iterable[tuple[Path | None, Make]], told: "Calibration") -> None:
    """The files that were asked for."""
    from interlock.system.files import write_file

    for path, make in wanted:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, make(told).encode(errors="replace"), sync=False)
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def show(told: "Calibration", *, json: bool) -> None:
    from interlock.calibrate.text import scorecard_text

    if json:
        sys.stdout.write(harmless(whole(told)))
        return
    for line in scorecard_text(told.scorecard):
        say(line)


def leaks_told(campaign: "Campaign", scenario: "Scenario", root: Path) -> bool:
    """Whether words of the truth are in what was written for agents; each is told."""
    from interlock.journal.database import reading
    from interlock.rca.calibration.blind_run import leaks_of

    found = 0
    for number in campaign.plan.numbers:
        if not campaign.store(number).exists():
            continue
        with reading(campaign.store(number)) as connection:
            for leak in leaks_of(connection, number, scenario, root):
                found += 1
                tell(f"leak: {leak.where}: {leak.kind} of {leak.subject}: {leak.text[:80]!r}")
    tell(f"{counted(found, 'leak', 'leaks')} in what agents were shown")
    return found > 0


def leave(
    done: "CampaignResult", card: "Scorecard", gates: Sequence[Gate], *, leaking: bool
) -> None:
    """End the command: what broke off goes before what is not good enough."""
    if not done.whole and done.sat is not None:
        exit_with(done.sat)
    if leaking:
        raise typer.Exit(ExitCode.FINDINGS)
    missed = [told for metric, least in gates if (told := _missed(card, metric, least))]
    for each in missed:
        tell(each)
    raise typer.Exit(ExitCode.UNHEALTHY if missed else ExitCode.DONE)


def _missed(card: "Scorecard", metric: str, least: float) -> str:
    """The honest value counts: what was not measured is not good enough."""
    value = card.parts[0].row(metric).honest
    if value is not None and value >= least - 1e-12:
        return ""
    shown = "not measured" if value is None else f"{value:.3f}"
    return f"{metric} is {shown}, below {least:g}"


_SHOWN = 20


@app.command()
def tune(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Results of calibrate --out.")
    ],
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid", metavar="NAME=A..B/N", help="Values to try, or NAME=A,B,…; repeatable."
        ),
    ] = None,
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="FILE", help="Where the scenario is now.")
    ] = "",
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the best as [thresholds] of TOML."),
    ] = None,
    json: Json = False,
) -> None:
    """Try other thresholds on recorded calibrations. No agent is asked."""
    from interlock.calibrate.tune import TuningBench, points, ranked

    known, circuit, recorded = _recorded(results, scenario)
    tried = points(grid or [], circuit)
    train = [each for each in recorded if each.label.split == "train"]
    held_out = [each for each in recorded if each.label.split == "test"]
    bench = TuningBench(known, circuit, train or recorded)
    trials = ranked([bench.trial(point) for point in tried])
    usual = bench.trial({})
    test = TuningBench(known, circuit, held_out).trial(trials[0].thresholds) if held_out else None
    if write is not None:
        _write(write, trials[0].thresholds)
    told = {"on": "train" if train else "all cases", "recorded": len(recorded)}
    if json:
        document(
            told
            | {"now": _plain(usual), "trials": [_plain(each) for each in trials]}
            | {"held_out": _plain(test) if test else None, "written": str(write or "")}
        )
        return
    _show(trials, usual, test, told)
    if write is not None:
        say(f"written to {write}: put it into interlock.toml when you agree")


def _recorded(results: list[Path], source: str) -> "tuple[Scenario, Circuit, list[Recording]]":
    """All cases of all runs; they must be of one scenario, and still be there."""
    from interlock.api.work import load_circuit
    from interlock.calibrate.scorecard import read_calibration
    from interlock.calibrate.tune import recordings
    from interlock.journal.database import reading
    from interlock.journal.runs import find_run
    from interlock.rca.calibration.scenario import find_scenario

    found: list[Recording] = []
    scenario: Scenario | None = None
    circuit: Circuit | None = None
    for path in results:
        told = read_calibration(path)
        known = scenario or find_scenario(source or told.scorecard.about.source).scenario
        _refuse_other(known, told, path)
        scenario = known
        for store in told.scorecard.about.stores:
            if not Path(store).exists():
                raise SourceError(f"{path}: its run at {store} is gone; calibrate again")
            with reading(Path(store)) as connection:
                run = find_run(connection)
                circuit = circuit or load_circuit(run)
                found += recordings(connection, run.run_id, known, load_circuit(run))
    if scenario is None or circuit is None or not found:
        raise SourceError("there is no case that came to an end; calibrate without --token-budget")
    return scenario, circuit, found


def _refuse_other(scenario: "Scenario", told: "Calibration", path: Path) -> None:
    if told.scorecard.digest != scenario.digest:
        raise SourceError(
            f"{path}: made with other labels than {scenario.name!r} has now; calibrate again, "
            "or name the scenario as it was with --scenario"
        )


def _plain(trial: "Trial") -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(trial)
    return plain | {"accuracy": trial.accuracy}


def _show(
    trials: "list[Trial]", usual: "Trial", test: "Trial | None", told: dict[str, Any]
) -> None:
    from interlock.calibrate.text import figure

    names = list(trials[0].thresholds)
    head = ("", *names, "right", "accuracy", "95 %", "dispatches", "unknown", "changed")
    rows = [_row("now", [""] * len(names), usual)]
    for each in trials[:_SHOWN]:
        values = [f"{value:g}" for value in each.thresholds.values()]
        rows.append(_row("best" if each.is_best else "", values, each))
    runs = counted(told["recorded"], "recorded case", "recorded cases")
    say(f"{runs}, decided again on {told['on']}; no agent was asked")
    table(head, rows)
    if len(trials) > _SHOWN:
        say(f"and {len(trials) - _SHOWN} more, see --json")
    say(
        "best: no other is right more often at fewer dispatches; unknown: an answer was never given"
    )
    if test is not None:
        told_apart = f"{figure(test.accuracy)} ({test.right} of {test.known})"
        say(f"the first of them on the held-out cases: {told_apart}")


def _row(mark: str, values: list[str], trial: "Trial") -> list[object]:
    from interlock.calibrate.text import around, figure

    return [
        mark,
        *values,
        f"{trial.right} of {trial.known}",
        figure(trial.accuracy),
        around(trial.interval),
        trial.dispatches,
        trial.unknown,
        trial.changed,
    ]


def _write(path: Path, thresholds: dict[str, Any]) -> None:
    from interlock.system.files import write_file

    if path.exists():
        raise SourceError(f"{path} is there already; name a new file, and merge it by hand")
    lines = [f"{name} = {value!r}" for name, value in sorted(thresholds.items())]
    try:
        write_file(path, ("[thresholds]\n" + "\n".join(lines) + "\n").encode())
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
