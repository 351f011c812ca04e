"""runs, status and logs: readers that see what is committed and disturb nobody."""

import json
import os
import signal
import subprocess

from kernel_tests.cli.test_run import SLEEPER
from tests.world import triage
from tests.world.command_line import COMMAND, CliResult, World, ended, until

RUNS = """\
RUN  CIRCUIT    STATUS     CASES  DISPATCHES  BEGUN                SOURCE
1    triage v3  unhealthy  4      6           TIME  cases.jsonl
"""
STATUS = """\
run 1: triage v3, unhealthy
2 kept, 2 dropped
6 dispatches, 10 tokens, 0.50 money, SECONDS s
answers refused: 1 Stale
CASE  STATUS   STEP  WHY
C     dropped  look  Two looks were not enough.
D     dropped  look  No answer. (crash: exit code 1)
'interlock explain C' tells the whole story
"""
LOGS = """\
TIME  A  look#1 artifact -> kept  [sure]  dispatch 1
TIME  B  look#1 artifact -> look  [look-again]  dispatch 2
TIME  C  look#1 artifact -> look  [look-again]  dispatch 3
TIME  D  look#1 crash -> dropped  [failed]  dispatch 4
TIME  B  look#2 artifact -> kept  [sure]  dispatch 5
TIME  B  refused (Stale): Dispatch 5 is not open: it is settled, or never was.  dispatch 5
TIME  C  look#2 artifact -> dropped  [unsure]  dispatch 6
"""
NO_DATABASE = (
    "interlock: there is no database at .interlock/interlock.db; "
    "'interlock run', 'analyze', 'deliver' or 'epic run' makes one\n"
)
KILLED = """\
run 1: triage v3, interrupted
4 open
4 dispatches, 0 tokens, 0.00 money, SECONDS s
CASE  STATUS  STEP  WHY
A     open    look  waits for the scout (dispatch 1)
B     open    look  waits for the scout (dispatch 2)
C     open    look  waits for the scout (dispatch 3)
D     open    look  waits for the scout (dispatch 4)
'interlock resume 1' continues
"""


def test_runs_lists_every_run(world: World) -> None:
    triage.done(world)
    assert world.say("runs") == CliResult(0, RUNS, "")
    run = world.say("runs", "--json").json["runs"][0]
    assert run.pop("created_at") < run.pop("changed_at")
    assert run.pop("spent").items() >= {"dispatches": 6, "tokens": 10, "money": 0.5}.items()
    assert run.pop("options")["agents"] == {"": "script:scout.yaml"}
    assert run == {
        "run_id": 1,
        "circuit": "triage",
        "version": 3,
        "source": "cases.jsonl",
        "status": "unhealthy",
        "ends": {"kept": 2, "dropped": 2},
    }


def test_status_says_which_cases_need_a_look_and_why(world: World) -> None:
    triage.done(world)
    assert world.say("status") == CliResult(0, STATUS, "")
    assert world.say("status", "1") == CliResult(0, STATUS, "")
    missing = "interlock: there is no run 2; 'interlock runs' lists them\n"
    assert world.say("status", "2", "--json") == CliResult(1, "", missing)


def test_status_as_json_lists_all_cases(world: World) -> None:
    triage.done(world)
    found = world.say("status", "--json").json
    assert (found["status"], found["refused"], found["worked_on_by"]) == ("unhealthy", 1, "")
    assert found["refused_by_reason"] == {"Stale": 1}
    ends = {each["case_id"]: each["end"] for each in found["cases"]}
    assert ends == {"A": "kept", "B": "kept", "C": "dropped", "D": "dropped"}
    assert found["cases"][1] == {
        "case_id": "B",
        "status": "ended",
        "step": "look",
        "dispatch_id": None,
        "moves": 2,
        "end": "kept",
        "reason": "",
        "loops": {"more": 1},
        "visits": {"look": 2},
        "stack": [],
        "context": {"before": 0.6},
    }


def test_status_of_a_run_that_works_and_of_one_that_was_killed(world: World) -> None:
    triage.lay_out(world)
    process = world.start(*triage.RUN[:-1], SLEEPER)
    until(lambda: world.db.exists() and "4 open" in world.say("status").out, "it works")
    until(lambda: "\n4 dispatches" in world.say("status").out, "all are out")
    first = world.say("status").out.splitlines()[0]
    assert first == "run 1: triage v3, running by process PID on HOST (__main__.py run triage)"
    assert world.say("runs", "--json").json["runs"][0]["status"] == "running"

    process.send_signal(signal.SIGKILL)
    ended(process)

    # An agent that was just being started may hold the lock for a moment longer.
    until(lambda: world.say("status") == CliResult(0, KILLED, ""), "it is seen to have ended")
    assert world.say("runs", "--json").json["runs"][0]["status"] == "interrupted"


def test_status_shows_the_first_twenty(world: World) -> None:
    triage.lay_out(world).cases(*(f"D{number}" for number in range(25)))
    world.write("scout.yaml", '"*": {look: {crash: no}}')
    world.say(*triage.RUN)
    assert world.say("status").out.splitlines()[-2:] == [
        "… and 5 more; --json lists all",
        "'interlock explain D0' tells the whole story",
    ]


def test_logs_are_the_decisions_and_refused_answers_in_order(world: World) -> None:
    triage.done(world)
    assert world.say("logs") == CliResult(0, LOGS, "")
    of_b = "".join(line for line in LOGS.splitlines(keepends=True) if "  B  " in line)
    assert world.say("logs", "1", "--case", "B") == CliResult(0, of_b, "")
    missing = "interlock: there is no case 'Z' in run 1; see 'interlock status'\n"
    assert world.say("logs", "--case", "Z") == CliResult(1, "", missing)


def test_logs_as_one_json_object(world: World) -> None:
    triage.done(world)
    entries = world.say("logs", "--json").json["entries"]
    assert [each["dispatch_id"] for each in entries] == [1, 2, 3, 4, 5, 6]
    decision = entries[1]["decision"]
    assert decision["passed"] == [["sure", "false"]]
    assert (decision["rule"], decision["to"], decision["loop"]) == ("look-again", "look", "more")


def test_logs_followed_end_when_the_writer_ends_and_repeat_nothing(world: World) -> None:
    triage.lay_out(world)
    slow = triage.SCRIPT.replace("crash: exit code 1", "delay: 2s, crash: exit code 1")
    world.write("scout.yaml", slow)
    process = world.start(*triage.RUN, "--parallel", "4")
    until(lambda: world.db.exists() and world.say("logs").out, "there is something to follow")
    follower = world.start("logs", "-f")
    streamer = world.start("logs", "-f", "--json")

    result, records = ended(follower), ended(streamer)

    assert ended(process).code == 3
    assert result == CliResult(0, world.say("logs").out, "")
    assert len(result.out.splitlines()) == 7
    rows = [json.loads(line) for line in records.out.splitlines()]
    assert sorted(row["type"] for row in rows) == ["decision"] * 6 + ["refusal", "result"]
    assert rows[-1] == {"type": "result", "run_id": 1, "status": "unhealthy", "is_error": True}


def test_logs_followed_of_a_run_that_is_over_end_at_once(world: World) -> None:
    triage.done(world)
    assert world.say("logs", "-f") == CliResult(0, LOGS, "")


def test_readers_without_a_database_say_how_to_get_one(world: World) -> None:
    for words in (["runs"], ["status"], ["logs"], ["inbox"], ["explain", "A"], ["replay"]):
        assert world.say(*words, "--json") == CliResult(1, "", NO_DATABASE)
    assert not world.db.parent.exists()


def test_status_is_redrawn_while_the_run_goes_on(world: World) -> None:
    triage.lay_out(world)
    run = world.start(*triage.RUN[:-1], SLEEPER)
    until(lambda: world.db.exists() and "\n4 dispatches" in world.say("status").out, "it works")
    ours, terminal = os.openpty()
    watching = subprocess.Popen(
        [*COMMAND, "status", "--watch"],
        cwd=world.folder,
        env={**os.environ, "TERM": "xterm"},
        stdout=terminal,
    )
    os.close(terminal)
    drawn = ""
    while drawn.count("run 1: triage v3, running") < 2:
        drawn += os.read(ours, 65_536).decode()
    world.say("stop", "--now")
    while "run 1: triage v3, stopped" not in drawn:
        drawn += os.read(ours, 65_536).decode()
    assert watching.wait(timeout=60) == 0
    os.close(ours)
    ended(run)
    assert world.say("status", "--watch").out.startswith("run 1: triage v3, stopped"), "in a pipe"
