"""Who answers for each role of a circuit: carriers by role, and what a role needs of them.

Knows which roles wait for a later command, which lose patience, and how many places each has.

Wiring of work that is pulled: its carrier judges answers by the rules of the loop.

A worker learns at once why its answer is refused and can mend it; the loop would have taken the
same answer as unreadable, and ended the attempt.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.carrier import Ask, Carrier, Clock, Reply
from interlock.agents.files.batch import BatchCarrier, PlainBriefer, ProgressGauge, single
from interlock.agents.files.file import PATIENCE, FileCarrier, ManualCarrier
from interlock.agents.function import FunctionCarrier
from interlock.agents.human import EVERYBODY, AnswerPolicy, HumanCarrier
from interlock.agents.mcp.carrier import Brief, Judge, McpCarrier
from interlock.agents.queries import QueryBroker
from interlock.agents.specs import BASIC, agent
from interlock.agents.wiring_files import FILED, PULL, RCA
from interlock.engine.case import Refused
from interlock.engine.circuit import FAILURES, HUMAN, Circuit, Role, Step
from interlock.engine.circuit_file import NAMED_SHAPES, proper_name
from interlock.engine.shape import shape_of
from interlock.journal.events import Tell
from interlock.rca import briefing as rca_papers
from interlock.runtime.answers import absorb
from interlock.runtime.application import CaseHooks, DefaultApplication
from interlock.runtime.settings import answers_folder
from interlock.signals.batch import Phase
from interlock.system.errors import SourceError

PARALLEL = 8


def agents_by_role(
    circuit: Circuit,
    given: Mapping[str, str],
    dispatch: str = "",
    programs: Collection[str] = (),
) -> dict[str, str]:
    """Who answers each role of the circuit but those of our own `programs`; '' in `given` names
    the one for all others, else they are carried by `dispatch`."""
    roles = {step.role for step in circuit.steps.values()} - {*programs}
    for role in given:
        if role and role not in roles:
            raise SourceError(
                f"no step has the role {role!r}; roles are {', '.join(sorted(roles))}"
            )
    others = given.get("") or dispatch
    chosen = {role: given.get(role) or others for role in sorted(roles - {HUMAN})}
    if HUMAN in given:
        chosen[HUMAN] = given[HUMAN]
    _refuse_analyst(circuit, chosen)
    missing = [role for role, spec in chosen.items() if not spec]
    if missing:
        raise SourceError(
            f"who answers for {', '.join(missing)}? "
            f"Say it with --agent {missing[0]}=exec:COMMAND or --agent {missing[0]}=script:FILE, "
            "or with --dispatch file, batch-file, manual or mcp for all that have no agent"
        )
    return chosen


def _refuse_analyst(circuit: Circuit, chosen: Mapping[str, str]) -> None:
    """The built-in analyst knows one circuit, and judges nothing of its own."""
    if BASIC in chosen.values() and circuit.name != RCA:
        raise SourceError(f"the built-in analyst answers only for {RCA}, not for {circuit.name}")
    if chosen.get(HUMAN) == BASIC:
        raise SourceError(
            "the built-in analyst reviews nothing: use --review auto or human, or name who "
            "reviews with --dispatch or --agent human=AGENT"
        )


def split_agent(word: str) -> tuple[str, str]:
    """`ROLE=SPEC`, or `SPEC` alone for every role."""
    role, equals, spec = word.partition("=")
    return (role, spec) if equals and proper_name(role) else ("", word)


def carriers(
    specs: Mapping[str, str],
    db: Path,
    clock: Clock,
    filed: Callable[[str], Carrier] | None = None,
    policy: AnswerPolicy = EVERYBODY,
) -> dict[str, Carrier]:
    """A carrier per role; roles with the same words share one. `filed` makes those of files, and
    the `policy` says who may answer at the inbox."""
    made: dict[str, Carrier] = {}
    for spec in specs.values():
        if spec not in made:
            given = filed if spec in (*FILED, PULL) else None
            made[spec] = given(spec) if given else agent(spec, clock, db=db)
    by_role = {role: made[spec] for role, spec in specs.items()}
    by_role.setdefault(HUMAN, HumanCarrier(answers_folder(db), clock, policy))
    return by_role


def roles_by_hand(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose answers come by a later command: nobody sits and waits for them."""
    return _roles_of(carriers, HumanCarrier | ManualCarrier)


def written_by_hand(carriers: Mapping[str, Carrier]) -> frozenset[str]:
    """The roles whose asks are written out for a later command, not asked at the inbox."""
    return _roles_of(carriers, ManualCarrier)


def _roles_of(carriers: Mapping[str, Carrier], kind: Any) -> frozenset[str]:
    return frozenset(role for role, each in carriers.items() if isinstance(each, kind))


def with_patience(circuit: Circuit, carriers: Mapping[str, Carrier]) -> Circuit:
    """Steps without a timeout get one where a watcher that died would never be missed; those that
    are pulled have theirs counted by their carrier, from when somebody took them."""
    patient = {
        role
        for role, each in carriers.items()
        if isinstance(each, FileCarrier | BatchCarrier) and not isinstance(each, ManualCarrier)
    }
    pulled = _roles_of(carriers, McpCarrier)
    steps = {
        name: msgspec.structs.replace(step, timeout=_limit(step, patient, pulled))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


def _limit(step: Step, patient: Collection[str], pulled: Collection[str]) -> float | None:
    if step.role in pulled:
        return None
    return PATIENCE if step.role in patient and step.timeout is None else step.timeout


def roles_with(circuit: Circuit, slots: Mapping[str, int]) -> dict[str, Role]:
    """The circuit's roles, with the places a user gave them."""
    for name, places in slots.items():
        if name not in circuit.roles or places < 1:
            known = ", ".join(sorted(circuit.roles))
            raise SourceError(f"slots {name}={places}: give at least 1 to one of {known}")
    return {
        name: msgspec.structs.replace(role, slots=slots.get(name, role.slots))
        for name, role in circuit.roles.items()
    }


_TEXT = shape_of(NAMED_SHAPES["text"])
_LATEST: tuple[Phase, ...] = ("investigation", "triage", "single")


def seat(
    carriers: Mapping[str, Carrier],
    circuit: Circuit,
    gauge: ProgressGauge,
    application: CaseHooks | None,
) -> None:
    """Tell the carriers that are pulled from what is asked, how it is judged, what is known; and
    functions what their answers must look like."""
    judge, brief = _judge(circuit, application or DefaultApplication()), _brief(circuit, gauge)
    for each in carriers.values():
        if isinstance(each, McpCarrier):
            each.steps, each.judge, each.brief = _pulled(circuit.steps), judge, brief
        elif isinstance(each, FunctionCarrier):
            each.steps = circuit.steps


def _pulled(steps: Mapping[str, Step]) -> dict[str, Step]:
    """A worker hands a message in as the text of an object."""
    return {
        name: msgspec.structs.replace(step, shape=_TEXT) if step.language == "text" else step
        for name, step in steps.items()
    }


def cry(carriers: Mapping[str, Carrier], tell: Tell) -> None:
    """Let those whose agents ask a human tell people so."""
    for each in carriers.values():
        desk = getattr(each, "queries", None)
        if isinstance(desk, QueryBroker):
            desk.tell = tell


def pulled(carriers: Mapping[str, Carrier]) -> bool:
    """Whether anything waits until a worker comes for it."""
    return any(isinstance(each, McpCarrier) for each in carriers.values())


def _judge(circuit: Circuit, application: CaseHooks) -> Judge:
    def judge(ask: Ask, reply: Reply) -> Refused | None:
        found = absorb(reply, circuit.steps[ask.step], ask.case_id, ask.premises)
        if not isinstance(found, Refused) and found.name not in FAILURES and ask.case is not None:
            found = application.examine(ask.case_no, ask.case, found)
        return found if isinstance(found, Refused) else None

    return judge


def _brief(circuit: Circuit, gauge: ProgressGauge) -> Brief:
    briefer = PlainBriefer(circuit.name, gauge)
    phase_of: Callable[[str], Phase] = rca_papers.phase_of if circuit.name == RCA else single

    def brief(run_id: int, asks: Sequence[Ask]) -> str:
        phases = {phase_of(ask.step) for ask in asks}
        phase = next((each for each in _LATEST if each in phases), _LATEST[-1])
        return briefer(run_id, 1, phase, len(asks))

    return brief
