"""The carrier `worker` keeps the promises of every carrier, with a real worker behind it."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.agents.carrier import Carrier
from interlock.agents.worker.carrier import WorkerCarrier
from interlock.api.project import Project
from interlock.api.worker import Worker
from interlock.journal.address import PostgresAddress
from interlock.testing import CarrierContract, ManualClock

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
