"""One writer at a time, known by name, and forgotten when it dies."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.journal.database import Writer, only_writer, reading, writer_of, writing
from interlock.system.errors import StoreError

HOLD = """\
import sys
from pathlib import Path
from interlock.journal.database import writing
with writing(Path(sys.argv[1])):
    print("holding", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=20)


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with holder(path) as process:
        who = Writer(process.pid, socket.gethostname(), f"-c {path}")
        assert writer_of(path) == who
        with pytest.raises(StoreError) as caught, writing(path):
            pass
        assert str(caught.value) == (
            f"{path} is in use by process {process.pid} on {who.host} (-c {path}); "
            "wait for it, or 'interlock stop' it"
        )
        with reading(path):
            pass


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with holder(path) as process:
        process.kill()
        process.wait(timeout=20)
        assert writer_of(path) is None
        with writing(path):
            found = writer_of(path)
            assert found is not None
            assert found.pid == os.getpid()


def test_a_writer_that_is_done_leaves_no_name(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with writing(path):
        pass
    assert writer_of(path) is None
    assert path.with_name("i.db.lock").read_text() == ""


def test_nobody_writes_to_what_is_not_there(tmp_path: Path) -> None:
    assert writer_of(tmp_path / "i.db") is None
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_left_no_name_is_another_process(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with only_writer(path):
        path.with_name("i.db.lock").write_text("{")
        with pytest.raises(StoreError) as caught, only_writer(path):
            pass
    assert str(caught.value) == (
        f"{path} is in use by another process; wait for it, or 'interlock stop' it"
    )


def test_somebody_who_only_looks_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with path.with_name("i.db.lock").open("a+") as looker:
        fcntl.flock(looker, fcntl.LOCK_SH)
        moment = threading.Timer(0.02, fcntl.flock, (looker, fcntl.LOCK_UN))
        moment.start()
        with only_writer(path):
            moment.join()
