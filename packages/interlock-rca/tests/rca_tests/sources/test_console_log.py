"""The log of a run that broke, and the log beside a report."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.records import Failure
from interlock_rca.sources.console_log import (
    MAX_LOG_PART,
    LogParts,
    find_break,
    find_log_beside,
)
from interlock_rca.sources.entry import SourceEntry

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


def leaf(name: str, *around: str) -> SourceEntry:
    return SourceEntry(name, ".", name, io.BytesIO, lambda: {each: leaf(each) for each in around})


def failure(name: str) -> Failure:
    return Failure(id="1", test_name=name)


@pytest.mark.parametrize(
    ("around", "found"),
    [
        (("TEST-lamp.log", "console.log"), "TEST-lamp.log"),
        (("lamp.log", "output.log"), "lamp.log"),
        (("lamp-output.txt",), "lamp-output.txt"),
        (("Console.LOG",), "Console.LOG"),
        (("build.log", "other.log"), "build.log"),
        (("other.log", "readme.txt"), None),
        ((), None),
    ],
)
def test_the_nearest_name_is_taken(around: tuple[str, ...], found: str | None) -> None:
    log = find_log_beside(leaf("TEST-lamp.xml", *around))
    assert (log.name if log else None) == found


def test_the_part_about_a_test_is_taken_with_lines_around_it() -> None:
    lines = [f"noise {number}" for number in range(1000)]
    lines[500], lines[520] = "run test_glow", "FAIL test_glow[1]"
    parts = LogParts(io.BytesIO("\n".join(lines).encode()), [failure("test_glow[1]")])
    text, is_part = parts.get_part(failure("test_glow[1]"))
    assert text.splitlines()[0] == "noise 480"
    assert "FAIL test_glow[1]" in text
    assert text.splitlines()[-1] == "noise 579"
    assert is_part


def test_names_with_spaces_are_found_too() -> None:
    log = b"\n".join([b"x"] * 200 + [b"not ok: lamp should glow"] + [b"y"] * 5)
    text, _ = LogParts(io.BytesIO(log), [failure("lamp should glow")]).get_part(
        failure("lamp should glow")
    )
    assert text.count("x") == 20


def test_a_test_that_is_not_mentioned_gets_the_end() -> None:
    log = ("a" * 99 + "\n") * 2_000 + "the end"
    text, is_part = LogParts(io.BytesIO(log.encode()), [failure("t")]).get_part(failure("t"))
    assert text.endswith("the end")
    assert (len(text), is_part) == (MAX_LOG_PART, True)


def test_a_short_log_is_whole() -> None:
    parts = LogParts(io.BytesIO(b"one\r\ntwo\n"), [failure("t")])
    assert parts.get_part(failure("t")) == ("one\ntwo", False)


def test_what_is_said_about_another_failure_is_not_taken() -> None:
    log = """collected 3 items
____ test_glow ____
E   ValueError: no wick
____ test_burn ____
E   ConnectionRefusedError: no lamp
==== summary ====
FAILED test_glow - ValueError
FAILED test_burn - ConnectionRefusedError
"""
    all_three = [failure("test_glow"), failure("test_burn[two]"), failure("test_silent")]
    parts = LogParts(io.BytesIO(log.encode()), all_three)
    glow, burn, silent = (parts.get_part(each)[0] for each in all_three)
    assert "no wick" in glow
    assert "Refused" not in glow
    assert "no lamp" in burn
    assert "wick" not in burn
    assert "Error" not in silent


def test_a_title_is_found_however_its_parts_are_joined() -> None:
    log = "\n".join(["● lamp » should glow", "no wick", "● lamp » should burn", "no lamp"])
    both = [failure("lamp should glow"), failure("lamp should burn")]
    parts = LogParts(io.BytesIO(log.encode()), both)
    assert [parts.get_part(each)[0].splitlines()[1:] for each in both] == [["no wick"], ["no lamp"]]


@given(
    st.lists(st.sampled_from(["run test_a", "run test_b", "noise", "test_a test_b", ""])),
    st.lists(st.sampled_from(["test_a", "test_b", "test_c"]), unique=True),
)
def test_no_line_is_lost_and_none_is_taken_from_another(lines: list[str], names: list[str]) -> None:
    log = "\n".join(f"{line} {at}x" for at, line in enumerate(lines))
    failures = [*map(failure, names), failure("test_z")]
    parts = LogParts(io.BytesIO(log.encode()), failures)
    output = {each.test_name: parts.get_part(each)[0] for each in failures}
    kept = {line for text in output.values() for line in text.splitlines()}
    assert kept == {line for line in log.splitlines() if line}
    for name, text in output.items():
        others = [other for other in names if other != name]
        own = [line for line in text.splitlines() if any(other in line for other in others)]
        assert all(name in line for line in own)


def test_of_a_very_large_log_only_the_end_is_kept() -> None:
    log = b"run test_first\n" + b"z" * 20_000_000 + b"\nrun test_last\n"
    both = [failure("test_first"), failure("test_last")]
    parts = LogParts(io.BytesIO(log), both)
    assert "test_first" not in parts.get_part(both[0])[0]
    assert parts.get_part(both[0])[1]
    assert parts.get_part(both[1])[1]
