"""Families: one cause in one, whatever the order; strangers and the silent apart."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rca.analyst.failing import refused, shut, wrong

from interlock.rca.analyst.cluster import SMALL_BLOCK, cluster
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
    names = cluster(failures)
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
    assert cluster([shut(3), shut(1, lid=9), shut(2)]) == ["shut-1"] * 3


def test_nothing_has_no_families() -> None:
    assert cluster([]) == []


@given(st.permutations(SUITE))
@settings(max_examples=20, deadline=None)
def test_the_order_does_not_matter(failures: list[Failure]) -> None:
    assert families(failures) == families(list(SUITE))


def test_a_cascade_is_one_family_however_large() -> None:
    cascade = [refused(number, f"part{number}") for number in range(4 * SMALL_BLOCK)]
    assert len(set(cluster(cascade))) == 1


def test_many_strangers_stay_strangers() -> None:
    strangers = [
        Failure(id=f"{n}", test_name=f"t{n}", class_name=f"a.C{n}", type="E", message="not true")
        for n in range(4 * SMALL_BLOCK)
    ]
    assert len(set(cluster(strangers))) == len(strangers)
