"""The verbs epic checkpoint show, write, clear and restore-stash: an epic's place, kept on disk.

`write` is what an agent calls from inside its session, before it ends.

The verb emit: say a line signal, from inside a session or from a script.
"""

import difflib
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.epic import epic
from interlock.cli.output import Json, echo, echo_json, echo_note, echo_table
from interlock.system.errors import SourceError
from interlock.system.text import plural
from interlock.system.time import format_timestamp

if TYPE_CHECKING:
    from interlock.epic.checkpoints.legacy import UnreadableCheckpoint
    from interlock.epic.checkpoints.record import Checkpoint, NextAction
    from interlock.epic.checkpoints.store import Checkpoints, LoadedCheckpoint


Type = Annotated[str, typer.Argument(metavar="TYPE", help="For example STORY_STARTED.")]
Payload = Annotated[str | None, typer.Argument(help="Fields joined by colons, for example 3-1.")]


@app.command()
def emit(type_: Type, payload: Payload = None, json: Json = False) -> None:
    """Say a line signal. Prints the canonical line; in a supervised session, delivers it too."""
    line = _line(type_, payload)
    if not json:
        echo(line)
    problem = delivered(line)
    if json:
        echo_json({"line": line, "delivered": None if problem is None else not problem})
    if problem:
        echo_note(f"interlock: printed, but not delivered: {problem}")
        raise typer.Exit(ExitCode.FAILED)


def _line(kind: str, payload: str | None) -> str:
    from interlock.signals.catalogue import list_signals
    from interlock.signals.lines import format_line

    types = dict.fromkeys(row.name.partition(":")[0] for row in list_signals("line"))
    plain = kind.partition(":")[0]
    if plain not in types:
        near = difflib.get_close_matches(plain.upper().replace("-", "_"), types, 1, 0.75)
        known = f"did you mean {near[0]}?" if near else f"use one of {', '.join(types)}"
        raise SourceError(f"{kind!r} is no signal type; {known}")
    try:
        return format_line(kind, payload)
    except ValueError as error:
        raise SourceError(str(error)) from None


def delivered(line: str) -> str | None:
    """Why it was not delivered; empty when it was, None when there is no session to tell."""
    from interlock.epic.sessions.channel import SOCKET_VARIABLE, TOKEN_VARIABLE, send_signal
    from interlock.signals.catalogue import PREFIX

    path, token = os.environ.get(SOCKET_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    if not path and not token:
        return None
    if not path or not token:
        lacking = TOKEN_VARIABLE if path else SOCKET_VARIABLE
        return f"{lacking} is not set"
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    return send_signal(path, token, kind, payload)


checkpoint = typer.Typer(help="The checkpoint of an epic: its place, kept.", no_args_is_help=True)
epic.add_typer(checkpoint, name="checkpoint")

EpicId = Annotated[
    str | None, typer.Option("--epic", metavar="ID", help="The epic; default the active one.")
]
WrittenEpic = Annotated[str, typer.Option("--epic", metavar="ID", help="The epic.")]
StoryId = Annotated[str, typer.Option("--story", metavar="ID", help="The story at hand.")]
Phase = Annotated[str, typer.Option("--phase", help="The phase at hand, for example phase-2.")]
Task = Annotated[str, typer.Option("--task", help="The task at hand: a number or a few words.")]
StatusWord = Annotated[str, typer.Option("--status", help="How the story stands.")]
Note = Annotated[str | None, typer.Option("--note", help="What the next session must know.")]
Next = Annotated[
    str | None,
    typer.Option("--next", metavar="[TYPE:]TEXT", help="What the next session does first."),
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete instead of archiving; with --yes.")]
Yes = Annotated[bool, typer.Option("--yes", help="Yes, really delete.")]
Number = Annotated[
    int | None, typer.Argument(metavar="NUMBER", help="The recovery's number; default the newest.")
]


@checkpoint.command()
def show(epic_id: EpicId = None, json: Json = False) -> None:
    """The checkpoint of an epic, and whether it is sound."""
    from interlock.epic.checkpoints.legacy import UnreadableCheckpoint

    kept = _checkpoints()
    wanted = epic_id or kept.find_active()
    found = (
        kept.read(wanted)
        if wanted
        else UnreadableCheckpoint("MISSING", "there is no checkpoint here")
    )
    if isinstance(found, UnreadableCheckpoint):
        _show_unread(found, wanted, json)
        raise typer.Exit(ExitCode.FAILED)
    if json:
        echo_json({"found": True, "epic_id": wanted, **_described(found)})
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
    """Keep the place of the work, and say the signal that ends this session.

    HEAD and the branch are recorded as they are: commit first. Prints one line, the signal; in a
    supervised session, delivers it too.
    """
    line = _signal(epic_id, story_id, phase, task)
    written = _written(epic_id, story_id, phase, task, status, note, next_action)
    if not json:
        echo(line)
    problem = delivered(line)
    if json:
        sent = None if problem is None else not problem
        place = {"epic_id": epic_id, "generation": written.checkpoint.generation}
        paths = {"path": str(written.path), "notices": list(written.notices)}
        echo_json({"line": line, "delivered": sent, **place, **paths})
    for notice in written.notices if not json else ():
        echo_note(f"interlock: {notice}")
    if problem:
        echo_note(f"interlock: written and printed, but not delivered: {problem}")
        raise typer.Exit(ExitCode.FAILED)


@checkpoint.command()
def clear(
    epic_id: EpicId = None, delete: Delete = False, yes: Yes = False, json: Json = False
) -> None:
    """Take an epic's checkpoint out of the way. It is archived, unless you say --delete --yes."""
    if delete and not yes:
        raise SourceError("--delete loses the checkpoint for good: say --delete --yes, or archive")
    kept = _checkpoints()
    wanted = epic_id or kept.find_active()
    stashes = _kept_stashes(kept, wanted)
    word = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    moved = kept.clear(wanted, word, delete) if wanted else []
    paths = [str(path) for path in moved]
    if json:
        fields = {"epic_id": wanted, "deleted": delete, "files": paths, "stashes": stashes}
        echo_json(fields)
        return
    done = "deleted" if delete else "archived as"
    echo("\n".join(f"{done} {path}" for path in paths) or "there is no checkpoint to clear")
    for stash in stashes:
        echo_note(f"interlock: work that was set aside is still there: git stash apply {stash}")


@checkpoint.command("restore-stash")
def restore_stash(number: Number = None, epic_id: EpicId = None, json: Json = False) -> None:
    """Bring back the work that a recovery has set aside."""
    from interlock.epic.recovery.recover import restore_stash as restore

    kept = _checkpoints()
    wanted = epic_id or kept.find_active()
    if not wanted:
        raise SourceError("there is no checkpoint here, so nothing was set aside")
    done = restore(kept, wanted, number, _now())
    if json:
        echo_json({"epic_id": wanted, "number": done.number, "stash": done.stash})
    else:
        echo(f"restored recovery {done.number} ({done.stash[:12]}); the stash itself is kept")


def _checkpoints() -> "Checkpoints":
    from interlock.epic.checkpoints.place import find_state_folder
    from interlock.epic.checkpoints.store import Checkpoints

    return Checkpoints(find_state_folder(Path()))


def _now() -> str:
    return format_timestamp(time.time())


def _signal(*fields: str) -> str:
    """The signal's line, checked before anything is written."""
    from interlock.signals.lines import format_line

    try:
        return format_line("CHECKPOINT:WRITE", fields)
    except ValueError as error:
        raise SourceError(str(error)) from None


def _written(
    epic_id: str,
    story_id: str,
    phase: str,
    task: str,
    status: str,
    note: str | None,
    next_action: str | None,
) -> "LoadedCheckpoint":
    from interlock.epic.checkpoints.record import StatedPosition, apply_position
    from interlock.epic.recovery.git_state import read_git_work
    from interlock.epic.status import read_status

    kept, at = _checkpoints(), _now()
    said = StatedPosition(
        epic_id=epic_id,
        story_id=story_id,
        phase=phase.strip(),
        task=task.strip(),
        status=read_status(status),
        note=note,
        next_action=_next_action(next_action),
    )
    work = read_git_work(kept.place.root)
    return kept.update(epic_id, lambda before: apply_position(before, said, work, at), at)


def _next_action(said: str | None) -> "NextAction | None":
    from typing import get_args

    from interlock.epic.checkpoints.record import ActionType, NextAction

    if not said:
        return None
    word, _, rest = said.partition(":")
    kind: ActionType | None = next((a for a in get_args(ActionType) if a == word.strip()), None)
    if kind is None:
        return NextAction(description=said.strip())
    return NextAction(type=kind, description=rest.strip())


def _kept_stashes(kept: "Checkpoints", epic_id: str) -> list[str]:
    from interlock.epic.checkpoints.store import LoadedCheckpoint

    found = kept.read(epic_id) if epic_id else None
    entries = found.checkpoint.recoveries if isinstance(found, LoadedCheckpoint) else ()
    return [each.stash for each in entries if each.state == "stashed"]


def _described(found: "LoadedCheckpoint") -> dict[str, Any]:
    import msgspec

    return {
        "path": str(found.path),
        "shape": found.shape,
        "fell_back": found.fell_back,
        "notices": list(found.notices),
        "checkpoint": msgspec.to_builtins(found.checkpoint),
    }


def _show_unread(found: "UnreadableCheckpoint", epic_id: str, json: bool) -> None:
    if json:
        why = {"kind": found.kind, "code": found.code, "sentence": found.sentence}
        echo_json({"found": False, "epic_id": epic_id, **why})
    else:
        echo_note(f"interlock: {found.kind} ({found.code}): {found.sentence}")


def _show_checkpoint(found: "Checkpoint") -> None:
    here, git, action = found.position, found.git, found.next_action
    number = plural(found.generation, "write", "writes")
    echo(f"epic {found.epic.id}: {found.epic.status}, {number}, last at {found.updated}")
    echo(f"  story {here.story_id or '-'}, phase {here.phase or '-'}, task {here.task or '-'}")
    dirty = ", with uncommitted work" if git.dirt else ""
    echo(f"  git {git.branch or 'no branch'} at {git.commit[:12] or 'no commit'}{dirty}")
    echo(f"  next {action.type}{f': {action.description}' if action.description else ''}")
    if found.note:
        echo(f"  note {found.note}")
    stashes = [each for each in found.recoveries if each.state == "stashed"]
    for each in stashes:
        echo(f"  recovery {each.number} set work aside: {each.stash[:12]}")
    echo_table(
        ("STORY", "STATUS", "COMMIT", ""),
        ((s.id, s.status, s.commit[:12], s.reason) for s in found.stories),
    )
