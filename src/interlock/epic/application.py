"""Epics as an application: who runs the sessions, who is asked at a gate, what keeps the place."""

import asyncio
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.agents.carrier import Ask, Carrier, Reply
from interlock.agents.cli.carrier import AgentHome, make_nonce
from interlock.agents.cli.outcome import find_time_zone
from interlock.agents.cli.profiles import PROFILE_NAMES, allow_writing, read_profile
from interlock.agents.function import AsyncHandler
from interlock.agents.registry import (
    AgentSpec,
    agents_folder,
    cli_settings,
    find_program,
    split_command,
    workspace_id,
    workspace_owner,
)
from interlock.engine.circuit import HUMAN, Circuit
from interlock.epic import parameters
from interlock.epic.approval.carrier import REVIEW, CheckpointedGate, IssueCarrier
from interlock.epic.approval.issues import GithubIssue, Issues
from interlock.epic.checkpoints.place import find_state_folder
from interlock.epic.checkpoints.store import Checkpoints
from interlock.epic.config import EpicConfig, EpicSettings, parse_seconds
from interlock.epic.driver import OWN_ROLES, EpicDriver, SignalLog
from interlock.epic.hooks import GATES, EpicHooks, GateQuestions
from interlock.epic.progress import CheckpointUpdater
from interlock.epic.sessions.carrier import SessionCarrier, SessionLimits
from interlock.epic.sessions.listen import AgentDialect, CliDialect, ExecDialect
from interlock.journal.connection import Connection
from interlock.journal.database import find_address
from interlock.journal.runs import Run
from interlock.runtime.application import Application, RunSetup
from interlock.runtime.settings import read_settings
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.github import GithubRest, github_address

_SESSION: Final = "session"


class Epic(Application):
    """The circuit `epic`: one case, whose sessions continue from a checkpoint."""

    own_roles = OWN_ROLES
    prompt_names = parameters.NAMES

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
        """The carrier of the sessions, the driver, and whoever is asked at a gate."""
        own = msgspec.convert(config, EpicConfig)
        notes: list[str] = []
        db, settings = find_address(connection), own.settings
        checkpoints = Checkpoints(find_state_folder(Path(own.root)))
        log = agents_folder(db) / str(run.run_id) / "signals.jsonl"
        signals = SignalLog(log, _show_line, clock.now)
        questions = GateQuestions(signals, on_issues=settings.hitl == "github")
        updater = CheckpointUpdater(checkpoints, own.epic_id, clock.now, notes.append)
        driver = EpicDriver(checkpoints, own, signals, clock.now, lambda: questions.last)

        async def drive(ask: Ask) -> Reply:
            return await asyncio.to_thread(driver, ask)

        environ = {
            name: value for name, value in os.environ.items() if name != settings.hook_secret_env
        }
        home = AgentHome(
            agents_folder(db), Path(own.root), workspace_owner(db), environ, make_nonce
        )
        agents = run.options.get("agents", {})
        dialect = build_dialect(str(agents.get(_SESSION) or agents.get("") or ""), settings)
        patience = parse_seconds(settings.hitl_timeout, "hitl_timeout")
        if settings.hitl == "github":
            issues = _build_issue_carrier(settings, workspace_id(db), clock, questions, updater)
            gate = CheckpointedGate(issues, updater, patience, issues.request_id)
        else:
            gate = CheckpointedGate(carriers[HUMAN], updater, patience)
        ours: dict[str, Carrier] = {
            **dict.fromkeys(OWN_ROLES, AsyncHandler(drive)),
            _SESSION: SessionCarrier(dialect, home, build_limits(settings), clock, updater),
            HUMAN: gate,
        }
        hooks = EpicHooks(own, updater, signals, questions, notes)
        timed = _set_gate_timeouts(circuit, patience)
        return RunSetup(timed, {**carriers, **ours}, hooks, unplaced=OWN_ROLES)

    def begin(self, *_words: Any, **_more: Any) -> int:
        raise SourceError("an epic is run with 'interlock epic run FILE', not with 'interlock run'")


def _show_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def build_dialect(spec: str, settings: EpicSettings) -> AgentDialect:
    """How the agent that these words name is started and heard."""
    kind, _, rest = spec.partition(":")
    if kind == "exec" and rest:
        argv = split_command(AgentSpec(kind, rest))
        command = Path(shutil.which(argv[0]) or argv[0]).absolute()
        return ExecDialect((str(command), *argv[1:]))
    if kind not in PROFILE_NAMES:
        known = ", ".join(PROFILE_NAMES)
        raise SourceError(f"sessions of an epic are run by exec:COMMAND, {known}, not by {spec!r}")
    profile = read_profile(kind)
    chosen = cli_settings(profile, read_settings(Path()).agent, rest)
    program = find_program(profile, chosen)
    if not program:
        raise SourceError(f"{profile.title} is not installed: see 'interlock agents'")
    return CliDialect(
        profile,
        allow_writing(profile, chosen),
        program,
        find_time_zone,
        bare=bool(settings.resume_prompt),
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
