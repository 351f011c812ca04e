"""The verbs of epic: run, resume, status, story; long work over many sessions."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from interlock.api.work import RunResult, load_circuit, work_on_run
from interlock.cli.app import ExitCode, app
from interlock.cli.options import Limited, Limits, RateLimitPolicy, RunFlags, Wait
from interlock.cli.output import (
    Db,
    Json,
    echo,
    echo_json,
    echo_note,
    echo_table,
    open_project,
)
from interlock.cli.run import exit_with
from interlock.engine.circuit import HUMAN
from interlock.epic.epic_begin import EpicOptions, agreed, begun, written_epic
from interlock.system.errors import SourceError, StoreError
from interlock.system.text import plural

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.api.project import Project
    from interlock.engine.case import Case
    from interlock.epic.checkpoints.record import Checkpoint
    from interlock.epic.checkpoints.store import Checkpoints
    from interlock.epic.epic_file import EpicText
    from interlock.epic.terms import EpicSettings
    from interlock.journal.runs import Run
    from interlock.runtime.application import RunSetup


epic = typer.Typer(help="Epics: long work over many sessions.", no_args_is_help=True)
app.add_typer(epic, name="epic")


story = typer.Typer(
    help="The stories of an epic: list them, set one's status.", no_args_is_help=True
)
epic.add_typer(story, name="story")

EpicArgument = Annotated[
    str | None, typer.Argument(metavar="ID", help="The epic; default the active one.")
]
EpicId = Annotated[
    str | None, typer.Option("--epic", metavar="ID", help="The epic; default the active one.")
]
_SHOWN = 10


@epic.command("status")
def status(epic_id: EpicArgument = None, db: Db = None, json: Json = False) -> None:
    """How an epic stands: its place, its stories, its newest run and sessions."""
    kept = _checkpoints()
    wanted = epic_id or kept.find_active()
    if not wanted:
        raise SourceError("there is no epic here: begin one with 'interlock epic run FILE'")
    found, problem = _found(kept, wanted)
    worked = _newest_run(wanted, db)
    if json:
        place = described(found) if found else None
        echo_json({"epic_id": wanted, "checkpoint": place, "problem": problem, **worked})
    else:
        _show(wanted, found, problem, worked)
    if found is None and not worked["run_id"]:
        raise typer.Exit(ExitCode.FAILED)


@story.command("list")
def list_stories(epic_id: EpicId = None, json: Json = False) -> None:
    """The stories of an epic, as its checkpoint knows them."""
    checkpoint = _sound(_checkpoints(), epic_id)
    rows = [msgspec.to_builtins(each) for each in checkpoint.stories]
    if json:
        echo_json({"epic_id": checkpoint.epic.id, "stories": rows})
    elif rows:
        echo_table(
            ("STORY", "STATUS", "COMMIT", "REASON"),
            [(each["id"], each["status"], each["commit"][:12], each["reason"]) for each in rows],
        )
    else:
        echo(f"{checkpoint.epic.id} has no stories yet")


@story.command("set")
def set_story(
    story_id: Annotated[str, typer.Argument(metavar="STORY", help="The story.")],
    to: Annotated[str, typer.Argument(metavar="STATUS", help="How it stands, in any spelling.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; blocked needs one.")] = "",
    epic_id: EpicId = None,
    json: Json = False,
) -> None:
    """Set the status of a story. What cannot follow is refused with what can."""
    from interlock.epic.status import Status, change_status, read_status

    kept = _checkpoints()
    known = _sound(kept, epic_id)
    wanted = read_status(to)
    if wanted == Status.BLOCKED and not reason:
        raise SourceError(f"say what blocks {story_id}: --reason TEXT")

    def change(before: "Checkpoint | None") -> "Checkpoint":
        checkpoint = before or known
        found = checkpoint.story(story_id)
        if found is None:
            names = ", ".join(each.id for each in checkpoint.stories[:20]) or "none"
            raise SourceError(f"{checkpoint.epic.id} has no story {story_id}; it has {names}")
        change_status(found.status, wanted, f"story {story_id}")
        after = msgspec.structs.replace(found, status=wanted, reason=reason)
        return checkpoint.with_story(after)

    written = kept.update(known.epic.id, change, _now())
    if json:
        found = written.checkpoint.story(story_id)
        echo_json({"epic_id": known.epic.id, "story": msgspec.to_builtins(found)})
    else:
        echo(f"{story_id} is {wanted.value}")


def case_of(connection: "Connection", run_id: int) -> "Case":
    """The one case of an epic's run, with all that it knows."""
    from interlock.journal.runs import find_run, load_cases

    found = find_run(connection, run_id)
    return next(iter(load_cases(connection, load_circuit(found), run_id, whole=True))).case


def questions_of(connection: "Connection", run_id: int) -> list[int]:
    """The numbers of the questions that wait for a human."""
    from interlock.journal.history import list_open_questions

    return [each.question_id for each in list_open_questions(connection) if each.run_id == run_id]


def checkpoint_of(epic_id: str) -> dict[str, Any] | None:
    found, _ = _found(_checkpoints(), epic_id)
    return described(found) if found else None


def described(checkpoint: "Checkpoint") -> dict[str, Any]:
    """A checkpoint for machines: what one wants to know of it at a glance."""
    return {
        "generation": checkpoint.generation,
        "epic_status": checkpoint.epic.status.value,
        "position": msgspec.to_builtins(checkpoint.position),
        "commit": checkpoint.git.commit,
        "branch": checkpoint.git.branch,
        "stories": {each.id: each.status.value for each in checkpoint.stories},
        "next_action": msgspec.to_builtins(checkpoint.next_action),
        "hitl": msgspec.to_builtins(checkpoint.hitl),
        "note": checkpoint.note,
        "updated": checkpoint.updated,
    }


def _checkpoints() -> "Checkpoints":
    from interlock.epic.checkpoints.place import find_state_folder
    from interlock.epic.checkpoints.store import Checkpoints

    return Checkpoints(find_state_folder(Path()))


def _found(kept: "Checkpoints", epic_id: str) -> "tuple[Checkpoint | None, str]":
    from interlock.epic.checkpoints.legacy import UnreadableCheckpoint

    found = kept.read(epic_id)
    return (
        (None, found.sentence)
        if isinstance(found, UnreadableCheckpoint)
        else (found.checkpoint, "")
    )


def _sound(kept: "Checkpoints", epic_id: str | None) -> "Checkpoint":
    wanted = epic_id or kept.find_active()
    if not wanted:
        raise SourceError("there is no epic here: begin one with 'interlock epic run FILE'")
    found, problem = _found(kept, wanted)
    if found is None:
        raise SourceError(problem)
    return found


def _newest_run(epic_id: str, db: Path | None) -> dict[str, Any]:
    """What the database knows of the epic's newest run."""
    from interlock.journal.history import find_case
    from interlock.system.errors import StoreError

    nothing = {"run_id": 0, "outcome": "", "step": "", "sessions": [], "questions": []}
    project = open_project(db)
    if not project.db.exists():
        return nothing
    with project.read() as connection:
        try:
            line = find_case(connection, epic_id)
        except (StoreError, SourceError):
            return nothing
        case = case_of(connection, line.run_id)
        from interlock.journal.runs import find_run

        run = find_run(connection, line.run_id)
        return {
            "run_id": line.run_id,
            "outcome": outcome_of(run.status, case) if run.status != "running" else "RUNNING",
            "step": case.step,
            "code": str(case.context.get("code", "")) if case.end else "",
            "reason": str(case.context.get("reason", "")) if case.end else "",
            "sessions": _sessions(connection, line.case_no),
            "questions": questions_of(connection, line.run_id),
        }


def _sessions(connection: "Connection", case_no: int) -> list[dict[str, Any]]:
    from interlock.journal.runs import load_decisions

    names = (
        "ended_by",
        "message",
        "checkpoint_before",
        "checkpoint_after",
        "exit",
        "seconds",
        "counted",
        "record",
    )
    return [
        {"attempt": decision.attempt, "rule": decision.rule}
        | {name: answer[name] for name in names if name in answer}
        for decision, answer in load_decisions(connection, case_no)
        if decision.step == "SESSION"
    ]


def _show(
    epic_id: str, checkpoint: "Checkpoint | None", problem: str, worked: dict[str, Any]
) -> None:
    if checkpoint is None:
        echo(f"{epic_id}: {problem}")
    else:
        place = checkpoint.position
        where = ", ".join(each for each in (place.story_id, place.phase, place.task) if each)
        echo(f"{epic_id}: {checkpoint.epic.status.value}; at {where or 'its beginning'}")
        done = sum(each.status == "done" for each in checkpoint.stories)
        echo(f"{done} of {plural(len(checkpoint.stories), 'story', 'stories')} done")
        stories = [(each.id, each.status.value) for each in checkpoint.stories]
        echo_table(("STORY", "STATUS"), stories)
    if not worked["run_id"]:
        return
    echo(f"run {worked['run_id']}: {worked['outcome']}, at {worked['step']}")
    rows = [
        (
            each["attempt"],
            each.get("ended_by", each["rule"]),
            f"{each.get('seconds', 0):g} s",
            " ".join(str(each.get("message", "")).split())[:60],
        )
        for each in worked["sessions"][-_SHOWN:]
    ]
    echo_table(("SESSION", "ENDED BY", "TOOK", "SAID"), rows)
    for number in worked["questions"]:
        echo(f"a human is asked: 'interlock answer {number} DECISION'")


def _now() -> str:
    import time

    from interlock.system.time import format_timestamp

    return format_timestamp(time.time())


Dress = Callable[["RunSetup"], "RunSetup"]


@contextmanager
def hooked(settings: "EpicSettings", word: str | None) -> Iterator[Dress]:
    """What puts the door before the desk that asks on issues; nothing if none is wished."""
    if word is None:
        yield lambda ours: ours
        return
    if settings.hitl != "github":
        raise SourceError("--hook hears of GitHub issues: use it with --hitl github")
    from interlock.epic.approval.carrier import CheckpointedGate, IssueCarrier
    from interlock.epic.approval.webhook import PATH, GithubHook, WebhookGate, door, secret_of
    from interlock.web.server import format_address

    secret = secret_of(os.environ, settings.hook_secret_env)
    with closing(door(word)) as listening:

        def dress(ours: "RunSetup") -> "RunSetup":
            asked = ours.carriers[HUMAN]
            desk = asked.desk if isinstance(asked, CheckpointedGate) else asked
            if not isinstance(desk, IssueCarrier):
                raise TypeError(f"{desk!r} asks on no issues")
            hook = GithubHook(secret, desk.bound, desk.wake)
            door_before = WebhookGate(asked, hook, listening)
            return msgspec.structs.replace(ours, carriers={**ours.carriers, HUMAN: door_before})

        echo_note(f"webhooks come in at {format_address(listening)}{PATH}")
        yield dress


class DeskName(StrEnum):
    """Where humans are asked."""

    INBOX = "inbox"
    GITHUB = "github"


SessionAgent = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="Who works: exec:COMMAND, or claude, codex or another of `interlock agents`.",
    ),
]
Cycles = Annotated[
    int | None,
    typer.Option("--max-cycles", metavar="N", min=0, max=4000, help="Fresh sessions; default 50."),
]
Longest = Annotated[
    str | None, typer.Option("--session-timeout", metavar="TIME", help="Of one session: 90s, 2h.")
]
Idle = Annotated[
    str | None, typer.Option("--idle-timeout", metavar="TIME", help="Of a silent session.")
]
Asked = Annotated[DeskName | None, typer.Option("--hitl", help="Where humans are asked.")]
Hook = Annotated[
    str | None,
    typer.Option(
        "--hook", metavar="[HOST:]PORT", help="Wait, and hear GitHub's webhooks here meanwhile."
    ),
]

_CODES = (
    "Exit: 0 complete, 1 fatal, 3 partial, 4 a human is asked, 5 budget spent, 10 paused to "
    "discuss, 11 nobody answered in time, 12 put off, 13 halted, 14 a limit is spent or nothing "
    "moves, 15 no checkpoint, 16 git does not fit, 17 a session ended without a word, 18 locked, "
    "75 rate-limited."
)


@epic.command("run", epilog=_CODES)
def run(
    what: Annotated[
        str, typer.Argument(metavar="FILE|ID", help="The epic's file, or the id of one.")
    ],
    agent: SessionAgent = None,
    max_cycles: Cycles = None,
    session_timeout: Longest = None,
    idle_timeout: Idle = None,
    hitl: Asked = None,
    hook: Hook = None,
    budget: Limits = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Work on an epic, session by session. Run again, it goes on where it was."""
    words = (agent, budget, max_cycles, session_timeout, idle_timeout, hitl, hook)
    text, file = written_epic(what)
    _work(text.id if text else what, text, file, EpicOptions(*words), db, wait, on_limit, json)


@epic.command("resume", epilog=_CODES)
def resume(
    epic_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The epic; default the active one.")
    ] = None,
    agent: SessionAgent = None,
    max_cycles: Cycles = None,
    session_timeout: Longest = None,
    idle_timeout: Idle = None,
    hitl: Asked = None,
    hook: Hook = None,
    budget: Limits = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Go on with an epic from its checkpoint. It was stopped, killed, paused or waits."""
    from interlock.epic.checkpoints.place import find_state_folder
    from interlock.epic.checkpoints.store import Checkpoints

    words = (agent, budget, max_cycles, session_timeout, idle_timeout, hitl, hook)
    wanted = epic_id or Checkpoints(find_state_folder(Path())).find_active()
    if not wanted:
        _nothing(json)
    _work(wanted, None, "", EpicOptions(*words), db, wait, on_limit, json)


def resume_run(
    project: "Project",
    run_id: int,
    flags: RunFlags,
    *,
    wait: bool,
    on_limit: RateLimitPolicy,
    json: bool,
) -> None:
    """Go on with the epic of a run."""
    with project.read() as connection:
        epic_id = case_of(connection, run_id).case_id
    wishes = EpicOptions(agent=flags.agent, budget=flags.budget)
    _work(epic_id, None, "", wishes, project.db, wait, on_limit, json)


def _work(
    epic_id: str,
    text: "EpicText | None",
    file: str,
    wishes: EpicOptions,
    db: Path | None,
    wait: bool,
    on_limit: RateLimitPolicy,
    json: bool,
) -> None:
    from interlock.epic.checkpoints.place import find_state_folder
    from interlock.epic.checkpoints.store import hold_epic_lock

    project = open_project(db)
    place = find_state_folder(Path())
    terms = agreed(epic_id, text, file, place, project.db, project.settings, wishes)
    with (
        _alone(epic_id, json),
        hold_epic_lock(place, epic_id),
        project.write() as connection,
    ):
        found, config = begun(project, connection, terms, wishes)
        pool = project.build_pool(load_circuit(found), config)
        with hooked(terms.settings, wishes.hook) as change_setup:  # once its agents are found
            result = work_on_run(
                connection,
                found,
                pool,
                display=project.display,
                wait_for_humans=wait or wishes.hook is not None,
                wait_for_limits=on_limit == RateLimitPolicy.WAIT,
                change_setup=change_setup,
            )
        _report(connection, found, result, epic_id, json=json)


@contextmanager
def _alone(epic_id: str, json: bool) -> Iterator[None]:
    """Whoever is second is told so, with a code of its own."""
    from interlock.epic.checkpoints.store import LockedError
    from interlock.epic.status import LOCKED, LOCKED_EXIT

    try:
        yield
    except (LockedError, StoreError) as error:
        if isinstance(error, StoreError) and " is in use by " not in str(error):
            raise
        if json:
            fields = {"epic_id": epic_id, "outcome": LOCKED, "exit_code": LOCKED_EXIT}
            echo_json({**fields, "reason": str(error)})
        echo_note(f"interlock: {error}")
        raise typer.Exit(LOCKED_EXIT) from None


def _nothing(json: bool) -> NoReturn:
    """No epic is named, and none was ever begun here."""
    from interlock.epic.status import OUTCOMES
    from interlock.signals.lines import format_line

    code = OUTCOMES["NO_CHECKPOINT"].exit_code
    reason = "there is no checkpoint here: begin with 'interlock epic run FILE'"
    line = format_line("FATAL_ERROR", ["NO_CHECKPOINT", reason])
    if json:
        fields = {"epic_id": "", "outcome": "NO_CHECKPOINT", "code": "NO_CHECKPOINT"}
        echo_json({**fields, "exit_code": code, "reason": reason, "signals": [line]})
    echo_note(line)
    raise typer.Exit(code)


def _report(
    connection: "Connection", found: "Run", result: RunResult, epic_id: str, *, json: bool
) -> None:
    """Say how the epic stands, and leave with its exit code."""
    from interlock.epic.hooks import EpicHooks
    from interlock.epic.status import OUTCOMES

    case = case_of(connection, found.run_id)
    outcome = outcome_of(result.status, case)
    spoken = result.hooks.voice.lines if isinstance(result.hooks, EpicHooks) else []
    for note in result.notes:
        echo_note(f"note: {note}")
    questions = questions_of(connection, found.run_id)
    fields = {
        "epic_id": epic_id,
        "run_id": found.run_id,
        "outcome": outcome,
        "status": result.status,
        "code": str(case.context.get("code", "")) if case.end else "",
        "reason": _reason(case),
        "sessions": case.visits.get("SESSION", 0),
        "questions": questions,
        "signals": spoken,
        "checkpoint": checkpoint_of(epic_id),
    }
    if outcome in OUTCOMES:
        fields["exit_code"] = OUTCOMES[outcome].exit_code
    if json:
        echo_json(fields)
    else:
        _say(fields, case)
    if outcome in OUTCOMES:
        raise typer.Exit(OUTCOMES[outcome].exit_code)
    exit_with(result)


def outcome_of(status: str, case: "Case") -> str:
    """One word for how an epic stands."""
    if case.end:
        return case.end
    if case.status != "open":
        return "FATAL"
    return {"waiting": "WAITING", "budget": "BUDGET", "rate-limited": "RATE_LIMITED"}.get(
        status, "STOPPED"
    )


def _reason(case: "Case") -> str:
    if case.end:
        return str(case.context.get("reason", "")) or case.reason
    return case.reason


def _say(fields: dict[str, Any], case: "Case") -> None:
    epic_id, outcome = fields["epic_id"], fields["outcome"]
    sessions = plural(fields["sessions"], "session", "sessions")
    echo(f"{epic_id}: {outcome} after {sessions} (run {fields['run_id']})")
    if fields["reason"]:
        code = f"{fields['code']}: " if fields["code"] else ""
        echo(f"  {code}{fields['reason']}")
    for number in fields["questions"]:
        echo(f"  a human is asked: 'interlock inbox', 'interlock answer {number} DECISION'")
    if outcome not in ("COMPLETE", "PARTIAL"):
        echo(f"  'interlock epic resume {epic_id}' goes on")
