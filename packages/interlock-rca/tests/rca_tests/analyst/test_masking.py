"""Masking: what changes from run to run goes, what names the fault stays.

Fingerprints: alike for one failure anywhere, different for different failures.
"""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.masking import compute_fingerprint, mask_line, mask_text
from interlock_rca.records import Failure

SAME = [
    ("took 12 ms", "took 9 ms"),
    ("took 12.5s", "took 1s"),
    ("at 2024-01-02T03:04:05.678Z done", "at 2023-11-30T23:59:59Z done"),
    ("Mon, 3 Feb 2020 10:11:12 GMT x", "Tue, 14 Jan 2025 01:02:03 GMT x"),
    ("12/Jan/2020:10:11:12 +0000 x", "3/Dec/2021:09:01:02 +0200 x"),
    ("Jan 12 10:11:12 host x", "Feb  3 01:00:59 host x"),
    ("item 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "item 00000000-aaaa-11d3-9a0c-0305e82c3302"),
    ("Widget@1b2c3d4e", "Widget@77aa01"),
    ("at 0x7fff12ab", "at 0xdeadbeef"),
    (
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "commit 1a410efbd13591db07496601ebc7a059dd55cfe9",
    ),
    ("refused by 10.0.0.1:8080", "refused by 192.168.7.20:34567"),
    ("bind localhost:34567", "bind localhost:40001"),
    ("see https://a.example/x?y=1", "see http://b.example/"),
    ("no /home/me/work/box.py", "no /builds/7/box.py"),
    ("no C:\\Users\\me\\box.py", "no D:\\agent\\_work\\box.py"),
    ("left /tmp/tmpab12cd34/out.json", "left /tmp/tmpzz90_k1q/other.json"),
    ("in tmp4x_9ab2k", "in tmpq1w2e3r4"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("thread pool-1-thread-3", "thread pool-12-thread-40"),
    ("user4821 gone", "user99120 gone"),
    ("key kf8s9d0x", "key a1b2c3d4"),
    ("MAC 00:1a:2b:3c:4d:5e", "MAC a0:00:00:00:00:01"),
    ("line 12, in run", "line 7, in run"),
]
OTHER = [
    ("status 403", "status 404"),
    ("statusCode=500", "statusCode=502"),
    ("HTTP/1.1 403 Forbidden", "HTTP/1.1 401 Unauthorized"),
    ("503 Service Unavailable", "504 Gateway Timeout"),
    ("<Response [403]>", "<Response [404]>"),
    ("assert 403 == 200", "assert 500 == 200"),
    ("expected:<200> but was:<404>", "expected:<200> but was:<500>"),
    ("exit code 137", "exit code 1"),
    ("Process exited with code 1", "Process exited with code 2"),
    ("[Errno 13] denied", "[Errno 2] denied"),
    ("ORA-00942", "ORA-00001"),
    ("error TS2345: x", "error TS2322: x"),
    ("no /home/me/box.py", "no /home/me/lid.py"),
    ("int32 wanted", "int64 wanted"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_two_runs_of_one_line_read_alike(one: str, two: str) -> None:
    assert mask_line(one) == mask_line(two)
    assert mask_line(one)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_two_faults_stay_apart(one: str, two: str) -> None:
    assert mask_line(one) != mask_line(two)


def test_words_stay_as_they_are() -> None:
    text = "Connection to the database was refused: is it running? (see src/main/Box.java)"
    assert mask_text(text) == text


@given(st.text())
def test_lines_are_masked_one_by_one(text: str) -> None:
    assert mask_text(text) == "\n".join(map(mask_text, text.split("\n")))


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_any_number_is_as_good_as_another(one: int, two: int) -> None:
    line = "moved {} things"
    assert mask_text(line.format(one)) == mask_text(line.format(two)) == "moved <num> things"


@given(st.uuids(), st.ip_addresses(v=4), st.datetimes())
def test_nothing_volatile_is_left(drawn: object, address: object, at: object) -> None:
    assert mask_text(f"{drawn} {address} {at}") == "<uuid> <ip> <time>"


PIECES = [
    *("a", "1", "1.", "/a", "a1", "1:", "\x1b]", "\x1b[", "status ", "code: ", "ab:", "0x", "-"),
    *("http://", "/", "Jan 1 ", "2020-", "tmp_", "@", "\\", "1.1.1.1.", "deadbeef-", "A-1", "\0"),
]


@pytest.mark.parametrize("piece", PIECES)
def test_giant_lines_are_only_long(piece: str) -> None:
    """A pattern that backtracks would not end here."""
    assert isinstance(mask_text(piece * (400_000 // len(piece))), str)


def failed(**parts: Any) -> Failure:
    output: dict[str, Any] = {
        "id": "1",
        "test_name": "test_open",
        "class_name": "box.LidTest",
        "type": "AssertionError",
        "message": "the lid is shut",
        "stack": "\tat box.Lid.open(Lid.java:12)\n\tat java.util.List.of(List.java:9)",
    }
    return Failure(**{**output, **parts})


@given(
    number=st.integers(0, 10**8),
    other=st.integers(0, 10**8),
    drawn=st.uuids(),
    at=st.datetimes(),
    pointer=st.integers(2**20, 2**40),
)
def test_another_run_has_the_same(
    number: int, other: int, drawn: Any, at: Any, pointer: int
) -> None:
    def run(number: int, drawn: str, at: str, pointer: str) -> Failure:
        return failed(
            id=drawn,
            at=at,
            launch=str(number),
            log=f"{at} line {number}",
            message=f"lid {drawn} of /tmp/run-{number}/x shut at {at}, {pointer}, {number} left",
            stack=f'  File "/builds/{number}/lid.py", line {number}, in open',
        )

    one = run(number, str(drawn), str(at), hex(pointer))
    two = run(other, "0" * 8 + str(drawn)[8:], "2020-02-02 10:00:00", hex(pointer + 1))
    assert compute_fingerprint(one) == compute_fingerprint(two)


@pytest.mark.parametrize(
    "parts",
    [
        {"message": "the lid is open"},
        {"test_name": "test_shut"},
        {"class_name": "box.HingeTest"},
        {"type": "TypeError"},
        {"stack": "\tat box.Hinge.open(Hinge.java:12)"},
        {"stack": ""},
    ],
)
def test_another_failure_has_another(parts: dict[str, Any]) -> None:
    assert compute_fingerprint(failed()) != compute_fingerprint(failed(**parts))


@given(st.sampled_from(range(400, 600)), st.sampled_from(range(400, 600)))
def test_status_codes_tell_failures_apart(one: int, two: int) -> None:
    same = compute_fingerprint(failed(message=f"status {one}")) == compute_fingerprint(
        failed(message=f"status {two}")
    )
    assert same == (one == two)


def test_frames_of_the_language_do_not_count() -> None:
    assert compute_fingerprint(failed()) == compute_fingerprint(
        failed(stack="\tat box.Lid.open(Lid.java:99)")
    )


def test_it_is_the_same_on_every_machine() -> None:
    assert compute_fingerprint(failed()) == "4eb8a82a821a5678"


@given(st.text(), st.text(), st.text())
def test_any_failure_has_one(name: str, message: str, stack: str) -> None:
    made = compute_fingerprint(failed(test_name=name, message=message, stack=stack))
    assert re.fullmatch("[0-9a-f]{16}", made)


def test_a_giant_message_has_one() -> None:
    assert len(compute_fingerprint(failed(message="1." * 2_000_000, stack="a\n" * 100_000))) == 16
