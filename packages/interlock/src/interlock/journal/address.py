"""Where a journal is: a SQLite file, or a database on a PostgreSQL server.

Interlock keeps files that belong to this machine beside its database: crash reports, sockets, work
folders of agents. Beside a SQLite file they bear its name; a PostgreSQL database has them in the
project's `.interlock/`, under a name made of its host and its own. An address may hold a password:
it is never shown, and never part of a file's name.
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
    """A database on a server, and the folder for what belongs to this machine."""

    url: str
    folder: Path

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user = f"{unquote(parts.username)}@" if parts.username else ""
        return urlunsplit(("postgresql", user + _name_server(parts.netloc), parts.path, "", ""))

    __repr__ = __str__

    @property
    def identity(self) -> str:
        """The same for the same database, whoever comes to it."""
        parts = urlsplit(self.url)
        named = parse_qs(parts.query)
        host = _name_server(parts.netloc) or ",".join(named.get("host", ["local"]))
        port = "" if ":" in host else f":{named.get('port', [str(_DEFAULT_PORT)])[0]}"
        database = parts.path.strip("/") or named.get("dbname", [""])[0]
        options = ",".join(named.get("options", []))  # another search_path is another journal
        return f"postgresql://{host}{port}/{database}?{options}"

    @property
    def name(self) -> str:
        """What files of this machine about it are called."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", self.identity.partition("//")[2]).strip("-")
        return f"{words[:60]}-{blake2b(self.identity.encode(), digest_size=4).hexdigest()}"


DatabaseAddress = Path | PostgresAddress


def parse_address(word: str | Path, project: Path) -> DatabaseAddress:
    """The database that a flag, the environment or interlock.toml names. A path is as it stands;
    what a PostgreSQL server cannot hold lies in the project."""
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
    """The same database, also from another folder."""
    return db.absolute() if isinstance(db, Path) else db


def beside(db: DatabaseAddress, suffix: str) -> Path:
    """The file or folder of this machine that belongs to the database and is called so."""
    if isinstance(db, Path):
        return db.with_name(f"{db.name}.{suffix}")
    return db.folder / f"{db.name}.{suffix}"


def state_folder(db: DatabaseAddress) -> Path:
    """The folder in which all such files lie."""
    return (db.parent if isinstance(db, Path) else db.folder).resolve()


def identify(db: DatabaseAddress) -> bytes:
    """The same for the same database, however it is named."""
    return os.fsencode(db.resolve()) if isinstance(db, Path) else db.identity.encode()


def _name_server(netloc: str) -> str:
    return netloc.rpartition("@")[2]
