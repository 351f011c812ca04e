"""Names for failures."""

import re

from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.records import Failure
from interlock.rca.sources.envelope import FailureIds

FIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,127}")
WORDS = st.text(max_size=40)


def ids(*failures: tuple[str, str, str]) -> list[str]:
    names = FailureIds()
    return [
        names.name(Failure(id="", job=job, class_name=owner, test_name=test)).id
        for job, owner, test in failures
    ]


def test_an_id_says_class_and_test_and_the_job_only_where_needed() -> None:
    assert ids(("unit", "yard.Lamp", "glows"), ("e2e", "yard.Lamp", "glows")) == [
        "yard.Lamp.glows",
        "e2e.yard.Lamp.glows",
    ]


def test_the_same_test_again_is_counted() -> None:
    assert ids(*[("u", "C", "t")] * 3) == ["C.t", "C.t#2", "C.t#3"]


def test_odd_names_are_fit_and_told_apart() -> None:
    found = ids(("u", "", "../../etc"), ("u", "", "тест"), ("u", "", "проба"), ("u", "", "_x"))
    assert found[0] == "etc"
    assert found[3] == "t_x"
    assert len(set(found)) == 4


def test_long_names_keep_what_tells_them_apart() -> None:
    one, other = ids(("u", "", "x" * 300 + "1"), ("u", "", "x" * 300 + "2"))
    assert one != other
    assert max(len(one), len(other)) <= 80


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=30))
def test_ids_are_fit_unique_and_the_same_each_time(tests: list[tuple[str, str, str]]) -> None:
    found = ids(*tests)
    assert len(set(found)) == len(found)
    assert all(FIT.fullmatch(each) for each in found)
    assert found == ids(*tests)


@given(st.lists(st.sampled_from(["a", "a#2", "a#3", "b", "", "ü/"]), max_size=12))
def test_ids_that_are_brought_along_stay_if_they_can(brought: list[str]) -> None:
    names = FailureIds()
    found = [names.keep(Failure(id=each, test_name="a")).id for each in brought]
    assert len(set(found)) == len(found)
    assert all(FIT.fullmatch(each) for each in found)
    if brought and brought[0] in ("a", "a#2", "b"):
        assert found[0] == brought[0]
