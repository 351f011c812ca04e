"""The carrier `worker` keeps the promises of every carrier, with a real worker behind it."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from procrastinate import App
from psycopg.pq import TransactionStatus

from interlock.api.project import Project
from interlock.carriers.contract import Carrier
from interlock.journal.address import PostgresAddress
from interlock.testing import CarrierContract, ManualClock
from interlock_cluster.worker.carrier import WorkerCarrier
from interlock_cluster.worker.connector import PatientConnector
from interlock_cluster.worker_process import Worker, WorkerOptions

ANSWER = "import os; print('{\"case\": \"' + os.environ['INTERLOCK_CASE_ID'] + '\"}')"


class TestWorkerCarrier(CarrierContract):
    answers = {1: b'{"case": "C1"}\n', 2: b'{"case": "C2"}\n'}  # noqa: RUF012

    @pytest.fixture(autouse=True)
    def at_work(self, tmp_path: Path, postgres: PostgresAddress) -> Iterator[None]:
        self.address = postgres
        (tmp_path / "agent.py").write_text(ANSWER)
        roles = {"worker": f"exec:{sys.executable} {tmp_path / 'agent.py'}"}
        heard: list[str] = []

        def hear(text: str, **_fields: object) -> None:
            heard.append(text)

        project = Project(tmp_path, db=postgres.url)
        worker = Worker(project, roles, hear, WorkerOptions("ann", slots=2, lease=30))
        thread = threading.Thread(target=worker.run)
        thread.start()
        yield
        worker.stop()
        thread.join()

    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        return WorkerCarrier(self.address)


def test_a_worker_that_vanishes_leaves_no_rows_locked(postgres: PostgresAddress) -> None:
    """procrastinate's own way is a transaction around each statement: a host that vanished before
    its commit kept the row of its worker locked, and coordinators waited for it."""

    async def look() -> bool:
        connector = PatientConnector(postgres, "public", lambda _problem: None)
        async with App(connector=connector).open_async(), connector.pool.connection() as connection:
            await connection.execute("select 1")
            return connection.info.transaction_status is TransactionStatus.IDLE

    assert asyncio.run(look())


def test_a_statement_is_repeated_until_the_server_answers(postgres: PostgresAddress) -> None:
    """procrastinate's heartbeat would end for good with the first statement that fails."""
    problems: list[str] = []

    def hear(problem: str) -> None:
        problems.append(problem)
        if len(problems) == 1:
            with psycopg.connect(postgres.url) as connection:
                connection.execute("insert into mended values (1)")

    async def ask() -> dict[str, object]:
        connector = PatientConnector(postgres, "public", hear)
        async with App(connector=connector).open_async():
            return await connector.execute_query_one_async(
                "select case when exists (select from mended) then 'yes'"
                " else pg_terminate_backend(pg_backend_pid())::text end as said"
            )

    with psycopg.connect(postgres.url) as connection:
        connection.execute("create table mended (x int)")
    assert asyncio.run(ask()) == {"said": "yes"}
    assert (bool(problems[0]), problems[1:]) == (True, [""])
