"""A signal to exactly one process: the one that was seen, never another that got its id.

On Linux a handle to the process is opened first and its start time compared after, so that no
moment is left in which the id could change hands. Elsewhere psutil compares the start time.
"""

import os
import signal
from contextlib import suppress

import psutil

from interlock.system.census import Process, look

HAS_HANDLES = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


def send(process: Process, number: int) -> bool:
    """Whether the signal went out: False if the process is gone or not ours."""
    try:
        return _by_handle(process, number) if HAS_HANDLES else _by_psutil(process, number)
    except (OSError, psutil.Error):
        return False


def send_group(group: int, number: int) -> None:
    """To a whole process group; the caller knows that the number still belongs to it."""
    with suppress(OSError):
        os.killpg(group, number)


def _by_handle(process: Process, number: int) -> bool:
    handle = os.pidfd_open(process.pid)
    try:
        seen = look(process.pid)
        if seen is None or seen.process != process:
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    finally:
        os.close(handle)


def _by_psutil(process: Process, number: int) -> bool:
    found = psutil.Process(process.pid)
    if found.create_time() != process.started:
        return False
    found.send_signal(number)
    return True
