"""The verb `respond`: the agent's side of the file protocol."""

import asyncio
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.door import ExitCode, app
from interlock.cli.show import Json, document, tell

if TYPE_CHECKING:
    from interlock.testing.responder.answer import Hire
    from interlock.testing.responder.responder import Responder, ResponderCounts

_USUAL = (Path(".interlock") / "runs", Path(".asterisk"))


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
        str, typer.Option("--agent", help="Who answers: exec:COMMAND or script:FILE.")
    ] = "",
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, help="How many workers at once.")
    ] = 4,
    once: Annotated[bool, typer.Option("--once", help="Leave when nothing waits.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long one answer may take: 90s, 10m.")
    ] = "10m",
    json: Json = False,
) -> None:
    """Answer signals that wait in files, with any command. Prompt on stdin, JSON on stdout."""
    from interlock.engine.format import seconds_of
    from interlock.testing.responder.answer import Answerer
    from interlock.testing.responder.batch import Notes
    from interlock.testing.responder.lookout import SignalFinder
    from interlock.testing.responder.responder import Responder

    hire = _hire(agent)
    seconds = seconds_of(timeout)
    paths = [path] if path else list(_USUAL)
    if not any(each.exists() for each in paths):
        tell(f"nothing at {' or '.join(map(str, paths))} yet")

    async def work() -> int:
        lookout = SignalFinder(paths, tell)
        answerer = Answerer(hire, seconds, lookout)
        responder = Responder(lookout, answerer, Notes(lookout, _now), parallel=parallel, tell=tell)
        return await _work(responder, once=once, json=json)

    raise typer.Exit(asyncio.run(work()))


def _hire(spec: str) -> "Hire":
    from interlock.agents.specs import agent
    from interlock.system.clock import SystemClock
    from interlock.system.errors import SourceError

    if not spec:
        raise SourceError("who answers? Say it with --agent exec:COMMAND")
    agent(spec, SystemClock())
    return lambda named: agent(spec, SystemClock(), {**os.environ, **named})


async def _work(responder: "Responder", *, once: bool, json: bool) -> int:
    """Until it ends or a signal comes; the exit code."""
    stopped: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        stopped.append(number)
        responder.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    tally = await responder.work(once=once)
    if json:
        document(msgspec.structs.asdict(tally))
    return 128 + stopped[0] if stopped else _exit(tally)


def _exit(tally: "ResponderCounts") -> ExitCode:
    if tally.failed:
        return ExitCode.FAILED
    return ExitCode.BUDGET if tally.budget_spent else ExitCode.DONE


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
