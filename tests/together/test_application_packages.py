"""Somebody else's package brings an application, an agent and a settings table; or broken ones.

Both are built and installed as pip installs them, and used by real processes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import httpx
import pytest

from interlock.journal.database import open_writer
from tests.world.places import PYTHONPATH, ROOT
from tests.world.serving import ready

FOREIGN = Path(__file__).parent / "foreign"
CASES = [{"id": "low", "level": 1.5}, {"id": "high", "level": 3.0}, {"id": "odd", "level": 0.0}]
SETTINGS = '[harbour]\nname = "Dover"\noffset = 1.0\n'


class Installed:
    """A folder that pip has installed packages into, and commands that see them."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.site = folder / "site"
        self.project = folder / "project"
        self.project.mkdir()
        for name in names:
            shutil.copytree(FOREIGN / name, folder / name)
        places = [str(folder / name) for name in names]
        flags = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
        self.run("-m", "pip", "install", *flags, "--target", str(self.site), *places)

    @property
    def environment(self) -> dict[str, str]:
        path = [str(self.site), PYTHONPATH, os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}

    def run(self, *words: str, code: int = 0) -> str:
        found = subprocess.run(
            [sys.executable, *words],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout

    def interlock(self, *words: str, code: int = 0) -> str:
        return self.run("-m", "interlock", *words, code=code)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("foreign"), "tidewatch", "brokenwatch")


@pytest.fixture
def project(installed: Installed, tmp_path: Path) -> Installed:
    installed.project = tmp_path
    (tmp_path / "interlock.toml").write_text(SETTINGS)
    lines = "".join(json.dumps(case) + "\n" for case in CASES)
    (tmp_path / "cases.jsonl").write_text(lines)
    return installed


def test_a_foreign_application_and_agent_run_from_the_shell(project: Installed) -> None:
    assert "tidewatch" in project.interlock("circuit", "list")
    project.interlock("circuit", "verify", "tidewatch")
    words = ("--cases", "cases.jsonl", "--agent", "critic=oracle:3", "--json")
    found = json.loads(project.interlock("run", "tidewatch", *words))
    assert found["ends"] == {"calm": 2, "warned": 1}
    output = project.interlock("explain", "odd", "--prompts")
    assert "The water at Dover stands at 1.0 m." in output
    assert "refused (Range): Danger is from 0 to 1." in output


PROGRAM = """
import json, interlock
from interlock.testing.kit import assert_sound
assert_sound("tidewatch")
cases = [json.loads(line) for line in open("cases.jsonl")]
with interlock.Project(".") as project:
    run = project.start("tidewatch", cases, agents={"critic": "oracle:3"})
    run.wait(60)
    print(json.dumps([run.counts, project.report(run)]))
"""


def test_the_same_from_python(project: Installed) -> None:
    counts, report = json.loads(project.run("-c", PROGRAM))
    assert counts == {"calm": 2, "warned": 1}
    assert report.startswith("# Tides\n\n- low measure judge")


def test_its_tables_come_into_a_database_that_was_made_before(project: Installed) -> None:
    with open_writer(project.project / ".interlock" / "interlock.db"):
        pass
    counts, _ = json.loads(project.run("-c", PROGRAM))
    assert counts == {"calm": 2, "warned": 1}


def test_a_foreign_agent_serves_other_circuits(project: Installed) -> None:
    note = ROOT / "README.md"
    circuit = note.read_text().split("```yaml\n")[1].split("```")[0]
    (project.project / "circuits").mkdir()
    (project.project / "circuits" / "note.yaml").write_text(circuit)
    program = """
import interlock
with interlock.Project(".") as project:
    run = project.start("note", [{"id": "C1", "topic": "x stands at 4 m"}],
                        agents={"author": "oracle", "critic": "oracle", "mailer": "oracle"})
    print(run.wait(60).status)
"""
    assert project.run("-c", program) == "unhealthy\n"  # its answer is of another shape


def test_broken_packages_are_told_by_doctor_and_stop_nothing_else(project: Installed) -> None:
    output = json.loads(project.interlock("doctor", "--json", code=6))
    broken = {each["id"]: each["message"] for each in output["checks"] if not each["ok"]}
    assert set(broken) == {
        "application.brokenwatch",
        "application.oldwatch",
        "application.strangewatch",
        "agent.broken",
        "settings.broken",
        "tables.brokenwatch",
        "pages.brokenlinks",
        "pages.brokentaken",
        "pages.brokenuntyped",
    }
    assert "RuntimeError: the licence has run out" in broken["application.brokenwatch"]
    assert "needs interface 0" in broken["application.oldwatch"]
    assert "returns no interlock Application" in broken["application.strangewatch"]
    assert "brokenwatch.nowhere" in broken["agent.broken"]
    assert "holds no schema.sql" in broken["tables.brokenwatch"]
    assert "NavLink" in broken["pages.brokenlinks"]
    assert "the server cannot take it" in broken["pages.brokentaken"]


def test_broken_pages_are_left_out_of_the_server_and_told(project: Installed) -> None:
    server = Popen(
        [sys.executable, "-m", "interlock", "serve", "--port", "0", "--json"],
        cwd=project.project,
        env=project.environment,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )
    try:
        url = ready(server)["url"]
        home = httpx.get(url).text
        for name in ("brokenlinks", "brokenstart", "brokentaken", "brokenuntyped"):
            assert f"The pages of <bdi>{name}</bdi> are left out" in home
        assert "the tide gauge does not answer" in home
        assert "a path that is taken" not in httpx.get(f"{url}/runs").text
        assert httpx.get(f"{url}/causes").status_code == 200
        assert httpx.get(f"{url}/api/v1/runs").status_code == 200
    finally:
        server.send_signal(signal.SIGTERM)
        told = server.communicate(timeout=60)[1]
    assert "the pages of 'brokentaken' are left out" in told
    assert server.returncode == 128 + signal.SIGTERM


def test_a_broken_agent_is_told_when_it_is_asked_for(project: Installed) -> None:
    words = ("--cases", "cases.jsonl", "--agent", "critic=broken")
    project.interlock("run", "tidewatch", *words, code=2)
