"""`interlock respond` as a user starts it: real processes, real files, any command as the agent."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.world.command_line import LIMIT, CliResult, World, ended, until

ANSWER = """
import json, os, sys
names = ("DISPATCH_ID", "CASE_ID", "STEP", "SIGNAL_PATH", "BRIEFING_PATH")
said = {name: os.environ["INTERLOCK_" + name] for name in names}
print(json.dumps({**said, "prompt": sys.stdin.read()}))
"""
LOGGED = """
import os, time
log, meeting = LOG, 1
with open(log, "a") as file:
    file.write("+ " + os.environ["INTERLOCK_DISPATCH_ID"] + chr(10))
for _ in range(2000):
    if open(log).read().count("+") >= meeting:
        break
    time.sleep(0.01)
time.sleep(0.1)
with open(log, "a") as file:
    file.write("- " + os.environ["INTERLOCK_DISPATCH_ID"] + chr(10))
print("{}")
"""
HANGING = """
import os, time
with open(LOG, "w") as file:
    file.write(str(os.getpid()))
time.sleep(600)
"""


class ResponderWorkspace:
    """A workspace with signals, and the command run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suite = folder / ".asterisk" / "calibrate" / "1"
        self.log = folder / "log"
        self._started: list[subprocess.Popen[str]] = []

    def case(self, number: int, **fields: Any) -> Path:
        """A waiting signal; its dispatch has the case's number."""
        folder = self.suite / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prompt.md").write_text(f"question {number}")
        written = {
            "status": "waiting",
            "dispatch_id": number,
            "case_id": f"C{number}",
            "step": "F0_RECALL",
            "prompt_path": str(folder / "prompt.md"),
            "artifact_path": str(folder / "recall-result.json"),
            "timestamp": "2026-02-16T12:00:00Z",
            "error": "",
            **fields,
        }
        put(folder / "signal.json", written)
        return folder

    def manifest(self, *numbers: int, **statuses: str) -> None:
        entries = [
            {
                "case_id": f"C{number}",
                "signal_path": f".asterisk/calibrate/1/{number}/signal.json",
                "status": statuses.get(f"C{number}", "pending"),
            }
            for number in numbers
        ]
        written = {
            "batch_id": 1,
            "status": "pending",
            "phase": "triage",
            "created_at": "2026-02-16T12:00:00Z",
            "updated_at": "2026-02-16T12:00:00Z",
            "total": len(entries),
            "briefing_path": ".asterisk/calibrate/1/briefing.md",
            "signals": entries,
        }
        put(self.suite / "batch-manifest.json", written)

    def budget(self, total: int, used: int) -> None:
        percent = used / total * 100
        written = {"total_budget": total, "used": used, "remaining": total - used}
        put(self.suite / "budget-status.json", {**written, "percent_used": percent})

    def statuses(self) -> dict[str, str]:
        manifest = read(self.suite / "batch-manifest.json")
        return {"batch": manifest["status"]} | {
            one["case_id"]: one["status"] for one in manifest["signals"]
        }

    def words(self, agent: str, *more: str) -> tuple[str, ...]:
        script = self.folder / "agent.py"
        script.write_text(f"LOG = {str(self.log)!r}\n{agent}")
        return ("respond", *more, "--agent", f"exec:{sys.executable} {script}")

    def start(self, *words: str, agent: str = ANSWER) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "interlock", *self.words(agent, *words)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def respond(self, *words: str, agent: str = ANSWER) -> CliResult:
        return World(self.folder).say(*self.words(agent, "--once", *words))

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate(timeout=LIMIT)


def put(path: Path, value: object) -> None:
    fresh = path.with_suffix(".fresh")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def runs(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "environ").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ResponderWorkspace]:
    made = ResponderWorkspace(tmp_path)
    yield made
    made.end()


def test_answers_what_waits(bench: ResponderWorkspace) -> None:
    folder = bench.case(7)
    result = bench.respond("--json")
    assert (result.code, result.err) == (0, "7 C7 F0_RECALL answered\n")
    assert json.loads(result.out) == {
        "schema_version": 1,
        "answered": 1,
        "failed": 0,
        "overtaken": 0,
        "budget_spent": False,
    }
    assert read(folder / "recall-result.json") == {
        "dispatch_id": 7,
        "data": {
            "DISPATCH_ID": "7",
            "CASE_ID": "C7",
            "STEP": "F0_RECALL",
            "SIGNAL_PATH": str(folder / "signal.json"),
            "BRIEFING_PATH": "",
            "prompt": "question 7",
        },
    }
    assert (folder / "recall-result.json").stat().st_mode & 0o777 == 0o600
    assert read(folder / "signal.json")["status"] == "waiting"
    names = {"prompt.md", "signal.json", "recall-result.json"}
    assert {each.name for each in folder.iterdir()} == names


def test_an_answer_is_given_once(bench: ResponderWorkspace) -> None:
    bench.case(7)
    assert bench.respond().err == "7 C7 F0_RECALL answered\n"
    assert bench.respond() == (0, "", "")


def test_batch_is_worked_through_and_noted(bench: ResponderWorkspace) -> None:
    for number in (1, 2, 3):
        bench.case(number)
    (bench.suite / "briefing.md").write_text("what is known")
    bench.manifest(1, 2, 3)
    (bench.suite / "2" / "prompt.md").unlink()
    result = bench.respond(".asterisk/calibrate/1/batch-manifest.json")
    assert result.code == 1
    assert bench.statuses() == {"batch": "in_progress", "C1": "done", "C2": "error", "C3": "done"}
    found = read(bench.suite / "1" / "recall-result.json")["data"]
    assert found["BRIEFING_PATH"] == str(bench.suite / "briefing.md")
    wrong = read(bench.suite / "2" / "signal.json")
    assert (wrong["status"], wrong["dispatch_id"]) == ("error", 2)
    assert wrong["error"].endswith("prompt.md cannot be read: No such file or directory")
    left = {each.name for each in bench.suite.iterdir() if each.is_file()}
    assert left == {"batch-manifest.json", "briefing.md"}


def test_missing_briefing_is_no_hindrance(bench: ResponderWorkspace) -> None:
    bench.case(1)
    bench.manifest(1)
    assert bench.respond().code == 0
    assert read(bench.suite / "1" / "recall-result.json")["data"]["BRIEFING_PATH"] == ""


def test_what_another_parent_has_claimed_is_left_to_it(bench: ResponderWorkspace) -> None:
    bench.case(1)
    bench.case(2)
    bench.manifest(1, 2, C1="claimed")
    assert bench.respond().err == "2 C2 F0_RECALL answered\n"
    assert bench.statuses() == {"batch": "in_progress", "C1": "claimed", "C2": "done"}


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("import sys; sys.exit('no tokens left')", "crash: exit code 1: no tokens left"),
        ("print('Sure! Here it is')", "the agent must print one JSON object: "),
        ("print('[1]')", "the agent must print one JSON object: it holds a list"),
        ("print('')", "the agent must print one JSON object: it is empty"),
        ('print(\'{"dispatch_id": 9, "data": {}}\')', "the agent answered dispatch 9, not 7"),
        ('print(\'{"dispatch_id": "7", "data": {}}\')', "the agent's own wrapper is wrong: "),
        ("import time; time.sleep(600)", "timeout: no answer within 0.5 s"),
    ],
)
def test_a_failed_answer_is_reported_in_the_signal(
    bench: ResponderWorkspace, agent: str, reason: str
) -> None:
    folder = bench.case(7)
    before = read(folder / "signal.json")
    result = bench.respond("--timeout", "0.5s", agent=agent)
    assert result.code == 1
    after = read(folder / "signal.json")
    assert after["error"].startswith(reason)
    assert after == {**before, "status": "error", "error": after["error"]}
    assert not (folder / "recall-result.json").exists()


def test_an_agent_may_wrap_its_answer_itself(bench: ResponderWorkspace) -> None:
    folder = bench.case(7)
    bench.respond(agent='print(\'{"dispatch_id": 7, "data": {"x": 1}}\')')
    assert read(folder / "recall-result.json") == {"dispatch_id": 7, "data": {"x": 1}}


@pytest.mark.parametrize(
    ("field", "path", "reason"),
    [
        ("prompt_path", "/etc/hostname", "/etc/hostname is not inside "),
        ("prompt_path", "{suite}/../../../secret", "is not a plain path"),
        ("prompt_path", "{suite}/link.md", "link.md is a symlink"),
        ("prompt_path", "{suite}/latin.md", "is not UTF-8"),
        ("artifact_path", "{folder}/stolen.json", "stolen.json is not inside "),
        ("artifact_path", "relative.json", "relative.json is not inside "),
        ("artifact_path", "{suite}/7/signal.json", "an artifact may not be written to"),
        ("artifact_path", "{suite}/link.md", "link.md is a symlink"),
        ("artifact_path", "{suite}/none/artifact.json", "the artifact cannot be written: "),
    ],
)
def test_paths_that_lead_elsewhere_are_refused(
    bench: ResponderWorkspace, field: str, path: str, reason: str
) -> None:
    bench.suite.mkdir(parents=True)
    secret = bench.folder / "secret"
    secret.write_text("secret")
    (bench.suite / "link.md").symlink_to(secret)
    (bench.suite / "latin.md").write_bytes(b"caf\xe9")
    folder = bench.case(7, **{field: path.format(suite=bench.suite, folder=bench.folder)})
    result = bench.respond()
    assert result.code == 1
    written = read(folder / "signal.json")
    assert (written["status"], written["dispatch_id"]) == ("error", 7)
    assert reason in written["error"]
    assert secret.read_text() == "secret"
    assert not (bench.folder / "stolen.json").exists()


def test_two_responders_never_answer_the_same_signal(bench: ResponderWorkspace) -> None:
    numbers = range(1, 13)
    for number in numbers:
        bench.case(number)
    bench.manifest(*numbers)
    agent = LOGGED.replace(", 1\n", ", 4\n")  # more than one of them has hands: both must come
    both = [bench.start("--parallel", "3", agent=agent) for _ in range(2)]
    until(
        lambda: all((bench.suite / str(n) / "recall-result.json").exists() for n in numbers), "all"
    )
    until(lambda: set(bench.statuses().values()) == {"in_progress", "done"}, "noted")
    for process in both:
        process.terminate()
    assert [ended(process).code for process in both] == [143, 143]
    started = [line for line in bench.log.read_text().splitlines() if line.startswith("+")]
    assert sorted(started) == sorted(f"+ {number}" for number in numbers)


@pytest.mark.parametrize(("used", "parallel", "most"), [(100, 3, 3), (100, 1, 1), (810, 3, 1)])
def test_so_many_workers_at_once(
    bench: ResponderWorkspace, used: int, parallel: int, most: int
) -> None:
    for number in range(1, 6):
        bench.case(number)
    bench.manifest(*range(1, 6))
    bench.budget(1000, used)
    agent = LOGGED.replace(", 1\n", f", {most}\n")  # nobody leaves before so many have come
    assert bench.respond("--parallel", str(parallel), agent=agent).code == 0
    at_once = seen = 0
    for line in bench.log.read_text().splitlines():
        at_once += 1 if line.startswith("+") else -1
        seen = max(seen, at_once)
    assert seen == most


def test_spent_budget_takes_nothing_and_says_so(bench: ResponderWorkspace) -> None:
    bench.case(1)
    bench.manifest(1)
    bench.budget(1000, 1000)
    assert bench.respond() == (5, "", "")
    assert bench.statuses() == {"batch": "pending", "C1": "pending"}
    bench.budget(2000, 1000)
    assert bench.respond().code == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_leaves_the_signal_to_others(
    bench: ResponderWorkspace, number: signal.Signals, code: int
) -> None:
    folder = bench.case(7)
    bench.manifest(7)
    process = bench.start(agent=HANGING)
    until(lambda: bench.log.exists() and bench.log.read_text(), "the worker")
    process.send_signal(number)
    assert ended(process).code == code
    assert not runs(int(bench.log.read_text()))
    assert read(folder / "signal.json")["status"] == "waiting"
    assert bench.respond().err == "7 C7 F0_RECALL answered\n"
    assert bench.statuses() == {"batch": "in_progress", "C7": "done"}


def test_a_killed_responders_work_is_taken_over(bench: ResponderWorkspace) -> None:
    bench.case(7)
    bench.manifest(7)
    process = bench.start(agent=HANGING)
    until(lambda: bench.log.exists() and bench.log.read_text(), "the worker")
    assert bench.respond() == (0, "", ""), "held by a living responder"
    process.kill()
    process.wait(LIMIT)
    os.kill(int(bench.log.read_text()), signal.SIGKILL)
    assert bench.respond().err == "7 C7 F0_RECALL answered\n"


def test_worker_is_ended_when_the_coordinator_goes_on(bench: ResponderWorkspace) -> None:
    folder = bench.case(7)
    process = bench.start(agent=HANGING)
    until(lambda: bench.log.exists() and bench.log.read_text(), "the worker")
    worker = int(bench.log.read_text())
    bench.case(7, status="error", error="timeout waiting for artifact")
    until(lambda: not runs(worker), "the worker's end")
    assert not (folder / "recall-result.json").exists()
    assert process.stderr is not None
    assert process.stderr.readline() == "7 C7 F0_RECALL overtaken\n"
    process.terminate()
    assert ended(process) == (143, "", "")
    assert read(folder / "signal.json")["error"] == "timeout waiting for artifact"


def test_signals_that_come_later_are_answered(bench: ResponderWorkspace) -> None:
    process = bench.start()
    assert process.stderr is not None
    assert process.stderr.readline() == "nothing at .interlock/runs or .asterisk yet\n"
    for number in (1, 2):
        folder = bench.case(number)
        assert process.stderr.readline() == f"{number} C{number} F0_RECALL answered\n"
        assert (folder / "recall-result.json").exists()
    process.terminate()
    assert ended(process) == (143, "", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no agent is named; use --agent exec:COMMAND"),
        (("--agent", "nobody"), "'nobody' names no agent"),
        (("--agent", "exec:nosuchcommand"), "there is no command 'nosuchcommand' to run"),
        (("--agent", "exec:true", "--timeout", "soon"), "'soon' is not a duration"),
        (
            ("--agent", "exec:true", "/etc/hostname"),
            "/etc/hostname is neither a folder nor a signal.json",
        ),
    ],
)
def test_wrong_words_are_a_users_mistake(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    command = [sys.executable, "-m", "interlock", "respond", "--once", *words]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
