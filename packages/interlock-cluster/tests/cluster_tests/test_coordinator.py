"""Coordinators are real processes: killed, another takes over; asked to stop, they hand over.

And the other verbs for many machines: a journal moved to PostgreSQL and back, and least privilege.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from interlock.api.project import Project
from interlock.api.run import RunWork
from interlock.api.start import go_on
from interlock.api.work import NoDisplay, load_circuit
from interlock.journal.address import PostgresAddress
from interlock.journal.audit import audit
from interlock.journal.database import open_reader
from interlock.journal.history import compute_digest
from interlock.journal.ownership import StaleEpochError, claim_due_run
from interlock.journal.runs import find_run
from interlock.runtime.settings import RunConfig
from interlock.system.errors import StateError, StoreError, UsageError
from interlock_cluster.machines import initialize_database, move_database
from tests.world.command_line import World
from tests.world.processes import hear, wait_for

CIRCUIT = """\
circuit: slow
version: 1
start: write
ends: {done: healthy, dropped: unhealthy}
steps:
  write: {role: author, timeout: 5m, prompt: "Write {{ case.topic }}."}
  judge: {role: author, timeout: 5m, prompt: "Judge {{ case.topic }}."}
  allow: {gate: true, timeout: 7d, answer: approval, prompt: "Send?"}
rules:
  - {at: write, to: judge}
  - {at: judge, to: allow}
  - {at: allow, when: decision == "approve", to: done}
otherwise: {to: dropped}
"""
COUNT = 6


@pytest.fixture
def world(tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    made = World(tmp_path)
    made.write("circuits/slow.yaml", CIRCUIT)
    made.cases(*(f"C{number}" for number in range(COUNT)))
    # The agent waits until the test lets it answer, so that nothing depends on who is fast.
    made.write(
        "agent.sh", "#!/bin/sh\necho >> asked\nwhile [ ! -e go ]; do sleep 0.05; done\necho '{}'\n"
    )
    (tmp_path / "agent.sh").chmod(0o755)
    return made


def begin(world: World) -> None:
    words = ("--cases", "cases.jsonl", "--detach", "--agent", "exec:./agent.sh", "--parallel", "2")
    said = world.say("run", "slow", *words)
    assert (said.code, said.out.splitlines()[0]) == (0, "run 1: running; 6 open; 0 dispatches"), (
        said
    )


@contextmanager
def coordinator(world: World, name: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "coordinator", "--name", name],
        cwd=world.folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate(timeout=30)


def audit_all(db: PostgresAddress | Path) -> list[str]:
    with open_reader(db) as connection:
        return [f"{each.id} {each.subject}" for each in audit(connection, load_circuit)]


def test_a_coordinator_that_is_killed_is_replaced_and_nothing_is_done_twice(
    world: World, postgres: PostgresAddress
) -> None:
    begin(world)
    with coordinator(world, "one") as one:
        assert hear(one, "taken") == "run 1: taken, epoch 1"
        wait_for(lambda: len((world.folder / "asked").read_text()) >= 2)
        # Two of one name are no problem: who they are is known by their start.
        with coordinator(world, "one") as other:
            hear(other, "is ready")
            one.kill()
            assert hear(other, "taken") == "run 1: taken, epoch 2"
            (world.folder / "go").touch()
            assert hear(other, "run 1: ") == "run 1: waiting"
            assert len(world.say("inbox", "--json").json["questions"]) == COUNT
            for each in world.say("inbox", "--json").json["questions"]:
                assert world.say("answer", str(each["question_id"]), "approve").code == 0
            # An answer makes the run due again; nobody has to resume it.
            while "done" not in hear(other, "run 1: "):
                pass
            other.send_signal(signal.SIGTERM)
            assert hear(other, "has stopped")
            assert other.wait(timeout=30) == 0
    with open_reader(postgres) as connection:
        assert compute_digest(connection, 1)
    assert audit_all(postgres) == []
    with psycopg.connect(postgres.url) as connection:
        epochs = connection.execute("select distinct epoch from journal order by 1").fetchall()
        assert min(epochs) >= (2,)
        assert connection.execute("select count(*) from journal").fetchone() == (3 * COUNT,)


def test_a_coordinator_that_is_asked_to_stop_hands_over_at_once(
    world: World, postgres: PostgresAddress
) -> None:
    begin(world)
    with coordinator(world, "one") as one:
        hear(one, "taken")
        wait_for((world.folder / "asked").exists)
        one.send_signal(signal.SIGTERM)
        assert hear(one, "run 1: ") == "run 1: handed over"
        assert one.wait(timeout=30) == 0
        with psycopg.connect(postgres.url) as connection:
            row = connection.execute(
                "select owner, epoch, status from owners join runs using (run_id)"
            )
            assert row.fetchone() == (None, 1, "running")


def test_a_run_whose_lease_is_in_doubt_waits_until_it_is_sure(
    world: World, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has nothing in flight and may start nothing, which is no reason to end."""
    begin(world)
    (world.folder / "go").touch()
    monkeypatch.chdir(world.folder)
    project = Project(world.folder, db=postgres.url)
    with project.write() as connection:
        claimed = claim_due_run(connection, "one")
    assert claimed is not None
    claimed._renewed_at -= 60  # as after a minute without a word from the database
    work = RunWork(
        project.db,
        lambda connection, owned: go_on(
            project, connection, 1, lambda config: config, claimed=owned
        ),
        NoDisplay(),
        claimed,
    )
    work.join()
    assert work.result().status == "waiting"


def test_a_coordinator_that_lost_a_run_before_it_began_leaves_its_options_alone(
    world: World, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped after it had taken the run; another has it, and a person changed it since."""
    begin(world)
    monkeypatch.chdir(world.folder)
    project = Project(world.folder, db=postgres.url)

    def change(config: RunConfig) -> RunConfig:
        raw = connection.raw
        raw.execute("update owners set owner = 'another', epoch = epoch + 1")
        raw.execute("""update runs set options = '{"parallel": 7}'""")
        return config

    with project.write() as connection:
        claimed = claim_due_run(connection, "one")
        with pytest.raises(StaleEpochError, match="run 1 was taken over"):
            go_on(project, connection, 1, change, claimed=claimed)
        assert find_run(connection, 1).options == {"parallel": 7}


@pytest.mark.parametrize("connects", [True, False])
def test_a_coordinator_without_rights_ends_and_says_what_to_do(
    world: World, postgres: PostgresAddress, connects: bool
) -> None:
    """Waiting would not help it, as it does where a server is away."""
    begin(world)
    user, name = f"nobody_{os.getpid()}", postgres.url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create role {user} login")
        try:
            if not connects:
                connection.execute(f"revoke connect on database {name} from public")
            address = postgres.url.replace("postgres@", f"{user}@", 1)
            said = world.type("coordinator", "--db", address)
        finally:
            connection.execute(f"drop role {user}")
    assert said.code == 1, said
    assert "lacks the rights: let the owner run 'interlock init-db --roles'" in said.err
    assert "waiting for the database" not in said.err


def test_a_file_has_no_coordinator(tmp_path: Path) -> None:
    world = World(tmp_path)
    said = world.say("coordinator", "--db", "plain.db")
    assert said.code == 2
    assert "a coordinator needs a PostgreSQL database; plain.db is a file" in said.err


def test_a_journal_is_moved_there_and_back(tmp_path: Path, postgres: PostgresAddress) -> None:
    world = World(tmp_path)
    world.write("circuits/slow.yaml", CIRCUIT)
    world.cases("A", "B")
    world.write("crew.yaml", '"*": {write: {answer: {}}, judge: {answer: {}}}\n')
    said = world.say("run", "slow", "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    assert said.code == 4, said
    assert world.say("answer", "5", "approve").code == 0  # nobody has taken it yet
    explained = world.say("explain", "A").out
    project = Project(tmp_path)
    moved = move_database(project, str(world.db), postgres.url, lambda _line: None)
    assert (moved.runs, postgres.url in str(moved)) == (1, False)
    with pytest.raises(StoreError, match="its journal was moved to another database"):
        move_or_open(world.db)
    with pytest.raises(StateError, match="was moved before"):
        move_database(project, str(world.db), postgres.url, lambda _line: None)
    os.environ["INTERLOCK_DB"] = postgres.url
    try:
        assert world.say("explain", "A").out == explained
        said = world.say("resume", "1")
        assert said.out.startswith("run 1: waiting; 1 done, 1 open"), said
        assert audit_all(postgres) == []
    finally:
        del os.environ["INTERLOCK_DB"]
    back = tmp_path / "back.db"
    move_database(project, postgres.url, str(back), lambda _line: None)
    assert audit_all(back) == []
    said = world.say("answer", "6", "approve", "--db", str(back))
    assert said.code == 0, said
    assert world.say("resume", "1", "--db", str(back)).out.startswith("run 1: done; 2 done")


KILLED = """
import os, signal, sys
from interlock_cluster.machines import move_database
from interlock.api.project import Project
def report(line):
    if line.startswith(sys.argv[3] + ":"):
        os.kill(os.getpid(), signal.SIGKILL)
move_database(Project("."), sys.argv[1], sys.argv[2], report)
"""


def test_a_move_that_is_killed_anywhere_is_gone_on_with(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    world = World(tmp_path)
    world.write("circuits/slow.yaml", CIRCUIT)
    world.cases(*(f"C{number}" for number in range(20)))
    world.write("crew.yaml", '"*": {write: {answer: {}}, judge: {answer: {}}}\n')
    assert (
        world.say("run", "slow", "--cases", "cases.jsonl", "--agent", "script:crew.yaml").code == 4
    )
    with open_reader(world.db) as connection:
        before = compute_digest(connection, 1)
    for table in ("blobs", "journal", "owners"):
        words = [sys.executable, "-c", KILLED, str(world.db), postgres.url, table]
        killed = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed
        said = world.say("status", "--db", postgres.url)
        assert (said.code, "finish it with 'interlock db move" in said.err) == (1, True), said
        # Nothing is sealed before all is there: the file can still be worked with.
        assert world.say("status").code == 0
    moved = world.say("db", "move", str(world.db), postgres.url)
    assert moved.code == 0, moved
    with open_reader(postgres) as connection:
        assert compute_digest(connection, 1) == before
    assert audit_all(postgres) == []
    assert "its journal was moved to another database" in world.say("status").err


def move_or_open(db: Path) -> None:
    with open_reader(db):
        pass


ROLES = {
    "interlock_reader": {
        "select count(*) from journal": True,
        "insert into mail (box, name, body, at) values ('answers', '1', '', 0)": False,
        "update cases set priority = 1": False,
    },
    "interlock_answerer": {
        "select count(*) from questions": True,
        "insert into mail (box, name, body, at) values ('answers', '1', '', 0)": True,
        "insert into mail (box, name, body, at, written_by) values ('a', '2', '', 0, 'ann')": False,
        "delete from mail": False,
        "update owners set epoch = 9": False,
    },
    "interlock_worker": {
        "select count(*) from blobs": False,
        "select count(*) from runs": False,
        "insert into journal select * from journal": False,
        "update cases set status = 'ended'": False,
    },
    "interlock_coordinator": {
        "update owners set epoch = epoch + 1": True,
        "insert into blobs values (1, '', 0, '')": True,
        "update journal set epoch = 0": False,
        "delete from blobs": False,
        "update schema_versions set version = 9": False,
        "create table mine (x int)": False,
    },
}


def test_each_role_may_do_what_it_needs_and_nothing_else(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    project = Project(tmp_path, db=postgres.url)
    assert initialize_database(project, roles=True) == initialize_database(project, roles=True)
    with psycopg.connect(postgres.url) as connection:
        for role, statements in ROLES.items():
            for statement, allowed in statements.items():
                connection.execute(f"set role {role}")
                try:
                    connection.execute(statement)
                    done = True
                except psycopg.errors.InsufficientPrivilege:
                    done = False
                connection.rollback()
                assert done is allowed, (role, statement)
    with pytest.raises(UsageError, match="is a file: it has no roles"):
        initialize_database(Project(tmp_path, db=tmp_path / "i.db"), roles=True)
