"""Create a database's tables from SQL files, and upgrade them by numbered ones.

The journal's tables are in `schema.sql` and `schema_postgres.sql`. An installed feature brings its
own: the entry-point group `interlock.tables` names a package that holds two such files. A change
after a release edits both, and adds `migrations/0002.sql` and `migrations/0002_postgres.sql`, which
lead from version 1 to version 2. The table `schema_versions` keeps the version of each part.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

import msgspec

from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection, RawConnection, find_server
from interlock.journal.server import load_driver
from interlock.system.errors import SourceError, StoreError

GROUP = "interlock.tables"
JOURNAL = "journal"
MOVED = -1
"""The version of a journal that was moved to another database."""
MOVING = -2
"""The version of a journal while it is being moved here."""
UNRELEASED = 0
"""The version of a journal from before the first release."""


class TableSet(msgspec.Struct, frozen=True):
    """The tables of one part of Interlock: the journal, or a feature."""

    part: str
    folder: Path

    @property
    def version(self) -> int:
        """The newest version, which the schema files describe."""
        return max((int(file.stem) for file in self._list_migrations("")), default=1)

    def read_scripts(self, found: int | None, *, server: bool) -> Iterator[str]:
        """Yield the scripts that lead from the found version to the newest."""
        suffix = "_postgres" if server else ""
        if found is None:
            yield (self.folder / f"schema{suffix}.sql").read_text(encoding="utf-8")
            return
        for file in self._list_migrations(suffix):
            if int(file.stem.removesuffix(suffix)) > found:
                yield file.read_text(encoding="utf-8")

    def _list_migrations(self, suffix: str) -> list[Path]:
        return sorted(self.folder.glob(f"migrations/[0-9][0-9][0-9][0-9]{suffix}.sql"))


@cache
def list_table_sets() -> tuple[TableSet, ...]:
    """Return the journal's tables, then those of installed features.

    A feature with a broken package is left out; `doctor` reports it.
    """
    found = [TableSet(JOURNAL, Path(__file__).parent)]
    for entry in list_table_entries():
        try:
            found.append(find_table_set(entry))
        except SourceError:
            continue
    return tuple(found)


def list_table_entries() -> list[metadata.EntryPoint]:
    """Return the declarations of installed features' tables, sorted by name."""
    return sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name)


def find_table_set(entry: metadata.EntryPoint) -> TableSet:
    """Return the tables that an entry point names; raise SourceError if they are missing."""
    top, *rest = entry.value.split(".")
    spec = util.find_spec(top)  # for an inner package, this would import its parents
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place, *rest)
        if all((folder / file).is_file() for file in ("schema.sql", "schema_postgres.sql")):
            return TableSet(entry.name, folder)
    raise SourceError(
        f"{entry.value} holds no schema.sql and schema_postgres.sql; reinstall its package"
    )


def read_versions(raw: RawConnection) -> dict[str, int]:
    """Return the version of each part's tables; empty if the database holds no journal."""
    if _has_table(raw, "schema_versions"):
        return dict(raw.execute("select part, version from schema_versions"))
    return {JOURNAL: UNRELEASED} if _has_table(raw, "alembic_version") else {}


def read_version(raw: RawConnection) -> int | None:
    """Return the version of the journal's tables, or None if there are none."""
    return read_versions(raw).get(JOURNAL)


def write_version(raw: RawConnection, version: int) -> None:
    """Set the version of the journal's tables; requires a transaction."""
    raw.execute("update schema_versions set version = ? where part = ?", (version, JOURNAL))


def _has_table(raw: RawConnection, name: str) -> bool:
    query = (
        "select to_regclass(?) is not null"
        if find_server(raw)
        else "select count(*) from sqlite_master where type = 'table' and name = ?"
    )
    return bool(raw.execute(query, (name,)).fetchone()[0])


def find_problem(versions: Mapping[str, int], sets: Sequence[TableSet]) -> str:
    """Return why these tables can be neither used nor upgraded; empty if they can."""
    journal = versions.get(JOURNAL)
    if journal is None:
        return "this is not an Interlock database: move it away or name another with --db"
    if journal == MOVED:
        return "its journal was moved to another database: name that one with --db"
    if journal == MOVING:
        return "a journal is being moved here: finish it with 'interlock db move FROM TO'"
    if journal == UNRELEASED:
        return (
            "it was made by a version of Interlock before the first release: start a new one (name "
            "it with --db), or use the Interlock that made it"
        )
    for each in sets:
        if (found := versions.get(each.part, 0)) > each.version:
            return (
                f"its {each.part} tables have version {found}, this Interlock knows "
                f"{each.version}: use the newer Interlock that made it"
            )
    return ""


def bring_up_to_date(
    connection: Connection,
    db: DatabaseAddress,
    sets: Sequence[TableSet],
    *,
    create: bool = False,
) -> None:
    """Create missing tables and migrate older ones, all or none.

    With `create`, also create a journal that does not exist yet.
    """
    raw = connection.raw
    if _is_done(read_versions(raw), sets):
        return
    driver = _import_driver(raw)
    with driver.schema_transaction(connection):
        versions = read_versions(raw)  # another process may have done it first
        if not versions and create:
            if others := driver.find_tables(connection):
                raise StoreError(
                    f"{db}: this is not an Interlock database, and it is not empty (it has the "
                    f"table {others[0]!r}): create a new one, or name another with --db"
                )
        elif problem := find_problem(versions, sets):
            raise StoreError(f"{db}: {problem}")
        for each in sets:
            found = versions.get(each.part)
            for script in each.read_scripts(found, server=find_server(raw) is not None):
                driver.run_script(connection, script)
            raw.execute(
                "insert into schema_versions values (?, ?)"
                " on conflict (part) do update set version = excluded.version",
                (each.part, each.version),
            )


def _is_done(versions: Mapping[str, int], sets: Sequence[TableSet]) -> bool:
    return all(versions.get(each.part) == each.version for each in sets)


def _import_driver(raw: RawConnection) -> Any:
    if find_server(raw):
        return load_driver()
    from interlock.journal import sqlite

    return sqlite
