"""run, resume and stop: what they say, how they leave, what they leave behind."""

import signal
import sys
from pathlib import Path

import pytest

from tests.world import triage
from tests.world.change import CHANGE
from tests.world.command_line import APPROVED, CliResult, World, dispatches, ended, until

SLEEPER = f"exec:{sys.executable} {Path(__file__).with_name('silent_agent.py')}"
"""An agent that never answers."""


def test_a_run_says_how_it_ended_and_what_to_do_next(world: World) -> None:
    assert triage.done(world) == CliResult(
        3,
        "run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n"
        "'interlock status 1' shows which cases need a look\n",
        "",
    )


def test_a_healthy_run_is_done(world: World) -> None:
    triage.lay_out(world).cases("A", "B")
    assert world.type(*triage.RUN) == (0, "run 1: done; 2 kept; 3 dispatches\n", "")


def test_a_run_as_json(world: World) -> None:
    triage.lay_out(world)
    result = world.say(*triage.RUN, "--json")
    assert (result.code, result.err) == (3, "")
    found = result.json
    assert found.pop("spent").items() >= {"dispatches": 6, "tokens": 10, "money": 0.5}.items()
    assert found.pop("digest") == world.say("status", "--json").json["digest"]
    assert found == {
        "run_id": 1,
        "status": "unhealthy",
        "tally": {
            "cases": 4,
            "ended": 4,
            "unhealthy": 2,
            "stuck": 0,
            "halted": "",
            "in_flight": 0,
            "questions": 0,
            "refused": 1,
            "limited": 0,
            "limited_until": 0.0,
            "problem": "",
        },
        "ends": {"kept": 2, "dropped": 2},
    }


def test_the_same_command_again_begins_a_new_run_only_after_the_last_is_over(world: World) -> None:
    triage.lay_out(world)
    half = world.say(*triage.RUN, "--budget", "dispatches=2")
    assert half == CliResult(
        5,
        "run 1: budget; 3 open, 1 kept; 2 dispatches\n"
        "the budget is spent: 'interlock resume 1 --budget …' continues\n",
        "100% of the budget's dispatches is spent\n",
    )
    whole = world.say(*triage.RUN, "--budget", "dispatches=100")
    assert whole.out.startswith("run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n")
    assert world.say(*triage.RUN).out.startswith("run 2: unhealthy; 2 kept, 2 dropped;")


def test_a_run_goes_on_where_it_was(world: World) -> None:
    _waiting(world)
    again = world.say(*_change())
    assert again == CliResult(
        4,
        "run 1: waiting; 2 open; 4 dispatches\n"
        "a human is asked: 'interlock inbox', then 'interlock resume 1'\n",
        "continuing run 1, which is unfinished (--new starts another)\n",
    )
    another = world.say(*_change(), "--new")
    assert another.out.startswith("run 2: waiting; 2 open; 4 dispatches\n")


def test_a_run_keeps_the_circuit_it_began_with(world: World) -> None:
    triage.lay_out(world)
    world.say(*triage.RUN, "--budget", "dispatches=1", "--parallel", "1")
    other = triage.CIRCUIT.replace("scout", "seer").replace("sure: 0.7", "sure: 0.1")
    world.write("circuits/triage.yaml", other)
    result = world.say(*triage.RUN, "--budget", "dispatches=100")
    assert result == CliResult(
        3,
        "run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n"
        "'interlock status 1' shows which cases need a look\n",
        "continuing run 1, which is unfinished (--new starts another); "
        "the circuit has changed since, the run keeps the one it began with\n",
    )


def test_a_run_ends_as_usual_with_set_thresholds(world: World) -> None:
    triage.lay_out(world)
    result = world.say(*triage.RUN, "--set", "sure=0.5")
    assert result.out.splitlines()[0] == "run 1: unhealthy; 3 kept, 1 dropped; 4 dispatches"
    assert "read sure = 0.5" in world.say("explain", "A").out


def test_resume_goes_on_with_more_budget(world: World) -> None:
    triage.lay_out(world)
    world.say(*triage.RUN, "--budget", "dispatches=5", "--parallel", "1")
    result = world.say("resume", "--budget", "dispatches=9", "--json")
    assert (result.code, result.err) == (3, "")
    assert result.json["ends"] == {"kept": 2, "dropped": 2}
    assert result.json["spent"]["dispatches"] == 6


def test_resume_can_change_the_crew(world: World) -> None:
    triage.lay_out(world)
    world.say(*triage.RUN, "--budget", "dispatches=1", "--parallel", "1")
    world.write("other.yaml", '"*": {look: {answer: {confidence: 1}}}')
    result = world.say("resume", "--agent", "scout=script:other.yaml", "--budget", "dispatches=9")
    assert result == CliResult(0, "run 1: done; 4 kept; 4 dispatches\n", "")


def test_resume_of_what_is_over_or_never_was(world: World) -> None:
    nothing = (
        "interlock: there is no database at .interlock/interlock.db; "
        "'interlock run', 'analyze', 'deliver' or 'epic run' makes one\n"
    )
    assert world.say("resume") == (1, "", nothing)
    assert not world.db.parent.exists()
    triage.done(world)
    over = "interlock: run 1 is over (unhealthy); there is nothing to do\n"
    assert world.say("resume", "--json") == (1, "", over)
    missing = "interlock: there is no run 9; 'interlock runs' lists them\n"
    assert world.say("resume", "9") == (1, "", missing)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_twice_ends_at_once_with_its_exit_code(world: World, sent: signal.Signals) -> None:
    triage.lay_out(world)
    process = world.start(*triage.RUN[:-1], SLEEPER, "--json")
    until(lambda: dispatches(world) == 4, "all are out")
    process.send_signal(sent)
    until(lambda: not _pending(process.pid), "the first signal has arrived")
    assert process.poll() is None
    process.send_signal(sent)
    result = ended(process)
    assert result.code == 128 + sent
    assert result.json["status"] == "stopped"
    again = world.say("resume", "--agent", "script:scout.yaml")
    assert again.out.startswith("run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n")


def test_a_second_process_is_told_who_holds_the_database(world: World) -> None:
    triage.lay_out(world)
    process = world.start(*triage.RUN[:-1], SLEEPER)
    until(lambda: dispatches(world) == 4, "all are out")
    try:
        for words in (triage.RUN, ("resume",)):
            assert world.type(*words) == CliResult(
                1,
                "",
                "interlock: .interlock/interlock.db is in use by process PID on HOST "
                "(__main__.py run triage); wait for it, or 'interlock stop' it\n",
            )
    finally:
        process.kill()
        ended(process)


def test_wait_stays_until_the_human_has_answered(world: World) -> None:
    world.write("crew.yaml", APPROVED)
    world.cases("one")
    process = world.start(*_change(), "--wait")
    until(lambda: world.db.exists() and _questions(world), "the human is asked")
    result = world.say("answer", str(_questions(world)[0]), "approve")
    assert result.out.endswith("; the running process takes it\n")
    assert ended(process) == (0, "run 1: done; 1 published; 3 dispatches\n", "")


def _change() -> tuple[str, ...]:
    return ("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")


def _waiting(world: World) -> CliResult:
    world.write("crew.yaml", APPROVED)
    world.cases("one", "two")
    return world.say(*_change())


def _questions(world: World) -> list[int]:
    found = world.say("inbox", "--json").json["questions"]
    return [each["question_id"] for each in found]


def _pending(pid: int) -> int:
    """Signals on their way to a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = dict(line.split(":", 1) for line in status.splitlines())
    return int(found["SigPnd"], 16) | int(found["ShdPnd"], 16)


def test_started_again_a_run_keeps_its_agents_slots_and_limits(world: World) -> None:
    world.write("crew.yaml", APPROVED)
    world.cases("one")
    run = ("run", CHANGE, "--cases", "cases.jsonl")
    flags = ("--agent", "script:crew.yaml", "--slots", "author=1", "--budget", "dispatches=50")
    assert world.say(*run, *flags).code == 4
    assert world.say("answer", "3", "approve").code == 0
    result = world.say(*run)
    assert result.code == 0
    assert "continuing run 1" in result.err
    options = world.say("status", "--json").json["options"]
    assert options["agents"] == {"": "script:crew.yaml"}
    assert (options["slots"], options["budget"]) == ({"author": 1}, {"dispatches": "50"})
    anew = world.say(*run, "--new")
    assert anew.code == 2
    assert "no agent is named for" in anew.err
