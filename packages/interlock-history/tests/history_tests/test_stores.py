"""One contract for every store: a folder and a server of ours, both of them real."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest

from history_tests.test_memory import SETTINGS, describe
from history_tests.uploads import DAY, Upload, judge_naively
from interlock.api.project import Project
from interlock.api.tokens import create_token
from interlock.system.errors import StoreError, UsageError
from interlock_history.export import find_old_segments
from interlock_history.http_store import HttpStore
from interlock_history.memory import History
from interlock_history.segment import write_names, write_segment
from interlock_history.store import FolderStore, HistoryStore, merge_stores
from interlock_history.store import open_store as open_memory
from interlock_rca.ci_run import CiRun
from tests.world.command_line import World
from tests.world.serving import served

Open = Callable[[str], HistoryStore]
"""Opens the same memory as another machine would, which has that name."""
SECRET = "a-secret-of-the-tests"


class HistoryServer(NamedTuple):
    url: str
    tokens: dict[str, str]
    """By their scopes."""

    def open(self, folder: Path, scopes: str = "read,upload") -> HttpStore:
        return HttpStore(self.url, {"INTERLOCK_STORE_TOKEN": self.tokens[scopes]}, folder=folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HistoryServer]:
    folder = tmp_path_factory.mktemp("served")
    project = Project(folder)
    scopes = ("read", "upload", "read,upload")
    tokens = {
        each: create_token(project, f"t{each[:3]}{len(each)}", each.split(","))[1]
        for each in scopes
    }
    with served(World(folder), "--host", "0.0.0.0") as it:
        yield HistoryServer(it.url.replace("0.0.0.0", "127.0.0.1"), tokens)


@pytest.fixture(params=["folder", "server"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    if request.param == "folder":
        yield lambda _name: FolderStore(tmp_path / "memory")
    else:
        server: HistoryServer = request.getfixturevalue("server")
        yield lambda name: server.open(tmp_path / name)


def make_uploads() -> list[Upload]:
    marks = {"a": "PPPFPPF", "b": "PFPPPPP", "c": "FFFFFFF"}
    return [
        Upload(
            CiRun(run=str(at), commit=f"{at}" * 40, attempt=attempt, at=at * DAY),
            {f"t::{name}": row[at] if attempt == 1 else "P" for name, row in marks.items()},
        )
        for at in range(7)
        for attempt in (1, 2)
        if attempt == 1 or at == 3
    ]


def test_every_store_says_the_same(open_store: Open, tmp_path: Path) -> None:
    uploads = make_uploads()
    expected = judge_naively(uploads, SETTINGS)
    store = open_store("one")
    for upload in (*uploads[:5], *uploads[2:]):
        store.add(upload.to_segment())
    assert describe(History(store, SETTINGS)) == expected
    # Another machine, with no index of its own, and another writer.
    other = open_store("two")
    assert [other.add(upload.to_segment()) for upload in uploads] == [False] * len(uploads)
    assert describe(History(other, SETTINGS)) == expected
    folder = FolderStore(tmp_path / "folder")
    done = merge_stores(other, folder)
    assert (done.added, done.refused) == (len(uploads), ())
    assert describe(History(folder, SETTINGS)) == expected
    assert merge_stores(folder, store).added == 0
    early = uploads[6].run
    kept = store.add(Upload(msgspec.structs.replace(early, at=1.0), uploads[6].tries).to_segment())
    assert not kept
    for each in (store, open_store("three")):
        found = each.read(uploads[6].to_segment().id)
        assert found is not None
        assert found.run.at == 1.0
    old = find_old_segments(store, 3.5 * DAY)
    if isinstance(store, HttpStore):
        with pytest.raises(UsageError, match="on the server itself"):
            store.remove(old)
        return
    store.remove(old)
    memory = History(open_store("four"), SETTINGS)
    assert sum(len(memory.list_columns(lane)) for lane in memory.index.list_lanes()) == 3
    assert not memory.problems


def test_a_word_that_names_no_memory_is_refused_without_its_password() -> None:
    with pytest.raises(UsageError, match="is no memory") as caught:
        open_memory("postgresql://u:hunter2@h/x")
    assert "hunter2" not in str(caught.value)


def test_a_server_takes_only_what_its_key_says_from_those_who_may(
    server: HistoryServer,
) -> None:
    run = CiRun(project="other/one", run="1", commit="9" * 40, at=DAY)
    segment = Upload(run, {"x": "P", "y": "F"}).to_segment()
    table, names = write_names(segment.tests)
    places = {name: at for at, name in enumerate(segment.tests)}
    results = write_segment(segment, table, places)
    forged = write_segment(msgspec.structs.replace(segment, bits=b"\1\1"), table, places)
    url = f"{server.url}/api/v1/history"

    def put(path: str, raw: bytes, scopes: str = "read,upload") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {server.tokens[scopes]}"}
        headers |= {"Content-Type": "application/octet-stream"}
        found = httpx.post(f"{url}/{path}", content=raw, headers=headers)
        return found.status_code, found.text

    assert put(f"results/{segment.id}", results)[0] == 409, "its names are not there"
    assert put(f"names/{table}", names, "read")[0] == 403
    assert put(f"names/{'0' * 32}", names)[0] == 409
    assert put(f"names/{table}", names, "upload") == (200, '{"new":true}')
    status, why = put(f"results/{segment.id}", forged)
    assert (status, "by its content" in why) == (409, True)
    assert put(f"results/{segment.id}", results[:-1])[0] == 409
    assert put("results/..%2F..%2Fx", results)[0] in (400, 404, 409)
    assert put(f"results/{segment.id}", results, "upload") == (200, '{"new":true}')
    assert put(f"results/{segment.id}", results, "upload") == (200, '{"new":false}')
    assert httpx.get(f"{url}/results").status_code == 401
    reader = {"Authorization": f"Bearer {server.tokens['read']}"}
    assert httpx.get(f"{url}/secrets", headers=reader).status_code == 404
    assert segment.id in httpx.get(f"{url}/results", headers=reader).json()["keys"]
    assert httpx.get(f"{url}/results/{segment.id}", headers=reader).content == results


def test_trouble_with_a_server_is_a_sentence_without_the_token(
    tmp_path: Path, server: HistoryServer
) -> None:
    slept: list[float] = []

    def open_at(url: str) -> HttpStore:
        environ = {"INTERLOCK_TOKEN": SECRET}
        return HttpStore(url, environ, folder=tmp_path, sleep=slept.append)

    with pytest.raises(StoreError, match="cannot be reached") as caught:
        open_at("http://127.0.0.1:1").list_segments()
    assert slept == [0.5, 2.0, 5.0]
    assert SECRET not in str(caught.value)
    with pytest.raises(UsageError, match="https://"):
        open_at("http://server.example")
    with pytest.raises(UsageError, match="name only the server") as named:
        open_at("https://me:hunter2@server.example/")
    assert "hunter2" not in str(named.value)
    with pytest.raises(StoreError, match="set INTERLOCK_STORE_TOKEN"):
        open_at(server.url).list_segments()
    with pytest.raises(StoreError, match="scope upload"):
        server.open(tmp_path / "reader", "read").add(make_uploads()[0].to_segment())
