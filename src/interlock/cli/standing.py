"""Why a case stands where it stands, in one line: whom it asks, what it comes after, how it ended.

Reads what is committed; knows nothing of how it is shown.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from interlock.core.circuit import FAILURES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.core.circuit import Circuit
    from interlock.store.history import CaseLine
    from interlock.store.runs import Loaded


def whys(
    connection: "Connection", circuit: "Circuit", run_id: int, lines: "Sequence[CaseLine]"
) -> Iterator[str]:
    """A reason for each of these cases of a run."""
    from interlock.store.runs import load_cases

    unsent = any(line.status == "open" and line.dispatch_id is None for line in lines)
    loaded = load_cases(connection, circuit, run_id) if unsent else ()
    cases = {each.case.case_id: each for each in loaded}
    for line in lines:
        if line.status != "open":
            yield line.state.reason or _ended(connection, circuit, line)
        elif line.dispatch_id is None:
            yield _turn(circuit, cases[line.case_id], cases)
        else:
            role = circuit.steps[line.step].role
            yield f"waits for the {role} (dispatch {line.dispatch_id})"


def _turn(circuit: "Circuit", waiting: "Loaded", cases: "dict[str, Loaded]") -> str:
    """Not asked yet: it comes after another case, or places are few."""
    for name in waiting.needs:
        before = cases[name].case
        if before.status == "open":
            return f"comes after {name}"
        if not circuit.ends.get(before.end):
            return f"comes after {name}, which did not end well ({before.end or before.status})"
    return "waits for its turn"


def _ended(connection: "Connection", circuit: "Circuit", line: "CaseLine") -> str:
    """The reason of the rule that ended it, and of the failure it answered."""
    from interlock.store.history import life_of

    last = life_of(connection, line.case_no)[-1]
    if last.decision is None:
        return ""
    rule = circuit.rule(last.decision.rule) or circuit.otherwise
    why = rule.why if rule else ""
    if last.decision.signal in FAILURES:
        why += f" ({last.decision.signal}: {last.answer.get('reason')})"
    return why.strip()
