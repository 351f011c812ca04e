"""A demo's repositories, made once for all tests of this folder."""

import pytest

from interlock_rca.demo.world import DemoWorld, build_world


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoWorld:
    """Three repositories with a history and two red runs of their tests. Read only."""
    return build_world(tmp_path_factory.mktemp("demo") / "world")
