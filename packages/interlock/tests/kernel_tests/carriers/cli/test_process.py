"""One agent's process: started, heard, timed and ended with all it started."""

import asyncio
import fcntl
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from interlock.carriers.cli.health import AgentHealth
from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.cli.process import (
    PIPE_SIZE,
    AgentProcess,
    EndedBy,
    ProcessEnd,
    ProcessSpec,
    describe_end,
    start_process,
)
from interlock.carriers.cli.timeouts import CLOCK_NAMES, StreamSign, Timeouts
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock.system.process_table import ProcessSnapshot, list_processes, read_process
from interlock.system.process_tree import OutputLine
from tests.world.carrier_bench import appears, gone, noted
from tests.world.leaping_clock import LeapClock
from tests.world.rogue import ROGUES, LineRecorder, Rogue, new_tag, shell, start, tagged

PATIENT = Timeouts(grace=1.0)


@pytest.mark.parametrize("rogue", ROGUES.values(), ids=ROGUES)
async def test_rogues(rogue: Rogue) -> None:
    recorder, before = LineRecorder(), zombies()
    what = start(*rogue.argv)
    ended = await AgentProcess(what, rogue.clocks, recorder, SystemClock()).run()
    assert ended.by == rogue.by
    assert ended.exit_code in rogue.exit_codes
    assert tuple(recorder.words[: len(rogue.words)]) == rogue.words
    assert tuple(recorder.late)[: len(rogue.late)] == rogue.late
    assert rogue.left in (-1, len(ended.left)), ended.left
    assert (ended.signalled_at is None) == (rogue.by == "itself" and not rogue.left)
    assert ended.remaining == ()
    assert tagged(what.tag) == []
    assert zombies() <= before


def zombies() -> set[int]:
    """Return our children that ended and were not reaped."""
    children = psutil.Process().children()
    return {each.pid for each in children if each.status() == psutil.STATUS_ZOMBIE}


async def run(
    command: str, clocks: Timeouts = PATIENT, stdin: bytes = b""
) -> tuple[ProcessEnd, LineRecorder]:
    recorder = LineRecorder()
    return await AgentProcess(
        shell(command, stdin), clocks, recorder, SystemClock()
    ).run(), recorder


async def test_all_facts_are_told() -> None:
    ended, _ = await run("echo one; echo tool 7; echo oh >&2; echo result; printf half; exit 4")
    assert (ended.by, ended.exit_code, ended.lines, ended.cut_lines) == ("itself", 4, 4, 0)
    assert ended.stdout_bytes == len("one\ntool 7\nresult\nhalf")
    assert ended.stderr == b"oh\n"
    assert ended.open_tools == ("7",)
    assert ended.first_byte_at is not None
    assert ended.result_at is not None
    assert ended.started_at <= ended.first_byte_at <= ended.result_at <= ended.ended_at
    assert ended.last.word == "dead"


async def test_what_it_was_in_the_moment_before_is_told() -> None:
    ended, _ = await run("echo permission rm; exec sleep 300", Timeouts(silence=0.02, grace=1.0))
    assert ended.last.word == "waiting-for-permission"
    assert "it asks for permission: rm" in ended.last.reasons


async def test_lines_come_as_they_are() -> None:
    command = r"printf 'a\000b\n\377\376\n\033[31mred\033[0m\n\r\n\nx\r\nend'"
    _, recorder = await run(command)
    texts = [b"a\0b", b"\xff\xfe", b"\x1b[31mred\x1b[0m", b"", b"", b"x"]
    assert recorder.lines == [*map(OutputLine, texts), OutputLine(b"end", half=True)]


async def test_its_session_is_its_own_and_the_environment_too() -> None:
    what = shell("ps -o pid=,pgid=,sid= -p $$; env | sort")
    recorder = LineRecorder()
    await AgentProcess(what, PATIENT, recorder, SystemClock()).run()
    pid, group, session = recorder.words[0].split()
    assert pid == group == session != str(os.getsid(0)).encode()
    names = {word.partition(b"=")[0] for word in recorder.words[1:]}
    ours = {b"INTERLOCK_TAG", b"INTERLOCK_OWNER"}
    assert names - {b"PWD", b"_", b"OLDPWD", b"SHLVL"} == {b"PATH", b"HOME", *ours}
    assert f"INTERLOCK_TAG={what.tag}".encode() in recorder.words


async def test_its_tag_is_handed_down_with_those_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_TAG", "w:1:2:outer")
    monkeypatch.setenv("INTERLOCK_TAGS_ABOVE", "w:1:1:outermost")
    _, recorder = await run('echo "$INTERLOCK_TAGS_ABOVE"')
    assert recorder.words == [b"w:1:1:outermost w:1:2:outer"]


@pytest.mark.parametrize("size", [0, 1, 300_000, 20_000_000])
async def test_the_prompt_comes_whole_and_is_closed(size: int) -> None:
    _, recorder = await run("wc -c", stdin=b"x" * size)
    assert recorder.words == [str(size).encode()]


@pytest.mark.parametrize("command", ["echo ok", "exec <&-; echo ok", "head -c 1 >&2; echo ok"])
async def test_a_prompt_that_is_not_read_is_no_fault(command: str) -> None:
    ended, recorder = await run(command, stdin=b"x" * 20_000_000)
    assert (ended.by, ended.exit_code, recorder.words) == ("itself", 0, [b"ok"])


async def test_gigabytes_are_heard_and_not_kept() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended, recorder = await run("head -c 300000000 /dev/zero; echo; echo result")
    assert ended.stdout_bytes == 300_000_000 + len("\nresult\n")
    assert (ended.lines, ended.cut_lines) == (2, 1)
    assert recorder.lines[0].cut
    assert recorder.words[1] == b"result"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_the_end_of_stderr_is_kept() -> None:
    ended, _ = await run("head -c 50000000 /dev/zero >&2; echo why >&2")
    assert len(ended.stderr) == 16 * 1024
    assert ended.stderr.endswith(b"\0why\n")


@pytest.mark.parametrize(
    ("argv", "folder", "why"),
    [
        (("/nosuch/agent",), "/", "'/nosuch/agent' cannot be started: No such file or directory"),
        (("/etc/passwd",), "/", "'/etc/passwd' cannot be started: Permission denied"),
        (("sh",), "/nosuch", "'sh' cannot be started: its work folder '/nosuch' does not exist"),
        (("sh", "a\0b"), "/", "'sh' cannot be started: embedded null byte"),
        ((), "/", "there is no command to start"),
    ],
)
async def test_what_cannot_be_started(argv: tuple[str, ...], folder: str, why: str) -> None:
    what = msgspec.structs.replace(start(*argv), cwd=Path(folder))
    with pytest.raises(SourceError) as error:
        await AgentProcess(what, PATIENT, LineRecorder(), SystemClock()).run()
    assert str(error.value) == why


@pytest.mark.parametrize("tag", ["", "a:b:c", "a:b:c:d:e", "a b:1:2:3", "a:1:2:3\n", "::: "])
async def test_a_tag_that_is_none(tag: str) -> None:
    what = msgspec.structs.replace(shell("true"), tag=tag)
    with pytest.raises(SourceError, match="write workspace:run:dispatch:nonce"):
        await AgentProcess(what, PATIENT, LineRecorder(), SystemClock()).run()


async def test_what_we_start_for_ourselves_is_nobodys() -> None:
    recorder = LineRecorder()
    agent = AgentProcess(shell("echo hello; exec sleep 300"), PATIENT, recorder, SystemClock())
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    ours = await asyncio.create_subprocess_exec("sleep", "300", start_new_session=True)
    agent.stop()
    assert (await task).left == ()
    assert ours.returncode is None
    ours.kill()
    assert await ours.wait() == -9


async def test_a_fork_of_ours_lives_on_until_it_runs_its_program() -> None:
    recorder = LineRecorder()
    agent = AgentProcess(shell("echo hello; exec sleep 300"), PATIENT, recorder, SystemClock())
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    asked, tell = os.pipe()
    answered, answer = os.pipe()
    child = os.fork()
    if child == 0:  # as subprocess does before it runs a program, only for longer
        os.setsid()
        os.write(answer, b"here")
        os.read(asked, 1)
        os._exit(7)
    assert os.read(answered, 4) == b"here"
    agent.stop()
    assert (await task).left == ()
    os.write(tell, b"!")
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    for pipe in (asked, tell, answered, answer):
        os.close(pipe)


async def test_what_may_be_of_two_agents_ends_with_the_last_of_them() -> None:
    recorder, before = LineRecorder(), zombies()
    first = AgentProcess(shell("echo hello; exec sleep 300"), PATIENT, recorder, SystemClock())
    task = asyncio.create_task(first.run())
    await recorder.hears(b"hello")
    quick = start(*ROGUES["leaves a daemon that shed everything at once"].argv)
    second = await AgentProcess(quick, PATIENT, LineRecorder(), SystemClock()).run()
    first.stop()
    assert (second.left, len((await task).left)) == ((), 1)
    assert zombies() <= before


async def test_stopped_by_us() -> None:
    recorder, what = LineRecorder(), shell("echo hello; setsid sleep 300 & exec sleep 300")
    agent = AgentProcess(what, PATIENT, recorder, SystemClock())
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    agent.stop()
    agent.stop()
    ended = await task
    assert (ended.by, ended.exit_code) == ("us", -15)
    assert tagged(what.tag) == []
    agent.stop()


async def test_stopped_before_it_was_started() -> None:
    agent = AgentProcess(start("/nosuch"), PATIENT, LineRecorder(), SystemClock())
    agent.stop()
    ended = await agent.run()
    assert (ended.by, ended.exit_code, ended.last.word) == ("us", None, "dead")


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelled_it_ends_the_agent_first(times: int) -> None:
    recorder, what = LineRecorder(), shell("trap '' TERM; echo hello; while :; do sleep 300; done")
    task = asyncio.create_task(
        AgentProcess(what, Timeouts(grace=0.05), recorder, SystemClock()).run()
    )
    await recorder.hears(b"hello")
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tagged(what.tag) == []


async def test_a_reader_that_fails_ends_the_agent() -> None:
    def reader(line: OutputLine) -> list[StreamSign]:
        raise RecursionError(line.text.decode())

    what = shell("echo hello; echo more; exec sleep 300")
    with pytest.raises(RecursionError, match="hello"):
        await AgentProcess(what, PATIENT, reader, SystemClock()).run()
    assert tagged(what.tag) == []


async def test_a_reader_may_stop_it() -> None:
    def reader(line: OutputLine) -> list[StreamSign]:
        agent.stop()
        return []

    what = shell("exec yes")
    agent = AgentProcess(what, PATIENT, reader, SystemClock())
    assert (await agent.run()).by == "us"
    assert tagged(what.tag) == []


async def test_standing_while_it_runs(tmp_path: Path) -> None:
    recorder = LineRecorder()
    agent = AgentProcess(shell("echo tool 1; sleep 300 & wait"), PATIENT, recorder, SystemClock())
    assert agent.read_health().word == "dead"
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"tool 1")
    found = agent.read_health(list_processes(TAGS))
    assert found.word == "working"
    assert "tool 1 is open for 0 s" in found.reasons
    assert any("of a core" in reason for reason in agent.read_health().reasons)
    agent.stop()
    await task


async def test_one_that_was_seen_stays_known_without_tag_and_parents(tmp_path: Path) -> None:
    """It sheds its environment, its session and its parents; only that it was seen remains."""
    note = tmp_path / "pid"
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.execve('/bin/sh', ['sh', '-c', f'echo $$ > {sys.argv[1]}; exec sleep 300'], {})\n"
        "sys.stdin.read(); print('hello', flush=True); sys.stdin.close(); time.sleep(300)\n"
    )
    recorder = LineRecorder()
    agent = AgentProcess(
        start(sys.executable, "-c", code, str(note)), PATIENT, recorder, SystemClock()
    )
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    pid = int(await appears(note))
    agent.read_health()
    assert agent.process is not None
    os.kill(agent.process.pid, 9)
    ended = await task
    assert [left.pid for left in ended.left] == [pid]
    assert gone(pid)


async def test_many_at_once_share_their_looks() -> None:
    tags = [new_tag() for _ in range(30)]
    ears = [LineRecorder() for _ in tags]
    snapshot = ProcessSnapshot(TAGS)
    starts = [shell("setsid sleep 300 & echo result", tag=tag) for tag in tags]
    found = await asyncio.gather(
        *(
            AgentProcess(what, PATIENT, recorder, SystemClock(), snapshot=snapshot).run()
            for what, recorder in zip(starts, ears, strict=True)
        )
    )
    assert {(ended.by, ended.exit_code, len(ended.left)) for ended in found} == {("itself", 0, 1)}
    assert [recorder.words for recorder in ears] == [[b"result"]] * 30
    assert [tag for tag in tags if tagged(tag)] == []


def until(is_so: Callable[[], bool]) -> None:
    """Waits without letting the event loop turn."""
    give_up = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < give_up
        os.sched_yield()


async def test_what_was_said_in_time_counts_although_we_were_busy(tmp_path: Path) -> None:
    recorder, clock, note = LineRecorder(), LeapClock(), tmp_path / "note"
    what = shell(f"echo hello; until [ -e {note}.go ]; do :; done; echo more; echo 1 > {note}; cat")
    clocks = Timeouts(silence=1_000, wall=100_000)
    agent = AgentProcess(msgspec.structs.replace(what, stdin=b""), clocks, recorder, clock)
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    tmp_path.joinpath("note.go").touch()
    until(lambda: noted(note) == "1")
    assert recorder.words == [b"hello"]
    clock.leap(1_001)
    assert recorder.words == [b"hello", b"more"]
    assert (await task).by == "itself"


async def test_one_that_exited_in_time_was_not_ended_by_a_clock(tmp_path: Path) -> None:
    recorder, clock, note = LineRecorder(), LeapClock(), tmp_path / "note"
    what = shell(f"echo hello; until [ -e {note} ]; do :; done; exit 3")
    agent = AgentProcess(what, Timeouts(silence=1_000, wall=100_000), recorder, clock)
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    note.touch()
    pid = agent.process.pid if agent.process else 0
    until(lambda: not is_alive(pid))
    clock.leap(1_001)
    ended = await task
    assert (ended.by, ended.exit_code, ended.signalled_at) == ("itself", 3, None)


def is_alive(pid: int) -> bool:
    seen = read_process(pid)
    return seen is not None and seen.alive


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_too_many_open_files_leave_nobody() -> None:
    """Whatever fails while it is being attached, the child that was born is ended."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = open_files()
    tags = [new_tag() for _ in range(16)]
    refused = 0
    try:
        for room, tag in enumerate(tags):
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))
            try:
                await AgentProcess(
                    shell("exec sleep 300", tag=tag), Timeouts(wall=0.01), LineRecorder(), _CLOCK
                ).run()
            except SourceError:
                refused += 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 0 < refused < 16
    assert [tag for tag in tags if tagged(tag)] == []
    assert open_files() <= used


def take_all(taken: list[int]) -> None:
    while True:
        taken.append(os.dup(0))


async def test_too_many_open_files_when_it_must_end() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    recorder, what = LineRecorder(), shell("setsid sleep 300 & echo hello; exec sleep 300")
    agent = AgentProcess(what, PATIENT, recorder, SystemClock())
    task = asyncio.create_task(agent.run())
    await recorder.hears(b"hello")
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 20, hard))
        with pytest.raises(OSError, match="Too many open files"):
            take_all(taken)
        agent.stop()
        ended = await task
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
    assert (ended.by, ended.remaining) == ("us", ())
    assert tagged(what.tag) == []


async def test_a_machine_that_slept_does_not_end_its_agents() -> None:
    recorder = LineRecorder()

    def wall() -> float:
        return time.time() + (3_600 if recorder.words else 0)

    what = shell("echo hello; exec sleep 300")
    clocks = Timeouts(silence=0.05)
    ended = await AgentProcess(what, clocks, recorder, SystemClock(), wall=wall).run()
    assert ended.by == "silence"
    assert ended.slept == pytest.approx(3_600, abs=1)
    assert ended.signalled_at is not None
    assert ended.signalled_at - ended.started_at > 2 * 0.05


_CLOCK = SystemClock()


HASTY = """\
import os
os.set_blocking(1, False)
os.write(1, b"y" * 400_000)
os._exit(0)
"""
"""Prints what the pipe takes at once and exits, whoever reads it or not."""


def test_an_agent_that_does_not_wait_for_its_reader_loses_nothing(tmp_path: Path) -> None:
    child = start_process(
        ProcessSpec((sys.executable, "-c", HASTY), b"", tmp_path, dict(os.environ), "w:1:1:t"), {}
    )
    assert child.stdout is not None
    holds = fcntl.fcntl(child.stdout, fcntl.F_GETPIPE_SZ)
    if holds < PIPE_SIZE:
        pytest.skip("this user has as much in pipes as the system grants")
    assert child.wait(60) == 0
    out, _ = child.communicate()
    assert PIPE_SIZE > 400_000
    assert len(out) == 400_000


@pytest.mark.parametrize(
    ("argv", "folder", "sentence"),
    [
        ((), ".", "there is no command"),
        (("/nowhere/agent",), ".", "'/nowhere/agent' cannot be started: No such file"),
        ((sys.executable,), "gone", "its work folder"),
        (("a\0b",), ".", "embedded null byte"),
    ],
)
def test_what_cannot_start_says_why(
    tmp_path: Path, argv: tuple[str, ...], folder: str, sentence: str
) -> None:
    with pytest.raises(SourceError, match=sentence):
        start_process(ProcessSpec(argv, b"", tmp_path / folder, {}, "w:1:1:t"), {})


ENDED = ProcessEnd(exit_code=0, by="itself", started_at=0, ended_at=1, last=AgentHealth("dead", ()))
CLOCKS = Timeouts(first_byte=0.5, silence=600)


@pytest.mark.parametrize(
    ("by", "exit_code", "sentence"),
    [
        ("itself", 0, "exit code 0"),
        ("itself", 3, "exit code 3"),
        ("itself", -9, "killed by signal 9"),
        ("itself", None, "its exit code is not known"),
        ("us", -15, "it was stopped"),
        ("first_byte", 0, "it said nothing within 0.5 s of its start and was ended"),
        ("silence", -15, "it was silent for 600 s and was ended"),
    ],
)
def test_sentences(by: EndedBy, exit_code: int | None, sentence: str) -> None:
    ended = msgspec.structs.replace(ENDED, by=by, exit_code=exit_code)
    assert describe_end(ended, CLOCKS) == sentence


def test_every_clock_has_its_sentence() -> None:
    sentences = {
        describe_end(msgspec.structs.replace(ENDED, by=name), CLOCKS) for name in CLOCK_NAMES
    }
    assert len(sentences) == len(CLOCK_NAMES)


def test_it_can_be_written_down() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ENDED), type=ProcessEnd) == ENDED
