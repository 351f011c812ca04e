"""Mark the processes of a workspace, and end those that a dead Interlock left.

A tag in an agent's environment, inherited by everything it starts, names the workspace, the run and
the dispatch, and has a nonce, so no two dispatches share one. The owner is the process that
supervises.

A process is ended only if it carries a tag of this workspace and its owner is dead, or its owner
cannot be seen from here and its run is over. This process, its ancestors, those it started, other
users' processes and those of a living Interlock are always spared.
"""

import functools
import os
import re
import signal
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from interlock.carriers.background import tell_user
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    HAS_PROC,
    Process,
    ProcessTable,
    SeenProcess,
    TagNames,
    find_ancestors,
    find_descendants,
    is_running,
    list_processes,
    read_process,
)
from interlock.system.process_tree import KillReport, Survivor, kill_tree, reap_fallen, send_signal

TAG_VARIABLE = "INTERLOCK_TAG"
PARENT_TAGS_VARIABLE = "INTERLOCK_TAGS_ABOVE"
"""The tags of the agents inside which this Interlock itself runs, separated by spaces."""
OWNER_VARIABLE = "INTERLOCK_OWNER"
TAGS = TagNames(TAG_VARIABLE, PARENT_TAGS_VARIABLE, OWNER_VARIABLE)
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_TAG = re.compile(rf"({_PART}):({_PART}):({_PART}):({_PART})\Z")


class ProcessTag(msgspec.Struct, frozen=True, order=True):
    workspace: str
    run: str
    dispatch: str
    nonce: str

    def __str__(self) -> str:
        return f"{self.workspace}:{self.run}:{self.dispatch}:{self.nonce}"


def read_tag(text: str) -> ProcessTag | None:
    found = _TAG.match(text)
    return ProcessTag(*found.groups()) if found else None


def parse_tag(text: str) -> ProcessTag:
    tag = read_tag(text)
    if tag is None:
        raise SourceError(f"{text!r} is not a tag; write workspace:run:dispatch:nonce")
    return tag


def describe_owner() -> str:
    """Describe this process for a later Interlock: its id, its start and its namespace of process
    ids."""
    me = read_process(os.getpid())
    space = str(os.stat("/proc/self/ns/pid").st_ino) if HAS_PROC else "0"  # noqa: PTH116
    return f"{os.getpid()}:{me.process.started if me else 0}:{space}"


def build_tag_variables(tag: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the tags for an agent's environment; outer tags come from our own environment."""
    above = f"{environ.get(PARENT_TAGS_VARIABLE, '')} {environ.get(TAG_VARIABLE, '')}".split()
    found = {TAG_VARIABLE: tag, OWNER_VARIABLE: describe_owner()}
    return found | ({PARENT_TAGS_VARIABLE: " ".join(above)} if above else {})


_MAX_NAMED: Final = 5
"""The number of processes that are named to the user."""


class OrphanReport(msgspec.Struct, frozen=True):
    tags: tuple[ProcessTag, ...] = ()
    """The dispatches that left processes behind."""
    left: tuple[Survivor, ...] = ()
    remaining: tuple[Survivor, ...] = ()


def no_run_is_over(tag: ProcessTag) -> bool:
    return False


async def cleanup_orphans(
    workspace: str,
    clock: Clock,
    is_over: Callable[[ProcessTag], bool] = no_run_is_over,
    grace: float = 5.0,
) -> OrphanReport:
    """End the orphans of a workspace and tell the user; `is_over` decides where the owner cannot be
    seen."""
    tags: set[ProcessTag] = set()
    known: set[Process] = set()
    over = functools.cache(is_over)
    kin = OwnProcesses({})

    def stop_it(seen: SeenProcess) -> None:
        if kin.select_foreign(seen, find_orphaned_tags(seen, workspace, over)):
            send_signal(seen.process, signal.SIGSTOP)

    async def find(stop: bool) -> dict[Process, SeenProcess]:
        nonlocal kin
        processes = list_processes(TAGS, stop_it) if stop else list_processes(TAGS)
        kin = OwnProcesses(processes)
        found, orphaned = find_orphans(processes, workspace, over)
        tags.update(orphaned)
        known.update(found)
        reap_fallen(seen for seen in processes.values() if seen.process in known)
        return found

    orphans = await find(False)
    killed = await kill_tree(orphans, find, clock, grace) if orphans else KillReport()
    if orphans:
        names = ", ".join(
            f"{seen.name} ({seen.process.pid})" for _, seen in sorted(orphans.items())[:_MAX_NAMED]
        )
        more = len(orphans) - _MAX_NAMED
        tell_user(
            f"ended {len(orphans)} process{'es' if len(orphans) > 1 else ''} that agents of an"
            f" earlier Interlock had left: {names}{f' and {more} more' if more > 0 else ''}"
        )
    return OrphanReport(tuple(sorted(tags)), killed.left, killed.remaining)


class OwnProcesses:
    """This process, its ancestors, and all below it."""

    def __init__(self, processes: ProcessTable) -> None:
        me = processes.get(os.getpid())
        self.above = find_ancestors(processes, os.getpid())
        self.below = {seen.process for seen in find_descendants(processes, [me] if me else [])}
        self._tags = {tag for text in (me.tags if me else ()) if (tag := read_tag(text))}

    def select_foreign(self, seen: SeenProcess, tags: set[ProcessTag]) -> set[ProcessTag]:
        """Return the tags for which the process may end.

        A process below us with tags other than ours was left by somebody else and inherited by us.
        """
        if seen.process in self.above:
            return set()
        return tags - self._tags if seen.process in self.below else tags


def find_orphans(
    processes: ProcessTable, workspace: str, is_over: Callable[[ProcessTag], bool]
) -> tuple[dict[Process, SeenProcess], set[ProcessTag]]:
    """Return the processes to end, and the tags that they carry."""
    kin = OwnProcesses(processes)
    fallen: list[SeenProcess] = []
    others: list[SeenProcess] = []
    tags: set[ProcessTag] = set()
    for seen in processes.values():
        found = kin.select_foreign(seen, find_orphaned_tags(seen, workspace, is_over))
        if found:
            (fallen if seen.process in kin.below else others).append(seen)
            tags |= found
    orphans = find_descendants(processes, fallen)
    orphans += [
        seen for seen in find_descendants(processes, others) if seen.process not in kin.below
    ]
    return {
        seen.process: seen for seen in orphans if seen.alive and seen.process not in kin.above
    }, tags


def find_orphaned_tags(
    seen: SeenProcess, workspace: str, is_over: Callable[[ProcessTag], bool]
) -> set[ProcessTag]:
    """Return the tags of this workspace whose owner no longer looks after the process."""
    tags = [tag for text in seen.tags if (tag := read_tag(text)) and tag.workspace == workspace]
    alive = is_owner_alive(seen.owner) if tags else True
    if alive:
        return set()
    # The owner that a process names is the owner of its own tag, the last one.
    own = seen.tags[-1] if alive is False else ""
    return {tag for tag in tags if is_over(tag) or str(tag) == own}


def is_owner_alive(text: str) -> bool | None:
    """Return whether the owner is alive; None if it is in another namespace of process ids, or
    unknown."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[0].isdecimal() or parts[2] != describe_owner().split(":")[2]:
        return None
    return is_running(int(parts[0]), parts[1])


class WorkspaceOwner(msgspec.Struct, frozen=True):
    """A workspace, as its processes know it."""

    workspace: str
    is_over: Callable[[ProcessTag], bool] = no_run_is_over
    """Asked about runs whose owner cannot be seen from here."""

    def make_tag(self, run_id: int, dispatch_id: int, nonce: str) -> str:
        return str(ProcessTag(self.workspace, str(run_id), str(dispatch_id), nonce))

    async def cleanup_orphans(self, clock: Clock, grace: float) -> OrphanReport:
        """End the processes that a dead Interlock left behind."""
        if self is NO_WORKSPACE:
            return OrphanReport()
        return await cleanup_orphans(self.workspace, clock, self.is_over, grace)


NO_WORKSPACE: Final = WorkspaceOwner("exec")
"""No workspace: orphans cannot be told from processes that others need."""
