"""The schema: what migrations make, what a new database gets and what the code says are one."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect

import interlock.store
from interlock.store.database import HEAD, revision, writing
from interlock.store.schema import metadata

MIGRATIONS = Path(interlock.store.__file__).parent / "migrations"


def config(connection: Connection) -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    made.attributes["connection"] = connection
    return made


def structure(connection: Connection) -> dict[str, Any]:
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
        for table in sorted(metadata.tables)
    }


def test_the_migrations_make_what_a_new_database_has(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.connect() as migrated, writing(tmp_path / "new.db") as new:
        command.upgrade(config(migrated), "head")
        assert structure(migrated) == structure(new)
        assert revision(migrated) == revision(new) == HEAD
        assert compare_metadata(MigrationContext.configure(migrated), metadata) == []
        assert compare_metadata(MigrationContext.configure(new), metadata) == []
    engine.dispose()


def test_head_is_the_newest_migration() -> None:
    found = Config()
    found.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(found).get_current_head() == HEAD
