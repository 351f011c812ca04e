"""Filling prompts: with what the case knows, or with a clear word about what it does not know."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.engine.circuit_file import read_circuit
from interlock.runtime.prompts import render_prompt
from interlock.system.errors import CircuitError
from tests.world.sample_circuit import PAPER

CIRCUIT = read_circuit(PAPER).circuit
CASE = Case(
    "A-1",
    "judge",
    visits={"write": 2, "judge": 1},
    loops={"rework": 1},
    context={"words": 5},
    answers={"write": {"words": 5, "list": ["ü", "<b>"]}},
    input={"id": "A-1", "topic": "Züge 🚂"},
)


def with_prompt(template: str) -> Circuit:
    step = msgspec.structs.replace(CIRCUIT.steps["judge"], prompt=template)
    return msgspec.structs.replace(CIRCUIT, steps={**CIRCUIT.steps, "judge": step})


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        pytest.param("Judge it.\n", "Judge it.\n", id="plain text"),
        pytest.param("100 % {plain", "100 % {plain", id="a brace alone"),
        pytest.param("{{ case.topic }}\n", "Züge 🚂\n", id="input, not ASCII"),
        pytest.param(
            "{{ circuit }} {{ case_id }} {{ step }} {{ attempt }} {{ thresholds.good }}",
            "paper A-1 judge 1 3",
            id="names",
        ),
        pytest.param(
            "{% for each in answers.write.list %}\n- {{ each }}\n{% endfor %}",
            "- ü\n- <b>\n",
            id="a loop; nothing is escaped",
        ),
        pytest.param(
            "{% if context.remarks is defined %}{{ context.remarks }}{% else %}none{% endif %}",
            "none",
            id="asking first",
        ),
        pytest.param("{{ context | json }}", '{\n  "words": 5\n}', id="as JSON"),
        pytest.param("{{ loops.rework }}", "1", id="loops"),
        pytest.param("{{ '{{ case.topic }}' }}", "{{ case.topic }}", id="data is no template"),
    ],
)
def test_filled(template: str, prompt: str) -> None:
    assert render_prompt(with_prompt(template), CASE) == prompt


def test_without_a_template_the_facts_are_json() -> None:
    prompt = render_prompt(CIRCUIT, CASE)
    assert prompt.startswith('{\n  "circuit": "paper",\n  "case_id": "A-1",\n  "step": "judge",')
    assert msgspec.json.decode(prompt) == {
        "circuit": "paper",
        "case_id": "A-1",
        "step": "judge",
        "attempt": 1,
        "case": {"id": "A-1", "topic": "Züge 🚂"},
        "answers": {"write": {"words": 5, "list": ["ü", "<b>"]}},
        "context": {"words": 5},
        "loops": {"rework": 1},
        "thresholds": {"good": 3},
        "complaint": "",
    }


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        pytest.param("{{ topic }}", "'topic' is undefined", id="unknown name"),
        pytest.param("{{ case.title }}", "'dict object' has no attribute 'title'", id="no field"),
        pytest.param("{{ answers.sign.decision }}", None, id="no answer yet"),
        pytest.param("{% if x %}", None, id="unclosed"),
        pytest.param("{{ case.topic | nosuch }}", None, id="unknown filter"),
        pytest.param("{% include 'x.md' %}", None, id="include"),
        pytest.param("{{ 1 / 0 }}", "division by zero", id="division by zero"),
        pytest.param("{{ [1][5] }}", None, id="index"),
        pytest.param("{{ case | int + [] }}", None, id="types"),
        pytest.param(
            "{{ ''.__class__ }}",
            "access to attribute '__class__' of 'str' object is unsafe.",
            id="dunder",
        ),
        pytest.param("{{ ''['__class__'] }}", None, id="dunder by index"),
        pytest.param("{{ '' | attr('__class__') }}", None, id="dunder by filter"),
        pytest.param("{{ fill.__globals__ }}", None, id="globals"),
        pytest.param("{{ cycler.__init__.__globals__.os }}", None, id="globals of a helper"),
        pytest.param("{{ case.clear() }}", None, id="changing the case"),
        pytest.param("{{ '{0.__class__}'.format('') }}", None, id="format"),
        pytest.param("{{ '\\ud800' }}", None, id="lone surrogate"),
        pytest.param("{{ case.topic * 1000000 }}", None, id="a huge text"),
        pytest.param("{{ 9 ** 9 ** 9 }}", None, id="a huge power"),
        pytest.param("{% for a in range(10000000) %}{% endfor %}", None, id="a huge range"),
        pytest.param(
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "it takes more than 100,000 turns and calls",
            id="loops in loops",
        ),
        pytest.param(
            "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}"
            "{{ m(40) }}",
            "it takes more than 100,000 turns and calls",
            id="macros that double",
        ),
        pytest.param("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", None, id="endless macro"),
    ],
)
def test_unfillable(template: str, problem: str | None) -> None:
    with pytest.raises(CircuitError) as caught:
        render_prompt(with_prompt(template), CASE)
    start = "the prompt of step 'judge' cannot be filled: "
    assert str(caught.value).startswith(start)
    if problem is not None:
        assert str(caught.value) == f"{start}{problem}"


def test_every_filling_starts_with_a_fresh_allowance() -> None:
    circuit = with_prompt("{% for a in range(60000) %}{% endfor %}x")
    assert [render_prompt(circuit, CASE) for _ in range(3)] == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        pytest.param(
            "Judge it.\n",
            "Judge it.\n\nYour last answer could not be used. Answer lacks the field 'score'.\n",
            id="said at the end",
        ),
        pytest.param(
            "{% if complaint %}Mind: {{ complaint }}{% endif %}",
            "Mind: Answer lacks the field 'score'.",
            id="said where the template wants it",
        ),
    ],
)
def test_who_is_asked_again_is_told_why(template: str, prompt: str) -> None:
    case = msgspec.structs.replace(CASE, complaint="Answer lacks the field 'score'.")
    assert render_prompt(with_prompt(template), case) == prompt


PIECES = st.sampled_from(
    [
        *("text ", "ü\n", "\r\n", "{", "}", "}}", "%}", "100 %", "\ud800"),
        *("{{ case.topic }}", "{{case.id}}", "{{ attempt }}", "{{  case_id  }}", "{{ complaint }}"),
        *("{{ case.items }}", "{{ case }}", "{{ missing }}", "{{ case.no.such }}", "{{ true }}"),
        *("{{ answers.write.words }}", "{{ answers.write.list }}", "{{ case.topic.upper }}"),
        *("{{- attempt }}", "{{ attempt | json }}", "{# no #}", "{% if attempt %}1{% endif %}"),
    ]
)


@given(st.lists(PIECES, max_size=6).map("".join))
def test_the_short_way_and_jinjas_way_say_the_same(template: str) -> None:
    outcomes = []
    for way in (template, "{{ '' }}" + template):
        try:
            outcomes.append(render_prompt(with_prompt(way or "x"), CASE))
        except CircuitError as error:
            outcomes.append(str(error))
    assert outcomes[0] == (outcomes[1] if template else "x")
