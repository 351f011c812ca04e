"""The carrier of epic sessions on a worker's host: one for each ask, in a clone of the project.

The session finds the checkpoint that the coordinator sent. What it said, and the checkpoint as it
left it, go back; the coordinator judges both. Every session is a new one: what another heard for
the same dispatch went away with its files.
"""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.agents.background import TaskCarrier
from interlock.agents.carrier import Ask, Reply
from interlock.agents.cli.carrier import AgentHome
from interlock.epic.checkpoints.legacy import UnreadableCheckpoint, read_checkpoint
from interlock.epic.checkpoints.place import find_state_folder
from interlock.epic.checkpoints.record import Checkpoint, encode_checkpoint
from interlock.epic.checkpoints.store import Checkpoints
from interlock.epic.progress import build_mark
from interlock.epic.recovery.git_state import read_git_work
from interlock.epic.sessions.carrier import SessionRunner
from interlock.epic.sessions.listen import AgentDialect
from interlock.epic.sessions.record import SessionAttempt, SessionRecord
from interlock.epic.sessions.transfer import (
    LARGEST,
    SessionParcel,
    SessionReport,
    choose_signals,
)
from interlock.system.clock import Clock
from interlock.system.errors import SourceError

T = TypeVar("T")


class WorkerSessionCarrier(TaskCarrier):
    """A carrier that runs sessions for a coordinator on another host."""

    def __init__(
        self, build_dialect: Callable[[bool], AgentDialect], home: AgentHome, clock: Clock
    ) -> None:
        """`build_dialect` is told whether prompts are sent as they are. SourceError if the agent
        cannot run sessions."""
        super().__init__()
        self._runners = {
            bare: SessionRunner(build_dialect(bare), home, clock) for bare in (False, True)
        }
        self._home = home

    async def prepare(self) -> None:
        await self._runners[False].prepare()

    async def close(self) -> None:
        await super().close()
        for runner in self._runners.values():
            runner.close()

    async def answer(self, ask: Ask) -> Reply:
        parcel = decode_parcel(ask)
        runner, root = self._runners[parcel.bare], Path(ask.execution.folder)
        checkpoints, handed = await asyncio.to_thread(unpack, parcel, root)
        began = await asyncio.to_thread(read_git_work, root)
        name = f"{ask.attempt}-{self._home.make_nonce()}.jsonl"
        record = SessionRecord(runner.make_folder(ask).folder / "sessions" / name, ask.case_id)
        try:
            attempt, usage, limit = await runner.run(
                ask, root, record, parcel.limits, build_mark(handed)
            )
        finally:
            record.close()
        if limit is not None:
            attempt = msgspec.structs.replace(attempt, ended_by="CRASH", message=limit.reason)
        report = await asyncio.to_thread(describe_end, parcel, attempt, checkpoints, handed, root)
        if limit is not None and report.work == began and report.checkpoint == parcel.checkpoint:
            return limit
        # What it did before it met a limit is kept; the next session waits for the limit's end.
        return Reply(ask.dispatch_id, msgspec.json.encode(report), usage=usage)


def decode_parcel(ask: Ask) -> SessionParcel:
    try:
        return msgspec.json.decode(ask.execution.parcel, type=SessionParcel)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SourceError(
            f"what the coordinator sent for the session cannot be read ({error}): use the same "
            "version of Interlock on both hosts"
        ) from None


def unpack(parcel: SessionParcel, root: Path) -> tuple[Checkpoints, Checkpoint]:
    """Put the checkpoint where the session looks for it."""
    read = read_checkpoint(parcel.checkpoint)
    if isinstance(read, UnreadableCheckpoint):
        raise SourceError(f"the checkpoint that the coordinator sent is unusable: {read.sentence}")
    checkpoints = Checkpoints(find_state_folder(root))
    checkpoints.restore(parcel.checkpoint, read.checkpoint)
    return checkpoints, read.checkpoint


def describe_end(
    parcel: SessionParcel,
    attempt: SessionAttempt,
    checkpoints: Checkpoints,
    handed: Checkpoint,
    root: Path,
) -> SessionReport:
    """What the coordinator is told of a session that has ended."""
    found = checkpoints.read(handed.epic.id)
    if isinstance(found, UnreadableCheckpoint):
        raw, problem = b"", f"the session left no usable checkpoint: {found.sentence}"
    elif found.fell_back:
        raw, problem = b"", f"the session left no usable checkpoint: {'; '.join(found.notices)}"
    else:
        raw, problem = encode_checkpoint(found.checkpoint), ""
    if len(raw) > LARGEST:
        problem = (
            f"the checkpoint has {len(raw):,} bytes; {LARGEST:,} can travel between hosts: shorten "
            "its notes"
        )
        raw = b""
    told = msgspec.structs.replace(
        attempt,
        signals=choose_signals(attempt.signals),
        record=f"{socket.gethostname()}:{attempt.record}",
    )
    return SessionReport(
        base=parcel.base,
        attempt=told,
        checkpoint=raw,
        problem=problem,
        work=read_git_work(root),
    )
