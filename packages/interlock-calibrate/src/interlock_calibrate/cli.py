"""The verbs `calibrate` and `tune`: scenarios, scorecards, comparisons, thresholds."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import DefaultVerb, ExitCode, app, exit_with
from interlock.cli.options import BatchSize, DispatchFlags, PromptDir, Watching, read_thresholds
from interlock.cli.output import (
    Json,
    Sets,
    echo,
    echo_json,
    echo_note,
    echo_table,
    escape_json,
    open_project,
)
from interlock.system.errors import SourceError
from interlock.system.text import plural

if TYPE_CHECKING:
    from interlock.runtime.settings import RunConfig
    from interlock_calibrate.benchmark import AnyBenchmark, Scenario
    from interlock_calibrate.campaign import CampaignRequest
    from interlock_calibrate.prices import Prices
    from interlock_calibrate.scorecard import Calibration, Gate, Scorecard
    from interlock_calibrate.tune import Trial
    from interlock_calibrate.work import CampaignResult


class DispatchMode(StrEnum):
    """The carriers of a calibration that use files or MCP workers."""

    FILE = "file"
    BATCH_FILE = "batch-file"
    MCP = "mcp"


ScenarioOption = Annotated[
    str,
    typer.Option(
        "--scenario", metavar="NAME|FILE", help="A shipped scenario, or a JSON or YAML file."
    ),
]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="stub, basic, exec:COMMAND, script:FILE, acp:COMMAND, claude…; default basic.",
    ),
]
Dispatch = Annotated[
    DispatchMode | None,
    typer.Option("--dispatch", help="Ask through files or MCP workers instead of an agent."),
]
Parallel = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        metavar="N",
        min=1,
        help="Dispatches at once, default 1; above 1, one case of each family is investigated.",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option("--token-budget", metavar="TOKENS", min=0, help="Tokens that each run may use."),
]
RunCount = Annotated[int, typer.Option("--runs", metavar="K", help="Number of independent runs.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the last unfinished calibration.")]
Edition = Annotated[
    str, typer.Option("--edition", metavar="v1|v2", help="Which rules and bounds to score with.")
]
Weights = Annotated[
    str, typer.Option("--weights", metavar="NAME", help="Weights of M19: original, february or v2.")
]
SignalRoot = Annotated[
    Path | None,
    typer.Option(
        "--root", metavar="DIR", help="Folder of the signals; default .asterisk/calibrate."
    ),
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        metavar="[METRIC=]X",
        help="Exit 3 if the metric (M19 if none is named) is below X. Repeatable.",
    ),
]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the scorecard as a page.")
]
MarkdownFile = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the cost bill as Markdown.")
]
JsonFile = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write everything as JSON.")
]

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
    """Return the benchmark of the circuit that is calibrated."""
    from interlock_calibrate.benchmark import find_benchmarks

    found = find_benchmarks()
    if CIRCUIT not in found:
        raise SourceError(
            f"no installed package has scenarios for {CIRCUIT!r}: pip install interlock-rca"
        )
    return found[CIRCUIT]


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
    from interlock_calibrate.compare import compare as compare_calibrations
    from interlock_calibrate.scorecard import read_calibration
    from interlock_calibrate.text import render_comparison_text

    benchmark = find_benchmark()
    one, other = (read_calibration(path, benchmark.result_type) for path in (a, b))
    comparison = compare_calibrations(one, other, benchmark.metrics)
    if json:
        return echo_json(comparison)
    for line in render_comparison_text(comparison):
        echo(line)
    return None


@calibrate.command("run")
def run(
    scenario: ScenarioOption,
    agent: Agent = "",
    dispatch: Dispatch = None,
    parallel: Parallel = None,
    batch_size: BatchSize = None,
    token_budget: TokenBudget = None,
    runs: RunCount = 1,
    resume: Resume = False,
    edition: Edition = "v1",
    weights: Weights = "",
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    root: SignalRoot = None,
    watch: Watching = None,
    fail_under: FailUnder = None,
    html: HtmlFile = None,
    markdown: MarkdownFile = None,
    out: JsonFile = None,
    json: Json = False,
) -> None:
    """Run a scenario with known answers and score the agent. `run` may be left out."""
    from interlock_calibrate.campaign import CampaignRequest, begin_campaign, find_unfinished
    from interlock_calibrate.scorecard import read_gate
    from interlock_calibrate.work import CampaignWork

    project, benchmark = open_project(), find_benchmark()
    gates = [read_gate(word, benchmark.metrics) for word in fail_under or ()]
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
    _write_files(calibration, prices, benchmark, html, markdown, out)
    _show_scorecard(calibration, benchmark, json=json)
    _exit_with_result(result, calibration.scorecard, gates)


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
    """Return the configuration with what a resumed calibration may change."""
    size = request.files.get("batch_size")
    files = config.files | ({"batch_size": size} if size is not None else {})
    limits = config.budget | ({} if request.tokens is None else {"tokens": request.tokens})
    return msgspec.structs.replace(config, files=files, budget=limits)


def _read_prices() -> "Prices":
    from interlock_calibrate.prices import CalibrateTables, read_prices

    tables = open_project().settings.read_tables(CalibrateTables)
    return read_prices(tables.calibrate.prices)


def _write_files(
    calibration: "Calibration",
    prices: "Prices",
    benchmark: "AnyBenchmark",
    html: Path | None,
    markdown: Path | None,
    out: Path | None,
) -> None:
    """Write the requested files."""
    from interlock_calibrate.page import render_scorecard_html
    from interlock_calibrate.prices import render_cost_bill
    from interlock_calibrate.scorecard import render_calibration_json

    if html is not None:
        _write_file(html, render_scorecard_html(calibration, benchmark))
    if markdown is not None:
        by_run = groupby(calibration.records, lambda record: record.run)
        runs = [[record.result for record in records] for _, records in by_run]
        name = calibration.scorecard.scenario
        _write_file(markdown, render_cost_bill(name, runs, prices, benchmark))
    if out is not None:
        _write_file(out, render_calibration_json(calibration))


def _write_file(path: Path, text: str) -> None:
    from interlock.system.files import write_file

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode(errors="replace"), sync=False)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def _show_scorecard(calibration: "Calibration", benchmark: "AnyBenchmark", *, json: bool) -> None:
    from interlock_calibrate.scorecard import render_calibration_json
    from interlock_calibrate.text import render_scorecard_text

    if json:
        sys.stdout.write(escape_json(render_calibration_json(calibration)))
        return
    for line in render_scorecard_text(calibration.scorecard, benchmark):
        echo(line)


def _exit_with_result(result: "CampaignResult", card: "Scorecard", gates: "Sequence[Gate]") -> None:
    """Exit with the code of an unfinished run, or else of a missed gate."""
    if not result.is_whole and result.last is not None:
        exit_with(result.last)
    missed = [text for gate in gates if (text := gate.describe_miss(card))]
    for text in missed:
        echo_note(text)
    raise typer.Exit(ExitCode.UNHEALTHY if missed else ExitCode.DONE)


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
    from interlock_calibrate.text import render_tuning_text
    from interlock_calibrate.tune import tune as try_thresholds

    found = try_thresholds(find_benchmark(), results, grid or [], scenario)
    advised = found.advised.thresholds if found.advised else None
    if write is not None and advised is not None:
        _write_thresholds(write, advised)
    if json:
        test = found.held_out
        echo_json(
            {
                "on": found.on,
                "recorded": found.recorded,
                "now": _encode_trial(found.usual),
                "trials": [_encode_trial(each) for each in found.trials],
                "advised": advised,
                "held_out": _encode_trial(test) if test else None,
                "written": str(write) if write and advised is not None else "",
            }
        )
        return
    for line in render_tuning_text(found):
        echo(line)
    if write is not None and advised is not None:
        echo(f"written to {write}: copy it into interlock.toml if you agree")
    elif write is not None:
        echo(f"{write} was not written")


def _encode_trial(trial: "Trial") -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(trial)
    return plain | {"accuracy": trial.accuracy}


def _write_thresholds(path: Path, thresholds: dict[str, Any]) -> None:
    from interlock.system.files import write_file

    if path.exists():
        raise SourceError(f"{path} exists already; name a new file and merge it by hand")
    lines = [f"{name} = {value!r}" for name, value in sorted(thresholds.items())]
    try:
        write_file(path, ("[thresholds]\n" + "\n".join(lines) + "\n").encode())
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
