"""`calibrate` and `tune`: scenarios whose truth is known, scorecards, comparisons, thresholds."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import DefaultVerb, ExitCode, app, exit_with
from interlock.cli.options import (
    BatchSize,
    CalibrateAgent,
    CalibrateDispatch,
    CalibrateParallel,
    CalibrateRoot,
    CheckLeaks,
    DispatchFlags,
    Edition,
    FailUnder,
    HtmlFile,
    JsonFile,
    MarkdownFile,
    PromptDir,
    Resume,
    RunCount,
    ScenarioOption,
    TokenBudget,
    Watching,
    Weights,
    read_thresholds,
)
from interlock.cli.output import (
    Db,
    Json,
    Sets,
    echo,
    echo_json,
    echo_note,
    echo_table,
    escape_json,
    open_project,
)
from interlock.system.errors import SourceError, UsageError
from interlock.system.text import plural

if TYPE_CHECKING:
    from interlock.calibrate.campaign import Campaign, CampaignRequest
    from interlock.calibrate.prices import Prices
    from interlock.calibrate.scorecard import Calibration, Scorecard
    from interlock.calibrate.tune import Trial
    from interlock.calibrate.work import CampaignResult
    from interlock.runtime.benchmark import AnyBenchmark, MetricTable, Scenario
    from interlock.runtime.settings import RunConfig

CIRCUIT = "rca"
"""The circuit whose benchmark is used."""

calibrate = typer.Typer(
    name="calibrate",
    cls=DefaultVerb,
    help="Measure an agent against failures whose causes are known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(calibrate)


def find_benchmark() -> "AnyBenchmark":
    """The benchmark of the circuit that is calibrated."""
    from interlock.runtime.application import find_application

    found = find_application(CIRCUIT).benchmark
    if found is None:
        raise SourceError(f"the application {CIRCUIT!r} has no benchmark")
    return found


@calibrate.command()
def scenarios(json: Json = False) -> None:
    """List the scenarios that come with Interlock."""
    benchmark = find_benchmark()
    rows = [
        benchmark.summarize_scenario(benchmark.find_scenario(name).scenario)
        for name in benchmark.list_scenarios()
    ]
    if json:
        return echo_json({"scenarios": rows})
    first, last = ("name", "cases", "test"), ("description",)
    own = [name for name in rows[0] if name not in (*first, *last, "digest")]
    shown = (*first, *own, *last)
    return echo_table(shown, [[row[name] for name in shown] for row in rows])


@calibrate.command()
def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A scenario file (JSON or YAML), or the name of a shipped one."
        ),
    ],
    json: Json = False,
) -> None:
    """Check a scenario's labels. Exit 6 if an error would make scores wrong."""
    benchmark = find_benchmark()
    scenario, unread = benchmark.find_scenario(file)
    findings = benchmark.check_scenario(scenario, unread)
    good = not any(finding.level == "error" for finding in findings)
    if json:
        echo_json(
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
            echo(f"{each.level}: {place}{each.message} [{each.id}]\n  {each.fix}")
        cases = plural(len(scenario.cases), "case", "cases")
        count = plural(len(findings), "finding", "findings")
        echo(f"{scenario.name}: {cases}, {count}, {'sound' if good else 'not sound'}")
    raise typer.Exit(ExitCode.DONE if good else ExitCode.FINDINGS)


@calibrate.command()
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A result of calibrate, as JSON.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another result of the same scenario.")],
    json: Json = False,
) -> None:
    """Compare two results, and say which differences are more than noise."""
    from interlock.calibrate.compare import compare as compare_calibrations
    from interlock.calibrate.scorecard import read_calibration
    from interlock.calibrate.text import render_comparison_text

    benchmark = find_benchmark()
    one, other = (read_calibration(path, benchmark.result_type) for path in (a, b))
    comparison = compare_calibrations(one, other, benchmark.metrics)
    if json:
        return echo_json(comparison)
    for line in render_comparison_text(comparison):
        echo(line)
    return None


@calibrate.command("from-history")
def from_history(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE...]",
            help="ReportPortal launches whose defect types are the truth; else your own reviews.",
        ),
    ] = None,
    rp_key: Annotated[
        Path | None,
        typer.Option("--rp-key", metavar="FILE", help="ReportPortal's token, in a 0600 file."),
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """How often the analyst names the right kind, by what your team decided."""
    from interlock.cli.analyst import format_evaluation
    from interlock.rca.analyze import read_launches
    from interlock.rca.learning import (
        evaluate_labels,
        list_issue_types,
        list_labels,
        load_judge,
    )
    from interlock.rca.taxonomy import TAXONOMY

    project = open_project(db)
    launches = read_launches(sources, "", rp_key, echo_note) if sources else []
    judge, labels = None, list_issue_types(launches, TAXONOMY)
    if project.has_database or not sources:
        with project.read() as connection:
            judge = load_judge(connection)
            labels = labels if sources else list_labels(connection)
    evaluation = evaluate_labels(labels, judge)
    if json:
        return echo_json({"evaluation": evaluation})
    for line in format_evaluation(evaluation):
        echo(line)
    return None


@calibrate.command("run")
def run(
    scenario: ScenarioOption,
    agent: CalibrateAgent = "",
    dispatch: CalibrateDispatch = None,
    parallel: CalibrateParallel = None,
    batch_size: BatchSize = None,
    token_budget: TokenBudget = None,
    runs: RunCount = 1,
    resume: Resume = False,
    edition: Edition = "v1",
    weights: Weights = "",
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    root: CalibrateRoot = None,
    watch: Watching = None,
    fail_under: FailUnder = None,
    check_leaks: CheckLeaks = False,
    html: HtmlFile = None,
    markdown: MarkdownFile = None,
    out: JsonFile = None,
    json: Json = False,
) -> None:
    """Run a scenario with known answers and score the agent. `run` may be left out."""
    from interlock.calibrate.campaign import CampaignRequest, begin_campaign, find_unfinished
    from interlock.calibrate.work import CampaignWork

    project, benchmark = open_project(), find_benchmark()
    gates = read_gates(fail_under or [], benchmark.metrics)
    request = CampaignRequest(
        agent=agent,
        dispatch=str(dispatch or ""),
        parallel=parallel,
        runs=runs,
        tokens=token_budget,
        edition=edition,
        files=DispatchFlags(
            root=root or Path(benchmark.root), watch=watch, batch_size=batch_size
        ).list_files(),
    )
    known = _read_scenario(benchmark, scenario)
    circuit, changes = project.prepare_circuit(CIRCUIT, read_thresholds(sets or ()), prompt_dir)
    if resume:
        campaign = find_unfinished(project, known.digest, request.agent, request.dispatch)
    else:
        campaign = begin_campaign(project, benchmark, known, circuit.source.circuit, request)
    work = CampaignWork(project, benchmark, known, campaign)
    result = work.work(circuit, changes, lambda config: _change_config(config, request))
    prices = _read_prices()
    calibration = work.score(result, source=scenario, weights=weights, prices=prices)
    forms = [
        (html, lambda: _render_page(calibration, benchmark)),
        (markdown, lambda: _render_bill(calibration, prices, benchmark)),
        (out, lambda: _render_json(calibration)),
    ]
    _write_files(forms)
    _show_scorecard(calibration, benchmark, json=json)
    leaking = check_leaks and _report_leaks(benchmark, campaign, known, request.root)
    _exit_with_result(result, calibration.scorecard, gates, leaking=leaking)


def _read_scenario(benchmark: "AnyBenchmark", source: str) -> "Scenario":
    scenario, unread = benchmark.find_scenario(source)
    benchmark.refuse_unusable(scenario)
    findings = benchmark.check_scenario(scenario, unread)
    faults = [each for each in findings if each.level == "error"]
    if faults:
        what = plural(len(faults), "fault", "faults")
        check = f"'interlock calibrate check {source}'"
        echo_note(f"note: {what} in the labels make scores wrong: {check}")
    found: Scenario = scenario
    return found


def _change_config(config: "RunConfig", request: "CampaignRequest") -> "RunConfig":
    """What may be said anew when a calibration goes on."""
    size = request.files.get("batch_size")
    files = config.files | ({"batch_size": size} if size is not None else {})
    limits = config.budget | ({} if request.tokens is None else {"tokens": request.tokens})
    return msgspec.structs.replace(config, files=files, budget=limits)


def _read_prices() -> "Prices":
    from interlock.calibrate.prices import CalibrateTables, read_prices

    tables = open_project().settings.read_tables(CalibrateTables)
    return read_prices(tables.calibrate.prices)


Gate = tuple[str, float]
"""A metric, and the least honest value that is good enough."""


def read_gates(words: Sequence[str], table: "MetricTable") -> list[Gate]:
    """`0.85` is of the overall metric, `M1=0.8` of M1."""
    known = [metric.id for metric in table.metrics]
    gates: list[Gate] = []
    for word in words:
        metric, equals, text = word.rpartition("=")
        metric = metric if equals else table.overall
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if metric not in known or not isfinite(value):
            raise UsageError(f"--fail-under {word!r}: write 0.85, or M1=0.8 up to {known[-1]}=…")
        gates.append((metric, value))
    return gates


def _render_page(calibration: "Calibration", benchmark: "AnyBenchmark") -> str:
    from interlock.calibrate.page import render_scorecard_html

    return render_scorecard_html(calibration, benchmark)


def _render_json(calibration: "Calibration") -> str:
    from interlock.calibrate.scorecard import render_calibration_json

    return render_calibration_json(calibration)


def _render_bill(calibration: "Calibration", prices: "Prices", benchmark: "AnyBenchmark") -> str:
    from interlock.calibrate.prices import render_cost_bill

    runs = [
        [record.result for record in records]
        for _, records in groupby(calibration.records, lambda record: record.run)
    ]
    return render_cost_bill(calibration.scorecard.scenario, runs, prices, benchmark)


def _write_files(forms: Iterable[tuple[Path | None, Callable[[], str]]]) -> None:
    """The files that were asked for."""
    from interlock.system.files import write_file

    for path, render in forms:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, render().encode(errors="replace"), sync=False)
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def _show_scorecard(calibration: "Calibration", benchmark: "AnyBenchmark", *, json: bool) -> None:
    from interlock.calibrate.text import render_scorecard_text

    if json:
        sys.stdout.write(escape_json(_render_json(calibration)))
        return
    for line in render_scorecard_text(calibration.scorecard, benchmark):
        echo(line)


def _report_leaks(
    benchmark: "AnyBenchmark", campaign: "Campaign", scenario: "Scenario", root: Path
) -> bool:
    """Whether words of the truth are in what was written for agents; each is reported."""
    count = 0
    for number in campaign.plan.numbers:
        if not campaign.database_of(number).exists():
            continue
        with campaign.open_run(number).read() as connection:
            for leak in benchmark.find_leaks(scenario, connection, number, root):
                count += 1
                echo_note(f"leak: {leak.where}: {leak.kind} of {leak.subject}: {leak.text[:80]!r}")
    echo_note(f"{plural(count, 'leak', 'leaks')} in what agents were shown")
    return count > 0


def _exit_with_result(
    result: "CampaignResult", card: "Scorecard", gates: Sequence[Gate], *, leaking: bool
) -> None:
    """End the command: what broke off goes before what is not good enough."""
    if not result.is_whole and result.last is not None:
        exit_with(result.last)
    if leaking:
        raise typer.Exit(ExitCode.FINDINGS)
    missed = [text for metric, least in gates if (text := _describe_miss(card, metric, least))]
    for text in missed:
        echo_note(text)
    raise typer.Exit(ExitCode.UNHEALTHY if missed else ExitCode.DONE)


def _describe_miss(card: "Scorecard", metric: str, least: float) -> str:
    """The honest value counts: what was not measured is not good enough."""
    value = card.parts[0].find_row(metric).honest
    if value is not None and value >= least - 1e-12:
        return ""
    shown = "not measured" if value is None else f"{value:.3f}"
    return f"{metric} is {shown}, below {least:g}"


_MAX_TRIALS = 20


@app.command()
def tune(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Results of calibrate --out.")
    ],
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="NAME=A..B/N",
            help="N values from A to B, or NAME=A,B,… for some; repeatable.",
        ),
    ] = None,
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="FILE", help="The scenario, if it has moved.")
    ] = "",
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Write the best thresholds as TOML."),
    ] = None,
    json: Json = False,
) -> None:
    """Try other thresholds on recorded calibrations. No agent is asked."""
    from interlock.calibrate.tune import (
        TuningBench,
        load_recordings,
        parse_grid,
        rank_trials,
        recommend,
    )

    benchmark = find_benchmark()
    recorded = load_recordings(benchmark, results, scenario)
    circuit, closing_steps = recorded.circuit, benchmark.closing_steps
    tried = parse_grid(grid or [], circuit)
    train, held_out = recorded.of_split("train"), recorded.of_split("test")
    bench = TuningBench(circuit, train or recorded.recordings, closing_steps)
    usual = bench.try_point({})
    trials = rank_trials([bench.try_point(point) for point in tried], usual)
    test_bench = TuningBench(circuit, held_out, closing_steps) if held_out else None
    advised = recommend(trials, test_bench)
    test = test_bench.try_point(advised.thresholds) if test_bench and advised else None
    if write is not None and advised is not None:
        _write_thresholds(write, advised.thresholds)
    written = write if advised is not None else None
    basis = {"on": "train" if train else "all cases", "recorded": len(recorded.recordings)}
    if json:
        echo_json(
            basis
            | {"now": _encode_trial(usual), "trials": [_encode_trial(each) for each in trials]}
            | {"advised": advised.thresholds if advised else None}
            | {"held_out": _encode_trial(test) if test else None, "written": str(written or "")}
        )
        return
    _show_trials(trials, usual, basis)
    _show_advice(advised, test)
    if written is not None:
        echo(f"written to {written}: copy it into interlock.toml if you agree")
    elif write is not None:
        echo(f"{write} was not written")


def _encode_trial(trial: "Trial") -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(trial)
    return plain | {"accuracy": trial.accuracy}


def _show_advice(advised: "Trial | None", test: "Trial | None") -> None:
    from interlock.calibrate.text import format_number

    if advised is None:
        echo("advice: keep the thresholds of now; every other point tried loses something")
        return
    values = ", ".join(f"{name}={value:g}" for name, value in advised.thresholds.items())
    echo(f"advice: {values}")
    if test is not None:
        accuracy = f"{format_number(test.accuracy)} ({test.right} of {test.known})"
        echo(f"on the held-out cases: {accuracy}")


def _show_trials(trials: "list[Trial]", usual: "Trial", basis: dict[str, Any]) -> None:
    names = list(trials[0].thresholds)
    head = ("", *names, "right", "accuracy", "95 %", "misled", "dispatches", "unknown", "changed")
    rows = [_format_row("now", [""] * len(names), usual)]
    for each in trials[:_MAX_TRIALS]:
        values = [f"{value:g}" for value in each.thresholds.values()]
        rows.append(_format_row("best" if each.is_best else "", values, each))
    runs = plural(basis["recorded"], "recorded case", "recorded cases")
    echo(f"{runs}, decided again on {basis['on']}; no agent was asked")
    echo_table(head, rows)
    if len(trials) > _MAX_TRIALS:
        echo(f"and {len(trials) - _MAX_TRIALS} more, see --json")
    echo("best: nothing is lost against now, and no other such point is better with less asking")
    echo("misled: taken for a known cause that it does not have; unknown: never answered")


def _format_row(mark: str, values: list[str], trial: "Trial") -> list[object]:
    from interlock.calibrate.text import format_interval, format_number

    return [
        mark,
        *values,
        f"{trial.right} of {trial.known}",
        format_number(trial.accuracy),
        format_interval(trial.interval),
        trial.misled,
        trial.dispatches,
        trial.unknown,
        trial.changed,
    ]


def _write_thresholds(path: Path, thresholds: dict[str, Any]) -> None:
    from interlock.system.files import write_file

    if path.exists():
        raise SourceError(f"{path} exists already; name a new file and merge it by hand")
    lines = [f"{name} = {value!r}" for name, value in sorted(thresholds.items())]
    try:
        write_file(path, ("[thresholds]\n" + "\n".join(lines) + "\n").encode())
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
