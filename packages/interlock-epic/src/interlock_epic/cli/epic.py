"""The verbs epic run, resume and status, and epic story list and set."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from interlock.cli.app import ExitCode, app, exit_with
from interlock.cli.options import Limits, RunFlags, WaitFlags, expand_options, parse_pairs
from interlock.cli.output import (
    Db,
    Json,
    echo,
    echo_json,
    echo_note,
    echo_table,
    open_project,
)
from interlock.runtime.agent_pool import split_agent
from interlock.signals.lines import format_line
from interlock.system.errors import SourceError, UsageError
from interlock.system.text import plural
from interlock.system.time import format_timestamp
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import Checkpoint, UnreadableCheckpoint
from interlock_epic.checkpoints.store import Checkpoints, LockedError
from interlock_epic.progress import set_story_status
from interlock_epic.report import EpicReport, describe_checkpoint, describe_newest_run, load_case
from interlock_epic.start import EpicOptions, find_epic, work_on_epic
from interlock_epic.status import LOCKED, LOCKED_EXIT, OUTCOMES, Status, read_status

if TYPE_CHECKING:
    from interlock.api.project import Project
    from interlock_epic.epic_file import EpicText

epic = typer.Typer(help="Epics: long work over many sessions.", no_args_is_help=True)
app.add_typer(epic, name="epic")
story = typer.Typer(
    help="The stories of an epic: list them, set one's status.", no_args_is_help=True
)
epic.add_typer(story, name="story")


class HumanChannel(StrEnum):
    """The place where humans are asked."""

    INBOX = "inbox"
    GITHUB = "github"


EpicArgument = Annotated[
    str | None, typer.Argument(metavar="ID", help="The epic; default the active one.")
]
EpicId = Annotated[
    str | None, typer.Option("--epic", metavar="ID", help="The epic; default the active one.")
]
SessionAgent = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="The agent: exec:COMMAND, claude, codex or another in `interlock agents`.",
    ),
]
Cycles = Annotated[
    int | None,
    typer.Option(
        "--max-cycles", metavar="N", min=0, max=4000, help="Most sessions to start; default 50."
    ),
]
SessionTimeout = Annotated[
    str | None,
    typer.Option(
        "--session-timeout", metavar="TIME", help="How long one session may take: 90s, 2h."
    ),
]
IdleTimeout = Annotated[
    str | None,
    typer.Option("--idle-timeout", metavar="TIME", help="How long a session may be silent."),
]
AskVia = Annotated[HumanChannel | None, typer.Option("--hitl", help="Where humans are asked.")]

_CODES = (
    "Exit: 0 complete, 1 fatal, 3 partial, 4 a human is asked, 5 budget spent, 10 paused to "
    "discuss, 11 nobody answered in time, 12 deferred, 13 halted, 14 a limit is reached or "
    "nothing moves, 15 no checkpoint, 16 git does not match, 17 a session ended without a signal, "
    "18 locked, "
    "75 rate-limited."
)
_SHOWN_SESSIONS = 10


class SessionFlags(WaitFlags, frozen=True, kw_only=True):
    """The agent, the limits, and the place where humans are asked."""

    agent: SessionAgent = None
    max_cycles: Cycles = None
    session_timeout: SessionTimeout = None
    idle_timeout: IdleTimeout = None
    hitl: AskVia = None
    budget: Limits = None

    def to_options(self) -> EpicOptions:
        """Return the options of the use case."""
        return EpicOptions(
            agents=dict(split_agent(word) for word in self.agent or ()),
            budget=parse_pairs(self.budget or (), "--budget"),
            max_cycles=self.max_cycles,
            session_timeout=self.session_timeout,
            idle_timeout=self.idle_timeout,
            hitl=self.hitl,
            **self.choices,
        )


@epic.command("run", epilog=_CODES)
@expand_options("flags", SessionFlags)
def run(
    what: Annotated[
        str, typer.Argument(metavar="FILE|ID", help="The epic's file, or the id of one.")
    ],
    flags: SessionFlags,
    db: Db = None,
    json: Json = False,
) -> None:
    """Work on an epic, session by session. Run it again to continue where it left off."""
    text, file = find_epic(what)
    _work(open_project(db), text.id if text else what, text, file, flags.to_options(), json=json)


@epic.command("resume", epilog=_CODES)
@expand_options("flags", SessionFlags)
def resume(
    flags: SessionFlags, epic_id: EpicArgument = None, db: Db = None, json: Json = False
) -> None:
    """Resume an epic from its checkpoint. After a stop, a crash, a pause or an answer."""
    wanted = epic_id or open_checkpoints().find_active()
    if not wanted:
        _exit_without_checkpoint(json)
    _work(open_project(db), wanted, None, "", flags.to_options(), json=json)


def resume_run(
    project: "Project",
    run_id: int,
    flags: RunFlags,
    waits: WaitFlags,
    *,
    json: bool,
) -> None:
    """Continue the epic of a run."""
    with project.read() as connection:
        epic_id = load_case(connection, run_id).case_id
    sessions = SessionFlags(
        agent=flags.agent, budget=flags.budget, wait=waits.wait, on_limit=waits.on_limit
    )
    _work(project, epic_id, None, "", sessions.to_options(), json=json)


@epic.command("status")
def status(epic_id: EpicArgument = None, db: Db = None, json: Json = False) -> None:
    """Show the state of an epic: its position, stories, newest run and sessions."""
    checkpoints = open_checkpoints()
    wanted = find_epic_id(checkpoints, epic_id)
    found = checkpoints.read(wanted)
    problem = found.sentence if isinstance(found, UnreadableCheckpoint) else ""
    checkpoint = None if isinstance(found, UnreadableCheckpoint) else found.checkpoint
    newest = describe_newest_run(open_project(db), wanted)
    if json:
        described = describe_checkpoint(checkpoint) if checkpoint else None
        echo_json({"epic_id": wanted, "checkpoint": described, "problem": problem, **newest})
    else:
        if checkpoint is None:
            echo(f"{wanted}: {problem}")
        else:
            _show_checkpoint(checkpoint)
        if newest["run_id"]:
            _show_run(newest)
    if checkpoint is None and not newest["run_id"]:
        raise typer.Exit(ExitCode.FAILED)


@story.command("list")
def list_stories(epic_id: EpicId = None, json: Json = False) -> None:
    """List the stories of an epic, from its checkpoint."""
    checkpoint = _read_sound(open_checkpoints(), epic_id)
    if json:
        stories = msgspec.to_builtins(checkpoint.stories)
        echo_json({"epic_id": checkpoint.epic.id, "stories": stories})
    elif checkpoint.stories:
        echo_table(
            ("STORY", "STATUS", "COMMIT", "REASON"),
            [(item.id, item.status, item.commit[:12], item.reason) for item in checkpoint.stories],
        )
    else:
        echo(f"{checkpoint.epic.id} has no stories yet")


@story.command("set")
def set_story(
    story_id: Annotated[str, typer.Argument(metavar="STORY", help="The story.")],
    to: Annotated[str, typer.Argument(metavar="STATUS", help="The new status, in any spelling.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; blocked needs one.")] = "",
    epic_id: EpicId = None,
    json: Json = False,
) -> None:
    """Set the status of a story. Refuse an invalid change, listing the valid ones."""
    checkpoints = open_checkpoints()
    known = _read_sound(checkpoints, epic_id)
    wanted = read_status(to)
    if wanted == Status.BLOCKED and not reason:
        raise UsageError(f"say what blocks {story_id}: --reason TEXT")
    at = format_timestamp(time.time())
    changed = set_story_status(checkpoints, known, story_id, wanted, reason, at)
    if json:
        echo_json({"epic_id": known.epic.id, "story": msgspec.to_builtins(changed)})
    else:
        echo(f"{story_id} is {wanted.value}")


def open_checkpoints() -> Checkpoints:
    """Return the checkpoints of the project in this folder."""
    return Checkpoints(find_state_folder(Path()))


def find_epic_id(checkpoints: Checkpoints, epic_id: str | None) -> str:
    """Return the named epic, or else the active one."""
    wanted = epic_id or checkpoints.find_active()
    if not wanted:
        raise SourceError("there is no epic here; begin one with 'interlock epic run FILE'")
    return wanted


def _read_sound(checkpoints: Checkpoints, epic_id: str | None) -> Checkpoint:
    found = checkpoints.read(find_epic_id(checkpoints, epic_id))
    if isinstance(found, UnreadableCheckpoint):
        raise SourceError(found.sentence)
    return found.checkpoint


def _work(
    project: "Project",
    epic_id: str,
    text: "EpicText | None",
    file: str,
    options: EpicOptions,
    *,
    json: bool,
) -> None:
    show = None if json else _show_signal
    with _exit_if_locked(epic_id, json):
        result, report = work_on_epic(project, epic_id, text, file, options, show)
    for note in result.notes:
        echo_note(f"note: {note}")
    if json:
        echo_json(report)
    else:
        _show_report(report)
    if isinstance(report.exit_code, int):
        raise typer.Exit(report.exit_code)
    exit_with(result)


def _show_signal(line: str) -> None:
    """Print a line signal to stdout at once, for programs that read it there."""
    echo(line)
    sys.stdout.flush()


@contextmanager
def _exit_if_locked(epic_id: str, json: bool) -> Iterator[None]:
    try:
        yield
    except LockedError as error:
        if json:
            fields = {"epic_id": epic_id, "outcome": LOCKED, "exit_code": LOCKED_EXIT}
            echo_json({**fields, "reason": str(error)})
        echo_note(f"interlock: {error}")
        raise typer.Exit(LOCKED_EXIT) from None


def _exit_without_checkpoint(json: bool) -> NoReturn:
    """Exit with the code for a missing checkpoint, since no epic is named or active."""
    code = OUTCOMES["NO_CHECKPOINT"].exit_code
    reason = "there is no checkpoint here; begin with 'interlock epic run FILE'"
    line = format_line("FATAL_ERROR", ["NO_CHECKPOINT", reason])
    if json:
        fields = {"epic_id": "", "outcome": "NO_CHECKPOINT", "code": "NO_CHECKPOINT"}
        echo_json({**fields, "exit_code": code, "reason": reason, "signals": [line]})
        echo_note(line)
    else:
        echo(line)
    raise typer.Exit(code)


def _show_report(report: EpicReport) -> None:
    sessions = plural(report.sessions, "session", "sessions")
    echo(f"{report.epic_id}: {report.outcome} after {sessions} (run {report.run_id})")
    if report.reason:
        echo(f"  {f'{report.code}: ' if report.code else ''}{report.reason}")
    for number in report.questions:
        echo(f"  a human is asked: 'interlock inbox', 'interlock answer {number} DECISION'")
    if report.outcome not in ("COMPLETE", "PARTIAL"):
        echo(f"  'interlock epic resume {report.epic_id}' continues it")


def _show_checkpoint(checkpoint: Checkpoint) -> None:
    position = checkpoint.position
    parts = (position.story_id, position.phase, position.task)
    where = ", ".join(part for part in parts if part) or "its beginning"
    echo(f"{checkpoint.epic.id}: {checkpoint.epic.status.value}; at {where}")
    done = sum(item.status == Status.DONE for item in checkpoint.stories)
    echo(f"{done} of {plural(len(checkpoint.stories), 'story', 'stories')} done")
    echo_table(("STORY", "STATUS"), [(item.id, item.status.value) for item in checkpoint.stories])


def _show_run(newest: dict[str, Any]) -> None:
    echo(f"run {newest['run_id']}: {newest['outcome']}, at {newest['step']}")
    rows = [
        (
            session["attempt"],
            session.get("ended_by", session["rule"]),
            f"{session.get('seconds', 0):g} s",
            " ".join(str(session.get("message", "")).split())[:60],
        )
        for session in newest["sessions"][-_SHOWN_SESSIONS:]
    ]
    echo_table(("SESSION", "ENDED BY", "TOOK", "SAID"), rows)
    for number in newest["questions"]:
        echo(f"a human is asked: 'interlock answer {number} DECISION'")
