"""From bytes: the four older shapes, what they hold, and damaged, wrong and newer told apart."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.epic.checkpoints.test_record import a_checkpoint, checkpoints
from tests.epic.legacy_files import COMMIT, SHAPES, flat, nested

from interlock.epic.checkpoints.legacy import ReadCheckpoint, UnreadableCheckpoint, read_checkpoint
from interlock.epic.checkpoints.record import (
    Checkpoint,
    GitWork,
    NextAction,
    Position,
    compute_checksum,
    encode_checkpoint,
)
from interlock.epic.status import Status


def read(value: object) -> ReadCheckpoint | UnreadableCheckpoint:
    return read_checkpoint(json.dumps(value).encode())


def understood(value: object) -> Checkpoint:
    found = read(value)
    assert isinstance(found, ReadCheckpoint), found
    return found.checkpoint


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_known_and_can_be_kept(shape: str) -> None:
    found = read(SHAPES[shape]())
    assert isinstance(found, ReadCheckpoint)
    assert found.shape == shape
    assert (found.checkpoint.epic.id, found.checkpoint.position.story_id) == ("epic-3", "3-2")
    assert read_checkpoint(encode_checkpoint(found.checkpoint)) == ReadCheckpoint(
        found.checkpoint, "version-2"
    )


def test_nested() -> None:
    found = understood(nested())
    assert found.position == Position(
        story_id="3-2", phase="BUILD", task="4", task_total=9, step="test"
    )
    assert found.git == GitWork(commit=COMMIT, branch="epic-3")
    assert [(each.id, each.status) for each in found.stories] == [
        ("3-1", "done"),
        ("3-2", "in_progress"),
    ]
    action = NextAction(type="spawn", description="repair the sum", subagent="FIXER")
    assert found.next_action == action
    assert found.hitl is not None
    assert (found.hitl.issue, found.attempts) == (77, {"retry": 2})
    assert found.failures[0].message == 'expected "3"'
    assert found.metrics.time_elapsed_minutes == 88
    assert found.extra == {
        "project": {"name": "shop", "root": "/srv/shop"},
        "git": {"commit_message": "checkpoint: epic-3-story-2-task-4-test"},
        "epic": {"milestone_number": 12},
        "parallel_plan": {"batch_id": "b1", "tasks": [], "approved_parallel": False},
        "last_output": {"subagent": "TESTER", "result": "2 failed", "action_required": "fix"},
        "github": {"project_id": "PVT_1", "status_options": {"todo": "a"}},
        "failure_history": {"0": {"mood": "bad"}},
    }


def test_flat() -> None:
    found = understood(flat())
    assert found.position == Position(story_id="3-2", phase="Phase 1", task="4")
    assert found.git == GitWork(commit=COMMIT, branch="feature/3-2")
    assert found.stories[0].status == Status.WAITING
    assert (found.created, found.note) == ("2025-12-01T08:00:00Z", "")
    assert found.extra == {"repository": "git@example.org:shop.git"}


def test_ad_hoc() -> None:
    found = understood(SHAPES["ad-hoc"]())
    assert found.position == Position(story_id="3-2", phase="implement", step="implement")
    assert (found.git.commit, found.note) == (COMMIT, "half of the form is done")
    assert found.extra == {"colour": "blue"}
    other = understood({**SHAPES["ad-hoc"](), "git_ref": "refs/heads/x", "context": {"a": 1}})
    assert other.git == GitWork(branch="x")
    assert (other.note, other.extra["context"]) == ("", {"a": 1})


def test_epic_state() -> None:
    found = understood(SHAPES["epic-state"]())
    statuses = {each.id: str(each.status) for each in found.stories}
    assert statuses == {
        "3-1": "done",
        "3-2": "in_progress",
        "3-3": "ready",
        "3-4": "failed",
        "3-5": "skipped",
    }
    assert found.position == Position(story_id="3-2", phase="03-implement", task="2")
    assert found.git == GitWork(branch="feature/3-2")
    assert found.attempts == {"test_attempt": 2}
    assert found.extra["cascade_detection"] == {"failures_in_window": 1}


def changed(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    *folders, name = path.split(".")
    place = value
    for folder in folders:
        place = place[folder]
    if new is ...:
        del place[name]
    else:
        place[name] = new
    return value


@pytest.mark.parametrize(
    ("shape", "path", "new", "why"),
    [
        ("nested-1.0", "epic.id", ..., "epic.id is missing"),
        ("nested-1.0", "epic.id", "", "epic.id is missing"),
        ("nested-1.0", "epic.id", "../../x", "epic.id is not an id"),
        ("nested-1.0", "current", 3, "current must be an object"),
        ("nested-1.0", "current.story_id", ..., "current.story_id is missing"),
        ("nested-1.0", "current.task_index", "abc", "must be a whole number from 0"),
        ("nested-1.0", "current.task_index", -1, "must be a whole number from 0"),
        ("nested-1.0", "current.task_index", 1.5, "must be a whole number from 0"),
        ("nested-1.0", "current.task_index", True, "must be a whole number from 0"),
        ("nested-1.0", "git.last_checkpoint_commit", ..., "last_checkpoint_commit is missing"),
        ("nested-1.0", "next_action.type", ..., "next_action.type is missing"),
        ("nested-1.0", "next_action.type", "dance", "is none of continue, retry, revise"),
        ("nested-1.0", "completed", "all", "completed must be a list"),
        ("nested-1.0", "epic.status", "banana", "epic.status: 'banana' is not a status"),
        ("flat-1.0", "status", "banana", "'banana' is not a status"),
        ("flat-1.0", "story_id", ["x"], "story_id must be text"),
        ("flat-1.0", "commit_hash", ..., "commit_hash is missing"),
        ("flat-1.0", "phase", ..., "phase is missing"),
        ("ad-hoc", "epic", "", "epic is missing"),
        ("epic-state", "story_queue", {"a": 1}, "story_queue must be a list"),
        ("epic-state", "phase", ..., "phase is missing"),
        ("epic-state", "story_queue", [None], "is missing"),
    ],
)
def test_a_whole_file_that_says_what_it_cannot_mean(
    shape: str, path: str, new: Any, why: str
) -> None:
    found = read(changed(SHAPES[shape](), path, new))
    assert isinstance(found, UnreadableCheckpoint)
    assert (found.kind, found.code) == ("INVALID", "CHECKPOINT_CORRUPT")
    assert why in found.sentence


@pytest.mark.parametrize("commit", ["HEAD", "", "{commit}", "placeholder", "abc"])
def test_a_word_that_is_no_commit_means_none_was_known(commit: str) -> None:
    assert understood({**flat(), "commit_hash": commit}).git.commit == ""


@pytest.mark.parametrize("version", [3, "3.0", 99, "2.1", "0.9", "one", 1, 2.0])
def test_a_version_that_is_not_known(version: object) -> None:
    found = read({**flat(), "version": version})
    assert isinstance(found, UnreadableCheckpoint)
    assert found.kind == "VERSION"


@pytest.mark.parametrize("version", [True, [], {}])
def test_a_version_that_is_none(version: object) -> None:
    found = read({**flat(), "version": version})
    assert isinstance(found, UnreadableCheckpoint)
    assert found.kind == "INVALID"


def signed(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "checksum": compute_checksum(body)}


def test_the_future_is_told_from_damage() -> None:
    body = msgspec.to_builtins(a_checkpoint()) | {"version": 3, "mood": "good"}
    sound, torn = read(signed(body)), read(signed(body) | {"note": "other"})
    assert isinstance(sound, UnreadableCheckpoint)
    assert isinstance(torn, UnreadableCheckpoint)
    assert (sound.kind, torn.kind) == ("VERSION", "CORRUPT")
    assert "it has version 3, and this Interlock knows 2: use a newer Interlock" in sound.sentence


def test_fields_nobody_knows_are_kept() -> None:
    body = msgspec.to_builtins(a_checkpoint(extra={"old": 1}))
    body |= {"mood": "good", "stories": [{"id": "a", "colour": "blue"}, {"id": "b"}]}
    body["git"]["tag"] = "v1"
    found = understood(signed(body))
    assert found.extra == {
        "old": 1,
        "mood": "good",
        "git": {"tag": "v1"},
        "stories": {"0": {"colour": "blue"}},
    }


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"{", "not valid JSON"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"\xff{}", "not UTF-8"),
        (b'{"version": 2, "version": 2}', "is written twice"),
        (b'{"version": 2}', "it has no checksum"),
        (b'{"epic": "\\u0000"}', "NUL"),
        (b'{"epic": "\\ud800"}', "half a surrogate pair"),
        (b'{"a": 1e999}', "a number is out of range"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": 99999999999999999999}', "64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
        (b'{"a":' + b"[" * 200_000, "nested deeper"),
        (b'{"epic": "' + b"x" * (1 << 20) + b'"}', "more than 1,048,576 bytes"),
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else None,
)
def test_damage(raw: bytes, why: str) -> None:
    found = read_checkpoint(raw)
    assert isinstance(found, UnreadableCheckpoint)
    assert (found.kind, found.code) == ("CORRUPT", "CHECKPOINT_CORRUPT")
    assert why in found.sentence


def test_nothing_that_names_no_epic_is_a_checkpoint() -> None:
    for value in ({}, {"version": "1.0"}, {"epic": None}, {"imported": True, "current_state": {}}):
        found = read(value)
        assert isinstance(found, UnreadableCheckpoint)
        assert found.kind == "INVALID"


SMALL = encode_checkpoint(a_checkpoint(note="größer", git=GitWork(commit=COMMIT)))


def test_truncated_at_every_byte_is_corrupt() -> None:
    for length in range(len(SMALL) - 1):  # the last byte is the newline
        found = read_checkpoint(SMALL[:length])
        assert isinstance(found, UnreadableCheckpoint), length
        assert found.kind == "CORRUPT", length


def test_every_single_flipped_bit_is_noticed_or_means_the_same() -> None:
    whole = read_checkpoint(SMALL)
    for at in range(len(SMALL)):
        for bit in range(8):
            raw = bytearray(SMALL)
            raw[at] ^= 1 << bit
            found = read_checkpoint(bytes(raw))
            sound = isinstance(found, ReadCheckpoint)
            assert found == whole if sound else found.kind == "CORRUPT", (at, bit)  # type: ignore[union-attr]


replacements: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([[]])
)


@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_any_value_anywhere_in_an_older_file_never_surprises(shape: str, data: Any) -> None:
    value = SHAPES[shape]()
    place: Any = value
    while True:
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or data.draw(st.booleans()):
            break
        place = place[name] or place
        if not isinstance(place, dict) or name not in place:
            break
    place[name] = data.draw(replacements)
    found = read(value)
    if isinstance(found, ReadCheckpoint):
        assert read_checkpoint(encode_checkpoint(found.checkpoint)) == ReadCheckpoint(
            found.checkpoint, "version-2"
        )


@given(checkpoints, st.data())
def test_wrong_types_under_a_right_checksum_are_invalid(checkpoint: Checkpoint, data: Any) -> None:
    body = msgspec.to_builtins(checkpoint)
    name = data.draw(st.sampled_from(["epic", "stories", "position", "git", "attempts", "note"]))
    wrong: Callable[[], object] = lambda: data.draw(st.sampled_from([3, None, [3], {"x": []}]))  # noqa: E731
    body[name] = wrong()
    found = read(signed(body))
    assert isinstance(found, ReadCheckpoint) or found.kind == "INVALID"
