"""Draw a circuit: a Mermaid flowchart, or a table for the terminal.

Nothing is judged: a target that does not exist is drawn with a question mark.
"""

from collections.abc import Iterator

from interlock.engine.circuit import AGAIN, ANY, ARTIFACT, BACK, Circuit, Rule, Step
from interlock.engine.expression import Expression
from interlock.system.text import shorten

_ESCAPES = {"#": "#35;", '"': "#quot;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
_STYLES = """\
    classDef gate fill:#fff4d6,stroke:#b07d00,color:#222
    classDef writes fill:#fde2e2,stroke:#b3261e,color:#222
    classDef healthy fill:#e0f2e3,stroke:#2e7d32,color:#222
    classDef unhealthy fill:#eeeeee,stroke:#616161,color:#222
    classDef helper fill:#ffffff,stroke:#9e9e9e,color:#616161,stroke-dasharray:3 3"""
_MAX_LABEL = 80


def draw(circuit: Circuit) -> str:
    """Return a Mermaid flowchart: gates are hexagons, outside writes have double sides."""
    return "\n".join(["flowchart TD", *_Chart(circuit).render_lines(), _STYLES, ""])


class _Chart:
    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        names = [*circuit.steps, *circuit.ends]
        self.ids = {name: f"n{index}" for index, name in enumerate(names)}
        self.helpers: dict[str, str] = {}

    def render_lines(self) -> Iterator[str]:
        yield f"    start(( )) --> {self._find_id(self.circuit.start)}"
        yield from (self._render_step(step) for step in self.circuit.steps.values())
        for name, healthy in self.circuit.ends.items():
            style = "healthy" if healthy else "unhealthy"
            yield f'    {self.ids[name]}(["{escape_mermaid(name)}"]):::{style}'
        edges = [edge for rule in self.circuit.rules for edge in self._render_edges(rule)]
        if self.circuit.otherwise is not None:
            source = self._add_helper("no other rule")
            edges.append(self._render_edge(source, self.circuit.otherwise, source))
        yield from edges
        for text, helper in self.helpers.items():
            yield f'    {helper}["{escape_mermaid(text)}"]:::helper'

    def _render_step(self, step: Step) -> str:
        label = f'"{escape_mermaid(step.name)}<br/>{escape_mermaid(step.role)}"'
        if step.gate:
            return f"    {self.ids[step.name]}{{{{{label}}}}}:::gate"
        if step.writes:
            return f"    {self.ids[step.name]}[[{label}]]:::writes"
        return f"    {self.ids[step.name]}[{label}]"

    def _render_edges(self, rule: Rule) -> Iterator[str]:
        for name in rule.at:
            source = self._add_helper("any step") if name == ANY else self._find_id(name)
            yield self._render_edge(source, rule, source)

    def _render_edge(self, source: str, rule: Rule, here: str) -> str:
        if rule.to == BACK:
            target = self._add_helper("back from the detour")
        else:
            target = here if rule.to in (AGAIN, None) else self._find_id(str(rule.to))
        arrow = "-.->" if rule.detour or rule.to in (BACK, None) or not rule.at else "-->"
        return f'    {source} {arrow}|"{escape_mermaid(_format_label(rule))}"| {target}'

    def _find_id(self, name: str) -> str:
        return self.ids[name] if name in self.ids else self._add_helper(f"{name}?")

    def _add_helper(self, text: str) -> str:
        return self.helpers.setdefault(text, f"h{len(self.helpers)}")


def draw_text(circuit: Circuit) -> str:
    """Return a table: the circuit's limits, then every step with its rules in their order."""
    rows = [*_render_heading(circuit), ""]
    for step in circuit.steps.values():
        rows += [_render_step_line(circuit, step), *_render_table(circuit, (step.name,)), ""]
    anywhere = _render_table(circuit, (ANY,))
    if anywhere:
        rows += ["at any step", *anywhere, ""]
    if circuit.otherwise is not None:
        rows += [f"otherwise -> {circuit.otherwise.to}{_format_notes(circuit.otherwise)}", ""]
    return "\n".join(rows)


def _render_heading(circuit: Circuit) -> Iterator[str]:
    yield f"{circuit.name}, version {circuit.version}, at most {circuit.max_steps} dispatches"
    ends = [name if healthy else f"{name} (unhealthy)" for name, healthy in circuit.ends.items()]
    yield f"ends: {', '.join(ends)}"
    if circuit.thresholds:
        values = [f"{name} = {value}" for name, value in circuit.thresholds.items()]
        yield f"thresholds: {', '.join(values)}"
    if circuit.loops:
        loops = [
            f"{loop.name} x {loop.max}{' per step' if loop.per_step else ''}"
            for loop in circuit.loops.values()
        ]
        yield f"loops: {', '.join(loops)}"


def _render_step_line(circuit: Circuit, step: Step) -> str:
    words = [f"{'*' if step.name == circuit.start else ' '} {step.name}: {step.role}"]
    words += ["gate"] * step.gate + ["writes"] * step.writes
    words += [f"judges {', '.join(step.judges)}"] * bool(step.judges)
    words.append(f"timeout {step.timeout:g} s" if step.timeout else "no timeout")
    return ", ".join(words)


def _render_table(circuit: Circuit, at: tuple[str, ...]) -> list[str]:
    """Return aligned rows: signal, guard, target, rule."""
    rules = [rule for rule in circuit.rules if set(rule.at) & set(at)]
    cells = [
        (
            ", ".join(rule.on),
            f"when {rule.guard.text}" if rule.guard else "",
            f"-> {rule.to}" if rule.to else "adds",
            f"[{rule.id}]{_format_notes(rule)}",
        )
        for rule in rules
    ]
    widths = [max((len(row[column]) for row in cells), default=0) for column in range(3)]
    return [
        "    "
        + "  ".join([*(row[column].ljust(widths[column]) for column in range(3)), row[3]]).rstrip()
        for row in cells
    ]


def _format_notes(rule: Rule) -> str:
    words = [f"loop {rule.loop}"] * bool(rule.loop) + ["detour"] * rule.detour
    words += [f"adds {', '.join(map(_format_addition, rule.adds.items()))}"] * bool(rule.adds)
    words += [f"hold {rule.hold}"] * bool(rule.hold) + [f"release {rule.release}"] * bool(
        rule.release
    )
    note = f" ({'; '.join(words)})" if words else ""
    return f"{note}  # {rule.why}" if rule.why else note


def _format_addition(item: tuple[str, object]) -> str:
    name, value = item
    return f"{name} = {value.text if isinstance(value, Expression) else repr(value)}"


def _format_label(rule: Rule) -> str:
    signals = "" if rule.on in ((ARTIFACT,), ()) else f" on {', '.join(rule.on)}"
    guard = f": {rule.guard.text}" if rule.guard else ""
    loop = f" (loop {rule.loop})" if rule.loop else ""
    adds = f" (adds {', '.join(rule.adds)})" if rule.to is None else ""
    return shorten(f"{rule.id}{signals}{guard}{loop}{adds}", _MAX_LABEL)


def escape_mermaid(text: str) -> str:
    """Return text that Mermaid shows unchanged."""
    return "".join(_ESCAPES.get(sign, sign) for sign in " ".join(text.split()))
