"""The folder of one case's step for one agent: prompts, sessions, and how its attempts ended."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.carriers.contract import Ask
from interlock.carriers.files.case_folder import make_folder, make_run_folder
from interlock.system.errors import SourceError
from interlock.system.files import read_file, write_file

_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
_MAX_NOTE = 100_000


class Session(msgspec.Struct, frozen=True):
    """A session that can be continued, and its cost so far."""

    session_id: str
    folder: str
    tokens: int = 0


class WorkFolder(msgspec.Struct, frozen=True):
    """The folders of one case's step for one agent."""

    folder: Path
    work: Path
    agent: str

    def prompt_path(self, attempt: int) -> Path:
        return self.folder / f"prompt-{attempt}.md"

    def write_prompt(self, path: Path, prompt: str) -> None:
        try:
            write_file(path, prompt.encode(errors="replace"))
        except OSError as error:
            raise SourceError(f"the prompt {path} cannot be written: {error.strerror}") from None

    def read_session(self) -> Session | None:
        """Return the session that was left here, if its note can be read."""
        raw = read_file(self._session_path(), _MAX_NOTE)
        try:
            found = msgspec.json.decode(raw, type=Session) if isinstance(raw, bytes) else None
        except (msgspec.DecodeError, UnicodeError):
            return None
        return found if found and _is_safe_name(found.session_id) else None

    def keep_session(self, session: Session) -> None:
        """Note the session; without a note it is only not continued."""
        if _is_safe_name(session.session_id):
            self._write_json(self._session_path(), session)

    def forget_session(self) -> None:
        self._session_path().unlink(missing_ok=True)

    def write_record(self, attempt: int, record: object) -> None:
        """Record how an attempt ended."""
        self._write_json(self.folder / f"{self.agent}-{attempt}.json", record)

    def _session_path(self) -> Path:
        return self.folder / f"{self.agent}.session.json"

    def _write_json(self, path: Path, record: object) -> None:
        with suppress(OSError):
            write_file(path, msgspec.json.encode(record), sync=False)


class _AttemptNotes(msgspec.Struct):
    dispatch_id: int
    notes: tuple[str, ...] = ()


def write_attempt_notes(root: Path, ask: Ask, agent: str, notes: Sequence[str]) -> None:
    """Note what people should know of an attempt; a failure to write is ignored."""
    with suppress(SourceError):
        folder = make_work_folder(root, ask, agent)
        folder.write_record(ask.attempt, {"dispatch_id": ask.dispatch_id, "notes": notes})


def read_attempt_notes(root: Path, run_id: int, case_no: int) -> dict[int, tuple[str, ...]]:
    """Return the notes about the agents of a case, by dispatch: for example, that one was killed
    after its result, or left processes behind.

    A record that cannot be read is skipped.
    """
    found: dict[int, tuple[str, ...]] = {}
    for path in sorted((root / f"{run_id}" / f"{case_no}").glob("*/*-*.json")):
        raw = read_file(path, _MAX_NOTE)
        with suppress(msgspec.DecodeError, UnicodeError):
            record = msgspec.json.decode(raw if isinstance(raw, bytes) else b"", type=_AttemptNotes)
            found[record.dispatch_id] = record.notes
    return found


def list_work_files(root: Path, run_id: int, case_no: int, most: int = 500) -> list[Path]:
    """Return the files in the folders of a case: prompts, and what its agents left.

    Links are not followed and hidden files are left out.
    """
    folder = root / f"{run_id}" / f"{case_no}"
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        paths = (Path(place, name) for name in sorted(names) if not name.startswith("."))
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
        if len(found) >= most:
            break
    return found[:most]


def make_work_folder(root: Path, ask: Ask, agent: str) -> WorkFolder:
    """Make the folder of an ask; SourceError if it cannot be made, or leads elsewhere."""
    if not _SAFE_NAME.fullmatch(ask.step):
        raise SourceError(f"the step {ask.step!r} cannot name a folder")
    case = make_folder(make_run_folder(root, ask.run_id), f"{ask.case_no}")
    folder = make_folder(case, ask.step)
    return WorkFolder(folder, make_folder(folder, "work"), agent)


def _is_safe_name(text: str) -> bool:
    """Return whether a session's name is safe on a command line, where it must not look like a
    flag."""
    return _SAFE_NAME.fullmatch(text) is not None
