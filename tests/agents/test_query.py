"""Queries in their folder: asked and answered once, whole, whatever else lies there."""

from pathlib import Path

import pytest

from interlock.agents.queries import (
    MOST_QUERIES,
    AgentQuery,
    QueryReply,
    find_query,
    is_query,
    next_id,
    open_queries,
    put_query,
    put_reply,
    reply_to,
    unfit,
)
from interlock.system.errors import StateError


def ask(folder: Path, dispatch_id: int, at: float = 0) -> str:
    number = next_id(folder, dispatch_id)
    put_query(folder, AgentQuery(number, dispatch_id, 1, "A", "look", "scout", "Why?", (), at))
    return number


def test_asked_answered_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    late, soon, other = ask(folder, 12, 5), ask(folder, 12, 1), ask(folder, 3, 2)
    assert (late, soon, other) == ("12.1", "12.2", "3.1")
    assert [each.query_id for each in open_queries(folder, {12, 3})] == ["12.2", "3.1", "12.1"]
    assert [each.query_id for each in open_queries(folder, {3})] == ["3.1"]
    put_reply(folder, QueryReply("12.2", "yes", "", "Ann", 9))
    assert [each.query_id for each in open_queries(folder, {12})] == ["12.1"]
    with pytest.raises(StateError, match=r"12\.2 is answered already"):
        put_reply(folder, QueryReply("12.2", "no", "", "Bob", 9))
    found = reply_to(folder, "12.2")
    assert found is not None
    assert (found.decision, found.by) == ("yes", "Ann")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_nobody_asks_for_ever(tmp_path: Path) -> None:
    asked = [ask(tmp_path, 1) for _ in range(MOST_QUERIES)]
    assert len(set(asked)) == MOST_QUERIES
    assert next_id(tmp_path, 1) == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"query_id": "1.1"}'])
def test_what_is_no_query_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1.1.json").write_bytes(content)
    (tmp_path / "x.json").write_bytes(content)
    (tmp_path / "2.1.json").mkdir()
    assert find_query(tmp_path, "1.1") is None
    assert open_queries(tmp_path, {1, 2}) == []


@pytest.mark.parametrize(
    "word",
    [
        "",
        "1",
        "1.",
        ".1",
        "0.1",
        "1.0",
        "01.1",
        "1.1.1",
        "../1.1",
        "1.1\n",
        "\u0661.\u0661",
        "-1.1",
    ],
)
def test_words_that_name_no_query(tmp_path: Path, word: str) -> None:
    assert not is_query(word)
    assert find_query(tmp_path, word) is None
    assert reply_to(tmp_path, word) is None


def test_what_can_be_asked() -> None:
    assert unfit("Why?", ()) == ""
    assert unfit("Why?", ["a"] * 12) == ""
    assert unfit(" \n", ())
    assert unfit("x" * 8001, ())
    assert unfit("Why?", ["a"] * 13)
    assert unfit("Why?", [""])
    assert unfit("Why?", ["x" * 81])
