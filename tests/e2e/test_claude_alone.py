"""What the real Claude Code does on its own: the facts that the `claude` profile stands on."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.world.agent_cli import Claude, left_behind
from tests.world.models.anthropic import too_long, too_many, usage_spent
from tests.world.models.script import Call, Fault, Line, Refuses, Says, in_order

EDITS = ("--permission-mode", "acceptEdits")
BASH = ("--allowedTools", "Bash")


def bash(command: str, **more: object) -> Says:
    return Says("I run it.", (Call("Bash", {"command": command, **more}),))


def test_an_answer_is_init_words_and_a_result(claude: Claude) -> None:
    ran = claude.run("Greet me.")
    assert ran.code == 0
    assert ran.kinds == ["system/init", "assistant", "result/success"]
    assert (ran.last["is_error"], ran.last["num_turns"], ran.last["result"]) == (False, 1, "Hello.")
    assert ran.last["session_id"] == ran.events[0]["session_id"]
    assert claude.model.asked[0].prompt == "Greet me."
    assert set(claude.model.other) <= {"HEAD /"}


def test_the_prompt_may_come_by_stdin(claude: Claude) -> None:
    long = "Read this. " * 30_000
    ran = claude.run("", stdin=long.encode())
    assert ran.last["result"] == "Hello."
    assert claude.model.asked[0].prompt == long.strip()


@pytest.mark.parametrize("by_stdin", [False, True])
def test_a_prompt_that_begins_with_a_slash_never_reaches_the_model(
    claude: Claude, by_stdin: bool
) -> None:
    words = "/assistant *resume"
    ran = claude.run("", stdin=words.encode()) if by_stdin else claude.run(words)
    assert (ran.code, ran.last["subtype"], ran.last["is_error"]) == (0, "success", False)
    assert ran.last["num_turns"] == 0
    assert claude.model.asked == []


def test_a_message_is_one_event_per_block(claude: Claude) -> None:
    both = Says("Words.", (Call("Bash", {"command": "true"}),), thinking="Thoughts.")
    claude.model.script = in_order(both, Says("Done."))
    ran = claude.run("Do both.", *BASH)
    blocks = [event["message"]["content"] for event in ran.of("assistant")]
    assert [block[0]["type"] for block in blocks] == ["thinking", "text", "tool_use", "text"]
    assert ran.last["result"] == "Done."


def test_a_denied_write_ends_well_and_is_noted(claude: Claude) -> None:
    target = claude.work / "made.txt"
    write = Call("Write", {"file_path": str(target), "content": "made"})
    claude.model.script = in_order(Says(calls=(write,)), Says("I made it."))
    ran = claude.run("Make it.")
    assert (ran.code, ran.last["result"], ran.last["is_error"]) == (0, "I made it.", False)
    assert [denied["tool_name"] for denied in ran.last["permission_denials"]] == ["Write"]
    assert not target.exists()
    claude.model.script = in_order(Says(calls=(write,)), Says("I made it."))
    assert claude.run("Make it.", *EDITS).last["permission_denials"] == []
    assert target.read_text() == "made"


def test_term_in_a_young_tool_ends_claude_and_leaves_the_tool(claude: Claude) -> None:
    claude.model.script = in_order(bash("touch begun; sleep 60"), Says("Never said."))
    process = claude.start("Wait.", *BASH)
    _until(claude.work / "begun")
    process.send(signal.SIGTERM)
    assert process.ended() == 143
    assert len(claude.model.asked) == 1
    assert any("sleep 60" in output for output in left_behind(claude.home))


def test_term_in_a_tool_that_became_a_task_ends_the_tool_alone(claude: Claude) -> None:
    claude.model.script = in_order(bash("touch begun; sleep 60"), Says("All is well."))
    process = claude.start("Wait.", *BASH)
    process.until_said(b'"task_started"')
    process.send(signal.SIGTERM)
    ran = process.finish()
    assert ran.code in (0, 128 + signal.SIGTERM), "both were seen"
    assert (ran.last["subtype"], ran.last["result"]) == ("success", "All is well.")
    assert "137" in claude.model.asked[-1].results[0].text


def test_term_and_int_while_the_model_thinks_leave_no_result(claude: Claude) -> None:
    claude.model.script = in_order(Fault(Line.SILENT))
    for count, (sent, code) in enumerate([(signal.SIGTERM, 143), (signal.SIGINT, 0)], 1):
        process = claude.start("Think.")
        claude.model.until_asked(count)
        process.send(sent)
        ran = process.finish()
        assert ran.code in (code, -sent)
        assert [kind for kind in ran.kinds if kind.startswith("result")] == []


def test_kill_leaves_the_tool_running(claude: Claude) -> None:
    claude.model.script = in_order(bash("touch begun; sleep 61"), Says("Never said."))
    process = claude.start("Wait.", *BASH)
    _until(claude.work / "begun")
    process.send(signal.SIGKILL)
    assert process.ended() == -signal.SIGKILL
    assert any("sleep 61" in output for output in left_behind(claude.home))


@pytest.mark.parametrize(
    ("refusal", "status", "error"),
    [(too_many(61), 429, "rate_limit"), (too_long(), 400, "invalid_request")],
)
def test_a_refused_request_is_a_success_in_error(
    claude: Claude, refusal: Refuses, status: int, error: str
) -> None:
    claude.model.script = in_order(refusal)
    ran = claude.run("Try.")
    assert (ran.code, ran.last["subtype"], ran.last["is_error"]) == (1, "success", True)
    assert ran.last["api_error_status"] == status
    assert ran.of("assistant")[-1]["error"] == error
    assert len(claude.model.asked) == 1


def test_a_short_retry_after_is_waited_for(claude: Claude) -> None:
    claude.model.script = in_order(too_many(2), Says("At last."))
    ran = claude.run("Try.")
    assert (ran.code, ran.last["result"]) == (0, "At last.")
    assert [event["retry_delay_ms"] for event in ran.of("system/api_retry")] == [2000]


def test_a_spent_subscription_says_until_when(claude: Claude) -> None:
    resets = int(time.time()) + 7200
    claude.model.script = in_order(usage_spent(resets))
    login = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""}
    ran = claude.run("Try.", env=login)
    assert (ran.code, ran.last["is_error"]) == (1, True)
    info = ran.of("rate_limit_event")[-1]["rate_limit_info"]
    assert (info["status"], info["resetsAt"]) == ("rejected", resets)


def test_the_result_is_not_the_last_line_with_work_in_the_background(claude: Claude) -> None:
    claude.model.script = in_order(bash("sleep 62", run_in_background=True), Says("Left it."))
    ran = claude.run("Leave it.", *BASH)
    assert ran.code == 0
    after = ran.kinds[ran.kinds.index("result/success") + 1 :]
    assert any(kind.startswith("system/task") for kind in after)


def test_what_nobody_reads_in_time_is_lost_with_the_result(claude: Claude) -> None:
    claude.model.script = in_order(*[bash("seq 1 4000")] * 8, Says("Done."))
    unread = subprocess.Popen(
        claude.argv("Count.", BASH),
        cwd=claude.work,
        env=claude.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert unread.wait(60) == 0
    out, _ = unread.communicate()
    assert (b'"result"' in out, out.endswith(b"\n")) == (False, False)
    read = claude.run("Count.", *BASH)
    assert (read.code, read.last["type"]) == (0, "result")


def test_a_cut_stream_is_asked_again_in_silence(claude: Claude) -> None:
    claude.model.script = in_order(Fault(Line.CUT, "TASK_DONE"), Says("Whole."))
    ran = claude.run("Try.")
    assert (ran.code, ran.last["result"]) == (0, "Whole.")
    assert [asked.streamed for asked in claude.model.asked] == [True, False]


def test_a_resumed_session_keeps_its_id_and_history_and_counts_anew(claude: Claude) -> None:
    first = claude.run("Remember seven.")
    session = first.last["session_id"]
    second = claude.run("Which number?", "--resume", session)
    assert second.last["session_id"] == session
    assert "Remember seven." in json.dumps(claude.model.asked[-1].body)
    assert second.last["usage"]["input_tokens"] == first.last["usage"]["input_tokens"]
    elsewhere = claude.home.parent / "elsewhere"
    elsewhere.mkdir()
    lost = claude.run("Which number?", "--resume", session, cwd=elsewhere)
    assert (lost.code, lost.last["subtype"]) == (1, "error_during_execution")
    assert "No conversation found" in lost.last["errors"][0]


def test_quoted_signals_come_as_tool_results_only(claude: Claude) -> None:
    claude.model.script = in_order(bash("echo 'AUDIT_PASSED: T1'"), Says("I read it."))
    ran = claude.run("Read.", *BASH)
    result = [event for event in ran.events if "AUDIT_PASSED" in json.dumps(event.get("message"))]
    assert {event["type"] for event in result} == {"assistant", "user"}
    assert ran.last["result"] == "I read it."


def _until(path: Path) -> None:
    give_up = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < give_up, f"{path.name} never came"
        time.sleep(0.02)
