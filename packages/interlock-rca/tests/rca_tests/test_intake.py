"""From what sources tell to cases: what is new, what is of one family, and what users write."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.journal.database import open_writer
from interlock.journal.runs import NewCase, NewRun
from interlock_rca.intake import (
    KnownFailures,
    begin_cases,
    decode_failure,
    encode_failure,
    hash_failure,
    make_arrivals,
)
from interlock_rca.knowledge.intake import Arrival, FailedCase
from interlock_rca.records import Failure, Ticket
from rca_tests.worlds.analysis_world import AnalysisWorld, launch, make_failure, write_script

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"


def cases(found: list[Arrival]) -> list[FailedCase]:
    return [case for arrival in found for case in arrival.cases]


def known(found: list[Arrival]) -> list[KnownFailures]:
    return [
        KnownFailures(case.input["content"], case.features, case.input["family"])
        for case in cases(found)
    ]


def names(found: list[Arrival]) -> list[tuple[str, str]]:
    return [(case.case_id, case.failure.id) for case in cases(found)]


def test_failures_become_numbered_cases_with_what_they_are_compared_by() -> None:
    failure = make_failure(
        "alpha", ANCHOR, log="fine\nERROR 17 tons too many\nfine", stack="at a.b(c.py:3)"
    )
    (case,) = cases(make_arrivals([launch(failure)]))
    assert case.case_id == "C1"
    assert case.failure == failure
    assert case.input["message"] == ANCHOR
    assert "stack" in case.input
    assert "url" not in case.input, "what is empty is left out"
    assert all((case.fingerprint, case.bands, case.features))
    assert "12" not in case.error_pattern
    assert "ERROR" in case.excerpt


def test_the_same_content_twice_is_one_case() -> None:
    twin = msgspec.structs.replace(make_failure("alpha"), launch="L9")
    assert names(make_arrivals([launch(make_failure("alpha"), twin, make_failure("beta"))])) == [
        ("C1", "alpha"),
        ("C2", "beta"),
    ]


def test_a_larger_report_adds_only_what_is_new() -> None:
    first = make_arrivals([launch(make_failure("alpha"), make_failure("beta"))])
    larger = launch(
        make_failure("gamma"),
        make_failure("beta"),
        make_failure("alpha"),
        make_failure("delta"),
        launch_id="L2",
    )
    second = make_arrivals([larger], known(first))
    assert names(second) == [("C3", "gamma"), ("C4", "delta")]
    assert not make_arrivals([launch(make_failure("alpha"))], known(first))[0].cases


def test_the_same_test_that_says_something_else_is_new() -> None:
    first = make_arrivals([launch(make_failure("alpha"))])
    other = make_arrivals([launch(make_failure("alpha", "now it burns"))], known(first))
    assert names(other) == [("C2", "alpha")]


def test_the_same_failure_in_two_launches_of_one_call_is_a_case_in_each() -> None:
    found = make_arrivals(
        [launch(make_failure("alpha")), launch(make_failure("alpha"), launch_id="L2")]
    )
    assert names(found) == [("C1", "alpha"), ("C2", "alpha")]
    assert len({case.input["family"] for case in cases(found)}) == 1


def test_families_are_joined_across_calls() -> None:
    first = make_arrivals(
        [launch(make_failure("alpha", ANCHOR, class_name="yard.Keel"), make_failure("omega"))]
    )
    second = make_arrivals(
        [launch(make_failure("beta", ANCHOR, class_name="yard.Keel"), launch_id="L2")], known(first)
    )
    (keel, omega), (later,) = cases(first), cases(second)
    assert later.input["family"] == keel.input["family"] != omega.input["family"]


def test_what_passed_on_a_retry_joins_no_family_of_what_fails_steadily() -> None:
    steady = make_failure("alpha", ANCHOR, class_name="yard.Keel")
    flaky = msgspec.structs.replace(
        make_failure("beta", ANCHOR, class_name="yard.Keel"), attributes={"flaky": "true"}
    )
    first = make_arrivals(
        [launch(steady, flaky, make_failure("gamma", ANCHOR, class_name="yard.Keel"))]
    )
    alpha, beta, gamma = (case.input["family"] for case in cases(first))
    assert alpha == gamma != beta
    later = msgspec.structs.replace(flaky, id="yard.Keel.delta", test_name="delta")
    (delta,) = cases(make_arrivals([launch(later, launch_id="L2")], known(first)))
    assert delta.input["family"] not in (alpha, gamma)


def test_a_launch_of_reportportal_keeps_its_number() -> None:
    assert make_arrivals([launch(launch_id="77", project="yard")])[0].rp_launch_id == 77
    assert make_arrivals([launch(launch_id="77")])[0].rp_launch_id is None
    assert make_arrivals([launch(launch_id="x77", project="yard")])[0].rp_launch_id is None


@given(st.text(max_size=20), st.text(max_size=20))
def test_content_tells_failures_apart_and_launches_not(one: str, other: str) -> None:
    first = Failure(id="a", message=one, launch="L1")
    assert hash_failure(first) == hash_failure(msgspec.structs.replace(first, launch="L2"))
    second = msgspec.structs.replace(first, message=other)
    assert (hash_failure(first) == hash_failure(second)) == (one == other)


def test_a_failure_survives_as_the_input_of_a_case() -> None:
    failure = make_failure("alpha", line=3, tickets=(Ticket("T-1"),), attributes={"os": "sea"})
    assert decode_failure("C1", encode_failure(failure)) == failure


# What a user writes


ODD: list[dict[str, Any]] = [
    {},
    {"id": 7},
    {"id": "x", "message": 17, "stack": ["a"], "test_name": "kept"},
    {"id": "x", "attributes": "not a table", "test_name": "kept"},
    {"id": "x", "attributes": {"n": 1}, "test_name": "kept"},
    {"id": "x", "line": "three", "test_name": "kept"},
    {"id": "x", "line": -1, "item_id": 2.5, "test_name": "kept"},
    {"id": "x", "tickets": [{"no": 1}], "test_name": "kept"},
    {"id": "x", "log_truncated": "yes", "test_name": "kept"},
    {"id": ["x"], "test_name": "kept"},
    {"id": "x", "topic": "nothing of a failure"},
    {"id": "x", "message": None, "test_name": "kept"},
]


@pytest.mark.parametrize("given_input", ODD)
def test_what_is_no_failure_is_told_as_far_as_it_is_one(given_input: dict[str, Any]) -> None:
    found = decode_failure("C1", given_input)
    assert isinstance(found, Failure)
    assert found.id
    assert found.test_name == given_input.get("test_name", "")


def begin_with(room: AnalysisWorld, *written: NewCase) -> int:
    with open_writer(room.db) as connection:
        new = NewRun(
            circuit=room.circuit,
            text=room.text,
            source="cases.jsonl",
            fingerprint="0123456789abcdef",
            options={},
            at=room.clock.time,
        )
        return begin_cases(connection, new, written)


def test_cases_of_a_user_are_a_suite_and_keep_names_order_and_needs(tmp_path: Path) -> None:
    room = AnalysisWorld(tmp_path)
    first = NewCase("early", {"id": "early", "message": ANCHOR, "own": [1]}, priority=1)
    begin_with(room, NewCase("late", {"id": "late"}, needs=("early",)), first)
    assert room.work_on(write_script()) == "done"
    assert [line.split()[0] for line in room.story()][:6] == ["early"] * 6
    assert room.statuses() == {"late": "closed", "early": "closed"}
    assert room.faults() == []


def test_odd_cases_of_a_user_come_to_their_end(tmp_path: Path) -> None:
    room = AnalysisWorld(tmp_path)
    begin_with(room, *(NewCase(f"N{at}", given_input) for at, given_input in enumerate(ODD)))
    assert room.work_on(write_script()) == "done"
    assert len(room.cases()) == len(ODD)
    assert room.faults() == []


def test_cases_with_equal_words_are_cases_of_their_own(tmp_path: Path) -> None:
    room = AnalysisWorld(tmp_path)
    begin_with(room, *(NewCase(name, {"message": ANCHOR}) for name in ("a", "b")))
    assert list(room.cases()) == ["a", "b"]
    assert room.work_on(write_script()) == "done"
    begin_with(room, *(NewCase(name, {"id": "same", "message": ANCHOR}) for name in ("a", "b")))
    assert list(room.cases(2)) == ["a", "b"]
