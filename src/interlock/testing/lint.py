"""Does a prompt or skill teach legal signals, and would its own examples be taken for real ones?

Knows what may be wrong with a text that teaches, each under a stable id. Refuses to know files:
a transcript is judged elsewhere.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from interlock.signals.catalogue import may_say, role_named, rows
from interlock.signals.grammar import SIGNALS, WORDS, spoken
from interlock.signals.line_payload import LineSignal
from interlock.signals.line_rows import PREFIX
from interlock.signals.lines import LineReader
from interlock.testing.examples import Example, PromptLine, examples_in, lines_of, strangers_in

MOST_FINDINGS: Final = 1000
LARGEST: Final = 1 << 24
_SAMPLE: Final = 1 << 17
_NEAR: Final = 0.75
_NAMES: Final = (*WORDS, *(row.name.partition(":")[0] for row in rows("line")))
_FILES: Final = re.compile(r"\bdispatch_id\b")
_FRONTMATTER: Final = re.compile(r"---[ \t]*\n(?:[^\n]*\n){0,40}?---[ \t]*\n")
_COUNTER_EXAMPLE: Final = re.compile(r"\b(?:is no|not a|is not a) signal\b")
_TEMPLATE: Final = re.compile(
    r"\[(?:task_id|request_id|expert_name|file_path)\]|\{(?:epic_id|story_id|issue_number)\}"
)
_NAMED: Final = re.compile(rf"(?<!\w)(?:{'|'.join(WORDS)})(?!\w)")
_SHOWN: Final = re.compile(rf"(?:{'|'.join(WORDS)})`?:[ \t]*[\[<{{]|`(?:{'|'.join(WORDS)})[:`]")


class LintFinding(msgspec.Struct, frozen=True):
    """One thing that is wrong, where it stands, and what to write instead."""

    id: str
    line: int
    message: str
    fix: str


def lint_prompt(text: str, role: str | None = None) -> list[LintFinding]:
    """All that is wrong with a text that teaches signals, in the order of its lines."""
    if len(text) > LARGEST:
        return [_too_large()]
    source = "\n" + text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = list(lines_of(source))
    shown = [example for line in lines for example in examples_in(line)]
    found = [
        *_live(source),
        *_malformed(shown),
        *_strangers(lines),
        *_wrong_role(shown, role),
        *_without_sections(shown, text),
        *_nothing(shown, text),
    ]
    unique = dict.fromkeys(sorted(found, key=lambda one: (one.line, one.id)))
    return list(islice(unique, MOST_FINDINGS))


def is_prompt(text: str) -> bool:
    """Whether a text teaches signals rather than saying them, as far as both its ends tell."""
    ends = text if len(text) <= 2 * _SAMPLE else f"{text[:_SAMPLE]}\n{text[-_SAMPLE:]}"
    plain = ends.removeprefix("\ufeff").replace("\r\n", "\n")
    if _FRONTMATTER.match(plain) or _TEMPLATE.search(plain):
        return True
    named = {found[0] for found in islice(_NAMED.finditer(plain), 1000)}
    if len(named) > 3 or _SHOWN.search(plain):
        return True
    said = next(SIGNALS.find("\n" + plain), None) is not None
    return not (said or named or PREFIX in plain)


def _live(source: str) -> Iterator[LintFinding]:
    fix = "Indent the example by four blanks, put it into a fence, or leave a [placeholder] in it."
    for found in SIGNALS.find(source):
        said = spoken(found)
        line = source.count("\n", 0, said.start) + 1
        message = f"An agent that repeats this text says {said.row.name}."
        yield LintFinding("signal.live-example", line, message, fix)
    reader = LineReader("message")
    fix = "Indent the example by four blanks, or put it into a fence."
    for one in [*reader.feed(source[1:]), *reader.close(ended_by_itself=True)]:
        if isinstance(one, LineSignal):
            message = f"An agent that repeats this text emits {one.type}."
            yield LintFinding("signal.live-example", one.where, message, fix)


def _malformed(shown: Sequence[Example]) -> Iterator[LintFinding]:
    for one in shown:
        if one.problem:
            message = f"`{one.text[:80]}` {one.problem}."
            yield LintFinding("signal.malformed", one.line.number, message, _form(one.word))


def _form(word: str) -> str:
    forms = [row.grammar for row in rows("text") if row.word == word]
    if not forms:
        return f"See `{PREFIX}TYPE:PAYLOAD` in the protocol's table."
    return "Write " + " or ".join(f"`{form}`" for form in forms) + "; do not start prose with it."


def _strangers(lines: Sequence[PromptLine]) -> Iterator[LintFinding]:
    """A name is worth a finding if something says that it is meant as a signal."""
    before = ""
    for line in lines:
        if _COUNTER_EXAMPLE.search(line.text):
            continue
        shown = line.code or "`" not in line.text
        told = "signal" in (f"{before} {line.text}" if shown else line.text).lower()
        for name, has_placeholder in strangers_in(line):
            near = difflib.get_close_matches(name, _NAMES, 1, _NEAR)
            if near or told or has_placeholder:
                fix = f"Did you mean {near[0]}?" if near else "Use a signal of the protocol."
                message = f"{name} is no signal of the protocol."
                yield LintFinding("signal.unknown", line.number, message, fix)
        before = line.text if line.live and line.text.strip() else before


def _wrong_role(shown: Sequence[Example], role: str | None) -> Iterator[LintFinding]:
    if role is None:
        return
    for one in shown:
        for row in one.rows:
            if row.protocol == "text" and not may_say(role_named(role), row):
                message = f"{row.name} is not said by the {role_named(role)}."
                fix = f"It is said by: {', '.join(row.roles)}."
                yield LintFinding("signal.wrong-role", one.line.number, message, fix)


def _without_sections(shown: Sequence[Example], text: str) -> Iterator[LintFinding]:
    """Whoever is shown a signal must also be told which sections it needs."""
    first = {row: one for one in reversed(shown) for row in one.rows}
    for row, one in first.items():
        for labels in row.requires:
            if not any(_mentions(text, label) for label in labels):
                wanted = " or ".join(f"`{label}:`" for label in labels)
                message = f"{row.name} is taught without {wanted}, which it needs."
                fix = "Show the section under the signal line."
                yield LintFinding("signal.missing-section", one.line.number, message, fix)


def _mentions(text: str, label: str) -> bool:
    word = "DELEGATION PROMPT START" if label == "Prompt" else label
    return word.lower() in text.lower()


def _nothing(shown: Sequence[Example], text: str) -> Iterator[LintFinding]:
    if not any(one.rows for one in shown) and not _FILES.search(text):
        fix = "Show the agent at least one signal in its exact form."
        yield LintFinding("signal.none", 1, "This text teaches no legal signal.", fix)


def _too_large() -> LintFinding:
    message = f"A prompt of more than {LARGEST} characters is not looked at."
    return LintFinding("prompt.too-large", 1, message, "Is it a transcript? Use --as transcript.")
