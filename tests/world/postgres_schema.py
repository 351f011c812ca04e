"""`python -m tests.world.postgres_schema`: writes schema_postgres.sql as the code declares it.

PostgreSQL databases begin with revision 0006, so the script needs no older migrations; newer ones
change both databases, and this file is written again.
"""

from pathlib import Path

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateSequence, CreateTable, sort_tables

import interlock.journal
from interlock.journal import schema as kernel
from interlock.journal.database import HEAD
from interlock.rca.knowledge import schema as rca

SCRIPT = Path(interlock.journal.__file__).parent / "schema_postgres.sql"
_HEAD = f"""\
-- The tables of a new PostgreSQL database at revision {HEAD}, as the code declares them. Written by
-- python -m tests.world.postgres_schema; a test compares the two.
"""
_TAIL = f"""\
-- Renewed every other second: there must be room for new versions on the same page.
ALTER TABLE owners SET (fillfactor = 70);

-- Who left something is the database's word, not theirs.
ALTER TABLE mail ALTER written_by SET DEFAULT session_user;

CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);

INSERT INTO alembic_version VALUES ('{HEAD}');
"""


def build_script() -> str:
    declared = (*kernel.metadata.tables.values(), *rca.metadata.tables.values())
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    made = [
        str(CreateSequence(each).compile(dialect=dialect))
        for each in kernel.metadata._sequences.values()
    ]
    for table in sort_tables(declared):
        made.append(str(CreateTable(table).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda each: str(each.name))
        for each in indexes:
            # Declared for one only: SQLAlchemy loads the dialect of every option that it meets.
            each.dialect_options["postgresql"]["where"] = each.dialect_options["sqlite"]["where"]
        made += [str(CreateIndex(each).compile(dialect=dialect)) for each in indexes]
    lines = (line.rstrip() for each in made for line in f"{each.strip()};\n".split("\n"))
    text = "\n".join(lines).replace("\t", "    ").replace(" ;", ";").replace("\n;", ";")
    return f"{_HEAD}\n{text}\n{_TAIL}"


if __name__ == "__main__":
    SCRIPT.write_text(build_script(), encoding="utf-8")
