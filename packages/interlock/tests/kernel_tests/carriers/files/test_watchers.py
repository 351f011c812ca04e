"""Whole runs against watchers that know only the seeds, through the command line and real time."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.soak import again
from tests.world.project import CIRCUIT, GIVE_UP, Project, until


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("kind", "watch"),
    [
        *(("single", "inotify"), ("single", "poll"), ("slow", "inotify"), ("partial", "inotify")),
        *(("stale", "poll"), again("slow", "poll"), again("partial", "poll")),
        again("stale", "inotify"),
    ],
)
def test_watchers_of_single_signals(project: Project, kind: str, watch: str) -> None:
    with project.watcher(kind):
        found = project.do(*project.run("--dispatch", "file", "--watch", watch))
    assert found["ends"] == {"home": 3}
    assert {signal["status"] for signal in project.signals()} == {"done"}
    refused = []
    for case_id in ("odd", "C2", "C3"):
        story = project.story(case_id)
        assert [step for step, _, _ in story] == ["pack", "drive", "pack", "drive"]
        assert {signal for _, signal, _ in story} == {"artifact"}
        refused += project.refused(case_id)
        numbers = [number for _, _, number in story]
        assert numbers == sorted(set(numbers))  # type: ignore[type-var]
    # One that was gone before anybody looked was not refused.
    assert set(refused) == ({"Stale"} if kind == "stale" else set())


def test_a_watcher_that_gives_up_at_first(project: Project) -> None:
    with project.watcher("erroring"):
        found = project.do(*project.run("--dispatch", "file"))
    assert found["ends"] == {"home": 3}
    story = project.story("odd")
    assert [signal for _, signal, _ in story][:2] == ["crash", "artifact"]


def test_a_watcher_that_dies_with_half_an_answer(project: Project) -> None:
    """The half answer fails its dispatch; the next watcher answers the new one."""
    run = project.start(*project.run("--dispatch", "file", "--parallel", "1"))
    with project.watcher("dying") as watcher:
        until(lambda: watcher.poll() == -9)
        until(lambda: max(signal["dispatch_id"] for signal in project.signals()) > 1)
    with project.watcher("single"):
        out, err = run.communicate(timeout=GIVE_UP)
    assert run.returncode == 0, err
    assert json.loads(out)["ends"] == {"home": 3}
    assert ("pack", "unreadable", None) in project.story("odd")


@pytest.mark.parametrize(
    ("kind", "watch"),
    [
        *(("batch", "inotify"), ("claimless", "poll")),
        *(again("batch", "poll"), again("claimless", "inotify")),
    ],
)
def test_a_parent_agent_of_batches(tmp_path: Path, kind: str, watch: str) -> None:
    project = Project(tmp_path, cases=6)
    with project.watcher(kind):
        found = project.do(
            *project.run("--dispatch", "batch-file", "--batch-size", "3", "--watch", watch)
        )
    assert found["ends"] == {"home": 6}
    assert [signal for _, signal, _ in project.story("odd")][:2] == ["crash", "artifact"]
    manifest = json.loads((project.root / "1" / "batch-manifest.json").read_bytes())
    assert manifest["status"] == "done"
    assert manifest["total"] <= 3
    assert manifest["batch_id"] >= 6 * 4 // 3
    assert {signal["status"] for signal in project.signals()} == {"done"}
    assert not [*project.root.glob("*/batch-manifest.stale-*")]


def test_a_budget_of_tokens_ends_a_batched_run(tmp_path: Path) -> None:
    project = Project(tmp_path, cases=8)
    with project.watcher("batch"):
        words = project.run("--dispatch", "batch-file", "--budget", "tokens=900")
        found = project.do(*words, code=5)
    assert found["status"] == "budget"
    budget = json.loads((project.root / "1" / "budget-status.json").read_bytes())
    assert budget["used"] == found["spent"]["tokens"] >= 900
    assert budget["remaining"] <= 0
    with project.watcher("batch"):
        assert project.do("resume", "--json", "--budget", "tokens=99000")["ends"] == {"home": 8}


def test_a_coordinator_killed_while_answers_are_written(project: Project) -> None:
    run = project.start(*project.run("--dispatch", "file"))
    until(lambda: len(project.waiting()) == 3)
    run.kill()
    run.communicate()
    asked = {signal["case_id"]: signal["dispatch_id"] for signal in project.waiting()}
    for signal in project.waiting():
        wrapped = {"dispatch_id": signal["dispatch_id"], "data": {"n": signal["dispatch_id"]}}
        Path(signal["artifact_path"]).write_text(json.dumps(wrapped))
    with project.watcher("single"):
        found = project.do("resume", "--json")
    assert found["ends"] == {"home": 3}
    for case_id, dispatch_id in asked.items():
        assert project.story(case_id)[0] == ("pack", "artifact", dispatch_id)
        assert len(project.story(case_id)) == 4


def test_a_coordinator_killed_again_and_again(tmp_path: Path) -> None:
    """A parent agent works on; every case comes home, every dispatch is answered by its own."""
    project = Project(tmp_path, cases=6)
    with project.watcher("batch"):
        run = project.start(*project.run("--dispatch", "batch-file"))
        until((project.root / "1" / "batch-manifest.json").exists)
        run.kill()
        run.communicate()
        for _ in range(3):
            before = _batch_id(project)
            run = project.start("resume", "--json")
            until(partial(_moved_on, project, run, before))
            run.kill()
            run.communicate()
        if run.returncode != 0:
            assert project.do("resume", "--json")["ends"] == {"home": 6}
    for case_id in ("odd", "C2", "C6"):
        answered = [(step, n) for step, signal, n in project.story(case_id) if signal == "artifact"]
        assert [step for step, _ in answered] == ["pack", "drive", "pack", "drive"]


def _moved_on(project: Project, run: "subprocess.Popen[str]", before: int) -> bool:
    return run.poll() is not None or _batch_id(project) > before


def _batch_id(project: Project) -> int:
    manifest = project.root / "1" / "batch-manifest.json"
    try:
        found = json.loads(manifest.read_bytes())
    except FileNotFoundError:  # none yet, or that of a dead run is being put away
        return 0
    return int(found.get("batch_id", 0))


def test_nobody_answers(tmp_path: Path) -> None:
    project = Project(tmp_path, cases=1, circuit=CIRCUIT.replace("20s", "300ms"))
    found = project.do(*project.run("--dispatch", "file"), code=3)
    assert found["ends"] == {"lost": 1}
    (signal,) = project.signals()
    assert (signal["status"], signal["error"]) == ("error", "no answer in time")
    assert [each for _, each, _ in project.story("odd")] == ["timeout", "timeout"]
