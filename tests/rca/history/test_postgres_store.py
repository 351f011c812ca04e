"""The memory in PostgreSQL: the same answers as in a folder, on a real server."""

from pathlib import Path

import msgspec
import pytest
from tests.rca.history.test_memory import SETTINGS, describe
from tests.rca.history.uploads import DAY, Upload, judge_naively

from interlock.journal.address import PostgresAddress
from interlock.rca.history.export import find_old_segments
from interlock.rca.history.identity import CiRun
from interlock.rca.history.memory import History
from interlock.rca.history.postgres_store import PostgresStore
from interlock.rca.history.store import FolderStore, merge_stores
from interlock.system.errors import StoreError, UsageError


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


def test_a_server_says_what_a_folder_says(tmp_path: Path, postgres: PostgresAddress) -> None:
    uploads = make_uploads()
    expected = judge_naively(uploads, SETTINGS)
    store = PostgresStore(postgres.url, tmp_path / "one")
    for upload in (*uploads[:5], *uploads[2:]):
        store.add(upload.to_segment())
    assert describe(History(store, SETTINGS)) == expected
    # Another machine, with no index of its own, and another writer.
    other = PostgresStore(postgres.url, tmp_path / "two")
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
    found = store.read(uploads[6].to_segment().id)
    assert found is not None
    assert found.run.at == 1.0
    store.remove(find_old_segments(store, 3.5 * DAY))
    memory = History(PostgresStore(postgres.url, tmp_path / "three"), SETTINGS)
    assert sum(len(memory.list_columns(lane)) for lane in memory.index.list_lanes()) == 3
    assert not memory.problems


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1/x") as caught:
        PostgresStore("postgresql://u:hunter2@127.0.0.1:1/x", tmp_path)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="is not known"):
        PostgresStore("mysql://u@h/x", tmp_path)
