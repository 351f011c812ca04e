"""Agents that speak the Agent Client Protocol, well or badly, behind the carrier under test."""

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.acp.carrier import AcpAgent
from interlock.carriers.acp.settings import AcpSettings
from interlock.carriers.cli.carrier import AgentHome
from interlock.carriers.cli.ownership import WorkspaceOwner
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.queries import PermissionBroker
from interlock.system.clock import Clock, SystemClock
from tests.world.carrier_bench import Bench, ask

HERE = Path(__file__).parent
GOOD = HERE / "acp_agent.py"
PLAIN = HERE / "acp_plain.py"
ROGUE = HERE / "rogue_acp.py"
WORKSPACE = f"acp-test-{os.getpid()}"


def station(folder: Path, **environment: str) -> AgentHome:
    return AgentHome(folder / "work", folder, WorkspaceOwner(WORKSPACE), environment, lambda: "x")


def place_of(folder: Path, number: int = 1) -> Path:
    """Where the agent of that dispatch works, in a bench's world."""
    return folder / "work" / "1" / "0" / "work" / "work"


def make_acp_agent(
    folder: Path,
    scene: str,
    program: Path = PLAIN,
    clock: Clock | None = None,
    terms: AcpSettings | None = None,
    broker: PermissionBroker | None = None,
    **environment: str,
) -> AcpAgent:
    """The agent of that scene; its notes go to `folder/notes`, its work to `folder/work`."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    variables = {"PATH": os.environ["PATH"], "NOTES": str(notes), **environment}
    given = terms or AcpSettings()
    clocks = {"grace": 0.3, **given.clocks}
    return AcpAgent(
        [sys.executable, str(program), scene],
        station(folder, **variables),
        clock or SystemClock(),
        settings=msgspec.structs.replace(given, let_in=("NOTES", "WISH"), clocks=clocks),
        permissions=broker,
    )


async def reply_of(agent: AcpAgent, question: Ask | None = None) -> Reply:
    async with Bench(agent) as bench:
        bench.carrier.send([question or ask()])
        return (await bench.until(1))[0]


def noted(folder: Path, name: str) -> list[Any]:
    path = folder / "notes" / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
