"""The watcher under test, as a process group of its own.

Knows how to start it, whether it lives, what it said last, and how to leave nothing of it running.
Refuses to know the protocol.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from interlock.system.errors import SourceError

_GRACE = 4.0
_TICK = 0.01
_TAIL = 400
_PROCESSES = Path("/proc")


class Watcher:
    """One run of the command."""

    def __init__(self, argv: Sequence[str], workspace: Path, root: Path, log: Path) -> None:
        self._mark = f"INTERLOCK_ROOT={root}"
        self._log = log
        try:
            with log.open("wb") as out:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    argv,
                    cwd=workspace,
                    env={**os.environ, "INTERLOCK_ROOT": str(root)},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
        except OSError as error:
            raise SourceError(f"{argv[0]} cannot be started: {error.strerror}") from None

    def ended(self) -> str:
        """How it ended, '' while it lives."""
        code = self._process.poll()
        if code is None:
            return ""
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return f"the watcher ended with {how}{self.said()}"

    def said(self) -> str:
        words = self._log.read_bytes()[-_TAIL:].decode(errors="replace").strip()
        return f", saying: {words}" if words else ""

    def end(self) -> None:
        """The group first, politely; then whatever left the group but carries our mark."""
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self._signal(signal.SIGKILL)
        self._process.wait()
        limit = time.monotonic() + _GRACE
        while (strays := list(self._strays())) and time.monotonic() < limit:
            for pid in strays:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_TICK)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _strays(self) -> Iterator[int]:
        """Processes started by the watcher, known by the environment they inherited (Linux)."""
        for folder in _PROCESSES.glob("[0-9]*"):
            with suppress(OSError):
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
