"""Build the carriers of a run: one per role, with slots and limits.

The pool is built before a run is touched, so a missing agent leaves no trace. The functions below
it say which roles are answered by a later command.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from interlock.carriers.contract import Carrier
from interlock.carriers.human import HumanCarrier
from interlock.carriers.registry import AgentContext, FileOptions, build_agent
from interlock.engine.circuit import HUMAN, Circuit, Role
from interlock.engine.circuit_file import is_valid_name
from interlock.journal.address import DatabaseAddress, beside
from interlock.runtime.application import find_application
from interlock.runtime.budget import BudgetLimits, read_limits
from interlock.runtime.notify import Notifier
from interlock.runtime.settings import RunConfig, Settings, open_answers, open_query_broker
from interlock.system.clock import Clock, SystemClock
from interlock.system.errors import SourceError

PARALLEL = 8
"""The number of dispatches at once, unless the user sets another."""


class AgentPool(msgspec.Struct, frozen=True):
    """The carriers of a run, how many dispatches may be out at once, and what they may cost."""

    carriers: Mapping[str, Carrier]
    roles: Mapping[str, Role]
    parallel: int
    limits: BudgetLimits
    words: dict[str, str | int | float]
    """The limits as the user wrote them."""
    inbox: Carrier | None
    """The carrier that takes questions about the run itself; None if nobody can be asked."""
    bell: bool
    clock: Clock
    notifier: Notifier | None = None
    crash_folder: Path | None = None
    """The folder for tracebacks of unexpected errors."""


def build_agent_pool(
    circuit: Circuit,
    config: RunConfig,
    *,
    settings: Settings,
    project: Path,
    db: DatabaseAddress,
    given: Mapping[str, Carrier] | None = None,
    clock: Clock | None = None,
) -> AgentPool:
    """Build the carriers of a run; `given` carriers, such as Python functions, take the place of
    agents that the configuration names."""
    given = given or {}
    clock = clock or SystemClock()
    application = find_application(circuit.name)
    limits = read_limits(config.budget, {each.role for each in circuit.steps.values()} - {HUMAN})
    own = {*application.own_roles, *given}
    words = assign_agents(circuit, config.agents, str(config.files.get("dispatch", "")), own)
    inbox = HumanCarrier(open_answers(db), clock, settings.inbox)
    carriers: dict[str, Carrier] = {HUMAN: inbox, **given}
    context = build_agent_context(
        circuit,
        config,
        settings,
        project,
        db,
        clock=clock,
        token_limit=limits.run.tokens or 0,
    )
    for spec in dict.fromkeys(words.values()):
        roles = tuple(role for role, each in words.items() if each == spec)
        made = build_agent(spec, msgspec.structs.replace(context, roles=roles))
        carriers |= dict.fromkeys(roles, made)
    return AgentPool(
        carriers=carriers,
        roles=assign_slots(circuit, config.slots),
        parallel=config.parallel or PARALLEL,
        limits=limits,
        words=config.budget,
        inbox=inbox,
        bell=settings.notify.bell,
        clock=clock,
        crash_folder=beside(db, "crashes"),
    )


def build_agent_context(
    circuit: Circuit,
    config: RunConfig,
    settings: Settings,
    project: Path,
    db: DatabaseAddress,
    *,
    clock: Clock | None = None,
    token_limit: int = 0,
) -> AgentContext:
    """Build the context of a run's agents; each agent's roles are added later."""
    application = find_application(circuit.name)
    files = msgspec.convert(config.files, FileOptions)
    return AgentContext(
        project=project,
        db=db,
        clock=clock or SystemClock(),
        circuit=circuit.name,
        settings=settings.written,
        environment=os.environ,
        queries=open_query_broker(db, settings.inbox),
        files=files,
        file_names=application.file_names(Path(files.root)),
        token_limit=token_limit,
    )


def assign_agents(
    circuit: Circuit,
    given: Mapping[str, str],
    dispatch: str = "",
    own: Collection[str] = (),
) -> dict[str, str]:
    """Return the words that name the agent of each role, except the application's `own`.

    The agent given under "" answers for every role without one; otherwise `dispatch` carries its
    prompts.
    """
    roles = {step.role for step in circuit.steps.values()} - {*own}
    for role in given:
        if role and role not in roles and role not in own:
            raise SourceError(
                f"no step has the role {role!r}; roles are {', '.join(sorted(roles))}"
            )
    others = given.get("") or dispatch
    chosen = {role: given.get(role) or others for role in sorted(roles - {HUMAN})}
    if HUMAN in given and HUMAN not in own:
        chosen[HUMAN] = given[HUMAN]
    missing = [role for role, spec in chosen.items() if not spec]
    if missing:
        raise SourceError(
            f"no agent is named for {', '.join(missing)}; "
            f"use --agent {missing[0]}=exec:COMMAND or --agent {missing[0]}=script:FILE, "
            "or --dispatch file, batch-file, manual or mcp for all roles without an agent"
        )
    return chosen


def split_agent(word: str) -> tuple[str, str]:
    """Split `ROLE=SPEC`; the role is "" for a bare `SPEC`, which stands for every role."""
    role, equals, spec = word.partition("=")
    return (role, spec) if equals and is_valid_name(role) else ("", word)


def assign_slots(circuit: Circuit, slots: Mapping[str, int]) -> dict[str, Role]:
    """Return the circuit's roles with the user's slots."""
    for name, places in slots.items():
        if name not in circuit.roles or places < 1:
            known = ", ".join(sorted(circuit.roles))
            raise SourceError(f"slots {name}={places}: give at least 1 to one of {known}")
    return {
        name: msgspec.structs.replace(role, slots=slots.get(name, role.slots))
        for name, role in circuit.roles.items()
    }


def roles_answered_later(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """Return the roles whose answers come by a later command."""
    return frozenset(role for role, each in carriers.items() if each.traits.answered != "now")


def roles_written_out(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """Return the roles whose prompts are written out for a later command."""
    return frozenset(role for role, each in carriers.items() if each.traits.answered == "by hand")
