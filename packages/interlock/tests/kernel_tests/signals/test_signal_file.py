"""signal.json and the artifact wrapper, against the seed's examples and against bad input."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.signal_file import (
    Artifact,
    SignalFile,
    encode_artifact,
    encode_signal,
    may_follow,
    move_signal,
    read_artifact,
    read_signal,
)
from interlock.system.strict_json import Problem

GOLDEN = Path(__file__).parent / "golden"
WAITING = SignalFile(
    status="waiting",
    dispatch_id=1,
    case_id="C1",
    step="F0_RECALL",
    prompt_path="/absolute/path/to/prompt-recall.md",
    artifact_path="/absolute/path/to/recall-result.json",
    timestamp="2026-02-16T12:00:00Z",
)


def test_a_signal_is_written_as_the_seed_shows_it() -> None:
    golden = (GOLDEN / "signal.json").read_bytes()
    assert encode_signal(WAITING) == golden
    assert read_signal(golden) == WAITING


def test_a_responder_may_write_the_fields_in_its_own_order() -> None:
    read = read_signal((GOLDEN / "signal-error.json").read_bytes())
    assert isinstance(read, SignalFile)
    assert (read.status, read.error) == ("error", "description of what went wrong")


def test_an_artifact_is_written_as_the_seed_shows_it() -> None:
    golden = (GOLDEN / "artifact.json").read_bytes()
    artifact = read_artifact(golden)
    assert isinstance(artifact, Artifact)
    assert artifact.dispatch_id == 1
    assert artifact.data["confidence"] == 0.95
    assert encode_artifact(artifact) == golden


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "invalid-json"),
        (b'{"dispatch_id": 1, "data": {}', "invalid-json"),
        (b"```json\n{}\n```", "invalid-json"),
        (b"\x00", "invalid-json"),
        (b'{"dispatch_id": 1, "data": {"a": NaN}}', "invalid-json"),
        (b'{"dispatch_id": 1, "data": {}} x', "invalid-json"),
        (b'{"dispatch_id": 1' + b"0" * 5000 + b"}", "invalid-json"),
        (b"\xff\xfe{", "not-utf8"),
        (b'{"a": "\xe4"}', "not-utf8"),
        (b"[" * 100_000, "too-deep"),
        (b"[]", "not-an-object"),
        (b"null", "not-an-object"),
        (b"3", "not-an-object"),
        (b'"x"', "not-an-object"),
        (b"true", "not-an-object"),
        (b"{}", "missing-dispatch-id"),
        (b'{"data": {}}', "missing-dispatch-id"),
        (b'{"dispatch_id": "1", "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": 1.0, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": 1e0, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": true, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": null, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": 9223372036854775808, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": -9223372036854775809, "data": {}}', "wrong-dispatch-id"),
        (b'{"dispatch_id": 1}', "missing-data"),
        (b'{"dispatch_id": 1, "data": null}', "null-data"),
        (b'{"dispatch_id": 1, "data": []}', "data-not-an-object"),
        (b'{"dispatch_id": 1, "data": "{}"}', "data-not-an-object"),
        (b'{"dispatch_id": 1, "dispatch_id": 2, "data": {}}', "duplicate-key"),
        (b'{"dispatch_id": 1, "data": {"a": 1, "a": 2}}', "duplicate-key"),
    ],
)
def test_a_bad_artifact_is_told_apart(raw: bytes, kind: str) -> None:
    problem = read_artifact(raw)
    assert isinstance(problem, Problem)
    assert problem.kind == kind
    assert problem.sentence
    assert problem.may_be_partial == (kind in ("empty", "invalid-json", "not-utf8"))
    assert problem.is_stale == kind.endswith("dispatch-id")


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_any_int64_is_an_id(number: int) -> None:
    raw = json.dumps({"dispatch_id": number, "data": {}}).encode()
    assert read_artifact(raw) == Artifact(number, {})
    signal = read_signal(
        json.dumps({**msgspec.to_builtins(WAITING), "dispatch_id": number}).encode()
    )
    assert signal == msgspec.structs.replace(WAITING, dispatch_id=number)


def test_a_byte_order_mark_and_unknown_fields_are_no_harm() -> None:
    assert read_artifact(b'\xef\xbb\xbf{"dispatch_id": 1, "data": {}, "x": 2}') == Artifact(1, {})


@pytest.mark.parametrize(
    "change",
    [
        {"status": "complete"},
        {"dispatch_id": "1"},
        {"dispatch_id": 1.5},
        {"dispatch_id": True},
        {"dispatch_id": 2**63},
        {"dispatch_id": -(2**63) - 1},
        {"dispatch_id": 2**64},
        {"case_id": 1},
        {"step": None},
    ],
)
def test_a_bad_signal_is_a_problem(change: dict[str, Any]) -> None:
    raw = json.dumps({**msgspec.to_builtins(WAITING), **change}).encode()
    problem = read_signal(raw)
    assert isinstance(problem, Problem)
    assert problem.kind == "wrong-field"
    assert next(iter(change)) in problem.sentence


@pytest.mark.parametrize("field", SignalFile.__struct_fields__[:-1])
def test_every_field_but_error_is_needed(field: str) -> None:
    fields = msgspec.to_builtins(WAITING)
    del fields[field]
    problem = read_signal(json.dumps(fields).encode())
    assert isinstance(problem, Problem)
    assert field in problem.sentence


STATUSES = ("waiting", "processing", "done", "error")
OURS = {("processing", "error")}  # an artifact was taken, and did not fit the step
LEGAL_SAME = {("waiting", "processing"), ("waiting", "error"), ("processing", "done"), *OURS}
LEGAL_NEW = {("done", "waiting"), ("error", "waiting")}


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_transitions_are_those_of_the_seed_and_one_of_ours(before: Any, after: Any) -> None:
    first = msgspec.structs.replace(WAITING, status=before)
    same = msgspec.structs.replace(first, status=after)
    new = msgspec.structs.replace(same, dispatch_id=2, timestamp="2026-02-16T13:00:00Z")
    old = msgspec.structs.replace(same, dispatch_id=0)
    assert may_follow(first, same) == ((before, after) in LEGAL_SAME)
    assert may_follow(first, new) == ((before, after) in LEGAL_NEW)
    assert not may_follow(first, old)


def test_waiting_follows_waiting_only_after_the_first_was_settled() -> None:
    new = msgspec.structs.replace(WAITING, dispatch_id=2)
    assert not may_follow(WAITING, new)
    assert may_follow(WAITING, new, settled=True)
    assert not may_follow(WAITING, WAITING, settled=True)


def test_the_first_signal_is_a_waiting_one() -> None:
    assert may_follow(None, WAITING)
    assert not may_follow(None, msgspec.structs.replace(WAITING, status="done"))


def test_the_timestamp_does_not_change_with_the_status() -> None:
    assert move_signal(WAITING, "processing").timestamp == WAITING.timestamp
    later = msgspec.structs.replace(WAITING, status="processing", timestamp="later")
    assert not may_follow(WAITING, later)


def test_an_error_is_told_only_with_the_status_error() -> None:
    assert move_signal(WAITING, "error", "timeout").error == "timeout"
    with pytest.raises(ValueError, match="error message"):
        move_signal(WAITING, "error")
    with pytest.raises(ValueError, match="error message"):
        move_signal(WAITING, "processing", "oops")
    with pytest.raises(ValueError, match="waiting does not become done"):
        move_signal(WAITING, "done")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_an_artifact_or_a_problem(raw: bytes) -> None:
    assert isinstance(read_artifact(raw), Artifact | Problem)


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.dictionaries(_TEXTS, st.integers() | _TEXTS | st.none() | st.booleans()),
)
def test_what_is_written_is_read_back(dispatch_id: int, data: dict[str, Any]) -> None:
    artifact = Artifact(dispatch_id, data)
    assert read_artifact(encode_artifact(artifact)) == artifact
