"""The verbs epic checkpoint show, write, clear and restore-stash.

An agent calls `write` from inside its session, before it ends.
"""

import time
from datetime import UTC, datetime
from typing import Annotated, get_args

import msgspec
import typer

from interlock.cli.app import ExitCode
from interlock.cli.output import Json, echo, echo_json, echo_note, echo_table
from interlock.signals.lines import format_line
from interlock.system.errors import SourceError, UsageError
from interlock.system.text import plural
from interlock.system.time import format_timestamp
from interlock_epic.checkpoints.record import (
    ActionType,
    Checkpoint,
    NextAction,
    StatedPosition,
    UnreadableCheckpoint,
    apply_position,
)
from interlock_epic.checkpoints.store import LoadedCheckpoint
from interlock_epic.cli.epic import EpicArgument, EpicId, epic, find_epic_id, open_checkpoints
from interlock_epic.recovery.git_state import read_git_work
from interlock_epic.recovery.recover import restore_stash as restore
from interlock_epic.sessions.channel import deliver_line
from interlock_epic.status import read_status

checkpoint = typer.Typer(
    help="Checkpoints of epics: show, write, clear, restore.", no_args_is_help=True
)
epic.add_typer(checkpoint, name="checkpoint")

WrittenEpic = Annotated[str, typer.Option("--epic", metavar="ID", help="The epic.")]
StoryId = Annotated[str, typer.Option("--story", metavar="ID", help="The current story.")]
Phase = Annotated[str, typer.Option("--phase", help="The current phase, for example phase-2.")]
Task = Annotated[str, typer.Option("--task", help="The current task: a number or a few words.")]
StatusWord = Annotated[str, typer.Option("--status", help="The story's status.")]
Note = Annotated[str | None, typer.Option("--note", help="What the next session must know.")]
Next = Annotated[
    str | None,
    typer.Option("--next", metavar="[TYPE:]TEXT", help="What the next session does first."),
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete instead of archiving; with --yes.")]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm --delete.")]
Number = Annotated[
    int | None, typer.Argument(metavar="NUMBER", help="The recovery's number; default the newest.")
]


@checkpoint.command()
def show(name: EpicArgument = None, epic_id: EpicId = None, json: Json = False) -> None:
    """Show the checkpoint of an epic, or why it is not usable."""
    checkpoints = open_checkpoints()
    wanted = _choose_name(name, epic_id) or checkpoints.find_active()
    found = (
        checkpoints.read(wanted)
        if wanted
        else UnreadableCheckpoint("MISSING", "there is no checkpoint here")
    )
    if isinstance(found, UnreadableCheckpoint):
        if json:
            why = {"kind": found.kind, "code": found.code, "sentence": found.sentence}
            echo_json({"found": False, "epic_id": wanted, **why})
        else:
            echo_note(f"interlock: {found.kind} ({found.code}): {found.sentence}")
        raise typer.Exit(ExitCode.FAILED)
    if json:
        echo_json(
            {
                "found": True,
                "epic_id": wanted,
                "path": str(found.path),
                "fell_back": found.fell_back,
                "notices": found.notices,
                "checkpoint": msgspec.to_builtins(found.checkpoint),
            }
        )
        return
    _show_checkpoint(found.checkpoint)
    for notice in found.notices:
        echo_note(f"interlock: {notice}")


@checkpoint.command()
def write(
    epic_id: WrittenEpic,
    story_id: StoryId,
    phase: Phase,
    task: Task,
    status: StatusWord = "in_progress",
    note: Note = None,
    next_action: Next = None,
    json: Json = False,
) -> None:
    """Save the position of the work, and send the signal that ends this session.

    HEAD and the branch are recorded as they are: commit first. Prints one line, the signal; in a
    supervised session, delivers it too.
    """
    try:
        line = format_line("CHECKPOINT:WRITE", (epic_id, story_id, phase, task))
    except ValueError as error:
        raise SourceError(str(error)) from None
    checkpoints, at = open_checkpoints(), format_timestamp(time.time())
    stated = StatedPosition(
        epic_id=epic_id,
        story_id=story_id,
        phase=phase.strip(),
        task=task.strip(),
        status=read_status(status),
        note=note,
        next_action=_parse_next_action(next_action),
    )
    work = read_git_work(checkpoints.place.root)
    written = checkpoints.update(
        epic_id, lambda before: apply_position(before, stated, work, at), at
    )
    if not json:
        echo(line)
    problem = deliver_line(line)
    if json:
        echo_json(
            {
                "line": line,
                "delivered": None if problem is None else not problem,
                "epic_id": epic_id,
                "generation": written.checkpoint.generation,
                "path": str(written.path),
                "notices": written.notices,
            }
        )
    else:
        for notice in written.notices:
            echo_note(f"interlock: {notice}")
    if problem:
        echo_note(f"interlock: written and printed, but not delivered: {problem}")
        raise typer.Exit(ExitCode.FAILED)


@checkpoint.command()
def clear(
    name: EpicArgument = None,
    epic_id: EpicId = None,
    delete: Delete = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Archive an epic's checkpoint, or delete it with --delete --yes."""
    if delete and not yes:
        raise UsageError("--delete loses the checkpoint for good; add --yes, or omit it to archive")
    checkpoints = open_checkpoints()
    wanted = _choose_name(name, epic_id) or checkpoints.find_active()
    found = checkpoints.read(wanted) if wanted else None
    recoveries = found.checkpoint.recoveries if isinstance(found, LoadedCheckpoint) else ()
    stashes = [entry.stash for entry in recoveries if entry.state == "stashed"]
    word = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    paths = [str(path) for path in checkpoints.clear(wanted, word, delete)] if wanted else []
    if json:
        echo_json({"epic_id": wanted, "deleted": delete, "files": paths, "stashes": stashes})
        return
    done = "deleted" if delete else "archived as"
    echo("\n".join(f"{done} {path}" for path in paths) or "there is no checkpoint to clear")
    for stash in stashes:
        echo_note(f"interlock: stashed work is still there; git stash apply {stash} restores it")


@checkpoint.command("restore-stash")
def restore_stash(number: Number = None, epic_id: EpicId = None, json: Json = False) -> None:
    """Restore the work that a recovery stashed."""
    checkpoints = open_checkpoints()
    wanted = find_epic_id(checkpoints, epic_id)
    restored = restore(checkpoints, wanted, number, format_timestamp(time.time()))
    if json:
        echo_json({"epic_id": wanted, "number": restored.number, "stash": restored.stash})
    else:
        echo(
            f"restored recovery {restored.number} ({restored.stash[:12]}); the stash itself is kept"
        )


def _choose_name(argument: str | None, option: str | None) -> str | None:
    if argument and option and argument != option:
        raise UsageError(f"{argument} and --epic {option} are two epics; name one")
    return argument or option


def _parse_next_action(text: str | None) -> NextAction | None:
    if not text:
        return None
    word, _, rest = text.partition(":")
    kind: ActionType | None = next((a for a in get_args(ActionType) if a == word.strip()), None)
    if kind is None:
        return NextAction(description=text.strip())
    return NextAction(type=kind, description=rest.strip())


def _show_checkpoint(found: Checkpoint) -> None:
    position, git, action = found.position, found.git, found.next_action
    writes = plural(found.generation, "write", "writes")
    echo(f"epic {found.epic.id}: {found.epic.status}, {writes}, last at {found.updated}")
    echo(
        f"  story {position.story_id or '-'}, phase {position.phase or '-'}, "
        f"task {position.task or '-'}"
    )
    dirty = ", with uncommitted work" if git.dirt else ""
    echo(f"  git {git.branch or 'no branch'} at {git.commit[:12] or 'no commit'}{dirty}")
    echo(f"  next {action.type}{f': {action.description}' if action.description else ''}")
    if found.note:
        echo(f"  note {found.note}")
    for entry in found.recoveries:
        if entry.state == "stashed":
            echo(f"  recovery {entry.number} stashed work: {entry.stash[:12]}")
    echo_table(
        ("STORY", "STATUS", "COMMIT", ""),
        ((s.id, s.status, s.commit[:12], s.reason) for s in found.stories),
    )
