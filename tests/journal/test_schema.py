"""The schema: what migrations make, what a new database gets and what the code says are one."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine, inspect
from tests.world.postgres_schema import SCRIPT, build_script
from tests.world.sample_circuit import PAPER
from tests.world.suite_database import Inquiry, failed, launched
from tests.world.world import World

import interlock.journal
from interlock.journal import schema as kernel
from interlock.journal.address import PostgresAddress
from interlock.journal.connection import Connection, open_sqlalchemy, raw_connection, transaction
from interlock.journal.database import HEAD, open_writer
from interlock.journal.journal import BlobWriter
from interlock.journal.runs import NewCase, insert_cases
from interlock.journal.sqlite import read_revision, sqlite_connection
from interlock.rca.knowledge import schema as rca
from interlock.rca.knowledge.intake import OpenedSuite
from interlock.system.errors import StoreError

MIGRATIONS = Path(interlock.journal.__file__).parent / "migrations"
DECLARED = MetaData()
for table in (*kernel.metadata.tables.values(), *rca.metadata.tables.values()):
    table.to_metadata(DECLARED)


def config(connection: sqlalchemy.Connection) -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    made.attributes["connection"] = connection
    return made


def own(connection: sqlalchemy.Connection) -> Connection:
    """The same connection as the journal knows one."""
    driver: Any = connection.connection.driver_connection
    return Connection(driver)


def structure(connection: sqlalchemy.Connection) -> dict[str, Any]:
    found = inspect(connection)
    return {
        table: {
            "columns": [
                (each["name"], str(each["type"]), each["nullable"])
                for each in found.get_columns(table)
            ],
            "key": found.get_pk_constraint(table)["constrained_columns"],
            "foreign": sorted(
                (each["constrained_columns"], each["referred_table"], each["referred_columns"])
                for each in found.get_foreign_keys(table)
            ),
            "unique": sorted(
                (str(each["name"]), each["column_names"])
                for each in found.get_unique_constraints(table)
            ),
            "checks": sorted(
                (str(each["name"]), each["sqltext"]) for each in found.get_check_constraints(table)
            ),
            "indexes": [each["name"] for each in found.get_indexes(table)],
        }
        for table in sorted(DECLARED.tables)
    }


def details(connection: sqlalchemy.Connection) -> set[tuple[str, str]]:
    """What the inspector does not tell: the conditions of indexes, and tables without row ids."""
    rows = connection.exec_driver_sql("select type, name, sql from sqlite_master")
    found = {
        (name, "".join(sql.lower().split())) for kind, name, sql in rows if sql and kind == "index"
    }
    rows = connection.exec_driver_sql("select name, sql from sqlite_master where type = 'table'")
    return found | {(name, "without rowid") for name, sql in rows if "without rowid" in sql.lower()}


def test_the_migrations_make_what_a_new_database_has(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.connect() as migrated, open_writer(tmp_path / "new.db") as new:
        command.upgrade(config(migrated), "head")
        made = open_sqlalchemy(new)
        assert structure(migrated) == structure(made)
        assert details(migrated) == details(made)
        assert ("symptom_bands", "without rowid") in details(made)
        assert read_revision(own(migrated)) == read_revision(new) == HEAD
        assert compare_metadata(MigrationContext.configure(migrated), DECLARED) == []
        assert compare_metadata(MigrationContext.configure(made), DECLARED) == []
    engine.dispose()


def test_a_new_postgresql_database_has_what_the_code_declares(postgres: PostgresAddress) -> None:
    assert SCRIPT.read_text(encoding="utf-8") == build_script()
    with open_writer(postgres) as connection:
        made = open_sqlalchemy(connection)
        assert compare_metadata(MigrationContext.configure(made), DECLARED) == []
        found = raw_connection(connection).execute(
            "select indexname::text from pg_indexes where indexdef like '% WHERE %' order by 1"
        )
        assert {"cases_not_closed", "one_open_rca_per_case"} <= {name for (name,) in found}


def old_database(path: Path) -> None:
    """A run with two cases in a database of the first revision."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        command.upgrade(config(connection), "0001")
        connection.commit()
        mine = own(connection)
        sqlite_connection(mine).isolation_level = None
        with transaction(mine) as raw:
            blobs = BlobWriter(raw)
            text = blobs.put(PAPER.encode())
            blobs.flush(raw)
            raw.execute(
                "insert into runs values"
                " (1, 'paper', 1, ?, 'old', 'mark', '{}', 'running', 0, 5, 5)",
                (text,),
            )
            cases = [NewCase("A", {"id": "A"}), NewCase("B", {"id": "B"})]
            insert_cases(raw, World(path.parent).circuit, 1, cases)
    engine.dispose()


def test_an_old_database_is_brought_up_to_date_with_all_it_has(tmp_path: Path) -> None:
    world = World(tmp_path)
    old_database(world.db)
    with pytest.raises(StoreError, match=f"it has schema 0001, this Interlock knows {HEAD}"):
        world.ends()
    assert world.work() == "done"
    assert world.ends() == {"A": "done", "B": "done"}
    assert (world.run().source, world.run().created_at, world.faults()) == ("old", 5.0, [])
    inquiry = Inquiry(tmp_path)
    assert inquiry.open(launched(failed("a", "f"))) == OpenedSuite(2, 2)
    assert inquiry.rows("select case_no from rca_cases") == [(3,)]


def test_an_upgrade_that_fails_leaves_the_old_database(tmp_path: Path) -> None:
    world = World(tmp_path)
    old_database(world.db)
    raw = sqlite3.connect(world.db)
    raw.execute("create table triages (mine)")
    raw.close()
    before = tables(world.db)
    with pytest.raises(StoreError, match="table triages already exists"):
        world.work()
    assert tables(world.db) == before


def tables(path: Path) -> list[tuple[str, ...]]:
    raw = sqlite3.connect(path)
    found = raw.execute("select name, sql from sqlite_master order by name").fetchall()
    found += raw.execute("select version_num from alembic_version").fetchall()
    raw.close()
    return found


def test_head_is_the_newest_migration() -> None:
    found = Config()
    found.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(found).get_current_head() == HEAD
