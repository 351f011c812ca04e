"""The moment a child of ours exits, told to the event loop; and its exit code, when we want it.

On Linux the dead child is kept unburied until `bury`: as long as it is there, its number, its group
and its session belong to nobody else. Elsewhere a thread waits, and buries at once.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

from interlock.system.signals import HAS_HANDLES


class ProcessExit:
    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        tell: Callable[[], None],
        handles: bool = HAS_HANDLES,
    ) -> None:
        self._child = child
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._handles = handles
        self._handle = os.pidfd_open(child.pid) if handles else -1
        if handles:
            self._loop.add_reader(self._handle, self._over)
        else:
            threading.Thread(target=self._wait, daemon=True).start()

    @property
    def has_come(self) -> bool:
        """Whether the child is dead, also if nobody was told yet."""
        if not self._handles:
            return self._child.returncode is not None
        try:
            found = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return found is not None

    def bury(self) -> int | None:
        """The exit code, negative for a signal; None for one that cannot die."""
        self.let_go()
        with suppress(subprocess.TimeoutExpired):
            return self._child.wait(timeout=0.1 if self._child.returncode is None else None)
        return None

    def _over(self) -> None:
        self.let_go()
        self._tell()

    def let_go(self) -> None:
        """Nobody will be told any more."""
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _wait(self) -> None:
        self._child.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._tell)
