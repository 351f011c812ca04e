"""The tables of a made-up feature at two versions, as files in a folder."""

from pathlib import Path

from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import transaction
from interlock.journal.database import open_writer
from interlock.journal.schema import TableSet, bring_up_to_date

FIRST = """\
CREATE TABLE harbours (name TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE tides (harbour TEXT NOT NULL, at {number} NOT NULL, PRIMARY KEY (harbour, at),
    FOREIGN KEY(harbour) REFERENCES harbours (name));
"""
SECOND = """\
CREATE TABLE harbours (name TEXT NOT NULL, depth {number} NOT NULL, PRIMARY KEY (name));
CREATE TABLE tides (harbour TEXT NOT NULL, at {number} NOT NULL, PRIMARY KEY (harbour, at),
    FOREIGN KEY(harbour) REFERENCES harbours (name));
"""
# SQLite can only make the table anew; the semicolon in a text is no end of a statement.
MIGRATE = """\
CREATE TABLE fresh (name TEXT NOT NULL, depth {number} NOT NULL, PRIMARY KEY (name));
INSERT INTO fresh SELECT name, 7 FROM harbours WHERE name != 'no;
harbour';
DROP TABLE harbours;
ALTER TABLE fresh RENAME TO harbours;
"""
MIGRATE_POSTGRES = "ALTER TABLE harbours ADD depth BIGINT NOT NULL DEFAULT 7;\n"
ROWS = ("insert into harbours values ('Brest')", "insert into tides values ('Brest', 3)")


def write_tables(folder: Path, version: int) -> TableSet:
    (folder / "migrations").mkdir(parents=True, exist_ok=True)
    schema = FIRST if version == 1 else SECOND
    (folder / "schema.sql").write_text(schema.format(number="INTEGER"))
    (folder / "schema_postgres.sql").write_text(schema.format(number="BIGINT"))
    if version > 1:
        (folder / "migrations" / "0002.sql").write_text(MIGRATE.format(number="INTEGER"))
        (folder / "migrations" / "0002_postgres.sql").write_text(MIGRATE_POSTGRES)
    return TableSet("tides", folder)


def begin(folder: Path, db: DatabaseAddress) -> None:
    """A journal with the feature's tables at their first version, and some rows."""
    with open_writer(db) as connection:
        bring_up_to_date(connection, db, [write_tables(folder, 1)])
        with transaction(connection) as raw:
            for statement in ROWS:
                raw.execute(statement)
