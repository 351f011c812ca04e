"""Paths, cycles and longest ways in any directed graph.

Knows nodes and labelled edges. Refuses to know what they stand for: routes puts circuits in.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

Node = TypeVar("Node")
Label = TypeVar("Label")
Edges = Mapping[Node, Iterable[tuple[Label, Node]]]


def paths_from(start: Node, edges: Edges[Node, Label]) -> dict[Node, tuple[Label, ...]]:
    """For every node that can be reached, the labels along a shortest way to it."""
    found: dict[Node, tuple[Label, ...]] = {start: ()}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for label, target in edges.get(node, ()):
            if target not in found:
                found[target] = (*found[node], label)
                waiting.append(target)
    return found


def reaching(edges: Edges[Node, Label], *targets: Node) -> set[Node]:
    """Every node from which one of the targets can be reached, the targets included."""
    backward: dict[Node, list[tuple[None, Node]]] = {}
    for node, leaving in edges.items():
        for _, target in leaving:
            backward.setdefault(target, []).append((None, node))
    return {node for target in targets for node in paths_from(target, backward)}


def cycles(edges: Edges[Node, Label]) -> list[tuple[Label, ...]]:
    """A shortest cycle of every knot of nodes that can all reach each other."""
    found: list[tuple[Label, ...]] = []
    done: set[Node] = set()
    for node in edges:
        if node in done:
            continue
        onward = [(label, paths_from(target, edges)) for label, target in edges[node]]
        ways = [(label, *paths[node]) for label, paths in onward if node in paths]
        if ways:
            found.append(min(ways, key=len))
            around: set[Node] = reaching(edges, node)
            after = paths_from(node, edges)
            done |= {each for each in around if each in after}
    return found


class Longest(msgspec.Struct, Generic[Label], frozen=True):
    """The labels along a longest way, or why none was found."""

    path: tuple[Label, ...] = ()
    problem: str = ""


def longest_path(
    start: Node,
    leaving: Callable[[Node], Iterable[tuple[Label, Node]]],
    cap: int,
) -> Longest[Label]:
    """A longest way from start, looking at no more than `cap` nodes; each node once."""
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
            return Longest(problem="it can go round for ever")
        elif len(best) + len(open_nodes) >= cap:
            return Longest(problem=f"there are more than {cap:,} situations to look at")
        else:
            open_nodes[target] = list(leaving(target))
            trail.append((target, iter(open_nodes[target])))
    return Longest(tuple(_followed(start, best)))


def _followed(node: Node, best: "_Best[Node, Label]") -> Iterator[Label]:
    while (way := best[node][1]) is not None:
        label, node = way
        yield label


_Best = dict[Node, tuple[int, tuple[Label, Node] | None]]
