"""PostgreSQL's side of the journal: connections, transactions, sequences, error messages.

The twin of `sqlite.py`. No connection keeps state in its session, so a pooler may give each
transaction to another backend: no session locks, no settings outside a transaction, no prepared
statements behind a pooler. psycopg is loaded when an address needs it.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.journal.address import PostgresAddress
from interlock.journal.connection import (
    Connection,
    RawCursor,
    ServerConflictError,
    ServerError,
    TableColumns,
)
from interlock.system.errors import StoreError

if TYPE_CHECKING:
    import psycopg

_OLDEST = 130_000
_CONNECT_SECONDS = "10"
_CREATION_LOCK = 0x696E7465726C
"""The number of the advisory lock under which tables are made; held by a transaction only."""
_BEGIN = (
    "begin isolation level read committed read write;"
    " set local idle_in_transaction_session_timeout to '5s'"
)
_FLUSH = "set local synchronous_commit to on"
_FACTS = (
    "select pg_backend_pid(), current_setting('synchronous_commit'),"
    " current_setting('server_encoding'), current_setting('server_version_num')::int,"
    " pg_is_in_recovery() or current_setting('transaction_read_only') = 'on', session_user::text"
)
_NUMBERS = "select nextval(?::regclass) from generate_series(1, ?)"
_TOGETHER = {
    "insert into blobs values (?, ?, ?, ?)": (
        "insert into blobs"
        " select * from unnest(%b::bigint[], %b::bytea[], %b::bigint[], %b::bytea[])"
    ),
    "insert into dispatches values (?, ?, ?, ?, ?, ?, ?)": (
        "insert into dispatches select * from unnest(%b::bigint[], %b::bigint[], %b::text[],"
        " %b::bigint[], %b::text[], %b::bigint[], %b::float8[])"
    ),
    "insert into journal (case_no, dispatch_id, at, answer, tokens, money, decision, epoch)"
    " values (?, ?, ?, ?, ?, ?, ?, ?)": (
        "insert into journal (case_no, dispatch_id, at, answer, tokens, money, decision, epoch)"
        " select * from unnest(%b::bigint[], %b::bigint[], %b::float8[], %b::bigint[],"
        " %b::bigint[], %b::float8[], %b::text[], %b::bigint[])"
    ),
    "update cases set status = ?, step = ?, dispatch_id = ?, state = ? where case_no = ?": (
        "update cases set status = new.status, step = new.step, dispatch_id = new.dispatch_id,"
        " state = new.state from unnest(%b::text[], %b::text[], %b::bigint[], %b::text[],"
        " %b::bigint[]) as new (status, step, dispatch_id, state, case_no)"
        " where cases.case_no = new.case_no"
    ),
}
"""The journal's hot statements, for many rows at once."""
_FEW = 4
"""Fewer rows than this are not worth an array."""
_PARAMETERS = {
    "application_name": "interlock",
    "client_encoding": "utf8",
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
"""Parameters that notice a server that vanished. Those of the address take precedence."""
_NO_RIGHTS = "42501"
_ADVICE_BY_STATE = {
    "28": "the server does not let this user in: check the user, its password (PGPASSFILE or "
    "PGPASSWORD keep it out of the address) and pg_hba.conf",
    "3D000": "there is no such database on the server: create it with "
    "'createdb --encoding=UTF8 NAME', or name another with --db",
    _NO_RIGHTS: "this database user lacks the rights: let the owner run "
    "'interlock init-db --roles' and grant it a role, or use another user",
    "25006": "it can only be read: name the primary server, not a replica",
    "53100": "the server's disk is full: free some space, then 'interlock resume'; nothing is lost",
    "53300": "the server takes no more connections: raise max_connections or use a pooler",
    "57P03": "the server is starting or shutting down: try again in a moment",
    "57": "the server ended the connection: when it is back, 'interlock resume'; nothing is lost",
    "08": "the server cannot be reached: when it is back, 'interlock resume'; nothing is lost",
    "26000": "a pooler mixes prepared statements: add prepare_threshold=none to the address",
    "42P05": "a pooler mixes prepared statements: add prepare_threshold=none to the address",
    "42P01": "tables are missing: it is half made, or another user's; use an empty database",
    "22P05": "its encoding cannot hold the text: create the database with ENCODING 'UTF8'",
}
"""Advice by the beginning of the error's SQLSTATE; the longest that fits counts."""
_ADVICE_BY_WORD = {
    "permission denied for database": _ADVICE_BY_STATE[_NO_RIGHTS],
    "password authentication failed": _ADVICE_BY_STATE["28"],
    "no password supplied": _ADVICE_BY_STATE["28"],
    "no pg_hba.conf entry": _ADVICE_BY_STATE["28"],
    "certificate": "its certificate cannot be trusted: name the right root certificate with "
    "sslrootcert=FILE and the host by the name in its certificate",
    "ssl": "it does not speak TLS as the address demands: check sslmode, or the server's settings",
    "session is read-only": _ADVICE_BY_STATE["25006"],
    "in recovery": _ADVICE_BY_STATE["25006"],
    "does not exist": _ADVICE_BY_STATE["3D000"],
    "too many clients": _ADVICE_BY_STATE["53300"],
    "starting up": _ADVICE_BY_STATE["57P03"],
    "translate host name": "no server has this name: check the host in the address",
    "resolve host": "no server has this name: check the host in the address",
    "connection refused": "no server answers there: check host and port, and that it runs",
    "no such file": "no server answers there: check host and port, and that it runs",
    "timeout": _ADVICE_BY_STATE["08"],
    "closed": _ADVICE_BY_STATE["08"],
    "terminat": _ADVICE_BY_STATE["08"],
    "lost": _ADVICE_BY_STATE["08"],
}
"""Advice for connections that fail without an SQLSTATE, by a word in the message."""


class ServerFacts(msgspec.Struct, frozen=True):
    """The facts that a server tells about itself and about the user who connects."""

    backend: int
    synchronous_commit: str
    encoding: str
    version: int
    read_only: bool
    user: str


class PostgresConnection:
    """A psycopg connection in the journal's terms: `?` marks, explicit transactions, and errors
    that are known without the driver."""

    def __init__(
        self, address: PostgresAddress, driver: "psycopg.Connection[Any]", facts: ServerFacts
    ) -> None:
        self.address = address
        self.driver = driver
        self.facts = facts
        self.is_pooled = driver.info.backend_pid != facts.backend
        """A pooler gives out backend numbers of its own; it may change backends at each commit."""
        self.notes: dict[str, str] = {}
        """Facts about the database that are asked only once."""
        flush = facts.synchronous_commit in ("off", "local")
        self._begin = f"{_BEGIN}; {_FLUSH}" if flush else _BEGIN

    @property
    def in_transaction(self) -> bool:
        return self.driver.info.transaction_status.value != 0

    def begin(self) -> None:
        """Begin a transaction whose commit is flushed to disk, whatever the server's default. The
        server ends it if this process stands still, so that others do not wait for its locks."""
        with _translate_errors():
            self.driver.execute(self._begin, prepare=False)

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> RawCursor:
        with _translate_errors():
            return self.driver.execute(_translate(sql), _clean(parameters))

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> RawCursor:
        with _translate_errors():
            cursor = self.driver.cursor()
            cursor.executemany(_translate(sql), map(_clean, parameters))
            return cursor

    def write_many(self, statements: Iterable[tuple[str, Sequence[Sequence[Any]]]]) -> None:
        """Write all rows in one pipeline. The hot statements of a turn become one statement for all
        rows, which the server plans once."""
        with _translate_errors(), self.driver.pipeline():
            for sql, rows in statements:
                together = _TOGETHER.get(sql)
                if together is None or len(rows) < _FEW:
                    self.driver.cursor().executemany(_translate(sql), map(_clean, rows))
                else:
                    columns = [list(column) for column in zip(*map(_clean, rows), strict=True)]
                    self.driver.execute(together, columns)

    def take_numbers(self, kind: str, count: int, after: int) -> list[int]:
        """Return the next numbers of that kind, all beyond `after`."""
        while True:
            rows = self.execute(_NUMBERS, (f"{kind}_numbers", count)).fetchall()
            found = sorted(int(number) for (number,) in rows)
            if found[0] > after:
                return found
            self.execute("select setval(?, ?)", (f"{kind}_numbers", max(after, found[-1])))

    def commit(self) -> None:
        with _translate_errors():
            self.driver.commit()

    def rollback(self) -> None:
        """Roll back; a server that is gone has done so itself."""
        with suppress(ServerError), _translate_errors():
            self.driver.rollback()

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds this name, and hold it until ours is over."""
        self.execute("select pg_advisory_xact_lock(hashtextextended(?, 0))", (name,))

    def listen(self, channel: str, seconds: float) -> Iterator[None]:
        """Yield once at the beginning, then at each notification, and every `seconds`."""
        with _translate_errors():
            self.driver.execute(f"listen {channel}")
            yield
            while True:
                for _ in self.driver.notifies(timeout=seconds, stop_after=1):
                    pass
                yield

    def close(self) -> None:
        self.driver.close()


@lru_cache(maxsize=1024)
def _translate(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _clean(row: Sequence[Any]) -> Sequence[Any]:
    """Replace NUL in texts, which PostgreSQL cannot keep and a program's output may hold."""
    if any(isinstance(each, str) and "\0" in each for each in row):
        return [each.replace("\0", "\ufffd") if isinstance(each, str) else each for each in row]
    return row


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate the driver's errors into those that are known without the driver."""
    import psycopg

    try:
        yield
    except psycopg.IntegrityError as error:
        raise ServerConflictError(error) from error
    except psycopg.Error as error:
        raise ServerError(error) from error


def open_driver(address: PostgresAddress, mode: str = "rw") -> PostgresConnection:
    """Open a connection in autocommit; `mode` is "ro" or "rw"."""
    psycopg = _import_psycopg()
    with _translate_errors():
        _, prepare = _take_option(address.url, "prepare_threshold")
        driver = psycopg.connect(build_conninfo(address), autocommit=True)
        try:
            row = driver.execute(_FACTS).fetchone()
            facts = ServerFacts(*row)
            _check_facts(address, facts, mode)
            opened = PostgresConnection(address, driver, facts)
            if opened.is_pooled or prepare.lower() in ("none", "off"):
                driver.prepare_threshold = None
            driver.adapters.register_loader("numeric", _make_number_loader())
        except BaseException:
            driver.close()
            raise
    return opened


def build_conninfo(address: PostgresAddress, options: str = "") -> str:
    """Return libpq's parameters: those of the address, ours for the rest, and `options` for the
    server."""
    psycopg = _import_psycopg()
    url, _ = _take_option(address.url, "prepare_threshold")
    given = psycopg.conninfo.conninfo_to_dict(url)
    if options:
        given["options"] = f"{given.get('options', '')} {options}".strip()
    found: str = psycopg.conninfo.make_conninfo(**{**_PARAMETERS, **given})
    return found


def _check_facts(address: PostgresAddress, facts: ServerFacts, mode: str) -> None:
    if facts.version < _OLDEST:
        raise StoreError(
            f"{address}: PostgreSQL {facts.version // 10_000} is too old; Interlock needs "
            f"{_OLDEST // 10_000} or newer"
        )
    if facts.encoding != "UTF8":
        raise StoreError(
            f"{address}: its encoding is {facts.encoding}; create the database with "
            "'createdb --encoding=UTF8 --template=template0 NAME'"
        )
    if mode == "rw" and facts.read_only:
        raise StoreError(f"{address}: {_ADVICE_BY_STATE['25006']}")


def _import_psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs more packages: pip install interlock-cluster ({error})"
        ) from None
    # What it warns of is raised, too; without a handler it would also be written to stderr.
    if not (log := logging.getLogger("psycopg")).handlers:
        log.addHandler(logging.NullHandler())
    return psycopg


@lru_cache(maxsize=1)
def _make_number_loader() -> Any:
    from psycopg.adapt import Loader

    class NumberLoader(Loader):
        """Loads a sum of whole numbers as a whole number, as SQLite does."""

        def load(self, data: Any) -> int | float:
            text = bytes(data).decode()
            return int(text) if text.lstrip("-").isdecimal() else float(text)

    return NumberLoader


def _take_option(url: str, name: str) -> tuple[str, str]:
    """Return the address without an option that libpq does not know, and the option's value."""
    found = re.search(rf"([?&]){name}=([^&]*)(&?)", url)
    if found is None:
        return url, ""
    kept = found[1] if found[3] else ""
    return url[: found.start()] + kept + url[found.end() :], found[2]


@contextmanager
def connect(address: PostgresAddress, mode: str) -> Iterator[Connection]:
    """Open a connection to the server; `mode` is "ro" or "rw"."""
    with closing(open_driver(address, mode)) as raw:
        yield Connection(raw, address)


def server_connection(connection: Connection) -> PostgresConnection:
    """Return the raw connection with all that only PostgreSQL's has."""
    found: Any = connection.raw
    if not isinstance(found, PostgresConnection):
        raise StoreError("expected a connection to PostgreSQL")
    return found


@contextmanager
def schema_transaction(connection: Connection) -> Iterator[None]:
    """Run a transaction that makes or changes tables, one process at a time."""
    raw = server_connection(connection)
    raw.begin()
    try:
        raw.execute("select pg_advisory_xact_lock(?)", (_CREATION_LOCK,))
        yield
        raw.commit()
    except BaseException:
        raw.rollback()
        raise


def run_script(connection: Connection, script: str) -> None:
    """Run all statements of a script; belongs inside a transaction."""
    run_on_server(server_connection(connection), script)


def run_on_server(server: PostgresConnection, script: str) -> None:
    """Run all statements of a script over the raw connection."""
    with _translate_errors():
        server.driver.execute(script)


def read_size(connection: Connection) -> int:
    """Return how large the database is, in bytes."""
    query = "select pg_database_size(current_database())"
    return int(server_connection(connection).execute(query).fetchone()[0])


def read_safety(connection: Connection) -> tuple[bool, bool]:
    """Return whether the server writes to disk for certain, and whether the connection is encrypted
    or stays on this machine."""
    raw = server_connection(connection)
    query = (
        "select current_setting('fsync') = 'on', coalesce((select ssl from pg_stat_ssl"
        " where pid = pg_backend_pid()), false) or inet_client_addr() is null"
        " or inet_client_addr() = inet_server_addr()"
    )
    fsync, encrypted = raw.execute(query).fetchone()
    return fsync, encrypted


def find_tables(connection: Connection) -> list[str]:
    """List the tables of the schema that a new journal would be made in."""
    rows = server_connection(connection).execute(
        "select tablename::text from pg_tables where schemaname = current_schema() order by 1"
    )
    return [name for (name,) in rows]


def describe_table(connection: Connection, name: str) -> TableColumns:
    """Return the columns, keys and references of a table."""
    raw = server_connection(connection)
    query = (
        "select attname::text, atttypid = 'text'::regtype from pg_attribute"
        " where attrelid = ?::regclass and attnum > 0 and not attisdropped order by attnum"
    )
    columns = raw.execute(query, (name,)).fetchall()
    query = (
        "select attname::text from pg_constraint, unnest(conkey) with ordinality as k (no, place),"
        " pg_attribute where conrelid = ?::regclass and contype = 'p' and attrelid = conrelid"
        " and attnum = k.no order by k.place"
    )
    keys = raw.execute(query, (name,)).fetchall()
    query = (
        "select distinct relname::text from pg_constraint join pg_class on pg_class.oid = confrelid"
        " where conrelid = ?::regclass and contype = 'f'"
    )
    return TableColumns(
        name,
        tuple(column for column, _ in columns),
        tuple(column for (column,) in keys),
        frozenset(column for column, is_text in columns if is_text),
        frozenset(other for (other,) in raw.execute(query, (name,))),
    )


def find_damage(connection: Connection) -> Iterator[str]:
    """Yield the damage that the server has noticed: pages whose checksum is wrong."""
    query = (
        "select checksum_failures from pg_stat_database where datname = current_database()"
        " and checksum_failures > 0"
    )
    for (count,) in server_connection(connection).execute(query):
        yield f"{count} pages had a wrong checksum: restore a copy"


def find_dangling(connection: Connection) -> Iterator[str]:
    """Yield the constraints that the server does not enforce; it lets no row refer to one that is
    missing."""
    query = (
        "select conrelid::regclass::text || ' ' || conname from pg_constraint"
        " where contype = 'f' and not convalidated order by 1"
    )
    for (name,) in server_connection(connection).execute(query):
        yield str(name)


def lacks_rights(error: Exception) -> bool:
    """Return whether the user lacks rights. A refused connection has no SQLSTATE."""
    cause = getattr(error, "orig", error)
    state = getattr(cause, "sqlstate", None)
    return state == _NO_RIGHTS or (not state and "permission denied for database" in str(cause))


def explain_error(address: PostgresAddress, error: Exception) -> str:
    """Return the driver's error with advice."""
    cause = getattr(error, "orig", error)
    problem = " ".join(str(cause).split())
    state = getattr(cause, "sqlstate", None) or ""
    fitting = [each for each in _ADVICE_BY_STATE if state.startswith(each)] if state else []
    if fitting:
        return f"{address}: {_ADVICE_BY_STATE[max(fitting, key=len)]} (PostgreSQL says: {problem})"
    for word, advice in _ADVICE_BY_WORD.items():
        if not state and word in problem.lower():
            return f"{address}: {advice} (PostgreSQL says: {problem})"
    return f"{address}: PostgreSQL says: {problem}"
