"""Epics as an application: the session carrier, the steps around sessions, and the gates."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.cli.carrier import AgentHome, make_nonce
from interlock.carriers.cli.outcome import find_time_zone
from interlock.carriers.cli.profiles import PROFILE_NAMES, allow_writing, read_profile
from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.carriers.function import AsyncHandler, AsyncHandlerFunction
from interlock.carriers.registry import (
    AgentSpec,
    agents_folder,
    cli_settings,
    find_program,
    split_command,
    workspace_id,
    workspace_owner,
)
from interlock.engine.circuit import HUMAN, Circuit
from interlock.journal.connection import Connection
from interlock.journal.runs import Run
from interlock.runtime.application import Application, RunSetup
from interlock.runtime.settings import read_settings
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.github import GithubRest, github_address
from interlock_epic.approval.carrier import REVIEW, CheckpointedGate, IssueCarrier
from interlock_epic.approval.issues import GithubIssue, Issues
from interlock_epic.checkpoints.place import StateFolder, find_state_folder
from interlock_epic.checkpoints.store import Checkpoints, hold_epic_lock
from interlock_epic.config import EpicConfig, EpicSettings, parse_seconds
from interlock_epic.hooks import GATES, NAMES, EpicHooks, GateQuestions
from interlock_epic.progress import CheckpointUpdater
from interlock_epic.sessions.carrier import SessionCarrier, SessionLimits
from interlock_epic.sessions.listen import AgentDialect, CliDialect, ExecDialect
from interlock_epic.steps import OWN_ROLES, EpicSteps, SignalLog

_SESSION: Final = "session"


class Epic(Application):
    """The circuit `epic`: one case, whose sessions continue from a checkpoint."""

    own_roles = OWN_ROLES
    prompt_names = NAMES

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        config: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        """Set up the session carrier, the steps around sessions, and the gates' carrier."""
        own = msgspec.convert(config, EpicConfig)
        _check_host(own)
        notes: list[str] = []
        db, settings = connection.address, own.settings
        checkpoints = Checkpoints(find_state_folder(Path(own.root)))
        log = agents_folder(db) / str(run.run_id) / "signals.jsonl"
        signals = SignalLog(log, _show_line, clock.now)
        questions = GateQuestions(signals, on_issues=settings.hitl == "github")
        updater = CheckpointUpdater(checkpoints, own.epic_id, clock.now, notes.append)
        steps = EpicSteps(checkpoints, own, signals, clock.now, lambda: questions.last)

        async def drive(ask: Ask) -> Reply:
            return await asyncio.to_thread(steps, ask)

        home = AgentHome(
            agents_folder(db), Path(own.root), workspace_owner(db), dict(os.environ), make_nonce
        )
        patience = parse_seconds(settings.hitl_timeout, "hitl_timeout")
        if settings.hitl == "github":
            issues = _build_issue_carrier(settings, workspace_id(db), clock, questions, updater)
            gate = CheckpointedGate(issues, updater, patience, issues.request_id)
        else:
            gate = CheckpointedGate(carriers[HUMAN], updater, patience)
        agents = run.options.get("agents", {})
        words = str(agents.get(_SESSION) or agents.get("") or "")
        dialect = build_dialect(words, bare=bool(settings.resume_prompt))
        ours: dict[str, Carrier] = {
            **dict.fromkeys(OWN_ROLES, StepCarrier(drive, checkpoints.place, own.epic_id)),
            _SESSION: SessionCarrier(dialect, home, build_limits(settings), clock, updater),
            HUMAN: gate,
        }
        hooks = EpicHooks(own, updater, signals, questions, notes)
        timed = _set_gate_timeouts(circuit, patience)
        return RunSetup(timed, {**carriers, **ours}, hooks, unplaced=OWN_ROLES)

    def begin(self, *_words: Any, **_more: Any) -> int:
        raise SourceError("an epic is run with 'interlock epic run FILE', not with 'interlock run'")


def _check_host(config: EpicConfig) -> None:
    """Raise SourceError if the epic's folder is not here, lest its files count as lost."""
    here = socket.gethostname()
    if (config.host and config.host != here) or not Path(config.root).is_dir():
        raise SourceError(
            f"the epic {config.epic_id} is in {config.root} on {config.host or 'another host'}, "
            f"not on {here}; continue it there with a coordinator, or with 'interlock epic run' in "
            "that folder"
        )


def _show_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class StepCarrier(AsyncHandler):
    """Carries out the steps around sessions, and keeps other processes off the epic while it is
    open.
    """

    def __init__(self, drive: AsyncHandlerFunction, place: StateFolder, epic_id: str) -> None:
        self._held = ExitStack()
        super().__init__(drive, self._held.close)
        self._take_lock = partial(hold_epic_lock, place, epic_id)
        self.is_locked = False
        """True if the caller holds the epic's lock already."""

    def start(self, session: Session) -> None:
        if not self.is_locked:
            self._held.enter_context(self._take_lock())
        super().start(session)


def build_dialect(spec: str, bare: bool) -> AgentDialect:
    """Return how to start and read the named agent.

    With `bare`, a prompt that is a command of the agent is sent unchanged.
    """
    kind, _, rest = spec.partition(":")
    if kind == "exec" and rest:
        argv = split_command(AgentSpec(kind, rest))
        command = Path(shutil.which(argv[0]) or argv[0]).absolute()
        return ExecDialect((str(command), *argv[1:]))
    if kind not in PROFILE_NAMES:
        known = ", ".join(PROFILE_NAMES)
        raise SourceError(
            f"an epic's sessions cannot be run by {spec!r}; use exec:COMMAND or one of {known}"
        )
    profile = read_profile(kind)
    chosen = cli_settings(profile, read_settings(Path()).agent, rest)
    program = find_program(profile, chosen)
    if not program:
        raise SourceError(f"{profile.title} is not installed; 'interlock agents' lists what is")
    return CliDialect(
        profile,
        allow_writing(profile, chosen),
        program,
        find_time_zone,
        bare=bare,
    )


def build_limits(settings: EpicSettings) -> SessionLimits:
    return SessionLimits(
        session=parse_seconds(settings.session_timeout, "session_timeout"),
        idle=parse_seconds(settings.idle_timeout, "idle_timeout"),
        grace=parse_seconds(settings.grace, "grace"),
        backoff=parse_seconds(settings.backoff, "backoff"),
    )


def _build_issue_carrier(
    settings: EpicSettings,
    workspace: str,
    clock: Clock,
    questions: GateQuestions,
    updater: CheckpointUpdater,
) -> IssueCarrier:
    def on_open(ask: Ask, issue: GithubIssue) -> None:
        questions.announce(ask.step, issue.number)
        if ask.step == REVIEW:
            updater.record_issue(issue.number, issue.url)

    return IssueCarrier(
        Issues(GithubRest(github_address(os.environ))),
        clock,
        workspace,
        allowed=settings.approvers,
        on_open=on_open,
        warn=_show_line,
        at_once=True,
    )


def _set_gate_timeouts(circuit: Circuit, patience: float) -> Circuit:
    steps = {
        name: msgspec.structs.replace(step, timeout=patience) if name in GATES else step
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)
