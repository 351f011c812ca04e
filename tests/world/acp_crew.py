"""Agents that speak the Agent Client Protocol, well or badly, behind the carrier under test."""

import os
import sys
from pathlib import Path
from typing import Any

from tests.world.bench import Bench, ask

from interlock.dispatch.acp.carrier import AcpAgent
from interlock.dispatch.acp.terms import Terms
from interlock.dispatch.carrier import Ask, Clock, Reply
from interlock.dispatch.permission_desk import PermissionDesk
from interlock.runner.clock import RealClock
from interlock.supervise.clocks import Clocks

HERE = Path(__file__).parent
GOOD = HERE / "acp_agent.py"
ROGUE = HERE / "rogue_acp.py"
QUICK = Clocks(grace=0.3)


def tag_of(ask: Ask) -> str:
    return f"test-{os.getpid()}:{ask.run_id}:{ask.dispatch_id}:x"


def crew(
    folder: Path,
    scene: str,
    program: Path = GOOD,
    clock: Clock | None = None,
    terms: Terms | None = None,
    clocks: Clocks = QUICK,
    desk: PermissionDesk | None = None,
    **environment: str,
) -> AcpAgent:
    """The agent of that scene; its notes go to `folder/notes`, its work to `folder/work`."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    variables = {"PATH": os.environ["PATH"], "NOTES": str(notes), **environment}
    given = terms or Terms()
    return AcpAgent(
        [sys.executable, str(program), scene],
        folder / "work",
        clock or RealClock(),
        variables,
        tag_of=tag_of,
        terms=Terms(given.permissions, given.files, given.permission_timeout, ("NOTES", "WISH")),
        clocks=clocks,
        desk=desk,
    )


async def reply_of(agent: AcpAgent, question: Ask | None = None) -> Reply:
    async with Bench(agent) as bench:
        bench.carrier.send([question or ask()])
        return (await bench.until(1))[0]


def noted(folder: Path, name: str) -> list[Any]:
    path = folder / "notes" / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
