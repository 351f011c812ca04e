"""The carrier of epic sessions: one agent process for each ask, heard while it runs.

A signal that ends a session gives it a grace period to exit by itself; then its process tree is
ended. The outcome becomes one artifact, built here and never by the agent. A session whose
coordinator was killed is not run again if it had already given its last signal.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from interlock.agents.carrier import Ask, Clock, Deliver, Reply, TaskSet
from interlock.agents.cli.carrier import AgentHome, WorkFolder, make_work_folder
from interlock.agents.cli.process import AgentProcess, ProcessEnd, ProcessSpec, describe_end
from interlock.agents.cli.tag import TAGS
from interlock.agents.cli.timeouts import Timeouts
from interlock.agents.command import build_variables
from interlock.agents.status import AgentStatusFile
from interlock.engine.case import Usage
from interlock.engine.circuit import RATE_LIMIT
from interlock.epic.sessions.channel import Channel
from interlock.epic.sessions.listen import AgentDialect, SessionListener
from interlock.epic.sessions.record import HeardSignal, SessionRecord, Via
from interlock.epic.status import ENDING, ending_word
from interlock.signals.lines import LineResult, read_payload
from interlock.system.process_table import ProcessSnapshot

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
    """Seconds."""

    session: float = 4 * 3600.0
    """Of one session, from its start."""
    idle: float = 1800.0
    """Without a byte of output."""
    grace: float = 20.0
    """For leaving by itself after its last word."""
    backoff: float = 2.0
    """The pause before a session that follows a crash; it doubles with each in a row."""


class SessionAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How a session ended, for whoever keeps the checkpoint."""

    ended_by: str
    word: HeardSignal | None
    heard: tuple[HeardSignal, ...]
    before: str
    message: str = ""
    exit: int | None = None
    seconds: float = 0.0
    total: int = 0
    refused: int = 0
    repeated: int = 0
    record: str = ""


class SessionHooks(Protocol):
    """Who keeps the place of the work, before and after a session. Both may take a while."""

    def before(self, ask: Ask) -> str:
        """One word for how the checkpoint stands now."""

    def after(self, ask: Ask, attempt: SessionAttempt) -> Mapping[str, Any]:
        """The artifact; what the session said about its place is kept by then."""


class SessionCarrier:
    """A carrier that runs one session for each ask."""

    def __init__(
        self,
        dialect: AgentDialect,
        home: AgentHome,
        limits: SessionLimits,
        clock: Clock,
        hooks: SessionHooks,
    ) -> None:
        self._dialect = dialect
        self._home = home
        self._limits = limits
        self._clock = clock
        self._hooks = hooks
        own = dialect.timeouts
        self._clocks = msgspec.structs.replace(
            own,
            first_byte=limits.idle,
            silence=limits.idle,
            tool=max(limits.idle, own.tool),
            wall=limits.session,
            after_result=max(limits.grace, own.after_result),
        )
        self._processes = ProcessSnapshot(TAGS)
        self._tasks = TaskSet(self._run_session)
        self._status_file = AgentStatusFile(home.root / f"standing-{dialect.name}.json", clock)

    def start(self, deliver: Deliver) -> None:
        cleaned = self._home.owner.cleanup_orphans(self._clock, self._clocks.grace)
        self._tasks.start(deliver, cleaned)

    def send(self, asks: Sequence[Ask]) -> None:
        self._tasks.begin(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._tasks.drop(dispatch_id)

    async def close(self) -> None:
        await self._tasks.close()
        self._status_file.close()

    async def _run_session(self, ask: Ask) -> Reply:
        place = make_work_folder(self._home.root, ask, self._dialect.name)
        path = place.folder / "sessions" / f"{ask.attempt}.jsonl"
        record = SessionRecord(path, ask.case_id)
        try:
            if record.is_ending:
                attempt, usage = self._build_attempt(record, None, None), Usage()
            else:
                await self._back_off(ask)
                attempt, usage, limit = await self._run_process(ask, place, record)
                if limit is not None:
                    return limit
            artifact = await asyncio.to_thread(self._hooks.after, ask, attempt)
        finally:
            record.close()
        return Reply(ask.dispatch_id, msgspec.json.encode(artifact), usage=usage)

    async def _back_off(self, ask: Ask) -> None:
        """After crashes in a row a pause that doubles: what failed at once may work later."""
        crashes = ask.case.context.get("crashes", 0) if ask.case else 0
        pause = backoff_seconds(crashes if isinstance(crashes, int) else 0, self._limits.backoff)
        if not pause:
            return
        over = asyncio.get_running_loop().create_future()
        cancel = self._clock.call_at(
            self._clock.now() + pause, lambda: None if over.done() else over.set_result(None)
        )
        try:
            await over
        finally:
            cancel()

    async def _run_process(
        self, ask: Ask, place: WorkFolder, record: SessionRecord
    ) -> tuple[SessionAttempt, Usage, Reply | None]:
        """One process, from its start to its end."""
        before = await asyncio.to_thread(self._hooks.before, ask)
        record.begin(self._clock.now(), record.starts[0].before if record.starts else before)
        talk = _SignalIntake(self._dialect, record, self._clock, self._limits.grace)
        channel = Channel(
            self._socket_folder(ask), self._home.make_nonce(), talk.take_channel_signal
        )
        await channel.start()
        try:
            start = self._build_spec(ask, place, channel)
            agent = AgentProcess(
                start, self._clocks, talk.listener, self._clock, lookout=self._processes
            )
            talk.agent = agent
            self._status_file.add(ask, self._dialect.name, agent)
            ended = await agent.run()
        finally:
            talk.close()
            self._status_file.drop(ask.dispatch_id)
            await channel.close()
            _remove_folder(channel.path.parent)
        talk.take(talk.listener.close(ended), "stream")
        outcome = talk.listener.outcome(ended)
        usage = outcome.usage if outcome else Usage()
        if outcome and outcome.failure == RATE_LIMIT and record.deciding_signal is None:
            return (
                self._build_attempt(record, ended, talk.listener),
                usage,
                outcome.build_reply(ask.dispatch_id),
            )
        return self._build_attempt(record, ended, talk.listener), usage, None

    def _build_spec(self, ask: Ask, place: WorkFolder, channel: Channel) -> ProcessSpec:
        project = self._home.project
        paper = place.prompt_path(ask.attempt)
        own = not (project / ".git").exists()
        command = self._dialect.build_command(ask.prompt, paper, own)
        if command.paper:
            place.write_prompt(paper, command.paper)
        tag = self._home.owner.make_tag(ask.run_id, ask.dispatch_id, self._home.make_nonce())
        environment = {
            **self._dialect.build_environment(self._home.environ),
            **build_variables(ask),
            **channel.environment(),
            ORCHESTRATED: "1",
        }
        return ProcessSpec(command.argv, command.stdin, project, environment, tag)

    def _socket_folder(self, ask: Ask) -> Path:
        """A socket's path must be short, so it does not lie with the other papers."""
        mark = f"{self._home.owner.workspace[:8]}-{ask.dispatch_id}"
        return Path(tempfile.gettempdir()) / f"interlock-{os.getuid()}-{mark}"

    def _build_attempt(
        self, record: SessionRecord, ended: ProcessEnd | None, ear: SessionListener | None
    ) -> SessionAttempt:
        word = record.deciding_signal
        by, message = _describe_ending(word, ended, ear, self._clocks)
        return SessionAttempt(
            ended_by=by,
            word=word,
            heard=tuple(record.heard),
            before=record.starts[0].before if record.starts else "",
            message=message,
            exit=ended.exit_code if ended else None,
            seconds=round(ended.ended_at - ended.started_at, 3) if ended else 0.0,
            total=record.total,
            refused=record.refused,
            repeated=record.repeated,
            record=str(record.path),
        )


def _remove_folder(folder: Path) -> None:
    """One who cleans up may have been faster; how the session ended does not hang on that."""
    with suppress(OSError):
        folder.rmdir()


def backoff_seconds(crashes: int, first: float) -> float:
    """Seconds to wait after so many crashes in a row."""
    return min(first * 2 ** min(crashes - 1, 20), _LONGEST_PAUSE) if crashes > 0 else 0.0


def _describe_ending(
    word: HeardSignal | None,
    ended: ProcessEnd | None,
    ear: SessionListener | None,
    clocks: Timeouts,
) -> tuple[str, str]:
    """The kind of ending and a sentence about it."""
    if word is not None:
        return ending_word(word.type), word.payload
    if ended is None or ear is None:
        return "CRASH", "the session was not there any more"
    if ended.by in _OVERRUN:
        return _OVERRUN[ended.by], describe_end(ended, clocks)
    outcome = ear.outcome(ended)
    words = ended.stderr[-_TAIL:].decode("utf-8", "replace").strip()
    told = outcome.reason if outcome and outcome.failure else ""
    message = told or ": ".join(part for part in (describe_end(ended, clocks), words) if part)
    if ended.exit_code != 0 and ended.by == "itself":
        return "CRASH", message
    return "NOTHING", f"the session said nothing that ends it: {message}"


class _SignalIntake:
    """What is heard of one process, from two sides, and the grace after its last word."""

    def __init__(
        self, dialect: AgentDialect, record: SessionRecord, clock: Clock, grace: float
    ) -> None:
        self.agent: AgentProcess | None = None
        self._record = record
        self._clock = clock
        self._grace = grace
        self._cancel: Callable[[], None] | None = None
        self._closed = False
        self.listener = dialect.open_listener(clock.now(), lambda found: self.take(found, "stream"))

    def take(self, found: list[LineResult], via: Via) -> None:
        at = self._clock.now()
        for each in found:
            heard = self._record.add(each, via, at)
            if heard.counts and heard.type in ENDING:
                self._start_grace(at)

    def take_channel_signal(self, kind: str, payload: str) -> None:
        """A signal over the channel, which has looked at it already."""
        found = read_payload(kind, payload, 0)
        if not isinstance(found, str) and not self._closed:
            self.take([found], "channel")

    def close(self) -> None:
        self._closed = True
        if self._cancel is not None:
            self._cancel()

    def _start_grace(self, at: float) -> None:
        if self._cancel is None and self.agent is not None and not self._closed:
            self._cancel = self._clock.call_at(at + self._grace, self.agent.stop)
