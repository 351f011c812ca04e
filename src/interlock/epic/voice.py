"""What the coordinator itself says about an epic: line signals, shown and kept.

Each is one canonical line, in a file beside the sessions' own. Said again after a crash it is there
twice: what a reader makes of a repeated line is written in the protocol.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from interlock.signals.line_payload import canonical_line

_OPEN: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST: Final = 500


class SignalLog:
    """Says signals. `show` gets each line at once."""

    def __init__(self, path: Path, show: Callable[[str], None], now: Callable[[], float]) -> None:
        self.said: list[str] = []
        self._path = path
        self._show = show
        self._now = now

    def __call__(self, line: str) -> None:
        self.said.append(line)
        self._keep({"at": self._now(), "line": line})
        self._show(line)

    def say(
        self, kind: str, payload: Sequence[str] | Mapping[str, str] | str | None = None
    ) -> None:
        """A signal by its type and fields; signs that no payload may hold become blanks."""
        if isinstance(payload, str):
            payload = _plain(payload)
        elif isinstance(payload, Sequence):
            payload = [_plain(each) for each in payload]
        self(canonical_line(kind, payload))

    def _keep(self, what: Mapping[str, object]) -> None:
        """One that cannot be kept is still shown."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self._path, _OPEN, 0o600)
            try:
                os.write(opened, msgspec.json.encode(what) + b"\n")
            finally:
                os.close(opened)


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_LONGEST]
