"""A calibration whose work is pulled by workers, in the project's usual place."""

from pathlib import Path
from typing import Any

import pytest

from tests.together.calibrate.test_calibrate_batch import TABLE
from tests.together.calibrate.test_calibrate_run import put
from tests.world.command_line import World, ended
from tests.world.pulling import use, work_off, worker


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def answering(work: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = TABLE["*"][work["step"]][0]
    return answer


async def test_workers_pull_a_calibration(world: World) -> None:
    words = ("calibrate", "--scenario", put(world), "--dispatch", "mcp", "--json")
    run = world.start(*words)
    async with worker(world) as one:
        while not (await use(one, "status"))["coordinator"]:
            pass
        done = await work_off(one, answering)
    result = ended(run)
    assert result.code == 0
    assert result.json["scorecard"]["failed"] == 0
    order = [work["case_id"] for work in done]
    assert list(dict.fromkeys(order)) == [f"C{number}" for number in range(1, 13)]
    assert result.json["scorecard"]["about"]["dispatch"] == "mcp"
