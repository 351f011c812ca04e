"""Test that the drawn board is bounded by the screen, harmless, and only for terminals."""

import fcntl
import io
import os
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from rich.console import Console

from delivery_tests.world.delivery_project import AGENT, lay_out
from interlock.engine.schedule import Spent
from interlock.runtime.terms import RunCounts
from interlock_delivery.cli.board import format_age, render_board
from interlock_delivery.report.board import Board
from interlock_delivery.report.records import TaskRecord
from tests.world.command_line import COMMAND, LIMIT, read_all


def row(task_id: str, **more: object) -> TaskRecord:
    facts = {"word": "at work", "step": "IMPLEMENT", "role": "developer", "agent": "claude"}
    return TaskRecord(task_id=task_id, **{**facts, "since": 40.0, **more})  # type: ignore[arg-type]


def board(*rows: TaskRecord, **more: object) -> Board:
    facts = {"run_id": 3, "outcome": "RUNNING", "counts": {"complete": 2, "at work": 1}}
    return Board(rows=rows, **{**facts, **more})  # type: ignore[arg-type]


def drawn(found: Board, height: int = 24, width: int = 100, tally: RunCounts | None = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False)
    console.print(render_board(found, 100.0, height, tally or RunCounts()))
    return out.getvalue()


def test_a_row_tells_who_works_for_how_long_and_what_it_cost() -> None:
    found = board(
        row("a", title="Add a", sign=97.0, standing="working", money=1.5),
        row("b", tokens=1234),
        row("c", word="asks", role="human", agent="human", step="CLARIFY"),
        row("d", word="waits", why="comes after a", since=0.0),
        spent=Spent(dispatches=7, money=1.5),
        questions=(row("c", question_id=9),),
        repairing="b",
    )
    lines = drawn(found).splitlines()
    assert lines[0] == "run 3 RUNNING  2 complete  1 at work  7 dispatches  1.50 spent"
    assert lines[1].startswith("repairing: b; ")
    assert lines[2].split()[:5] == ["TASK", "TITLE", "STEP", "ROLE", "AGENT"]
    assert lines[3].split() == [
        "a",
        "Add",
        "a",
        "IMPLEMENT",
        "developer",
        "claude",
        "1m00",
        "working",
        "3s",
        "1.50",
    ]
    assert lines[4].split() == ["b", "IMPLEMENT", "developer", "claude", "1m00", "-", "1,234t"]
    assert lines[6].split() == ["d", "IMPLEMENT", "comes", "after", "a"]
    assert lines[7] == (
        "1 question: 'interlock inbox' shows them; 'interlock answer 9 …' answers c"
    )


@pytest.mark.parametrize("height", [1, 8, 24, 60])
@pytest.mark.parametrize("width", [40, 100])
def test_it_never_fills_more_than_the_screen(height: int, width: int) -> None:
    rows = [row(f"t{at}", title="x" * 200) for at in range(100)]
    found = board(*rows, left_out=7, questions=(row("t1", question_id=1),) * 3, repairing="t2" * 99)
    tally = RunCounts(limited=2, limited_until=9e9)
    lines = drawn(found, height, width, tally).splitlines()
    assert len(lines) <= max(height, 9)
    assert any(line.startswith("… and ") for line in lines)


def test_what_a_plan_says_moves_no_cursor() -> None:
    text = drawn(board(row("a\x1b[2J", title="[red]b[/red]\x07", agent="c\x1b]0;x\x07")), width=200)
    assert "\x1b" not in text
    assert "[red]b[/red]\\x07" in text


@pytest.mark.parametrize(
    ("seconds", "visible"),
    [(-4, "0s"), (59.9, "59s"), (61, "1m01"), (3600, "1h00"), (90061, "25h01")],
)
def test_ages(seconds: float, visible: str) -> None:
    assert format_age(seconds) == visible


def test_a_terminal_gets_the_board_and_stdout_only_the_result(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "asks")
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
    with subprocess.Popen(
        [*COMMAND, "deliver", "plan.md", "--agent", AGENT],
        cwd=world.folder,
        env={**os.environ, "TERM": "xterm-256color"},
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
    ) as process:
        os.close(slave)
        visible = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_all(master))
        assert process.stdout is not None
        result = process.stdout.read()
        assert process.wait(LIMIT) == 4
    assert result.startswith("run 1 PAUSED: 2 tasks: 1 complete, 1 asks; ")
    assert "run 1 RUNNING" in visible
    assert "Add adds" in visible
    assert "Traceback" not in visible


def test_elsewhere_each_decision_is_a_line(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds")
    result = world.type("deliver", "plan.md", "--agent", AGENT, "--json")
    assert result.code == 0
    assert result.json["outcome"] == "COMPLETE"
    steps = [line.split(" ", 1)[1] for line in result.err.splitlines()]
    assert steps == [
        "adds: PREPARE artifact -> IMPLEMENT",
        "adds: IMPLEMENT READY_FOR_REVIEW -> CHECK",
        "adds: CHECK artifact -> REVIEW",
        "adds: REVIEW REVIEW_PASSED -> AUDIT",
        "adds: AUDIT AUDIT_PASSED -> PROVE",
        "adds: PROVE artifact -> MERGE",
        "adds: MERGE artifact -> COMPLETE",
    ]
