"""The kernel runs a circuit where no other package of the workspace is installed."""

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.world.places import ROOT

KERNEL = ROOT / "packages" / "interlock"
CIRCUIT = """\
circuit: note
start: write
ends: {sent: healthy, dropped: unhealthy}
steps:
  write: {role: author, timeout: 5m, prompt: "Write about {{ case.topic }}.", answer: text}
  allow: {gate: true, timeout: 7d, answer: approval}
  send: {role: mailer, timeout: 1m, writes: true}
rules:
  - {at: write, to: allow}
  - {at: allow, when: decision == "approve", to: send}
  - {at: send, to: sent}
otherwise: {to: dropped, why: Nothing good came of it.}
"""
FUNCTION = """
import interlock
with interlock.Project(".") as project:
    agents = {"author": lambda dispatch: {"text": "Rain."}, "mailer": lambda dispatch: {}}
    run = project.start("note", [{"id": "F", "topic": "rain"}], agents=agents, id="functions")
    run.wait(60)
    for question in project.inbox(run):
        project.answer(question, "approve", by="ann")
    print(run.wait(60).status)
"""


class Alone:
    """A folder, and commands that see the kernel and the libraries, but no other package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        libraries = folder / "libraries"
        libraries.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if "interlock_" not in entry.name and entry.suffix != ".pth":
                (libraries / entry.name).symlink_to(entry)
        self._path = os.pathsep.join([str(KERNEL / "src"), str(libraries)])
        (self.folder / "circuits").mkdir(parents=True)
        (self.folder / "circuits" / "note.yaml").write_text(CIRCUIT)
        (self.folder / "cases.jsonl").write_text('{"id": "C1", "topic": "rain"}\n')

    def run(self, *words: str, code: int = 0) -> str:
        found = subprocess.run(
            [sys.executable, "-S", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": self._path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == code, found.stdout + found.stderr
        return found.stdout + found.stderr

    def interlock(self, *words: str, code: int = 0) -> str:
        return self.run("-m", "interlock", *words, code=code)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(tmp_path_factory.mktemp("alone"))


def test_a_command_and_a_person_answer(alone: Alone) -> None:
    (alone.folder / "write.sh").write_text('cat > /dev/null; echo \'{"text": "Rain."}\'\n')
    (alone.folder / "send.sh").write_text("cat > /dev/null; echo '{}'\n")
    agents = ("--agent", "author=exec:sh write.sh", "--agent", "mailer=exec:sh send.sh")
    assert "waiting" in alone.interlock("run", "note", "--cases", "cases.jsonl", *agents, code=4)
    assert "C1" in alone.interlock("inbox")
    alone.interlock("answer", "2", "approve")
    assert "1 sent" in alone.interlock("resume")
    assert "send" in alone.interlock("explain", "C1")


def test_functions_answer(alone: Alone) -> None:
    assert alone.run("-c", FUNCTION).splitlines()[-1] == "done"


def test_what_is_not_installed_is_named(alone: Alone) -> None:
    assert "analyze" not in alone.interlock("--help")
    asked = ("run", "note", "--cases", "cases.jsonl", "--agent", "claude")
    missing = alone.interlock(*asked, "--db", "postgresql://nobody@127.0.0.1/none", code=2)
    assert "pip install interlock-cluster" in missing


def test_the_kernel_needs_few_libraries() -> None:
    project = tomllib.loads((KERNEL / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(project["dependencies"]) <= 7
