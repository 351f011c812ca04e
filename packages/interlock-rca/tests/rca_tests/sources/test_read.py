"""Whatever a user names becomes launches with failures.

From a word to what there is to read.
"""

import json
import os
import zipfile
from pathlib import Path

import msgspec
import pytest

from interlock.system.errors import SourceError
from interlock_rca.sources.read import find_entries, read_sources
from rca_tests.worlds.reportportal import LAUNCH_ID, PROJECT, TOKEN, Portal, a_portal, an_item

REPORT = '<testsuite name="s"><testcase classname="C" name="t"><failure/></testcase></testsuite>'
ENVELOPE = {"run_id": "9", "name": "night", "failure_list": [{"id": 5, "name": "glows"}]}


def environ(portal: Portal) -> dict[str, str]:
    return {
        "ASTERISK_RP_URL": portal.url,
        "ASTERISK_RP_PROJECT": PROJECT,
        "ASTERISK_RP_TOKEN": TOKEN,
    }


def test_each_source_with_a_launch_of_its_own_is_one_and_files_are_another(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT)
    (tmp_path / "e.json").write_text(json.dumps(ENVELOPE))
    (tmp_path / "f.jsonl").write_text(
        '{"id": "1", "test_name": "a", "launch": "L1"}\n'
        '{"id": "2", "test_name": "b", "launch": "L2"}\n'
        '{"id": "3", "test_name": "c"}\n'
    )
    with a_portal() as portal:
        portal.add(an_item(1, "dims"))
        words = [str(tmp_path / name) for name in ("e.json", "r.xml", "f.jsonl")]
        found = read_sources([*words, f"rp:{LAUNCH_ID}"], environ=environ(portal))
    assert [(each.launch.launch_id, [f.id for f in each.failures]) for each in found[:4]] == [
        ("9", ["glows"]),
        ("L1", ["1"]),
        ("L2", ["2"]),
        ("7001", ["dims"]),
    ]
    assert [failure.id for failure in found[4].failures] == ["C.t", "3"]


def test_a_launchs_page_is_read_as_the_launch() -> None:
    with a_portal() as portal:
        portal.add(an_item(1, "dims"))
        word = f"{portal.url}/ui/#{PROJECT}/launches/all/{LAUNCH_ID}/1/log"
        (found,) = read_sources([word], environ={"ASTERISK_RP_TOKEN": TOKEN})
    assert found.launch.project == PROJECT
    assert [failure.item_id for failure in found.failures] == [1]


def test_a_zip_with_reports_and_logs(tmp_path: Path) -> None:
    path = tmp_path / "artifacts.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("unit/r.xml", REPORT)
        archive.writestr("unit/console.log", "t: it went wrong")
        archive.writestr("unit/pom.xml", "<project/>")
    (found,) = read_sources([str(path)])
    assert [failure.log for failure in found.failures] == ["t: it went wrong"]
    assert f"{path}: 1 XML files are not JUnit reports: skipped" in found.notes


def test_downloaded_artifacts_are_zips_in_a_folder(tmp_path: Path) -> None:
    for name in ("linux", "windows"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("r.xml", REPORT.replace('"t"', f'"t_{name}"'))
            archive.writestr("console.log", f"t_{name}: it went wrong")
    with zipfile.ZipFile(tmp_path / "trace.zip", "w") as archive:
        archive.writestr("trace.log", "FAILED tests/test_a.py::test_b - no test of ours")
    (tmp_path / "torn.zip").write_bytes(b"PK\x03\x04 and no more")
    (found,) = read_sources([str(tmp_path)])
    assert [(failure.test_name, failure.log) for failure in found.failures] == [
        ("t_linux", "t_linux: it went wrong"),
        ("t_windows", "t_windows: it went wrong"),
    ]
    assert "torn.zip is not a readable zip" in found.notes[0]
    for name in ("linux", "windows"):
        (tmp_path / f"{name}.zip").unlink()
    with pytest.raises(SourceError, match=r"torn\.zip is not a readable zip"):
        read_sources([str(tmp_path)])


def test_the_same_word_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT)
    (tmp_path / "e.json").write_text(json.dumps(ENVELOPE))
    (tmp_path / "e2.json").write_text(json.dumps(ENVELOPE))
    names = ("r.xml", "r.xml", "e.json", "e2.json")
    envelope, files = read_sources([str(tmp_path / name) for name in names])
    assert len(files.failures) == 1
    assert envelope.notes[0] == "launch 9 was named twice: read once"


def test_a_bad_file_among_good_ones_is_said_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<!DOCTYPE a [<!ENTITY a 'x'>]><testsuite/>")
    (tmp_path / "b.xml").write_text(REPORT)
    (found,) = read_sources([str(tmp_path / "*.xml")])
    assert len(found.failures) == 1
    assert found.notes[0].startswith("skipped: a.xml declares XML entities")


@pytest.mark.parametrize(
    ("content", "result"),
    [
        (b"", "is empty"),
        (b"<project/>", "is XML, but not a JUnit report"),
        (bytes(range(16)) * 50, "is neither a report nor text"),
        (b'{"a": 1}', "is not an envelope"),
        (b"<!DOCTYPE a [<!ENTITY a 'x'>]><testsuite/>", "declares XML entities"),
    ],
)
def test_if_nothing_can_be_read_the_reason_is_said(
    tmp_path: Path, content: bytes, result: str
) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(SourceError, match=result):
        read_sources([str(tmp_path / "f")])


def test_an_empty_folder_has_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No report and no log was found"):
        read_sources([str(tmp_path)])


GREEN = '<testsuite name="s"><testcase classname="C" name="t"/></testsuite>'


@pytest.mark.parametrize(
    ("name", "content", "result"),
    [
        ("a.log", b"it was a quiet night\n", "a.log there is no test result that is understood"),
        (
            "a.log",
            b"=== 3 failed, 1 passed in 1.0s ===\n",
            "3 tests failed, but nothing says",
        ),
        ("a.xml", GREEN[:50].encode(), "not everything could be read: a.xml: it ends too early"),
        (
            "a.xml",
            GREEN.replace("/>", ">").encode(),
            "not everything could be read: a.xml: broken XML",
        ),
        (
            "a.xml",
            GREEN.replace('"s"', '"s" failures="2" errors="1"').encode(),
            "a.xml: it counts 3 failed tests and shows none of them",
        ),
        (
            "a.xml",
            GREEN.replace("</testsuite", '<error message="no disk"/></testsuite').encode(),
            "a.xml: the suite s has an error: no disk",
        ),
        ("a.json", b'{"failure_list": [{"name": "no id"}, 7]}', "2 tests failed, but nothing"),
        ("a.gz", b"\x1f\x8b\x08\x00" + bytes(range(256)), "is compressed: unpack it first"),
        ("a.bin", bytes(range(256)) * 9, "is neither a report nor text"),
    ],
)
def test_that_nothing_failed_is_only_said_where_all_was_read(
    tmp_path: Path, name: str, content: bytes, result: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=result):
        read_sources([str(tmp_path / name)])


def test_a_green_report_beside_a_broken_one_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(GREEN)
    assert read_sources([str(tmp_path)])[0].failures == []
    (tmp_path / "b.xml").write_text("<!DOCTYPE a [<!ENTITY a 'x'>]><testsuite/>")
    with pytest.raises(SourceError, match="but not everything could be read: b"):
        read_sources([str(tmp_path)])


def test_what_an_archive_hides_is_told_when_nothing_else_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r.xml", b" " * 100_000_000)
    with pytest.raises(SourceError, match=r"r\.xml: skipped, it looks like a zip bomb"):
        read_sources([str(path)])
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(path, "inner.zip")
    with pytest.raises(SourceError, match=r"inner\.zip: an archive in an archive is not opened"):
        read_sources([str(tmp_path / "b.zip")])
    with zipfile.ZipFile(tmp_path / "b.zip", "a") as archive:
        archive.writestr("r.xml", GREEN)
    (found,) = read_sources([str(tmp_path / "b.zip")])
    assert "inner.zip: an archive in an archive is not opened" in found.notes[0]


def test_a_launch_whose_failed_tests_are_not_shown_is_not_green() -> None:
    with a_portal() as portal, pytest.raises(SourceError, match=r"2 tests failed.*the token may"):
        read_sources([f"rp:{LAUNCH_ID}"], environ=environ(portal))


def test_links_in_a_circle_are_walked_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "r.xml").write_text(REPORT)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (found,) = read_sources([str(tmp_path / "**" / "*.xml")])
    assert (len(found.failures), found.notes) == (1, [])


def test_a_launch_that_cannot_be_read_is_an_error_even_beside_files(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(REPORT)
    with a_portal() as portal, pytest.raises(SourceError, match="has no launch 5"):
        read_sources([str(tmp_path), "rp:5"], environ=environ(portal))


def test_not_every_file_gets_a_note_for_ever(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.xml").write_text(REPORT)
    (found,) = read_sources([str(tmp_path)])
    assert len(found.notes) == 101
    assert found.notes[-1] == "and 199 more such notes"


def test_thirty_thousand_failures(tmp_path: Path) -> None:
    case = '<testcase classname="C" name="t{}"><failure message="m"/></testcase>'
    cases = "".join(case.format(number // 2) for number in range(60_000))
    (tmp_path / "r.xml").write_text(f"<testsuite>{cases}</testsuite>")
    (found,) = read_sources([str(tmp_path / "r.xml")])
    assert found.failures[-1].id == "C.t29999"
    assert found.failures[-1].attributes["attempts"] == "2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.xml", "a.xml", "a.log", "x.py", ".hidden.xml", "deep/er/c.XML"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    for name in (".git", "node_modules"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "d.xml").write_text("text")
    return tmp_path


def found(word: Path | str) -> list[str]:
    return [leaf.name for leaf in find_entries(str(word))[0]]


def test_a_folder_is_searched_for_reports_and_logs(folder: Path) -> None:
    assert found(folder) == ["a.log", "a.xml", "b.xml", "c.XML"]


def test_a_glob_is_sorted_and_may_go_deep(folder: Path) -> None:
    assert found(folder / "*.xml") == ["a.xml", "b.xml"]
    assert found(folder / "**" / "*.XML") == ["c.XML"]
    assert found(folder / "d*") == ["c.XML"]


def test_a_file_with_the_signs_of_a_glob_is_a_file(folder: Path) -> None:
    (folder / "a[1].xml").write_text("text")
    assert found(folder / "a[1].xml") == ["a[1].xml"]


def test_a_file_knows_the_logs_beside_it(folder: Path) -> None:
    (leaf,), _ = find_entries(str(folder / "a.xml"))
    assert list(leaf.neighbours()) == ["a.log"]
    assert leaf.is_given


def test_links_that_go_round_are_no_harm(folder: Path) -> None:
    (folder / "deep" / "round").symlink_to(folder)
    (folder / "broken.xml").symlink_to(folder / "nothing")
    assert found(folder) == ["a.log", "a.xml", "b.xml", "c.XML"]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("none.xml", "does not exist: give a file, a folder, a glob, a zip, or rp:LAUNCH_ID"),
        ("none*.xml", "matches no file"),
        ("a.xml/more", "cannot be read"),
        ("x\0y", "cannot be read"),
        ("n" * 5000, "cannot be read"),
    ],
)
def test_what_names_nothing_is_said(folder: Path, name: str, result: str) -> None:
    with pytest.raises(SourceError, match=result):
        find_entries(f"{folder}/{name}")


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.xml")
    with pytest.raises(SourceError, match="is not a regular file"):
        find_entries(str(folder / "pipe.xml"))
    assert "pipe.xml" not in found(folder)


@pytest.mark.parametrize("status", ["FAILED", "INTERRUPTED", "IN_PROGRESS", "STOPPED"])
def test_a_launch_that_did_not_pass_is_not_green_for_want_of_failed_tests(
    tmp_path: Path, status: str
) -> None:
    envelope = tmp_path / "launch.json"
    content = {"run_id": "7", "failure_list": [], "statistics": {"executions": {"total": 3}}}
    envelope.write_bytes(msgspec.json.encode({**content, "status": "PASSED"}))
    assert read_sources([str(envelope)])[0].failures == []
    envelope.write_bytes(msgspec.json.encode({**content, "status": status}))
    with pytest.raises(SourceError, match=f"launch 7 is {status}"):
        read_sources([str(envelope)])
