"""The carrier `worker` keeps the promises of every carrier, with a real worker behind it."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from procrastinate import PsycopgConnector
from psycopg.pq import TransactionStatus

from interlock.api.project import Project
from interlock.carriers.contract import Carrier
from interlock.journal.address import PostgresAddress
from interlock.testing import CarrierContract, ManualClock
from interlock_cluster import queue
from interlock_cluster.queue_worker import WrittenReply
from interlock_cluster.worker.carrier import WorkerCarrier
from interlock_cluster.worker.database import DatabaseThreads
from interlock_cluster.worker.jobs import JobPuller
from interlock_cluster.worker.replies import ReplyWriter
from interlock_cluster.worker_process import Worker

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
        worker = Worker(project, roles, hear, name="ann", slots=2, lease=30)
        thread = threading.Thread(target=worker.run)
        thread.start()
        yield
        worker.stop()
        thread.join()

    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        return WorkerCarrier(self.address)


def test_a_reply_that_is_not_taken_holds_up_no_other(postgres: PostgresAddress) -> None:
    async def hand_in() -> tuple[list[str], list[str]]:
        problems: list[str] = []
        database = DatabaseThreads(postgres, "replies")
        await database.call(queue.ensure_queue)
        writer = ReplyWriter(database, "1" * 32, problems.append)
        bodies = [b"first", bytes(3_000_000), b"third"]
        tasks = [
            asyncio.create_task(writer.write(WrittenReply(number, 1, "", body)))
            for number, body in enumerate(bodies)
        ]
        said = [await tasks[0], await tasks[2]]
        assert not tasks[1].done()
        tasks[1].cancel()  # whoever gave it up
        said.append(await writer.write(WrittenReply(4, 1, "", b"last")))
        await database.close()
        return said, problems

    said, problems = asyncio.run(hand_in())
    assert said == ["unknown"] * 3, "nobody has offered these"
    assert "a reply of 3000000 bytes is too long" in problems[0]
    assert problems[-1] == ""


def test_a_worker_that_vanishes_leaves_no_rows_locked(postgres: PostgresAddress) -> None:
    """procrastinate's own way is a transaction around each statement: a host that vanished before
    its commit kept the row of its worker locked, and coordinators waited for it."""

    async def look() -> bool:
        database = DatabaseThreads(postgres, "queue")
        await database.call(queue.ensure_queue)
        schema = await database.call(queue.find_schema)
        await database.close()

        async def take(*_given: object) -> int:
            return 0

        app = JobPuller(postgres, schema, asyncio.Semaphore(1), take)._make_app()
        async with app.open_async():
            connector = cast(PsycopgConnector, app.connector)
            async with connector.pool.connection() as connection:
                await connection.execute("select 1")
                return connection.info.transaction_status is TransactionStatus.IDLE

    assert asyncio.run(look())
