"""What a content is, by its beginning."""

import hashlib
import io

import pytest

from interlock.rca.sources.entry import Hashing, Kind, kind_of

JUNIT = '<?xml version="1.0"?>\n<testsuites><testsuite/></testsuites>'


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (JUNIT.encode(), "junit"),
        (JUNIT.encode("utf-16"), "junit"),
        (JUNIT.encode("utf-16-le"), "junit"),
        (JUNIT.encode("utf-8-sig"), "junit"),
        (b"\n\n<testcase name='a'/>", "junit"),
        (b'Tests done.\n<?xml version="1.0"?>\n<testsuite name="a">', "junit"),
        (b"<project><name/></project>", "xml"),
        (b"<3 this log begins with a heart", "log"),
        (b'{"run_id": "1", "failure_list": []}', "envelope"),
        (b'{\n  "run_id": "1",', "envelope"),
        (b'{"id": "1", "test_name": "a", "message": ""}\n', "failures"),
        (b'{"Action": "run"}\n{"Action": "pass"}\n', "log"),
        (b"{ok} done", "log"),
        (b"PK\x03\x04....", "zip"),
        (b"PASSED: 3", "log"),
        (b"one\x00two and a long line of text that is mostly text", "log"),
        (bytes(range(16)) * 50, "binary"),
        (bytes(range(256)), "binary"),
        (b"BZh91AY&SY", "packed"),
        (b"\x1b[31mred\x1b[0m\a\b\n" * 9, "log"),
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xff\xfe", "empty"),
    ],
)
def test_the_beginning_tells(head: bytes, kind: Kind) -> None:
    assert kind_of(head) == kind


def test_a_stream_is_hashed_whether_it_is_read_or_not() -> None:
    stream = Hashing(io.BytesIO(b"abc" * 1000))
    assert stream.read(10) == b"abcabcabca"
    assert stream.digest() == hashlib.sha256(b"abc" * 1000).hexdigest()
