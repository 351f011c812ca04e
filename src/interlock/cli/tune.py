"""The verb `tune`: what other thresholds would have made of recorded calibrations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.door import app
from interlock.cli.show import Json, counted, document, say, table
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.calibrate.scorecard import Calibration
    from interlock.calibrate.tune import Recording, Trial
    from interlock.engine.circuit import Circuit
    from interlock.rca.calibration.scenario import Scenario

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
    from interlock.calibrate.grid import points
    from interlock.calibrate.tune import TuningBench, ranked

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
    from interlock.api.project import open_run
    from interlock.calibrate.scorecard_json import read_calibration
    from interlock.calibrate.tune import recordings
    from interlock.journal.database import reading
    from interlock.journal.runs import find_run
    from interlock.rca.calibration.scenario_file import find_scenario

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
                circuit = circuit or open_run(run)
                found += recordings(connection, run.run_id, known, open_run(run))
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
    from interlock.calibrate.figures import figure

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
    from interlock.calibrate.figures import around, figure

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
    from interlock.system.safe_file import write_whole

    if path.exists():
        raise SourceError(f"{path} is there already; name a new file, and merge it by hand")
    lines = [f"{name} = {value!r}" for name, value in sorted(thresholds.items())]
    try:
        write_whole(path, ("[thresholds]\n" + "\n".join(lines) + "\n").encode())
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None
