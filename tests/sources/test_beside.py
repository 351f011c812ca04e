"""The log beside a report."""

import io

import pytest

from interlock.apps.rca.failure import Failure
from interlock.sources.beside import PART_BOUND, LogParts, log_beside
from interlock.sources.leaf import Leaf


def leaf(name: str, *around: str) -> Leaf:
    return Leaf(name, ".", name, io.BytesIO, lambda: {each: leaf(each) for each in around})


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


def test_of_a_very_large_log_only_the_end_is_kept() -> None:
    log = b"run test_first\n" + b"z" * 20_000_000 + b"\nrun test_last\n"
    both = [failure("test_first"), failure("test_last")]
    parts = LogParts(io.BytesIO(log), both)
    assert "test_last" in parts.part(both[0])[0]
    assert parts.part(both[1])[1]
