"""The verb `analyst read`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPORT = """<testsuite name="s"><testcase classname="C" name="glows"><failure message="dark &#27;"/>
</testcase><testcase name="a"/><testcase name="b"><skipped/></testcase></testsuite>"""


def read(path: Path) -> tuple[int, list[dict[str, Any]], str]:
    command = [sys.executable, "-m", "interlock", "analyst", "read", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_report_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_text(REPORT)
    code, (failure, summary), errors = read(path)
    assert (code, errors) == (0, "")
    assert (failure["id"], failure["test_name"], failure["class_name"]) == (
        "C.glows",
        "glows",
        "C",
    )
    assert failure["message"] == "dark \x1b"
    assert summary == {"summary": {"tests": 3, "failed": 1, "skipped": 1}}


def test_a_log_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text("=== RUN   TestGlow\n--- FAIL: TestGlow (0.00s)\nFAIL\n")
    code, (failure, summary), _ = read(path)
    assert (code, failure["test_name"]) == (0, "TestGlow")
    assert summary["summary"]["failed"] == 1


def test_a_broken_report_gives_what_stands_in_it_and_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    path.write_text(REPORT[: REPORT.index("</testcase>")])
    code, rows, errors = read(path)
    assert code == 0
    assert [row.get("test_name") for row in rows] == ["glows", None]
    assert "r.xml: it ends too early" in errors


@pytest.mark.parametrize(
    ("content", "result"),
    [
        (b"<project/>", "is not JUnit XML"),
        (b"<!DOCTYPE a [<!ENTITY a 'x'>]><testsuite/>", "declares XML entities"),
        (bytes(range(16)) * 50, "is neither a report nor text"),
        (None, "does not exist"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    tmp_path: Path, content: bytes | None, result: str
) -> None:
    path = tmp_path / "f"
    if content is not None:
        path.write_bytes(content)
    code, rows, errors = read(path)
    assert (code, rows) == (2, [])
    assert errors.startswith("interlock: ")
    assert result in errors
    assert errors.count("\n") == 1


def test_a_folder_is_too_much(tmp_path: Path) -> None:
    code, _, errors = read(tmp_path)
    assert (code, errors) == (2, f"interlock: {tmp_path} is a folder: give one file.\n")


def test_an_empty_file_is_a_log_without_tests(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    assert read(tmp_path / "f")[:2] == (
        0,
        [{"summary": {"tests": 0, "failed": 0, "skipped": 0}}],
    )
