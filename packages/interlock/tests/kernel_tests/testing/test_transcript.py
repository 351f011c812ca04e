"""Records of transcripts: which are read, which are not, and what they are told."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.testing.transcript import (
    JudgedTranscript,
    Record,
    check_transcript,
    detect_format,
    read_record,
)

READY = "READY_FOR_REVIEW: t1\n\nFiles Modified:\n- a.py: new\n"
INIT = {"type": "system", "subtype": "init", "session_id": "s"}


def result(text: str) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "num_turns": 1, "result": text}


def read(fields: object, **defaults: Any) -> JudgedTranscript:
    record = read_record(json.dumps(fields).encode(), Record(id="", **defaults))
    assert isinstance(record, Record), record
    return check_transcript(record)


def test_a_text_is_told_whole() -> None:
    assert read({"id": "a", "role": "developer", "task_id": "t1", "text": READY}).to_plain() == {
        "id": "a",
        "accepted": {
            "signal": "READY_FOR_REVIEW",
            "subject": "t1",
            "fields": {"files_modified": [{"file": "a.py", "note": "new"}]},
        },
        "refused": None,
        "sentence": None,
        "where": 1,
    }


def test_a_refusal_is_told_whole() -> None:
    plain = read({"id": 7, "role": "critic", "task_id": "t1", "text": READY}).to_plain()
    assert plain == {
        "id": 7,
        "accepted": None,
        "refused": "WrongRole",
        "sentence": plain["sentence"],
        "where": 1,
    }
    assert "Only the developer" in plain["sentence"]


def test_lines_are_a_list() -> None:
    stream = (
        "x\nSAGE_SIGNAL:STORY_STARTED:3-1\nSAGE_SIGNAL:HITL_HALT\nSAGE_SIGNAL:STORY_STARTED:3-1\n"
    )
    judged = read({"id": "l", "format": "lines", "stream": stream})
    story = {"signal": "STORY_STARTED", "subject": "3-1", "fields": {"story_id": "3-1"}}
    plain = judged.to_plain()
    assert set(plain) == {"id", "lines"}
    first, second, third = plain["lines"]
    assert first == {"accepted": story, "refused": None, "sentence": None, "where": 2}
    assert (second["accepted"], second["refused"], second["where"]) == (None, "Malformed", 3)
    assert third["accepted"] == story
    assert "no effect" in third["sentence"]
    assert judged.is_refused


def test_the_subject_of_a_line_is_its_first_id() -> None:
    stream = "SAGE_SIGNAL:HITL_REQUIRED:issue:42\nSAGE_SIGNAL:RECOVERY_FAILED:git\n"
    lines = read({"id": "l", "format": "lines", "stream": stream}).to_plain()["lines"]
    assert [one["accepted"]["subject"] for one in lines] == ["42", None]


def test_a_stream_with_a_role_is_its_last_message() -> None:
    fields = {"id": "s", "role": "developer", "format": "claude-stream-json"}
    stream = [INIT, {"type": "assistant", "message": {"id": "m", "content": READY}}, result(READY)]
    as_text = "".join(json.dumps(event) + "\n" for event in stream)
    for recorded in (stream, as_text, [json.dumps(event) for event in stream]):
        plain = read({**fields, "stream": recorded}).to_plain()
        assert plain["accepted"]["signal"] == "READY_FOR_REVIEW"
        assert "lines" not in plain


def test_a_stream_without_a_role_is_a_session() -> None:
    text = "SAGE_SIGNAL:EPIC_COMPLETE:e:success"
    outcome = {
        "type": "assistant",
        "message": {"id": "m", "content": [{"type": "text", "text": text}]},
    }
    judged = read(
        {"id": "s", "format": "claude-stream-json", "stream": [INIT, outcome, result(text)]}
    )
    assert [one["accepted"]["signal"] for one in judged.to_plain()["lines"]] == ["EPIC_COMPLETE"]
    assert not judged.is_refused


def test_pieces_of_one_message_are_one_message() -> None:
    pieces = ["```\n", "SAGE_SIGNAL:STORY_STARTED:1\n", "```\nSAGE_SIGNAL:STORY_STARTED:2\n"]
    events = [
        {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": piece}]}}
        for piece in pieces
    ]
    judged = read({"id": "s", "format": "claude-stream-json", "stream": [*events, result("x")]})
    assert [one["accepted"]["subject"] for one in judged.to_plain()["lines"]] == ["2"]


def test_flags_are_defaults_that_a_record_goes_before() -> None:
    assert read({"id": "a", "text": READY}, role="developer", task_id="t1").is_refused is False
    assert read(
        {"id": "a", "text": READY, "task_id": "t2"}, role="developer", task_id="t1"
    ).is_refused
    strict = {"role": "developer", "nonce": "n1", "strict": True}
    assert read({"id": "a", "text": READY}, **strict).to_plain()["refused"] == "Stale"
    assert not read({"id": "a", "text": READY + "\nDispatch: n1\n"}, **strict).is_refused


@pytest.mark.parametrize("kind", ["text", "claude-stream-json", "codex-jsonl"])
def test_a_session_that_was_cut_off_says_nothing(kind: str) -> None:
    fields = {"id": "a", "role": "developer", "format": kind, "stream": READY}
    plain = read({**fields, "ended_by_itself": False}).to_plain()
    assert (plain["accepted"], plain["refused"]) == (None, "Missing")
    assert plain["sentence"].startswith("There is no final message: ")


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"{", "cannot be read"),
        (b"[]", "a record must be a JSON object"),
        (b"null", "a record must be a JSON object"),
        (b"\xff", "cannot be read"),
        (b'{"id": "\xff", "text": ""}', "cannot be read"),
        (b"{}", "has no id"),
        (b'{"role": "critic", "text": ""}', "has no id"),
        (b'{"id": null, "role": "critic", "text": ""}', "has no id"),
        (b'{"id": "a"}', "either text or stream"),
        (b'{"id": "a", "role": "x", "text": "", "stream": ""}', "either text or stream"),
        (b'{"id": "a", "text": ""}', "needs the role"),
        (b'{"id": "a", "stream": ""}', "needs its format"),
        (b'{"id": "a", "format": "xml", "stream": ""}', "format"),
        (b'{"id": "a", "role": 7, "text": ""}', "role"),
        (b'{"id": 1.5, "role": "critic", "text": ""}', "id"),
        (b'{"id": "a", "role": "critic", "text": 1}', "text"),
        (b"[" * 100_000, "a record"),
    ],
)
def test_a_broken_record_is_told(raw: bytes, sentence: str) -> None:
    output = read_record(raw, Record(id=""))
    assert isinstance(output, str)
    assert sentence in output or "nested too deep" in output


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"type":"system","subtype":"init"}\n', "claude-stream-json"),
        ('\n\ufeff{"type":"assistant"}\n', "claude-stream-json"),
        ('{"type":"thread.started"}\n', "codex-jsonl"),
        ('{"type":"item.completed","item":{}}\n', "codex-jsonl"),
        ('{"type":"other"}\n', "text"),
        ("{}\n", "text"),
        ("READY_FOR_REVIEW: t1\n", "text"),
        ("", "text"),
    ],
)
def test_a_stream_is_known_by_its_first_event(text: str, kind: str) -> None:
    assert detect_format(text) == kind


@given(
    st.text(max_size=80), st.sampled_from(["text", "claude-stream-json", "codex-jsonl", "lines"])
)
def test_any_stream_gets_a_verdict(text: str, kind: str) -> None:
    plain = read({"id": "a", "format": kind, "stream": text}).to_plain()
    assert set(plain) <= {"id", "accepted", "refused", "sentence", "where", "lines"}
