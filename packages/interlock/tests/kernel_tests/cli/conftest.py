"""A fresh world for each test."""

from pathlib import Path

import pytest

from interlock_rca.demo.world import DemoWorld as Demo
from interlock_rca.demo.world import build_world
from tests.world.command_line import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("INTERLOCK_DB", "INTERLOCK_PARALLEL"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Three repositories with a history and two red runs of their tests. Read only."""
    return build_world(tmp_path_factory.mktemp("demo") / "world")
