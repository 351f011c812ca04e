"""The door for Python: what a project starts, who answers, and every way to hold it wrongly."""

import asyncio
import dataclasses
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import interlock
from interlock.api.circuits import UnsoundError
from interlock.engine.case import Usage
from interlock.journal.database import open_reader
from interlock.system.errors import SourceError, StateError, StoreError, UsageError
from interlock.testing import FakeClock, Script, make_project
from tests.world.note import AGENTS, NOTE, PATIENCE, RAIN, approve, author, judge, until


def rows(project: interlock.Project, query: str) -> list[Any]:
    with open_reader(project.db) as connection:
        return list(connection.raw.execute(query))


class Verdict(msgspec.Struct):
    score: float


@dataclasses.dataclass
class Marks:
    score: float


class Judge:
    """An object that can be called."""

    async def __call__(self, dispatch: interlock.Dispatch) -> Verdict:
        return Verdict(0.9)


async def judge_async(dispatch: interlock.Dispatch) -> dict[str, float]:
    await asyncio.sleep(0)
    return {"score": 0.9}


@pytest.mark.parametrize(
    "critic",
    [
        judge,
        judge_async,
        Judge(),
        lambda _: '{"score": 0.9}',
        lambda _: '```json\n{"score": 0.9}\n```',
        lambda _: Verdict(0.9),
        lambda _: Marks(0.9),
        lambda _: interlock.Reply(0, b'{"score": 0.9}', usage=Usage(tokens=120)),
    ],
    ids=["plain", "async", "object", "text", "fence", "record", "dataclass", "reply"],
)
def test_a_function_may_be_of_any_kind(project: interlock.Project, critic: Any) -> None:
    run = project.start("note", RAIN, agents={**AGENTS, "critic": critic})
    assert run.wait(PATIENCE).status == "waiting"


def test_a_reply_can_tell_what_it_cost(project: interlock.Project) -> None:
    def critic(dispatch: interlock.Dispatch) -> interlock.Reply:
        return interlock.Reply(dispatch.id, b'{"score": 0.9}', usage=interlock.Usage(tokens=120))

    result = project.start("note", RAIN, agents={**AGENTS, "critic": critic}).wait(PATIENCE)
    assert result.spent.tokens == 120


def test_what_a_function_raises_is_journaled_and_the_rules_decide(
    project: interlock.Project,
) -> None:
    calls: list[int] = []

    def fails_once(dispatch: interlock.Dispatch) -> str:
        calls.append(dispatch.attempt)
        if len(calls) == 1:
            raise ValueError("no ink")
        return author(dispatch)

    run = project.start("note", RAIN, agents={**AGENTS, "author": fails_once})
    assert run.wait(PATIENCE).status == "waiting"
    assert [event.signal for event in run.events()] == ["crash", "artifact", "artifact"]
    assert 'came back: crash {"reason":"ValueError: no ink"}' in str(run.explain("C1"))
    assert calls == [1, 2]


def test_one_function_answers_for_every_role_that_has_nobody(project: interlock.Project) -> None:
    roles: list[str] = []

    def everybody(dispatch: interlock.Dispatch) -> dict[str, Any]:
        roles.append(dispatch.role)
        return {"text": "Rain.", "score": 0.9}

    run = project.start("note", RAIN, agents=everybody)
    run.wait(PATIENCE)
    approve(project, run)
    assert run.wait(PATIENCE).status == "done"
    assert roles == ["author", "critic", "mailer"]


def test_a_named_agent_goes_before_the_one_for_all(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents={"": lambda _: "Rain.", "critic": judge})
    assert run.wait(PATIENCE).status == "waiting"


def test_commands_and_functions_mix(project: interlock.Project, tmp_path: Path) -> None:
    words = """exec:sh -c 'echo "{\\"score\\": 0.9}"'"""
    run = project.start("note", RAIN, agents={**AGENTS, "critic": words})
    assert run.wait(PATIENCE).status == "waiting"


def test_the_same_id_is_the_same_run(project: interlock.Project) -> None:
    first = project.start("note", RAIN, id="monday", agents=AGENTS)
    first.wait(PATIENCE)
    again = project.start("note", RAIN, id="monday", agents=AGENTS)
    assert again == first
    again.wait(PATIENCE)
    approve(project, first)
    assert again.wait(PATIENCE).status == first.wait(PATIENCE).status == "done"
    over = project.start("note", RAIN, id="monday", agents=AGENTS)
    assert over.wait(PATIENCE).status == "done"
    assert over.wait().counts == first.wait().counts
    assert len({first, again, over}) == 1
    assert len(project.runs()) == 1
    assert rows(project, "select count(*) from journal") == [(4,)]


def test_the_same_id_while_it_works_is_the_same_run(project: interlock.Project) -> None:
    going = threading.Event()
    agents = {**AGENTS, "author": until(going)}
    run = project.start("note", RAIN, id="monday", agents=agents)
    assert project.start("note", RAIN, id="monday", agents=agents) == run
    assert project.resume(run) == run
    with pytest.raises(StateError, match="another circuit, other thresholds or cases"):
        project.start("note", [{"id": "C2", "topic": "x"}], id="monday", agents=agents)
    with pytest.raises(StateError, match="run monday is still at work in this project"):
        project.start("note", RAIN, id="tuesday", agents=agents)
    going.set()
    assert run.wait(PATIENCE).status == "waiting"


@pytest.mark.parametrize(
    "other",
    [
        {"cases": [{"id": "C1", "topic": "snow"}]},
        {"cases": [*RAIN, {"id": "C2", "topic": "snow"}]},
        {"set": {"good_enough": 0.7}},
    ],
    ids=["case", "more", "threshold"],
)
def test_another_input_under_the_same_id_is_refused(
    project: interlock.Project, other: dict[str, Any]
) -> None:
    project.start("note", RAIN, id="monday", agents=AGENTS).wait(PATIENCE)
    given = {"cases": RAIN, **other}
    with pytest.raises(StateError, match="run 'monday' was started with another circuit"):
        project.start("note", id="monday", agents=AGENTS, **given)


def test_the_order_of_a_case_s_fields_is_no_other_input(project: interlock.Project) -> None:
    run = project.start("note", [{"id": "C1", "topic": "rain"}], id="monday", agents=AGENTS)
    run.wait(PATIENCE)
    assert project.start("note", [{"topic": "rain", "id": "C1"}], id="monday", agents=AGENTS) == run


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ([], "there are no cases; give at least one"),
        ([{"topic": "rain"}], "case 1 has no id; give each case one: {'id': 'C1'}"),
        ([{"id": None}], "case 1 has no id"),
        ([{"id": "C1"}, {"id": "C1"}], "cases 1 and 2 have the same id 'C1'"),
        ([{"id": "1"}, {"id": 1}], "cases 1 and 2 have the same id 1"),
        (["C1"], "case 1 is str, not a dict with an 'id'"),
        ("C1", "give cases as a list of dicts"),
        ({"id": "C1"}, "give cases as a list of dicts"),
        ([{"id": "C1", "topic": object()}], "case 'C1' cannot be written as JSON: "),
        ([{"id": "C1", "topic": float("nan")}], "case 'C1' cannot be written as JSON: "),
        ([{"id": "C1", "topic": "\ud800"}], "case 'C1' cannot be written as JSON: "),
        ([{"id": "a b"}], "'a b' is not a case id"),
        ([{"id": "C1", "after": ["C1"]}], "C1"),
    ],
)
def test_cases_that_cannot_be_used_are_told(
    project: interlock.Project, cases: Any, sentence: str
) -> None:
    with pytest.raises(interlock.InterlockError) as raised:
        project.start("note", cases, agents=AGENTS)
    assert sentence in str(raised.value)
    assert "msgspec" not in str(raised.value)
    assert not project.has_database


def test_values_that_json_has_a_form_for_are_taken(project: interlock.Project) -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    run = project.start("note", [{"id": 7, "topic": when, "tags": {"a"}}], agents=AGENTS)
    assert run.wait(PATIENCE).status == "waiting"
    assert run.cases()[0].case_id == "7"


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"agents": {"author": author}}, UsageError, "no agent is named for critic; give one"),
        ({}, UsageError, "no agent is named for author; give one: agents={'author': …}"),
        ({"agents": {**AGENTS, "critc": judge}}, UsageError, "no step has the role 'critc'"),
        ({"agents": {**AGENTS, "critic": 7}}, UsageError, "7 is not an agent"),
        ({"agents": {**AGENTS, "critic": "nobody"}}, SourceError, "'nobody' names no agent"),
        ({"agents": AGENTS, "set": {"good": 1}}, UsageError, "note has no threshold 'good'"),
        ({"agents": AGENTS, "set": {"good_enough": "a"}}, UsageError, "is a number"),
        ({"agents": AGENTS, "slots": {"critic": 0}}, SourceError, "give at least 1"),
        ({"agents": AGENTS, "budget": {"tokns": 1}}, interlock.InterlockError, "tokns"),
    ],
)
def test_arguments_that_cannot_be_used_are_told(
    project: interlock.Project, given: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as raised:
        project.start("note", RAIN, **given)
    assert sentence in str(raised.value)
    assert project.runs() == []


def test_a_circuit_that_is_not_there_or_not_sound_is_told(project: interlock.Project) -> None:
    with pytest.raises(SourceError, match="there is no circuit 'note2'; known are"):
        project.start("note2", RAIN, agents=AGENTS)
    broken = interlock.Circuit.parse(NOTE.replace("to: sent}", "to: write}"))
    with pytest.raises(UnsoundError, match="circuit note is not sound") as raised:
        project.start(broken, RAIN, agents=AGENTS)
    assert raised.value.findings
    assert not project.has_database


def test_a_question_is_answered_once(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents=AGENTS)
    run.wait(PATIENCE)
    (question,) = project.inbox(run)
    with pytest.raises(SourceError, match="nothing was saved"):
        project.answer(question, "perhaps", by="ann")
    project.answer(question, "approve", by="ann")
    run.wait(PATIENCE)
    with pytest.raises(StateError, match=r"was answered by ann at .*; the answer changes nothing"):
        project.answer(question, "reject", by="bob")
    with pytest.raises(SourceError, match="'x' is not the number of a question"):
        project.answer("x", "approve", by="ann")


def test_only_those_may_answer_whom_the_project_lets(tmp_path: Path) -> None:
    settings = '[inbox]\nanswerers = ["ann"]\n'
    with make_project(tmp_path, circuits={"note": NOTE}, settings=settings) as project:
        run = project.start("note", RAIN, agents=AGENTS)
        run.wait(PATIENCE)
        with pytest.raises(StateError, match="nothing was saved"):
            project.answer(project.inbox(run)[0], "approve", by="bob")


def test_a_project_without_a_run_is_empty(tmp_path: Path) -> None:
    with interlock.Project(tmp_path) as project:
        assert (project.runs(), project.inbox()) == ([], [])
        with pytest.raises(StoreError, match="there is no database"):
            project.run()
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_project_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", str(tmp_path / "mine.db"))
    circuit = interlock.Circuit.parse(NOTE)
    with interlock.Project.temporary() as project:
        project.start(circuit, RAIN, agents=AGENTS).wait(PATIENCE)
        folder = project.path
        assert folder.is_dir()
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_replay_and_report(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents=AGENTS)
    run.wait(PATIENCE)
    (found,) = project.replay(run, set={"good_enough": 0.95})
    assert (found.path_before, found.end_before) == (("write", "judge"), "allow")
    assert found.turn is not None
    assert project.report(run).startswith("# Run 1: note")


def test_a_run_s_id_names_it_everywhere(project: interlock.Project) -> None:
    run = project.start("note", RAIN, id="monday", agents=AGENTS)
    run.wait(PATIENCE)
    assert project.inbox("monday") == project.inbox(run) == project.inbox(run.number) != []
    assert str(project.explain("C1", "monday")) == str(run.explain("C1"))
    assert project.replay("monday") == project.replay(run)
    assert project.report("monday") == project.report(run)


def test_settings_of_the_project_count(tmp_path: Path) -> None:
    settings = '[agents]\nmailer = "exec:true"\n[thresholds]\ngood_enough = 0.95\n'
    with make_project(tmp_path, circuits={"note": NOTE}, settings=settings) as project:
        run = project.start("note", RAIN, agents={"author": author, "critic": judge})
        assert run.wait(PATIENCE).status == "unhealthy"


def test_a_budget_that_is_spent_is_a_question(project: interlock.Project) -> None:
    run = project.start("note", RAIN, agents=AGENTS, budget={"dispatches": 1})
    assert run.wait(PATIENCE).status == "budget"
    (question,) = project.inbox(run)
    project.answer(question, "raise", by="ann", fields={"dispatches": 9})
    assert run.wait(PATIENCE).status == "waiting"


def test_the_clock_of_a_project_is_the_run_s(tmp_path: Path) -> None:
    clock = FakeClock(1_000_000.0)
    with make_project(tmp_path, circuits={"note": NOTE}, clock=clock) as project:
        run = project.start("note", RAIN, agents=Script({**AGENTS}))
        run.wait(PATIENCE)
        assert {event.at for event in run.events()} == {1_000_000.0}


def test_a_gate_takes_no_answer_after_its_deadline_though_nobody_is_at_work() -> None:
    clock = FakeClock()
    hasty = NOTE.replace("timeout: 7d", "timeout: 1h")
    with interlock.Project.temporary(clock=clock) as project:
        run = project.start(interlock.Circuit.parse(hasty), RAIN, agents=AGENTS)
        assert run.wait(timeout=PATIENCE).status == "waiting"
        question = project.inbox(run)[0]
        assert question.due_at == question.asked_at + 3600
        clock.advance(3600)
        with pytest.raises(StateError, match=r"ran out of time at .* continues without an answer"):
            project.answer(question, "approve", by="ann")
        assert [each.answer_saved for each in project.inbox(run)] == [False]
        life = run.explain("C1")
        assert life.dispatches[-1].refused[0].reason == "Stale"


def test_a_run_that_is_started_again_keeps_the_agents_that_words_name(tmp_path: Path) -> None:
    script = tmp_path / "crew.yaml"
    script.write_text("'*':\n  send: {answer: {}}\n", encoding="utf-8")
    circuit = interlock.Circuit.parse(NOTE)
    agents = {**AGENTS, "mailer": f"script:{script}"}
    with interlock.Project(tmp_path) as project:
        assert project.start(circuit, RAIN, id="x", agents=agents).wait(PATIENCE).status == (
            "waiting"
        )
        again = {"author": author, "critic": judge}
        assert project.start(circuit, RAIN, id="x", agents=again).number == 1
        kept = inspect_options(project)
        assert kept["mailer"] == f"script:{script}"


def inspect_options(project: interlock.Project) -> Any:
    (found,) = rows(project, "select options from runs")
    return msgspec.json.decode(found[0])["agents"]
