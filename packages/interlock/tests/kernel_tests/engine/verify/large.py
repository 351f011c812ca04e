"""Large circuits of several kinds, to see how the work of a proof grows with their size."""

import random


def build_large(kind: str, size: int) -> str:
    """A sound circuit of about that many steps, as text."""
    return _HEAD + "\n".join(_KINDS[kind](size)) + _TAIL


def _step(number: int, more: str = "") -> str:
    return f"  s{number}: {{role: agent, timeout: 5m, answer: {_ANSWER}{more}}}"


def _build_chain(size: int) -> list[str]:
    """Each step goes on, or back by one while a loop lasts."""
    rules = []
    for number in range(size):
        target = f"s{number + 1}" if number + 1 < size else "done"
        rules += [
            f"  - {{at: s{number}, when: ok and n > 1, to: {target}}}",
            f"  - {{at: s{number}, when: not ok, to: s{max(0, number - 1)}, loop: again}}",
            f"  - {{at: s{number}, to: failed}}",
        ]
    return [*map(_step, range(size)), "rules:", *rules]


def _build_jumps(size: int) -> list[str]:
    """Jumps forward anywhere; guards read an earlier answer and what a rule added."""
    chance = random.Random(size)
    rules = ["  - {at: s0, adds: {x: =n}, to: s1}"]
    for number in range(1, size):
        onward = [f"s{chance.randint(number + 1, size - 1)}" if number + 1 < size else "done"]
        onward.append(f"s{number + 1}" if number + 1 < size else "done")
        rules += [
            f"  - {{at: s{number}, when: context.x > n and answers.s0.ok, to: {onward[0]}}}",
            f"  - {{at: s{number}, adds: {{x{number}: =n}}, to: {onward[1]}}}",
        ]
    return [*map(_step, range(size)), "rules:", *rules]


def _build_gates(size: int) -> list[str]:
    """A gate before each outside write, and a detour that is open to all of them."""
    steps, rules = [_step(0), "  help: {role: agent, timeout: 5m}"], []
    for number in range(1, size // 2):
        steps.append(f"  g{number}: {{gate: true, answer: approval, timeout: 1d}}")
        steps.append(_step(number, ", writes: true"))
        rules += [
            f"  - {{at: s{number - 1}, to: g{number}}}",
            f'  - {{at: g{number}, when: decision == "approve", to: s{number}}}',
            f"  - {{at: g{number}, to: failed}}",
        ]
    writers = [f"s{number}" for number in range(size // 2)]
    return [
        *steps,
        "rules:",
        f"  - {{at: [{', '.join(writers)}], on: rate-limit, detour: true, loop: again, to: help}}",
        "  - {at: ANY, on: rate-limit, to: failed}",
        "  - {id: back, at: help, to: BACK}",
        *rules,
        f"  - {{at: {writers[-1]}, to: done}}",
    ]


_ANSWER = "{properties: {ok: {type: boolean}, n: {type: integer}}, required: [ok, n]}"
_HEAD = """\
circuit: large
start: s0
max_steps: 100000
ends: {done: healthy, failed: unhealthy}
loops: {again: 2}
steps:
"""
_TAIL = """
  - {id: lost, at: ANY, on: [timeout, crash, unreadable], to: failed}
"""
_KINDS = {"chain": _build_chain, "jumps": _build_jumps, "gates": _build_gates}
KINDS = tuple(_KINDS)
