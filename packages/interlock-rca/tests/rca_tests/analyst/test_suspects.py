"""Suspects: classes and paths, the right one first and with reasons."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.mentions import collect_mentions
from interlock_rca.analyst.suspects import MAX_RANKED, RankedSuspect, rank_candidates
from interlock_rca.records import Failure
from rca_tests.analyst.failing import FAILURES, shut, wrong

CLASSES = (
    "box.Box",
    "box.Hinge",
    "box.Lid",
    "box.LidTest",
    "oven.Box",
    "shop.Cart",
    "shop.CartTax",
)


def rank_suspects(failure: Failure, candidates: Iterable[str]) -> list[RankedSuspect]:
    return rank_candidates(collect_mentions(failure), candidates)


def first(failure: Failure, candidates: tuple[str, ...]) -> str:
    return rank_suspects(failure, candidates)[0].candidate


def test_the_innermost_frame_of_the_product() -> None:
    found = rank_suspects(shut(1), CLASSES)
    assert [one.candidate for one in found[:2]] == ["box.Box", "box.Lid"]
    assert first(shut(1, name="Crate"), CLASSES) == "box.Lid"
    assert set(found[0].why.split(", ")) == {"frame", "subject", "alike"}


@pytest.mark.parametrize("name", ["Cart", "CartTax"])
def test_a_test_is_named_after_what_it_tests(name: str) -> None:
    assert first(wrong(1, name, "expected:<1> but was:<2>"), CLASSES) == f"shop.{name}"


def test_what_the_message_names() -> None:
    failure = Failure(id="1", test_name="t", message="Hinge was not oiled")
    assert first(failure, CLASSES) == "box.Hinge"


def test_a_test_below_the_package_of_what_it_tests() -> None:
    found = rank_suspects(
        Failure(id="1", class_name="org.box.bugs.Odd"), ("org.box.Lid", "org.tea.Pot")
    )
    assert [(one.candidate, one.why) for one in found] == [("org.box.Lid", "package")]


def test_a_class_inside_another() -> None:
    failure = Failure(id="1", stack="\tat box.Hinge$Pin$1.turn(Hinge.java:3)\n")
    assert first(failure, CLASSES) == "box.Hinge"


PATHS = (
    "README.md",
    "src/main/java/box/Box.java",
    "src/main/java/box/Lid.java",
    "src/main/java/oven/Lid.java",
    "src/shop/cart.py",
    "lib/cart.py",
    "tests/test_cart.py",
)


def test_paths_of_classes() -> None:
    assert rank_suspects(shut(1, name="Crate"), PATHS)[0].candidate == "src/main/java/box/Lid.java"


def test_paths_of_files() -> None:
    stack = (
        'Traceback:\n  File "/ci/tests/test_cart.py", line 3, in test_total\n'
        '  File "/ci/src/shop/cart.py", line 12, in total\nKeyError: 1\n'
    )
    found = rank_suspects(Failure(id="1", type="KeyError", stack=stack), PATHS)
    assert [one.candidate for one in found] == ["src/shop/cart.py", "tests/test_cart.py"]
    assert found[0].score > 2 * found[1].score


def test_a_file_that_stands_for_its_folder_is_named_like_it() -> None:
    failure = Failure(id="1", class_name="opens a crate", test_name="crate", message="no crate")
    paths = ("src/crate/index.js", "src/lid/index.js", "src/index.js")
    assert [one.candidate for one in rank_suspects(failure, paths)] == ["src/crate/index.js"]


def test_a_test_is_named_after_what_its_file_is_named_after() -> None:
    stack = (
        "    at Array.forEach (<anonymous>)\n"
        "    at Object.<anonymous> (/ci/test/crate.test.js:3:9)\n"
    )
    failure = Failure(id="1", class_name="Opens: all", test_name="Opens: all", stack=stack)
    paths = ("src/crate/index.js", "src/lid/index.js")
    assert [one.candidate for one in rank_suspects(failure, paths)] == ["src/crate/index.js"]


def test_a_frame_means_no_page_of_the_same_name() -> None:
    failure = Failure(id="1", stack="    at open (e2e/pages/cart.js:4:8)\n")
    paths = ("views/cart.html", "src/cart.ts")
    assert [one.candidate for one in rank_suspects(failure, paths)] == ["src/cart.ts"]


def test_a_file_in_another_language_is_not_meant() -> None:
    failure = Failure(
        id="1",
        class_name="tests.test_cart",
        stack='Traceback:\n  File "/ci/tests/test_cart.py", line 3, in test_total\nKeyError: 1\n',
    )
    found = rank_suspects(failure, ("web/cart.ts", "shop/cart.py"))
    assert [one.candidate for one in found] == ["shop/cart.py", "web/cart.ts"]
    assert found[0].score > found[1].score


def test_who_is_not_spoken_of_is_not_suspected() -> None:
    assert rank_suspects(Failure(id="1", log="ERROR: no tea"), ("box.Lid",)) == []
    assert rank_suspects(shut(1), ()) == []


def test_no_more_than_anybody_reads() -> None:
    assert len(rank_suspects(shut(1), [f"box.Box{number}" for number in range(300)])) == MAX_RANKED


@given(FAILURES, st.lists(st.text()))
def test_any_strings_are_ranked(failure: Failure, candidates: list[str]) -> None:
    found = rank_suspects(failure, candidates)
    assert {one.candidate for one in found} <= set(candidates)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(0 <= one.score <= 1 for one in found)
