"""Which session an agent had for a dispatch, so that it can be taken up again after a restart.

A file beside the work folder, not in it: what the agent writes there is its own affair. Knows that
a session belongs to the command that opened it.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.dispatch.safe_file import read_regular, write_whole

LONGEST_ID = 1_000
_MOST = 64 * 1024


class _Noted(msgspec.Struct, frozen=True):
    argv: tuple[str, ...]
    session_id: str


class SessionNote:
    """The note of one dispatch, `FOLDER.session`."""

    def __init__(self, folder: Path, argv: Sequence[str]) -> None:
        self._path = folder.with_name(f"{folder.name}.session")
        self._argv = tuple(argv)

    def session_id(self) -> str:
        """The session that this command opened before, or nothing."""
        raw = read_regular(self._path, _MOST)
        with suppress(ValueError, RecursionError):
            noted = msgspec.json.decode(raw if isinstance(raw, bytes) else b"", type=_Noted)
            if noted.argv == self._argv and len(noted.session_id) <= LONGEST_ID:
                return noted.session_id
        return ""

    def keep(self, session_id: str) -> None:
        """Without a note the dispatch begins anew after a restart: nothing worse."""
        with suppress(OSError):
            write_whole(self._path, msgspec.json.encode(_Noted(self._argv, session_id)))

    def drop(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
