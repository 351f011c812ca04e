"""Runs that broke before a test could fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.sources.launch import find_break

CONFTEST = """\
ImportError while loading conftest '/srv/box/tests/conftest.py'.
tests/conftest.py:5: in <module>
    from box import Lid
src/box/lid.py:3: in <module>
    import hinge
E   ModuleNotFoundError: No module named 'hinge'
"""


@pytest.mark.parametrize(
    ("log", "kind", "message"),
    [
        (CONFTEST, "ModuleNotFoundError", "ModuleNotFoundError: No module named 'hinge'"),
        ("error: no matching package named `hinge` found\nmore", "", "no matching package"),
        ("npm warn old\nnpm error code E404\nnpm error 404 not found: hinge", "", "404 not found"),
        ("[INFO] ok\n[ERROR] Unresolveable build extension: hinge", "", "Unresolveable build"),
        ("src/lid.c:3:5: error: unknown type name 'hinge'", "", "unknown type name 'hinge'"),
        ("ok\nsh: 1: hinge: command not found", "", "hinge: command not found"),
        ("BUILD FAILURE\n[ERROR] Plugin hinge could not be resolved: no net", "", "Plugin hinge"),
        ("BUILD FAILED in 3s", "", "BUILD FAILED"),
        ("2024-01-02T03:04:05Z ##[error]Process completed with exit code 2.", "", "exit code 2"),
    ],
)
def test_what_broke_a_run_is_said(log: str, kind: str, message: str) -> None:
    found = find_break(log.split("\n"))
    assert found is not None
    assert found.type == kind
    assert message in found.message
    assert any(message in line for line in found.lines)


def test_the_lines_that_lead_to_an_error_are_kept() -> None:
    found = find_break(CONFTEST.split("\n"))
    assert found is not None
    assert "src/box/lid.py:3: in <module>" in found.lines


@pytest.mark.parametrize("log", ["", "all is well\n0 errors", "Errors: 0", "error handling: ok"])
def test_a_calm_log_has_no_break(log: str) -> None:
    assert find_break(log.split("\n")) is None


@given(st.lists(st.text(max_size=40), max_size=30))
def test_any_text_is_read(lines: list[str]) -> None:
    found = find_break([*lines, "error: no lid"])
    assert found is not None
    assert found.message


def test_a_giant_log_is_bounded() -> None:
    found = find_break(["error: no lid", *("x" * 10_000 for _ in range(5_000))])
    assert found is not None
    assert sum(map(len, found.lines)) < 400_000
