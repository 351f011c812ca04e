"""Signals on disk: the first one of a dispatch, the one that lies there, the one nobody ended.

Knows `signal.json` as bytes in a file, and what a prompt's file adds to the prompt. Refuses to know
artifacts and when to look.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from interlock.agents.carrier import Ask
from interlock.agents.files.case_folder import CaseFolder
from interlock.signals.signal_file import SignalFile, encode_signal, read_signal
from interlock.system.safe_file import read_regular, write_whole

LARGEST_SIGNAL = 64 * 1024


def bury(path: Path, alive: Callable[[int], bool]) -> None:
    """End a signal that looks alive although its dispatch is not: the process that should have
    ended it died in between."""
    found = signal_at(path)
    if found is None or found.status not in ("waiting", "processing") or alive(found.dispatch_id):
        return
    was_taken = found.status == "processing"
    ended = msgspec.structs.replace(
        found,
        status="done" if was_taken else "error",
        error="" if was_taken else "this dispatch is over",
    )
    with suppress(OSError):
        write_whole(path, encode_signal(ended))


def signal_at(path: Path) -> SignalFile | None:
    raw = read_regular(path, LARGEST_SIGNAL)
    found = read_signal(raw) if isinstance(raw, bytes) else None
    return found if isinstance(found, SignalFile) else None


def waiting_signal(ask: Ask, place: CaseFolder) -> SignalFile:
    return SignalFile(
        status="waiting",
        dispatch_id=ask.dispatch_id,
        case_id=ask.case_id,
        step=ask.step,
        prompt_path=str(place.prompt),
        artifact_path=str(place.artifact),
        timestamp=timestamp(ask.at),
    )


def told_where(ask: Ask, place: CaseFolder) -> str:
    """The prompt, and after it where the answer is to be written: whoever has only the prompt's
    file can answer."""
    return f"""\
{ask.prompt.rstrip()}

## Where to write

Write the answer to this file, wrapped with the number of this dispatch:

    {place.artifact}
    {{"dispatch_id": {ask.dispatch_id}, "data": ANSWER}}
"""


def timestamp(at: float) -> str:
    """ISO 8601, as the seeds write it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
