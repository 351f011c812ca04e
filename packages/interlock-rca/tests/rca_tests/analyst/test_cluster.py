"""Families: one cause in one, whatever the order; strangers and the silent apart."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock_rca.analyst.cluster import (
    MAX_SMALL_BLOCK,
    find_families,
)
from interlock_rca.analyst.similarity import compare_failures, extract_traits
from interlock_rca.records import Failure
from rca_tests.analyst.failing import refused, shut, wrong

NAMES = ("cart", "ledger", "stock", "price", "parcel")
SUITE = (
    *(shut(number, lid=number) for number in range(4)),
    *(refused(number, name) for number, name in enumerate(NAMES)),
    wrong(1, "Cart", "expected:<1> but was:<2>"),
    wrong(2, "Ledger", "expected:<3> but was:<4>"),
    Failure(id="silent-1", test_name="opens", class_name="box.LidTest"),
    Failure(id="silent-2", test_name="opens", class_name="box.LidTest"),
)


def families(failures: Sequence[Failure]) -> set[frozenset[str]]:
    found = find_families([extract_traits(failure) for failure in failures])
    return {frozenset(failures[at].id for at in members) for members in found}


def test_families() -> None:
    assert families(list(SUITE)) == {
        frozenset(f"shut-{number}" for number in range(4)),
        frozenset(f"refused-{number}" for number in range(5)),
        frozenset({"wrong-1"}),
        frozenset({"wrong-2"}),
        frozenset({"silent-1"}),
        frozenset({"silent-2"}),
    }


def test_nothing_has_no_families() -> None:
    assert families([]) == set()


@given(st.permutations(SUITE))
@settings(max_examples=20, deadline=None)
def test_the_order_does_not_matter(failures: list[Failure]) -> None:
    assert families(failures) == families(list(SUITE))


def test_a_cascade_is_one_family_however_large() -> None:
    cascade = [refused(number, f"part{number}") for number in range(4 * MAX_SMALL_BLOCK)]
    assert len(families(cascade)) == 1


def test_many_strangers_stay_strangers() -> None:
    strangers = [
        Failure(id=f"{n}", test_name=f"t{n}", class_name=f"a.C{n}", type="E", message="not true")
        for n in range(4 * MAX_SMALL_BLOCK)
    ]
    assert len(families(strangers)) == len(strangers)


def test_two_places_in_the_product_are_two_causes() -> None:
    one = shut(1)
    other = replace(one, id="2", stack=one.stack.replace("Lid.lift", "Hinge.turn"))
    same = compare_failures(*map(extract_traits, (one, shut(3, line=13))))
    apart = compare_failures(*map(extract_traits, (one, other)))
    assert apart.score < same.score
