"""What shipped circuits must do, as data (`behaviour/CIRCUIT.yaml`), and how they are held to it.

Knows how a table is read and played through the engine; knows no circuit.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.advance import advance, apply, open_case
from interlock.engine.case import OPEN, Case, Signal
from interlock.engine.circuit import ARTIFACT, FAILURES, Circuit
from interlock.runtime.circuits import list_installed_circuits
from interlock.system.yaml_text import read_yaml
from tests.world.change import CHANGE_FILE

SHIPPED: dict[str, Path] = {**list_installed_circuits(), "change": CHANGE_FILE}
_TABLES = Path(__file__).with_name("behaviour")
_ENDING = ("end", "context", "why", "rules", "holds")


class Behaviour(msgspec.Struct, frozen=True):
    """The answers a case gets, in order, each at the step where it must stand; then how it ends,
    what it knows by then, and, where two ways lead to the same end, the reason it is given or the
    rules that were taken. `holds` are the holds it took (+name) and released (-name)."""

    name: str
    answers: tuple[tuple[str, Any], ...]
    end: str
    context: Mapping[str, Any]
    why: str
    rules: tuple[str, ...]
    holds: tuple[str, ...]


def behaviours(circuit: str) -> list[Behaviour]:
    path = _TABLES / f"{circuit}.yaml"
    table = read_yaml(path.read_text(encoding="utf-8"), str(path)).value
    ways = table.pop("ways", {})
    return [_behaviour(name, list(_rows(rows, ways))) for name, rows in table.items()]


def difference(circuit: Circuit, wanted: Behaviour) -> str:
    """Where the circuit does something else; empty if it does as it must."""
    case = open_case(circuit, "T1", {"id": "T1", "topic": "a test"})
    taken: list[str] = []
    holds: list[str] = []
    for number, (step, answer) in enumerate(wanted.answers, 1):
        if case.status != OPEN or case.step != step:
            return f"before answer {number} it should stand at {step}, but {_standing(case)}"
        signal = signal_of(answer)
        decision = advance(circuit, case, signal)
        case = apply(circuit, case, decision, signal.data)
        taken.append(decision.rule)
        holds += [f"+{decision.hold}"] * bool(decision.hold)
        holds += [f"-{decision.release}"] * bool(decision.release)
    if case.end != wanted.end:
        return f"it should end as {wanted.end}, but {_standing(case)}"
    if case.context != wanted.context:
        return f"it should know {wanted.context}, but knows {case.context}"
    if wanted.rules and wanted.rules != tuple(taken):
        return f"it should be moved by {wanted.rules}, but was by {taken}"
    if wanted.holds != tuple(holds):
        return f"it should take and release {wanted.holds}, but did {holds}"
    rule = circuit.find_rule(decision.rule) or circuit.otherwise
    if wanted.why and (rule is None or rule.why != wanted.why):
        return f"the reason should be {wanted.why!r}, but is rule {decision.rule}"
    return ""


def signal_of(answer: Any) -> Signal:
    """A failure or a bare signal by its name, another signal with its data, or an artifact with
    those fields."""
    if isinstance(answer, str):
        return Signal(answer, {"reason": "a test"} if answer in FAILURES else {})
    if answer.keys() == {"signal", "data"}:
        return Signal(answer["signal"], answer["data"])
    return Signal(ARTIFACT, answer)


def _rows(rows: list[dict[str, Any]], ways: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows written out: `via` stands for the rows of a way, `times` repeats a row."""
    for row in rows:
        times = row.get("times", 1)
        plain = {key: value for key, value in row.items() if key != "times"}
        yield from list(_rows(ways[row["via"]], ways) if "via" in row else [plain]) * times


def _behaviour(name: str, rows: list[dict[str, Any]]) -> Behaviour:
    pairs = [next(iter(row.items())) for row in rows]
    ending = {key: value for key, value in pairs if key in _ENDING}
    answers = tuple((key, value) for key, value in pairs if key not in ending)
    return Behaviour(
        name,
        answers,
        ending["end"],
        ending.get("context", {}),
        ending.get("why", ""),
        tuple(ending.get("rules", ())),
        tuple(ending.get("holds", ())),
    )


def _standing(case: Case) -> str:
    if case.status == OPEN:
        return f"stands at {case.step}"
    return f"ended as {case.end}" if case.end else f"is stuck: {case.reason}"
