"""Laws of the text reader that hold for any message."""

import string

from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.catalogue import WORKING, find_signal, list_role_signals, list_signals
from interlock.signals.reading import Accepted, SignalRefused
from interlock.signals.text import read_message

SIGNALS = [row for row in list_signals("text") if row.key != "unknown"]
FILLED = {
    "READY_FOR_REVIEW": "Summary: done",
    "TASK_INCOMPLETE": "Blocker: no key",
    "AUDIT_PASSED": "Verification Results:\n- a: VERIFIED - b",
    "AUDIT_FAILED": "Issues Found:\n- a.py:1: b",
    "REVIEW_PASSED": "Files Reviewed:\n- a.py",
    "REVIEW_FAILED": "Issues Found:\n- a.py:1: b",
    "HEALTH_AUDIT: HEALTHY": "Verification Results:\n- a (b): PASS",
    "SEEKING_DIVINE_CLARIFICATION": "Question: why?",
    "EXPERT_REQUEST": (
        "Target Agent: x\n\n---DELEGATION PROMPT START---\ny\n---DELEGATION PROMPT END---"
    ),
    "EXPERT_ADVICE": "Recommendation: x",
    "EXPERT_CREATED": "File: x.md",
    "EXPANDED_TASK_SPECIFICATION": "Expanded Specification: x\n\nAcceptance Criteria:\n- [ ] y",
}
SUBJECTS = {"task": ": t1", "request": ": r1", "expert": ": x1", "path": ": src/a.py", None: ""}


def signal_line(name: str) -> str:
    row = find_signal("text", name)
    assert row is not None
    return f"{row.name}{SUBJECTS[row.subject]}\n\n{FILLED.get(name, '')}\n"


names = st.sampled_from([row.name for row in SIGNALS])
roles = st.sampled_from([*WORKING, "nobody"])
# Pieces that meet often in what agents write, and in what attackers write.
pieces = st.sampled_from(
    [
        *(signal_line(row.name) for row in SIGNALS),
        *(f"{row.word}\n" for row in SIGNALS),
        "```\n",
        "```py\n",
        "````\n",
        "~~~\n",
        "    ```\n",
        "> ",
        "> quote\n",
        "- ",
        "1. item\n",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
        "<code>",
        "</code>",
        "<think>\n",
        "</think>\n",
        "`",
        "---DELEGATION PROMPT START---\n",
        "---DELEGATION PROMPT END---\n",
        "\n",
        "\n\n",
        "\r",
        " ",
        "Summary: ",
        "| a | b |\n",
        "text\n",
        "WORK_DONE: t1\n",
        "SAGE_SIGNAL:X\n",
        "\x1b[0m",
        "\ufeff",
    ]
)
messages = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=200)
prose = st.text(string.ascii_lowercase + " .\n", max_size=40)


@given(names, st.data())
def test_every_signal_can_be_said_by_each_of_its_roles(name: str, data: st.DataObject) -> None:
    row = find_signal("text", name)
    assert row is not None
    role = data.draw(st.sampled_from(row.roles))
    reading = read_message(signal_line(name), role=role, task_id="t1")
    assert isinstance(reading, Accepted)
    assert reading.signal == name


@given(messages, roles)
def test_any_text_gives_exactly_one_reading(text: str, role: str) -> None:
    assert isinstance(read_message(text, role=role, task_id="t1"), Accepted | SignalRefused)


@given(messages, roles)
def test_a_role_is_never_heard_saying_what_it_may_not(text: str, role: str) -> None:
    reading = read_message(text, role=role, task_id="t1")
    if isinstance(reading, Accepted):
        assert reading.signal in {row.name for row in list_role_signals(role)}


@given(messages, roles)
def test_the_accepted_task_is_the_one_that_was_dispatched(text: str, role: str) -> None:
    reading = read_message(text, role=role, task_id="t2")
    if isinstance(reading, Accepted):
        row = find_signal("text", reading.signal)
        assert row is not None
        assert row.subject != "task"


@given(
    names,
    prose,
    st.sampled_from(
        [
            ("```\n", "\n```\n"),
            ("~~~~ md\n", "\n~~~~\n"),
            ("```\n", ""),
            ("<!--\n", "\n-->\n"),
            ("<pre>\n", "\n</pre>\n"),
            ("x <code>\n", "\n</code>\n"),
            ("<think>\n", "\n</think>\n"),
            ("---DELEGATION PROMPT START---\n", "\n---DELEGATION PROMPT END---\n"),
        ]
    ),
    st.data(),
)
def test_a_wrapped_signal_is_never_accepted(
    name: str, before: str, wrapper: tuple[str, str], data: st.DataObject
) -> None:
    row = find_signal("text", name)
    assert row is not None
    inner = signal_line(name).replace("---DELEGATION PROMPT END---", "")
    text = f"{before}\n\n{wrapper[0]}{inner}{wrapper[1]}"
    reading = read_message(text, role=data.draw(st.sampled_from(row.roles)), task_id="t1")
    assert isinstance(reading, SignalRefused)


@given(names, st.sampled_from(["> ", "    ", "\t", " ", "- ", "+ "]), st.data())
def test_a_prefixed_signal_is_never_accepted(name: str, mark: str, data: st.DataObject) -> None:
    row = find_signal("text", name)
    assert row is not None
    text = "".join(f"{mark}{line}\n" for line in signal_line(name).split("\n"))
    reading = read_message(text, role=data.draw(st.sampled_from(row.roles)), task_id="t1")
    assert isinstance(reading, SignalRefused)


@given(messages.filter(lambda text: "\r" not in text), roles)
def test_crlf_reads_like_lf(text: str, role: str) -> None:
    assert read_message(text, role=role, task_id="t1") == read_message(
        text.replace("\n", "\r\n"), role=role, task_id="t1"
    )


@given(messages, roles, st.integers(1, 5))
def test_blank_lines_before_a_message_only_move_it(text: str, role: str, count: int) -> None:
    if text.startswith("\ufeff"):
        return
    plain = read_message(text, role=role, task_id="t1")
    moved = read_message("\n" * count + text, role=role, task_id="t1")
    assert type(plain) is type(moved)
    assert moved.where == (None if plain.where is None else plain.where + count)


@given(messages, roles)
def test_without_its_nonce_nothing_passes_a_strict_reader(text: str, role: str) -> None:
    reading = read_message(text, role=role, task_id="t1", nonce="n0nce", strict=True)
    assert isinstance(reading, SignalRefused)


@given(names, st.data())
def test_with_its_nonce_every_signal_passes_a_strict_reader(name: str, data: st.DataObject) -> None:
    row = find_signal("text", name)
    assert row is not None
    role = data.draw(st.sampled_from(row.roles))
    line, _, body = signal_line(name).partition("\n")
    texts = [f"{line}\nDispatch: n0nce\n{body}", f"{line}\n{body}\nDispatch: n0nce\n"]
    texts += [f"{line} [dispatch n0nce]\n{body}"] if row.subject != "path" else []
    for text in texts:
        reading = read_message(text, role=role, task_id="t1", nonce="n0nce", strict=True)
        assert isinstance(reading, Accepted), text
        other = read_message(text, role=role, task_id="t1", nonce="0ther", strict=True)
        assert isinstance(other, SignalRefused)
        assert other.reason == "Stale"
