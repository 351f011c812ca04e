"""Where an agent's process works, and what is kept there of its sessions.

Knows `ROOT/RUN/CASE/STEP/`: the agent's own work folder, its prompts, the session that a later
attempt of the same case and step goes on with, and how each attempt ended. Refuses to know CLIs.
"""

import re
from pathlib import Path

import msgspec

from interlock.agents.carrier import Ask
from interlock.agents.files.case_folder import run_folder
from interlock.system.errors import SourceError
from interlock.system.safe_file import read_regular, write_whole

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", re.ASCII)
_LARGEST = 100_000


class Session(msgspec.Struct, frozen=True):
    """A session that can be gone on with, and what it had cost when it was left."""

    session_id: str
    folder: str
    tokens: int = 0


class WorkFolder(msgspec.Struct, frozen=True):
    """The folders of one case's step for one agent."""

    folder: Path
    work: Path
    agent: str

    def paper(self, attempt: int) -> Path:
        return self.folder / f"prompt-{attempt}.md"

    def write_prompt(self, paper: Path, prompt: str) -> None:
        try:
            write_whole(paper, prompt.encode(errors="replace"))
        except OSError as error:
            raise SourceError(f"the prompt {paper} cannot be written: {error.strerror}") from None

    def session(self) -> Session | None:
        """The session that was left here, if its note can be read."""
        raw = read_regular(self._note(), _LARGEST)
        try:
            found = msgspec.json.decode(raw, type=Session) if isinstance(raw, bytes) else None
        except (msgspec.DecodeError, UnicodeError):
            return None
        return found if found and _is_word(found.session_id) else None

    def keep(self, session: Session) -> None:
        """Note it; one that cannot be noted is only not gone on with."""
        if _is_word(session.session_id):
            self._write(self._note(), session)

    def forget(self) -> None:
        self._note().unlink(missing_ok=True)

    def record(self, attempt: int, what: object) -> None:
        """How an attempt ended, for whoever looks later."""
        self._write(self.folder / f"{self.agent}-{attempt}.json", what)

    def _note(self) -> Path:
        return self.folder / f"{self.agent}.session.json"

    def _write(self, path: Path, what: object) -> None:
        try:
            write_whole(path, msgspec.json.encode(what), sync=False)
        except OSError:
            return


def workplace(root: Path, ask: Ask, agent: str) -> WorkFolder:
    """The place of an ask, made if need be; SourceError if it cannot be, or leads elsewhere."""
    if not _SAFE.fullmatch(ask.step):
        raise SourceError(f"the step {ask.step!r} cannot name a folder")
    case = _made(run_folder(root, ask.run_id), f"{ask.case_no}")
    folder = _made(case, ask.step)
    return WorkFolder(folder, _made(folder, "work"), agent)


def _made(above: Path, name: str) -> Path:
    folder = above / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        real = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"the folder {folder} cannot be used: {error}") from None
    if real != above.resolve() / name:
        raise SourceError(f"{folder} is a symbolic link; symbolic links are refused")
    return real


def _is_word(text: str) -> bool:
    """A session's name goes onto a command line: it must not look like a flag."""
    return _SAFE.fullmatch(text) is not None
