"""Agents that pull answer a whole analysis."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from rca_tests.worlds import red_repository as reds
from tests.soak import again
from tests.world.command_line import World, ended
from tests.world.pulling import BEFORE, NOW, start, use, work_off, worker


@pytest.mark.parametrize("mode", [again(BEFORE), NOW])
async def test_a_whole_suite_of_red_tests_by_two_workers(world: World, mode: str) -> None:
    world.write("red.xml", reds.junit(reds.KEY, reds.KEY_TOO, reds.TYPE, reds.DISK))
    run = start(
        world,
        *("analyze", "red.xml", "--dispatch", "mcp", "--review", "dispatch", "--json"),
    )

    def answer(work: dict[str, Any]) -> dict[str, Any]:
        assert work["prompt"]
        return dict(reds.PLAIN[work["step"]])

    async with worker(world, mode) as one, worker(world, mode) as two:
        done = await asyncio.gather(*(work_off(each, answer) for each in (one, two)))
        report = await use(one, "report")
    result = ended(run)
    assert (result.code, result.json["status"]) == (0, "done"), result.err
    assert report["circuit"] == "rca"
    assert "Cart.total()" in report["markdown"]
    steps = Counter(each["step"] for many in done for each in many)
    assert steps[reds.F1] == 4
    assert steps[reds.F3] < 4
    assert json.loads((world.folder / "interlock-report/red/report.json").read_text())
