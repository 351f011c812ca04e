"""Families: one cause in one, whatever the order; strangers and the silent apart.

Recall: known, new or unsure; in a stream, and from any index that gives candidates.
"""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rca.analyst.failing import refused, shut, wrong

from interlock.rca.analyst.cluster import (
    MATCH_THRESHOLD,
    MAX_CANDIDATES,
    MAX_SMALL_BLOCK,
    UNSURE_THRESHOLD,
    FailureMemory,
    KnownFailure,
    cluster_failures,
    recall_failure,
    recall_stream,
)
from interlock.rca.analyst.similarity import compare_failures, compute_bands, extract_traits
from interlock.rca.records import Failure

NAMES = ("cart", "ledger", "stock", "price", "parcel")
SUITE = (
    *(shut(number, lid=number) for number in range(4)),
    *(refused(number, name) for number, name in enumerate(NAMES)),
    wrong(1, "Cart", "expected:<1> but was:<2>"),
    wrong(2, "Ledger", "expected:<3> but was:<4>"),
    Failure(id="silent-1", test_name="opens", class_name="box.LidTest"),
    Failure(id="silent-2", test_name="opens", class_name="box.LidTest"),
)


def families(failures: list[Failure]) -> set[frozenset[str]]:
    names = cluster_failures(failures)
    return {
        frozenset(each.id for each, own in zip(failures, names, strict=True) if own == name)
        for name in names
    }


def test_families() -> None:
    assert families(list(SUITE)) == {
        frozenset(f"shut-{number}" for number in range(4)),
        frozenset(f"refused-{number}" for number in range(5)),
        frozenset({"wrong-1"}),
        frozenset({"wrong-2"}),
        frozenset({"silent-1"}),
        frozenset({"silent-2"}),
    }


def test_a_family_is_named_after_its_least_member() -> None:
    assert cluster_failures([shut(3), shut(1, lid=9), shut(2)]) == ["shut-1"] * 3


def test_nothing_has_no_families() -> None:
    assert cluster_failures([]) == []


@given(st.permutations(SUITE))
@settings(max_examples=20, deadline=None)
def test_the_order_does_not_matter(failures: list[Failure]) -> None:
    assert families(failures) == families(list(SUITE))


def test_a_cascade_is_one_family_however_large() -> None:
    cascade = [refused(number, f"part{number}") for number in range(4 * MAX_SMALL_BLOCK)]
    assert len(set(cluster_failures(cascade))) == 1


def test_many_strangers_stay_strangers() -> None:
    strangers = [
        Failure(id=f"{n}", test_name=f"t{n}", class_name=f"a.C{n}", type="E", message="not true")
        for n in range(4 * MAX_SMALL_BLOCK)
    ]
    assert len(set(cluster_failures(strangers))) == len(strangers)


class Drawer:
    """An index that gives all it holds."""

    def __init__(self, *failures: Failure) -> None:
        self._held = [KnownFailure(failure.id, extract_traits(failure)) for failure in failures]
        self.asked: Sequence[int] = ()

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        self.asked = bands
        return self._held


def test_a_stream() -> None:
    stream = [
        shut(1),
        refused(1, "cart"),
        shut(2, lid=8),
        wrong(1, "Cart", "no"),
        refused(2, "tea"),
    ]
    found = dict(recall_stream(stream))
    assert [said.verdict for said in found.values()] == ["new", "new", "match", "new", "match"]
    assert [found[one].match_id for one in ("shut-2", "refused-2")] == ["shut-1", "refused-1"]
    assert found["shut-1"].score == 0
    assert found["shut-2"].score > 0.9


def test_what_is_near_but_not_near_enough_is_unsure() -> None:
    before = wrong(1, "CartTotal", "expected:<12> but was:<13>")
    after = wrong(2, "CartTaxes", "expected:<12> but was:<0>")
    said = recall_failure(extract_traits(after), Drawer(before))
    assert (said.verdict, said.match_id) == ("unsure", "wrong-1")
    assert UNSURE_THRESHOLD <= said.score < MATCH_THRESHOLD


@pytest.mark.parametrize("strangers", [1, 2 * MAX_CANDIDATES])
def test_the_nearest_is_found_also_where_only_some_words_are_shared(strangers: int) -> None:
    earlier = Failure(
        id="earlier",
        class_name="box.Base32InputStreamTest",
        test_name="testSkipPastEnd",
        message="expected:<0> but was:<3>",
    )
    later = Failure(
        id="later",
        class_name="box.Base64StreamTest",
        test_name="testSkipBig",
        message="skipped too far: 8",
    )
    bands = [set(compute_bands(extract_traits(one))) for one in (earlier, later)]
    assert not bands[0] & bands[1]
    others = [wrong(number, f"Cart{number}", f"tea {number}") for number in range(strangers)]
    said = dict(recall_stream([*others, earlier, later]))["later"]
    assert (said.verdict, said.match_id) == ("new", "earlier")


def test_two_places_in_the_product_are_two_causes() -> None:
    one = shut(1)
    other = replace(one, id="2", stack=one.stack.replace("Lid.lift", "Hinge.turn"))
    same = compare_failures(*map(extract_traits, (one, shut(3, line=13))))
    apart = compare_failures(*map(extract_traits, (one, other)))
    assert apart.score < same.score


def test_of_equals_the_newest() -> None:
    found = list(recall_stream([shut(1), shut(2), shut(3)]))
    assert found[2][1].match_id == "shut-2"


def test_what_tells_nothing_is_new() -> None:
    silent = Failure(id="1", test_name="opens")
    assert [said.verdict for _, said in recall_stream([silent, silent])] == ["new", "new"]


@pytest.mark.parametrize("part", ["message", "type", "stack"])
def test_the_same_again_is_known_however_little_it_tells(part: str) -> None:
    first, second = (replace(Failure(id=name), **{part: "OddError"}) for name in "12")
    stream = [first, second, Failure(id="3", message="open")]
    found = [(each.verdict, each.match_id) for _, each in recall_stream(stream)]
    assert found == [("new", None), ("match", "1"), ("new", None)]


def test_a_certain_match_ends_the_search() -> None:
    compared = []

    class Watched(Drawer):
        def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
            for known in super().find_candidates(bands):
                compared.append(known.known_id)
                yield known

    said = recall_failure(extract_traits(shut(9)), Watched(refused(1, "cart"), shut(2), shut(3)))
    assert said.match_id == "shut-2"
    assert compared == ["refused-1", "shut-2"]


def test_any_index_will_do() -> None:
    drawer = Drawer(refused(1, "cart"), shut(2))
    said = recall_failure(extract_traits(shut(1)), drawer)
    assert (said.verdict, said.match_id) == ("match", "shut-2")
    assert drawer.asked == compute_bands(extract_traits(shut(1)))


def test_a_memory_gives_no_more_than_is_worth_comparing() -> None:
    memory = FailureMemory()
    for number in range(3 * MAX_CANDIDATES):
        each = refused(number, f"part{number}")
        memory.add(each.id, extract_traits(each), compute_bands(extract_traits(each)))
    asked = extract_traits(refused(1, "cart"))
    found = list(memory.find_candidates(compute_bands(extract_traits(refused(1, "cart")))))
    assert len(found) == MAX_CANDIDATES
    assert recall_failure(asked, memory).verdict == "match"
