"""Test the graph of tasks against slow and obvious algorithms."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.plan.plan import (
    Plan,
    Task,
    compute_rounds,
    count_dependents,
    find_critical_path,
    find_cycles,
    find_startable,
    order_tasks,
)


def plan(**waits: str) -> Plan:
    """Build a plan: in plan(a="", b="a c"), b waits for a and c."""
    return Plan(tasks=tuple(Task(name, blocked_by=tuple(on.split())) for name, on in waits.items()))


def numbered(edges: list[tuple[int, int]], count: int) -> Plan:
    return Plan(
        tasks=tuple(
            Task(str(at), blocked_by=tuple(str(to) for one, to in edges if one == at))
            for at in range(count)
        )
    )


GRAPHS = st.integers(1, 8).flatmap(
    lambda count: st.builds(
        numbered,
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count)), max_size=14),
        st.just(count),
    )
)
DIAMOND = plan(d="b c", b="a", c="a", a="", e="")


def test_a_diamond() -> None:
    assert order_tasks(DIAMOND) == ("a", "b", "c", "d", "e")
    assert compute_rounds(DIAMOND) == {"a": 1, "b": 2, "c": 2, "d": 3, "e": 1}
    assert count_dependents(DIAMOND) == {"d": 0, "b": 1, "c": 1, "a": 3, "e": 0}
    assert find_critical_path(DIAMOND) == ("a", "b", "d")
    assert find_startable(DIAMOND) == ("a", "e")
    assert find_startable(DIAMOND, done=("a", "e")) == ("b", "c")
    assert find_cycles(DIAMOND, 9).paths == ()


def test_no_tasks() -> None:
    assert order_tasks(Plan()) == find_critical_path(Plan()) == ()


def test_each_cycle_is_a_path_from_its_first_task() -> None:
    found = find_cycles(plan(a="b", b="a c", c="d b", d="c", e="e", f="a"), 9)
    assert found.paths == (("a", "b"), ("b", "c"), ("c", "d"), ("e",))
    assert found.caught == ("a", "b", "c", "d", "e")


def test_a_missing_blocker_never_ends_and_the_first_of_two_counts() -> None:
    broken = Plan(tasks=(Task("a", blocked_by=("x",)), Task("b"), Task("b", blocked_by=("a",))))
    assert order_tasks(broken) == find_startable(broken) == ("b",)
    assert count_dependents(broken) == {"a": 0, "b": 0}


@given(GRAPHS)
def test_order_and_cycles_tell_the_whole_graph(given_plan: Plan) -> None:
    waits = {task.id: set(task.blocked_by) for task in given_plan.tasks}
    done: set[str] = set()
    for name in order_tasks(given_plan):
        assert waits[name] <= done
        done.add(name)
    assert find_startable(given_plan, done) == ()
    found = find_cycles(given_plan, 10**6)
    for path in found.paths:
        assert len(set(path)) == len(path)
        assert all(to in waits[one] for one, to in zip(path, (*path[1:], path[0]), strict=True))
        assert min(map(int, path)) == int(path[0])
    reach = {name: _reached(name, waits) for name in waits}
    assert set(found.caught) == {name for name in waits if name in reach[name]}
    visible = {
        pair for path in found.paths for pair in zip(path, (*path[1:], path[0]), strict=True)
    }
    tied = {(a, b) for a in waits for b in waits[a] if b in waits and a in reach[b] | {b}}
    assert visible == tied


@given(GRAPHS)
def test_dependents_are_those_who_reach_it(given_plan: Plan) -> None:
    waits = {task.id: set(task.blocked_by) for task in given_plan.tasks}
    can = set(order_tasks(given_plan))
    counted = count_dependents(given_plan)
    for name in can:
        assert counted[name] == sum(name in _reached(other, waits) for other in can)
    path = find_critical_path(given_plan)
    assert len(path) == max(compute_rounds(given_plan).values(), default=0)
    assert all(one in waits[to] for one, to in pairwise(path))


def _reached(start: str, waits: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    stack = [start]
    while stack:
        for other in waits.get(stack.pop(), ()):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found
