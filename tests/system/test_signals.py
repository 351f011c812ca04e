"""A signal reaches the process that was meant, or nobody."""

import signal
import subprocess

import psutil
import pytest

from interlock.system import process_tree
from interlock.system.process_table import Process, read_process
from interlock.system.process_tree import send_signal


def child() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"])


def test_it_arrives() -> None:
    process = child()
    seen = read_process(process.pid)
    assert seen is not None
    assert send_signal(seen.process, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert not send_signal(seen.process, signal.SIGTERM), "it is gone"


def test_a_reused_number_is_somebody_else() -> None:
    process = child()
    seen = read_process(process.pid)
    assert seen is not None
    before = Process(process.pid, seen.process.started - 1)
    assert not send_signal(before, signal.SIGKILL)
    assert not process_tree._send_by_psutil(before, signal.SIGKILL)
    assert process.poll() is None
    process.kill()
    process.wait()


def test_psutil_does_the_same() -> None:
    process = child()
    met = Process(process.pid, psutil.Process(process.pid).create_time())
    assert process_tree._send_by_psutil(met, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("pid", [0, -1, 2**31 - 1])
def test_numbers_of_nobody(pid: int) -> None:
    assert not send_signal(Process(pid, 1), signal.SIGKILL)


def test_a_group() -> None:
    process = subprocess.Popen(["sleep", "300"], start_new_session=True)
    process_tree.kill_group(process.pid, signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    process_tree.kill_group(process.pid, signal.SIGTERM)
