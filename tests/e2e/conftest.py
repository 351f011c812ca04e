"""Real agents with our models: only where nothing can leave the machine, and none is left."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world.agent_cli import BIN, Claude, Codex, left_behind
from tests.world.models.anthropic import messages_api
from tests.world.models.openai import responses_api
from tests.world.models.script import always

_WITHOUT_AGENTS = ("test_page.py", "test_window.py")
"""They need a browser and nothing else."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    offline = [name for _, name in socket.if_nameindex()] == ["lo"]
    ready = offline and (BIN / "claude").exists() and (BIN / "codex").exists()
    for item in items:
        needs_agents = item.path.name not in _WITHOUT_AGENTS
        if not ready and needs_agents and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="real agents are tried by: make e2e"))


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    with messages_api(always("Hello.")) as model:
        cli = Claude(tmp_path, model)
        yield cli
    assert left_behind(cli.home) == []


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    with responses_api(always("Hello.")) as model:
        cli = Codex(tmp_path, model)
        yield cli
    assert left_behind(cli.home) == []
