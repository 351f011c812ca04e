"""Who answers for each role of a circuit, at what cost: settled before a run is touched.

From a run's configuration to one carrier per role, and what the work needs to know of them: which
roles are answered by a later command, which may be silent for how long, how many of each at once.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.carrier import (
    AnsweredLater,
    Ask,
    Carrier,
    JudgeAnswer,
    JudgesAnswers,
    KeepsTime,
    KnowsSteps,
    LimitsTime,
    Reply,
    TakesClock,
    WriteBriefing,
)
from interlock.agents.human import HumanCarrier
from interlock.agents.queries import QueryBroker
from interlock.agents.registry import AgentContext, FileOptions, ProgressGauge, build_agent
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import FAILURES, HUMAN, Circuit, Role, Step
from interlock.engine.circuit_file import NAMED_SHAPES, is_valid_name
from interlock.engine.shape import read_shape
from interlock.journal.address import DatabaseAddress, beside
from interlock.journal.events import Tell
from interlock.runtime.answers import decode_answer
from interlock.runtime.application import CaseHooks, DefaultHooks, find_application
from interlock.runtime.budget import BudgetLimits, read_limits
from interlock.runtime.notify import Notifier, build_notifier
from interlock.runtime.settings import RunConfig, Settings, open_answers, open_query_broker
from interlock.signals.batch import Phase
from interlock.system.clock import Clock, SystemClock
from interlock.system.errors import SourceError

PARALLEL = 8
"""Dispatches at once, if nobody says otherwise."""


class AgentPool(msgspec.Struct, frozen=True):
    """Who answers, how many at once, at what cost."""

    carriers: Mapping[str, Carrier]
    roles: Mapping[str, Role]
    parallel: int
    limits: BudgetLimits
    words: dict[str, str | int | float]
    """The limits, as users say them."""
    inbox: Carrier | None
    """Where questions about the run itself are answered, if anybody may ask them."""
    notifier: Notifier | None
    bell: bool
    clock: Clock
    gauge: ProgressGauge
    crash_folder: Path | None = None
    """Where the tracebacks of unexpected errors are written."""


def build_agent_pool(
    circuit: Circuit,
    config: RunConfig,
    *,
    settings: Settings,
    project: Path,
    db: DatabaseAddress,
    complain: Callable[[str], None],
    given: Mapping[str, Carrier] | None = None,
    clock: Clock | None = None,
) -> AgentPool:
    """The carriers of a run. Those `given` by role, as for Python functions, need no words in the
    configuration; `complain` is called for notifications that cannot be sent."""
    given = given or {}
    clock, gauge = clock or SystemClock(), ProgressGauge()
    application = find_application(circuit.name)
    limits = read_limits(config.budget, {each.role for each in circuit.steps.values()} - {HUMAN})
    own = {*application.own_roles, *given}
    words = assign_agents(circuit, config.agents, str(config.files.get("dispatch", "")), own)
    inbox = HumanCarrier(open_answers(db), clock, settings.inbox)
    carriers: dict[str, Carrier] = {HUMAN: inbox, **given}
    for each in given.values():
        if isinstance(each, TakesClock):
            each.clock = clock
    context = build_agent_context(
        circuit,
        config,
        settings,
        project,
        db,
        clock=clock,
        gauge=gauge,
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
        notifier=build_notifier(settings.notify, clock, complain),
        bell=settings.notify.bell,
        clock=clock,
        gauge=gauge,
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
    gauge: ProgressGauge | None = None,
    token_limit: int = 0,
) -> AgentContext:
    """What agents of a run are built from; whose roles they play is added for each."""
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
        phase_of=application.phase_of,
        gauge=gauge or ProgressGauge(),
        token_limit=token_limit,
    )


def assign_agents(
    circuit: Circuit,
    given: Mapping[str, str],
    dispatch: str = "",
    own: Collection[str] = (),
) -> dict[str, str]:
    """The words that name the agent of each role but the application's `own`; '' in `given` names
    the one for all others, else they are carried by `dispatch`."""
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
            f"who answers for {', '.join(missing)}? "
            f"Say it with --agent {missing[0]}=exec:COMMAND or --agent {missing[0]}=script:FILE, "
            "or with --dispatch file, batch-file, manual or mcp for all that have no agent"
        )
    return chosen


def split_agent(word: str) -> tuple[str, str]:
    """`ROLE=SPEC`, or `SPEC` alone for every role."""
    role, equals, spec = word.partition("=")
    return (role, spec) if equals and is_valid_name(role) else ("", word)


def assign_slots(circuit: Circuit, slots: Mapping[str, int]) -> dict[str, Role]:
    """The circuit's roles, with the slots a user gave them."""
    for name, places in slots.items():
        if name not in circuit.roles or places < 1:
            known = ", ".join(sorted(circuit.roles))
            raise SourceError(f"slots {name}={places}: give at least 1 to one of {known}")
    return {
        name: msgspec.structs.replace(role, slots=slots.get(name, role.slots))
        for name, role in circuit.roles.items()
    }


def roles_answered_later(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose answers come by a later command: nobody waits for them."""
    return _find_roles(carriers, AnsweredLater)


def roles_written_out(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose prompts are written out for a later command, not asked at the inbox."""
    return frozenset(
        role
        for role, each in carriers.items()
        if isinstance(each, AnsweredLater) and each.is_written_out
    )


def _find_roles(carriers: Mapping[str, Carrier], kind: Any) -> frozenset[str]:
    return frozenset(role for role, each in carriers.items() if isinstance(each, kind))


def add_timeouts(circuit: Circuit, carriers: Mapping[str, Carrier]) -> Circuit:
    """Steps without a timeout get one where a watcher that died would never be missed. Those that
    workers fetch have theirs counted by their carrier, from when somebody took them."""
    defaults = {
        role: each.default_timeout
        for role, each in carriers.items()
        if isinstance(each, LimitsTime)
    }
    fetched = _find_roles(carriers, KeepsTime)

    def limit(step: Step) -> float | None:
        if step.role in fetched:
            return None
        return defaults.get(step.role) if step.timeout is None else step.timeout

    steps = {
        name: msgspec.structs.replace(step, timeout=limit(step))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


_TEXT = read_shape(NAMED_SHAPES["text"])
_LATEST: tuple[Phase, ...] = ("investigation", "triage")


def connect_workers(
    carriers: Mapping[str, Carrier],
    circuit: Circuit,
    gauge: ProgressGauge,
    hooks: CaseHooks | None,
) -> None:
    """Tell the carriers that workers fetch from, and functions, what is asked and how it is judged.

    A worker learns at once why its answer is refused and can mend it; the loop would have taken the
    same answer as unreadable, and ended the attempt.
    """
    judge, brief = _make_judge(circuit, hooks or DefaultHooks()), _make_brief(circuit, gauge)
    for each in carriers.values():
        if isinstance(each, JudgesAnswers):
            each.steps, each.judge_answer, each.write_briefing = (
                _expect_objects(circuit.steps),
                judge,
                brief,
            )
        elif isinstance(each, KnowsSteps):
            each.steps = circuit.steps


def _expect_objects(steps: Mapping[str, Step]) -> dict[str, Step]:
    """A worker hands a message in as the text of an object."""
    return {
        name: msgspec.structs.replace(step, shape=_TEXT) if step.language == "text" else step
        for name, step in steps.items()
    }


def connect_notifier(carriers: Mapping[str, Carrier], tell: Tell) -> None:
    """Let carriers whose agents ask a human tell people so."""
    for each in carriers.values():
        queries = getattr(each, "queries", None)
        if isinstance(queries, QueryBroker):
            queries.notify = tell


def _make_judge(circuit: Circuit, hooks: CaseHooks) -> JudgeAnswer:
    def judge(ask: Ask, reply: Reply) -> RefusedAnswer | None:
        found = decode_answer(reply, circuit.steps[ask.step], ask.case_id, ask.execution)
        if (
            not isinstance(found, RefusedAnswer)
            and found.name not in FAILURES
            and ask.case is not None
        ):
            found = hooks.check_answer(ask.case_no, ask.case, found)
        return found if isinstance(found, RefusedAnswer) else None

    return judge


def _make_brief(circuit: Circuit, gauge: ProgressGauge) -> WriteBriefing:
    phase_of = find_application(circuit.name).phase_of

    def brief(run_id: int, asks: Sequence[Ask]) -> str:
        phases = {phase_of(ask.step) for ask in asks}
        phase = next((each for each in _LATEST if each in phases), _LATEST[-1])
        return gauge.render_briefing(circuit.name, run_id, phase, len(asks))

    return brief
