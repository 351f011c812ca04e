"""`interlock conform` as a user starts it: its table, its JSON, its JUnit file, its exit codes."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from interlock.testing.conform.scenarios import SCENARIOS
from tests.world.places import ROOT

WATCHERS = Path(__file__).parents[1] / "testing" / "conform" / "watchers"
GOOD = (sys.executable, str(WATCHERS / "single.py"))
BAD = (sys.executable, str(WATCHERS / "faulty.py"), "string_id")
INTERLOCK = (sys.executable, "-m", "interlock", "conform")
LIMIT = 180.0


def conform(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*INTERLOCK, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def test_table_of_a_good_watcher() -> None:
    result = conform("--only", "one-step", "--only", "two-cases,prompt-missing", "--", *GOOD)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "scenario        verdict  expected                                                      "
        "          seen\n"
        "one-step        pass     a waiting signal gets a wrapped artifact with its dispatch_id "
        "          answered 4102\n"
        "two-cases       pass     two signals waiting at once are both answered, each with its o"
        "wn        answered 4102 and 4104\n"
        "prompt-missing  pass     a prompt that cannot be read is reported or left alone, never "
        "answered  reported it, then went on\n"
        "\n"
        "3 passed, 0 failed, 0 skipped\n"
    )


def test_table_of_a_bad_watcher() -> None:
    result = conform("--timeout", "2s", "--only", "one-step", "--", *BAD)
    assert (result.returncode, result.stderr) == (6, "")
    assert result.stdout == (
        "scenario  verdict  expected                                  seen\n"
        "one-step  fail     an artifact with dispatch_id 4102 for C1  "
        'dispatch_id is a str, not an integer; write "dispatch_id": 4102\n'
        "\n"
        "0 passed, 1 failed, 0 skipped\n"
        "  one-step matters: everything else builds on it\n"
    )


def test_one_json_object() -> None:
    result = conform("--json", "--only", "one-step", "--", *GOOD)
    found = json.loads(result.stdout)
    [row] = found.pop("scenarios")
    assert found == {
        "schema_version": 1,
        "command": list(GOOD),
        "conforms": True,
        "passed": 1,
        "failed": 0,
        "skipped": 0,
    }
    assert row.pop("seconds") > 0
    assert row == {
        "scenario": "one-step",
        "verdict": "pass",
        "expected": SCENARIOS[0].checks,
        "seen": "answered 4102",
        "why": SCENARIOS[0].why,
        "notes": [],
    }


def test_junit_file_holds_also_what_xml_cannot(tmp_path: Path) -> None:
    path = tmp_path / "found.xml"
    rude = (sys.executable, "-c", "import sys; sys.exit('<&\\x00\\x1b[31m\"]]>')")
    result = conform("--junit", str(path), "--only", "one-step,batch", "--", *rude)
    assert result.returncode == 6
    suite = ElementTree.parse(path).getroot()[0]
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2",
        "failures": "2",
        "errors": "0",
        "skipped": "0",
    }
    cases = suite.findall("testcase")
    assert [each.attrib["name"] for each in cases] == ["one-step", "batch"]
    failure = cases[0].find("failure")
    assert failure is not None
    seen = 'the watcher ended with exit code 1, saying: <&\ufffd\ufffd[31m"]]>'
    assert failure.attrib["message"] == seen
    assert "\x1b" not in result.stdout


def test_list_shows_every_scenario() -> None:
    result = conform("--list")
    assert result.returncode == 0
    names = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert names == [each.name for each in SCENARIOS]
    rows = json.loads(conform("--list", "--json").stdout)["scenarios"]
    assert [row["why"] for row in rows] == [each.why for each in SCENARIOS]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name the watcher's command after --"),
        (("--", "nosuchwatcher"), "there is no command 'nosuchwatcher' to run"),
        (("--only", "none", "--", "true"), "--only 'none': there is one-step, several-steps"),
        (("--timeout", "0", "--", "true"), "'0' is not a duration"),
        (("--junit", "/nowhere/x.xml", "--", "true"), "/nowhere/x.xml cannot be written"),
        (("--nosuch", "--", "true"), "--nosuch"),
    ],
)
def test_wrong_words_are_a_users_mistake(words: tuple[str, ...], sentence: str) -> None:
    result = conform(*words)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_ends_the_watchers_too(tmp_path: Path, number: signal.Signals, code: int) -> None:
    kept = tmp_path / "kept"
    silent = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    words = ("--timeout", "10m", "--keep", str(kept), "--", sys.executable, "-c", silent)
    with subprocess.Popen([*INTERLOCK, *words], stderr=subprocess.PIPE, text=True) as process:
        watchers = _watchers(kept)
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == code
    assert "Traceback" not in err
    assert [pid for pid in watchers if _runs(pid)] == []


def _watchers(kept: Path) -> list[int]:
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        result = [each.read_text() for each in kept.glob("*/watcher.log")]
        if len(result) == 4 and all(each.endswith("\n") for each in result):
            return [int(each) for each in result]
        time.sleep(0.01)
    raise AssertionError("the watchers did not start")


def _runs(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "environ").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_how_to_shows_the_table() -> None:
    page = ROOT / "docs" / "howto" / "check-a-watcher.md"
    text = page.read_text(encoding="utf-8")
    rows = [f"| `{each.name}` | {each.checks} | {each.why} |" for each in SCENARIOS]
    assert "\n".join(["| scenario | what must be seen | why |", "|---|---|---|", *rows]) in text
    assert set(re.findall(r"--[a-z]+", text)) <= {
        "--only",
        "--timeout",
        "--jobs",
        "--keep",
        "--junit",
        "--json",
        "--list",
        "--agent",
    }
