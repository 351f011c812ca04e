"""Fingerprints: alike for one failure anywhere, different for different failures."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.masking import fingerprint
from interlock.rca.records import Failure


def failed(**parts: Any) -> Failure:
    told: dict[str, Any] = {
        "id": "1",
        "test_name": "test_open",
        "class_name": "box.LidTest",
        "type": "AssertionError",
        "message": "the lid is shut",
        "stack": "\tat box.Lid.open(Lid.java:12)\n\tat java.util.List.of(List.java:9)",
    }
    return Failure(**{**told, **parts})


@given(
    number=st.integers(0, 10**8),
    other=st.integers(0, 10**8),
    drawn=st.uuids(),
    at=st.datetimes(),
    pointer=st.integers(2**20, 2**40),
)
def test_another_run_has_the_same(
    number: int, other: int, drawn: Any, at: Any, pointer: int
) -> None:
    def run(number: int, drawn: str, at: str, pointer: str) -> Failure:
        return failed(
            id=drawn,
            at=at,
            launch=str(number),
            log=f"{at} line {number}",
            message=f"lid {drawn} of /tmp/run-{number}/x shut at {at}, {pointer}, {number} left",
            stack=f'  File "/builds/{number}/lid.py", line {number}, in open',
        )

    one = run(number, str(drawn), str(at), hex(pointer))
    two = run(other, "0" * 8 + str(drawn)[8:], "2020-02-02 10:00:00", hex(pointer + 1))
    assert fingerprint(one) == fingerprint(two)


@pytest.mark.parametrize(
    "parts",
    [
        {"message": "the lid is open"},
        {"test_name": "test_shut"},
        {"class_name": "box.HingeTest"},
        {"type": "TypeError"},
        {"stack": "\tat box.Hinge.open(Hinge.java:12)"},
        {"stack": ""},
    ],
)
def test_another_failure_has_another(parts: dict[str, Any]) -> None:
    assert fingerprint(failed()) != fingerprint(failed(**parts))


@given(st.sampled_from(range(400, 600)), st.sampled_from(range(400, 600)))
def test_status_codes_tell_failures_apart(one: int, two: int) -> None:
    same = fingerprint(failed(message=f"status {one}")) == fingerprint(
        failed(message=f"status {two}")
    )
    assert same == (one == two)


def test_frames_of_the_language_do_not_count() -> None:
    assert fingerprint(failed()) == fingerprint(failed(stack="\tat box.Lid.open(Lid.java:99)"))


def test_it_is_the_same_on_every_machine() -> None:
    assert fingerprint(failed()) == "4eb8a82a821a5678"


@given(st.text(), st.text(), st.text())
def test_any_failure_has_one(name: str, message: str, stack: str) -> None:
    made = fingerprint(failed(test_name=name, message=message, stack=stack))
    assert re.fullmatch("[0-9a-f]{16}", made)


def test_a_giant_message_has_one() -> None:
    assert len(fingerprint(failed(message="1." * 2_000_000, stack="a\n" * 100_000))) == 16
