"""A case's folder `ROOT/RUN/CASE/`: its signal, its prompts and its artifacts.

Nothing may lead out of the root: names are checked and symbolic links refused. An artifact is read
as a reply, as foreign, or as doubtful, because its writer may not be done.
"""

import codecs
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import MAX_ANSWER, Ask, Reply
from interlock.carriers.files import DispatchFiles
from interlock.engine.case import Usage
from interlock.signals.signal_file import SignalFile, encode_signal, read_artifact, read_signal
from interlock.system.errors import SourceError
from interlock.system.files import make_own_folder, read_file, write_file
from interlock.system.strict_json import Problem, read_object
from interlock.system.time import format_timestamp

SIGNAL_FILE = "signal.json"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)


class CaseFolder(msgspec.Struct, frozen=True):
    """The absolute paths of one dispatch."""

    folder: Path
    prompt: Path
    artifact: Path
    signal: Path

    def has_moved(self) -> bool:
        """Return whether the folder's name leads elsewhere by now."""
        return not self.folder.is_dir() or os.path.realpath(self.folder) != str(self.folder)


def make_run_folder(root: Path, run_id: int) -> Path:
    """Return the folder of a run; SourceError if it leads elsewhere."""
    return make_folder(root, f"{run_id}")


def make_case_folder(root: Path, run_id: int, case_no: int, names: DispatchFiles) -> CaseFolder:
    """Make the folder of a case; SourceError if it cannot be made or leads elsewhere."""
    for name in (names.prompt, names.artifact):
        if not _SAFE_NAME.fullmatch(name) or name == SIGNAL_FILE:
            raise SourceError(f"{name!r} is not a safe file name")
    folder = make_folder(make_run_folder(root, run_id), f"{case_no}")
    return CaseFolder(folder, folder / names.prompt, folder / names.artifact, folder / SIGNAL_FILE)


def make_folder(parent: Path, name: str) -> Path:
    """Make a folder below another; SourceError if it cannot be made, or is a symbolic link."""
    folder = parent / name
    try:
        make_own_folder(parent, mode=0o700)
        folder.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the folder {folder} cannot be used: {error}") from None
    if real != parent.resolve() / name:
        raise SourceError(f"{folder} is a symbolic link; symbolic links are refused")
    return real


MAX_SIGNAL = 64 * 1024


def end_stale_signal(path: Path, alive: Callable[[int], bool]) -> None:
    """End a signal whose process died before it could do so."""
    found = read_signal_at(path)
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


def read_signal_at(path: Path) -> SignalFile | None:
    raw = read_file(path, MAX_SIGNAL)
    found = read_signal(raw) if isinstance(raw, bytes) else None
    return found if isinstance(found, SignalFile) else None


def build_signal(ask: Ask, place: CaseFolder) -> SignalFile:
    return SignalFile(
        status="waiting",
        dispatch_id=ask.dispatch_id,
        case_id=ask.case_id,
        step=ask.step,
        prompt_path=str(place.prompt),
        artifact_path=str(place.artifact),
        timestamp=format_timestamp(ask.at),
    )


def render_prompt_file(ask: Ask, place: CaseFolder) -> str:
    """Return the prompt, followed by where the answer goes, so that the prompt's file is enough to
    answer."""
    return f"""\
{ask.prompt.rstrip()}

## Where to write

Write the answer to this file, wrapped with the number of this dispatch:

    {place.artifact}
    {{"dispatch_id": {ask.dispatch_id}, "data": ANSWER}}
"""


MAX_ARTIFACT = MAX_ANSWER + 4096
"""The largest artifact file in bytes: an answer and its wrapper."""
_BYTES_PER_TOKEN = 4
_HAS_ID = ("missing-data", "null-data", "data-not-an-object")


class DoubtfulArtifact(msgspec.Struct, frozen=True):
    """An artifact that is no answer as it stands; its writer may not be done."""

    reason: str


class ForeignArtifact(msgspec.Struct, frozen=True):
    """An artifact that is not for this dispatch; the sentence is for its writer."""

    sentence: str


class _Wrapper(msgspec.Struct):
    data: msgspec.Raw


def judge_artifact(raw: bytes, ask: Ask) -> Reply | ForeignArtifact | DoubtfulArtifact:
    """Return the answer, or why the artifact is foreign or doubtful.

    A wrong, missing or badly typed dispatch_id makes it foreign.
    """
    found = read_artifact(raw)
    if isinstance(found, Problem):
        return _judge_problem(found, raw, ask)
    if found.dispatch_id != ask.dispatch_id:
        return _build_foreign(f"the artifact belongs to dispatch {found.dispatch_id}", ask)
    try:
        content = _extract_data(raw)
    except ValueError as error:
        return DoubtfulArtifact(f"the data is not strict JSON: {error}")
    return Reply(ask.dispatch_id, content, usage=estimate_usage(ask, content))


def _judge_problem(problem: Problem, raw: bytes, ask: Ask) -> ForeignArtifact | DoubtfulArtifact:
    if problem.is_stale:
        return _build_foreign(problem.sentence, ask)
    if problem.kind in _HAS_ID and (named := _read_dispatch_id(raw)) != ask.dispatch_id:
        return _build_foreign(f"the artifact belongs to dispatch {named}", ask)
    return DoubtfulArtifact(problem.sentence)


def _build_foreign(sentence: str, ask: Ask) -> ForeignArtifact:
    return ForeignArtifact(f'{sentence}; write "dispatch_id": {ask.dispatch_id}')


def _read_dispatch_id(raw: bytes) -> Any:
    wrapper = read_object(raw)
    return None if isinstance(wrapper, Problem) else wrapper["dispatch_id"]


def _extract_data(raw: bytes) -> bytes:
    """Return the data byte for byte as it was written, so that nothing is rounded."""
    return bytes(msgspec.json.decode(raw.removeprefix(codecs.BOM_UTF8), type=_Wrapper).data)


def estimate_usage(ask: Ask, content: bytes) -> Usage:
    """Estimate the usage of agents that report none: four bytes are a token."""
    asked = len(ask.prompt.encode()) // _BYTES_PER_TOKEN
    return Usage(tokens=asked + len(content) // _BYTES_PER_TOKEN)
