"""Graphs: shortest ways, knots and longest ways, against a slow and simple search."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.verify.routes import (
    find_cycles,
    find_longest_path,
    find_sources,
    search,
    trace_path,
)

EDGES = {
    "a": [("ab", "b"), ("ac", "c")],
    "b": [("bd", "d")],
    "c": [("cd", "d")],
    "e": [("ee", "e")],
}
GRAPHS = st.dictionaries(
    st.integers(0, 5), st.lists(st.integers(0, 5).map(lambda target: (target, target)), max_size=3)
)
FORWARD = GRAPHS.map(
    lambda graph: {
        node: [way for way in leaving if way[1] > node] for node, leaving in graph.items()
    }
)


def test_paths_and_reach() -> None:
    tree = search(["a"], EDGES)
    paths = {node: trace_path(tree, node) for node in tree}
    assert paths == {"a": (), "b": ("ab",), "c": ("ac",), "d": ("ab", "bd")}
    assert find_sources(EDGES, ["d"]) == {"a", "b", "c", "d"}
    assert find_sources(EDGES, ["b", "e"]) == {"a", "b", "e"}
    assert find_cycles(EDGES) == [("ee",)]
    assert find_cycles({"a": [("ab", "b")], "b": [("ba", "a"), ("bc", "c")]}) == [("ab", "ba")]


def test_longest_path_stops_at_its_cap_and_at_cycles() -> None:
    endless = find_longest_path(0, lambda number: [(number, number + 1)], 100)
    assert "more than 100" in endless.problem
    assert "forever" in find_longest_path("e", lambda node: EDGES.get(node, []), 100).problem
    chain = find_longest_path(
        0, lambda number: [(number, number + 1)] if number < 5_000 else [], 9_999
    )
    assert len(chain.path) == 5_000


@given(GRAPHS)
def test_a_graph_has_cycles_exactly_if_some_node_comes_back_to_itself(
    graph: dict[int, list[tuple[int, int]]],
) -> None:
    knotted = {
        node for node in graph for _, target in graph[node] if node in search([target], graph)
    }
    found = find_cycles(graph)
    assert {node for cycle in found for node in cycle} <= knotted
    for node in knotted:
        knot = {each for each in search([node], graph) if node in search([each], graph)}
        own = [cycle for cycle in found if knot.issuperset(cycle)]
        assert len(own) == 1, "one cycle for each knot"
        assert all(step in dict(graph[last]) for last, step in pairwise((own[0][-1], *own[0])))


def slow_longest(node: int, graph: dict[int, list[tuple[int, int]]]) -> int:
    return max((1 + slow_longest(target, graph) for _, target in graph.get(node, [])), default=0)


@given(FORWARD)
def test_longest_path_is_longest(graph: dict[int, list[tuple[int, int]]]) -> None:
    found = find_longest_path(0, lambda node: graph.get(node, []), 1_000)
    assert found.problem == ""
    assert len(found.path) == slow_longest(0, graph)
