"""Recall: known, new or unsure; in a stream, and from any index that gives candidates."""

from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace
from tests.rca.analyst.failing import refused, shut, wrong

from interlock.rca.analyst.cluster import (
    CANDIDATES,
    MATCH,
    UNSURE,
    FailureMemory,
    KnownFailure,
    recall,
    recall_stream,
)
from interlock.rca.analyst.similarity import bands, traits
from interlock.rca.records import Failure


class Drawer:
    """An index that gives all it holds."""

    def __init__(self, *failures: Failure) -> None:
        self._held = [KnownFailure(failure.id, traits(failure)) for failure in failures]
        self.asked: Sequence[int] = ()

    def candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
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
    assert [(said.verdict, said.match_id) for said in found.values()] == [
        ("new", None),
        ("new", None),
        ("match", "shut-1"),
        ("new", None),
        ("match", "refused-1"),
    ]
    assert found["shut-1"].score == 0
    assert found["shut-2"].score > 0.9


def test_what_is_near_but_not_near_enough_is_unsure() -> None:
    before = wrong(1, "CartTotal", "expected:<12> but was:<13>")
    after = wrong(2, "CartTaxes", "expected:<12> but was:<0>")
    said = recall(traits(after), Drawer(before))
    assert (said.verdict, said.match_id) == ("unsure", "wrong-1")
    assert UNSURE <= said.score < MATCH


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
        def candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
            for known in super().candidates(bands):
                compared.append(known.known_id)
                yield known

    said = recall(traits(shut(9)), Watched(refused(1, "cart"), shut(2), shut(3)))
    assert said.match_id == "shut-2"
    assert compared == ["refused-1", "shut-2"]


def test_any_index_will_do() -> None:
    drawer = Drawer(refused(1, "cart"), shut(2))
    said = recall(traits(shut(1)), drawer)
    assert (said.verdict, said.match_id) == ("match", "shut-2")
    assert drawer.asked == bands(shut(1))


def test_a_memory_gives_no_more_than_is_worth_comparing() -> None:
    memory = FailureMemory()
    for number in range(3 * CANDIDATES):
        each = refused(number, f"part{number}")
        memory.add(each.id, traits(each), bands(each))
    asked = traits(refused(1, "cart"))
    found = list(memory.candidates(bands(refused(1, "cart"))))
    assert len(found) == CANDIDATES
    assert recall(asked, memory).verdict == "match"
