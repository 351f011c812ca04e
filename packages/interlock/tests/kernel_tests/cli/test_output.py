"""The progress bar: on a terminal only, and never on stdout."""

import os
import subprocess

from tests.world import triage
from tests.world.command_line import COMMAND, LIMIT, CliResult, World, plain, read_all


def test_a_terminal_gets_a_bar_and_stdout_only_the_result(world: World) -> None:
    triage.lay_out(world)
    world.write("scout.yaml", '"*": {look: {delay: 300ms, answer: {confidence: 1}}}')
    master, slave = os.openpty()
    with subprocess.Popen(
        [*COMMAND, *triage.RUN, "--parallel", "2"],
        cwd=world.folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
    ) as process:
        os.close(slave)
        drawn = read_all(master)
        assert process.stdout is not None
        result = process.stdout.read()
        assert process.wait(LIMIT) == 0
    assert result == "run 1: done; 4 kept; 4 dispatches\n"
    assert "2/4 cases" in drawn
    assert "2 in flight" in drawn
    assert "Traceback" not in drawn


def test_elsewhere_only_the_budget_is_spoken_of_once(world: World) -> None:
    triage.lay_out(world)
    result = world.type(*triage.RUN, "--parallel", "1", "--budget", "dispatches=7")
    assert result == CliResult(
        3,
        plain(
            "run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n"
            "'interlock status 1' shows which cases need a look\n"
        ),
        "86% of the budget's dispatches is spent\n",
    )
