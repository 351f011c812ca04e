"""The carrier of agent CLIs: one supervised process per ask, judged by its profile's table.

It first ends what a crash left behind. A second attempt at the same case and step continues the
first one's session where the CLI can. `ROOT/RUN/CASE/STEP/` keeps the agent's work folder, its
prompts, the session, and how each attempt ended.
"""

import os
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from interlock.carriers.background import TaskCarrier
from interlock.carriers.cli.outcome import (
    SessionMonitor,
    SessionOutcome,
    find_time_zone,
    judge_session,
)
from interlock.carriers.cli.ownership import TAGS, WorkspaceOwner
from interlock.carriers.cli.process import AgentProcess, ProcessSpec
from interlock.carriers.cli.profiles import (
    AgentSettings,
    Profile,
    allow_writing,
    build_command_line,
    build_environment,
    build_timeouts,
    guard_prompt,
)
from interlock.carriers.cli.work_folder import Session, WorkFolder, make_work_folder
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.exec import build_variables
from interlock.carriers.status import AgentStatusFile
from interlock.engine.case import Usage
from interlock.system.clock import Clock
from interlock.system.process_table import ProcessSnapshot


class AgentHome(msgspec.Struct, frozen=True):
    """The folders in which a carrier's agents work, and the owner of their processes."""

    root: Path
    project: Path
    owner: WorkspaceOwner
    environ: Mapping[str, str]
    make_nonce: Callable[[], str]

    def make_tag(self, ask: Ask) -> str:
        return self.owner.make_tag(ask.run_id, ask.dispatch_id, self.make_nonce())


class ProcessAgent(TaskCarrier):
    """Start an agent CLI for each ask."""

    def __init__(
        self,
        profile: Profile,
        settings: AgentSettings,
        program: str,
        home: AgentHome,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._profile = profile
        self._settings = settings
        self._program = program
        self._home = home
        self._clock = clock
        self._timeouts = build_timeouts(profile, settings)
        self._snapshot = ProcessSnapshot(TAGS)
        self._status_file = AgentStatusFile(home.root / f"standing-{profile.name}.json", clock)

    async def prepare(self) -> None:
        await self._home.owner.cleanup_orphans(self._clock, self._timeouts.grace)

    def account_of(self, role: str) -> str:
        """Return the CLI and its login: all who ask it share its limits."""
        environment = build_environment(self._profile, self._settings, self._home.environ)
        logins = (environment.get(name, "") for name in self._profile.login.variables)
        login = next((each for each in logins if each), "")
        digest = blake2b(login.encode(errors="replace"), digest_size=6).hexdigest()
        return f"{self._profile.name}:{digest}" if login else self._profile.name

    async def close(self) -> None:
        await super().close()
        self._status_file.close()

    async def answer(self, ask: Ask) -> Reply:
        """Continue the session of an earlier attempt; begin anew if the CLI has lost it."""
        folder = make_work_folder(self._home.root, ask, self._profile.name)
        session = self._find_session(folder, self._choose_cwd(ask, folder))
        outcome, has_begun = await self._run_once(ask, folder, session)
        if session is not None and not has_begun and self.is_under_way(ask.dispatch_id):
            folder.forget_session()
            outcome, _ = await self._run_once(ask, folder, None)
        return outcome.build_reply(ask.dispatch_id)

    async def _run_once(
        self, ask: Ask, folder: WorkFolder, session: Session | None
    ) -> tuple[SessionOutcome, bool]:
        """Run one process to its verdict; return that, and whether its session began.

        The process is stopped, never cancelled: the session of a stopped agent is noted, so that
        the next attempt can continue it.
        """
        monitor = SessionMonitor(self._profile, self._clock.now(), find_time_zone)
        spec = self._build_spec(ask, folder, session)
        agent = AgentProcess(spec, self._timeouts, monitor, self._clock, snapshot=self._snapshot)
        self._status_file.add(ask, self._profile.name, agent)
        try:
            with self.stoppable(ask, agent):
                ended = await agent.run()
        finally:
            self._status_file.drop(ask.dispatch_id)
        facts = monitor.build_facts(ended)
        usage = self._keep_session(monitor, folder, session, spec.cwd)
        report = monitor.build_report(ended, usage)
        outcome = judge_session(self._profile.outcome, facts, report, ask.language)
        folder.write_record(
            ask.attempt,
            {
                "dispatch_id": ask.dispatch_id,
                "session_id": monitor.session_id,
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
        return outcome, facts.began

    def _build_spec(self, ask: Ask, folder: WorkFolder, session: Session | None) -> ProcessSpec:
        own = self._has_own_folder(ask)
        prompt_path = folder.prompt_path(ask.attempt)
        settings = self._settings
        if ask.execution.writes:
            settings = allow_writing(self._profile, settings)
        directories = settings.directories
        if directories is None:
            directories = (str(self._home.project),) if own and not ask.execution.folder else ()
        directories = (*directories, *ask.execution.folders)
        command = build_command_line(
            self._profile,
            msgspec.structs.replace(settings, directories=directories),
            self._program,
            guard_prompt(self._profile, ask.prompt, ask.language),
            prompt_path=prompt_path,
            own_folder=own,
            session_id=session.session_id if session else "",
        )
        if command.prompt_file is not None:
            folder.write_prompt(prompt_path, command.prompt)
        environment = build_environment(self._profile, settings, self._home.environ)
        return ProcessSpec(
            command.argv,
            command.stdin,
            self._choose_cwd(ask, folder),
            {**environment, **build_variables(ask)},
            self._home.make_tag(ask),
        )

    def _choose_cwd(self, ask: Ask, folder: WorkFolder) -> Path:
        """Return the folder in which the agent works: its task's, its own, or the project's."""
        if ask.execution.folder:
            return Path(ask.execution.folder)
        return folder.work if self._has_own_folder(ask) else self._home.project

    def _has_own_folder(self, ask: Ask) -> bool:
        chosen = self._settings.folder or self._profile.folder
        return bool(ask.execution.folder) or chosen == "own"

    def _find_session(self, folder: WorkFolder, cwd: Path) -> Session | None:
        if not self._settings.resume or not self._profile.can_resume:
            return None
        found = folder.read_session()
        anywhere = self._profile.resume_in == "any-folder"
        return found if found and (anywhere or found.folder == str(cwd)) else None

    def _keep_session(
        self, monitor: SessionMonitor, folder: WorkFolder, before: Session | None, cwd: Path
    ) -> Usage:
        """Note the session, and return the cost of this process alone."""
        spent = monitor.usage
        earlier = before.tokens if before and spent.of_session else 0
        total = max(spent.tokens, earlier) if spent.of_session else 0
        name = monitor.session_id or (before.session_id if before else "")
        if name and self._profile.can_resume:
            folder.keep_session(Session(name, str(cwd), total))
        return Usage(max(0, spent.tokens - earlier), spent.money)


def make_nonce() -> str:
    """Return a nonce that no two dispatches share."""
    return os.urandom(8).hex()
