"""The role `human`: a question stays open until somebody writes an answer into its file.

Answers are files in a folder beside the database, one per question, written whole by `interlock
answer`. So they can be given while the run works, while it waits, and while nothing runs at all.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.core.circuit import UNREADABLE
from interlock.dispatch.carrier import MAX_ANSWER, Ask, Clock, Deliver, Reply

_POLL = 0.25
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
_SOMEBODY = "somebody"


class HumanAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to one question, and who gave it."""

    question_id: int
    by: str
    data: dict[str, Any]


def leave_answer(folder: Path, answer: HumanAnswer) -> Path:
    """Put an answer where the run will find it; it appears whole or not at all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{answer.question_id}.json"
    fresh = folder / f".{answer.question_id}.{os.getpid()}.new"
    fresh.touch(mode=0o600)
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(answer))
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    return path


class HumanDesk:
    """A carrier that looks for answers to the open questions."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._open: set[int] = set()
        self._cancel: Callable[[], None] | None = None
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        self._open.update(ask.dispatch_id for ask in asks)
        self._look()

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._open.discard(dispatch_id)
        (self._folder / f"{dispatch_id}.json").unlink(missing_ok=True)

    async def close(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _look(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        for path in sorted(self._folder.glob("[1-9]*.json")) if self._folder.is_dir() else ():
            question_id = int(path.stem) if _NUMBER.fullmatch(path.stem) else 0
            if question_id in self._open and path.is_file():
                self._open.discard(question_id)
                self._deliver(_read(path, question_id))
        if self._open:
            self._cancel = self._clock.call_at(self._clock.now() + _POLL, self._look)


def _read(path: Path, question_id: int) -> Reply:
    try:
        with path.open("rb") as file:
            answer = msgspec.json.decode(file.read(MAX_ANSWER), type=HumanAnswer)
        content = msgspec.json.encode(answer.data)
    except (OSError, ValueError, RecursionError) as error:
        return _unreadable(question_id, f"{path.name}: {error}")
    if answer.question_id != question_id:
        return _unreadable(question_id, f"{path.name} answers question {answer.question_id}")
    return Reply(question_id, content, answered_by=answer.by or _SOMEBODY)


def _unreadable(question_id: int, reason: str) -> Reply:
    return Reply(question_id, failure=UNREADABLE, reason=reason, answered_by=_SOMEBODY)
