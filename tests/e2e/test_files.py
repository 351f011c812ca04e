"""The file protocol with real clients: Interlock writes signals, the CLI reads and answers them."""

import json
import signal

import pytest

from tests.e2e.minds import bash, by_files, exec_command
from tests.e2e.project import WALK, Project
from tests.world.agent_cli import Cli

ANALYZE = ("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch", "--recall-asked")
TASK = "Answer the signals of Interlock below .asterisk/calibrate until none is left."
FLAGS = {
    "claude": ("--allowedTools", "Bash", "--permission-mode", "acceptEdits"),
    "codex": ("-s", "danger-full-access"),
}


@pytest.fixture(params=["claude", "codex"])
def worker(request: pytest.FixtureRequest) -> Cli:
    cli: Cli = request.getfixturevalue(request.param)
    shell = bash if request.param == "claude" else exec_command
    cli.model.script = by_files(shell, cli.work / "over")
    return cli


def test_a_real_client_carries_an_analysis_over_files(worker: Cli) -> None:
    project = Project(worker)
    project.do("init", "--agent", worker.name)
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *FLAGS[worker.name])
    result = json.loads(project.finish(analysis))
    (worker.work / "over").touch()
    ran = client.finish()
    assert (result["status"], ran.code) == ("done", 0)
    assert project.walks() == {"C1": WALK, "C2": WALK}
    assert project.rows("select count(*) from refusals") == [(0,)]
    project.do("doctor", "--deep")


def test_the_skill_is_offered_to_the_model(worker: Cli) -> None:
    project = Project(worker)
    project.do("init", "--agent", worker.name)
    (worker.work / "over").touch()
    worker.run(TASK, *FLAGS[worker.name])
    assert "interlock-signals" in json.dumps(worker.model.asked[0].body)


def test_the_client_may_be_killed_and_another_goes_on(worker: Cli) -> None:
    project = Project(worker)
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *FLAGS[worker.name])
    project.until_dispatched(4)
    client.send(signal.SIGKILL)
    client.ended()
    another = worker.start(TASK, *FLAGS[worker.name])
    assert json.loads(project.finish(analysis))["status"] == "done"
    (worker.work / "over").touch()
    another.finish()
    assert project.walks() == {"C1": WALK, "C2": WALK}


def test_interlock_may_be_killed_while_the_client_works(worker: Cli) -> None:
    project = Project(worker)
    analysis = project.start(*ANALYZE)
    client = worker.start(TASK, *FLAGS[worker.name])
    for more in (3, 6, 9):
        project.until_dispatched(more)
        analysis.kill()
        analysis.communicate()
        analysis = project.start(*ANALYZE)
    project.finish(analysis)
    (worker.work / "over").touch()
    assert client.finish().code == 0
    assert project.walks() == {"C1": WALK, "C2": WALK}
    project.do("doctor", "--deep")
