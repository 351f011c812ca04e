"""The carrier of agent CLIs: one supervised process for each ask, judged by its profile's table.

It first ends what a crash left behind, then starts, listens, judges and replies. A second attempt
of the same case and step goes on with the first one's session where the CLI can. What is kept for
that lies in `ROOT/RUN/CASE/STEP/`: the agent's own work folder, its prompts, the session, and how
each attempt ended. Nothing here knows any particular CLI.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from hashlib import blake2b
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from interlock.agents.carrier import Ask, Clock, Deliver, Reply, TaskSet
from interlock.agents.cli.orphans import WorkspaceOwner
from interlock.agents.cli.outcome import SessionMonitor, SessionOutcome, judge_session
from interlock.agents.cli.process import AgentProcess, ProcessEnd, ProcessSpec
from interlock.agents.cli.profiles import (
    AgentSettings,
    Profile,
    allow_writing,
    build_command_line,
    build_environment,
    build_timeouts,
)
from interlock.agents.cli.tag import TAGS
from interlock.agents.command import build_variables
from interlock.agents.files.case_folder import make_run_folder
from interlock.agents.status import AgentStatusFile
from interlock.engine.case import Usage
from interlock.system.errors import SourceError
from interlock.system.files import read_file, write_file
from interlock.system.process_table import ProcessSnapshot

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
_MAX_NOTE = 100_000


class Session(msgspec.Struct, frozen=True):
    """A session that can be gone on with, and what it had cost when it was left."""

    session_id: str
    folder: str
    tokens: int = 0


class WorkFolder(msgspec.Struct, frozen=True):
    """The folders of one case's step for one agent."""

    folder: Path
    work: Path
    agent: str

    def prompt_path(self, attempt: int) -> Path:
        return self.folder / f"prompt-{attempt}.md"

    def write_prompt(self, paper: Path, prompt: str) -> None:
        try:
            write_file(paper, prompt.encode(errors="replace"))
        except OSError as error:
            raise SourceError(f"the prompt {paper} cannot be written: {error.strerror}") from None

    def read_session(self) -> Session | None:
        """The session that was left here, if its note can be read."""
        raw = read_file(self._session_path(), _MAX_NOTE)
        try:
            found = msgspec.json.decode(raw, type=Session) if isinstance(raw, bytes) else None
        except (msgspec.DecodeError, UnicodeError):
            return None
        return found if found and _is_safe_name(found.session_id) else None

    def keep_session(self, session: Session) -> None:
        """Note it; one that cannot be noted is only not gone on with."""
        if _is_safe_name(session.session_id):
            self._write_json(self._session_path(), session)

    def forget_session(self) -> None:
        self._session_path().unlink(missing_ok=True)

    def write_record(self, attempt: int, what: object) -> None:
        """How an attempt ended, for whoever looks later."""
        self._write_json(self.folder / f"{self.agent}-{attempt}.json", what)

    def _session_path(self) -> Path:
        return self.folder / f"{self.agent}.session.json"

    def _write_json(self, path: Path, what: object) -> None:
        try:
            write_file(path, msgspec.json.encode(what), sync=False)
        except OSError:
            return


def make_work_folder(root: Path, ask: Ask, agent: str) -> WorkFolder:
    """The place of an ask, made if need be; SourceError if it cannot be, or leads elsewhere."""
    if not _SAFE_NAME.fullmatch(ask.step):
        raise SourceError(f"the step {ask.step!r} cannot name a folder")
    case = _make_folder(make_run_folder(root, ask.run_id), f"{ask.case_no}")
    folder = _make_folder(case, ask.step)
    return WorkFolder(folder, _make_folder(folder, "work"), agent)


def _make_folder(above: Path, name: str) -> Path:
    folder = above / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the folder {folder} cannot be used: {error}") from None
    if real != above.resolve() / name:
        raise SourceError(f"{folder} is a symbolic link; symbolic links are refused")
    return real


def _is_safe_name(text: str) -> bool:
    """A session's name goes onto a command line: it must not look like a flag."""
    return _SAFE_NAME.fullmatch(text) is not None


class AgentHome(msgspec.Struct, frozen=True):
    """Where a carrier's agents work: the folder of their papers, the project, whose they are."""

    root: Path
    project: Path
    owner: WorkspaceOwner
    environ: Mapping[str, str]
    make_nonce: Callable[[], str]


class ProcessAgent:
    """A carrier that starts an agent CLI for each ask."""

    def __init__(
        self,
        profile: Profile,
        settings: AgentSettings,
        program: str,
        station: AgentHome,
        clock: Clock,
    ) -> None:
        self._profile = profile
        self._settings = settings
        self._program = program
        self._home = station
        self._clock = clock
        self._timeouts = build_timeouts(profile, settings)
        self._environment = build_environment(profile, settings, station.environ)
        self._snapshot = ProcessSnapshot(TAGS)
        self._running: dict[int, _RunningAgent] = {}
        self._tasks = TaskSet(self._run_dispatch, self._stop)
        self._status_file = AgentStatusFile(station.root / f"standing-{profile.name}.json", clock)

    def start(self, deliver: Deliver) -> None:
        self._tasks.start(
            deliver, self._home.owner.cleanup_orphans(self._clock, self._timeouts.grace)
        )

    def send(self, asks: Sequence[Ask]) -> None:
        self._tasks.begin(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._tasks.drop(dispatch_id)

    def account_of(self, role: str) -> str:
        """Asks to the same CLI with the same login share its limits, whoever sends them."""
        logins = (self._environment.get(name, "") for name in self._profile.login.variables)
        login = next((each for each in logins if each), "")
        mark = blake2b(login.encode(errors="replace"), digest_size=6).hexdigest()
        return f"{self._profile.name}:{mark}" if login else self._profile.name

    async def close(self) -> None:
        await self._tasks.close()
        self._status_file.close()

    async def _run_dispatch(self, ask: Ask) -> Reply:
        talk = self._running[ask.dispatch_id] = _RunningAgent()
        try:
            return (await self._run_or_resume(ask, talk)).build_reply(ask.dispatch_id)
        finally:
            if self._running.get(ask.dispatch_id) is talk:
                del self._running[ask.dispatch_id]

    def _stop(self, dispatch_id: int) -> bool:
        """Not by cancelling the task: the session of a stopped agent is noted and its end
        recorded, so that the next attempt can go on with it."""
        talk = self._running.pop(dispatch_id, None)
        if talk is not None:
            talk.stop()
        return talk is not None

    async def _run_or_resume(self, ask: Ask, talk: "_RunningAgent") -> SessionOutcome:
        """Go on with the session of an earlier attempt; if the CLI has lost it, begin anew."""
        place = make_work_folder(self._home.root, ask, self._profile.name)
        session = self._find_session(place, self._choose_folder(ask, place))
        outcome, began = await self._run_once(ask, talk, place, session)
        if session is not None and not began and not talk.is_stopped:
            place.forget_session()
            outcome, _ = await self._run_once(ask, talk, place, None)
        return outcome

    async def _run_once(
        self, ask: Ask, talk: "_RunningAgent", place: WorkFolder, session: Session | None
    ) -> tuple[SessionOutcome, bool]:
        """One process, from its start to the verdict, and whether its session began."""
        hearing = SessionMonitor(self._profile, self._clock.now(), find_time_zone)
        start = self._build_spec(ask, place, session)
        agent = AgentProcess(start, self._timeouts, hearing, self._clock, lookout=self._snapshot)
        talk.attach(agent)
        self._status_file.add(ask, self._profile.name, agent)
        try:
            ended = await agent.run()
        finally:
            self._status_file.drop(ask.dispatch_id)
        facts = hearing.build_facts(ended)
        usage = self._keep_session(hearing, place, session, start.cwd)
        told = hearing.build_report(ended, usage)
        outcome = judge_session(self._profile.outcome, facts, told, ask.language)
        self._write_record(place, ask, hearing, outcome, ended)
        return outcome, facts.began

    def _build_spec(self, ask: Ask, place: WorkFolder, session: Session | None) -> ProcessSpec:
        own = self._has_own_folder(ask)
        paper = place.prompt_path(ask.attempt)
        settings = self._settings
        if ask.execution.writes:
            settings = allow_writing(self._profile, settings)
        command = build_command_line(
            self._profile,
            settings,
            self._program,
            ask.prompt,
            paper=paper,
            own_folder=own,
            directories=self._list_directories(own and not ask.execution.folder),
            session_id=session.session_id if session else "",
            language=ask.language,
        )
        if command.prompt_file is not None:
            place.write_prompt(paper, command.prompt)
        tag = self._home.owner.make_tag(ask.run_id, ask.dispatch_id, self._home.make_nonce())
        around = build_environment(self._profile, settings, self._home.environ)
        variables = {**around, **build_variables(ask)}
        return ProcessSpec(
            command.argv, command.stdin, self._choose_folder(ask, place), variables, tag
        )

    def _choose_folder(self, ask: Ask, place: WorkFolder) -> Path:
        """Where the agent works: in the folder of its task, its own, or the project's."""
        if ask.execution.folder:
            return Path(ask.execution.folder)
        return place.work if self._has_own_folder(ask) else self._home.project

    def _find_session(self, place: WorkFolder, here: Path) -> Session | None:
        found = place.read_session() if self._settings.resume and self._profile.can_resume else None
        if found is None or self._profile.resume_in == "any-folder":
            return found
        return found if found.folder == str(here) else None

    def _keep_session(
        self, hearing: SessionMonitor, place: WorkFolder, before: Session | None, cwd: Path
    ) -> Usage:
        """Note the session, and tell what this process alone cost."""
        spent = hearing.usage
        earlier = before.tokens if before and spent.of_session else 0
        total = max(spent.tokens, earlier) if spent.of_session else 0
        name = hearing.session_id or (before.session_id if before else "")
        if name and self._profile.can_resume:
            place.keep_session(Session(name, str(cwd), total))
        return Usage(max(0, spent.tokens - earlier), spent.money)

    def _write_record(
        self,
        place: WorkFolder,
        ask: Ask,
        hearing: SessionMonitor,
        outcome: SessionOutcome,
        ended: ProcessEnd,
    ) -> None:
        place.write_record(
            ask.attempt,
            {
                "dispatch_id": ask.dispatch_id,
                "session_id": hearing.session_id,
                "failure": outcome.failure,
                "reason": outcome.reason,
                "notes": outcome.notes,
                "usage": outcome.usage,
                "exit_code": ended.exit_code,
                "ended_by": ended.by,
                "seconds": round(ended.ended_at - ended.started_at, 3),
                "left_running": len(ended.left),
            },
        )

    def _has_own_folder(self, ask: Ask) -> bool:
        return (
            bool(ask.execution.folder) or (self._settings.folder or self._profile.folder) == "own"
        )

    def _list_directories(self, own: bool) -> tuple[str, ...]:
        if self._settings.directories is not None:
            return self._settings.directories
        return (str(self._home.project),) if own else ()


class _RunningAgent:
    """One ask's process, which may not have started yet, or be the second one."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._agent: AgentProcess | None = None

    def attach(self, agent: AgentProcess) -> None:
        self._agent = agent
        if self.is_stopped:
            agent.stop()

    def stop(self) -> None:
        self.is_stopped = True
        if self._agent is not None:
            self._agent.stop()


def find_time_zone(name: str) -> tzinfo | None:
    """A time zone by its name; the machine's own for none."""
    if not name:
        return datetime.now().astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def make_nonce() -> str:
    """What no two dispatches share."""
    return os.urandom(8).hex()
