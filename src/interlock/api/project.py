"""Who answers and what it may cost: from the words of a command line to a crew, ready to work.

Knows what a run keeps of its words, so that a later sitting needs none. Nothing here touches a run:
a crew is complete before one begins, or the user is told what is missing.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.show import tell
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.agents.carrier import Carrier, Clock
    from interlock.agents.files.batch import ProgressGauge
    from interlock.engine.circuit import Circuit, Role
    from interlock.journal.runs import Run
    from interlock.runtime.budget import BudgetLimits as LimitsOf
    from interlock.runtime.notify import Notifier
    from interlock.runtime.settings import Settings


class RateLimitPolicy(StrEnum):
    """What to do when all that is left waits for the end of a rate limit."""

    WAIT = "wait"
    LEAVE = "leave"


Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="[ROLE=]AGENT",
        help="Who answers a role, or all: claude, codex or another of `interlock agents`, "
        "exec:COMMAND, acp:COMMAND, script:FILE, or for rca basic; repeatable.",
    ),
]
Slots = Annotated[
    list[str] | None,
    typer.Option("--slots", metavar="ROLE=N", help="Dispatches of a role at once."),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=LIMIT",
        help="dispatches=N, tokens=N, money=X or time=2h, of the run, of a role "
        "(role.ROLE.tokens=N) or of a day (day.money=X); may be repeated.",
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option("--parallel", metavar="N", min=1, help="Dispatches of all roles at once."),
]


Limited = Annotated[
    RateLimitPolicy,
    typer.Option("--on-limit", help="At a rate limit: wait for its end, or leave with exit 75."),
]


class RunConfig(msgspec.Struct, frozen=True):
    """What a run was begun with, beside its circuit; a later sitting may change it."""

    agents: dict[str, str] = {}
    slots: dict[str, int] = {}
    budget: dict[str, str | int | float] = {}
    thresholds: dict[str, Any] = {}
    parallel: int | None = None
    files: dict[str, str | int] = {}
    terms: dict[str, Any] = {}
    after: int = 0
    """Numbers of dispatches come after this one, where runs of several stores share a root."""


def usual_options(usual: "Settings", thresholds: dict[str, Any]) -> RunConfig:
    """What a project's settings say about any run that begins."""
    from interlock.rca.rca import terms_of
    from interlock.runtime.budget import flat

    return RunConfig(
        agents=dict(usual.agents),
        slots=dict(usual.slots),
        budget=flat(usual.budget),
        thresholds=thresholds,
        parallel=usual.parallel,
        terms=msgspec.to_builtins(terms_of(usual, Path())),
    )


def open_run(found: "Run") -> "Circuit":
    """The circuit a run was begun with, thresholds and prompts included."""
    from interlock.runtime.circuits import Bundle

    bundle = msgspec.json.decode(found.text, type=Bundle)
    return bundle.open().circuit.with_thresholds(found.options.get("thresholds", {}))


def merged(
    before: RunConfig,
    agent: list[str] | None,
    slots: list[str] | None,
    budget: list[str] | None,
    parallel: int | None,
    files: dict[str, str | int],
) -> RunConfig:
    from interlock.cli.options import counts, pairs
    from interlock.runtime.agent_pool import split_agent

    limits: Mapping[str, str | int | float] = pairs(budget or (), "--budget")
    given = dict(split_agent(word) for word in agent or ())
    usual = before.agents
    if "dispatch" in files:
        if "" in given:
            raise SourceError("--dispatch is for roles without an agent, but --agent names all")
        usual = {role: spec for role, spec in usual.items() if role}
    return msgspec.structs.replace(
        before,
        agents=usual | given,
        files=before.files | files,
        slots=before.slots | counts(slots or (), "--slots"),
        budget={**before.budget, **limits},
        parallel=parallel or before.parallel,
    )


class AgentPool(msgspec.Struct, frozen=True):
    """Who answers, in how many places, at what cost: settled before a run is touched."""

    carriers: "Mapping[str, Carrier]"
    roles: "Mapping[str, Role]"
    parallel: int
    limits: "LimitsOf"
    words: dict[str, str | int | float]
    """The limits, as users say them."""
    desk: "Carrier | None"
    """Where questions about the run itself are answered, if anybody may ask them."""
    herald: "Notifier | None"
    bell: bool
    clock: "Clock"
    gauge: "ProgressGauge"


def crew_of(circuit: "Circuit", options: RunConfig, path: Path) -> AgentPool:
    from interlock.agents.files.batch import ProgressGauge
    from interlock.agents.human import HumanCarrier
    from interlock.agents.wiring_files import Files, file_carrier
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.agent_pool import PARALLEL, agents_by_role, carriers, roles_with
    from interlock.runtime.apps import programs_of
    from interlock.runtime.budget import read_limits
    from interlock.runtime.notify import herald
    from interlock.runtime.settings import answers_folder, read_settings
    from interlock.system.time import SystemClock

    clock, gauge = SystemClock(), ProgressGauge()
    usual = read_settings(Path())
    limits = read_limits(options.budget, {each.role for each in circuit.steps.values()} - {HUMAN})
    files = msgspec.convert(options.files, Files)
    ours = programs_of(circuit.name)
    specs = agents_by_role(circuit, options.agents, files.dispatch, ours)
    filed = file_carrier(files, circuit, clock, gauge, limits.run.tokens or 0, path)
    return AgentPool(
        carriers=carriers(specs, path, clock, filed, usual.inbox),
        roles=roles_with(circuit, options.slots),
        parallel=options.parallel or PARALLEL,
        limits=limits,
        words=options.budget,
        desk=HumanCarrier(answers_folder(path), clock, usual.inbox),
        herald=herald(usual.notify, clock, lambda problem: tell(f"note: {problem}")),
        bell=usual.notify.bell,
        clock=clock,
        gauge=gauge,
    )
