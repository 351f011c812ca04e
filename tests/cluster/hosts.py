"""The machines of the cluster: their processes, their files, their clocks; and PostgreSQL on one.

With a `Link` a host is a network namespace with a disk of its own, a small one. Without, it is only
a folder, for a quick look without root: nothing can then be done to its network or its disk.
"""

import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psycopg

from interlock.journal.address import PostgresAddress
from interlock_cluster.postgres import open_driver
from interlock_cluster.queue import ensure_queue
from tests.cluster.checker import WITNESSES
from tests.cluster.network import Link
from tests.cluster.workload import AGENT, ROLES, set_up_host
from tests.world.places import PYTHONPATH
from tests.world.postgres_server import SUPERUSER, Server

_HOST_DISK = "24m"
_SERVER_DISK = "384m"
_SETTINGS = {
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "30s",
}
"""With fsync, as in earnest; the write-ahead log fits on the small disk."""
DATABASE = "cluster"
_SITE = Path(__file__).parent / "site"


class Disk:
    """A small file system that can be filled up."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        words = ("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder))
        subprocess.run(words, check=True, capture_output=True)

    def fill(self) -> None:
        free = os.statvfs(self.folder)
        with suppress(OSError), (self.folder / "ballast").open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, free.f_bavail * free.f_frsize)

    def free(self) -> None:
        (self.folder / "ballast").unlink(missing_ok=True)

    def remove(self) -> None:
        subprocess.run(("umount", "--lazy", str(self.folder)), check=False, capture_output=True)


class Daemon:
    """A process that is started again whenever the nemesis is done with it."""

    def __init__(self, host: "Host", name: str, words: Sequence[str], log: Path) -> None:
        self.host = host
        self.name = name
        self._words = words
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self._starting:
            if not self.is_alive:
                with self._log.open("ab") as log:
                    self._process = self.host.spawn(self._words, log)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_alive:
            self._process.send_signal(number)

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait(10.0)

    def wait(self, seconds: float) -> bool:
        """Whether it ended within these seconds."""
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(seconds)
        return not self.is_alive


class Host:
    """A machine, with a folder in which its processes work."""

    def __init__(
        self, name: str, folder: Path, link: Link | None, *, sabotaged: bool = False
    ) -> None:
        self.name = name
        self.folder = folder / name
        self.link = link
        self.disk = Disk(self.folder, _HOST_DISK) if link else None
        self._clock = folder / f"{name}.clock"
        self._sabotaged = sabotaged
        self.set_clock(0.0)
        set_up_host(self.folder)

    def set_clock(self, ahead: float) -> None:
        """Set this host's clock, so many seconds ahead of the real one, in place."""
        if not self._clock.exists():
            self._clock.write_bytes(bytes(8))
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<d", ahead))

    def spawn(self, words: Sequence[str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
        path = [str(_SITE), PYTHONPATH]
        path += [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        setpriv = shutil.which("setpriv")
        ending = (setpriv, "--pdeathsig", "KILL") if setpriv else ()  # never outlive the test
        return subprocess.Popen(
            [*ending, *(self.link.enter(words) if self.link else words)],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path),
                "CLUSTER_CLOCK": str(self._clock),
                "CLUSTER_SABOTAGE": "1" if self._sabotaged else "",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def signal_all(self, number: signal.Signals) -> None:
        """Everything that runs on this host: a machine that crashes, or stands still."""
        assert self.link is not None
        for process in self.link.list_processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def close(self) -> None:
        if self.link is not None:
            self.signal_all(signal.SIGKILL)
        if self.disk is not None:
            self.disk.remove()


class Stall:
    """What a coordinator cannot get past when it writes decisions, until it is ended."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
        self._connection = connection
        self._name = name
        self.is_caught = False

    def catches(self) -> bool:
        """Whether the coordinator is in the middle of a turn by now, and waits."""
        query = (
            "select exists (select from pg_stat_activity where application_name = %s"
            " and wait_event_type = 'Lock' and wait_event = 'advisory')"
        )
        with suppress(psycopg.Error):
            self.is_caught = self._connection.execute(query, (self._name,)).fetchone() == (True,)
        return self.is_caught

    def end(self) -> None:
        self._connection.close()


class ClusterServer(Server):
    """PostgreSQL on a host of its own, with fsync."""

    def __init__(self, folder: Path, link: Link | None) -> None:
        self._link: Link | None = None
        self.disk = Disk(folder, _SERVER_DISK) if link else None
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self.create()
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        self._link = link
        self.start_again()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"create database {DATABASE}")

    @property
    def address(self) -> str:
        """How hosts reach the database."""
        host = self._link.address if self._link else "127.0.0.1"
        return f"postgresql://{SUPERUSER}@{host}:{self.port}/{DATABASE}"

    @property
    def local_address(self) -> str:
        """How the test reaches it, whatever is wrong with the network."""
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={self.folder}&port={self.port}"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start_again(self) -> None:
        """Start it, unless it runs. RuntimeError if it cannot, for the moment."""
        if not self.is_alive:
            everywhere = {"listen_addresses": "*"} if self._link else {}
            self.start({**_SETTINGS, **everywhere})

    def add_witnesses(self) -> None:
        made = open_driver(PostgresAddress(self.local_address, self.folder))
        ensure_queue(made)
        made.close()
        with psycopg.connect(self.local_address, autocommit=True) as connection:
            connection.execute(WITNESSES)

    def count_takers(self) -> int:
        """How many coordinators have taken runs."""
        with psycopg.connect(self.local_address, autocommit=True) as connection:
            row = connection.execute("select count(distinct name) from witness_owners").fetchone()
            return int(row[0]) if row else 0

    def find_busiest(self, names: Sequence[str]) -> str:
        """Which of these coordinators has most runs; the first, if none has any."""
        query = (
            "select name from owners where owner is not null and name = any(%s)"
            " group by name order by count(*) desc, name limit 1"
        )
        with suppress(psycopg.Error), psycopg.connect(self.local_address) as connection:
            if row := connection.execute(query, ([*names],)).fetchone():
                return str(row[0])
        return names[0]

    def end_backends(self) -> None:
        """Break every connection that hosts have."""
        with suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = %s and client_addr is not null",
                (DATABASE,),
            )

    def stall(self, name: str) -> "Stall | None":
        """Begin to hold a coordinator in the middle of its turns; None if it is in one just now."""
        with suppress(psycopg.Error):
            connection = psycopg.connect(self.local_address, autocommit=True)
            query = "select pg_try_advisory_lock(hashtextextended(%s, 1))"
            if connection.execute(query, (name,)).fetchone() == (True,):
                return Stall(connection, name)
            connection.close()
        return None

    def cut(self, *, is_cut: bool) -> None:
        if self._link is not None:
            self._link.is_cut = is_cut

    def crash(self, number: signal.Signals) -> None:
        """SIGQUIT ends it at once; SIGKILL ends its first process only, and the others notice."""
        if self.process is not None and self.is_alive:
            self.process.send_signal(number)
            try:
                self.process.wait(10.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10.0)

    def close(self) -> None:
        self.crash(signal.SIGQUIT)
        if self.disk is not None:
            self.disk.remove()

    def _unprivileged(self, *words: str) -> Sequence[str]:
        found = super()._unprivileged(*words)
        return self._link.enter(found) if self._link else found


def build_coordinator(host: Host, server: ClusterServer, logs: Path) -> Daemon:
    """One whose sessions bear its name, and that could take all runs."""
    address = f"{server.address}?application_name={host.name}"
    words = ("--runs", "12", "--db", address, "--log", "json")
    return _build_daemon(host, logs, "coordinator", *words)


def build_worker(host: Host, server: ClusterServer, logs: Path) -> Daemon:
    """One for both roles, who is given up soon and has little time to finish."""
    roles = [word for role in ROLES for word in ("--role", f"{role}={AGENT}")]
    timing = ("--slots", "12", "--lease", "5", "--grace", "4")
    return _build_daemon(host, logs, "worker", *roles, *timing, "--db", server.address)


def _build_daemon(host: Host, logs: Path, verb: str, *words: str) -> Daemon:
    command = (sys.executable, "-m", "interlock", verb, "--name", host.name, *words)
    return Daemon(host, host.name, command, logs / f"{host.name}.log")
