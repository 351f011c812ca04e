"""The verbs epic status and epic story: how an epic stands, and its stories by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.door import ExitCode
from interlock.cli.epic import epic
from interlock.cli.show import Db, Json, counted, document, say, table
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.case import Case
    from interlock.epic.checkpoints.checkpoint import Checkpoint
    from interlock.epic.checkpoints.checkpoints import Checkpoints

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
    wanted = epic_id or kept.active()
    if not wanted:
        raise SourceError("there is no epic here: begin one with 'interlock epic run FILE'")
    found, problem = _found(kept, wanted)
    worked = _newest_run(wanted, db)
    if json:
        place = described(found) if found else None
        document({"epic_id": wanted, "checkpoint": place, "problem": problem, **worked})
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
        document({"epic_id": checkpoint.epic.id, "stories": rows})
    elif rows:
        table(
            ("STORY", "STATUS", "COMMIT", "REASON"),
            [(each["id"], each["status"], each["commit"][:12], each["reason"]) for each in rows],
        )
    else:
        say(f"{checkpoint.epic.id} has no stories yet")


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
        document({"epic_id": known.epic.id, "story": msgspec.to_builtins(found)})
    else:
        say(f"{story_id} is {wanted.value}")


def case_of(connection: "Connection", run_id: int) -> "Case":
    """The one case of an epic's run, with all that it knows."""
    from interlock.api.project import open_run
    from interlock.journal.runs import find_run, load_cases

    found = find_run(connection, run_id)
    return next(iter(load_cases(connection, open_run(found), run_id, whole=True))).case


def questions_of(connection: "Connection", run_id: int) -> list[int]:
    """The numbers of the questions that wait for a human."""
    from interlock.journal.history import open_questions

    return [each.question_id for each in open_questions(connection) if each.run_id == run_id]


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
    from interlock.epic.checkpoints.checkpoints import Checkpoints
    from interlock.epic.checkpoints.place import find_place

    return Checkpoints(find_place(Path()))


def _found(kept: "Checkpoints", epic_id: str) -> "tuple[Checkpoint | None, str]":
    from interlock.epic.checkpoints.migrate import UnreadableCheckpoint

    found = kept.read(epic_id)
    return (
        (None, found.sentence)
        if isinstance(found, UnreadableCheckpoint)
        else (found.checkpoint, "")
    )


def _sound(kept: "Checkpoints", epic_id: str | None) -> "Checkpoint":
    wanted = epic_id or kept.active()
    if not wanted:
        raise SourceError("there is no epic here: begin one with 'interlock epic run FILE'")
    found, problem = _found(kept, wanted)
    if found is None:
        raise SourceError(problem)
    return found


def _newest_run(epic_id: str, db: Path | None) -> dict[str, Any]:
    """What the database knows of the epic's newest run."""
    from interlock.cli.epic_run import outcome_of
    from interlock.journal.database import reading
    from interlock.journal.history import find_case
    from interlock.runtime.settings import database
    from interlock.system.errors import StoreError

    nothing = {"run_id": 0, "outcome": "", "step": "", "sessions": [], "questions": []}
    path = database(Path(), db)
    if not path.exists():
        return nothing
    with reading(path) as connection:
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
    from interlock.journal.runs import journal_of

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
        for decision, answer in journal_of(connection, case_no)
        if decision.step == "SESSION"
    ]


def _show(
    epic_id: str, checkpoint: "Checkpoint | None", problem: str, worked: dict[str, Any]
) -> None:
    if checkpoint is None:
        say(f"{epic_id}: {problem}")
    else:
        place = checkpoint.position
        where = ", ".join(each for each in (place.story_id, place.phase, place.task) if each)
        say(f"{epic_id}: {checkpoint.epic.status.value}; at {where or 'its beginning'}")
        done = sum(each.status == "done" for each in checkpoint.stories)
        say(f"{done} of {counted(len(checkpoint.stories), 'story', 'stories')} done")
        table(("STORY", "STATUS"), [(each.id, each.status.value) for each in checkpoint.stories])
    if not worked["run_id"]:
        return
    say(f"run {worked['run_id']}: {worked['outcome']}, at {worked['step']}")
    rows = [
        (
            each["attempt"],
            each.get("ended_by", each["rule"]),
            f"{each.get('seconds', 0):g} s",
            " ".join(str(each.get("message", "")).split())[:60],
        )
        for each in worked["sessions"][-_SHOWN:]
    ]
    table(("SESSION", "ENDED BY", "TOOK", "SAID"), rows)
    for number in worked["questions"]:
        say(f"a human is asked: 'interlock answer {number} DECISION'")


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
