"""Check that a prompt or skill teaches legal signals, and that its examples are not taken for real
ones.

The linter finds the lines and code spans that are meant as examples of a signal, and reports what
is wrong with them, each finding under a stable id. `transcript` judges transcripts; a `LintReport`
takes files of both kinds.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from interlock.signals.catalogue import (
    PREFIX,
    SignalRow,
    find_signal,
    list_signals,
    may_send,
    normalize_role,
)
from interlock.signals.comments import UNCLEAR, read_comment
from interlock.signals.grammar import SIGNAL_WORDS, SIGNALS, guess_signal, parse_signal_line
from interlock.signals.lines import SIGNAL_TYPE, LineReader, LineSignal, read_payload
from interlock.signals.own_words import split_units
from interlock.testing.transcript import Record, check_transcript, detect_format, read_record

_PLACEHOLDER: Final = re.compile(
    r"\[[^\[\]\n]+\]|<[^<>\n]+>|\{[^{}\n]+\}|\$\{?\w+\}?|\N{HORIZONTAL ELLIPSIS}|\.\.\."
)
_MARKS: Final = re.compile(r"(?:[ \t>|+*~#-]|\d{1,9}[.)][ \t]|[`_])*")
_SPAN: Final = re.compile(r"(?<!not )(?<!never )`([^`\n]+)`")
_PRINTED: Final = re.compile(rf"{PREFIX}[^`'\"|\n]*")
_UNKNOWN_NAME: Final = re.compile(r"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?::[ \t]*(\S.*)?)?\Z")
_ATTEMPT: Final = re.compile(r"[ \t]*(?:[:=]|[-\u2013\u2014])")
_ANY_TYPE: Final = ("TYPE", "SIGNAL_TYPE", "X", "")


class PromptLine(msgspec.Struct, frozen=True):
    """A line of a prompt: whether it is live, and whether it is shown as code."""

    number: int
    text: str
    live: bool
    code: bool


class Example(msgspec.Struct, frozen=True):
    """A text that is meant as a signal; `rows` are the legal forms it shows."""

    line: PromptLine
    text: str
    word: str
    rows: tuple[SignalRow, ...] = ()
    problem: str = ""


def split_prompt_lines(source: str) -> Iterator[PromptLine]:
    """Yield every line of a source that begins with a newline."""
    number = 1
    for unit in split_units(source):
        live = unit.kind == "line"
        for text in unit.text.split("\n"):
            indented = text.startswith(("    ", "\t"))
            yield PromptLine(number, text, live, indented if live else unit.kind != "quote")
            number += 1


def find_examples(line: PromptLine) -> Iterator[Example]:
    """Yield the line itself, without its marks, and each code span in it."""
    marks = _MARKS.match(line.text)
    start = marks.end() if marks else 0
    body = line.text[start:].rstrip(" \t*_|")
    place = (
        line if not line.text[:start].endswith("`") else msgspec.structs.replace(line, code=True)
    )
    candidates = [] if place is not line and "`" in body else [(place, body)]
    code = msgspec.structs.replace(line, code=True)
    candidates += [(code, span[1]) for span in _SPAN.finditer(line.text) if not line.code]
    if PREFIX in line.text:
        candidates = [(code, found[0]) for found in _PRINTED.finditer(line.text)]
    for position, text in candidates:
        found = _read_example(position, text.strip())
        if found:
            yield found


def _read_example(line: PromptLine, text: str) -> Example | None:
    if text.startswith(PREFIX):
        return _read_line_example(line, text)
    meant = guess_signal(text) if text[:1].isalpha() else None
    if meant is None or find_signal("line", text):
        return None
    word, rest = meant
    legal = _find_legal_rows(text, word)
    if legal or text == word:
        return Example(line, text, word, legal)
    if text.startswith(word) and line.live and line.text.startswith(word):
        return Example(line, text, word, problem="starts a line but is not a legal signal")
    attempted = _ATTEMPT.match(rest) or (not rest and not text.startswith(word))
    if line.code and attempted and "\\" not in text:
        return Example(line, text, word, problem="is not spelled like a signal")
    return None


def _find_legal_rows(text: str, word: str) -> tuple[SignalRow, ...]:
    """Return the rows whose grammar the text has once its placeholders are filled in."""
    valued = [row for row in list_signals("text") if row.word == word and row.name != word]
    found = tuple(row for row in valued if re.search(rf"\b{row.name.partition(': ')[2]}\b", text))
    if valued:
        plain = _PLACEHOLDER.sub(lambda m: valued[0].name.partition(": ")[2], text)
        return found if _match_signal(plain) else ()
    row = _match_signal(_PLACEHOLDER.sub("x", text))
    return (row,) if row else ()


def _match_signal(line: str) -> SignalRow | None:
    found = SIGNALS.anywhere.match("\n" + line)
    return parse_signal_line(found).row if found and found.end() == len(line) + 1 else None


def _read_line_example(line: PromptLine, text: str) -> Example | None:
    kind, _, payload = text.removeprefix(PREFIX).partition(":")
    if not kind[:1].isalpha() or kind in _ANY_TYPE or "\u2550" in text:
        return None
    if SIGNAL_TYPE.match(kind) and kind != "CHECKPOINT" and find_signal("line", kind) is None:
        return None  # an unknown type: find_unknown_names reports it
    filled = _PLACEHOLDER.sub("7", payload)
    found = read_payload(kind, filled, 1)
    if isinstance(found, str):
        return Example(line, text, PREFIX, problem=found) if line.code or line.live else None
    row = find_signal("line", found.type)
    return Example(line, text, PREFIX, (row,) if row else ())


def find_unknown_names(line: PromptLine) -> Iterator[tuple[str, bool]]:
    """Yield unknown names that look like signals, each with whether a placeholder follows."""
    for found in re.finditer(rf"{PREFIX}([A-Z][A-Z0-9_]*)", line.text):
        if found[1] not in _KNOWN and found[1] not in _ANY_TYPE:
            yield found[1], True
    marks = _MARKS.match(line.text)
    body = line.text[marks.end() if marks else 0 :]
    spans = [] if line.code else [span[1] for span in _SPAN.finditer(line.text)]
    texts = [body] if line.code or not marks or not marks.end() else []
    for text in (*texts, *spans):
        named = _UNKNOWN_NAME.match(text.strip())
        if named and named[1] not in _KNOWN and not guess_signal(text):
            yield named[1], bool(_PLACEHOLDER.match(named[2] or ""))


_KNOWN: Final = frozenset(
    {
        *SIGNAL_WORDS,
        PREFIX.removesuffix(":"),
        *(row.name.partition(":")[0] for row in list_signals("line")),
        *(
            choice
            for row in list_signals("line")
            for field in row.payload
            for choice in field.choices
        ),
    }
)


MOST_FINDINGS: Final = 1000
LARGEST: Final = 1 << 24
_SAMPLE: Final = 1 << 17
_NEAR: Final = 0.75
_NAMES: Final = (*SIGNAL_WORDS, *(row.name.partition(":")[0] for row in list_signals("line")))
_FILES: Final = re.compile(r"\bdispatch_id\b")
_FRONTMATTER: Final = re.compile(r"---[ \t]*\n(?:[^\n]*\n){0,40}?---[ \t]*\n")
_COUNTER_EXAMPLE: Final = re.compile(r"\b(?:is no|not a|is not a) signal\b")
_TEMPLATE: Final = re.compile(
    r"\[(?:task_id|request_id|expert_name|file_path)\]|\{(?:epic_id|story_id|issue_number)\}"
)
_NAMED: Final = re.compile(rf"(?<!\w)(?:{'|'.join(SIGNAL_WORDS)})(?!\w)")
_SHOWN: Final = re.compile(
    rf"(?:{'|'.join(SIGNAL_WORDS)})`?:[ \t]*[\[<{{]|`(?:{'|'.join(SIGNAL_WORDS)})[:`]"
)


class LintFinding(msgspec.Struct, frozen=True):
    """A problem, its place, and what to write instead."""

    id: str
    line: int
    message: str
    fix: str


def lint_prompt(text: str, role: str | None = None) -> list[LintFinding]:
    """Return all problems of a text that teaches signals, in the order of its lines."""
    if len(text) > LARGEST:
        return [_report_too_large()]
    source = "\n" + text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = list(split_prompt_lines(source))
    examples = [example for line in lines for example in find_examples(line)]
    found = [
        *_find_live_examples(source),
        *_find_malformed(examples),
        *_find_unknown(lines),
        *_find_wrong_roles(examples, role),
        *_find_missing_sections(examples, text),
        *_find_nothing_taught(examples, text),
    ]
    unique = dict.fromkeys(sorted(found, key=lambda one: (one.line, one.id)))
    return list(islice(unique, MOST_FINDINGS))


def is_prompt(text: str) -> bool:
    """Return whether a text teaches signals rather than using them, as far as its two ends show."""
    ends = text if len(text) <= 2 * _SAMPLE else f"{text[:_SAMPLE]}\n{text[-_SAMPLE:]}"
    plain = ends.removeprefix("\ufeff").replace("\r\n", "\n")
    if _FRONTMATTER.match(plain) or _TEMPLATE.search(plain):
        return True
    named = {found[0] for found in islice(_NAMED.finditer(plain), 1000)}
    if len(named) > 3 or _SHOWN.search(plain):
        return True
    has_signal = next(SIGNALS.find("\n" + plain), None) is not None
    return not (has_signal or named or PREFIX in plain)


def _find_live_examples(source: str) -> Iterator[LintFinding]:
    fix = "Indent the example by four blanks, put it into a fence, or leave a [placeholder] in it."
    for found in SIGNALS.find(source):
        signal = parse_signal_line(found)
        line = source.count("\n", 0, signal.start) + 1
        message = f"An agent that repeats this text says {signal.row.name}."
        yield LintFinding("signal.live-example", line, message, fix)
    reader = LineReader("message")
    fix = "Indent the example by four blanks, or put it into a fence."
    for one in [*reader.feed(source[1:]), *reader.close(ended_by_itself=True)]:
        if isinstance(one, LineSignal):
            message = f"An agent that repeats this text emits {one.type}."
            yield LintFinding("signal.live-example", one.where, message, fix)


def _find_malformed(examples: Sequence[Example]) -> Iterator[LintFinding]:
    for one in examples:
        if one.problem:
            message = f"`{one.text[:80]}` {one.problem}."
            yield LintFinding("signal.malformed", one.line.number, message, _format_forms(one.word))


def _format_forms(word: str) -> str:
    forms = [row.grammar for row in list_signals("text") if row.word == word]
    if not forms:
        return f"See `{PREFIX}TYPE:PAYLOAD` in the protocol's table."
    return "Write " + " or ".join(f"`{form}`" for form in forms) + "; do not start prose with it."


def _find_unknown(lines: Sequence[PromptLine]) -> Iterator[LintFinding]:
    """Yield a finding for each unknown name that is evidently meant as a signal."""
    before = ""
    for line in lines:
        if _COUNTER_EXAMPLE.search(line.text):
            continue
        is_shown = line.code or "`" not in line.text
        named = "signal" in (f"{before} {line.text}" if is_shown else line.text).lower()
        for name, has_placeholder in find_unknown_names(line):
            near = difflib.get_close_matches(name, _NAMES, 1, _NEAR)
            if near or named or has_placeholder:
                fix = f"Did you mean {near[0]}?" if near else "Use a signal of the protocol."
                message = f"{name} is not a signal of the protocol."
                yield LintFinding("signal.unknown", line.number, message, fix)
        before = line.text if line.live and line.text.strip() else before


def _find_wrong_roles(examples: Sequence[Example], role: str | None) -> Iterator[LintFinding]:
    if role is None:
        return
    for one in examples:
        for row in one.rows:
            if row.protocol == "text" and not may_send(normalize_role(role), row):
                message = f"The {normalize_role(role)} may not send {row.name}."
                fix = f"It belongs to: {', '.join(row.roles)}."
                yield LintFinding("signal.wrong-role", one.line.number, message, fix)


def _find_missing_sections(examples: Sequence[Example], text: str) -> Iterator[LintFinding]:
    """Yield a finding for each signal that is shown without the sections it needs."""
    first = {row: one for one in reversed(examples) for row in one.rows}
    for row, one in first.items():
        for labels in row.requires:
            if not any(_has_mention(text, label) for label in labels):
                wanted = " or ".join(f"`{label}:`" for label in labels)
                message = f"{row.name} is taught without {wanted}, which it needs."
                fix = "Show the section under the signal line."
                yield LintFinding("signal.missing-section", one.line.number, message, fix)


def _has_mention(text: str, label: str) -> bool:
    word = "DELEGATION PROMPT START" if label == "Prompt" else label
    return word.lower() in text.lower()


def _find_nothing_taught(examples: Sequence[Example], text: str) -> Iterator[LintFinding]:
    if not any(one.rows for one in examples) and not _FILES.search(text):
        fix = "Show the agent at least one signal in its exact form."
        yield LintFinding("signal.none", 1, "This text teaches no legal signal.", fix)


def _report_too_large() -> LintFinding:
    message = f"Prompts longer than {LARGEST} characters are not checked."
    return LintFinding("prompt.too-large", 1, message, "Is it a transcript? Use --as transcript.")


class LintReport:
    """Collect findings about prompts and verdicts on transcripts; `base` applies to every
    transcript."""

    def __init__(self, base: Record) -> None:
        self.findings: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.refused = False
        self._base = base

    def add_file(self, name: str, raw: bytes, *, kind: str | None = None) -> None:
        """Add a prompt, a transcript or a comment; without a kind, its content decides."""
        text, base = self._decode(name, raw), self._base
        if kind == "comment":
            reading = read_comment(text)
            self.refused |= reading.decision is UNCLEAR
            self.records.append({"id": name, **msgspec.to_builtins(reading)})
            return
        form = base.format or detect_format(text)
        if kind is None:
            asked = base.role is not None or base.format is not None or form != "text"
            kind = "prompt" if not asked and is_prompt(text) else "transcript"
        if kind == "prompt":
            for one in lint_prompt(text, base.role):
                self._find(one.id, name, one.line, one.message, one.fix)
            return
        judged = check_transcript(msgspec.structs.replace(base, id=name, format=form, stream=text))
        self.refused |= judged.is_refused
        self.records.append(judged.to_plain())

    def add_records(self, name: str, lines: Iterable[bytes]) -> None:
        """Add many transcripts, one per line."""
        for number, raw in enumerate(lines, 1):
            if not raw.strip():
                continue
            record = read_record(raw.removeprefix(b"\xef\xbb\xbf"), self._base)
            if isinstance(record, str):
                fix = "Write {id, role, task_id, text} or {id, format, stream} on one line."
                self._find("record.unreadable", name, number, record, fix)
            else:
                self.records.append(check_transcript(record).to_plain())

    def _decode(self, name: str, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            message = f"Byte {error.start + 1} is not UTF-8; read as an unknown character."
            self._find("file.not-utf8", name, line, message, "Save the file as UTF-8.")
            return raw.decode(errors="replace")

    def _find(self, name: str, file: str, line: int, message: str, fix: str) -> None:
        self.findings.append(
            {"id": name, "file": file, "line": line, "message": message, "fix": fix}
        )
