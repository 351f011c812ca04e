"""A project in a folder of its own, with the circuit of a note."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock
from interlock.testing import make_project
from tests.world.note import NOTE


@pytest.fixture
def project(tmp_path: Path) -> Iterator[interlock.Project]:
    with make_project(tmp_path, circuits={"note": NOTE}) as made:
        yield made
