"""Scripts: what each behaviour does, and which files are none."""

import pytest

from interlock.carriers.contract import Reply
from interlock.carriers.script import Behaviour, ScriptAgent, read_script
from interlock.engine.case import Usage
from interlock.system.errors import CircuitError, SourceError
from tests.world.carrier_bench import Bench, ask
from tests.world.clock import START, FakeClock

GIVEN = Reply(1, b'{"x":1}')


@pytest.mark.parametrize(
    ("behaviour", "replies"),
    [
        pytest.param("{answer: {x: 1}}", [GIVEN], id="answer"),
        pytest.param("{}", [Reply(1, b"{}")], id="nothing said is an empty answer"),
        pytest.param("{answer: [1]}", [Reply(1, b"[1]")], id="not an object"),
        pytest.param("{raw: 'I, robot ü'}", [Reply(1, "I, robot ü".encode())], id="raw"),
        pytest.param("{raw: ''}", [Reply(1, b"")], id="raw nothing"),
        pytest.param(
            "{signal: question, answer: {x: 1}}",
            [Reply(1, b'{"signal":"question","data":{"x":1}}')],
            id="signal",
        ),
        pytest.param("{crash: oh}", [Reply(1, failure="crash", reason="oh")], id="crash"),
        pytest.param("{silent: true, answer: {x: 1}}", [], id="silent"),
        pytest.param("{twice: true, answer: {x: 1}}", [GIVEN, GIVEN], id="twice"),
        pytest.param("{forges: 9, answer: {x: 1}}", [Reply(9, b'{"x":1}'), GIVEN], id="forges"),
        pytest.param("{late: true, answer: {x: 1}}", [], id="late"),
        pytest.param(
            "{answer: {x: 1}, usage: {tokens: 5, money: 0.5}}",
            [Reply(1, b'{"x":1}', usage=Usage(5, 0.5))],
            id="usage",
        ),
    ],
)
async def test_behaviours(behaviour: str, replies: list[Reply]) -> None:
    async with bench(f"A: {{work: {behaviour}}}") as made:
        made.carrier.send([ask(1)])
        assert made.replies == replies


def bench(text: str) -> Bench:
    clock = FakeClock()
    return Bench(ScriptAgent(read_script(text, "crew.yaml"), clock), clock)


async def test_a_delay_is_kept() -> None:
    async with bench("A: {work: {delay: 90s, answer: {x: 1}}}") as made:
        made.carrier.send([ask(1)])
        assert made.replies == []
        made.clock.advance()
        assert (made.replies, made.clock.time - START) == ([GIVEN], 90)


async def test_a_late_answer_comes_when_it_is_too_late() -> None:
    async with bench("A: {work: {late: true, answer: {x: 1}}}") as made:
        made.carrier.send([ask(1)])
        made.carrier.settle(2)
        assert made.replies == []
        made.carrier.settle(1)
        assert made.replies == [GIVEN]


SCRIPT = read_script(
    """\
"*":
  work: {answer: every}
A:
  work: [{answer: first}, {answer: second}]
  rest: {answer: rest}
""",
    "crew.yaml",
)


@pytest.mark.parametrize(
    ("case_id", "step", "attempt", "expected"),
    [
        ("A", "work", 1, Behaviour(answer="first")),
        ("A", "work", 2, Behaviour(answer="second")),
        ("A", "work", 9, Behaviour(answer="second")),
        ("B", "work", 3, Behaviour(answer="every")),
        ("A", "rest", 1, Behaviour(answer="rest")),
        ("B", "rest", 1, Behaviour(crash="the script has no answer for case B, step rest")),
    ],
)
def test_who_is_meant(case_id: str, step: str, attempt: int, expected: Behaviour) -> None:
    assert SCRIPT.find_behaviour(case_id, step, attempt) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "crew.yaml: a script is a table of cases; start with '*:' for every case"),
        ("A: 1", "crew.yaml:1: 'A' needs 'STEP: behaviour'"),
        ("A:\n  work: []", "crew.yaml:2: 'work' has no behaviour"),
        (
            "A:\n  work: {anwser: 1}",
            "crew.yaml:2: 'work': Object contains unknown field `anwser`",
        ),
        ("A:\n  work: 3", "crew.yaml:2: 'work': Expected `object`, got `int`"),
        (
            "A:\n  work: {delay: soon}",
            "crew.yaml:2: 'work': 'soon' is not a duration; write 90s, 10m, 2h or 7d",
        ),
        (
            "A:\n  work: {usage: {tokens: -1}}",
            "crew.yaml:2: 'work': usage must be between 0 and 1,000,000,000",
        ),
        (
            "A:\n  work: {usage: {money: 1.0e300}}",
            "crew.yaml:2: 'work': usage must be between 0 and 1,000,000,000",
        ),
    ],
)
def test_files_that_are_no_scripts(text: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_script(text, "crew.yaml")
    assert str(caught.value) == problem


@pytest.mark.parametrize("text", ["", "A: {", "A: 1\nA: 2", "A: &x 1\nB: *x", "\tA: 1"])
def test_files_that_are_no_yaml(text: str) -> None:
    with pytest.raises(CircuitError, match=r"^crew\.yaml"):
        read_script(text, "crew.yaml")
