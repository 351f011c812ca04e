"""The state of the agents at work, in a small file that others may read.

It is written every few seconds while an agent works; a failure to write is ignored. Each writer has
a file of its own, because workers and runs may share a folder. The file of a dead writer is ignored
once it is too old, and removed by the next one.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.carriers.cli.health import AgentHealth
from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.contract import Ask
from interlock.system.clock import Clock
from interlock.system.files import read_file, write_file
from interlock.system.process_table import Process, ProcessTable, list_processes

UPDATE_EVERY = 5.0
_FIRST_AFTER = 1.0
_MAX_FILE = 4_000_000
_ABANDONED_AFTER = 12 * UPDATE_EVERY
"""Seconds without an update after which a file's writer counts as dead."""
_PREFIX = "standing-"


class AgentStatus(msgspec.Struct, frozen=True):
    """The state of one agent at work."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    agent: str
    word: str
    reasons: tuple[str, ...]
    pid: int
    at: float


class RunningAgent(Protocol):
    """An agent whose health can be read."""

    @property
    def process(self) -> Process | None:
        """The agent's process; None before the start."""

    def read_health(self, processes: ProcessTable | None = None) -> AgentHealth:
        """Return the agent's health now."""


class AgentStatusFile:
    """Write the state of agents now and then, while one works."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Write to a file beside `path` whose name nobody else uses."""
        self._path = path.with_name(f"{path.stem}-{uuid.uuid4().hex}{path.suffix}")
        self._clock = clock
        self._agents: dict[int, tuple[Ask, str, RunningAgent]] = {}
        self._cancel: Callable[[], None] | None = None

    def add(self, ask: Ask, name: str, agent: RunningAgent) -> None:
        self._agents[ask.dispatch_id] = (ask, name, agent)
        if self._cancel is None:
            _remove_abandoned(self._path.parent)
            self._cancel = self._clock.call_at(self._clock.now() + _FIRST_AFTER, self._update)

    def drop(self, dispatch_id: int) -> None:
        self._agents.pop(dispatch_id, None)
        if not self._agents:
            self.close()

    def close(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _update(self) -> None:
        now = self._clock.now()
        self._cancel = self._clock.call_at(now + UPDATE_EVERY, self._update)
        processes = list_processes(TAGS)
        found = []
        for ask, name, agent in self._agents.values():
            process = agent.process
            if process is not None:
                seen = agent.read_health(processes)
                found.append(
                    AgentStatus(
                        dispatch_id=ask.dispatch_id,
                        run_id=ask.run_id,
                        case_id=ask.case_id,
                        step=ask.step,
                        agent=name,
                        word=seen.word,
                        reasons=seen.reasons,
                        pid=process.pid,
                        at=now,
                    )
                )
        with suppress(OSError):
            write_file(self._path, msgspec.json.encode(found), sync=False)


def read_agent_status(root: Path) -> list[AgentStatus]:
    """Return what the carriers of a workspace last wrote, by dispatch."""
    found: list[AgentStatus] = []
    for path in sorted(root.glob(f"{_PREFIX}*.json")):
        if _is_abandoned(path):
            continue
        raw = read_file(path, _MAX_FILE)
        try:
            if isinstance(raw, bytes):
                found += msgspec.json.decode(raw, type=list[AgentStatus])
        except (msgspec.DecodeError, UnicodeError):
            continue
    return sorted(found, key=lambda each: each.dispatch_id)


def _is_abandoned(path: Path) -> bool:
    """Return whether the file is abandoned, by the file system's time, since writers may have other
    clocks."""
    try:
        return time.time() - path.stat().st_mtime > _ABANDONED_AFTER
    except OSError:
        return True


def _remove_abandoned(root: Path) -> None:
    for path in root.glob(f"{_PREFIX}*.json"):
        if _is_abandoned(path):
            with suppress(OSError):
                path.unlink(missing_ok=True)
