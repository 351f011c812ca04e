"""The desk for permissions: an agent at work asks, a human answers with `interlock answer`.

Knows that a question lives as long as the agent that asked it, that answers are files beside the
database, and that no answer in time is a no. Refuses to know protocols, agents and policies.
"""

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.core.errors import StoreError
from interlock.dispatch.carrier import Clock
from interlock.dispatch.safe_file import NotRead, read_regular, write_whole
from interlock.store.permissions import Leave, Wish

_POLL = 0.25
_MOST = 64 * 1024
_MOST_OPEN = 100
_ID = re.compile(r"([1-9][0-9]{0,17})\.([1-9][0-9]{0,8})", re.ASCII)
LATE = "nobody in time"
ENDED = "the end of its dispatch"
CROWDED = "the limit of open questions"


class LeaveAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a human said to one question."""

    permission_id: str
    by: str
    leave: Leave


class Book(Protocol):
    """Where questions and decisions are written down."""

    def ask(self, dispatch_id: int, wish: Wish, at: float, until: float) -> int: ...

    def decide(self, dispatch_id: int, number: int, leave: Leave, by: str, at: float) -> None: ...

    def abandon(self, at: float) -> None: ...


def permission_id(dispatch_id: int, number: int) -> str:
    """`7.1`: the first question of dispatch 7."""
    return f"{dispatch_id}.{number}"


def split_permission_id(text: str) -> tuple[int, int] | None:
    """The dispatch and the number, or None if it is no such id."""
    found = _ID.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def leave_answer(folder: Path, answer: LeaveAnswer) -> Path:
    """Put an answer where the desk will find it; it appears whole or not at all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{answer.permission_id}.json"
    write_whole(path, msgspec.json.encode(answer))
    return path


class _Question(msgspec.Struct):
    until: float
    answered: "asyncio.Future[tuple[Leave, str]]"


class PermissionDesk:
    """Questions of agents that wait, for all dispatches of this process."""

    def __init__(self, book: Book, folder: Path, clock: Clock, patience: float) -> None:
        self._book = book
        self._folder = folder
        self._clock = clock
        self._patience = patience
        self._open: dict[str, _Question] = {}
        self._cancel: Callable[[], None] | None = None
        self._fresh = True

    async def ask(self, dispatch_id: int, wish: Wish) -> Leave:
        """A human's word, or a no. Cancelled with its dispatch, it is closed."""
        now = self._clock.now()
        try:
            number = self._written(dispatch_id, wish, now)
        except StoreError:
            return "reject"
        name = permission_id(dispatch_id, number)
        leave, by = "reject", ENDED
        try:
            leave, by = await self._answer(name, now)
        finally:
            with suppress(StoreError):
                self._book.decide(dispatch_id, number, leave, by, self._clock.now())
        return leave

    def _written(self, dispatch_id: int, wish: Wish, now: float) -> int:
        if self._fresh:
            self._book.abandon(now)
            self._fresh = False
        return self._book.ask(dispatch_id, wish, now, now + self._patience)

    async def _answer(self, name: str, now: float) -> tuple[Leave, str]:
        if len(self._open) >= _MOST_OPEN:
            return "reject", CROWDED
        path = self._folder / f"{name}.json"
        path.unlink(missing_ok=True)  # the number is new: what lies there answers something else
        future: asyncio.Future[tuple[Leave, str]] = asyncio.get_running_loop().create_future()
        self._open[name] = _Question(now + self._patience, future)
        self._look_again()
        try:
            return await future
        finally:
            del self._open[name]
            path.unlink(missing_ok=True)
            if not self._open and self._cancel is not None:
                self._cancel()
                self._cancel = None

    def _look_again(self) -> None:
        if self._cancel is None:
            self._cancel = self._clock.call_at(self._clock.now() + _POLL, self._look)

    def _look(self) -> None:
        self._cancel = None
        now = self._clock.now()
        for name, question in self._open.items():
            answer = self._read(name)
            if question.answered.done():
                continue
            if answer is not None:
                question.answered.set_result((answer.leave, answer.by or "somebody"))
            elif now >= question.until:
                question.answered.set_result(("reject", LATE))
        if self._open:
            self._look_again()

    def _read(self, name: str) -> LeaveAnswer | None:
        """What lies there for this question; what is no answer to it is put out of the way."""
        path = self._folder / f"{name}.json"
        raw = read_regular(path, _MOST)
        if isinstance(raw, NotRead) and raw.kind == "gone":
            return None
        with suppress(ValueError, RecursionError):
            answer = msgspec.json.decode(b"" if isinstance(raw, NotRead) else raw, type=LeaveAnswer)
            if answer.permission_id == name:
                return answer
        with suppress(OSError):
            path.rename(self._folder / f".{name}.{os.getpid()}.refused")
        return None
