"""Opening a database: made whole, kept safely, refused in words that help, and written by one
process at a time.
"""

import fcntl
import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.journal.connection import RawConnection, transaction
from interlock.journal.database import (
    find_writer,
    hold_writer_lock,
    open_reader,
    open_writer,
)
from interlock.journal.ownership import Writer
from interlock.journal.schema import list_table_sets, read_versions
from interlock.system.errors import StoreError
from tests.world.places import ROOT
from tests.world.world import World

BLOB = "insert into blobs values (?, x'00', 0, x'00')"


def pragma(raw: RawConnection, name: str) -> object:
    return raw.execute(f"pragma {name}").fetchone()[0]


def made(path: Path) -> Path:
    with open_writer(path) as connection, transaction(connection) as raw:
        raw.execute(BLOB, (1,))
    return path


def dangle(raw: RawConnection) -> None:
    """Write what only the commit will refuse."""
    raw.execute("pragma defer_foreign_keys=on")
    raw.execute("insert into questions values (7, 7, null, null)")


def test_what_is_acknowledged_survives_a_power_cut(tmp_path: Path) -> None:
    with open_writer(tmp_path / "i.db") as connection:
        raw = connection.raw
        names = ("journal_mode", "synchronous", "foreign_keys")
        assert [pragma(raw, name) for name in names] == ["wal", 2, 1]


@pytest.mark.parametrize("name", ["i.db", "new/deep/i.db", "a b%20?x#y.db", "ü.db"])
def test_a_new_database_is_made_where_it_is_wanted(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.name for each in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}
    with open_reader(path) as connection:
        found = read_versions(connection.raw)
        assert found == {each.part: each.version for each in list_table_sets()}
        assert connection.raw.execute("select count(*) from blobs").fetchone() == (1,)


def test_killed_while_it_is_made_it_is_whole_or_not_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.world.kill_creation", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["absent"] > 10


def test_a_reader_sees_what_is_committed_and_nothing_else(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    count = "select count(*) from blobs"
    with open_writer(path) as writer, open_reader(path) as reader:
        with transaction(writer) as raw:
            raw.execute(BLOB, (2,))
            assert reader.raw.execute(count).fetchone() == (1,)
        assert reader.raw.execute(count).fetchone() == (2,)


def test_a_reader_can_change_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    with pytest.raises(StoreError, match="it is read-only"), open_reader(path) as connection:
        connection.raw.execute(BLOB, (2,))


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    with open_writer(path) as connection:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection) as raw:
            raw.executemany(BLOB, [(2,), (1,)])
        with transaction(connection) as raw:
            assert raw.execute("select blob_id from blobs").fetchall() == [(1,)]


def test_a_commit_that_fails_leaves_nothing_and_the_connection_usable(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    with open_writer(path) as connection:
        with pytest.raises(sqlite3.IntegrityError), transaction(connection) as raw:
            dangle(raw)
        with transaction(connection) as raw:
            assert raw.execute("select count(*) from questions").fetchone() == (0,)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("update schema_versions set version = 9999 where part = 'journal'")
    raw.close()


def stranger(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as raw:
        raw.execute("create table mine (x)")
    raw.close()


def unreleased(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("drop table schema_versions")
        raw.execute("create table alembic_version (version_num text)")
    raw.close()


DAMAGED = (
    "it is damaged: restore a copy, or move it away to start over "
    "(SQLite says: database disk image is malformed)"
)
FOREIGN = "this is not an Interlock database: move it away or name another with --db"
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "newer": (
        newer,
        (
            "its journal tables have version 9999, this Interlock knows 1: use the newer Interlock "
            "that made it"
        ),
    ),
    "made before the first release": (
        unreleased,
        (
            "it was made by a version of Interlock before the first release: start a new one (name "
            "it with --db), or use the Interlock that made it"
        ),
    ),
    "somebody else's": (stranger, FOREIGN),
    "empty": (lambda path: path.write_bytes(b""), FOREIGN),
    "no database": (
        lambda path: path.write_bytes(b"just a text, and long enough to be one" * 100),
        f"{FOREIGN} (SQLite says: file is not a database)",
    ),
    "header only": (
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        DAMAGED,
    ),
    "one page": (
        lambda path: path.write_bytes(path.read_bytes()[:4096]),
        DAMAGED,
    ),
}


@pytest.mark.parametrize("open_it", [open_reader, open_writer])
@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_used_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str, open_it: Callable[..., object]
) -> None:
    path = made(tmp_path / "i.db")
    spoil, problem = BROKEN[name]
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as caught, open_it(path):  # type: ignore[attr-defined]
        pass
    assert str(caught.value) == f"{path}: {problem}"
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_database_is_told_before_or_by_the_audit(tmp_path: Path, part: float) -> None:
    world = World(tmp_path)
    world.begin(*(f"C{number}" for number in range(40)))
    world.work()
    size = world.db.stat().st_size
    os.truncate(world.db, int(size * part))
    try:
        output = [fault.id for fault in world.faults()]
    except StoreError as error:
        output = [str(error)]
    assert output


@pytest.mark.parametrize("open_it", [open_reader, open_writer])
def test_a_folder_is_no_database(tmp_path: Path, open_it: Callable[..., object]) -> None:
    with pytest.raises(StoreError) as caught, open_it(tmp_path):  # type: ignore[attr-defined]
        pass
    assert str(caught.value) == f"{tmp_path} is not a file: move it away or name another with --db"


def test_a_missing_database_is_told_to_readers(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with pytest.raises(StoreError) as caught, open_reader(path):
        pass
    assert str(caught.value) == f"there is no database at {path}"
    assert list(tmp_path.iterdir()) == []


def test_one_that_another_program_holds_locked(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A")
    other = sqlite3.connect(world.db, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StoreError) as caught:
        world.begin("B")
    other.close()
    assert str(caught.value) == (
        f"{world.db}: another program holds it locked: close that program and try again "
        "(SQLite says: database is locked)"
    )
    assert world.ends() == {"A": "open"}


def powerless(how: str, db: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.world.unprivileged", how, str(db)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


READ_ONLY = "it is read-only: make the file and its folder writable, or use --db elsewhere"


def test_a_read_only_file(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    path.chmod(0o400)
    assert powerless("write", path) == (
        f"{path}: {READ_ONLY} (SQLite says: attempt to write a readonly database)\n"
    )
    assert powerless("read", path) == ""


def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    path = made(folder / "i.db")
    path.with_name("i.db.lock").unlink()
    folder.chmod(0o500)
    denied = "Permission denied; check the path and its rights\n"
    assert powerless("write", path) == f"{path}.lock: {denied}"
    assert powerless("write", folder / "new.db") == f"{folder}/new.db.lock: {denied}"
    assert powerless("write", folder / "sub" / "new.db") == f"{folder}/sub: {denied}"
    assert [each.name for each in folder.iterdir()] == ["i.db"]
    folder.chmod(0o700)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = made(tmp_path / "i.db")
    path.chmod(0o000)
    problem = "it cannot be opened: check that the path exists and may be read"
    result = f"{path}: {problem} (SQLite says: unable to open database file)\n"
    assert (powerless("read", path), powerless("write", path)) == (result, result)


def test_a_full_disk_stops_a_run_that_goes_on_when_there_is_room(tmp_path: Path) -> None:
    for name in ("roomy", "full"):
        (tmp_path / name).mkdir()
    roomy, full = World(tmp_path / "roomy"), World(tmp_path / "full")
    for world in (roomy, full):
        world.begin(*(f"C{number}" for number in range(200)))
    roomy.work()
    (pages,) = full.rows("pragma page_count")[0]
    with pytest.raises(StoreError) as caught:
        full.work(pages=int(str(pages)) + 8, places=7)
    assert str(caught.value) == (
        f"{full.db}: the disk is full: free some space, then 'interlock resume'; nothing was lost "
        "(SQLite says: database or disk is full)"
    )
    assert full.faults() == []
    assert "open" in full.ends().values()
    assert full.work() == "done"
    assert (full.digest(), full.faults()) == (roomy.digest(), [])


def test_a_folder_of_our_own_is_kept_out_of_git(tmp_path: Path) -> None:
    made(tmp_path / ".interlock" / "i.db")
    assert (tmp_path / ".interlock" / ".gitignore").read_text() == "*\n"
    (tmp_path / "there").mkdir()
    made(tmp_path / "there" / "i.db")
    made(tmp_path / "new" / "i.db")
    assert not list(tmp_path.glob("[tn]*/.gitignore"))


HOLD = """\
import sys
from pathlib import Path
from interlock.journal.database import open_writer
with open_writer(Path(sys.argv[1])):
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
        process.communicate(timeout=120)


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with holder(path) as process:
        who = Writer(process.pid, socket.gethostname(), f"-c {path}")
        assert find_writer(path) == who
        with pytest.raises(StoreError) as caught, open_writer(path):
            pass
        assert str(caught.value) == (
            f"{path} is in use by process {process.pid} on {who.host} (-c {path}); "
            "wait for it, or 'interlock stop' it"
        )
        with open_reader(path):
            pass


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with holder(path) as process:
        process.kill()
        process.wait(timeout=120)
        assert find_writer(path) is None
        with open_writer(path):
            found = find_writer(path)
            assert found is not None
            assert found.pid == os.getpid()


def test_a_writer_that_is_done_leaves_no_name(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with open_writer(path):
        pass
    assert find_writer(path) is None
    assert path.with_name("i.db.lock").read_text() == ""


def test_nobody_writes_to_what_is_not_there(tmp_path: Path) -> None:
    assert find_writer(tmp_path / "i.db") is None
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_left_no_name_is_another_process(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with hold_writer_lock(path):
        path.with_name("i.db.lock").write_text("{")
        with pytest.raises(StoreError) as caught, hold_writer_lock(path):
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
        with hold_writer_lock(path):
            moment.join()
