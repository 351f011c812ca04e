"""Commands as agents: real processes that answer, fail, babble, hang on and leave others."""

import os
import resource
import sys
import time
from pathlib import Path

import pytest

from interlock.carriers.contract import MAX_ANSWER, Ask, ExecutionContext, Reply
from interlock.carriers.exec import CommandAgent
from tests.world.carrier_bench import Bench, appears, ask, gone, noted

MEGABYTE = "x" * 1_000_000


def shell(command: str, note: Path | None = None) -> CommandAgent:
    """A command that can leave a process id in the file $PID."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/none", "PID": str(note)}
    return CommandAgent(["sh", "-c", command], environment)


async def reply_of(agent: CommandAgent, question: Ask | None = None) -> Reply:
    async with Bench(agent) as bench:
        bench.carrier.send([question or ask()])
        return (await bench.until(1))[0]


@pytest.mark.parametrize(
    ("command", "content"),
    [
        pytest.param("cat", b"A prompt: \xc3\xbc \xf0\x9f\x9a\x82\n", id="the prompt is its stdin"),
        pytest.param("echo '{}'", b"{}\n", id="it need not read its prompt"),
        pytest.param("exec <&-; echo '{}'", b"{}\n", id="it closes stdin early"),
        pytest.param("true", b"", id="it says nothing"),
        pytest.param("exec >&-; true", b"", id="it closes stdout early"),
        pytest.param("printf '\\377\\000'", b"\xef\xbf\xbd\x00", id="bytes that are no text"),
        pytest.param(
            "printf '\\033[1m{}\\033[0m\\n'", b"{}\n", id="the colours of a terminal are dropped"
        ),
        pytest.param("echo '{}'; echo oh >&2", b"{}\n", id="stderr is not the answer"),
        pytest.param("printf '```json\\n{}\\n```\\n'", b"{}", id="a fence around its object"),
        pytest.param("printf '```\\noh'", b"```\noh", id="a fence around nothing"),
        pytest.param("head -c 1048576 /dev/zero", b"\0" * MAX_ANSWER, id="as long as allowed"),
        pytest.param("(sleep 0.05; echo late) & wait", b"late\n", id="a child answers"),
        pytest.param(
            'echo "$INTERLOCK_DISPATCH_ID $INTERLOCK_RUN_ID $INTERLOCK_CASE_ID $INTERLOCK_STEP'
            ' $INTERLOCK_ATTEMPT $INTERLOCK_ROLE $HOME"',
            b"7 2 C-1 work 3 worker /none\n",
            id="it knows its ids",
        ),
    ],
)
async def test_answers(command: str, content: bytes) -> None:
    question = Ask(7, 2, "C-1", "work", 3, "worker", "A prompt: ü 🚂\n")
    assert await reply_of(shell(command), question) == Reply(7, content)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        pytest.param("echo '{}'; exit 3", "exit code 3", id="exit code"),
        pytest.param("echo ' oh no ' >&2; exit 1", "exit code 1: oh no", id="with words"),
        pytest.param("kill -9 $$", "killed by signal 9", id="SIGKILL"),
        pytest.param("kill -TERM $$", "killed by signal 15", id="SIGTERM"),
        pytest.param("printf '\\377' >&2; exit 1", "exit code 1: \ufffd", id="words in no UTF-8"),
        pytest.param("nosuch-command 2>/dev/null", "exit code 127", id="not found by the shell"),
        pytest.param(
            "head -c 50000000 /dev/zero | tr '\\0' e >&2; exit 1",
            f"exit code 1: {'e' * 1_000}",
            id="50 MB on stderr",
        ),
        pytest.param(
            "seq 1 99 >&2; exit 2",
            "exit code 2: 92\n93\n94\n95\n96\n97\n98\n99",
            id="the last lines",
        ),
        pytest.param(
            "echo 'disk quota exceeded at line 429' >&2; exit 1",
            "exit code 1: disk quota exceeded at line 429",
            id="no rate limit",
        ),
    ],
)
async def test_crashes(command: str, reason: str) -> None:
    assert await reply_of(shell(command)) == Reply(1, failure="crash", reason=reason)


@pytest.mark.parametrize(
    "command",
    [
        "exit 75",
        "echo 'HTTP 429 Too Many Requests' >&2; exit 1",
        "echo 'Rate limit reached' >&2; exit 1",
        """echo 'API Error: 529 {"type":"overloaded_error"}' >&2; exit 1""",
        "echo 'The model is currently overloaded.' >&2; exit 1",
    ],
)
async def test_rate_limits(command: str) -> None:
    reply = await reply_of(shell(command))
    assert (reply.failure, reply.until) == ("rate-limit", 0)


async def test_a_rate_limit_may_say_when_it_ends() -> None:
    reply = await reply_of(shell("echo 'rate limit: try again in 2 minutes' >&2; exit 75"))
    assert reply.failure == "rate-limit"
    assert reply.until == pytest.approx(time.time() + 120, abs=30)


async def test_an_endless_answer_is_cut_off() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
    assert await reply_of(shell("yes")) == Reply(1, failure="unreadable", reason=reason)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


async def test_100_mb_are_refused_and_not_kept() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await reply_of(shell("trap '' TERM PIPE; head -c 100000000 /dev/zero"))
    assert found.failure == "unreadable"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@pytest.mark.parametrize("size", [1, 20], ids=["1 MB", "20 MB"])
async def test_a_large_prompt_that_is_never_read(size: int) -> None:
    question = ask(prompt=MEGABYTE * size)
    assert await reply_of(shell("echo '{}'"), question) == Reply(1, b"{}\n")


async def test_a_large_prompt_comes_whole() -> None:
    assert await reply_of(shell("wc -c"), ask(prompt=MEGABYTE)) == Reply(1, b"1000000\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/nosuch/agent", "'/nosuch/agent' cannot be started: No such file or directory"),
        ("/etc/passwd", "'/etc/passwd' cannot be started: Permission denied"),
        ("/etc", "'/etc' cannot be started: Permission denied"),
    ],
)
async def test_what_cannot_be_started_is_a_crash(name: str, reason: str) -> None:
    assert await reply_of(CommandAgent([name], {})) == Reply(1, failure="crash", reason=reason)


LASTING = {
    "it sleeps": "echo $$ > $PID; sleep 300",
    "it never reads": "echo $$ > $PID; exec sleep 300",
    "it ignores SIGTERM": "trap '' TERM; echo $$ > $PID; while :; do sleep 0.1; done",
    "its child": "sleep 300 & echo $! > $PID; wait",
    "its child ignores SIGTERM": "(trap '' TERM; sleep 300) & echo $! > $PID; wait",
    "its orphan": "sleep 300 & echo $! > $PID; exec sleep 300",
}


@pytest.mark.parametrize("end", ["settled", "close"])
@pytest.mark.parametrize("command", LASTING.values(), ids=LASTING)
async def test_what_still_runs_is_ended(command: str, end: str, tmp_path: Path) -> None:
    async with Bench(shell(command, tmp_path / "pid")) as bench:
        bench.carrier.send([ask(prompt=MEGABYTE)])
        pid = int(await appears(tmp_path / "pid"))
        if end == "settled":
            bench.carrier.settle(1)
    assert gone(pid)
    assert bench.replies == []


async def test_what_it_left_running_is_ended_and_does_not_keep_the_answer(tmp_path: Path) -> None:
    async with Bench(shell("sleep 300 & echo $! > $PID; echo '{}'", tmp_path / "pid")) as bench:
        bench.carrier.send([ask()])
        assert await bench.until(1) == [Reply(1, b"{}\n")]
        assert gone(int(await appears(tmp_path / "pid")))


async def test_one_that_slipped_away_is_ended_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; child = subprocess.Popen(['sleep', '300'],"
        " start_new_session=True); open(sys.argv[1], 'w').write(f'{child.pid}\\n'); print('{}')"
    )
    agent = CommandAgent([sys.executable, "-c", code, str(tmp_path / "pid")], os.environ)
    assert await reply_of(agent) == Reply(1, b"{}\n")
    assert gone(int(noted(tmp_path / "pid")))


async def test_an_endless_line_is_cut_off(tmp_path: Path) -> None:
    reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
    agent = shell("echo $$ > $PID; exec cat /dev/zero", tmp_path / "pid")
    assert await reply_of(agent) == Reply(1, failure="unreadable", reason=reason)
    assert gone(int(noted(tmp_path / "pid")))


async def test_half_a_line_counts_when_something_was_left_running() -> None:
    assert await reply_of(shell("sleep 300 & printf '{}'")) == Reply(1, b"{}")


async def test_settled_in_the_moment_it_was_sent(tmp_path: Path) -> None:
    async with Bench(shell("sleep 300 & echo $! > $PID; wait", tmp_path / "pid")) as bench:
        bench.carrier.send([ask()])
        bench.carrier.settle(1)
    pid = noted(tmp_path / "pid")
    assert not pid or gone(int(pid))
    assert bench.replies == []


async def test_sent_again_while_the_first_is_ending() -> None:
    async with Bench(shell("trap '' TERM; sleep 0.2; echo '{}'")) as bench:
        bench.carrier.send([ask()])
        bench.carrier.settle(1)
        bench.carrier.send([ask()])
        assert await bench.until(1) == [Reply(1, b"{}\n")]


async def test_many_at_once() -> None:
    async with Bench(shell("cat")) as bench:
        bench.carrier.send([ask(number, f"{number}") for number in range(50)])
        replies = await bench.until(50)
    expected = [Reply(number, f"{number}".encode()) for number in range(50)]
    assert sorted(replies, key=lambda each: each.dispatch_id) == expected


async def test_it_works_where_its_task_is(tmp_path: Path) -> None:
    premises = ExecutionContext(str(tmp_path), {"PORT": "4000"})
    question = Ask(7, 2, "C-1", "work", 3, "worker", "", execution=premises)
    reply = await reply_of(shell('echo "$PWD $PORT"'), question)
    assert reply.content == f"{tmp_path} 4000\n".encode()
