"""Run one agent process for each dispatch of an epic, and read its signals as it runs.

After a signal that ends the session, the process has a grace period to exit by itself; then its
process tree is killed. The answer is one artifact, built here and never by the agent. A session
that gave its last signal before its coordinator was killed is not run again.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from interlock.carriers.background import TaskCarrier, wait_until
from interlock.carriers.cli.carrier import AgentHome
from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.cli.process import AgentProcess, ProcessEnd, ProcessSpec, describe_end
from interlock.carriers.cli.timeouts import Timeouts
from interlock.carriers.cli.work_folder import WorkFolder, make_work_folder
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.exec import build_variables
from interlock.carriers.status import AgentStatusFile
from interlock.engine.case import Usage
from interlock.engine.circuit import RATE_LIMIT
from interlock.signals.lines import LineResult, read_payload
from interlock.system.clock import Clock
from interlock.system.process_table import ProcessSnapshot
from interlock_epic.progress import CheckpointUpdater
from interlock_epic.sessions.channel import Channel
from interlock_epic.sessions.listen import AgentDialect, SessionListener
from interlock_epic.sessions.record import SessionAttempt, SessionRecord, Via
from interlock_epic.status import ENDING

ORCHESTRATED: Final = "SAGE_ORCHESTRATOR"
_LONGEST_PAUSE: Final = 300.0
_OVERRUN: Final = {
    "wall": "SESSION_TIMEOUT",
    "silence": "IDLE_TIMEOUT",
    "first_byte": "IDLE_TIMEOUT",
    "tool": "IDLE_TIMEOUT",
}
_TAIL: Final = 500


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of sessions, in seconds."""

    session: float = 4 * 3600.0
    """The length of one session."""
    idle: float = 1800.0
    """The time without a byte of output."""
    grace: float = 20.0
    """The time to exit by itself after the last signal."""
    backoff: float = 2.0
    """The pause after a crash; it doubles with each crash in a row."""


class SessionCarrier(TaskCarrier):
    """Runs one session for each dispatch."""

    def __init__(
        self,
        dialect: AgentDialect,
        home: AgentHome,
        limits: SessionLimits,
        clock: Clock,
        updater: CheckpointUpdater,
    ) -> None:
        super().__init__()
        self._dialect = dialect
        self._home = home
        self._limits = limits
        self._clock = clock
        self._updater = updater
        self._processes = ProcessSnapshot(TAGS)
        self._status_file = AgentStatusFile(home.root / f"standing-{dialect.name}.json", clock)

    async def prepare(self) -> None:
        """End the processes that an earlier Interlock left behind."""
        await self._home.owner.cleanup_orphans(self._clock, self._dialect.timeouts.grace)

    async def close(self) -> None:
        await super().close()
        self._status_file.close()

    async def answer(self, ask: Ask) -> Reply:
        folder = make_work_folder(self._home.root, ask, self._dialect.name)
        path = folder.folder / "sessions" / f"{ask.attempt}.jsonl"
        record = SessionRecord(path, ask.case_id)
        usage = Usage()
        try:
            if record.is_ending:
                attempt = build_attempt(record)
            else:
                await self._back_off(ask)
                before = await asyncio.to_thread(self._updater.read_mark)
                attempt, usage, limit = await self._run_session(ask, folder, record, before)
                if limit is not None:
                    return limit
            artifact = await asyncio.to_thread(self._updater.apply, ask, attempt)
        finally:
            record.close()
        return Reply(ask.dispatch_id, msgspec.json.encode(artifact), usage=usage)

    async def _back_off(self, ask: Ask) -> None:
        """Pause after crashes in a row, so that a temporary failure can pass."""
        crashes = ask.case.context.get("crashes", 0) if ask.case else 0
        pause = backoff_seconds(crashes if isinstance(crashes, int) else 0, self._limits.backoff)
        if pause:
            await wait_until(self._clock, self._clock.now() + pause)

    async def _run_session(
        self, ask: Ask, folder: WorkFolder, record: SessionRecord, before: str
    ) -> tuple[SessionAttempt, Usage, Reply | None]:
        """Run one process to its end; return a reply if it only met a rate limit.

        `before` is the mark of the checkpoint that the session finds.
        """
        record.begin(self._clock.now(), record.starts[0].before if record.starts else before)
        intake = _SignalIntake(self._dialect, record, self._clock, self._limits.grace)
        channel = Channel(
            self._socket_folder(ask), self._home.make_nonce(), intake.add_channel_signal
        )
        timeouts = _build_timeouts(self._dialect.timeouts, self._limits)
        await channel.start()
        try:
            agent = AgentProcess(
                self._build_spec(ask, folder, channel),
                timeouts,
                intake.listener,
                self._clock,
                snapshot=self._processes,
            )
            intake.agent = agent
            self._status_file.add(ask, self._dialect.name, agent)
            ended = await agent.run()
        finally:
            intake.close()
            self._status_file.drop(ask.dispatch_id)
            await channel.close()
            with suppress(OSError):  # another process may have cleaned up first
                channel.path.parent.rmdir()
        intake.add(intake.listener.close(ended), "stream")
        outcome = intake.listener.outcome(ended)
        usage = outcome.usage if outcome else Usage()
        attempt = build_attempt(record, *_describe_silent_end(ended, intake.listener, timeouts))
        attempt = msgspec.structs.replace(
            attempt, exit=ended.exit_code, seconds=round(ended.ended_at - ended.started_at, 3)
        )
        if outcome and outcome.failure == RATE_LIMIT and attempt.signal is None:
            return attempt, usage, outcome.build_reply(ask.dispatch_id)
        return attempt, usage, None

    def _build_spec(self, ask: Ask, folder: WorkFolder, channel: Channel) -> ProcessSpec:
        root = self._home.project
        prompt_file = folder.prompt_path(ask.attempt)
        own_folder = not (root / ".git").exists()
        command = self._dialect.build_command(ask.prompt, prompt_file, own_folder)
        if command.file_prompt:
            folder.write_prompt(prompt_file, command.file_prompt)
        tag = self._home.make_tag(ask)
        environment = {
            **self._dialect.build_environment(self._home.environ),
            **build_variables(ask),
            **channel.environment(),
            ORCHESTRATED: "1",
        }
        return ProcessSpec(command.argv, command.stdin, root, environment, tag)

    def _socket_folder(self, ask: Ask) -> Path:
        """Return a folder with a short path, as sockets need it."""
        name = f"{self._home.owner.workspace[:8]}-{ask.dispatch_id}-{os.getpid()}"
        return Path(tempfile.gettempdir()) / f"interlock-{os.getuid()}-{name}"


def build_attempt(
    record: SessionRecord,
    ended_by: str = "CRASH",
    message: str = "the session's process is gone",
) -> SessionAttempt:
    """Return how a session ended: by its deciding signal, or else as given."""
    signal = record.deciding_signal
    if signal is not None:
        ended_by, message = signal.type.replace(":", "_"), signal.payload
    else:
        refused = [each for each in record.signals if each.refused and each.type in ENDING]
        if refused:
            line = f"{refused[-1].type}:{refused[-1].payload}"
            message = f"{line} does not count: {refused[-1].sentence}; {message}"
    return SessionAttempt(
        ended_by=ended_by,
        signal=signal,
        signals=tuple(record.signals),
        before=record.starts[0].before if record.starts else "",
        message=message,
        total=record.total,
        refused=record.refused,
        repeated=record.repeated,
        record=str(record.path),
    )


def _build_timeouts(defaults: Timeouts, limits: SessionLimits) -> Timeouts:
    return msgspec.structs.replace(
        defaults,
        first_byte=limits.idle,
        silence=limits.idle,
        tool=max(limits.idle, defaults.tool),
        wall=limits.session,
        after_result=max(limits.grace, defaults.after_result),
    )


def backoff_seconds(crashes: int, first: float) -> float:
    """Return the pause after a number of crashes in a row."""
    return min(first * 2 ** min(crashes - 1, 20), _LONGEST_PAUSE) if crashes > 0 else 0.0


def _describe_silent_end(
    ended: ProcessEnd, listener: SessionListener, timeouts: Timeouts
) -> tuple[str, str]:
    """Return the kind of end, and a sentence, for a session without a deciding signal."""
    if ended.by in _OVERRUN:
        return _OVERRUN[ended.by], describe_end(ended, timeouts)
    outcome = listener.outcome(ended)
    message = outcome.reason if outcome and outcome.failure else ""
    if not message:
        stderr = ended.stderr[-_TAIL:].decode("utf-8", "replace").strip()
        message = ": ".join(part for part in (describe_end(ended, timeouts), stderr) if part)
    if ended.exit_code != 0 and ended.by == "itself":
        return "CRASH", message
    return "NOTHING", f"the session ended without a signal that ends it: {message}"


class _SignalIntake:
    """Collects the signals of one process, and starts the grace period after the last."""

    def __init__(
        self, dialect: AgentDialect, record: SessionRecord, clock: Clock, grace: float
    ) -> None:
        self.agent: AgentProcess | None = None
        self._record = record
        self._clock = clock
        self._grace = grace
        self._cancel: Callable[[], None] | None = None
        self._closed = False
        self.listener = dialect.open_listener(clock.now(), lambda found: self.add(found, "stream"))

    def add(self, found: list[LineResult], via: Via) -> None:
        at = self._clock.now()
        for result in found:
            signal = self._record.add(result, via, at)
            if signal.counts and signal.type in ENDING:
                self._start_grace(at)

    def add_channel_signal(self, kind: str, payload: str) -> None:
        """Add a signal from the channel, which has validated it."""
        found = read_payload(kind, payload, 0)
        if not isinstance(found, str) and not self._closed:
            self.add([found], "channel")

    def close(self) -> None:
        self._closed = True
        if self._cancel is not None:
            self._cancel()

    def _start_grace(self, at: float) -> None:
        if self._cancel is None and self.agent is not None and not self._closed:
            self._cancel = self._clock.call_at(at + self._grace, self.agent.stop)
