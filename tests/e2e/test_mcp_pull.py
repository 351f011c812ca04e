"""`interlock mcp` inside the real clients: the model pulls work and hands it in."""

import json
import signal
import sys

import pytest

from tests.e2e.minds import by_mcp
from tests.e2e.project import WALK, Project
from tests.world.agent_cli import Claude, Cli, Codex

ANALYZE = ("analyze", "red.xml", "--dispatch", "mcp", "--review", "dispatch", "--recall-asked")
TASK = "Work for Interlock until it says that the run is over."
SERVER = ("-m", "interlock", "mcp")


def flags(project: Project) -> tuple[str, ...]:
    """The client's way to know the server, as a user would tell it by hand."""
    if isinstance(project.cli, Codex):
        args = json.dumps(list(SERVER))
        output = f'command="{sys.executable}",args={args},cwd="{project.folder}",required=true'
        env = f'env={{PYTHONPATH="{project.env()["PYTHONPATH"]}"}}'
        entry = f'{{{output},{env},default_tools_approval_mode="approve"}}'
        return ("-s", "read-only", "-c", f"mcp_servers.interlock={entry}")
    server = {"command": sys.executable, "args": list(SERVER)}
    file = project.folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"interlock": server}}))
    return ("--mcp-config", str(file), "--strict-mcp-config", "--allowedTools", "mcp__interlock")


@pytest.fixture(params=["claude", "codex"])
def worker(request: pytest.FixtureRequest) -> Cli:
    cli: Cli = request.getfixturevalue(request.param)
    cli.model.script = by_mcp()
    return cli


def test_a_real_client_pulls_a_whole_analysis(worker: Cli) -> None:
    project = Project(worker)
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *flags(project), env=project.env())
    result = json.loads(project.finish(analysis))
    ran = client.finish()
    assert (result["status"], ran.code) == ("done", 0)
    assert project.walks() == {"C1": WALK, "C2": WALK}
    assert project.rows("select count(*) from refusals") == [(0,)]
    project.do("doctor", "--deep")


def test_the_entries_that_init_writes_are_enough(worker: Cli) -> None:
    """Claude takes them as they are; Codex only in a folder that the user trusts."""
    project = Project(worker)
    project.do("init", "--agent", worker.name)
    if isinstance(worker, Codex):
        worker.trusted = True
    own = ("-s", "read-only") if worker.name == "codex" else ("--allowedTools", "mcp__interlock")
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *own, env=project.env())
    assert json.loads(project.finish(analysis))["status"] == "done"
    assert client.finish().code == 0
    assert project.walks() == {"C1": WALK, "C2": WALK}


def test_codex_reads_no_entries_in_a_folder_that_nobody_trusts(codex: Codex) -> None:
    project = Project(codex)
    project.do("init", "--agent", "codex")
    codex.run("Go.", "-s", "read-only", env=project.env())
    assert [tool for tool in codex.model.asked[0].tools if "interlock" in tool] == []


@pytest.mark.parametrize(
    "lie",
    [{"answer": {"nothing": "of what was asked"}}, {"lease": "f" * 32}, {"dispatch_id": 999}],
    ids=["answer", "lease", "dispatch"],
)
def test_a_wrong_answer_is_refused_and_mended(worker: Cli, lie: dict[str, object]) -> None:
    worker.model.script = by_mcp(lie=lie)
    project = Project(worker)
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *flags(project), env=project.env())
    assert json.loads(project.finish(analysis))["status"] == "done"
    assert client.finish().code == 0
    assert project.walks() == {"C1": WALK, "C2": WALK}


def test_a_lost_worker_is_followed_by_another(worker: Cli) -> None:
    project = Project(worker)
    analysis = project.start(*ANALYZE, "--json")
    client = worker.start(TASK, *flags(project), env=project.env())
    project.until_dispatched(4)
    client.send(signal.SIGKILL)
    client.ended()
    another = worker.start(TASK, *flags(project), env=project.env())
    assert json.loads(project.finish(analysis))["status"] == "done"
    another.finish()
    assert project.walks() == {"C1": WALK, "C2": WALK}


def test_interlock_may_be_killed_while_the_client_works(worker: Cli) -> None:
    project = Project(worker)
    analysis = project.start(*ANALYZE)
    client = worker.start(TASK, *flags(project), env=project.env())
    for more in (3, 6, 9):
        project.until_dispatched(more)
        analysis.kill()
        analysis.communicate()
        analysis = project.start(*ANALYZE)
    project.finish(analysis)
    assert client.finish().code == 0
    assert project.walks() == {"C1": WALK, "C2": WALK}
    project.do("doctor", "--deep")


def test_two_clients_of_different_makers_share_a_run(claude: Claude, codex: Codex) -> None:
    claude.model.script = codex.model.script = by_mcp()
    project, other = Project(claude), Project(codex)
    other.folder = project.folder
    analysis = project.start(*ANALYZE, "--json")
    clients = [
        (claude, claude.start(TASK, *flags(project), env=project.env())),
        (codex, codex.start(TASK, *flags(other), env=other.env())),
    ]
    assert json.loads(project.finish(analysis))["status"] == "done"
    for _, process in clients:
        assert process.finish().code == 0
    assert project.walks() == {"C1": WALK, "C2": WALK}
    assert project.rows("select count(*) from refusals") == [(0,)]
