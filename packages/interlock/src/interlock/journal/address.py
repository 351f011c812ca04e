"""Locate a journal: a SQLite file, or a database on a PostgreSQL server.

Interlock keeps files of this machine beside its database: crash reports, sockets, work folders of
agents. Beside a SQLite file they begin with its name; for a PostgreSQL database they lie in the
project's `.interlock/`, under a name made of host and database. An address may hold a password: it
is never shown, and never part of a file's name.
"""

import os
import re
from hashlib import blake2b
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

import msgspec

from interlock.system.errors import UsageError

_SCHEMES = ("postgresql", "postgres")
_DEFAULT_PORT = 5432


class PostgresAddress(msgspec.Struct, frozen=True):
    """A database on a server, and the folder for this machine's files about it."""

    url: str
    folder: Path

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user = f"{unquote(parts.username)}@" if parts.username else ""
        return urlunsplit(("postgresql", user + _name_server(parts.netloc), parts.path, "", ""))

    __repr__ = __str__

    @property
    def identity(self) -> str:
        """The same text for the same database, for every user."""
        parts = urlsplit(self.url)
        named = parse_qs(parts.query)
        host = _name_server(parts.netloc) or ",".join(named.get("host", ["local"]))
        port = "" if ":" in host else f":{named.get('port', [str(_DEFAULT_PORT)])[0]}"
        database = parts.path.strip("/") or named.get("dbname", [""])[0]
        options = ",".join(named.get("options", []))  # another search_path is another journal
        return f"postgresql://{host}{port}/{database}?{options}"

    @property
    def name(self) -> str:
        """The name of this machine's files about the database."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", self.identity.partition("//")[2]).strip("-")
        return f"{words[:60]}-{blake2b(self.identity.encode(), digest_size=4).hexdigest()}"


DatabaseAddress = Path | PostgresAddress


def parse_address(word: str | Path, project: Path) -> DatabaseAddress:
    """Return the database that a flag, the environment or interlock.toml names.

    A path is kept unchanged; this machine's files about a PostgreSQL database lie in the project.
    """
    scheme, mark, _ = str(word).partition("://")
    if not mark or isinstance(word, Path):
        return Path(word)
    if scheme not in _SCHEMES:
        raise UsageError(
            f"a database is a path or postgresql://USER@HOST/NAME; {scheme[:40]!r} is not known"
        )
    try:
        urlsplit(word).port  # noqa: B018 - reads it, and complains
    except ValueError:
        raise UsageError(
            "the address of the database cannot be read; write postgresql://USER@HOST:PORT/NAME, "
            "with signs such as @ or / in a password as %40 or %2F"
        ) from None
    return PostgresAddress(word, (project / ".interlock").absolute())


def make_absolute(db: DatabaseAddress) -> DatabaseAddress:
    """Return the address in a form that is valid from every folder."""
    return db.absolute() if isinstance(db, Path) else db


def beside(db: DatabaseAddress, suffix: str) -> Path:
    """Return this machine's file or folder with that suffix for the database."""
    if isinstance(db, Path):
        return db.with_name(f"{db.name}.{suffix}")
    return db.folder / f"{db.name}.{suffix}"


def state_folder(db: DatabaseAddress) -> Path:
    """Return the folder that holds all such files."""
    return (db.parent if isinstance(db, Path) else db.folder).resolve()


def identify(db: DatabaseAddress) -> bytes:
    """Return the same bytes for the same database, however it is named."""
    return os.fsencode(db.resolve()) if isinstance(db, Path) else db.identity.encode()


def _name_server(netloc: str) -> str:
    return netloc.rpartition("@")[2]
