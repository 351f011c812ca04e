"""How the agents that are at work stand, in a small file that others may read.

A look every few seconds, while somebody works. It ends nobody, and a file that cannot be written is
only not read.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.agents.carrier import Ask, Clock
from interlock.agents.cli.health import AgentHealth
from interlock.agents.cli.tag import TAGS
from interlock.system.files import read_file, write_file
from interlock.system.process_table import Census, Process, census

EVERY = 5.0
_FIRST = 1.0
_LARGEST = 4_000_000


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent at work."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    agent: str
    word: str
    reasons: tuple[str, ...]
    pid: int
    at: float


class AtWork(Protocol):
    """An agent that can be asked how it stands."""

    @property
    def process(self) -> Process | None:
        """None before it was started."""

    def standing(self, people: Census | None = None) -> AgentHealth:
        """How it stands now."""


class AgentStatusFile:
    """Looks now and then, while somebody works."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._agents: dict[int, tuple[Ask, str, AtWork]] = {}
        self._cancel: Callable[[], None] | None = None

    def add(self, ask: Ask, name: str, agent: AtWork) -> None:
        self._agents[ask.dispatch_id] = (ask, name, agent)
        if self._cancel is None:
            self._cancel = self._clock.call_at(self._clock.now() + _FIRST, self._look)

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

    def _look(self) -> None:
        people = census(TAGS)
        now = self._clock.now()
        found = []
        for ask, name, agent in self._agents.values():
            process = agent.process
            if process is not None:
                seen = agent.standing(people)
                found.append(
                    AgentStanding(
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
        self._cancel = self._clock.call_at(now + EVERY, self._look)


def read_standings(root: Path) -> list[AgentStanding]:
    """What the carriers of a workspace last wrote, by dispatch."""
    found: list[AgentStanding] = []
    for path in sorted(root.glob("standing-*.json")):
        raw = read_file(path, _LARGEST)
        try:
            if isinstance(raw, bytes):
                found += msgspec.json.decode(raw, type=list[AgentStanding])
        except (msgspec.DecodeError, UnicodeError):
            continue
    return sorted(found, key=lambda each: each.dispatch_id)
