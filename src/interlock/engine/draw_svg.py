"""A circuit as SVG: the layout's boxes and edges, as text.

Every box has a place for a number, which pages fill with the cases that stand there. Without a
style of its own the picture takes that of the page it is in.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from interlock.engine.circuit import Circuit
from interlock.engine.layout import Edge, Node, Picture, lay_out, shorten_name

_STYLE: Final = """\
svg { font: 13px system-ui, sans-serif; background: #fff; }
.node rect, .node polygon { fill: #f6f7fa; stroke: #8b94a5; }
.node.gate polygon { fill: #fff4d6; stroke: #b07d00; }
.node.writes rect { fill: #fde9eb; stroke: #b3202f; }
.node.healthy rect { fill: #e0f2e3; stroke: #14713c; }
.node.unhealthy rect { fill: #eeeeee; stroke: #616161; }
.node.helper rect { fill: #fff; stroke-dasharray: 3 3; }
.node.start circle { fill: #171a21; }
.name { font-weight: 600; fill: #171a21; } .role { font-size: 11.5px; fill: #5a6272; }
.edge path { fill: none; stroke: #8b94a5; stroke-width: 1.4; }
.edge.dashed path { stroke-dasharray: 5 4; stroke-width: 1.1; } .edge.back path { stroke: #b9c0cc; }
.label, .note { font-size: 11px; fill: #5a6272; }
.label { paint-order: stroke; stroke: #fff; stroke-width: 4px; }
.count { display: none; } marker path { fill: #8b94a5; }
"""
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)
_LINE: Final = 16.0


def draw_svg(circuit: Circuit, *, styled: bool = True) -> str:
    """The circuit as one SVG element; `styled`, as a file that stands alone."""
    return render_svg(lay_out(circuit), circuit.name, styled=styled)


def render_svg(picture: Picture, name: str, *, styled: bool) -> str:
    notes = picture.notes if styled else ()
    height = picture.height + _LINE * len(notes) + (_LINE / 2 if notes else 0)
    size = f'viewBox="0 0 {picture.width:g} {height:g}"'
    size += f' width="{picture.width:g}" height="{height:g}"'
    label = f"Circuit {name}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="circuit" {size} {_describe(label)}>',
        f"<title>{escape(label)}</title><style>{_STYLE}</style>" if styled else "",
        _TIP,
        *(line for edge in picture.edges for line in _render_edge(edge)),
        *(line for node in picture.nodes for line in _render_node(node)),
        *_render_notes(notes, picture.height),
        "</svg>",
    ]
    return "\n".join(line for line in lines if line)


def _describe(label: str) -> str:
    return f'role="img" aria-label={quoteattr(label)}'


def _render_edge(edge: Edge) -> Iterator[str]:
    words = ["edge"] + ["dashed"] * edge.dashed + ["back"] * edge.backward
    path = _build_side_path(edge.points) if edge.backward else _build_path(edge.points)
    ends = f"data-from={quoteattr(edge.source)} data-to={quoteattr(edge.target)}"
    yield f'<g class="{" ".join(words)}" {ends}>'
    if edge.rules:
        yield f"<title>{escape(', '.join(edge.rules))}</title>"
    yield f'<path d="{path}" marker-end="url(#tip)"/>'
    if edge.label:
        x, y = edge.label_at
        anchor = "start" if edge.backward else "middle"
        place = f'x="{x:g}" y="{y + 4:g}" text-anchor="{anchor}"'
        yield f'<text class="label" {place}>{escape(edge.label)}</text>'
    yield "</g>"


def _build_path(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line downwards: each bend is passed straight down."""
    x, y = points[0]
    parts = [f"M{x:g} {y:g}"]
    for to_x, to_y in points[1:]:
        middle = (y + to_y) / 2
        parts.append(f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}")
        x, y = to_x, to_y
    return "".join(parts)


def _build_side_path(points: Sequence[tuple[float, float]]) -> str:
    """Out to the side, along a lane, and in again, with round corners."""
    (from_x, from_y), (lane, _), _, (to_x, to_y) = points
    if abs(from_y - to_y) < 1:
        to_y = from_y + 12
    turn = min(8.0, abs(to_y - from_y) / 2)
    down = turn if to_y > from_y else -turn
    return (
        f"M{from_x:g} {from_y:g}H{lane - turn:g}Q{lane:g} {from_y:g} {lane:g} {from_y + down:g}"
        f"V{to_y - down:g}Q{lane:g} {to_y:g} {lane - turn:g} {to_y:g}H{to_x:g}"
    )


def _render_node(node: Node) -> Iterator[str]:
    if node.kind == "start":
        yield (
            f'<g class="node start"><circle cx="{node.x:g}" cy="{node.y:g}" r="6"/>'
            "<title>Start</title></g>"
        )
        return
    yield f'<g class="node {node.kind}" data-place={quoteattr(node.name)}>'
    yield f"<title>{escape(f'{node.name}: {node.role}' if node.role else node.name)}</title>"
    left, top = node.x - node.width / 2, node.y - node.height / 2
    right, bottom = left + node.width, top + node.height
    if node.kind == "gate":
        side = f"{left:g},{node.y:g} {left + 12:g},{top:g} {right - 12:g},{top:g}"
        side += f" {right:g},{node.y:g} {right - 12:g},{bottom:g} {left + 12:g},{bottom:g}"
        yield f'<polygon points="{side}"/>'
    else:
        radius = node.height / 2 if node.kind in ("healthy", "unhealthy") else 8
        box = f'x="{left:g}" y="{top:g}" width="{node.width:g}" height="{node.height:g}"'
        yield f'<rect {box} rx="{radius:g}"/>'
    name = escape(shorten_name(node.name))
    at = node.y - 3 if node.role else node.y + 4.5
    yield f'<text class="name" x="{node.x:g}" y="{at:g}" text-anchor="middle">{name}</text>'
    if node.role:
        role = escape(shorten_name(node.role))
        place = f'x="{node.x:g}" y="{node.y + 14:g}" text-anchor="middle"'
        yield f'<text class="role" {place}>{role}</text>'
    yield (
        f'<g class="count"><rect x="{right - 34:g}" y="{top - 9:g}" width="40" height="18"'
        f' rx="9"/><text x="{right - 14:g}" y="{top + 4:g}" text-anchor="middle"></text></g>'
    )
    yield "</g>"


def _render_notes(notes: Sequence[str], top: float) -> Iterator[str]:
    for number, note in enumerate(notes):
        y = top + _LINE * (number + 0.5)
        yield f'<text class="note" x="16" y="{y:g}">{escape(note)}</text>'
