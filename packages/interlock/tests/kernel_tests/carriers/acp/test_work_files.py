"""Files of the work folder: read and written through Interlock, and nothing outside it."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.acp.conversation import LARGEST_FILE, read_text, write_text
from interlock.carriers.acp.settings import AcpSettings
from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder
from tests.world.acp_agents import make_acp_agent, noted, reply_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A work folder with a file, links that lead out, and secrets beside it."""
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret").write_text("secret")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "out").symlink_to(tmp_path)
    (work / "empty-link").symlink_to(tmp_path / "fresh")
    os.mkfifo(work / "pipe")
    return work


@pytest.mark.parametrize(
    ("line", "limit", "text"),
    [
        (None, None, "one\ntwo\nthree\n"),
        (2, None, "two\nthree\n"),
        (None, 1, "one\n"),
        (2, 1, "two\n"),
        (0, 1, "one\n"),
        (9, 9, ""),
        (1, 0, ""),
    ],
)
def test_reading(place: Path, line: int | None, limit: int | None, text: str) -> None:
    assert read_text(OpenFolder(place), f"{place}/notes.txt", line, limit) == text


GAMES = [
    "notes.txt",
    "",
    "/",
    "/etc/passwd",
    "WORK",
    "WORK/",
    "WORK/../secret",
    "WORK/deep/../../secret",
    "WORK/./deep/../../secret",
    "WORK-other/x",
    "WORK/link",
    "WORK/out/secret",
    "WORK/out/../secret",
    "WORK/pipe",
    "WORK/deep",
    "WORK/notes.txt/x",
    "//WORK/../secret",
    "WORK/a\0b",
    "WORK/" + "x" * 300,
    "WORK/" + "x/" * 3_000 + "x",
]


@pytest.mark.parametrize("path", GAMES)
def test_path_games_are_refused(place: Path, path: str) -> None:
    files = OpenFolder(place)
    before = sorted(os.walk(place.parent))
    path = path.replace("WORK", str(place))
    with pytest.raises(SourceError):
        read_text(files, path)
    with pytest.raises(SourceError):
        write_text(files, path, "mine")
    assert sorted(os.walk(place.parent)) == before
    assert (place.parent / "secret").read_text() == "secret"


def test_a_link_to_nothing_is_not_written_through(place: Path) -> None:
    with pytest.raises(SourceError):
        write_text(OpenFolder(place), f"{place}/empty-link", "mine")
    assert not (place.parent / "fresh").exists()


def test_writing_makes_folders_and_replaces_the_whole_file(place: Path) -> None:
    files = OpenFolder(place)
    write_text(files, f"{place}/a/b/c.txt", "first, and longer")
    write_text(files, f"{place}/a/b/c.txt", "ü")
    assert read_text(files, f"{place}/a/b/c.txt") == "ü"
    assert [*(place / "a" / "b").iterdir()] == [place / "a" / "b" / "c.txt"]


def test_a_second_name_of_a_file_outside_is_not_written_through(place: Path) -> None:
    os.link(place.parent / "secret", place / "second")
    write_text(OpenFolder(place), f"{place}/second", "mine")
    assert (place.parent / "secret").read_text() == "secret"


def test_what_is_too_large_or_no_text(place: Path) -> None:
    files = OpenFolder(place)
    (place / "large").write_bytes(b"x" * (LARGEST_FILE + 1))
    (place / "bytes").write_bytes(b"\xff")
    for name in ("large", "bytes"):
        with pytest.raises(SourceError):
            read_text(files, f"{place}/{name}")
    with pytest.raises(SourceError):
        write_text(files, f"{place}/new", "x" * (LARGEST_FILE + 1))
    write_text(files, f"{place}/odd", "\ud800")
    assert read_text(files, f"{place}/odd") == "?"


@given(
    st.lists(st.sampled_from(["..", ".", "link", "out", "deep", "secret", "~", "*"]), max_size=6)
)
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.mktemp("games")
    work = root / "work"
    (work / "deep").mkdir(parents=True)
    (root / "secret").write_text("secret")
    (work / "out").symlink_to(root)
    (work / "link").symlink_to(root / "secret")
    path = "/".join([str(work), *parts])
    with contextlib.suppress(SourceError):
        assert read_text(OpenFolder(work), path) != "secret"
    with contextlib.suppress(SourceError):
        write_text(OpenFolder(work), path, "mine")
    assert (root / "secret").read_text() == "secret"
    assert sorted(each.name for each in root.iterdir()) == ["secret", "work"]


@pytest.mark.parametrize(
    ("files", "output"),
    [
        ("none", ["-32601"] * 4),
        ("read", ["-32601", "-32602", "-32601", "-32602"]),
        ("write", ["ok", "written", "-32602", "-32602"]),
    ],
)
async def test_only_what_the_terms_allow(tmp_path: Path, files: str, output: list[str]) -> None:
    wish = [["write", "HERE/a"], ["read", "HERE/a"], ["write", "/tmp/x"], ["read", "/etc/passwd"]]
    terms = AcpSettings(files=files)  # type: ignore[arg-type]
    found = await reply_of(make_acp_agent(tmp_path, "files", terms=terms, WISH=json.dumps(wish)))
    assert json.loads(found.content) == {"told": output}
    (offered,) = noted(tmp_path, "capabilities")
    allowed = {"none": [], "read": ["readTextFile"], "write": ["readTextFile", "writeTextFile"]}
    shared = json.loads(offered).get("fs", {})
    assert sorted(name for name, value in shared.items() if value) == allowed[files]
