"""What a content is, by its beginning.

Zips of CI artifacts, honest and hostile.
"""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock_rca.sources.entry import (
    ContentKind,
    HashingStream,
    SourceEntry,
    detect_content_kind,
    list_members,
)
from interlock_rca.sources.read import read_sources

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
def test_the_beginning_tells(head: bytes, kind: ContentKind) -> None:
    assert detect_content_kind(head) == kind


def test_a_stream_is_hashed_whether_it_is_read_or_not() -> None:
    stream = HashingStream(io.BytesIO(b"abc" * 1000))
    assert stream.read(10) == b"abcabcabca"
    assert stream.finish_digest() == hashlib.sha256(b"abc" * 1000).hexdigest()


REPORT = b"<testsuite name='s'><testcase name='t'><failure/></testcase></testsuite>"


def zipped(path: Path, **contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def content(leaf: SourceEntry) -> bytes:
    with leaf.open() as stream:
        return b"".join(iter(lambda: stream.read(1000), b""))


def test_members_are_read_in_place_and_in_order(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.zip", **{"b/r.xml": REPORT, "a.log": b"x", "b/r.log": b"y", "c.png": b"z"}
    )
    leaves, notes = list_members(path, "a.zip")
    assert [leaf.label for leaf in leaves] == ["a.zip!a.log", "a.zip!b/r.log", "a.zip!b/r.xml"]
    assert content(leaves[2]) == REPORT
    assert set(leaves[2].neighbours()) == {"r.log", "r.xml"}
    assert notes == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zip"]


@pytest.mark.parametrize("name", ["../../r.xml", "/etc/r.xml", "C:\\r.xml", "a/../../r.xml"])
def test_names_that_lead_elsewhere_are_only_labels(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "a.zip", **{name: REPORT})
    (intake,) = read_sources([str(path)])
    assert [each.test_name for each in intake.failures] == ["t"]
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a.zip"]


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", **{"bomb.xml": REPORT + b" " * 70_000_000, "r.xml": REPORT})
    leaves, notes = list_members(path, "a.zip")
    assert [leaf.name for leaf in leaves] == ["r.xml"]
    assert notes == ["a.zip!bomb.xml: skipped, it looks like a zip bomb"]


def test_a_bomb_that_lies_about_its_size_is_stopped(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", **{"bomb.xml": REPORT + b" " * 70_000_000})
    raw = path.read_bytes()
    size = (70_000_000 + len(REPORT)).to_bytes(4, "little")
    path.write_bytes(raw.replace(size, (1000).to_bytes(4, "little")))
    (leaf,), _ = list_members(path, "a.zip")
    try:
        assert len(content(leaf)) <= 1000
    except SourceError as error:
        assert "a.zip!bomb.xml" in str(error)  # noqa: PT017  either way it is harmless


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20_001):
            archive.writestr(f"{number}.xml", b"")
    with pytest.raises(SourceError, match="unpack what is needed"):
        list_members(path, "a.zip")


@pytest.mark.parametrize("cut", [10, 60, 120])
def test_broken_archives_are_said(tmp_path: Path, cut: int) -> None:
    path = zipped(tmp_path / "a.zip", **{"r.xml": REPORT * 10})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SourceError, match=r"a\.zip is not a readable zip"):
        list_members(path, "a.zip")


def test_a_member_that_is_damaged_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("bad.xml", REPORT.replace(b"'t'", b"'unlucky'"))
        archive.writestr("good.xml", REPORT)
    path.write_bytes(path.read_bytes().replace(b"unlucky", b"changed", 1))
    (intake,) = read_sources([str(path)])
    assert [each.test_name for each in intake.failures] == ["t"]
    assert any("bad.xml cannot be unpacked" in note for note in intake.notes)
