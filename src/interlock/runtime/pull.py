"""Wiring of work that is pulled: its carrier judges answers by the rules of the loop.

A worker learns at once why its answer is refused and can mend it; the loop would have taken the
same answer as unreadable, and ended the attempt.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from interlock.agents.carrier import Ask, Carrier, Reply
from interlock.agents.files.batch import single
from interlock.agents.files.briefer import PlainBriefer, ProgressGauge
from interlock.agents.mcp.carrier import Brief, Judge, McpCarrier
from interlock.agents.query_desk import QueryBroker
from interlock.agents.wiring_files import RCA
from interlock.engine.case import Refused
from interlock.engine.circuit import FAILURES, Circuit, Step
from interlock.engine.format import NAMED_SHAPES
from interlock.engine.shape import shape_of
from interlock.journal.events import Tell
from interlock.rca import papers as rca_papers
from interlock.runtime.answers import absorb
from interlock.runtime.application import CaseHooks, DefaultApplication
from interlock.signals.batch import Phase
from interlock.signals.briefing import render_briefing

_TEXT = shape_of(NAMED_SHAPES["text"])
_LATEST: tuple[Phase, ...] = ("investigation", "triage", "single")


def seat(
    carriers: Mapping[str, Carrier],
    circuit: Circuit,
    gauge: ProgressGauge,
    application: CaseHooks | None,
) -> None:
    """Tell the carriers that are pulled from what is asked, how it is judged, what is known."""
    judge, brief = _judge(circuit, application or DefaultApplication()), _brief(circuit, gauge)
    for each in carriers.values():
        if isinstance(each, McpCarrier):
            each.steps, each.judge, each.brief = _pulled(circuit.steps), judge, brief


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
        return render_briefing(briefer(run_id, 1, phase, len(asks)))

    return brief
