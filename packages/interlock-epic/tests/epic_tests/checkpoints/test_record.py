"""Test that a written checkpoint can be read, and that an unreadable one is never written."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError, StateError
from interlock_epic.checkpoints.record import (
    Checkpoint,
    Epic,
    EpicFailure,
    GitWork,
    NextAction,
    Position,
    Recovery,
    StatedPosition,
    Story,
    UnreadableCheckpoint,
    apply_position,
    check_epic_id,
    compute_checksum,
    encode_checkpoint,
    read_checkpoint,
)
from interlock_epic.status import Status

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,20}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
stories = st.builds(
    Story, id=ids, file=texts, status=st.sampled_from(Status), commit=st.sampled_from(["", COMMIT])
)
checkpoints = st.builds(
    Checkpoint,
    generation=st.integers(0, 10**9),
    epic=st.builds(Epic, id=ids, title=texts, status=st.sampled_from(Status)),
    stories=st.lists(stories, unique_by=lambda each: each.id, max_size=4).map(tuple),
    position=st.builds(Position, story_id=ids, phase=texts, task=texts),
    git=st.builds(GitWork, commit=st.just(COMMIT), branch=texts, unborn=st.booleans()),
    failures=st.lists(st.builds(EpicFailure, message=texts), max_size=3).map(tuple),
    attempts=st.dictionaries(texts, st.integers(0, 100), max_size=3),
    recoveries=st.lists(st.builds(Recovery, number=st.integers(1, 9)), max_size=2).map(tuple),
    note=texts,
    extra=st.dictionaries(texts, values, max_size=3),
)


@given(checkpoints)
def test_what_is_written_is_read_back(checkpoint: Checkpoint) -> None:
    assert read_checkpoint(encode_checkpoint(checkpoint)) == checkpoint


def a_checkpoint(**fields: Any) -> Checkpoint:
    return Checkpoint(epic=Epic(id="epic-3"), **fields)


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"note": "a\x00b"}, "contains a NUL character"),
        ({"note": "a\ud800b"}, "contains a lone surrogate"),
        ({"note": "x" * 4_001}, "note has more than 4,000 characters"),
        ({"extra": {"n": 2**63}}, "does not fit into 64 bits"),
        ({"extra": {"n": float("inf")}}, "a number is infinite"),
        ({"extra": {"deep": deep(60)}}, "nested deeper than 40 levels"),
        ({"extra": {"long": "x" * (1 << 20)}}, r"more than 1,048,576: shorten its notes"),
        ({"git": GitWork(commit="HEAD")}, "git.commit is not a commit"),
        ({"git": GitWork(commit="--upload-pack=x")}, "git.commit is not a commit"),
        ({"position": Position(story_id="../x")}, "position.story_id is not an id"),
        ({"stories": (Story(id="a"), Story(id="a"))}, "a story is named twice"),
        ({"stories": (Story(id=""),)}, "a story has no id"),
        ({"attempts": {"retry": -1}}, "attempts.retry is below 0"),
        ({"recoveries": (Recovery(number=1, stash="stash@{0}"),)}, "stash is not a commit"),
    ],
)
def test_what_cannot_be_read_back_is_not_written(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(SourceError, match=why):
        encode_checkpoint(a_checkpoint(**fields))


BAD_IDS = ["", ".", "..", "../x", "a/b", "/etc", "a b", "-x", ".x", "a\x00", "a:b", "a\n", "ä"]


@pytest.mark.parametrize("epic_id", [*BAD_IDS, "x" * 101, "active", "Checkpoint", "a\\b", "{e}"])
def test_an_id_that_cannot_name_a_file(epic_id: str) -> None:
    with pytest.raises(SourceError, match="is not an epic's id"):
        check_epic_id(epic_id)


def make_position(**fields: Any) -> StatedPosition:
    known: dict[str, Any] = {"epic_id": "epic-3", "story_id": "3-1", "phase": "p", "task": "5"}
    return StatedPosition(**{**known, **fields})


def test_a_session_says_where_it_is() -> None:
    work = GitWork(commit=COMMIT, branch="main")
    first = apply_position(None, make_position(note="mind the gap"), work, "T1")
    assert first.position == Position(story_id="3-1", phase="p", task="5")
    assert (first.git, first.note, first.created) == (work, "mind the gap", "T1")
    done = apply_position(
        first, make_position(status=Status.DONE, next_action=NextAction(type="hitl")), work, "T2"
    )
    assert done.stories == (Story(id="3-1", status=Status.DONE, commit=COMMIT),)
    assert (done.note, done.next_action.type) == ("mind the gap", "hitl")
    after = apply_position(done, make_position(story_id="3-2", note=""), work, "T3")
    assert [each.id for each in after.stories] == ["3-1", "3-2"]
    assert (after.note, after.next_action) == ("", NextAction())
    with pytest.raises(StateError, match="story 3-1 is done and cannot become in_progress"):
        apply_position(after, make_position(), work, "T4")


@pytest.mark.parametrize("status", [Status.DONE, Status.CANCELLED])
def test_an_epic_that_is_over_is_not_moved(status: Status) -> None:
    over = Checkpoint(epic=Epic(id="epic-3", status=status))
    with pytest.raises(StateError, match=f"epic epic-3 is {status}: start a new one"):
        apply_position(over, make_position(), GitWork(), "T")


def test_a_paused_epic_is_at_work_again() -> None:
    paused = Checkpoint(epic=Epic(id="epic-3", status=Status.PAUSED))
    assert apply_position(paused, make_position(), GitWork(), "T").epic.status == Status.IN_PROGRESS


def test_journals_are_bounded_but_no_stash_is_forgotten() -> None:
    checkpoint = a_checkpoint()
    for number in range(1, 121):
        state = "stashed" if number == 7 else "complete"
        entry = Recovery(number=number, state="started", stash="")
        checkpoint = checkpoint.with_recovery(entry)
        checkpoint = checkpoint.with_recovery(
            msgspec.structs.replace(entry, state=state, stash=COMMIT if number == 7 else "")
        )
        checkpoint = checkpoint.with_failure(EpicFailure(message=str(number)))
    assert [each.number for each in checkpoint.recoveries] == [7, *range(71, 121)]
    assert [each.message for each in checkpoint.failures] == [str(n) for n in range(71, 121)]


def test_a_file_is_pretty_json_with_its_checksum() -> None:
    raw = encode_checkpoint(a_checkpoint())
    assert raw.startswith(b'{\n  "version": 2,\n  "generation": 0,\n')
    assert json.loads(raw)["checksum"].startswith("sha256:")


def read(value: object) -> Checkpoint | UnreadableCheckpoint:
    return read_checkpoint(json.dumps(value).encode())


def understood(value: object) -> Checkpoint:
    found = read(value)
    assert isinstance(found, Checkpoint), found
    return found


@pytest.mark.parametrize("version", [None, "1.0", "3", 1, 2.0, True, [], {}])
def test_a_form_that_is_not_known_is_refused_as_that(version: object) -> None:
    found = read({"version": version, "epic_id": "epic-3", "epic": {"id": "epic-3"}})
    assert isinstance(found, UnreadableCheckpoint)
    assert (found.kind, "of version 2" in found.sentence) == ("INVALID", True)


def signed(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "checksum": compute_checksum(body)}


def test_the_future_is_told_from_damage() -> None:
    body = msgspec.to_builtins(a_checkpoint()) | {"version": 3, "mood": "good"}
    sound, torn = read(signed(body)), read(signed(body) | {"note": "other"})
    assert isinstance(sound, UnreadableCheckpoint)
    assert isinstance(torn, UnreadableCheckpoint)
    assert (sound.kind, torn.kind) == ("VERSION", "CORRUPT")
    assert "version 3" in sound.sentence


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
        (b'{"a": NaN}', "NaN is not a JSON number"),
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
            sound = isinstance(found, Checkpoint)
            assert found == whole if sound else found.kind == "CORRUPT", (at, bit)  # type: ignore[union-attr]


replacements: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([[]])
)


@given(checkpoints, st.data())
def test_any_value_anywhere_never_surprises(checkpoint: Checkpoint, data: Any) -> None:
    body = msgspec.to_builtins(checkpoint)
    place = body
    while True:
        name = data.draw(st.sampled_from(sorted(place)))
        inner = place[name]
        if not (isinstance(inner, dict) and inner and data.draw(st.booleans())):
            break
        place = inner
    place[name] = data.draw(values)
    found = read(signed(body))
    if isinstance(found, Checkpoint):
        assert read_checkpoint(encode_checkpoint(found)) == found


@given(checkpoints, st.data())
def test_wrong_types_under_a_right_checksum_are_invalid(checkpoint: Checkpoint, data: Any) -> None:
    body = msgspec.to_builtins(checkpoint)
    name = data.draw(st.sampled_from(["epic", "stories", "position", "git", "attempts", "note"]))
    body[name] = data.draw(st.sampled_from([3, None, [3], {"x": []}]))
    found = read(signed(body))
    assert isinstance(found, Checkpoint) or found.kind == "INVALID"
