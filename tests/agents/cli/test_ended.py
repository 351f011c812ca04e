"""How it ended, in one sentence."""

import msgspec
import pytest

from interlock.agents.cli.health import AgentHealth
from interlock.agents.cli.process import By, ProcessEnd, why
from interlock.agents.cli.timeouts import CLOCK_NAMES, Timeouts

ENDED = ProcessEnd(exit_code=0, by="itself", started_at=0, ended_at=1, last=AgentHealth("dead", ()))
CLOCKS = Timeouts(first_byte=0.5, silence=600)


@pytest.mark.parametrize(
    ("by", "exit_code", "sentence"),
    [
        ("itself", 0, "exit code 0"),
        ("itself", 3, "exit code 3"),
        ("itself", -9, "killed by signal 9"),
        ("itself", None, "its exit code is not known"),
        ("us", -15, "it was stopped"),
        ("first_byte", 0, "it said nothing within 0.5 s of its start and was ended"),
        ("silence", -15, "it was silent for 600 s and was ended"),
    ],
)
def test_sentences(by: By, exit_code: int | None, sentence: str) -> None:
    ended = msgspec.structs.replace(ENDED, by=by, exit_code=exit_code)
    assert why(ended, CLOCKS) == sentence


def test_every_clock_has_its_sentence() -> None:
    sentences = {why(msgspec.structs.replace(ENDED, by=name), CLOCKS) for name in CLOCK_NAMES}
    assert len(sentences) == len(CLOCK_NAMES)


def test_it_can_be_written_down() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ENDED), type=ProcessEnd) == ENDED
