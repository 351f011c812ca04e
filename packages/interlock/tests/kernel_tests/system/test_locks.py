"""A lock has one living holder, names it, and is free when it has ended."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.system.locks import LockHeldError, hold_lock, lock_owner, take_lock

_HOLD = """
import sys
from pathlib import Path
from interlock.system.locks import hold_lock
with hold_lock(Path(sys.argv[1]), b"me"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_it_names_its_holder_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert lock_owner(path) is None
    with hold_lock(path, b"me"):
        assert lock_owner(path) == b"me"
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(LockHeldError, match="is held by another process") as caught:
            hold_lock(path, b"another").__enter__()
        assert caught.value.owner == b"me"
    assert path.read_bytes() == b""
    assert lock_owner(path) is None


def test_it_is_free_when_its_holder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        assert lock_owner(path) == b"me"
        process.send_signal(signal.SIGKILL)
        process.wait(120)
        assert path.read_bytes() == b"me"
        assert lock_owner(path) is None
        with hold_lock(path, b"you"):
            assert path.read_bytes() == b"you"


def test_who_waits_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = take_lock(path)
    assert held is not None
    threading.Timer(0.05, os.close, [held]).start()
    with hold_lock(path, wait=30):
        assert lock_owner(path) == b""


def test_a_look_disturbs_no_other_look(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert lock_owner(path) is None
    assert take_lock(path) is None
    os.close(looking)


def test_a_child_that_inherits_it_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = take_lock(path)
    assert held is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(held,)) as child:
        os.close(held)
        assert take_lock(path) is None
        assert child.stdin is not None
        child.stdin.close()
        child.wait(120)
    assert take_lock(path) is not None


def test_a_removed_file_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = take_lock(path)
    path.unlink()
    second = take_lock(path)
    assert first is not None
    assert second is not None
    assert os.fstat(second).st_ino == path.stat().st_ino
    assert take_lock(path) is None


def test_below_an_open_folder_and_only_if_it_is_there(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        take_lock(Path("lock"), create=False, dir_fd=folder)
    assert take_lock(Path("lock"), b"me", dir_fd=folder) is not None
    os.close(folder)
    assert lock_owner(tmp_path / "lock") == b"me"


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        take_lock(tmp_path / "lock", b"me")
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_folder_is_locked_without_a_file_in_it(tmp_path: Path) -> None:
    with hold_lock(tmp_path):
        assert take_lock(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
