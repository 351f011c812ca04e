"""The verb stop: a word to the process that works on a database."""

import os
import signal
import socket
from pathlib import Path
from typing import Annotated

import typer

from interlock.cli.app import app
from interlock.cli.show import Db, Json, document, say, tell
from interlock.system.errors import StateError


@app.command()
def stop(
    db: Db = None,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for answers.")] = False,
    json: Json = False,
) -> None:
    """Ask the process at work to stop. What it has is kept; resume goes on."""
    from interlock.journal.database import writer_of
    from interlock.runtime.settings import database

    path = database(Path(), db)
    writer = writer_of(path)
    if writer is None:
        raise StateError(f"nobody works on {path}, so there is nothing to stop")
    if writer.host != socket.gethostname():
        raise StateError(f"{path} is worked on by {writer}; stop it there")
    try:
        os.kill(writer.pid, signal.SIGTERM)
        if now:
            # The kernel may merge two pending signals of one kind, but not two kinds.
            os.kill(writer.pid, signal.SIGINT)
    except ProcessLookupError:
        tell(f"{writer} has just ended by itself")
    except PermissionError:
        raise StateError(f"{writer} belongs to another user, who alone can stop it") from None
    if json:
        document({"pid": writer.pid, "host": writer.host, "now": now})
    else:
        say(f"asked {writer} to stop{' at once' if now else ''}")
