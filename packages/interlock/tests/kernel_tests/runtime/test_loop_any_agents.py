"""Whatever the agents do, the run ends, the books add up, and no dispatch is answered twice."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.engine.schedule import Budget
from tests.world.world import World

ANSWERS = {
    "write": st.fixed_dictionaries({"words": st.integers()}),
    "judge": st.fixed_dictionaries({"mark": st.integers(0, 5)}),
    "sign": st.sampled_from([{"decision": "approve"}, {"decision": "reject"}]),
}
LIES = st.one_of(
    st.builds(lambda raw: {"raw": raw}, st.text('{}[]": 1a,ü', max_size=12)),
    st.just({"crash": "exit code 1"}),
    st.just({"silent": True}),
    st.builds(lambda name: {"signal": name, "answer": {}}, st.sampled_from(["timeout", "done"])),
    st.just({"answer": [1]}),
)


def behaviours(step: str) -> st.SearchStrategy[dict[str, object]]:
    flags = st.fixed_dictionaries(
        {"answer": ANSWERS[step]},
        optional={
            "twice": st.just(True),
            "late": st.just(True),
            "forges": st.integers(0, 12),
            "delay": st.sampled_from(["1s", "9s", "11s"]),
            "usage": st.just({"tokens": 3}),
        },
    )
    return flags | LIES


crews = st.dictionaries(
    st.sampled_from(["*", "A", "B", "C"]),
    st.fixed_dictionaries(
        {}, optional={step: st.lists(behaviours(step), min_size=1, max_size=3) for step in ANSWERS}
    ),
)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three cases that nobody has worked on, to be copied."""
    folder = tmp_path_factory.mktemp("begun")
    World(folder).begin("A", "B", "C")
    return folder


@settings(max_examples=60)
@given(script=crews, places=st.sampled_from([None, 1, 2]), limit=st.none() | st.integers(0, 9))
def test_any_crew(started: Path, script: object, places: int | None, limit: int | None) -> None:
    with TemporaryDirectory() as folder:
        shutil.copytree(started, folder, dirs_exist_ok=True)
        world = World(Path(folder))
        text = json.dumps(script, ensure_ascii=False)
        first = world.work(text, places=places, budget=Budget(dispatches=limit), wait=True)
        assert first in ("done", "unhealthy") or (first == "budget" and limit is not None)
        last = world.work(text, places=places, wait=True) if first == "budget" else first
        assert last == ("done" if {*world.ends().values()} == {"done"} else "unhealthy")
        assert "open" not in world.ends().values()
        assert world.faults() == []
        answered = "select count(*), count(distinct dispatch_id) from journal"
        assert world.rows(answered) == world.rows("select count(*), count(*) from dispatches")
        agents = world.rows("select count(*) from dispatches where role != 'human'")
        assert agents == [(world.run().spent.dispatches,)]
        if limit is not None and first == "budget":
            assert world.run().spent.dispatches >= limit
