"""The log beside a report."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.records import Failure
from interlock.rca.sources.entry import SourceEntry
from interlock.rca.sources.launch import PART_BOUND, LogParts, log_beside


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
    log = log_beside(leaf("TEST-lamp.xml", *around))
    assert (log.name if log else None) == found


def test_the_part_about_a_test_is_taken_with_lines_around_it() -> None:
    lines = [f"noise {number}" for number in range(1000)]
    lines[500], lines[520] = "run test_glow", "FAIL test_glow[1]"
    parts = LogParts(io.BytesIO("\n".join(lines).encode()), [failure("test_glow[1]")])
    text, is_part = parts.part(failure("test_glow[1]"))
    assert text.splitlines()[0] == "noise 480"
    assert "FAIL test_glow[1]" in text
    assert text.splitlines()[-1] == "noise 579"
    assert is_part


def test_names_with_spaces_are_found_too() -> None:
    log = b"\n".join([b"x"] * 200 + [b"not ok: lamp should glow"] + [b"y"] * 5)
    text, _ = LogParts(io.BytesIO(log), [failure("lamp should glow")]).part(
        failure("lamp should glow")
    )
    assert text.count("x") == 20


def test_a_test_that_is_not_mentioned_gets_the_end() -> None:
    log = ("a" * 99 + "\n") * 2_000 + "the end"
    text, is_part = LogParts(io.BytesIO(log.encode()), [failure("t")]).part(failure("t"))
    assert text.endswith("the end")
    assert (len(text), is_part) == (PART_BOUND, True)


def test_a_short_log_is_whole() -> None:
    parts = LogParts(io.BytesIO(b"one\r\ntwo\n"), [failure("t")])
    assert parts.part(failure("t")) == ("one\ntwo", False)


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
    glow, burn, silent = (parts.part(each)[0] for each in all_three)
    assert "no wick" in glow
    assert "Refused" not in glow
    assert "no lamp" in burn
    assert "wick" not in burn
    assert "Error" not in silent


def test_a_title_is_found_however_its_parts_are_joined() -> None:
    log = "\n".join(["● lamp » should glow", "no wick", "● lamp » should burn", "no lamp"])
    both = [failure("lamp should glow"), failure("lamp should burn")]
    parts = LogParts(io.BytesIO(log.encode()), both)
    assert [parts.part(each)[0].splitlines()[1:] for each in both] == [["no wick"], ["no lamp"]]


@given(
    st.lists(st.sampled_from(["run test_a", "run test_b", "noise", "test_a test_b", ""])),
    st.lists(st.sampled_from(["test_a", "test_b", "test_c"]), unique=True),
)
def test_no_line_is_lost_and_none_is_taken_from_another(lines: list[str], names: list[str]) -> None:
    log = "\n".join(f"{line} {at}x" for at, line in enumerate(lines))
    failures = [*map(failure, names), failure("test_z")]
    parts = LogParts(io.BytesIO(log.encode()), failures)
    told = {each.test_name: parts.part(each)[0] for each in failures}
    kept = {line for text in told.values() for line in text.splitlines()}
    assert kept == {line for line in log.splitlines() if line}
    for name, text in told.items():
        others = [other for other in names if other != name]
        own = [line for line in text.splitlines() if any(other in line for other in others)]
        assert all(name in line for line in own)


def test_of_a_very_large_log_only_the_end_is_kept() -> None:
    log = b"run test_first\n" + b"z" * 20_000_000 + b"\nrun test_last\n"
    both = [failure("test_first"), failure("test_last")]
    parts = LogParts(io.BytesIO(log), both)
    assert "test_first" not in parts.part(both[0])[0]
    assert parts.part(both[0])[1]
    assert parts.part(both[1])[1]
