"""An unsound circuit is not run: its findings are shown instead, and nothing is left behind."""

import re
import shutil

import msgspec
import pytest

from delivery_tests.plan.test_check import GOLDEN
from interlock.api.circuits import Circuit, refuse_unsound
from interlock.runtime.circuits import list_installed_circuits
from rca_tests.worlds.red_repository import KEY, junit
from tests.world import triage
from tests.world.command_line import CliResult, World
from tests.world.git_repo import GitRepo

NO_TEMPLATE = """\
circuit triage is not sound, so nothing was started:
bad.yaml:12: error circuit.prompt: the prompt of step 'look' can never be filled: {problem}
    fix: write {{{{ case.NAME }}}} for what a case brings; templates can read circuit, case_id, \
step, attempt, case, answers, context, loops, thresholds, complaint
"""


def test_a_run_of_an_unsound_circuit_shows_the_findings(world: World) -> None:
    triage.lay_out(world)
    world.write("bad.yaml", triage.CIRCUIT.replace("to: kept", "to: keept"))
    result = _run(world)
    assert (result.code, result.out) == (6, "")
    lines = result.err.splitlines()
    assert lines[0] == "circuit triage is not sound, so nothing was started:"
    unknown = [line for line in lines if line.startswith("bad.yaml:18: error circuit.unknown-name")]
    assert len(unknown) == 1
    assert "'keept'" in unknown[0]
    assert lines[lines.index(unknown[0]) + 1].startswith("    fix: ")
    assert not world.db.parent.exists()


@pytest.mark.parametrize(
    ("circuit", "words"),
    [
        ("rca", ["run", "rca", "--cases", "cases.jsonl", "--agent", "exec:true"]),
        ("rca", ["analyze", "red.xml"]),
        ("rca", ["cursor", "--launch", "red.xml"]),
        ("rca", ["calibrate", "--scenario", "network-daemon", "--agent", "basic"]),
        ("delivery", ["deliver", "plan.md", "--agent", "exec:true"]),
        ("delivery", ["deliver", "plan.md", "--agent", "exec:true", "--dry-run"]),
        ("epic", ["epic", "run", "epic.md", "--agent", "exec:true"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_every_verb_refuses_an_unsound_circuit_of_the_project(
    world: World, circuit: str, words: list[str]
) -> None:
    shipped = list_installed_circuits()[circuit]
    own = shutil.copytree(
        shipped.parent / "prompts", world.folder / "circuits" / circuit / "prompts"
    ).parent
    text, bad = re.subn(r"(?m)^    to: [A-Z]\w+$", "    to: NOWHERE", shipped.read_text(), count=1)
    assert bad == 1
    (own / "circuit.yaml").write_text(text)
    world.cases("A")
    world.write("red.xml", junit(KEY))
    world.write("plan.md", GOLDEN)
    world.write("epic.md", "# Epic 3: Boats\n\n## Story 3.1: Login\n")
    GitRepo(world.folder).commit("one", {"a.txt": "one\n"})
    result = world.say(*words)
    assert (result.code, result.out) == (6, ""), result.err
    assert f"circuit {circuit} is not sound, so nothing was started:\n" in result.err
    assert "error circuit.unknown-name: " in result.err
    assert "'NOWHERE'" in result.err
    assert not world.db.exists() or world.say("runs", "--json").json["runs"] == []


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("Look at {{ topic }}.", "it reads unknown names: 'topic'"),
        (
            "Look at {{ case.topic",
            (
                "it is not a valid template: unexpected end of template, "
                "expected 'end of print statement'."
            ),
        ),
    ],
)
def test_a_prompt_that_can_never_be_filled_is_found_before_the_run(
    world: World, prompt: str, problem: str
) -> None:
    triage.lay_out(world)
    text = triage.CIRCUIT.replace("Look at {{ case.topic }}.", f'"{prompt}"')
    world.write("bad.yaml", text)
    assert _run(world) == CliResult(6, "", NO_TEMPLATE.format(problem=problem))
    assert not world.db.parent.exists()
    found = world.say("circuit", "verify", "bad.yaml", "--json")
    assert (found.code, found.json["sound"]) == (6, False)
    assert found.json["findings"][0]["id"] == "circuit.prompt"


def test_a_prompt_that_one_case_cannot_fill_is_that_cases_failure(world: World) -> None:
    triage.lay_out(world)
    world.write("cases.jsonl", '{"id": "A", "topic": "x"}\n{"id": "B"}\n')
    result = world.say(*triage.RUN)
    assert result.out.startswith("run 1: unhealthy; 1 kept, 1 dropped; 2 dispatches\n")
    assert world.say("status").out.splitlines()[-2] == (
        "B     dropped  look  No answer. (crash: the prompt of step 'look' cannot be filled: "
        "'dict object' has no attribute 'topic')"
    )


def test_rules_that_overlap_are_counted_and_listed_when_asked_for(world: World) -> None:
    overlapping = triage.CIRCUIT.replace(
        "  - id: look-again\n",
        "  - {id: surer, at: look, when: confidence >= 0.5, to: dropped}\n  - id: look-again\n",
    )
    world.write("odd.yaml", overlapping)
    brief = world.say("circuit", "verify", "odd.yaml")
    assert (brief.code, brief.out.splitlines()[1:]) == (
        0,
        [
            "2 rules hold for the same answers, and the first wins; --notes lists them",
            "sound",
        ],
    )
    full = world.say("circuit", "verify", "odd.yaml", "--notes")
    assert full.out.startswith("odd.yaml:19: note circuit.overlap: ")
    assert len(full.out.splitlines()) == 4, "an overlap is told in one line"
    listed = world.say("circuit", "verify", "odd.yaml", "--json").json["findings"]
    assert [each["id"] for each in listed] == ["circuit.overlap"]


@pytest.mark.parametrize("name", ["rca", "delivery", "epic"])
def test_the_verdict_on_a_shipped_circuit_is_short(world: World, name: str) -> None:
    result = world.say("circuit", "verify", name)
    assert (result.code, result.out.splitlines()[-1]) == (0, "sound")
    assert len(result.out.splitlines()) <= 4


def _run(world: World, *flags: str) -> CliResult:
    words = ("run", "bad.yaml", "--cases", "cases.jsonl", "--agent", "script:scout.yaml")
    return world.say(*words, *flags)


@pytest.mark.parametrize(
    ("changes", "never"),
    [
        ({"recall_hit": 0.4}, ["rule 'H3' can never fire: where it holds, 'H1' goes first"]),
        (
            {"recall_uncertain": 0},
            ["rule 'H2-weak' can never fire: where it holds, 'H3' goes first"],
        ),
        (
            {"convergence_sufficient": 1.5},
            ["rule 'H9' can never fire: its guard holds for no values that can come"],
        ),
        ({"recall_hit": 0.41, "max_investigate_loops": 0}, []),
    ],
)
def test_a_threshold_may_turn_a_rule_off_and_that_is_said(
    changes: dict[str, float], never: list[str]
) -> None:
    own = Circuit.load("rca").source
    changed = msgspec.structs.replace(own, circuit=own.circuit.with_thresholds(changes))
    assert [each.message for each in refuse_unsound(changed, own.circuit)] == never


def test_a_rule_that_no_threshold_turned_off_is_an_error_with_any(world: World) -> None:
    rule = "  - {id: late, at: look, to: kept}"
    triage.lay_out(world)
    world.write("bad.yaml", f"{triage.CIRCUIT.rstrip()}\n{rule}\n")
    result = _run(world, "--set", "sure=2")
    assert result.code == 6
    assert "rule 'late' can never fire" in result.err
