"""A fresh world for each test."""

from pathlib import Path

import pytest
from tests.cli.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("INTERLOCK_DB", "INTERLOCK_PARALLEL"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)
