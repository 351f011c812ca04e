"""Whose processes are whose: how a workspace marks its own, and ends what a dead Interlock left.

Ended is only what carries a tag of this workspace and has lost its owner, or whose owner cannot be
seen from here and whose run is over. Never by name, never another user's, never what an Interlock
that lives looks after. This process, those above it and those it started are always spared.
"""

import functools
import os
import signal
from collections.abc import Callable
from typing import Final

import msgspec

from interlock.agents.cli.tag import TAGS, ProcessTag, read_tag
from interlock.system.process_table import (
    HAS_PROC,
    Census,
    Process,
    SeenProcess,
    census,
    descendants,
    is_there,
    line_above,
    look,
)
from interlock.system.process_tree import Clock, KillReport, Survivor, kill_tree, send


def owner() -> str:
    """This process, for those who come after it: its id, its start and the space of its id."""
    me = look(os.getpid())
    space = str(os.stat("/proc/self/ns/pid").st_ino) if HAS_PROC else "0"  # noqa: PTH116
    return f"{os.getpid()}:{me.process.started if me else 0}:{space}"


class OrphanReport(msgspec.Struct, frozen=True):
    tags: tuple[ProcessTag, ...] = ()
    """The dispatches of which something was found that had to end."""
    left: tuple[Survivor, ...] = ()
    remaining: tuple[Survivor, ...] = ()


def nothing_is_over(tag: ProcessTag) -> bool:
    return False


async def reap(
    workspace: str,
    clock: Clock,
    is_over: Callable[[ProcessTag], bool] = nothing_is_over,
    grace: float = 5.0,
) -> OrphanReport:
    """End the orphans of a workspace. `is_over` is asked where nobody can tell who looks after."""
    tags: set[ProcessTag] = set()
    over = functools.cache(is_over)
    spared: set[Process] = set()

    def stop_it(seen: SeenProcess) -> None:
        if seen.process not in spared and orphaned_tags(seen, workspace, over):
            send(seen.process, signal.SIGSTOP)

    async def find(stop: bool) -> dict[Process, SeenProcess]:
        people = census(TAGS, stop_it) if stop else census(TAGS)
        spared.update(our_own(people))
        found, orphaned = orphans(people, workspace, over)
        tags.update(orphaned)
        return found

    kin = await find(False)
    felled = await kill_tree(kin, find, clock, grace) if kin else KillReport()
    return OrphanReport(tuple(sorted(tags)), felled.left, felled.remaining)


def orphans(
    people: Census, workspace: str, is_over: Callable[[ProcessTag], bool]
) -> tuple[dict[Process, SeenProcess], set[ProcessTag]]:
    """The processes to end, and the tags that they carry."""
    spared = our_own(people)
    roots: list[SeenProcess] = []
    tags: set[ProcessTag] = set()
    for seen in people.values():
        found = orphaned_tags(seen, workspace, is_over)
        if found and seen.process not in spared:
            roots.append(seen)
            tags |= found
    kin = [each for each in descendants(people, roots) if each.alive]
    return {each.process: each for each in kin if each.process not in spared}, tags


def our_own(people: Census) -> set[Process]:
    """This process, those above it, and all that it started itself."""
    me = people.get(os.getpid())
    below = descendants(people, [me] if me else [])
    return line_above(people, os.getpid()) | {seen.process for seen in below}


def orphaned_tags(
    seen: SeenProcess, workspace: str, is_over: Callable[[ProcessTag], bool]
) -> set[ProcessTag]:
    found = _tags_of(seen, workspace)
    if not found or owner_lives(seen.owner):
        return set()
    return {tag for tag in found if is_over(tag) or _is_orphan(tag, seen)}


def _tags_of(seen: SeenProcess, workspace: str) -> list[ProcessTag]:
    tags = (read_tag(text) for text in seen.tags)
    return [tag for tag in tags if tag is not None and tag.workspace == workspace]


def _is_orphan(tag: ProcessTag, seen: SeenProcess) -> bool:
    """The owner that a process names is the owner of its own tag, the last one."""
    return str(tag) == seen.tags[-1] and owner_is_dead(seen.owner)


def owner_is_dead(text: str) -> bool:
    """Whether it is known that the owner is no more."""
    return _owner_is_there(text) is False


def owner_lives(text: str) -> bool:
    """Whether it is known that the owner is there."""
    return _owner_is_there(text) is True


def _owner_is_there(text: str) -> bool | None:
    """None where we cannot see: an owner in another space of process ids, or none at all."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[0].isdecimal() or parts[2] != owner().split(":")[2]:
        return None
    return is_there(int(parts[0]), parts[1])


class WorkspaceOwner(msgspec.Struct, frozen=True):
    """A workspace, as its processes know it."""

    workspace: str
    is_over: Callable[[ProcessTag], bool] = nothing_is_over
    """Asked of runs whose owner cannot be seen from here."""

    def tag(self, run_id: int, dispatch_id: int, nonce: str) -> str:
        return str(ProcessTag(self.workspace, str(run_id), str(dispatch_id), nonce))

    async def reap(self, clock: Clock, grace: float) -> OrphanReport:
        """End what an Interlock that is no more left behind."""
        if self is NOBODYS:
            return OrphanReport()
        return await reap(self.workspace, clock, self.is_over, grace)


NOBODYS: Final = WorkspaceOwner("exec")
"""Of no workspace: nothing that was left behind can be told from what others need."""
