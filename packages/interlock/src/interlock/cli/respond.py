"""The verbs of the file protocol: `respond` is the agent's side, `conform` tests a watcher."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_note, echo_table
from interlock.system.errors import SourceError
from interlock.system.time import format_timestamp

if TYPE_CHECKING:
    from interlock.testing.conform.scenarios import ConformScenario
    from interlock.testing.conform.stage import ScenarioResult
    from interlock.testing.responder.responder import Responder, ResponderCounts


_DEFAULT_PATHS = (Path(".interlock") / "runs", Path(".asterisk"))


@app.command()
def respond(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A signal.json, a batch-manifest.json, or a folder with signals anywhere below; "
            "default .interlock/runs and .asterisk.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option("--agent", help="The agent: exec:COMMAND or script:FILE.")
    ] = "",
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, help="How many workers at once.")
    ] = 4,
    once: Annotated[bool, typer.Option("--once", help="Exit when nothing is waiting.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long one answer may take: 90s, 10m.")
    ] = "10m",
    json: Json = False,
) -> None:
    """Answer signals that wait in files, with any command. Prompt on stdin, JSON on stdout."""
    from interlock.system.time import parse_duration
    from interlock.testing.responder.inbox import SignalFinder
    from interlock.testing.responder.responder import (
        Answerer,
        Notes,
        Responder,
        make_agent_factory,
    )

    make_agent = make_agent_factory(agent, Path())
    seconds = parse_duration(timeout)
    paths = [path] if path else list(_DEFAULT_PATHS)
    if not any(each.exists() for each in paths):
        echo_note(f"nothing at {' or '.join(map(str, paths))} yet")

    async def work() -> int:
        finder = SignalFinder(paths, echo_note)
        answerer = Answerer(make_agent, seconds, finder)
        notes = Notes(finder, lambda: format_timestamp(time.time()))
        responder = Responder(finder, answerer, notes, parallel=parallel, report=echo_note)
        return await _respond(responder, once=once, json=json)

    raise typer.Exit(asyncio.run(work()))


async def _respond(responder: "Responder", *, once: bool, json: bool) -> int:
    """Respond until the work ends or a signal comes; return the exit code."""
    stopped: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        stopped.append(number)
        responder.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    tally = await responder.work(once=once)
    if json:
        echo_json(msgspec.structs.asdict(tally))
    return 128 + stopped[0] if stopped else _choose_exit_code(tally)


def _choose_exit_code(tally: "ResponderCounts") -> ExitCode:
    if tally.failed:
        return ExitCode.FAILED
    return ExitCode.BUDGET if tally.budget_spent else ExitCode.DONE


@app.command()
def conform(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After --, the watcher and its arguments. {root}, {workspace} and {here} become "
            "the signals' folder, the scratch workspace it starts in, and where you are now.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="This scenario; may be repeated.")
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long one answer may take: 10s, 5m.")
    ] = "10s",
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Scenarios at once.")] = 4,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Use this new folder, and keep files and logs there."),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Also write JUnit XML to this file.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the scenarios and exit.")] = False,
    json: Json = False,
) -> None:
    """Test a watcher against the file protocol. Exit 6 if it broke a rule."""
    from interlock.system.time import parse_duration
    from interlock.testing.conform import kit as report
    from interlock.testing.conform.kit import ConformKit
    from interlock.testing.conform.stage import Patience

    scenarios = _choose_scenarios(only or [])
    if show:
        return _echo_scenarios(scenarios, json=json)
    if junit and not junit.parent.is_dir():
        raise SourceError(f"{junit} cannot be written: there is no folder {junit.parent}")
    words = tuple(command or ())
    kit = ConformKit(words, Patience(parse_duration(timeout)), jobs, keep)
    before = signal.signal(signal.SIGTERM, _exit_on_sigterm)
    try:
        verdicts = kit.play(scenarios)
    finally:
        signal.signal(signal.SIGTERM, before)
    if junit:
        _write_junit(junit, report.render_junit(words, verdicts))
    if json:
        echo_json(report.build_record(words, verdicts))
    else:
        _echo_results(verdicts)
    raise typer.Exit(ExitCode.DONE if report.is_conforming(verdicts) else ExitCode.FINDINGS)


def _choose_scenarios(only: Sequence[str]) -> "list[ConformScenario]":
    from interlock.testing.conform.scenarios import SCENARIOS

    names = [name.strip() for word in only for name in word.split(",")]
    known = [each.name for each in SCENARIOS]
    for name in names:
        if name not in known:
            raise SourceError(f"--only {name!r}: there is {', '.join(known)}")
    return [each for each in SCENARIOS if not names or each.name in names]


def _echo_scenarios(scenarios: "Sequence[ConformScenario]", *, json: bool) -> None:
    if json:
        rows = [{"name": one.name, "checks": one.checks, "why": one.why} for one in scenarios]
        return echo_json({"scenarios": rows})
    return echo_table(
        ("scenario", "what must be seen"), [(each.name, each.checks) for each in scenarios]
    )


def _echo_results(verdicts: "Sequence[ScenarioResult]") -> None:
    echo_table(
        ("scenario", "verdict", "expected", "seen"),
        [
            (each.scenario, each.verdict, each.expected, " ".join(each.seen.split()))
            for each in verdicts
        ],
    )
    notes = [(each.scenario, note) for each in verdicts for note in each.notes]
    if notes:
        echo("\nnoted, not required:")
    for scenario, note in notes:
        echo(f"  {scenario}: {note}")
    counts = Counter(each.verdict for each in verdicts)
    echo(f"\n{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    for each in (one for one in verdicts if one.verdict == "fail"):
        echo(f"  {each.scenario} matters: {each.why}")


def _write_junit(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def _exit_on_sigterm(*_: Any) -> NoReturn:
    raise SystemExit(ExitCode.TERMINATED)
