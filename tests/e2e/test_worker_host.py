"""The real Claude Code on a worker's host: PostgreSQL, coordinator and worker are apart.

Each is a host of its own, with an address and a network of its own, where network namespaces can be
made. Elsewhere they are processes with folders of their own on one host, as the tests' names say.
The model of ours is on the worker's host alone: no other could ask it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cluster.hosts import ClusterServer
from tests.cluster.network import CannotRunError, Link, Network
from tests.e2e.minds import bash
from tests.e2e.project import until
from tests.e2e.test_agents import CIRCUIT, DAEMON, GOOD
from tests.world.agent_cli import Claude, left_behind, living
from tests.world.models.anthropic import messages_api, usage_spent
from tests.world.models.script import Answer, Asked, Fault, Line, Says, Script, in_order
from tests.world.places import PYTHONPATH
from tests.world.postgres_server import make_folder

SETTINGS = "[agent.claude]\npermission_mode = 'acceptEdits'\nallowed_tools = ['Bash']\n"
HOSTS = "hosts"
LOGIN = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""}


class Fleet:
    """Three hosts, and what runs on them."""

    def __init__(self, folder: Path, held: ExitStack, places: str) -> None:
        self._held = held
        self._links = self._build_network() if places == HOSTS else {}
        shared = make_folder(f"interlock-e2e-{os.getpid()}-{time.monotonic_ns()}")
        held.callback(subprocess.run, ["rm", "-rf", str(shared)], check=False)
        self.server = ClusterServer(shared / "server", self._links.get("server"))
        held.callback(self.server.close)
        self._project = folder / "coordinator"
        self._project.mkdir()
        link = self._links.get("worker")
        model = messages_api(in_order(GOOD))
        self.model = link.call_inside(model.__enter__) if link else model.__enter__()
        held.callback(model.__exit__, None, None, None)
        self.claude = Claude(folder / "worker", self.model)
        (self.claude.work / "interlock.toml").write_text(SETTINGS)
        self._say("init-db")

    def _build_network(self) -> Mapping[str, Link]:
        network = self._held.enter_context(Network(seed=1))
        links = {name: network.add(name) for name in ("server", "coordinator", "worker")}
        network.start()
        return links

    def start(
        self, host: str, *words: str, more: Mapping[str, str] = {}
    ) -> "subprocess.Popen[str]":
        """A daemon on a host; it ends with the test."""
        command: Sequence[str] = [sys.executable, "-m", "interlock", *words]
        if link := self._links.get(host):
            command = link.enter(command)
        is_worker = host == "worker"
        process = subprocess.Popen(
            command,
            cwd=self.claude.work if is_worker else self._project,
            env={
                **(self.claude.env() if is_worker else {"PATH": os.environ["PATH"]}),
                "PYTHONPATH": PYTHONPATH,
                "INTERLOCK_DB": self.server.address,
                **more,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._held.callback(_end, process)
        return process

    def start_worker(self, more: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
        words = ("--role", "author=claude", "--slots", "2", "--lease", "3", "--grace", "0")
        return self.start("worker", "worker", *words, more=more)

    def _say(self, *words: str) -> str:
        """A command on the coordinator's host."""
        process = self.start("coordinator", *words)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return err

    def run(self, prompt: str = "Go.", limit: str = "90s") -> None:
        """Begin a run that is left to whoever coordinates, and its agents to workers."""
        text = CIRCUIT.replace("TIME", limit).replace("PROMPT", prompt)
        circuit = text.replace("role: worker", "role: author")
        (self._project / "errand.yaml").write_text(circuit)
        (self._project / "cases.jsonl").write_text('{"id": "C1"}\n')
        words = ("errand.yaml", "--cases", "cases.jsonl", "--agent", "worker", "--detach")
        self._say("run", *words)

    def read(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.local_address, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def finish(self) -> list[tuple[str, str]]:
        """Wait for the run's end; what each asking came to, and where it led."""
        over = "select status from runs where status in ('done', 'unhealthy')"
        until(lambda: self.read(over), "the run is over")
        assert self.read(over) == [("done",)]
        decided = "select decision::json->>'signal', decision::json->>'rule' from journal"
        return [(signal, rule) for signal, rule in self.read(f"{decided} order by seq")]


def _end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _find_places() -> str:
    """What this machine can do."""
    try:
        with Network(seed=1) as network:
            network.add("probe")
    except CannotRunError:
        return "processes"
    return HOSTS


@pytest.fixture(params=[_find_places()])
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    with ExitStack() as held:
        made = Fleet(tmp_path, held, request.param)
        made.start("coordinator", "coordinator")
        yield made
    assert left_behind(made.claude.home) == []


def first(answer: Answer) -> Script:
    """That for the first asking; then the good answer, also to later processes."""
    asked: list[int] = []

    def script(this: Asked) -> Answer:
        asked.append(this.number)
        return answer if len(asked) == 1 else GOOD

    return script


def test_claude_answers_on_its_own_host_and_the_coordinator_decides(fleet: Fleet) -> None:
    fleet.model.script = in_order(Says("I look.", (bash("hostname > where; pwd >> where"),)), GOOD)
    fleet.start_worker()
    fleet.run("Where are you?")
    assert fleet.finish() == [("artifact", "back")]
    assert "Where are you?" in fleet.model.asked[0].prompt
    where = next(fleet.claude.work.rglob("where")).read_text().split()
    assert where[0] == ("worker" if fleet.server.disk else os.uname().nodename)
    assert where[1].startswith(str(fleet.claude.work))
    assert fleet.read("select tokens > 0 from journal") == [(True,)]
    until(lambda: living_agents(fleet) == [], "the agent has ended")


def test_a_silent_model_meets_the_step_s_time(fleet: Fleet) -> None:
    fleet.model.script = first(Fault(Line.SILENT))
    fleet.start_worker()
    fleet.run(limit="6s")
    assert fleet.finish() == [("timeout", "again"), ("artifact", "back")]


def test_the_whole_tree_of_an_agent_is_ended_with_it(fleet: Fleet) -> None:
    daemon = DAEMON.replace("&", "</dev/null >/dev/null 2>&1 &")
    fleet.model.script = first(Says("I run it.", (bash(daemon),)))
    fleet.start_worker()
    fleet.run(limit="10s")
    assert fleet.finish() == [("timeout", "again"), ("artifact", "back")]
    until(lambda: living_agents(fleet) == [], "what it left behind has ended, too")
    assert list(fleet.claude.work.rglob("daemon"))


def test_a_spent_subscription_rests_and_costs_no_attempt(fleet: Fleet) -> None:
    asked: list[float] = []

    def script(_this: Asked) -> Answer:
        asked.append(time.time())
        return usage_spent(int(asked[0]) + 8) if time.time() < int(asked[0]) + 8 else GOOD

    fleet.model.script = script
    fleet.start_worker(LOGIN)
    fleet.run()
    assert fleet.finish() == [("artifact", "back")]
    ((until_, at),) = fleet.read("select until, at from pauses")
    assert 0 < until_ - at <= 9
    assert asked[-1] >= int(asked[0]) + 8


def test_a_worker_killed_leaves_agents_that_the_next_one_ends(fleet: Fleet) -> None:
    fleet.model.script = first(Says("I run it.", (bash("touch begun; sleep 604"),)))
    worker = fleet.start_worker()
    fleet.run()
    until(lambda: list(fleet.claude.work.rglob("begun")), "a tool of the agent runs")
    left = {process.pid for process in living_agents(fleet)}
    worker.kill()
    worker.communicate()
    fleet.start_worker()
    assert fleet.finish() == [("artifact", "back")]
    assert not left & {process.pid for process in living_agents(fleet)}
    assert fleet.read("select fence from interlock_queue.offers") == [(2,)]


def living_agents(fleet: Fleet) -> list[Any]:
    """The processes on the worker's host, but for the worker."""
    return [each for each in living(fleet.claude.home) if "interlock" not in each.cmdline()]
