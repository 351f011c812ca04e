"""A case's folder `ROOT/RUN/CASE/`: its signal, its prompts and its artifacts, as bytes in files.

Nothing may lead out of the root: names are checked and symbolic links refused. An artifact is read
here as a reply, somebody else's, or a doubt; when to look is the carrier's business, and what an
answer is worth the loop's.
"""

import codecs
import os
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.carrier import MAX_ANSWER, Ask, Reply
from interlock.engine.case import Usage
from interlock.signals.signal_file import SignalFile, encode_signal, read_artifact, read_signal
from interlock.system.errors import SourceError
from interlock.system.files import read_file, write_file
from interlock.system.strict_json import Problem, read_object

SIGNAL = "signal.json"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)


class Papers(msgspec.Struct, frozen=True):
    """The names of one dispatch's files."""

    prompt: str
    artifact: str


Names = Callable[[str, int], Papers]
"""From a step and an attempt to the names of its papers; applications bring their own."""


def plain_names(step: str, attempt: int) -> Papers:
    """`prompt-STEP.md` and `STEP-result.json`; a later attempt has a prompt of its own."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return Papers(f"prompt-{step}{again}.md", f"{step}-result.json")


class CaseFolder(msgspec.Struct, frozen=True):
    """The absolute paths of one dispatch."""

    folder: Path
    prompt: Path
    artifact: Path
    signal: Path

    def moved(self) -> bool:
        """Whether the folder's name leads elsewhere by now."""
        return not self.folder.is_dir() or os.path.realpath(self.folder) != str(self.folder)


def run_folder(root: Path, run_id: int) -> Path:
    """The folder of a run; SourceError if it leads elsewhere."""
    return _made(root, f"{run_id}")


def case_folder(root: Path, run_id: int, case_no: int, papers: Papers) -> CaseFolder:
    """The folder of a case, made if need be; SourceError if it cannot be or leads elsewhere."""
    for name in (papers.prompt, papers.artifact):
        if not _SAFE.fullmatch(name) or name == SIGNAL:
            raise SourceError(f"{name!r} is not a safe file name")
    folder = _made(run_folder(root, run_id), f"{case_no}")
    return CaseFolder(folder, folder / papers.prompt, folder / papers.artifact, folder / SIGNAL)


def _made(above: Path, name: str) -> Path:
    folder = above / name
    try:
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the folder {folder} cannot be used: {error}") from None
    if real != above.resolve() / name:
        raise SourceError(f"{folder} is a symbolic link; symbolic links are refused")
    return real


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
        write_file(path, encode_signal(ended))


def signal_at(path: Path) -> SignalFile | None:
    raw = read_file(path, LARGEST_SIGNAL)
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


LARGEST = MAX_ANSWER + 4096
"""Bytes of an artifact file: an answer and its wrapper."""
_BYTES_PER_TOKEN = 4
_NAMED = ("missing-data", "null-data", "data-not-an-object")


class Doubt(msgspec.Struct, frozen=True):
    """It is no answer as it stands, but its writer may not be done."""

    reason: str


class Foreign(msgspec.Struct, frozen=True):
    """It is not for this dispatch, and is ignored. The sentence is for whoever wrote it."""

    sentence: str


class _Wrapper(msgspec.Struct):
    data: msgspec.Raw


def judge(raw: bytes, ask: Ask) -> Reply | Foreign | Doubt:
    """The answer; or that it is none, because it is somebody else's or not valid.

    A wrong, missing or badly typed dispatch_id makes it somebody else's.
    """
    found = read_artifact(raw)
    if isinstance(found, Problem):
        return _without_answer(found, raw, ask)
    if found.dispatch_id != ask.dispatch_id:
        return _foreign(f"the artifact belongs to dispatch {found.dispatch_id}", ask)
    try:
        content = _data(raw)
    except ValueError as error:
        return Doubt(f"the data is no strict JSON: {error}")
    return Reply(ask.dispatch_id, content, usage=reckoned(ask, content))


def _without_answer(problem: Problem, raw: bytes, ask: Ask) -> Foreign | Doubt:
    if problem.is_stale:
        return _foreign(problem.sentence, ask)
    if problem.kind in _NAMED and (named := _named(raw)) != ask.dispatch_id:
        return _foreign(f"the artifact belongs to dispatch {named}", ask)
    return Doubt(problem.sentence)


def _foreign(sentence: str, ask: Ask) -> Foreign:
    return Foreign(f'{sentence}; write "dispatch_id": {ask.dispatch_id}')


def _named(raw: bytes) -> Any:
    wrapper = read_object(raw)
    return None if isinstance(wrapper, Problem) else wrapper["dispatch_id"]


def _data(raw: bytes) -> bytes:
    """The data as it was written, byte for byte: nothing is rounded on the way."""
    return bytes(msgspec.json.decode(raw.removeprefix(codecs.BOM_UTF8), type=_Wrapper).data)


def reckoned(ask: Ask, content: bytes) -> Usage:
    """Files and workers bring no bill: tokens are bytes over four, prompt and answer apart."""
    asked = len(ask.prompt.encode()) // _BYTES_PER_TOKEN
    return Usage(tokens=asked + len(content) // _BYTES_PER_TOKEN)
