"""One small world for all tests of this room: it is only looked at."""

from pathlib import Path

import pytest

from interlock_rca.demo.world import DemoWorld, build_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> DemoWorld:
    return build_world(Path(tmp_path_factory.mktemp("small")) / "world")
