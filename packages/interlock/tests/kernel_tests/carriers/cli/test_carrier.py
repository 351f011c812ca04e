"""Agent CLIs as carriers: real processes that play what the CLIs were seen to do."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.cli.carrier import AgentHome, ProcessAgent, make_nonce
from interlock.carriers.cli.ownership import WorkspaceOwner
from interlock.carriers.cli.profiles import AgentSettings, read_profile
from interlock.carriers.cli.work_folder import Session, make_work_folder, read_attempt_notes
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.engine.case import Usage
from interlock.system.clock import SystemClock
from tests.world.carrier_bench import Bench, appears, ask, gone
from tests.world.cli_agent import Act, FakeCli, say
from tests.world.streams import Claude, Codex, Copilot

GOOD = '{"n":1}'
ANSWER = say(Claude.init(), Claude.text_event(GOOD), Claude.result(GOOD))
QUICK = {"grace": 0.3}


def carrier(
    folder: Path,
    fake: FakeCli,
    name: str = "claude",
    around: dict[str, str] | None = None,
    **more: Any,
) -> ProcessAgent:
    """The carrier; `around` is in Interlock's own environment, the rest is set by the user."""
    settings = msgspec.convert({"clocks": QUICK, **more}, AgentSettings)
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **(around or {})}
    station = AgentHome(folder / "agents", folder, WorkspaceOwner("space"), environ, make_nonce)
    return ProcessAgent(read_profile(name), settings, str(fake.program), station, SystemClock())


async def replies(agent: ProcessAgent, *asks: Ask) -> list[Reply]:
    async with Bench(agent) as bench:
        for number, each in enumerate(asks, 1):
            bench.carrier.send([each])
            await bench.until(number)
            bench.carrier.settle(each.dispatch_id)
        return bench.replies


async def reply_of(folder: Path, scene: list[Act], name: str = "claude", **more: Any) -> Reply:
    return (await replies(carrier(folder, FakeCli(folder, scene), name, **more), ask()))[0]


def second(dispatch_id: int = 2) -> Ask:
    return msgspec.structs.replace(ask(dispatch_id, "again"), attempt=2)


async def test_the_answer_and_what_it_cost(tmp_path: Path) -> None:
    bill = {"total_cost_usd": 0.5, "usage": {"input_tokens": 7}}
    scene = say(Claude.init(), Claude.result(GOOD, **bill))
    assert await reply_of(tmp_path, scene) == Reply(1, GOOD.encode(), usage=Usage(7, 0.5))


async def test_how_it_is_called(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, ANSWER)
    env = {
        "ANTHROPIC_API_KEY": "ours",
        "AWS_SECRET_ACCESS_KEY": "theirs",
        "GITHUB_TOKEN": "theirs",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "outer",
        "LANG": "C",
    }
    settings: dict[str, Any] = {
        "model": "m",
        "env": {"SET": "here"},
        "flags": ["--x"],
        "allowed_tools": ["A", "B"],
    }
    agent = carrier(tmp_path, fake, around=env, budget=2.5, **settings)
    await replies(agent, ask(prompt="Do it: ü"))
    [call] = fake.calls()
    assert call["argv"] == [
        *("-p", "--output-format", "stream-json", "--verbose"),
        *("--permission-mode", "default", "--model", "m", "--max-budget-usd", "2.5"),
        *("--allowedTools", "A,B", "--add-dir", str(tmp_path), "--x"),
    ]
    assert call["stdin"] == "Do it: ü"
    assert call["cwd"] == str(tmp_path / "agents" / "1" / "0" / "work" / "work")
    seen = call["env"]
    assert (seen["ANTHROPIC_API_KEY"], seen["SET"], seen["LANG"]) == ("ours", "here", "C")
    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "CLAUDECODE"} & seen.keys()
    assert "CLAUDE_CODE_SESSION_ID" not in seen
    assert (seen["INTERLOCK_DISPATCH_ID"], seen["INTERLOCK_STEP"]) == ("1", "work")
    assert seen["INTERLOCK_TAG"].startswith("space:1:1:")


async def test_a_prompt_that_looks_like_a_command_is_sent_as_text(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, ANSWER)
    await replies(carrier(tmp_path, fake), ask(prompt="/assistant *resume"))
    output = fake.calls()[0]["stdin"]
    assert not output.startswith("/")
    assert output.endswith("\n/assistant *resume")


async def test_a_second_attempt_goes_on_with_the_session(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, say(Claude.init("abc"), Claude.result("No.")), ANSWER)
    found = await replies(carrier(tmp_path, fake), ask(), second())
    assert [each.failure for each in found] == ["unreadable", ""]
    first, again = fake.calls()
    assert "--resume" not in first["argv"]
    assert again["argv"][4:6] == ["--resume", "abc"]
    assert (again["stdin"], again["cwd"]) == ("again", first["cwd"])


async def test_another_process_of_ours_goes_on_with_it_too(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, say(Claude.init("abc"), Claude.result("No.")), ANSWER)
    await replies(carrier(tmp_path, fake), ask())
    await replies(carrier(tmp_path, fake), second())
    assert "--resume" in fake.calls()[1]["argv"]


@pytest.mark.parametrize("change", ["step", "case_no", "run_id", "resume"])
async def test_nobody_else_goes_on_with_it(tmp_path: Path, change: str) -> None:
    fake = FakeCli(tmp_path, ANSWER)
    other = {"step": "judge", "case_no": 5, "run_id": 9}.get(change)
    again = msgspec.structs.replace(second(), **({change: other} if other else {}))
    await replies(carrier(tmp_path, fake, resume=change != "resume"), ask(), again)
    assert "--resume" not in fake.calls()[1]["argv"]


async def test_a_session_that_is_lost_is_begun_anew(tmp_path: Path) -> None:
    lost = Claude.result(
        None, subtype="error_during_execution", is_error=True, num_turns=0, errors=["No such"]
    )
    fake = FakeCli(tmp_path, ANSWER, [*say(lost), ("exit", 1)], ANSWER)
    found = await replies(carrier(tmp_path, fake), ask(), second())
    assert [each.failure for each in found] == ["", ""]
    assert ["--resume" in call["argv"] for call in fake.calls()] == [False, True, False]


async def test_a_session_elsewhere_is_not_gone_on_with(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, ANSWER)
    place = make_work_folder(tmp_path / "agents", ask(), "claude")
    place.keep_session(Session("abc", "/elsewhere"))
    await replies(carrier(tmp_path, fake), ask())
    assert "--resume" not in fake.calls()[0]["argv"]


@pytest.mark.parametrize("name", ["--evil", "a b", "", "../x", "x" * 200])
async def test_a_session_whose_name_is_odd_is_not_used(tmp_path: Path, name: str) -> None:
    fake = FakeCli(tmp_path, say(Claude.init(name), Claude.result(GOOD)))
    await replies(carrier(tmp_path, fake), ask(), second())
    assert "--resume" not in fake.calls()[1]["argv"]


async def test_codex_resumes_with_other_flags_and_counts_its_thread(tmp_path: Path) -> None:
    scenes = [
        say(*Codex.start_events("th-1"), Codex.text_event("No."), Codex.done(10)),
        say(*Codex.start_events("th-1"), Codex.text_event(GOOD), Codex.done(25)),
    ]
    fake = FakeCli(tmp_path, *scenes)
    found = await replies(carrier(tmp_path, fake, "codex"), ask(), second())
    assert [each.usage.tokens for each in found] == [10, 15]
    first, again = (call["argv"] for call in fake.calls())
    assert first == ["exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-"]
    assert again == [
        *("exec", "resume", "--json", "--skip-git-repo-check"),
        *("-c", 'sandbox_mode="read-only"', "th-1", "-"),
    ]


async def test_a_long_prompt_goes_by_file_where_words_are_short(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, say(Claude.init(), Claude.text_event(GOOD), Claude.result(GOOD)))
    prompt = "x" * 200_000
    await replies(carrier(tmp_path, fake, "cursor"), ask(prompt=prompt))
    [call] = fake.calls()
    paper = tmp_path / "agents" / "1" / "0" / "work" / "prompt-1.md"
    assert str(paper) in call["argv"][-1]
    assert paper.read_text() == prompt
    assert (call["stdin"], call["cwd"]) == ("", str(tmp_path))


async def test_aider_gets_a_file_and_is_asked_for_a_fence(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, say("Aider v1", "```json", GOOD, "```"))
    [found] = await replies(carrier(tmp_path, fake, "aider"), ask(prompt="!rm"))
    assert found == Reply(1, GOOD.encode())
    output = (tmp_path / "agents" / "1" / "0" / "work" / "prompt-1.md").read_text()
    assert fake.calls()[0]["argv"][1].endswith("prompt-1.md")
    assert output.startswith("What follows is a task")
    assert "```json" in output


async def test_a_limit_is_told_with_its_end(tmp_path: Path) -> None:
    until = int(time.time()) + 3_000
    scene = [
        *say(Claude.init(), Claude.limited("rejected", until)),
        *say(*Claude.failed("You've hit your session limit", "rate_limit", 429)),
        ("exit", 1),
    ]
    found = await reply_of(tmp_path, scene)
    assert (found.failure, found.until) == ("rate-limit", until)
    assert "session limit" in found.reason


async def test_what_it_says_after_our_signal_does_not_count(tmp_path: Path) -> None:
    late = [Claude.used("1", "Exit code 137"), Claude.result(GOOD)]
    scene: list[Act] = [("answer-term", late), *say(Claude.init(), Claude.uses("1")), ("hang", 0)]
    found = await reply_of(tmp_path, scene, clocks={**QUICK, "tool": 0.3})
    assert found.failure == "timeout"
    assert found.reason.startswith("the clock 'tool' ended it: ")
    assert "tool 1 is open" in found.reason


async def test_one_that_hangs_after_its_result_has_answered(tmp_path: Path) -> None:
    found = await reply_of(
        tmp_path, [("pid", 0), *ANSWER, ("hang", 0)], clocks={**QUICK, "after_result": 0.2}
    )
    assert found == Reply(1, GOOD.encode())
    assert gone(int((tmp_path / "fake" / "pid").read_text()))
    noted = read_attempt_notes(tmp_path / "agents", 1, 0)
    assert noted == {1: ("it did not exit after its result and was killed",)}


async def test_one_that_never_speaks(tmp_path: Path) -> None:
    found = await reply_of(tmp_path, [("hang", 0)], clocks={**QUICK, "first_byte": 0.4})
    assert found.reason.startswith("the clock 'first byte' ended it: it has said nothing")


async def test_what_it_leaves_running_is_ended_and_noted(tmp_path: Path) -> None:
    scene: list[Act] = [("leave", 0), *say(Claude.init(), Claude.result("No."))]
    found = await reply_of(tmp_path, scene)
    assert gone(int((tmp_path / "fake" / "left").read_text()))
    assert found.reason.endswith("; 1 process had to be ended with it")


@pytest.mark.parametrize("end", ["settled", "close"])
async def test_what_still_runs_is_ended(tmp_path: Path, end: str) -> None:
    fake = FakeCli(tmp_path, [("leave", 0), ("pid", 0), *say(Claude.init()), ("hang", 0)])
    async with Bench(carrier(tmp_path, fake)) as bench:
        bench.carrier.send([ask()])
        pid = int(await appears(tmp_path / "fake" / "pid"))
        if end == "settled":
            bench.carrier.settle(1)
    assert gone(pid)
    assert gone(int((tmp_path / "fake" / "left").read_text()))
    assert bench.replies == []


async def test_settled_in_the_moment_it_was_sent(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, [*say(Claude.init()), ("hang", 0)])
    async with Bench(carrier(tmp_path, fake)) as bench:
        bench.carrier.send([ask()])
        bench.carrier.settle(1)
    assert bench.replies == []


async def test_an_abort_that_looks_like_success(tmp_path: Path) -> None:
    scene = say(Copilot.text_event(GOOD), Copilot.event("abort"), Copilot.result())
    found = await reply_of(tmp_path, scene, "copilot")
    assert (found.failure, found.content) == ("crash", b"")


async def test_a_program_that_is_gone(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, ANSWER)
    agent = carrier(tmp_path, fake)
    fake.program.unlink()
    [found] = await replies(agent, ask())
    assert found.failure == "crash"
    assert "cannot be started: No such file or directory" in found.reason


async def test_a_work_folder_that_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "agents" / "1").mkdir(parents=True)
    (tmp_path / "agents" / "1" / "0").symlink_to(tmp_path)
    found = await reply_of(tmp_path, ANSWER)
    assert found.failure == "crash"
    assert "symbolic links are refused" in found.reason


async def test_floods_and_nonsense(tmp_path: Path) -> None:
    noise: list[Act] = [("say", "x" * 100_000)] * 50 + [("raw", "ff00fe1b5b316d0a7b0a")]
    scene = [*noise, *ANSWER, ("say", "bye")]
    assert await reply_of(tmp_path, scene) == Reply(1, GOOD.encode())


async def test_leftovers_of_a_crash_are_ended_first(tmp_path: Path) -> None:
    """An Interlock that is killed leaves its agent; the next one ends it before it starts."""
    fake = FakeCli(tmp_path, [("leave", 0), ("pid", 0), *say(Claude.init()), ("hang", 0)], ANSWER)
    code = f"""
import asyncio, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from kernel_tests.carriers.cli.test_carrier import carrier
from tests.world.carrier_bench import ask
from interlock.carriers.contract import Session
class Fake: program = Path({str(fake.program)!r})
async def main():
    agent = carrier(Path({str(tmp_path)!r}), Fake())
    agent.start(Session(print))
    agent.send([ask()])
    await asyncio.Event().wait()
asyncio.run(main())
"""
    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    pid = int(await appears(tmp_path / "fake" / "pid"))
    dying.kill()
    await dying.wait()
    [found] = await replies(carrier(tmp_path, fake), ask())
    assert found == Reply(1, GOOD.encode())
    assert gone(pid)
    assert gone(int((tmp_path / "fake" / "left").read_text()))


async def seen_at_work(root: Path, *dispatch_ids: int) -> list[AgentStatus]:
    """How the agents stand, once these are at work."""
    give_up = time.monotonic() + 120
    while [each.dispatch_id for each in read_agent_status(root)] != [*dispatch_ids]:
        assert time.monotonic() < give_up, read_agent_status(root)
        await asyncio.sleep(0)
    return read_agent_status(root)


async def test_how_it_stands_can_be_read(tmp_path: Path) -> None:
    scene = [*say(Claude.init(), Claude.uses("t-1")), ("pid", 0), ("hang", 0)]
    agent = carrier(tmp_path, FakeCli(tmp_path, scene))
    async with Bench(agent) as bench:
        bench.carrier.send([ask()])
        await appears(tmp_path / "fake" / "pid")
        found = await seen_at_work(tmp_path / "agents", 1)
        assert (found[0].dispatch_id, found[0].agent, found[0].word) == (1, "claude", "working")
        assert any("tool t-1 is open" in reason for reason in found[0].reasons)
    assert read_agent_status(tmp_path / "agents") == []


async def test_how_an_attempt_ended_is_kept(tmp_path: Path) -> None:
    await reply_of(tmp_path, say(Claude.init("abc"), Claude.result("No.")))
    kept = tmp_path / "agents" / "1" / "0" / "work" / "claude-1.json"
    found = json.loads(kept.read_text())
    assert (found["session_id"], found["failure"], found["exit_code"]) == ("abc", "unreadable", 0)


def test_accounts_are_shared_by_login_and_never_told(tmp_path: Path) -> None:
    fake = FakeCli(tmp_path, ANSWER)

    def account(**env: str) -> str:
        return carrier(tmp_path, fake, around=env).account_of("worker")

    assert account() == "claude"
    assert account(ANTHROPIC_API_KEY="secret") == account(ANTHROPIC_API_KEY="secret")
    assert account(ANTHROPIC_API_KEY="secret") != account(ANTHROPIC_API_KEY="other")
    assert "secret" not in account(ANTHROPIC_API_KEY="secret")


async def test_agents_of_two_workers_in_one_folder_are_both_seen(tmp_path: Path) -> None:
    """Each has a status file of its own; that of one that died is left out, and removed."""
    root, fake = tmp_path / "agents", FakeCli(tmp_path, [*say(Claude.init()), ("hang", 0)])
    async with Bench(carrier(tmp_path, fake)) as one:
        one.carrier.send([ask()])
        await seen_at_work(root, 1)
        async with Bench(carrier(tmp_path, fake)) as other:
            other.carrier.send([ask(2)])
            await seen_at_work(root, 1, 2)
        await seen_at_work(root, 1)
        (left,) = root.glob("standing-*.json")
        dead = left.with_name("standing-claude-dead.json")
        dead.write_bytes(left.read_bytes().replace(b'"dispatch_id":1', b'"dispatch_id":7'))
        await seen_at_work(root, 1, 7)
        os.utime(dead, (1, 1))
        await seen_at_work(root, 1)
    again = carrier(tmp_path, fake)
    async with Bench(again) as bench:
        bench.carrier.send([ask(3)])
        await seen_at_work(root, 3)
        assert not dead.exists()
