"""Epics as an application: who runs the sessions, who is asked at a gate, what keeps the place."""

import asyncio
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Ask, Carrier, Clock, Reply
from interlock.agents.cli.carrier import AgentHome, find_time_zone, make_nonce
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
from interlock.epic import parameters as prompt_parameters
from interlock.epic.approval.carrier import REVIEW, CheckpointedGate, IssueCarrier
from interlock.epic.approval.github import GithubRest, github_address
from interlock.epic.approval.issues import GithubIssue, Issues
from interlock.epic.checkpoints.place import find_state_folder
from interlock.epic.checkpoints.store import Checkpoints
from interlock.epic.driver import PROGRAMS, EpicDriver, SignalLog
from interlock.epic.hooks import EpicHooks, GateQuestions
from interlock.epic.progress import CheckpointUpdater
from interlock.epic.sessions.carrier import SessionCarrier, SessionLimits
from interlock.epic.sessions.listen import AgentDialect, CliDialect, ExecDialect
from interlock.epic.terms import EpicConfig, EpicSettings, seconds
from interlock.journal.runs import Run
from interlock.runtime.application import Application, RunSetup
from interlock.runtime.settings import read_settings as project_settings
from interlock.system.errors import SourceError

_SESSION = "session"
_GATES = ("REVIEW", "GIT_GATE")


class Epic(Application):
    """The circuit `epic`: one case, whose sessions go on from a checkpoint."""

    own_roles = PROGRAMS
    prompt_names = prompt_parameters.NAMES

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        terms: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        """The session's carrier, the pilot, and whoever is asked at a gate."""
        agreed = msgspec.convert(terms, EpicConfig)
        told = list[str]()
        db, settings = Path(agreed.db), agreed.settings
        checkpoints = Checkpoints(find_state_folder(Path(agreed.root)))
        folder = agents_folder(db) / str(run.run_id)
        voice = SignalLog(folder / "signals.jsonl", _show, clock.now)
        questions = GateQuestions(voice, on_issues=settings.hitl == "github")
        keeper = CheckpointUpdater(checkpoints, agreed.epic_id, clock.now, told.append)
        pilot = EpicDriver(checkpoints, agreed, voice, clock.now, lambda: questions.last)

        async def piloted(ask: Ask) -> Reply:
            return await asyncio.to_thread(pilot, ask)

        around = {name: os.environ[name] for name in os.environ if name != settings.hook_secret_env}
        station = AgentHome(
            agents_folder(db), Path(agreed.root), workspace_owner(db), around, make_nonce
        )
        tongue = tongue_of(_spec(run), settings)
        ours: dict[str, Carrier] = dict.fromkeys(PROGRAMS, AsyncHandler(piloted))
        ours[_SESSION] = SessionCarrier(tongue, station, limits_of(settings), clock, keeper)
        ours[HUMAN] = _asked(settings, carriers, workspace_id(db), clock, questions, keeper)
        application = EpicHooks(agreed, keeper, voice, questions, told)
        timed = _with_patience(circuit, settings)
        return RunSetup(timed, {**carriers, **ours}, application, unplaced=PROGRAMS)

    def begin(self, *_words: Any, **_more: Any) -> int:
        raise SourceError("an epic is run with 'interlock epic run FILE', not with 'interlock run'")


def _show(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _spec(run: Run) -> str:
    agents = run.options.get("agents", {})
    return str(agents.get(_SESSION) or agents.get("") or "")


def tongue_of(spec: str, settings: EpicSettings) -> AgentDialect:
    """How the agent that these words name is started and heard."""
    kind, _, rest = spec.partition(":")
    if kind == "exec" and rest:
        argv = split_command(AgentSpec(kind, rest))
        command = Path(shutil.which(argv[0]) or argv[0]).absolute()
        return ExecDialect((str(command), *argv[1:]))
    if kind not in PROFILE_NAMES:
        known = ", ".join(PROFILE_NAMES)
        raise SourceError(f"sessions of an epic are run by exec:COMMAND, {known}, not by {spec!r}")
    known_profile = read_profile(kind)
    chosen = cli_settings(known_profile, project_settings(Path()).agent, rest)
    found = find_program(known_profile, chosen)
    if not found:
        raise SourceError(f"{known_profile.title} is not installed: see 'interlock agents'")
    writing = allow_writing(known_profile, chosen)
    return CliDialect(
        known_profile, writing, found, find_time_zone, bare=bool(settings.resume_prompt)
    )


def limits_of(settings: EpicSettings) -> SessionLimits:
    return SessionLimits(
        session=seconds(settings.session_timeout, "session_timeout"),
        idle=seconds(settings.idle_timeout, "idle_timeout"),
        grace=seconds(settings.grace, "grace"),
        backoff=seconds(settings.backoff, "backoff"),
    )


def _asked(
    settings: EpicSettings,
    carriers: Mapping[str, Carrier],
    workspace: str,
    clock: Clock,
    questions: GateQuestions,
    keeper: CheckpointUpdater,
) -> CheckpointedGate:
    """Who is asked at a gate, and the checkpoint told of it."""
    patience = seconds(settings.hitl_timeout, "hitl_timeout")
    if settings.hitl == "github":
        desk = issue_desk(settings, workspace, clock, questions, keeper)
        return CheckpointedGate(desk, keeper, patience, desk.request_id)
    return CheckpointedGate(carriers[HUMAN], keeper, patience)


def issue_desk(
    settings: EpicSettings,
    workspace: str,
    clock: Clock,
    questions: GateQuestions,
    keeper: CheckpointUpdater,
) -> IssueCarrier:
    issues = Issues(GithubRest(github_address(os.environ)))

    def opened(ask: Ask, issue: GithubIssue) -> None:
        questions.on_issue(ask.step, issue.number)
        if ask.step == REVIEW:
            keeper.record_issue(issue.number, issue.url)

    return IssueCarrier(
        issues, clock, workspace, allowed=settings.approvers, opened=opened, at_once=True
    )


def _with_patience(circuit: Circuit, settings: EpicSettings) -> Circuit:
    patience = seconds(settings.hitl_timeout, "hitl_timeout")
    steps = {
        name: msgspec.structs.replace(step, timeout=patience) if name in _GATES else step
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)
