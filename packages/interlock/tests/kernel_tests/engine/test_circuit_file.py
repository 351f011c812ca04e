"""The written form: what a circuit file becomes, and mistakes named by file and line."""

import jsonschema
import pytest

from interlock.engine.circuit import FAILURES
from interlock.engine.circuit_file import build_circuit_schema, read_circuit
from interlock.system.errors import CircuitError
from interlock.system.yaml_text import read_yaml
from tests.world.circuits import SOUND, changed, press


def test_a_circuit_is_read_whole() -> None:
    circuit = press(otherwise=True).circuit
    assert (circuit.name, circuit.start, circuit.max_steps) == ("press", "draft", 60)
    assert circuit.ends == {"published": True, "rejected": True, "abandoned": False}
    assert circuit.loops["retries"].per_step
    assert not circuit.loops["rework"].per_step
    assert circuit.steps["approve"].gate
    assert circuit.steps["approve"].timeout == 7 * 24 * 3600
    assert circuit.steps["review"].judges == ("draft",)
    assert [rule.id for rule in circuit.find_rules("review", "artifact")] == [
        "good",
        "rework",
        "hopeless",
    ]
    assert [rule.id for rule in circuit.find_rules("approve", "timeout")] == [
        "expired",
        "retry",
        "give-up",
    ]
    assert circuit.otherwise is not None
    assert circuit.otherwise.to == "abandoned"


def test_legal_signals() -> None:
    circuit = press().circuit
    assert circuit.list_legal_signals("draft") == ("artifact", "timeout", "crash", "unreadable")
    assert circuit.list_legal_signals("approve") == ("artifact", "timeout"), (
        "a human does not crash"
    )
    assert set(circuit.list_legal_signals("draft")) - {"artifact"} <= set(FAILURES)


def test_thresholds_can_be_changed_without_touching_the_original() -> None:
    circuit = press().circuit
    assert circuit.with_thresholds({"passing": 0.5}).thresholds == {"passing": 0.5}
    assert circuit.thresholds == {"passing": 0.8}


def test_a_rule_keeps_the_tags_of_its_application() -> None:
    circuit = press(("id: good,", "id: good, tags: {effect: link},")).circuit
    assert {rule.id: rule.tags for rule in circuit.rules if rule.tags} == {
        "good": {"effect": "link"}
    }


def test_the_published_schema_accepts_what_is_read() -> None:
    schema = build_circuit_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    page = read_yaml(SOUND)
    jsonschema.Draft202012Validator(schema).validate(page.value)
    page.value["rule"] = []
    assert not jsonschema.Draft202012Validator(schema).is_valid(page.value)


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (
            ("start: draft", "strat: draft"),
            3,
            "is not a field of the circuit; did you mean 'start'?",
        ),
        (("role: press, ", "role: 5, "), 25, "steps.publish.role: expected `str`, got `int`"),
        (("retries: {max", "retries: {most"), 6, "'most' is not a field of loops.retries"),
        (("published: healthy", "published: well"), 4, "ends.published: invalid enum value"),
        (("writes: true", "write: true"), 25, "did you mean 'writes'?"),
        (("id: live, at", "id: live, when_: x, at"), 35, "did you mean 'when'?"),
        (("max_steps: 60", "max_steps: many"), 7, "max_steps: expected `int`, got `str`"),
        (("max_steps: 60", "max_steps: 0"), 7, "max_steps must be from 1 to 100,000, not 0"),
        (("rework: 2,", "rework: -1,"), 6, "must be from 0 to 100,000"),
        (("version: 1", "version: true"), 2, "expected `int`, got `bool`"),
        (("ends: {", "ends: {draft: healthy, "), 10, "'draft' is both a step and an end"),
        (("ends: {", "ends: {../x: healthy, "), 4, "'../x' is not a valid name here"),
        (("circuit: press", "circuit: a/b"), 1, "'a/b' is not a valid name here"),
        (("circuit: press", f"circuit: {'x' * 10_000}"), 1, "is not a valid name here"),
        (("circuit: press", "circuit: ''"), 1, "is not a valid name here"),
        (("id: live", "id: good"), 35, "there are two rules 'good'"),
        (("id: live", "id: otherwise"), 35, "ids are unique"),
        (("gate: true,", "gate: true, role: critic,"), 24, "is a gate, so its role is human"),
        (("gate: true,", "gate: true, language: text,"), 24, "is answered in text"),
        (("role: press, ", "role: press, language: text, "), 25, "the signals its role may say"),
        (("role: press, ", ""), 25, "'publish' needs a role"),
        (
            ("timeout: 5m", "timeout: soon"),
            25,
            "'soon' is not a duration; write 90s, 10m, 2h or 7d",
        ),
        (
            ("answer: text", "answer: txt"),
            10,
            "'txt' is not a known type; use approval, object, text",
        ),
        (("type: number", "type: numbr"), 15, "is unknown; use object, array"),
        (("score >= passing", "open('x')"), 28, "is not allowed in"),
        (("adds: {title: =text}", "adds: {title: =text.upper()}"), 27, "adds 'title'"),
        (("at: publish, to: published", "at: publish"), 35, "needs 'to: STEP', or 'adds:'"),
        (("id: good,", "id: good, tags: {effect: 1},"), 28, "expected `str`, got `int`"),
        (("rules:\n", "rules: {}\nmore:\n"), 26, "expected `array`, got `object`"),
    ],
)
def test_mistakes_name_file_line_and_what_to_write(
    change: tuple[str, str], line: int, words: str
) -> None:
    with pytest.raises(CircuitError) as caught:
        read_circuit(changed(SOUND, change), "press.yaml")
    assert words in caught.value.problem
    assert (caught.value.file, caught.value.line) == ("press.yaml", line)


@pytest.mark.parametrize("text", ["[]", "just words", "12", "null", "a: 1"])
def test_what_is_no_circuit_at_all(text: str) -> None:
    with pytest.raises(CircuitError, match=r"^x.yaml"):
        read_circuit(text, "x.yaml")


def test_a_gate_brings_no_role_but_human() -> None:
    text = "circuit: c\nstart: s\nends: [e]\nsteps: {s: {gate: true}}\nrules: [{at: s, to: e}]"
    assert set(read_circuit(text).circuit.roles) == {"human"}


LIMITED = """
circuit: limited
start: ask
ends: [done]
thresholds: {most: 2, share: 0.5}
loops: {again: most, strikes: {max: most, per: step}}
steps: {ask: {role: author}}
rules:
  - {at: ask, when: attempt > 5, loop: again, to: ask}
  - {at: ask, loop: strikes, to: AGAIN}
  - {at: ask, to: done}
"""


def test_a_threshold_can_hold_the_limit_of_a_loop() -> None:
    circuit = read_circuit(LIMITED, "c.yaml").circuit
    assert {name: loop.max for name, loop in circuit.loops.items()} == {"again": 2, "strikes": 2}
    other = circuit.with_thresholds({"most": 4})
    assert {name: loop.max for name, loop in other.loops.items()} == {"again": 4, "strikes": 4}
    assert other.loops["strikes"].per_step


@pytest.mark.parametrize("limit", ["share", "nothing", "''"])
def test_a_loop_needs_a_whole_number(limit: str) -> None:
    with pytest.raises(CircuitError, match=r"c.yaml:6: .*limits a loop: it must be a whole number"):
        read_circuit(LIMITED.replace("again: most", f"again: {limit}"), "c.yaml")


@pytest.mark.parametrize("value", [-1, 1.5, True, "2", 100_001])
def test_a_limit_stays_a_whole_number_when_it_is_changed(value: object) -> None:
    with pytest.raises(CircuitError, match="limits a loop"):
        read_circuit(LIMITED, "c.yaml").circuit.with_thresholds({"most": value})
