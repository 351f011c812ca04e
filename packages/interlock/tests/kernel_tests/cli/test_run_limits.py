"""Rate limits, budgets and notices at the command line."""

import json
import signal
import sys
from pathlib import Path

from tests.docs.commands import find_unprinted
from tests.world import triage
from tests.world.command_line import CliResult, World, ended, until

LIMITED = '"*": {look: {limited: 2h, answer: {confidence: 1}}}\n'
FINE = '"*": {look: {answer: {confidence: 1}, usage: {tokens: 10}}}\n'
COPY = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


def lay_out(world: World, script: str) -> World:
    triage.lay_out(world)
    world.write("scout.yaml", script)
    return world


def test_leaving_at_a_rate_limit_is_exit_75(world: World) -> None:
    lay_out(world, LIMITED)
    result = world.say(*triage.RUN, "--on-limit", "leave", "--parallel", "2")
    assert result.code == 75
    assert result.out.splitlines() == [
        "run 1: rate-limited; 4 open; 2 dispatches",
        "'interlock resume 1' continues when the limit is over",
    ]
    assert result.err.startswith("scout of run 1: rate-limited until ")
    assert result.err.count("\n") == 1
    status = world.say("status")
    lines = status.out.splitlines()
    assert lines[0] == "run 1: triage v3, rate-limited"
    assert lines[3].startswith("scout of run 1: rate-limited until ")
    assert [line.split("  ")[-1].split(" until")[0] for line in lines if "  look  " in line] == [
        *("rate-limited", "rate-limited", "waits for its turn", "waits for its turn")
    ]
    assert list(world.say("status", "--json").json["rate_limited_until"]) == ["scout of run 1"]
    story = world.say("explain", "A")
    assert "  rate-limited at TIME until " in story.out
    assert story.out.splitlines()[-2] == "  no answer yet"
    (episode,) = world.say("explain", "A", "--json").json["dispatches"]
    assert episode["pauses"][0]["reason"] == "the script says so"
    assert world.say("doctor", "--deep").code == 0


def test_killed_in_the_middle_of_a_pause_it_goes_on_waiting(world: World) -> None:
    lay_out(world, LIMITED)
    process = world.start(*triage.RUN)
    try:
        until(lambda: _limited(world), "it waits")
        process.send_signal(signal.SIGKILL)
        ended(process)
    finally:
        process.kill()
    world.write("scout.yaml", FINE)
    assert world.say("resume", "--on-limit", "leave").code == 75
    other = ("--agent", "scout=script:scout.yaml")
    assert world.say("resume", *other, "--on-limit", "leave").code == 75
    process = world.start("resume")
    try:
        until(lambda: world.say("runs", "--json").json["runs"][0]["status"] == "running", "on")
        process.send_signal(signal.SIGTERM)
        assert ended(process).code == 143
    finally:
        process.kill()
    story = world.say("explain", "A", "--json").json["dispatches"]
    assert [(each["dispatch_id"], len(each["pauses"])) for each in story] == [(1, 1)]


def _limited(world: World) -> bool:
    result = world.say("status", "--json")
    return result.code == 0 and bool(result.json["rate_limited_until"])


def test_a_spent_budget_is_asked_for_answered_and_goes_on(world: World) -> None:
    lay_out(world, FINE)
    result = world.say(*triage.RUN, "--parallel", "1", "--budget", "role.scout.tokens=20")
    assert result.code == 5
    assert result.err == "100% of the budget's role.scout.tokens is spent\n"
    assert "100% of the budget's role.scout.tokens is spent\n" in world.say("status").out
    about = "run 1 has spent its budget (role.scout.tokens=20): raise it, or stop?"
    assert world.say("inbox").out == (
        "ID  RUN  CASE  STEP    SINCE                QUESTION\n"
        f"3   1    -     budget  TIME  {about}\n"
    )
    plain = world.say("inbox").out.replace("role.scout.", "")
    assert find_unprinted("docs/howto/run-overnight.md", plain) == []
    (asked,) = world.say("inbox", "--json").json["questions"]
    assert (asked["prompt"], asked["kind"], asked["answer_saved"]) == (about, "budget", False)
    assert world.say("answer", "3", "raise").err == (
        "interlock: name the new limits: raise --set tokens=200000; nothing was saved\n"
    )
    assert world.say("answer", "3", "approve").code == 2
    assert world.say("answer", "3", "raise", "--set", "role.scout.beer=1").code == 2
    assert world.say("answer", "3", "raise", "--set", "role.scout.tokens=30").code == 0
    again = world.say("resume")
    assert (again.code, again.out.splitlines()[0]) == (
        5,
        "run 1: budget; 3 kept, 1 open; 3 dispatches",
    )
    assert world.say("answer", "3", "stop").err.startswith("interlock: question 3 was settled by ")
    assert world.say("answer", "5", "stop").code == 0
    assert world.say("resume").code == 5
    assert world.say("inbox") == CliResult(0, "nothing waits for a human\n", "")
    assert world.say("resume", "--budget", "role.scout.tokens=99").code == 0
    assert world.say("doctor", "--deep").code == 0


def test_a_day_of_a_project_is_for_all_its_runs(world: World) -> None:
    lay_out(world, FINE)
    world.write("interlock.toml", "[budget.day]\ntokens = 30\n[budget.role.scout]\nmoney = 1\n")
    assert world.say(*triage.RUN, "--parallel", "1").code == 5
    assert world.say(*triage.RUN, "--parallel", "1", "--new").code == 5
    assert [run["spent"]["tokens"] for run in world.say("runs", "--json").json["runs"]] == [30, 0]
    assert world.say("resume", "--budget", "day.tokens=100").code == 0


def test_notices_go_to_a_command_and_a_failing_one_changes_nothing(world: World) -> None:
    lay_out(world, FINE)
    command = json.dumps([sys.executable, "-c", COPY, str(world.folder / "heard")])
    world.write("interlock.toml", f"[notify]\ncommand = {command}\n")
    assert world.say(*triage.RUN, "--budget", "tokens=40") == CliResult(
        0,
        "run 1: done; 4 kept; 4 dispatches\n",
        "100% of the budget's tokens is spent\n",
    )
    received = Path(world.folder / "heard").read_text().splitlines()
    assert sorted(json.loads(line)["event"] for line in received) == ["budget-low", "over"]
    world.write("interlock.toml", "[notify]\ncommand = ['false']\n")
    result = world.say(*triage.RUN, "--new")
    assert (result.code, result.err) == (0, "note: notify command 'false': exit code 1\n")
