"""What the real Codex does on its own: the facts that the `codex` profile stands on."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.world.agent_cli import Codex, Ran, left_behind
from tests.world.models.openai import too_many, usage_spent
from tests.world.models.script import Call, Fault, Line, Refuses, Says, in_order

READ_ONLY = ("-s", "read-only")
OPEN = ("-s", "danger-full-access")
MAY_WRITE = ("-s", "workspace-write")


def shell(command: str) -> Says:
    return Says("I run it.", (Call("exec_command", {"cmd": command}),))


def messages(ran: Ran) -> list[str]:
    return [each["item"]["text"] for each in ran.of("item.completed/agent_message")]


def test_an_answer_is_a_thread_a_turn_and_a_message(codex: Codex) -> None:
    ran = codex.run("Greet me.", *READ_ONLY)
    assert ran.code == 0
    assert [kind for kind in ran.kinds if kind != "item.completed/error"] == [
        "thread.started",
        "turn.started",
        "item.completed/agent_message",
        "turn.completed",
    ]
    assert messages(ran) == ["Hello."]
    assert codex.model.asked[0].prompt == "Greet me."
    assert codex.model.other == []


def test_the_prompt_may_come_by_stdin(codex: Codex) -> None:
    long = "Read this. " * 30_000
    assert messages(codex.run("", *READ_ONLY, stdin=long.encode())) == ["Hello."]
    assert codex.model.asked[0].prompt.strip() == long.strip()


def test_a_slash_is_only_a_slash(codex: Codex) -> None:
    codex.run("/assistant *resume", *READ_ONLY)
    assert codex.model.asked[0].prompt == "/assistant *resume"


def test_what_the_sandbox_stops_leaves_no_event(codex: Codex) -> None:
    codex.model.script = in_order(shell("echo made > made.txt"), Says("I made it."))
    ran = codex.run("Make it.", *READ_ONLY)
    assert (ran.code, messages(ran)[-1]) == (0, "I made it.")
    assert ran.of("item.started/command_execution", "item.completed/command_execution") == []
    assert not (codex.work / "made.txt").exists()


def test_what_it_may_do_is_told(codex: Codex) -> None:
    codex.model.script = in_order(shell("echo made > made.txt; exit 3"), Says("I made it."))
    ran = codex.run("Make it.", *OPEN)
    item = ran.of("item.completed/command_execution")[0]["item"]
    assert (ran.code, item["exit_code"], item["status"]) == (0, 3, "failed")
    assert (codex.work / "made.txt").exists()


def test_usage_adds_up_over_a_resumed_thread(codex: Codex) -> None:
    first = codex.run("Remember seven.", *READ_ONLY)
    thread = first.events[0]["thread_id"]
    codex.resume = thread
    second = codex.run("Which number?")
    assert second.events[0]["thread_id"] == thread
    assert "Remember seven." in json.dumps(codex.model.asked[-1].body)
    used = [ran.last["usage"]["input_tokens"] for ran in (first, second)]
    assert used == [10, 20]


def test_an_unknown_thread_is_told_by_stderr_alone(codex: Codex) -> None:
    codex.resume = "01900000-0000-7000-8000-000000000000"
    ran = codex.run("Which number?")
    assert (ran.code, ran.events) == (1, [])
    assert ran.stderr


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (usage_spent(int(time.time()) + 7200), "usage limit"),
        (Refuses(400, {"error": {"message": "No such thing."}}), "No such thing."),
    ],
)
def test_a_refusal_fails_the_turn_at_once(codex: Codex, refusal: Refuses, words: str) -> None:
    codex.model.script = in_order(refusal)
    ran = codex.run("Try.", *READ_ONLY)
    assert (ran.code, ran.kinds[-1]) == (1, "turn.failed")
    assert words in ran.last["error"]["message"]
    assert len(codex.model.asked) == 1


def test_an_error_event_may_be_followed_by_success(codex: Codex) -> None:
    codex.model.script = in_order(too_many(2), Says("At last."))
    ran = codex.run("Try.", *READ_ONLY)
    assert (ran.code, messages(ran)) == (0, ["At last."])
    assert ran.of("error")[0]["message"].startswith("Reconnecting")


def test_an_endless_stream_that_is_cut_counts_twice(codex: Codex) -> None:
    codex.model.script = in_order(Fault(Line.CUT, "TASK_DONE"), Says("Whole."))
    ran = codex.run("Try.", *READ_ONLY)
    assert (ran.code, messages(ran)[-1]) == (0, "Whole.")
    assert len(codex.model.asked) == 2


def test_signals_while_the_model_thinks(codex: Codex) -> None:
    codex.model.script = in_order(Fault(Line.SILENT))
    for count, (sent, code) in enumerate([(signal.SIGTERM, 143), (signal.SIGINT, 1)], 1):
        process = codex.start("Think.", *READ_ONLY)
        codex.model.until_asked(count)
        process.send(sent)
        ran = process.finish()
        assert ran.code in (code, -sent)
        assert not {"turn.failed", "turn.completed"} & set(ran.kinds)


def test_kill_leaves_the_native_process_running(codex: Codex) -> None:
    codex.model.script = in_order(Fault(Line.SILENT))
    process = codex.start("Think.", *READ_ONLY)
    codex.model.until_asked(1)
    process.send(signal.SIGKILL)
    assert process.ended() == -signal.SIGKILL
    assert any("codex" in output for output in left_behind(codex.home))


def test_term_leaves_the_tools_of_an_open_shell(codex: Codex) -> None:
    codex.model.script = in_order(shell("touch begun; sleep 63 & sleep 64"), Says("Never said."))
    process = codex.start("Wait.", *OPEN)
    _until(codex.work / "begun")
    process.send(signal.SIGTERM)
    assert process.ended() in (143, -signal.SIGTERM)
    assert any("sleep 6" in output for output in left_behind(codex.home))


def test_a_command_left_open_at_the_end_of_the_turn_was_killed(codex: Codex) -> None:
    codex.model.script = in_order(shell("sleep 65; touch made"), Says("It is made."))
    ran = codex.run("Make it.", *OPEN)
    assert (ran.code, messages(ran)[-1]) == (0, "It is made.")
    started = {each["item"]["id"] for each in ran.of("item.started/command_execution")}
    ended = {each["item"]["id"] for each in ran.of("item.completed/command_execution")}
    assert (len(started), ended) == (1, set())
    assert not (codex.work / "made").exists()


def _until(path: Path) -> None:
    give_up = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < give_up, f"{path.name} never came"
        time.sleep(0.02)
