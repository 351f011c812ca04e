"""stop: gracefully, at once, and when there is nobody to stop."""

import signal

from kernel_tests.cli.test_run import SLEEPER
from tests.world import triage
from tests.world.command_line import World, decisions, dispatches, ended, until

WAITS = "stopping: waiting for {} out; ask again to end at once, nothing is lost\n"
LOOK = "'interlock status 1' shows which cases need a look\n"


def test_stop_lets_what_is_out_come_in(world: World) -> None:
    triage.lay_out(world)
    slow = triage.SCRIPT.replace("crash: exit code 1", "delay: 1s, answer: {confidence: 1}")
    world.write("scout.yaml", slow)
    process = world.start(*triage.RUN)
    until(lambda: decisions(world) >= 5, "the quick cases are decided")
    asked = world.say("stop")
    assert asked == (0, "asked process PID on HOST (__main__.py run triage) to stop\n", "")
    out = "run 1: unhealthy; 3 kept, 1 dropped; 6 dispatches\n" + LOOK
    assert ended(process) == (3, out, WAITS.format("1 answer that is"))


def test_stop_now_does_not_wait(world: World) -> None:
    triage.lay_out(world)
    process = world.start(*triage.RUN[:-1], SLEEPER)
    until(lambda: dispatches(world) == 4, "all are out")
    asked = world.say("stop", "--now", "--json")
    assert asked.json.items() >= {"pid": process.pid, "now": True}.items()
    result = ended(process)
    assert result.code in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    assert result[1:] == (
        "run 1: stopped; 4 open; 4 dispatches\n'interlock resume 1' continues\n",
        WAITS.format("4 answers that are"),
    )
    assert world.say("status").out.splitlines()[0] == "run 1: triage v3, stopped"


def test_stop_when_nobody_works(world: World) -> None:
    nobody = "interlock: nobody works on .interlock/interlock.db, so there is nothing to stop\n"
    assert world.say("stop") == (1, "", nobody)


def test_nobody_waits_for_answers_that_keep(world: World) -> None:
    """What is out as files lies there until the run goes on: one signal ends it."""
    triage.lay_out(world)
    process = world.start(*triage.RUN[:-2], "--dispatch", "file")
    until(lambda: dispatches(world) == 4, "all are out")
    process.terminate()
    result = ended(process)
    assert result.code == 128 + signal.SIGTERM
    assert result.out.endswith("'interlock resume 1' continues\n")
    assert "stopping" not in result.err
