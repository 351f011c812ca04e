"""Failures one after the other, as `bench.analyst` takes them: each recalled among those before."""

from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from bench.analyst import (
    MATCH_THRESHOLD,
    MAX_CANDIDATES,
    FailureMemory,
    KnownFailure,
    cluster_failures,
    recall_failure,
    recall_stream,
)
from interlock_rca.analyst.similarity import compute_bands, extract_traits
from interlock_rca.known_causes import UNSURE_THRESHOLD
from interlock_rca.records import Failure
from rca_tests.analyst.failing import refused, shut, wrong


def test_a_family_is_named_after_its_least_member() -> None:
    assert cluster_failures([shut(3), shut(1, lid=9), shut(2)]) == ["shut-1"] * 3


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


def test_a_memory_gives_no_more_than_is_worth_comparing() -> None:
    memory = FailureMemory()
    for number in range(3 * MAX_CANDIDATES):
        each = refused(number, f"part{number}")
        memory.add(each.id, extract_traits(each))
    asked = extract_traits(refused(1, "cart"))
    found = list(memory.find_candidates(compute_bands(extract_traits(refused(1, "cart")))))
    assert len(found) == MAX_CANDIDATES
    assert recall_failure(asked, memory).verdict == "match"


class Drawer:
    """An index that gives all it holds."""

    def __init__(self, *failures: Failure) -> None:
        self._held = [KnownFailure(failure.id, extract_traits(failure)) for failure in failures]
        self.asked: Sequence[int] = ()

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        self.asked = bands
        return self._held


def test_what_is_near_but_not_near_enough_is_unsure() -> None:
    before = wrong(1, "CartTotal", "expected:<12> but was:<13>")
    after = wrong(2, "CartTaxes", "expected:<12> but was:<0>")
    said = recall_failure(extract_traits(after), Drawer(before))
    assert (said.verdict, said.match_id) == ("unsure", "wrong-1")
    assert UNSURE_THRESHOLD <= said.score < MATCH_THRESHOLD


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
