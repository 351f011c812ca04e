"""Where the steps of a circuit stand on a picture: layer by layer, from the start to the ends.

Depth-first search finds the edges that lead back; they run at the right side. The others give each
node its layer by the longest way to it. Between two layers of nodes lies one of labels, so that a
label is a node as any other and nothing covers it. Barycentre sweeps untangle, and each layer is
placed by least squares with minimal distances. The same circuit always looks the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from interlock.engine.circuit import AGAIN, ANY, BACK, Circuit, Rule

NodeKind = Literal["start", "step", "gate", "writes", "healthy", "unhealthy", "helper"]

NODE_HEIGHT: Final = 50.0
LABEL_HEIGHT: Final = 16.0
_GAP: Final = 18.0
_APART: Final = 22.0
_MARGIN: Final = 16.0
_THIN: Final = 8.0
_LANE: Final = 16.0
_LOOP: Final = 18.0
"""The room at a box's side for an edge that leads to the box itself."""
_SWEEPS: Final = 16
_LETTER: Final = 7.7
_SMALL_LETTER: Final = 6.3
_LONGEST_NAME: Final = 30
_LONGEST_LABEL: Final = 26
START: Final = ""
"""The name of the mark before the first step."""


class Node(msgspec.Struct, frozen=True):
    """A box, by its middle."""

    name: str
    kind: NodeKind
    role: str
    x: float
    y: float
    width: float
    height: float


class Edge(msgspec.Struct, frozen=True):
    """A line from one box to another, through these points; `rules` lead that way."""

    source: str
    target: str
    rules: tuple[str, ...]
    label: str
    points: tuple[tuple[float, float], ...]
    label_at: tuple[float, float]
    dashed: bool
    backward: bool


class Picture(msgspec.Struct, frozen=True):
    """Everything that is drawn, and how large it is."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...]
    """What holds at every step, in words: drawn, it would be an edge from each."""


def lay_out(circuit: Circuit) -> Picture:
    """The circuit as a picture."""
    graph = _Graph(circuit)
    graph.order()
    graph.place()
    return graph.build_picture()


class _Arc(msgspec.Struct):
    """Rules from one node to another, drawn as one edge."""

    source: str
    target: str
    rules: list[str]
    dashed: bool
    way: list[str] = []
    """The nodes and bends that it goes through."""


class _Graph:
    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.kinds: dict[str, NodeKind] = {START: "start"}
        self.arcs: dict[tuple[str, str], _Arc] = {}
        self.notes: list[str] = []
        for step in circuit.steps.values():
            self.kinds[step.name] = "gate" if step.gate else "writes" if step.writes else "step"
        for name, healthy in circuit.ends.items():
            self.kinds[name] = "healthy" if healthy else "unhealthy"
        self._connect(START, self._find_target(circuit.start), "", dashed=False)
        for rule in circuit.rules:
            self._add_rule(rule)
        if circuit.otherwise is not None:
            target = self._find_target(str(circuit.otherwise.to))
            self.notes.append(f"no other rule: to {target}")
        self.back = self._find_back_arcs()
        self.ranks = self._rank()
        self.widths = {name: self._measure(name) for name in self.kinds}
        self.layers: list[list[str]] = []
        self._bend()
        self.x: dict[str, float] = {}

    def _add_rule(self, rule: Rule) -> None:
        if rule.to is None:
            return
        for name in rule.at:
            if name == ANY:
                where = "the same step" if rule.to == AGAIN else rule.to
                self.notes.append(f"any step, {', '.join(rule.on)}: {rule.id} to {where}")
                continue
            source = self._find_target(name)
            if rule.to == BACK:
                target = self._add_helper("back")
            else:
                target = source if rule.to == AGAIN else self._find_target(rule.to)
            self._connect(source, target, rule.id, dashed=rule.detour or rule.to == BACK)

    def _find_target(self, name: str) -> str:
        return name if name in self.kinds else self._add_helper(f"{name}?")

    def _add_helper(self, name: str) -> str:
        self.kinds.setdefault(name, "helper")
        return name

    def _connect(self, source: str, target: str, rule: str, *, dashed: bool) -> None:
        arc = self.arcs.setdefault((source, target), _Arc(source, target, [], dashed))
        arc.rules += [rule] if rule else []
        arc.dashed = arc.dashed and dashed

    def _find_back_arcs(self) -> set[tuple[str, str]]:
        """The edges that lead back to a node that the search is still below, without recursion:
        a circuit may have a hundred thousand steps in a row."""
        nexts: dict[str, list[str]] = {name: [] for name in self.kinds}
        for source, target in self.arcs:
            nexts[source].append(target)
        declared = {name: number for number, name in enumerate(self.kinds)}
        for targets in nexts.values():
            targets.sort(key=declared.__getitem__)  # as the author tells it
        back: set[tuple[str, str]] = set()
        state: dict[str, int] = {}
        for root in self.kinds:
            if root in state:
                continue
            state[root] = 1
            stack = [(root, iter(nexts[root]))]
            while stack:
                name, left = stack[-1]
                following = next(left, None)
                if following is None:
                    state[name] = 2
                    stack.pop()
                elif state.get(following) == 1:
                    back.add((name, following))
                elif following not in state:
                    state[following] = 1
                    stack.append((following, iter(nexts[following])))
        return back

    def _rank(self) -> dict[str, int]:
        """Even layers for nodes, the odd ones between are for labels; all ends at the bottom."""
        forward = [pair for pair in self.arcs if pair not in self.back]
        nexts: dict[str, list[str]] = {name: [] for name in self.kinds}
        degree = dict.fromkeys(self.kinds, 0)
        for source, target in forward:
            nexts[source].append(target)
            degree[target] += 1
        ranks = dict.fromkeys(self.kinds, 0)
        ready = [name for name in self.kinds if not degree[name]]
        while ready:
            name = ready.pop()
            for target in nexts[name]:
                ranks[target] = max(ranks[target], ranks[name] + 2)
                degree[target] -= 1
                if not degree[target]:
                    ready.append(target)
        ends = [name for name, kind in self.kinds.items() if kind in ("healthy", "unhealthy")]
        last = max(ranks[name] for name in self.kinds if name not in ends)
        return ranks | dict.fromkeys(ends, last + 2)

    def _measure(self, name: str) -> float:
        if name == START:
            return 16.0
        step = self.circuit.steps.get(name)
        letters = len(shorten_name(name)) * _LETTER
        if step is not None:
            letters = max(letters, len(shorten_name(step.role)) * _SMALL_LETTER)
        loop = 2 * _LOOP if (name, name) in self.arcs else 0.0
        return max(104.0, letters + 56.0) + loop

    def _bend(self) -> None:
        """Edges over several layers bend in each of them; their labels lie in the first."""
        for number, arc in enumerate(self.arcs.values()):
            if (arc.source, arc.target) in self.back or self._is_flat(arc):
                continue
            arc.way = [arc.source]
            for rank in range(self.ranks[arc.source] + 1, self.ranks[arc.target]):
                bend = f"\0{number}.{rank}"
                self.ranks[bend] = rank
                first = rank == self.ranks[arc.source] + 1
                label = format_label(arc.rules) if first else ""
                self.widths[bend] = len(label) * _SMALL_LETTER + 8 if label else _THIN
                arc.way.append(bend)
            arc.way.append(arc.target)
        self.layers = [[] for _ in range(max(self.ranks.values()) + 1)]
        for name, rank in self.ranks.items():
            self.layers[rank].append(name)

    def _is_flat(self, arc: _Arc) -> bool:
        """Whether it leads to the same layer, or up, and is no loop: from a missing step."""
        return self.ranks[arc.source] >= self.ranks[arc.target]

    def order(self) -> None:
        """Sweep down and up; keep the order with the fewest crossings."""
        above: dict[str, list[str]] = {name: [] for name in self.ranks}
        below: dict[str, list[str]] = {name: [] for name in self.ranks}
        for arc in self.arcs.values():
            for one, other in zip(arc.way, arc.way[1:], strict=False):
                below[one].append(other)
                above[other].append(one)
        self.above, self.below = above, below
        best, fewest = [list(layer) for layer in self.layers], self._count_crossings()
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            layers = self.layers[1:] if down else self.layers[-2::-1]
            for layer in layers:
                _sort_by_neighbours(layer, above if down else below, self._positions())
            crossings = self._count_crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
            if not fewest:
                break
        self.layers = best

    def _positions(self) -> dict[str, int]:
        return {name: place for layer in self.layers for place, name in enumerate(layer)}

    def _count_crossings(self) -> int:
        place = self._positions()
        found = 0
        for layer in self.layers[:-1]:
            ends = [
                number
                for name in layer
                for number in sorted(place[other] for other in self.below[name])
            ]
            found += _count_inversions(ends)
        return found

    def place(self) -> None:
        """Coordinates: each layer as near to its neighbours as the distances allow."""
        for layer in self.layers:
            x = 0.0
            for name in layer:
                self.x[name] = x + self.widths[name] / 2
                x += self.widths[name] + _APART
            shift = (x - _APART) / 2
            for name in layer:
                self.x[name] -= shift
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in self.layers if down else self.layers[::-1]:
                self._place_layer(layer, self.above if down else self.below)
        for layer in self.layers:
            self._place_layer(layer, {name: self.above[name] + self.below[name] for name in layer})

    def _place_layer(self, layer: Sequence[str], near: Mapping[str, Sequence[str]]) -> None:
        wanted, weights = list[float](), list[float]()
        for name in layer:
            pulls = [(self._weigh(name, other), self.x[other]) for other in near[name]]
            weight = sum(pull for pull, _ in pulls)
            wanted.append(sum(pull * x for pull, x in pulls) / weight if pulls else self.x[name])
            weights.append(weight or 1.0)
        widths = [self.widths[name] for name in layer]
        for name, x in zip(layer, _spread(wanted, weights, widths), strict=True):
            self.x[name] = x

    def _weigh(self, one: str, other: str) -> float:
        """How straight a piece of an edge shall be: the long ones most of all."""
        bends = (one not in self.kinds) + (other not in self.kinds)
        return (1.0, 2.0, 8.0)[bends]

    def build_picture(self) -> Picture:
        left = min(self.x[name] - self.widths[name] / 2 for name in self.x)
        self.x = {name: x - left + _MARGIN for name, x in self.x.items()}
        y, tops = _MARGIN, list[float]()
        for rank in range(len(self.layers)):
            height = _layer_height(rank, self.layers[rank])
            tops.append(y + height / 2)
            y += height + _GAP / 2
        nodes = {name: self._build_node(name, tops) for name in self.kinds}
        right = max(node.x + node.width / 2 for node in nodes.values())
        right = max(right, *(self.x[name] + self.widths[name] / 2 for name in self.x))
        edges, right = self._build_edges(nodes, tops, right)
        return Picture(
            round(right + _MARGIN, 1),
            round(y + _MARGIN, 1),
            tuple(nodes.values()),
            tuple(edges),
            tuple(self.notes),
        )

    def _build_node(self, name: str, tops: Sequence[float]) -> Node:
        step = self.circuit.steps.get(name)
        kind = self.kinds[name]
        height = 16.0 if kind == "start" else 34.0 if step is None else NODE_HEIGHT
        loop = 2 * _LOOP if (name, name) in self.arcs else 0.0
        return Node(
            name,
            kind,
            step.role if step else "",
            round(self.x[name], 1),
            round(tops[self.ranks[name]], 1),
            round(self.widths[name] - loop, 1),
            height,
        )

    def _build_edges(
        self, nodes: Mapping[str, Node], tops: Sequence[float], right: float
    ) -> tuple[list[Edge], float]:
        edges: list[Edge] = []
        lanes: list[list[tuple[float, float]]] = []
        labels: list[tuple[float, float, float]] = []
        beyond = right
        starts: dict[str, int] = {}
        for arc in self.arcs.values():
            source, target = nodes[arc.source], nodes[arc.target]
            label = format_label(arc.rules)
            if arc.way:
                middle = [(self.x[bend], tops[self.ranks[bend]]) for bend in arc.way[1:-1]]
                points = [
                    (source.x, source.y + source.height / 2),
                    *middle,
                    (target.x, target.y - target.height / 2),
                ]
                edges.append(_build_edge(arc, label, points, middle[0], backward=False))
                continue
            if arc.source == arc.target:
                side = source.x + source.width / 2
                up, down = source.y - source.height / 4, source.y + source.height / 4
                points = [(side, down), (side + _LOOP, down), (side + _LOOP, up), (side, up)]
                edges.append(_build_edge(arc, "", points, (side, up), backward=True))
                continue
            # Each that leaves or enters a box at its right side has a height of its own.
            place = starts[arc.source] = starts.get(arc.source, 0) + 1
            end = starts[arc.target] = starts.get(arc.target, 0) + 1
            leaves, enters = _side(source, place), _side(target, end)
            lane = _find_lane(lanes, min(leaves[1], enters[1]), max(leaves[1], enters[1]))
            x = right + _LANE * (lane + 1)
            points = [leaves, (x, leaves[1]), (x, enters[1]), enters]
            at = _find_free(labels, x + 5, (leaves[1] + enters[1]) / 2, len(label) * _SMALL_LETTER)
            beyond = max(beyond, at[0] + len(label) * _SMALL_LETTER)
            edges.append(_build_edge(arc, label, points, at, backward=True))
        return edges, beyond


def _build_edge(
    arc: _Arc,
    label: str,
    points: Iterable[tuple[float, float]],
    at: tuple[float, float],
    *,
    backward: bool,
) -> Edge:
    rounded = tuple((round(x, 1), round(y, 1)) for x, y in points)
    spot = (round(at[0], 1), round(at[1], 1))
    rules = tuple(arc.rules)
    return Edge(arc.source, arc.target, rules, label, rounded, spot, arc.dashed, backward)


def _side(node: Node, place: int) -> tuple[float, float]:
    """A point at the right side of a box; each further one is a little lower."""
    offset = (place * 9.0) % (node.height - 8) - node.height / 2 + 4
    return node.x + node.width / 2, node.y + offset


def _find_lane(lanes: list[list[tuple[float, float]]], top: float, bottom: float) -> int:
    """The first lane that is free between these heights; the heights are taken."""
    for number, taken in enumerate(lanes):
        if all(bottom + LABEL_HEIGHT < low or high + LABEL_HEIGHT < top for low, high in taken):
            taken.append((top, bottom))
            return number
    lanes.append([(top, bottom)])
    return len(lanes) - 1


def _find_free(
    taken: list[tuple[float, float, float]], x: float, y: float, width: float
) -> tuple[float, float]:
    """The first place at that height or below it where a label covers no other; it is taken."""
    while any(
        abs(y - other_y) < LABEL_HEIGHT and x < other_x + other_width and other_x < x + width
        for other_x, other_y, other_width in taken
    ):
        y += LABEL_HEIGHT
    taken.append((x, y, width))
    return x, y


def _layer_height(rank: int, layer: Sequence[str]) -> float:
    if rank % 2:
        return LABEL_HEIGHT
    return 16.0 if layer == [START] else NODE_HEIGHT


def _sort_by_neighbours(
    layer: list[str], near: Mapping[str, Sequence[str]], place: Mapping[str, int]
) -> None:
    """By the mean place of their neighbours; who has none stays where it is."""
    key = {
        name: sum(place[other] for other in near[name]) / len(near[name])
        if near[name]
        else float(place[name])
        for name in layer
    }
    layer.sort(key=lambda name: (key[name], place[name]))


def _count_inversions(numbers: Sequence[int]) -> int:
    """How many pairs stand the wrong way round, by merging."""
    if len(numbers) < 2:
        return 0
    half = len(numbers) // 2
    one, other = sorted(numbers[:half]), sorted(numbers[half:])
    found = _count_inversions(numbers[:half]) + _count_inversions(numbers[half:])
    at = 0
    for number in other:
        while at < len(one) and one[at] <= number:
            at += 1
        found += len(one) - at
    return found


def _spread(
    wanted: Sequence[float], weights: Sequence[float], widths: Sequence[float]
) -> list[float]:
    """The places nearest to the wanted ones, by least squares, at which nothing touches.

    Without the widths before each, the places must only not fall: pool adjacent violators.
    """
    before = 0.0
    offsets = []
    for number, width in enumerate(widths):
        if number:
            before += widths[number - 1] / 2 + _APART + width / 2
        offsets.append(before)
    blocks: list[tuple[float, float, int]] = []
    for want, offset, weight in zip(wanted, offsets, weights, strict=True):
        total, heavy, count = (want - offset) * weight, weight, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / heavy:
            last = blocks.pop()
            total, heavy, count = total + last[0], heavy + last[1], count + last[2]
        blocks.append((total, heavy, count))
    flat = [total / heavy for total, heavy, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(flat, offsets, strict=True)]


def shorten_name(name: str) -> str:
    """A name as a box shows it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def format_label(rules: Sequence[str]) -> str:
    """The rules of an edge, as its label: the first, and how many more."""
    if not rules:
        return ""
    name = rules[0]
    short = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
    return short if len(rules) == 1 else f"{short} +{len(rules) - 1}"
