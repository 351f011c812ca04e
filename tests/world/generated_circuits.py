"""Circuits nobody thought of: small ones with every feature of the table, mostly unsound."""

import json
from typing import Any

from hypothesis import strategies as st

from interlock.engine.case import Signal
from interlock.engine.circuit import FAILURES, Circuit
from interlock.engine.circuit_file import CircuitSource, read_circuit
from interlock.engine.verify.routes import list_step_signals

FIELDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "minimum": 0, "maximum": 4},
        "y": {"type": "boolean"},
        "z": {"type": "string"},
    },
    "required": ["x", "y"],
}
ANSWER_GUARDS = [
    "x > 2",
    "x <= 2",
    "x == 0 or y",
    "y",
    "not y and x < 4",
    "has(z)",
    "has(z) and z == 'q'",
    "not has(z) or z != 'q'",
    "x >= limit",
    "z == 'q'",
]
CASE_GUARDS = ["loops.all < 1", "attempt > 1", "has(context.seen)", "x > 1 and loops.here >= 1"]
SPOKEN = ["artifact", "ask"]


@st.composite
def circuits(draw: st.DrawFn, guards: list[str] | None = None) -> CircuitSource:
    steps = [f"s{number}" for number in range(draw(st.integers(1, 4)))]
    named = ANSWER_GUARDS + CASE_GUARDS if guards is None else guards
    last = draw(st.sampled_from([None, None, "good", "bad", "bad", steps[-1]]))
    text = {
        "circuit": "made",
        "start": "s0",
        "ends": ["good", "bad"],
        "thresholds": {"limit": 3},
        "loops": {"all": draw(st.integers(0, 3)), "here": {"max": 2, "per": "step"}},
        "max_steps": draw(st.sampled_from([1, 5, 40, 400])),
        "steps": {name: draw(_steps()) for name in steps},
        "rules": draw(st.lists(_rules(steps, named), min_size=1, max_size=9)),
    } | ({"otherwise": last} if last else {})
    return read_circuit(json.dumps(text), "made.yaml")


def _steps() -> st.SearchStrategy[dict[str, Any]]:
    rest = {"answer": FIELDS, "timeout": "1m", "signals": SPOKEN}
    kinds: list[dict[str, Any]] = [
        {"role": "agent"},
        {"gate": True},
        {"role": "other", "writes": True},
    ]
    return st.sampled_from([{**kind, **rest} for kind in kinds])


@st.composite
def _rules(draw: st.DrawFn, steps: list[str], guards: list[str]) -> dict[str, Any]:
    """Guards and additions read the answer, so rules for failures have none."""
    at = st.lists(st.sampled_from(steps), min_size=1, unique=True)
    names = draw(st.sampled_from([SPOKEN, SPOKEN[:1], [*SPOKEN, *FAILURES], list(FAILURES)]))
    answered = names[-1] not in FAILURES
    return {
        "at": draw(st.one_of(at, st.just("ANY"))),
        "on": names,
        "when": draw(st.one_of(st.none(), st.sampled_from(guards))) if answered else None,
        "to": draw(st.sampled_from([*steps, *steps, "good", "bad", "AGAIN", "BACK"])),
        "loop": draw(st.sampled_from([None, "all", "all", "here"])),
        "detour": draw(st.sampled_from([False, False, True])),
        "adds": draw(st.sampled_from([{}, {"seen": 1}, {"seen": "=x" if answered else 0}])),
    }


def signals(circuit: Circuit, step: str) -> st.SearchStrategy[Signal]:
    """Anything that can legally come at a step."""
    given = {"x": st.integers(0, 4), "y": st.booleans()}
    answers = st.fixed_dictionaries(given, optional={"z": st.sampled_from(["", "q", "r"])})
    reasons = st.fixed_dictionaries({"reason": st.just("no luck")})
    return st.sampled_from(list_step_signals(circuit, step)).flatmap(
        lambda name: st.builds(Signal, st.just(name), reasons if name in FAILURES else answers)
    )
