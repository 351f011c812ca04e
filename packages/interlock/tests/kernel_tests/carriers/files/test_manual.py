"""The carrier `manual`: written out, left alone, answered by a later command."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.carriers.files import name_files
from interlock.carriers.files.file import read_saved_artifact, write_artifact
from interlock.signals.signal_file import Artifact
from interlock.system.errors import SourceError, StoreError
from tests.world.file_carrier_bench import FileBench, ask_for, wrapped
from tests.world.project import Project, until


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, cases=2)


def saved(project: Project, value: object) -> str:
    (project.folder / "answer.json").write_text(json.dumps(value))
    return "answer.json"


def save(project: Project, case_id: str, value: object, code: int = 0) -> str:
    return str(project.do("save", case_id, "-f", saved(project, value), code=code))


def test_from_the_first_step_to_the_end(project: Project) -> None:
    found = project.do(*project.run("--dispatch", "manual"), code=4)
    assert (found["status"], found["tally"]["questions"]) == ("waiting", 2)
    for turn in range(4):
        for signal in project.waiting():
            given = {"n": turn}
            value = wrapped(signal["dispatch_id"], given) if turn % 2 else given
            assert "saved the answer" in save(project, signal["case_id"], value)
        found = project.do("resume", "--json", code=0 if turn == 3 else 4)
    assert found["ends"] == {"home": 2}
    assert project.story("odd") == [
        ("pack", "artifact", 0),
        ("drive", "artifact", 1),
        ("pack", "artifact", 2),
        ("drive", "artifact", 3),
    ]
    assert {signal["status"] for signal in project.signals()} == {"done"}


def test_what_is_said_to_the_user(project: Project) -> None:
    words = [word for word in project.run("--dispatch", "manual") if word != "--json"]
    assert (
        project.do(*words, code=4)
        == """\
run 1: waiting; 2 open; 2 dispatches
case odd waits for an answer to .interlock/runs/1/1/prompt-pack.md: \
'interlock save odd -f FILE' and 'interlock resume 1'
case C2 waits for an answer to .interlock/runs/1/2/prompt-pack.md: \
'interlock save C2 -f FILE' and 'interlock resume 1'
"""
    )


def test_run_again_goes_on_like_resume(project: Project) -> None:
    project.do(*project.run("--dispatch", "manual"), code=4)
    save(project, "odd", {"n": 1})
    project.do(*project.run("--dispatch", "manual"), code=4)
    assert project.story("odd") == [("pack", "artifact", 1)]
    assert project.story("C2") == []


REFUSED = [
    ({"m": 1}, "Answer lacks the field 'n'. Nothing was saved"),
    (wrapped(99), "it answers dispatch 99, and 1 is open; nothing was saved"),
    (wrapped("1"), "dispatch_id is a str, not an integer; nothing was saved"),
    ({"dispatch_id": 1, "data": [1]}, "data is a list, not an object; nothing was saved"),
    ([1], "it holds a list, not an object; nothing was saved"),
]


def test_what_does_not_fit_is_not_saved(project: Project) -> None:
    project.do(*project.run("--dispatch", "manual"), code=4)
    for value, why in REFUSED:
        assert save(project, "odd", value, code=2) == f"interlock: answer.json: {why}\n"
    assert not [*project.root.glob("*/*/*-result*")]


def test_what_is_not_open_cannot_be_saved(project: Project) -> None:
    project.do(*project.run("--dispatch", "manual"), code=4)
    assert "there is no case 'nobody'" in save(project, "nobody", {"n": 1}, code=1)
    assert "there is no case 'odd' in run 9" in project.do(
        "save", "odd", "--run", "9", "-f", saved(project, {}), code=1
    )
    assert "is not there; nothing was saved" in project.do("save", "odd", "-f", "no.json", code=2)


def test_the_later_of_two_answers_counts_and_both_are_kept(project: Project) -> None:
    project.do(*project.run("--dispatch", "manual"), code=4)
    save(project, "odd", {"n": 1})
    save(project, "odd", {"n": 2})
    project.do("resume", "--json", code=4)
    assert project.story("odd") == [("pack", "artifact", 2)]
    kept = json.loads((project.root / "1" / "1" / "pack-result.replaced.json").read_bytes())
    assert kept == {"dispatch_id": 1, "data": {"n": 1}}


def test_steps_with_an_agent_are_not_answered_by_hand(project: Project) -> None:
    (project.folder / "crew.yaml").write_text("'*': {pack: {silent: true}}")
    run = project.start(*project.run("--agent", "script:crew.yaml"))
    until(lambda: _is_asked(project, "odd"))
    run.kill()
    run.communicate()
    assert "is answered by script:crew.yaml" in save(project, "odd", {"n": 1}, code=1)


def _is_asked(project: Project, case_id: str) -> bool:
    with suppress(StoreError):
        return bool(project.life(case_id))
    return False


async def test_papers_left_by_hand_are_found(tmp_path: Path) -> None:
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
    left = write_artifact(tmp_path, 1, 7, name_files("work", 1), Artifact(1, {"n": 5}))
    assert left == bench.place() / "work-result.json"
    async with FileBench(tmp_path) as bench:
        bench.carrier.send([ask_for(1)])
        assert [json.loads(each) for each in bench.describe_replies()] == [{"n": 5}]


def test_a_wrapper_is_known_by_both_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"dispatch_id": 4}')
    assert read_saved_artifact(path, 1) == Artifact(1, {"dispatch_id": 4})
    path.write_text("x" * 2_000_000)
    with pytest.raises(SourceError, match="has more than"):
        read_saved_artifact(path, 1)
