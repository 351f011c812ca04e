"""The search for a culprit, over histories and outcomes of all kinds."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.reproduce.search import (
    MAX_DIRECT_SUSPECTS,
    BudgetSpentError,
    CommitGraph,
    Outcome,
    SearchResult,
    search_culprit,
)


def line(size: int) -> CommitGraph:
    """A straight history c1 … cN after the good commit c0."""
    parents = {f"c{at}": (f"c{at - 1}",) for at in range(1, size + 1)}
    return CommitGraph(tuple(parents), parents)


def number(commit: str) -> int:
    return int(commit[1:])


histories = st.integers(1, 300).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.integers(1, size),
        st.lists(st.integers(-3, size + 3).map(lambda at: f"c{at}"), max_size=6),
    )
)


@given(histories, st.integers(1, 4))
def test_any_monotone_history_gives_up_its_culprit_in_a_logarithmic_number_of_runs(
    history: tuple[int, int, list[str]], repeats: int
) -> None:
    size, culprit, suspects = history
    runs: Counter[str] = Counter()

    def run(commit: str) -> Outcome:
        runs[commit] += 1
        return "fail" if number(commit) >= culprit else "pass"

    found = search_culprit(line(size), suspects, run, repeats=repeats)
    assert (found.verdict, found.culprit, found.parent) == (
        "proven",
        f"c{culprit}",
        f"c{culprit - 1}",
    )
    assert runs[found.culprit] >= repeats <= runs[found.parent]
    constant = 4 * repeats + 2 * MAX_DIRECT_SUSPECTS
    assert runs.total() <= math.ceil(math.log2(size)) + constant


outcomes = st.sampled_from(["pass", "fail", "skip"])


@given(st.integers(1, 30), st.lists(outcomes, min_size=1), st.integers(2, 3))
def test_whatever_comes_out_nobody_is_accused_but_by_unanimous_runs(
    size: int, tape: list[Outcome], repeats: int
) -> None:
    seen: dict[str, list[Outcome]] = {}
    turns = iter(range(10_000))

    def run(commit: str) -> Outcome:
        outcome = tape[next(turns) % len(tape)]
        seen.setdefault(commit, []).append(outcome)
        return outcome

    found = search_culprit(line(size), ["c1", f"c{size}"], run, repeats=repeats)
    mixed = [commit for commit, met in seen.items() if len(set(met)) > 1]
    if mixed:
        assert (found.verdict, found.about, found.culprit) == ("flaky", mixed[0], "")
    if found.culprit:
        assert found.verdict == "proven"
        assert set(seen[found.culprit]) == {"fail"}
        assert len(seen[found.culprit]) >= repeats
        assert set(seen[found.parent]) == {"pass"}
        assert len(seen[found.parent]) >= repeats


@given(histories, st.integers(0, 60))
def test_a_search_cut_short_names_what_is_left_and_repeats_the_same_runs(
    history: tuple[int, int, list[str]], budget: int
) -> None:
    size, culprit, suspects = history
    whole: list[str] = []
    short: list[str] = []

    def outcome(commit: str) -> Outcome:
        return "fail" if number(commit) >= culprit else "pass"

    def run(commit: str) -> Outcome:
        whole.append(commit)
        return outcome(commit)

    def run_some(commit: str) -> Outcome:
        if len(short) == budget:
            raise BudgetSpentError
        short.append(commit)
        return outcome(commit)

    search_culprit(line(size), suspects, run)
    found = search_culprit(line(size), suspects, run_some)
    assert short == whole[: len(short)]
    if found.verdict == "spent":
        assert not found.candidates or f"c{culprit}" in found.candidates
    else:
        assert found.culprit == f"c{culprit}"


@given(histories, st.sets(st.integers(1, 300), max_size=40))
def test_commits_that_cannot_be_tested_are_passed_over_and_named(
    history: tuple[int, int, list[str]], broken: set[int]
) -> None:
    size, culprit, suspects = history
    broken -= {size}

    def run(commit: str) -> Outcome:
        if number(commit) in broken:
            return "skip"
        return "fail" if number(commit) >= culprit else "pass"

    found = search_culprit(line(size), suspects, run)
    assert {number(each) for each in found.skipped} <= broken
    if found.verdict == "proven":
        assert found.culprit == f"c{culprit}"
    else:
        assert found.verdict == "narrowed"
        assert f"c{culprit}" in found.candidates
        assert {culprit, culprit - 1} & broken


# A merge m of a branch b1 b2 (from c1) into c2, then c3, where it fails.
MERGED = CommitGraph(
    ("c1", "c2", "m", "c3"),
    {
        "c1": ("c0",),
        "c2": ("c1",),
        "b1": ("c1",),
        "b2": ("b1",),
        "m": ("c2", "b2"),
        "c3": ("m",),
    },
)


def search_failing(*failing: str, suspects: tuple[str, ...] = ()) -> SearchResult:
    return search_culprit(MERGED, suspects, lambda commit: "fail" if commit in failing else "pass")


def test_a_merge_that_fails_is_followed_into_its_branch() -> None:
    assert search_failing("b2", "m", "c3").culprit == "b2"
    assert search_failing("b1", "b2", "m", "c3").culprit == "b1"
    found = search_failing("b1", "b2", "m", "c3", suspects=("b1",))
    assert (found.culprit, found.parent) == ("b1", "c1")


def test_a_merge_whose_parents_both_pass_is_the_culprit_itself() -> None:
    found = search_failing("m", "c3")
    assert (found.verdict, found.culprit, found.parent) == ("proven", "m", "c2")


def test_what_is_not_reproduced_or_failed_before_accuses_nobody() -> None:
    assert search_failing().verdict == "not-reproduced"
    found = search_failing("c0", "c1", "c2", "m", "c3")
    assert (found.verdict, found.about, found.culprit) == ("older", "c0", "")


def test_without_a_green_commit_a_passing_one_is_looked_for_backwards() -> None:
    graph = CommitGraph(line(100).chain, line(100).parents, has_good=False)
    found = search_culprit(graph, (), lambda each: "fail" if number(each) >= 90 else "pass")
    assert found.culprit == "c90"
    assert search_culprit(graph, (), lambda _: "fail").verdict == "unknown-good"


def test_a_suspect_that_was_mended_since_is_not_what_fails_now() -> None:
    """c3 broke it, c5 mended it, c9 broke it again."""
    broken = {*range(3, 5), *range(9, 13)}
    found = search_culprit(
        line(12), ("c6", "c3"), lambda each: "fail" if number(each) in broken else "pass"
    )
    assert found.culprit == "c9"
