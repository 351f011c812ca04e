"""The whole report: soundness, the worst case, and what a removed rule does."""

import re
import sys
from types import FrameType
from typing import Any

import msgspec
import pytest

from interlock.engine.circuit_file import read_circuit
from interlock.engine.verify import verify
from kernel_tests.engine.verify.large import KINDS, build_large
from tests.circuits.behaviour_tables import SHIPPED
from tests.world.circuits import HOPELESS, SOUND, changed, press


def test_a_sound_circuit_has_no_findings() -> None:
    assert verify(press()).findings == ()
    assert verify(press()).sound


def test_the_worst_case_is_counted_and_shown() -> None:
    worst = verify(press()).worst_case
    # Three rounds of draft and review with two retries each, the gate each time, then publish.
    assert (worst.dispatches, worst.exact) == (3 * (3 + 3 + 1) + 3, True)
    assert len(worst.path) == worst.dispatches - 1
    assert worst.path[-1].to == "publish"


def test_max_steps_cuts_the_worst_case() -> None:
    worst = verify(press(("max_steps: 60", "max_steps: 9"))).worst_case
    assert (worst.dispatches, worst.exact) == (9, True)
    assert "max_steps cuts" in worst.reason


def test_an_unbounded_circuit_is_bounded_by_max_steps_only() -> None:
    worst = verify(press(("loop: retries, to: AGAIN", "to: AGAIN"))).worst_case
    assert (worst.dispatches, worst.exact) == (60, False)
    assert "forever" in worst.reason


def test_a_report_is_plain_data() -> None:
    report = verify(press((HOPELESS, "")))
    again = msgspec.json.decode(msgspec.json.encode(report))
    assert again["findings"][0]["id"] == "circuit.loop-without-exit"
    assert again["findings"][0]["line"] == 29


QUIET = {
    "rework": "hopeless takes its values: only the behaviour differs",
    "revise": "refused takes its values",
    "expired": "give-up takes the timeout after a retry",
    "retry": "give-up comes at once",
}


@pytest.mark.parametrize("line", [line for line in SOUND.splitlines() if "- {id" in line])
def test_a_removed_rule_is_noticed_unless_another_takes_its_place(line: str) -> None:
    name = re.findall("id: ([a-z-]+)", line)[0]
    report = verify(read_circuit(changed(SOUND, (f"{line}\n", "")), "x.yaml"))
    assert report.sound == (name in QUIET), report.findings


def count_lines_run(text: str) -> int:
    """How many lines of Python a proof takes: the same on every machine."""
    written = read_circuit(text)
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        verify(written)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("kind", KINDS)
def test_the_work_of_a_proof_grows_with_the_circuit_and_no_faster(kind: str) -> None:
    assert verify(read_circuit(build_large(kind, 40))).findings == ()
    small, large = (count_lines_run(build_large(kind, size)) for size in (40, 160))
    assert large < 5 * small


@pytest.mark.parametrize("circuit", SHIPPED)
def test_a_proof_of_a_shipped_circuit_is_no_long_search(circuit: str) -> None:
    text = SHIPPED[circuit].read_text(encoding="utf-8")
    assert count_lines_run(text) < 500_000
