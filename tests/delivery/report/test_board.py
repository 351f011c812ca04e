"""The board: what is at work or waits, bounded, with what is known of each."""

from interlock.agents.cli.health import HealthFacts, standing
from interlock.agents.status import AgentStanding
from interlock.delivery.report.board import MOST, BoardQuestion, Sign, agent_of, board, sign_of
from interlock.engine.schedule import Spent
from interlock.journal.history import CaseProgress

STANDS = [
    CaseProgress("a", "ended", "COMPLETE", "MERGE"),
    CaseProgress("b", "open", "", "CLARIFY", (), 9, "human", 20.0),
    CaseProgress("c", "open", "", "IMPLEMENT", (), 7, "developer", 10.0),
    CaseProgress("d", "open", "", "PREPARE", ("c",)),
    CaseProgress("e", "ended", "FAILED", "CHECK"),
    CaseProgress("f", "open", "", "PREPARE", ("e",)),
]


def test_rows_are_what_is_at_work_and_what_waits() -> None:
    found = board(
        3,
        STANDS,
        titles={"c": "The c"},
        agents={"developer": "claude", "": "codex"},
        costs={"c": (1200, 0.25)},
        signs={7: Sign(12.0, "working")},
        spent=Spent(dispatches=4),
    )
    assert (found.run_id, found.outcome, found.spent.dispatches) == (3, "RUNNING", 4)
    assert found.counts == {
        "at work": 1,
        "asks": 1,
        "waits": 1,
        "blocked": 1,
        "failed": 1,
        "complete": 1,
    }
    assert [row.task_id for row in found.rows] == ["c", "b", "d"]
    row = found.rows[0]
    assert (row.title, row.agent, row.since, row.sign) == ("The c", "claude", 10.0, 12.0)
    assert (row.tokens, row.money, row.standing) == (1200, 0.25, "working")
    assert found.questions == (BoardQuestion(9, "b"),)
    assert found.rows[2].why == "comes after c"


def test_a_hold_is_a_repair() -> None:
    found = board(1, STANDS, titles={}, agents={}, costs={}, signs={}, holder="c")
    assert (found.outcome, found.repairing) == ("REMEDIATING", "c")


def test_many_rows_are_counted_not_kept() -> None:
    many = [CaseProgress(f"t{at}", "open", "", "PREPARE") for at in range(MOST + 5)]
    found = board(1, many, titles={}, agents={}, costs={}, signs={})
    assert (len(found.rows), found.left_out) == (MOST, 5)


def test_who_plays_a_role() -> None:
    given = {"critic": "codex", "": "claude"}
    assert [agent_of(role, given) for role in ("critic", "auditor", "checks", "human")] == [
        "codex",
        "claude",
        "interlock",
        "human",
    ]
    assert agent_of("auditor", {}) == "auditor"


def test_the_last_sign_of_life_is_read_from_the_reasons_of_a_standing() -> None:
    facts = HealthFacts(state="S", age=90.0, stream_age=12.0, has_spoken=True, silence=600.0)
    seen = standing(facts)
    told = AgentStanding(7, 1, "c", "IMPLEMENT", "claude", seen.word, seen.reasons, 1, 100.0)
    assert sign_of(told) == Sign(88.0, "working")
    mute = standing(
        HealthFacts(state="S", age=9.0, stream_age=9.0, has_spoken=False, silence=600.0)
    )
    told = AgentStanding(7, 1, "c", "IMPLEMENT", "claude", mute.word, mute.reasons, 1, 100.0)
    assert sign_of(told) == Sign(0.0, mute.word)
