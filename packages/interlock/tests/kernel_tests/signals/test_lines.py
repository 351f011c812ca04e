"""Line signals: every ruling as rows, and the laws of the stream."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.catalogue import list_signals
from interlock.signals.lines import (
    LineReader,
    LineRefusal,
    LineSignal,
    format_line,
    read_session,
)

RULE = "=" * 44
BAR = "═" * 44
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(
    text: str, mode: Literal["raw", "message"] = "raw", ended_by_itself: bool = True
) -> list[LineSignal | LineRefusal]:
    reader = LineReader(mode)
    return [*reader.feed(text), *reader.close(ended_by_itself)]


def read_signals(
    text: str, mode: Literal["raw", "message"] = "raw"
) -> list[tuple[str, dict[str, Any]]]:
    found = read(text, mode)
    return [(one.type, one.fields) for one in found if isinstance(one, LineSignal)]


FOUR = {"epic_id": "epic-3", "story_id": "3-1", "phase": "phase-2", "task": "5"}

SINGLE = [
    ("CHECKPOINT:WRITE:epic-3:3-1:phase-2:5", "CHECKPOINT:WRITE", FOUR),
    ("CHECKPOINT:epic-3:3-1:phase-2:5", "CHECKPOINT:WRITE", FOUR),
    (
        "CHECKPOINT:WRITE:epic-3:3-1:Phase 1:5: the rest",
        "CHECKPOINT:WRITE",
        {**FOUR, "phase": "Phase 1", "task": "5: the rest"},
    ),
    ("CHECKPOINT:LOADED:e:s", "CHECKPOINT:LOADED", {"epic_id": "e", "story_id": "s"}),
    ("CHECKPOINT:LOADED", "CHECKPOINT:LOADED", {}),
    ("CHECKPOINT:MISSING", "CHECKPOINT:MISSING", {}),
    ("CHECKPOINT:MISSING:whatever:x:y:z", "CHECKPOINT:MISSING", {}),
    ("HITL_REQUIRED:issue:42", "HITL_REQUIRED", {"issue": 42}),
    ("HITL_REQUIRED", "HITL_REQUIRED", {}),
    ("HITL_REQUIRED:please look", "HITL_REQUIRED", {}),
    ("HITL_WAITING:issue:42", "HITL_WAITING", {"issue": 42}),
    ("HITL_APPROVED:issue:42", "HITL_APPROVED", {"issue": 42}),
    ("HITL_REVISE:issue:42", "HITL_REVISE", {"issue": 42}),
    ("HITL_DISCUSS:issue:42", "HITL_DISCUSS", {"issue": 42}),
    ("HITL_HALT:issue:42", "HITL_HALT", {"issue": 42}),
    ("HITL_TIMEOUT:issue:42", "HITL_TIMEOUT", {"issue": 42}),
    ("EPIC_STARTED:epic-3", "EPIC_STARTED", {"epic_id": "epic-3"}),
    ("EPIC_COMPLETE:epic-3:success", "EPIC_COMPLETE", {"epic_id": "epic-3", "status": "success"}),
    ("EPIC_COMPLETE:epic-3", "EPIC_COMPLETE", {"epic_id": "epic-3"}),
    ("STORY_STARTED:3-1", "STORY_STARTED", {"story_id": "3-1"}),
    ("STORY_COMPLETE:3-1:done", "STORY_COMPLETE", {"story_id": "3-1", "status": "done"}),
    ("PHASE_TRANSITION:a:b", "PHASE_TRANSITION", {"from_phase": "a", "to_phase": "b"}),
    ("RECOVERY_STARTED:tests: 3 red", "RECOVERY_STARTED", {"reason": "tests: 3 red"}),
    ("RECOVERY_COMPLETE:abc123", "RECOVERY_COMPLETE", {"commit_hash": "abc123"}),
    ("RECOVERY_FAILED:git: no", "RECOVERY_FAILED", {"error": "git: no"}),
    ("FATAL_ERROR:NO_CHECKPOINT", "FATAL_ERROR", {"error_code": "NO_CHECKPOINT"}),
    (
        "FATAL_ERROR:SUBAGENT_FAILED:exit 1: see a:b",
        "FATAL_ERROR",
        {"error_code": "SUBAGENT_FAILED", "message": "exit 1: see a:b"},
    ),
    (
        "RECOVERABLE_ERROR:X:y",
        "RECOVERABLE_ERROR",
        {"error_code": "X", "message": "y"},
    ),
    ("FATAL_ERROR", "FATAL_ERROR", {}),
    ("FATAL_ERROR:", "FATAL_ERROR", {}),
    ("SOMETHING_NEW:1:2", "SOMETHING_NEW", {}),
]

REFUSED = [
    "SAGE_SIGNAL:CHECKPOINT",
    "SAGE_SIGNAL:CHECKPOINT:",
    "SAGE_SIGNAL:CHECKPOINT:WRITE",
    "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p",
    "SAGE_SIGNAL:CHECKPOINT:WRITE:e::p:t",
    "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p:{task}",
    "SAGE_SIGNAL:CHECKPOINT:{epic_id}:{story_id}:{phase}:{task}",
    "SAGE_SIGNAL:CHECKPOINT:e:s:p",
    "SAGE_SIGNAL:CHECKPOINT:e:s:p:t:u",
    "SAGE_SIGNAL:CHECKPOINT:write:e:s:p:t",
    "SAGE_SIGNAL:HITL_APPROVED",
    "SAGE_SIGNAL:HITL_APPROVED:issue:",
    "SAGE_SIGNAL:HITL_APPROVED:issue:abc",
    "SAGE_SIGNAL:HITL_REVISE",
    "SAGE_SIGNAL:HITL_DISCUSS",
    "SAGE_SIGNAL:HITL_HALT:now",
    "SAGE_SIGNAL:HITL_TIMEOUT",
    "SAGE_SIGNAL:checkpoint:e:s:p:t",
    "SAGE_SIGNAL:",
    "SAGE_SIGNAL::x",
    "SAGE_SIGNAL: FATAL_ERROR:x",
    "sage_signal:FATAL_ERROR:x",
    " SAGE_SIGNAL:FATAL_ERROR:x",
    "SAGE_SIGNAL:FATAL_ERROR:x\ry",
    "SAGE_SIGNAL:FATAL_ERROR:" + "x" * 70000,
]

NOTHING = [
    "",
    "plain output",
    "docs.md:3:SAGE_SIGNAL:FATAL_ERROR:x",
    "the SAGE_SIGNAL: prefix",
    "progress 10%\rSAGE_SIGNAL:FATAL_ERROR:x",
    "SIGNAL: HITL_REQUIRED",
    f"{RULE}\nISSUE_NUMBER: 42\n{RULE}",
    f"{BAR}\nSIGNAL: RECOVERY_COMPLETE\nREVERTED_TO: abc\n{BAR}",
    f"═══ SAGE_SIGNAL:CHECKPOINT ═══\nCHECKPOINT_FILE: .sage/state/epic-3.json\n{BAR}",
]

INERT = [
    "```\n{}\n```\n",
    "```\n{}\n",
    "> {}\n",
    "> quoted\n{}\n",
    "<!--\n{}\n-->\n",
    "<think>\n{}\n</think>\n",
    "    {}\n",
    "\x1b[32m{}\x1b[0m\n",
]


@pytest.mark.parametrize("mode", ["raw", "message"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "  \n", ""])
def test_a_line_is_a_signal(mode: Literal["raw", "message"], ending: str) -> None:
    wrong = [
        f"{line}: {found}"
        for line, kind, fields in SINGLE
        if (found := read_signals(f"before\nSAGE_SIGNAL:{line}{ending}", mode)) != [(kind, fields)]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", REFUSED)
def test_a_bad_line_is_refused_with_the_reason(line: str) -> None:
    (found,) = read(f"x\n{line}\ny\n")
    assert isinstance(found, LineRefusal)
    assert found.sentence
    assert found.where == 2


@pytest.mark.parametrize("mode", ["raw", "message"])
def test_other_lines_are_nothing(mode: Literal["raw", "message"]) -> None:
    assert [line for line in NOTHING if read(f"{line}\n", mode)] == []


def test_every_row_of_the_catalogue_is_read() -> None:
    visible = {kind for _, kind, _ in SINGLE}
    assert {row.name for row in list_signals("line")} <= visible
    assert len(list_signals("line")) == 20


def test_an_unknown_type_is_journaled_as_unknown() -> None:
    (found,) = read("SAGE_SIGNAL:SOMETHING_NEW:x\n")
    assert isinstance(found, LineSignal)
    assert not found.known
    assert found.payload == "x"


@pytest.mark.parametrize(
    ("payload", "success"),
    [
        ("e:success", True),
        ("e:partial", False),
        ("e", False),
        ("success", False),
        ("", False),
        ("e:SUCCESS", False),
        ("e:success!", False),
        (":success", True),
    ],
)
def test_only_the_word_success_is_success(payload: str, success: bool) -> None:
    (found,) = read(f"SAGE_SIGNAL:EPIC_COMPLETE:{payload}\n")
    assert isinstance(found, LineSignal)
    assert found.is_success is success


@pytest.mark.parametrize("wrapper", INERT)
def test_in_a_message_inert_text_is_no_signal(wrapper: str) -> None:
    assert read_signals(wrapper.format("SAGE_SIGNAL:FATAL_ERROR:X:y"), "message") == []


@pytest.mark.parametrize("wrapper", INERT[:2] + INERT[3:6] + INERT[7:])
def test_on_plain_output_markdown_means_nothing(wrapper: str) -> None:
    text = wrapper.format("SAGE_SIGNAL:FATAL_ERROR:X:y")
    assert [kind for kind, _ in read_signals(text)] == ["FATAL_ERROR"]


def test_ansi_is_stripped_from_plain_output() -> None:
    text = "\x1b]0;title\x07\x1b[1;31mSAGE_SIGNAL:\x1b[0mFATAL_ERROR:X:y\x1b[K\r\n"
    assert read_signals(text) == [("FATAL_ERROR", {"error_code": "X", "message": "y"})]


def test_epic_complete_counts_only_from_the_final_message() -> None:
    reader = LineReader("message")
    reader.feed("SAGE_SIGNAL:EPIC_COMPLETE:e:success\n")
    assert reader.end_message() == []
    reader.feed("Wait, one more thing.\nSAGE_SIGNAL:STORY_STARTED:s")
    refused, started = reader.end_message()
    assert isinstance(refused, LineRefusal)
    assert "final message" in refused.sentence
    assert isinstance(started, LineSignal)
    reader.feed("SAGE_SIGNAL:EPIC_COMPLETE:e:success")
    assert reader.end_message() == []
    (final,) = reader.close(ended_by_itself=True)
    assert isinstance(final, LineSignal)
    assert final.is_success
    assert not final.repeated


def test_a_session_that_was_cut_off_has_no_final_message() -> None:
    reader = LineReader("message")
    reader.feed("SAGE_SIGNAL:EPIC_COMPLETE:e:success\n")
    reader.end_message()
    (found,) = reader.close(ended_by_itself=False)
    assert isinstance(found, LineRefusal)


@pytest.mark.parametrize("mode", ["raw", "message"])
def test_a_last_line_without_newline_needs_a_proper_end(mode: Literal["raw", "message"]) -> None:
    text = "SAGE_SIGNAL:STORY_STARTED:s\nSAGE_SIGNAL:FATAL_ERROR:X:y"
    whole = [one for one in read(text, mode, True) if isinstance(one, LineSignal)]
    cut = [one for one in read(text, mode, False) if isinstance(one, LineSignal)]
    assert [one.type for one in whole] == ["STORY_STARTED", "FATAL_ERROR"]
    assert [one.type for one in cut] == ["STORY_STARTED"]


@pytest.mark.parametrize("mode", ["raw", "message"])
def test_the_second_time_is_marked(mode: Literal["raw", "message"]) -> None:
    text = "SAGE_SIGNAL:STORY_STARTED:s\n" * 2 + "SAGE_SIGNAL:STORY_STARTED:r\n"
    repeated = [one.repeated for one in read(text, mode) if isinstance(one, LineSignal)]
    assert repeated == [False, True, False]


@pytest.mark.parametrize(
    ("kind", "payload", "line"),
    [
        ("CHECKPOINT", "e:s:p:t", "SAGE_SIGNAL:CHECKPOINT:e:s:p:t"),
        ("CHECKPOINT:WRITE", ["e", "s", "p", "t: x"], "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p:t: x"),
        ("CHECKPOINT:MISSING", None, "SAGE_SIGNAL:CHECKPOINT:MISSING"),
        ("HITL_REQUIRED", {"issue": "42"}, "SAGE_SIGNAL:HITL_REQUIRED:issue:42"),
        ("HITL_REQUIRED", None, "SAGE_SIGNAL:HITL_REQUIRED"),
        ("FATAL_ERROR", ["X", "two\nlines"], "SAGE_SIGNAL:FATAL_ERROR:X:two lines"),
        ("FATAL_ERROR", {"error_code": "X"}, "SAGE_SIGNAL:FATAL_ERROR:X"),
        ("NEW_TYPE", "x", "SAGE_SIGNAL:NEW_TYPE:x"),
    ],
)
def test_emits_the_canonical_line(kind: str, payload: Any, line: str) -> None:
    assert format_line(kind, payload) == line


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("checkpoint", "e:s:p:t"),
        ("CHECKPOINT", None),
        ("CHECKPOINT:WRITE", ["e", "s", "p"]),
        ("FATAL_ERROR", ["a:b", "c"]),
        ("HITL_APPROVED", None),
        ("A B", None),
    ],
)
def test_emits_nothing_that_would_be_refused(kind: str, payload: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        format_line(kind, payload)


pieces = st.sampled_from(
    [
        "SAGE_SIGNAL:",
        "FATAL_ERROR",
        ":x",
        "CHECKPOINT:a:b:c:d",
        "\n",
        "\r\n",
        "\r",
        RULE,
        BAR,
        " ",
        "SIGNAL: EPIC_STARTED",
        "KEY: v",
        "ISSUE_NUMBER: 3",
        "\x1b[0m",
        "```",
        "> ",
        "\u017fage_signal:",
        "x",
        "SAGE_SIGNAL:HITL_REQUIRED\n",
        "y" * 70000,
    ]
)
streams = st.lists(pieces, max_size=25).map("".join)


@given(streams, st.lists(st.integers(0, 400), max_size=8), st.booleans(), st.booleans())
def test_how_the_stream_is_cut_never_matters(
    text: str, cuts: list[int], as_message: bool, ended_by_itself: bool
) -> None:
    mode: Literal["raw", "message"] = "message" if as_message else "raw"
    reader = LineReader(mode)
    found, start = [], 0
    for cut in [*sorted(cuts), len(text)]:
        found += reader.feed(text[start:cut]) if cut > start else []
        start = max(start, cut)
    found += reader.close(ended_by_itself)
    assert found == read(text, mode, ended_by_itself)


@given(st.sampled_from(SINGLE), st.integers(0, 3))
def test_what_is_emitted_is_read_back(row: tuple[str, str, dict[str, Any]], blanks: int) -> None:
    _, kind, fields = row
    line = format_line(kind, {name: str(value) for name, value in fields.items()})
    assert read_signals("\n" * blanks + line + "\n") == [(kind, fields)]


COMPLETE = "All is done.\nSAGE_SIGNAL:EPIC_COMPLETE:epic-3:success\n"


def _assistant(text: str, message_id: str = "m1") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message_id, "content": content}}


def _result(text: str) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "num_turns": 1, "result": text}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([_result(COMPLETE)], id="only in the result"),
        pytest.param([_assistant("I look around."), _result(COMPLETE)], id="after another message"),
        pytest.param([_assistant(COMPLETE), _result(COMPLETE)], id="in both"),
        pytest.param([_assistant(COMPLETE), _result(COMPLETE.strip())], id="in both, stripped"),
        pytest.param(
            [_assistant(COMPLETE), _assistant("That was it."), _result("That was it.")],
            id="in two parts of one message, of which the result has the last",
        ),
        pytest.param(
            [_assistant(COMPLETE), _result(COMPLETE), _result(COMPLETE)], id="in two results"
        ),
    ],
)
def test_the_last_word_of_a_stream_counts_once_wherever_it_stands(
    events: list[dict[str, Any]],
) -> None:
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    (found,) = read_session(text, "claude-stream-json", ended_by_itself=True)
    assert isinstance(found, LineSignal)
    assert found.is_success
    assert not found.repeated


def test_a_result_that_is_another_message_takes_the_last_word() -> None:
    events = [_assistant(COMPLETE), _result("No, it is not.")]
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    (found,) = read_session(text, "claude-stream-json", ended_by_itself=True)
    assert isinstance(found, LineRefusal)
    assert "final message" in found.sentence


def test_a_result_that_is_an_error_says_nothing() -> None:
    event = {"type": "result", "subtype": "error_max_turns", "is_error": True, "result": COMPLETE}
    assert read_session(json.dumps(event) + "\n", "claude-stream-json", ended_by_itself=True) == []


def test_a_message_that_comes_in_pieces_is_read_as_it_was_said() -> None:
    first = ("I begin.\nSAGE_SIGNAL:STORY_", "STARTED:3-", "1\n")
    last = ("All is done.\nSAGE_SIGNAL:EPIC_", "COMPLETE:epic-3:suc", "cess")
    events: list[dict[str, str]] = [
        *({"type": "message", "role": "assistant", "content": piece} for piece in first),
        {"type": "tool_use", "tool_id": "t", "tool_name": "shell"},
        *({"type": "message", "role": "assistant", "content": piece} for piece in last),
        {"type": "result", "status": "success"},
    ]
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    started, ended = read_session(text, "gemini-stream-json", ended_by_itself=True)
    assert isinstance(started, LineSignal)
    assert started.payload == "3-1"
    assert isinstance(ended, LineSignal)
    assert ended.is_success
