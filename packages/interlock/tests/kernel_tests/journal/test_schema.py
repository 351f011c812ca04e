"""The schema: both databases get the same tables, and numbered scripts bring them up to date."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.journal import sqlite
from interlock.journal.address import DatabaseAddress, PostgresAddress
from interlock.journal.connection import (
    ERRORS,
    Connection,
    TableColumns,
    find_server,
    transaction,
)
from interlock.journal.database import open_reader, open_writer
from interlock.journal.schema import TableSet, bring_up_to_date, list_table_sets, read_versions
from interlock.journal.server import load_driver
from interlock.system.errors import StoreError
from tests.world.places import ROOT
from tests.world.tide_tables import begin, write_tables

IGNORED = r"--.*|create sequence.*?;|without rowid|with \(fillfactor = \d+\)|default \S+|[\"]"
KINDS = {"bytea": "blob", "bigserial": "integer", "bigint": "integer"}


def read_statements(file: Path) -> list[str]:
    """What a script declares, without what only one of the databases knows."""
    text = re.sub(IGNORED, "", file.read_text(encoding="utf-8").lower())
    for server, here in KINDS.items():
        text = text.replace(server, here)
    return [" ".join(each.split()) for each in text.split(";") if each.strip()]


@pytest.mark.parametrize("tables", list_table_sets(), ids=lambda each: each.part)
def test_both_databases_have_the_same_tables(tables: TableSet) -> None:
    here = read_statements(tables.folder / "schema.sql")
    assert here == read_statements(tables.folder / "schema_postgres.sql")
    assert any(each.startswith("create table") for each in here)


def describe(connection: Connection) -> list[TableColumns]:
    driver: Any = load_driver() if find_server(connection.raw) else sqlite
    names = driver.find_tables(connection)
    return [driver.describe_table(connection, name) for name in names]


def test_the_catalogs_of_both_databases_say_the_same(
    tmp_path: Path, postgres: PostgresAddress
) -> None:
    with open_writer(tmp_path / "i.db") as here, open_writer(postgres) as there:
        found = {each.name: each for each in describe(here)}
        assert found == {each.name: each for each in describe(there)}
        assert found["symptom_rca"].refers_to == {"symptoms", "rcas", "cases"}
        assert found["worked"].keys == ("day", "run_id", "role")
        assert found["worked"].texts == {"day", "role"}


def test_a_feature_that_comes_later_gets_its_tables(tmp_path: Path, db: DatabaseAddress) -> None:
    begin(tmp_path / "tides", db)
    with open_reader(db) as connection:
        versions = read_versions(connection.raw)
    assert versions["tides"] == versions["journal"] == 1


def test_a_migration_leads_to_what_a_new_database_has(tmp_path: Path, db: DatabaseAddress) -> None:
    begin(tmp_path / "tides", db)
    newer = write_tables(tmp_path / "tides", 2)
    with open_writer(db) as connection:
        bring_up_to_date(connection, db, [newer])
        raw = connection.raw
        assert read_versions(raw)["tides"] == 2
        assert raw.execute("select name, depth from harbours").fetchall() == [("Brest", 7)]
        migrated = describe(connection)
        with transaction(connection):
            raw.execute("drop table tides")
            raw.execute("drop table harbours")
            raw.execute("delete from schema_versions where part = 'tides'")
        bring_up_to_date(connection, db, [newer])
        assert describe(connection) == migrated
        bring_up_to_date(connection, db, [newer])


@pytest.mark.parametrize(
    "problem", ["CREATE TABLE more (x INTEGER); insert into nowhere values (1);"]
)
def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, db: DatabaseAddress, problem: str
) -> None:
    begin(tmp_path / "tides", db)
    newer = write_tables(tmp_path / "tides", 2)
    for file in ("0002.sql", "0002_postgres.sql"):
        script = newer.folder / "migrations" / file
        script.write_text(script.read_text() + problem)
    with open_writer(db) as connection:
        before = describe(connection)
        with pytest.raises(ERRORS):
            bring_up_to_date(connection, db, [newer])
        assert describe(connection) == before
        assert read_versions(connection.raw)["tides"] == 1


def test_a_migration_that_leaves_dangling_rows_is_undone(tmp_path: Path) -> None:
    db = tmp_path / "i.db"
    begin(tmp_path / "tides", db)
    newer = write_tables(tmp_path / "tides", 2)
    (newer.folder / "migrations" / "0002.sql").write_text("delete from harbours;\n")
    with open_writer(db) as connection:
        with pytest.raises(StoreError, match="missing rows"):
            bring_up_to_date(connection, db, [newer])
        count = "select count(*) from harbours"
        assert connection.raw.execute(count).fetchone() == (1,)


def test_tables_of_a_newer_feature_are_refused(tmp_path: Path, db: DatabaseAddress) -> None:
    begin(tmp_path / "tides", db)
    newer = write_tables(tmp_path / "newer", 2)
    with open_writer(db) as connection:
        bring_up_to_date(connection, db, [newer])
        with pytest.raises(StoreError, match="its tides tables have version 2"):
            bring_up_to_date(connection, db, [write_tables(tmp_path / "tides", 1)])


def test_killed_while_it_migrates_it_is_done_or_not_begun(
    tmp_path: Path, db: DatabaseAddress
) -> None:
    address = db.url if isinstance(db, PostgresAddress) else str(db)
    done = subprocess.run(
        [sys.executable, "-m", "tests.world.kill_creation", str(tmp_path), address],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["undone"] > 5
