"""What a killed owner left is ended by its tag; all others are let alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import psutil
import pytest

from interlock.carriers.cli.ownership import (
    OrphanReport,
    ProcessTag,
    cleanup_orphans,
    describe_owner,
    find_orphans,
    is_owner_alive,
    no_run_is_over,
    read_tag,
)
from interlock.system.clock import SystemClock
from interlock.system.process_table import Process, ProcessTable, SeenProcess
from interlock.system.process_tree import become_subreaper
from tests.world.carrier_bench import gone
from tests.world.command_line import until
from tests.world.places import ROOT
from tests.world.rogue import new_tag, tagged

_NUMBERS = count(1)


def workspace() -> str:
    return f"reap{os.getpid()}-{next(_NUMBERS)}"


@contextmanager
def forsaking(*tags: str) -> Iterator[Callable[[], None]]:
    """An owner that is no child of ours; hands out how to kill it."""
    argv = [sys.executable, "-m", "tests.world.killed_owner", *tags]
    starter = ["sh", "-c", '"$@" & echo $!', "starter", *argv]
    with subprocess.Popen(starter, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            assert gone(pid)

        try:
            assert process.stdout.readline() == b"ready\n"
            yield kill
        finally:
            kill()


def is_zombie(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_what_a_killed_owner_left_is_ended_also_in_other_sessions() -> None:
    become_subreaper()  # what a killed owner left falls to us then
    room = workspace()
    tags = [new_tag(room), new_tag(room, run="2")]
    with forsaking(*tags) as kill:
        kill()
        until(lambda: [len(tagged(tag)) for tag in tags] == [2, 2], "all run their own program")
        reaped = await cleanup_orphans(room, SystemClock(), grace=0.05)
    assert [str(tag) for tag in reaped.tags] == sorted(tags)
    assert len(reaped.left) == 4
    assert {left.signal for left in reaped.left} >= {"KILL"}, "two of them ignore TERM"
    assert reaped.remaining == ()
    assert not any(is_zombie(left.pid) for left in reaped.left)
    assert [tagged(tag) for tag in tags] == [[], []]
    assert await cleanup_orphans(room, SystemClock()) == OrphanReport()


async def test_a_living_owner_keeps_all_it_has() -> None:
    """Also what is over, as far as we know: we may be wrong, and it will end its own."""
    room = workspace()
    tags = [new_tag(room), new_tag(room, run="2")]
    with forsaking(*tags) as kill:
        assert await cleanup_orphans(room, SystemClock()) == OrphanReport()
        assert await cleanup_orphans(room, SystemClock(), lambda _: True) == OrphanReport()
        assert [len(tagged(tag)) for tag in tags] == [2, 2]
        kill()
        await cleanup_orphans(room, SystemClock(), grace=0.05)
    assert [tagged(tag) for tag in tags] == [[], []]


async def test_another_workspace_is_let_alone() -> None:
    room = workspace()
    tag = new_tag(room)
    with forsaking(tag) as kill:
        kill()
        for other in (room[:-1], f"{room}1", room.upper(), "*", "", f"{room}:1"):
            assert await cleanup_orphans(other, SystemClock(), lambda _: True) == OrphanReport()
        assert len(tagged(tag)) == 2
        await cleanup_orphans(room, SystemClock(), grace=0.05)
    assert tagged(tag) == []


ME = describe_owner()
DEAD = ME.replace(f"{os.getpid()}:", "999999999:")
NO_OWNERS = (
    "",
    ":",
    "a:b:c",
    "1",
    f"-1:0:{ME.split(':')[2]}",
    f"{DEAD}:",
    f"²:0:{ME.split(':')[2]}",
)


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        pytest.param(ME, False, id="it lives"),
        pytest.param(DEAD, True, id="no such process"),
        pytest.param(
            ":".join([ME.split(":")[0], "1", ME.split(":")[2]]), True, id="its number is reused"
        ),
        pytest.param(
            ":".join([*DEAD.split(":")[:2], "17"]), False, id="in another space of numbers"
        ),
        pytest.param(f"1:0:{ME.split(':')[2]}", True, id="the first process, from another start"),
        *(pytest.param(text, False, id=f"no owner {n}") for n, text in enumerate(NO_OWNERS)),
    ],
)
def test_owners(text: str, dead: bool) -> None:
    assert (is_owner_alive(text) is False) is dead


def person(
    pid: int, parent: int, *tags: str, owned_by: str = DEAD, state: str = "S"
) -> SeenProcess:
    return SeenProcess(
        Process(pid, pid), parent, pid, state, 0.0, "x", tags, owned_by if tags else ""
    )


def found(*people: SeenProcess, over: bool = False) -> list[int]:
    census: ProcessTable = {seen.process.pid: seen for seen in people}
    kin, _ = find_orphans(census, "w", (lambda _: True) if over else no_run_is_over)
    return sorted(process.pid for process in kin)


def test_ourselves_with_all_above_and_below_are_spared() -> None:
    """An agent of a dead owner runs us: its other children end; our line and our own do not."""
    agent = person(50, 1, "w:1:1:a")
    shell = person(51, 50, "w:1:1:a")
    us = person(os.getpid(), 51, "w:1:1:a")
    other, child = person(52, 50, "w:1:1:a"), person(54, 52)
    ours = person(53, os.getpid(), "w:1:1:a")
    assert found(agent, shell, us, other, child, ours) == [52, 54]
    assert found(agent, shell, us, other, child, ours, over=True) == [52, 54]


def test_what_fell_to_us_is_no_child_of_ours() -> None:
    us = person(os.getpid(), 1, "w:1:1:a")
    fallen, child = person(52, os.getpid(), "w:1:2:b"), person(53, 52)
    assert found(us, fallen, child, person(54, os.getpid(), "w:1:1:a")) == [52, 53]


def test_kin_without_a_tag_ends_with_its_parents() -> None:
    assert found(person(50, 1, "w:1:1:a"), person(51, 50), person(52, 51), person(53, 1)) == [
        50,
        51,
        52,
    ]


def test_the_dead_need_no_end() -> None:
    assert found(person(50, 1, "w:1:1:a", state="Z")) == []


def test_an_inner_agent_is_judged_by_its_own_owner_and_by_all_its_runs() -> None:
    """The owner in an environment is that of the last tag; a tag above it only says whose run."""
    inner = person(50, 1, "w:1:1:outer", "v:1:1:inner", owned_by=DEAD)
    assert found(inner) == []
    assert found(inner, over=True) == [50]
    assert found(person(50, 1, "v:1:1:outer", "w:1:1:inner")) == [50]
    assert found(person(50, 1, "v:1:1:outer", "w:1:1:inner", owned_by=ME)) == []


ELSEWHERE = ":".join([*ME.split(":")[:2], "17"])


@pytest.mark.parametrize(
    ("owned_by", "over", "ends"),
    [
        pytest.param(ME, True, False, id="it lives"),
        pytest.param(ELSEWHERE, True, True, id="elsewhere, over"),
        pytest.param(ELSEWHERE, False, False, id="elsewhere, not over"),
        pytest.param("", True, True, id="none, over"),
        pytest.param("", False, False, id="none, not over"),
        pytest.param(DEAD, False, True, id="dead"),
    ],
)
def test_whose_owner_cannot_be_seen_ends_with_its_run(
    owned_by: str, over: bool, ends: bool
) -> None:
    lost = person(50, 1, "w:1:1:a", owned_by=owned_by)
    assert found(lost, over=over) == ([50] if ends else [])


def test_forged_tags_are_nobodys() -> None:
    forged = ["w", "w:", "w:1:1:", "w:1:1:a:b", "w :1:1:a", "W:1:1:a", "w:1:1:a\n", "\ufffd"]
    assert found(*(person(50 + n, 1, tag) for n, tag in enumerate(forged)), over=True) == []


def test_tags_are_read_as_written() -> None:
    tag = ProcessTag("w", "1", "2", "n-1.x")
    assert read_tag(str(tag)) == tag
