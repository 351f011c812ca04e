"""Results that CI sends: analysed once in the background, refused if they are bombs, never lost."""

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock_rca.uploads import MAX_UPLOAD, TooLargeError, check_archive
from rca_tests.worlds.red_repository import DISK, KEY, TYPE, junit, red
from tests.world.command_line import LIMIT, World
from tests.world.serving import Served, served
from web_tests.test_tokens import make_token

XML = {"content-type": "application/xml"}
ZIP = {"content-type": "application/zip"}
SECRET = "ghp_" + "a1B2" * 9


def send(server: Served, body: bytes, headers: dict[str, str], **query: str) -> httpx.Response:
    url = f"{server.url}/api/v1/reports"
    return httpx.post(url, content=body, headers=headers, params=query, timeout=LIMIT)


def wait(server: Served, sent: httpx.Response, **headers: str) -> dict[str, Any]:
    """The upload when its analysis is over."""
    url = f"{server.url}/api/v1/reports/{sent.json()['id']}"
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        found: dict[str, Any] = httpx.get(url, headers=headers).json()
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.05)
    raise AssertionError("waited in vain for the analysis")


def pack(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name.replace("__", "/"), body)
    return out.getvalue()


def test_results_become_a_report_once(tmp_path: Path) -> None:
    """Also while another run holds the database, and after the server was killed."""
    world = World(tmp_path)
    ci = make_token(world, "ci", "upload")
    leak = red("logs in", f"AssertionError: denied with token={SECRET}", "shop.Door")
    one, two = junit(KEY, TYPE).encode(), pack(**{"a__b.xml": junit(DISK, leak).encode()})
    with served(world) as server:
        sent = send(server, one, {**XML, **ci}, suite="nightly", run="17")
        assert (sent.status_code, sent.json()["state"]) == (201, "open")
        assert sent.headers["location"] == sent.json()["address"]
        done = wait(server, sent, **ci)
        assert (done["suite"], done["by"], done["status"]) == ("nightly 17", "ci", "waiting")
        assert (done["failures"], done["causes"] > 0, done["suite_id"]) == (2, True, 1)
        again = send(server, one, {**XML, **ci}, suite="other", run="17")
        assert (again.status_code, again.json()) == (200, done)
        other = send(server, one, {**XML, **ci}, run="18")
        assert (other.status_code, wait(server, other)["suite_id"]) == (201, 2)
        zipped = send(server, two, {**ZIP, **ci}, run="19")
        server.process.kill()
        server.process.communicate(timeout=LIMIT)
    with served(world) as server:
        assert wait(server, zipped)["failures"] == 2
        assert len(httpx.get(f"{server.url}/api/v1/reports").json()["reports"]) == 3
    told = world.say("report", "3", "--out", "out", "--json")
    assert told.code == 0
    kept = [path.read_bytes() for path in (tmp_path / ".interlock").rglob("*") if path.is_file()]
    assert not [each for each in kept if SECRET.encode() in each]
    assert SECRET not in told.out


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(World(tmp_path_factory.mktemp("near"))) as server:
        yield server


@pytest.mark.parametrize(
    ("body", "headers", "sentence"),
    [
        (bytes(range(32)) * 10, XML, "is neither a report nor text"),
        (b"<html/>", XML, "not a JUnit report"),
        (b"PK\x03\x04 broken", ZIP, "is not a readable zip"),
        (junit().encode(), XML, ""),
    ],
)
def test_results_that_cannot_be_read_or_need_no_analysis(
    near: Served, body: bytes, headers: dict[str, str], sentence: str
) -> None:
    found = wait(near, send(near, body, headers))
    if sentence:
        assert (found["state"], sentence in found["sentence"]) == ("failed", True), found
        assert "/" not in found["sentence"]
    else:
        assert (found["state"], found["verdict"]) == ("done", "nothing failed")


def many(count: int) -> bytes:
    return pack(**{f"{number}.xml": b"" for number in range(count)})


@pytest.mark.parametrize(
    ("body", "headers", "status", "sentence"),
    [
        (pack(a=b"0" * (100 << 20)), ZIP, 413, "unpacks to more than 200 times its size"),
        (many(5_001), ZIP, 413, "the archive has 5,001 files"),
        (pack(**{"__".join("a" * 40): b""}), ZIP, 413, "folders deep"),
        (pack(**{"inner.zip": pack(a=b"x")}), ZIP, 413, "is an archive in the archive"),
        (b"0" * (MAX_UPLOAD + 1), XML, 413, "too large"),
        (b"x", {"content-type": "application/x-www-form-urlencoded"}, 415, "application/xml"),
        (b"", XML, 400, "nothing was sent"),
    ],
    ids=["ratio", "entries", "depth", "nested", "size", "form", "empty"],
)
def test_uploads_that_are_refused(
    near: Served, body: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    before = httpx.get(f"{near.url}/api/v1/reports").json()
    found = send(near, body, headers)
    assert (found.status_code, sentence in found.json()["error"]) == (status, True), found.text
    assert httpx.get(f"{near.url}/api/v1/reports").json() == before
    folder = Path(f"/proc/{near.process.pid}/cwd").resolve()
    assert [*folder.rglob(".incoming-*")] == []


def test_an_archive_that_says_too_much(tmp_path: Path) -> None:
    path = tmp_path / "huge.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(6):
            archive.writestr(f"{number}.bin", bytes(1) * (1 << 20))
            archive.filelist[-1].file_size = 100 << 20
            archive.filelist[-1].compress_size = 1 << 20
    with pytest.raises(TooLargeError, match="unpacks to more than 512 MiB"):
        check_archive(path)


def test_analyze_on_a_server(tmp_path: Path) -> None:
    """It prints what a local analysis prints, and ends as that does."""
    world, home = World(tmp_path / "ci"), World(tmp_path / "home")
    for each in (world, home):
        each.folder.mkdir()
    world.write("results/a.xml", junit(KEY))
    world.write("results/deep/b.xml", junit(TYPE))
    world.write("green.xml", junit())
    secret = make_token(home, "ci", "upload")["Authorization"].partition(" ")[2]
    world.write("token", secret).chmod(0o600)
    with served(home) as server:
        to = ("--server", server.url)
        done = world.say("analyze", "results", *to, "--token-file", "token")
        assert (done.code, server.url in done.err) == (4, True), done
        assert done.out.splitlines()[-1].startswith(f"{server.url}/reports/")
        assert "2 failures" in done.out
        told = world.say("analyze", "green.xml", *to, "--token-file", "token")
        assert (told.code, told.out.startswith("nothing failed")) == (0, True)
        world.write("token", secret[:-1] + ("1" if secret.endswith("0") else "0"))
        refused = world.say("analyze", "green.xml", *to, "--token-file", "token")
        assert (refused.code, "this token is not known" in refused.err) == (2, True), refused
        assert secret[:-1] not in refused.err
        odd = world.say("analyze", "green.xml", "--server", "ftp://x")
        assert (odd.code, "write https://HOST" in odd.err) == (2, True)
    assert not (world.folder / ".interlock").exists()
