"""Find the ways through a circuit: the moves its rules allow, with detours and the way back.

The caller supplies which rules can be taken for a step and a signal. The second half finds paths,
cycles and longest paths in any directed graph with labelled edges.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from interlock.engine.circuit import AGAIN, BACK, FAILURES, RATE_LIMIT, WRONG_ROLE, Circuit, Rule
from interlock.engine.verify.finding import Hop

TakenRules = Callable[[str, str], Iterable[Rule]]
"""The rules that can be taken at a step on a signal, including the circuit's `otherwise`."""


class StepState(msgspec.Struct, frozen=True, order=True):
    """A step, and the step the latest open detour returns to ("" outside detours)."""

    step: str
    top: str = ""


Ways = dict[StepState, list[tuple[Hop, StepState]]]


def list_step_signals(circuit: Circuit, step: str) -> tuple[str, ...]:
    """Return the signals that can come at a step: the legal ones, and rarer failures with a row.

    A human neither crashes nor is rate-limited, so rows for all steps do not apply to gates.
    """
    gate = circuit.steps[step].gate
    rare = [
        name
        for name in FAILURES
        if any(not gate or step in rule.at for rule in circuit.find_rules(step, name))
    ]
    if circuit.otherwise and not gate:
        rare += [RATE_LIMIT, WRONG_ROLE]
    return tuple(dict.fromkeys((*circuit.list_legal_signals(step), *rare)))


def allow_any_rule(circuit: Circuit) -> TakenRules:
    """Allow every rule, whatever its guard says: the widest view of a circuit."""

    def taken(step: str, signal: str) -> Iterator[Rule]:
        yield from (rule for rule in circuit.find_rules(step, signal) if rule.to is not None)
        if circuit.otherwise:
            yield circuit.otherwise

    return taken


def find_routes(circuit: Circuit, taken: TakenRules) -> Ways:
    """Return all moves from every reachable place; steps without a way in come last."""
    found: Ways = {}
    places: dict[str, list[StepState]] = {}
    back: list[tuple[Hop, StepState]] = []
    for first in (circuit.start, *circuit.steps):
        waiting = [StepState(first)] if first in circuit.steps and first not in places else []
        while waiting:
            place = waiting.pop()
            if place in found:
                continue
            found[place] = []
            places.setdefault(place.step, []).append(place)
            for hop, rule in _list_hops(circuit, taken, place):
                if rule.to == BACK:
                    back.append((hop, place))
                    continue
                target = StepState(hop.to, place.step if rule.detour else place.top)
                found[place].append((hop, target))
                if hop.to in circuit.steps:
                    waiting.append(target)
    # A detour returns to a place that was visited when it was left, so none is new.
    for hop, place in back:
        found[place] += [(hop, origin) for origin in places[place.top]]
    return found


def resolve_target(rule: Rule, step: str, top: str) -> str:
    """Return the target of a rule at a step; "" for BACK where no detour is open."""
    if rule.to == AGAIN:
        return step
    return top if rule.to == BACK else str(rule.to)


def _list_hops(circuit: Circuit, taken: TakenRules, place: StepState) -> Iterator[tuple[Hop, Rule]]:
    for signal in list_step_signals(circuit, place.step):
        for rule in taken(place.step, signal):
            target = resolve_target(rule, place.step, place.top)
            if target in circuit.steps or target in circuit.ends:
                yield Hop(place.step, signal, rule.id, target), rule


Node = TypeVar("Node")
Label = TypeVar("Label")
Edges = Mapping[Node, Iterable[tuple[Label, Node]]]


SearchTree = dict[Node, tuple[Node, Label] | None]
"""Every node that a search reached, with the edge it came by; None for its starts."""


def search(starts: Iterable[Node], edges: Edges[Node, Label]) -> "SearchTree[Node, Label]":
    """Search breadth first, so that the path back through the tree is a shortest one."""
    found: SearchTree[Node, Label] = dict.fromkeys(starts)
    waiting = deque(found)
    while waiting:
        node = waiting.popleft()
        for label, target in edges.get(node, ()):
            if target not in found:
                found[target] = (node, label)
                waiting.append(target)
    return found


def trace_path(tree: "SearchTree[Node, Label]", node: Node) -> tuple[Label, ...]:
    """Return the labels along the path by which the search reached a node."""
    path: list[Label] = []
    while (edge := tree[node]) is not None:
        node, label = edge
        path.append(label)
    return tuple(reversed(path))


def find_sources(edges: Edges[Node, Label], targets: Iterable[Node]) -> set[Node]:
    """Return every node that can reach one of the targets, including the targets."""
    backward: dict[Node, list[tuple[None, Node]]] = {}
    for node, leaving in edges.items():
        for _, target in leaving:
            backward.setdefault(target, []).append((None, node))
    return set(search(targets, backward))


def find_cycles(edges: Edges[Node, Label]) -> list[tuple[Label, ...]]:
    """Return a shortest cycle of every strongly connected component."""
    found: list[tuple[Label, ...]] = []
    for first, *others in _find_knots(edges):
        knot = {first, *others}
        inside = {node: [way for way in edges.get(node, ()) if way[1] in knot] for node in knot}
        tree = search([first], inside)
        ways = ((node, label) for node in tree for label, to in inside[node] if to == first)
        closing = next(ways, None)
        if closing is not None:
            found.append((*trace_path(tree, closing[0]), closing[1]))
    return found


def _find_knots(edges: Edges[Node, Label]) -> Iterator[list[Node]]:
    """Yield strongly connected components, by Tarjan's algorithm without recursion.

    A node's `low` is the earliest node on the stack that it is known to reach; a node that reaches
    none before itself closes a component: the nodes above it on the stack.
    """
    low: dict[Node, int] = {}
    stack: dict[Node, None] = {}
    for root in edges:
        trail = [] if root in low else [(root, len(low), iter(edges[root]))]
        while trail:
            node, number, leaving = trail[-1]
            if node not in low:
                low[node] = number
                stack[node] = None
            for _, target in leaving:
                if target not in low:
                    trail.append((target, len(low), iter(edges.get(target, ()))))
                    break
                if target in stack:
                    low[node] = min(low[node], low[target])
            else:
                trail.pop()
                if trail:
                    low[trail[-1][0]] = min(low[trail[-1][0]], low[node])
                if low[node] == number:
                    members = [node]
                    while (last := stack.popitem()[0]) != node:
                        members.append(last)
                    yield members


class LongestPath(msgspec.Struct, Generic[Label], frozen=True):
    """The labels along a longest path, or the reason none was found."""

    path: tuple[Label, ...] = ()
    problem: str = ""


def find_longest_path(
    start: Node,
    leaving: Callable[[Node], Iterable[tuple[Label, Node]]],
    cap: int,
) -> LongestPath[Label]:
    """Return a longest path from start, examining at most `cap` nodes, each once."""
    best: _Best[Node, Label] = {}
    open_nodes: dict[Node, list[tuple[Label, Node]]] = {start: list(leaving(start))}
    trail = [(start, iter(open_nodes[start]))]
    while trail:
        node, rest = trail[-1]
        target = next((each for _, each in rest if each not in best), None)
        if target is None:
            ways = [(best[way[1]][0] + 1, way) for way in open_nodes.pop(node)]
            best[node] = max(ways, key=lambda way: way[0], default=(0, None))
            trail.pop()
        elif target in open_nodes:
            return LongestPath(problem="it can go round forever")
        elif len(best) + len(open_nodes) >= cap:
            return LongestPath(problem=f"there are more than {cap:,} situations to look at")
        else:
            open_nodes[target] = list(leaving(target))
            trail.append((target, iter(open_nodes[target])))
    return LongestPath(tuple(_follow(start, best)))


def _follow(node: Node, best: "_Best[Node, Label]") -> Iterator[Label]:
    while (way := best[node][1]) is not None:
        label, node = way
        yield label


_Best = dict[Node, tuple[int, tuple[Label, Node] | None]]
