"""What is PostgreSQL's own: refusals in words that help, no password in any of them."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from interlock.api.project import Project
from interlock.journal import journal
from interlock.journal.address import PostgresAddress, beside, identify, parse_address
from interlock.journal.database import (
    has_database,
    open_reader,
    open_writer,
)
from interlock.journal.journal import Journal, Refusal, TurnWrites
from interlock.journal.ownership import own_run
from interlock.journal.runs import find_run
from interlock.journal.schema import list_table_sets, read_versions
from interlock.system.errors import NoDatabaseError, StoreError, UsageError
from interlock_cluster import postgres
from interlock_cluster.checks import check_cluster
from interlock_cluster.postgres import server_connection
from tests.world.pooler import run_pooler
from tests.world.postgres_server import Server, administer, locate, make_database, run_server
from tests.world.world import World

SECRET = "hunter2%40x"


def refused(address: PostgresAddress) -> str:
    with pytest.raises(StoreError) as caught, open_writer(address):
        pass
    return str(caught.value)


def test_an_address_shows_no_password_and_names_its_files() -> None:
    one = parse_address(f"postgresql://ann:{SECRET}@db.example:6432/work", Path("/p"))
    other = parse_address("postgres://bob@db.example:6432/work?sslmode=verify-full", Path("/q"))
    assert isinstance(one, PostgresAddress)
    assert str(one) == repr(one) == "postgresql://ann@db.example:6432/work"
    assert identify(one) == identify(other)
    assert beside(one, "agents").parent == Path("/p/.interlock")
    assert SECRET not in str(beside(one, "agents"))
    assert parse_address("plain.db", Path("/p")) == Path("plain.db")
    for word in ("mysql://h/d", "postgresql://u:p@ss:word@h:x/d"):
        with pytest.raises(UsageError) as caught:
            parse_address(word, Path())
        assert "ss:word" not in str(caught.value)


def test_an_empty_database_is_made_by_a_writer_and_told_to_a_reader(tmp_path: Path) -> None:
    with make_database(tmp_path, empty=True) as address:
        assert not has_database(address)
        with pytest.raises(NoDatabaseError), open_reader(address):
            pass
        with open_writer(address), open_reader(address) as reader:
            found = read_versions(reader.raw)
            assert found == {each.part: each.version for each in list_table_sets()}


BROKEN = {
    "newer": (
        "update schema_versions set version = 9999 where part = 'journal'",
        "its journal tables have version 9999, this Interlock knows 1",
    ),
    "somebody else's": (
        "drop table schema_versions",
        "and it is not empty (it has the table",
    ),
    "moved away": (
        "update schema_versions set version = -1 where part = 'journal'",
        "its journal was moved to another database",
    ),
    "made before the first release": (
        "drop table schema_versions; create table alembic_version (version_num text)",
        "it was made by a version of Interlock before the first release",
    ),
    "half made": ("drop table owners cascade", "tables are missing"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, postgres: PostgresAddress, name: str
) -> None:
    statement, problem = BROKEN[name]
    World(tmp_path, db=postgres).begin("A")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(statement)
    with pytest.raises(StoreError) as caught:
        World(tmp_path, db=postgres).begin("B")
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(postgres))


def test_servers_that_cannot_be_reached(tmp_path: Path) -> None:
    folder = tmp_path
    nobody = PostgresAddress(f"postgresql://ann:{SECRET}@127.0.0.1:1/work", folder)
    assert "no server answers there: check host and port" in refused(nobody)
    nowhere = PostgresAddress(f"postgresql://ann:{SECRET}@no.such.host.invalid/work", folder)
    assert "no server has this name" in refused(nowhere)
    missing = locate("nothing_here", folder)
    assert "there is no such database on the server" in refused(missing)
    assert SECRET not in refused(nobody) + refused(nowhere)


def test_a_database_of_another_encoding_is_refused(tmp_path: Path) -> None:
    with administer() as connection:
        connection.execute(
            "create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0"
        )
    try:
        said = refused(locate("latin", tmp_path))
        assert "its encoding is LATIN1; create the database with 'createdb --encoding=UTF8" in said
    finally:
        with administer() as connection:
            connection.execute("drop database latin with (force)")


def test_a_replica_can_be_read_and_not_written(tmp_path: Path, postgres: PostgresAddress) -> None:
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    with administer() as connection:
        connection.execute(f'alter database "{name}" set default_transaction_read_only = on')
    with open_reader(postgres) as reader:
        assert reader.raw.execute("select count(*) from runs").fetchone() == (0,)
    assert "it can only be read: name the primary server" in refused(postgres)


def test_a_text_with_nul_is_kept_without_it(tmp_path: Path, postgres: PostgresAddress) -> None:
    world = World(tmp_path, db=postgres)
    world.begin("A")
    with open_writer(postgres) as connection, own_run(connection, 1) as owned:
        refusal = Refusal(1, 9, "Stale", "Too\0late", b"\0bytes\0")
        Journal(connection, 1, ownership=owned).commit(TurnWrites(5.0, refusals=[refusal]))
    assert world.rows("select sentence from refusals") == [("Too\ufffdlate",)]
    query = "select data from refusals join blobs on blob_id = content"
    assert world.rows(query) == [(b"\0bytes\0",)]


def test_what_is_committed_is_on_disk_whatever_the_server_prefers(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    with administer() as connection:
        connection.execute(f'alter database "{name}" set synchronous_commit = off')
    with open_writer(postgres) as opened:
        server = server_connection(opened)
        server.begin()
        assert server.execute("show synchronous_commit").fetchone() == ("on",)
        server.rollback()


def test_behind_a_pooler_nothing_is_prepared(tmp_path: Path, postgres: PostgresAddress) -> None:
    parts = urlsplit(postgres.url)
    named = parse_qs(parts.query)
    socket = Path(named["host"][0]) / f".s.PGSQL.{named['port'][0]}"
    with run_pooler(socket) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}{parts.path}?sslmode=disable"
        pooled = PostgresAddress(url, tmp_path)
        world = World(tmp_path, db=pooled)
        world.begin(*(f"C{number}" for number in range(20)))
        assert world.work(places=3) == "done"
        with open_writer(world.address) as connection:
            assert server_connection(connection).is_pooled
            for _ in range(9):
                find_run(connection, 1)
            raw = connection.raw
            assert raw.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        checks = check_cluster(Project(tmp_path, db=pooled.url))
        assert "store.pooler" in [each.id for each in checks]
    assert World(tmp_path, db=postgres).faults() == []


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One of our own, to be killed; with fsync, as in earnest."""
    with run_server({}) as made:
        yield made


def test_a_server_that_is_killed_loses_nothing_and_the_run_goes_on(
    tmp_path: Path, server: Server
) -> None:
    address = PostgresAddress(server.url, tmp_path)
    world = World(tmp_path, db=address)
    world.begin(*(f"C{number}" for number in range(6)))
    killed: list[int] = []

    def kill(_loop: object) -> None:
        if not killed:
            killed.append(1)
            server.stop(signal.SIGQUIT)

    script = '"*": {write: {answer: {words: 5}, delay: 1s}, judge: {answer: {mark: 4}}}'
    with pytest.raises(StoreError) as caught:
        world.work(script, at_rest=[kill], inbox=True)
    assert "'interlock resume'; nothing is lost" in str(caught.value)
    server.start({})
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("update owners set lease_until = 0")  # or wait for its end
    assert world.work(script, inbox=True) == "waiting"
    assert world.faults() == []
    assert world.rows("select count(*), count(distinct case_no) from journal") == [(12, 6)]


def test_tls_is_verified_and_passwords_are_never_told(tmp_path: Path, server: Server) -> None:
    certificate = server.require_tls("hunter2")
    folder = tmp_path / ".interlock"

    def locate_work(password: str, **options: str) -> PostgresAddress:
        given = {"hostaddr": "127.0.0.1", "sslmode": "verify-full", "sslrootcert": certificate}
        query = "&".join(f"{name}={value}" for name, value in (given | options).items())
        host = f"localhost:{server.port}"
        return PostgresAddress(f"postgresql://ann:{password}@{host}/work?{query}", folder)

    address = locate_work("hunter2")
    world = World(tmp_path, db=address)
    world.begin("A")
    assert world.work() == "done"
    checks = {each.id: each for each in check_cluster(Project(tmp_path, db=address.url))}
    assert "store.tls" not in checks
    assert checks["store.durable"].ok
    wrong = refused(locate_work("hunter3"))
    assert "the server does not let this user in: check the user, its password" in wrong
    assert "hunter3" not in wrong
    # The certificate is for localhost, and nobody else vouches for it.
    other = locate_work("hunter2").url.replace("@localhost", "@elsewhere.example")
    assert "its certificate cannot be trusted" in refused(PostgresAddress(other, folder))
    system = locate_work("hunter2", sslrootcert="/nowhere.pem")
    assert "its certificate cannot be trusted" in refused(system)
    plain = locate_work("hunter2", sslmode="disable")
    assert "the server does not let this user in" in refused(plain)


def test_what_is_written_for_many_rows_at_once_is_what_the_journal_writes() -> None:
    """A statement that changes in the journal must change here too, or it is slow again."""
    hot = (journal._BLOB, journal._DISPATCH, journal._JOURNAL, journal._CASE)
    assert set(postgres._TOGETHER) == set(hot)
