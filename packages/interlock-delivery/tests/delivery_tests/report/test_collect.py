"""Test the report of a run from its journal: work, evidence, claims, refusals, questions; and the
board.
"""

from pathlib import Path

import msgspec
import pytest

from delivery_tests.world.delivery_world import DeliveryWorld, develop, plan, ready, task
from interlock.carriers.contract import Ask
from interlock.engine.circuit import Circuit
from interlock.journal.database import open_reader
from interlock.journal.runs import find_run
from interlock.runtime.circuits import find_circuit
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.report.board import Board, BoardReader
from interlock_delivery.report.collect import ReportCollector, list_answer_commands
from interlock_delivery.report.records import DeliveryReport, TaskReport
from tests.world.git_repo import git


def circuit() -> Circuit:
    return find_circuit("delivery", Path()).open().circuit


def tell(project: DeliveryWorld) -> DeliveryReport:
    with open_reader(project.db) as connection:
        run = find_run(connection)
        terms = msgspec.convert(run.options["terms"], DeliveryConfig)
        teller = ReportCollector(
            run, circuit(), terms, {"": "robot", "critic": "reader"}, run.status
        )
        return teller.collect(connection, 99.0, "Calc", ["a note", "a note"])


def look(project: DeliveryWorld) -> Board:
    with open_reader(project.db) as connection:
        run = find_run(connection)
        return BoardReader(connection, run.run_id, {"": "robot"}, project.folder / "none").read()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> TaskReport:
    """Run one task whose developer first babbles, then lies about a file, then is merged."""
    result: list[str] = []

    def babbles(ask: Ask, folder: Path) -> str:
        result.append(ask.step)
        if len(result) == 1:
            return "All done, trust me."
        develop(ask, folder)
        (folder / "left.py").write_text("# TODO: finish this\nprint('here')\n")
        return ready("sub").replace("- calc.py: a function", "- ghost.py: a function")

    project = DeliveryWorld(tmp_path_factory.mktemp("done"), plan(task("sub")))
    project.begin()
    assert project.work({"developer": babbles}) == "done"
    output = tell(project)
    assert (output.outcome, output.title, output.notes) == ("COMPLETE", "Calc", ("a note",))
    assert output.base == git(project.repo, "rev-parse", "main")
    (found,) = output.tasks
    assert found.commit == git(project.repo, "rev-parse", "interlock/calc")
    return found


def test_every_decision_is_told_in_order_with_who_and_why(done: TaskReport) -> None:
    assert [(move.step, move.agent, move.to) for move in done.moves] == [
        ("PREPARE", "interlock", "IMPLEMENT"),
        ("IMPLEMENT", "robot", "IMPLEMENT"),
        ("IMPLEMENT", "robot", "CHECK"),
        ("CHECK", "interlock", "REVIEW"),
        ("REVIEW", "reader", "AUDIT"),
        ("AUDIT", "robot", "PROVE"),
        ("PROVE", "interlock", "MERGE"),
        ("MERGE", "interlock", "COMPLETE"),
    ]
    assert all(move.why and move.seconds >= 0 for move in done.moves)
    assert [move.said for move in done.moves[2:6:3]] == [
        "done",
        "all of it; sub.py belongs to it",
    ]
    struck = done.moves[1]
    assert (struck.rule, struck.event) == ("strike", "unknown_signal_recovery")
    assert done.moves[1].refused[0].startswith("Missing: ")
    assert (done.attempts, done.dispatches, done.word, done.end) == (2, 8, "complete", "COMPLETE")


def test_checks_are_told_from_before_the_work_to_after_the_merge(done: TaskReport) -> None:
    assert [(each.stage, each.passed, each.tests) for each in done.proofs] == [
        ("baseline", True, 1),
        ("check", True, 2),
        ("prove", True, 2),
        ("merge", True, 2),
    ]


def test_claims_are_those_of_the_one_who_made_them(done: TaskReport) -> None:
    found = {(each.role, each.claim.check, each.claim.found) for each in done.claims}
    assert found == {
        ("developer", "Unit Tests", "verified"),
        ("developer", "ghost.py", "refuted"),
        ("auditor", "Unit Tests", "verified"),
        ("auditor", "it works", "unchecked"),
    }
    assert (done.author, done.summary) == ("robot", "done")


def test_a_question_is_told_in_the_words_of_who_asked_and_with_its_commands(tmp_path: Path) -> None:
    def asks(ask: Ask, _folder: Path) -> str:
        return f"SEEKING_DIVINE_CLARIFICATION\n\nTask: {ask.case_id}\nQuestion: Which one?\n"

    project = DeliveryWorld(tmp_path, plan(task("sub"), task("late", "sub")))
    project.begin()
    assert project.work({"developer": asks}) == "waiting"
    output = tell(project)
    sub, late = output.tasks
    assert (output.outcome, sub.word, sub.question) == ("PAUSED", "asks", "Which one?")
    assert (late.word, late.why, late.tree) == ("waits", "comes after sub", "")
    assert output.needs[0].commands == list_answer_commands(circuit(), "CLARIFY", sub.question_id)
    assert output.needs[0].commands[0] == f'interlock answer {sub.question_id} answer -m "…"'
    board = look(project)
    assert [(row.task_id, row.word, row.title) for row in board.rows] == [
        ("sub", "asks", "Add sub"),
        ("late", "waits", "Add late"),
    ]
    assert [each.question_id for each in board.questions] == [sub.question_id]


def test_a_repair_that_a_human_must_settle_holds_all(tmp_path: Path) -> None:
    def blocked(ask: Ask, _folder: Path) -> str:
        return f"INFRA_BLOCKED: {ask.case_id}\n\nIssue: the disk is gone\n"

    project = DeliveryWorld(tmp_path, plan(task("sub"), task("add")))
    project.begin()
    project.work({"developer": blocked}, thresholds={"max_remediation": 0}, parallel=1)
    output, board = tell(project), look(project)
    assert output.repairing == board.repairing
    assert output.repairing in ("sub", "add")
    assert board.outcome == "REMEDIATING"
    (asks,) = [each for each in output.tasks if each.word == "asks"]
    assert asks.step == "INFRA_GATE"
    assert [each.split()[-1] for each in output.needs[0].commands] == ["retry", "override", "halt"]


def test_a_task_that_broke_rules_and_failed(tmp_path: Path) -> None:
    def rewrites(ask: Ask, folder: Path) -> str:
        git(folder, "commit", "-q", "--amend", "-m", "mine")
        return develop(ask, folder)

    project = DeliveryWorld(tmp_path, plan(task("sub")))
    project.begin()
    assert project.work({"developer": rewrites}, thresholds={"max_violations": 0}) == "unhealthy"
    output = tell(project)
    (found,) = output.tasks
    assert (output.outcome, found.end, found.commit) == ("FAILED", "FAILED", "")
    assert len(found.violations) == 1
    assert output.needs[0].sentence.startswith("FAILED at CHECK: Rules of the work were broken")
    assert Path(found.tree).is_dir()
