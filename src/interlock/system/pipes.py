"""The three pipes of an agent, without blocking and without keeping: bytes in, bytes out.

Knows file descriptors and the event loop. A pipe that the agent closed is no fault.
"""

import asyncio
import os
from collections.abc import Callable
from typing import IO

CHUNK = 64 * 1024
"""Bytes for one turn of the loop: as much as a pipe holds, and short enough for all others."""


class Inlet:
    """What an agent prints, handed on as it comes, one chunk for each turn of the loop."""

    def __init__(self, pipe: IO[bytes] | None, take: Callable[[bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd = _own(pipe)
        self._take = take
        self.is_open = True
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def drain(self, most: int = CHUNK) -> bool:
        """Take what is already there, no more than a pipe holds; whether there was anything."""
        taken = 0
        while self.is_open and taken < most:
            size = self._read()
            if not size:
                break
            taken += size
        return taken > 0

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> int:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()
        return len(data)


class Outlet:
    """What an agent reads: written as fast as it takes it, then closed."""

    def __init__(self, pipe: IO[bytes] | None, content: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd = _own(pipe)
        self._rest = memoryview(content)
        self.is_open = True
        os.set_blocking(fd, False)
        self._loop.add_writer(fd, self._write)
        self._write()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_writer(self._fd)
            os.close(self._fd)

    def _write(self) -> None:
        try:
            while self._rest:
                written = os.write(self._fd, self._rest[:CHUNK])
                self._rest = self._rest[written:]
        except BlockingIOError:
            return
        except OSError:
            pass  # it does not want to read: that is its own affair
        self.close()


def _own(pipe: IO[bytes] | None) -> int:
    """The bare descriptor, from now on ours to close."""
    assert pipe is not None  # noqa: S101
    fd = os.dup(pipe.fileno())
    pipe.close()
    return fd
