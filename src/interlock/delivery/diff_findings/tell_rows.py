"""Tells that a pattern finds, as a table: one more habit is one more row. Pure.

A row says in which languages, in which kinds of file, and in what of a line (its code, its comment,
or all of it) the pattern is looked for. Patterns are searched line by line.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from interlock.delivery.diff_findings.source_text import SourceText
from interlock.delivery.diff_findings.tell import DiffFinding, Severity
from interlock.system.file_kind import FileKind

Part = Literal["code", "comment", "line"]
_BOTH: Final[tuple[FileKind, ...]] = ("source", "test")
_SOURCE: Final[tuple[FileKind, ...]] = ("source",)
_TEST: Final[tuple[FileKind, ...]] = ("test",)


class DiffPattern(msgspec.Struct, frozen=True):
    kind: str
    severity: Severity
    languages: tuple[str, ...]
    """Empty: all."""
    files: tuple[FileKind, ...]
    part: Part
    pattern: re.Pattern[str]
    sentence: str
    spares_scripts: bool = False
    """A program that people start prints what they are to read."""


def _row(
    kind: str,
    severity: Severity,
    languages: str,
    files: tuple[FileKind, ...],
    part: Part,
    pattern: str,
    sentence: str,
    spares_scripts: bool = False,
) -> DiffPattern:
    names = tuple(languages.split())
    return DiffPattern(
        kind, severity, names, files, part, re.compile(pattern), sentence, spares_scripts
    )


_UNREADY = r"(?:TODO|(?i:not (?:yet )?implemented|unimplemented|implement me))"

ROWS: Final = (
    _row(
        "leftover",
        "warning",
        "",
        _BOTH,
        "comment",
        r"(?:^[\W_]*(?:TODO|FIXME|XXX|HACK)\b(?![-.\w])|\b(?:TODO|FIXME|HACK)(?:\(|:(?!:)))",
        "a note of work left over: do it, or put it where work is planned",
    ),
    _row(
        "suppression",
        "warning",
        "",
        _BOTH,
        "comment",
        r"#\s*noqa\s*(?:$|(?=#))|#\s*type:\s*ignore\s*(?:$|(?=#))|pylint:\s*disable=all|@ts-nocheck"
        r"|/\*\s*eslint-disable\s*\*/|eslint-disable-(?:next-)?line\s*(?:$|\*/)|//nolint\s*$",
        "a suppression of every finding: name the one rule and say why",
    ),
    _row(
        "suppression",
        "notice",
        "",
        _BOTH,
        "comment",
        r"#\s*noqa:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*\s*$|#\s*type:\s*ignore\[[^\]]*\]\s*$"
        r"|pylint:\s*disable=[\w,\s-]+$|#\s*nosec\s*$|@ts-(?:ignore|expect-error)\s*(?:\*/)?$"
        r"|eslint-disable(?:-next-line|-line)?\s+(?!.* -- )[\w@]|//nolint:[\w,]+\s*$|NOSONAR\s*$"
        r"|rubocop:disable|istanbul ignore\s+\w+\s*(?:\*/)?$",
        "a finding is suppressed without a word why",
    ),
    _row(
        "suppression",
        "notice",
        "java rust csharp",
        _BOTH,
        "line",
        r"@SuppressWarnings\(\{?\"all\"|#!\[allow\(|#pragma warning disable\s*$",
        "a finding is suppressed without a word why",
    ),
    _row(
        "debug",
        "warning",
        "javascript",
        _BOTH,
        "code",
        r"(?:^|[;{}\s])debugger\s*(?:;|$)",
        "a stop for a debugger: take it out",
    ),
    _row(
        "debug",
        "warning",
        "javascript",
        _SOURCE,
        "code",
        r"\bconsole\.(?:log|debug|trace|dir|table)\(",
        "debug output: take it out or use the logger",
        True,
    ),
    _row(
        "debug",
        "notice",
        "go",
        _SOURCE,
        "code",
        r"\bfmt\.Print(?:ln|f)?\(|(?:^|[\s;{])print(?:ln)?\(|\bspew\.Dump\(",
        "output on stdout: a debug print?",
        True,
    ),
    _row(
        "debug",
        "warning",
        "java",
        _SOURCE,
        "code",
        r"\bSystem\.(?:out|err)\.print|\.printStackTrace\(\)",
        "debug output: take it out or use the logger",
        True,
    ),
    _row("debug", "warning", "rust", _BOTH, "code", r"\bdbg!\(", "a debug macro: take it out"),
    _row(
        "debug",
        "warning",
        "ruby",
        _BOTH,
        "code",
        r"\bbinding\.(?:pry|irb|break)\b|^\s*byebug\b",
        "a stop for a debugger: take it out",
    ),
    _row(
        "debug",
        "warning",
        "php",
        _SOURCE,
        "code",
        r"\b(?:var_dump|print_r|dd)\(",
        "debug output: take it out",
    ),
    _row(
        "placeholder",
        "warning",
        "javascript",
        _SOURCE,
        "line",
        rf"\bthrow new \w*Error\(\s*[\"'`]{_UNREADY}",
        "a body that is not written yet",
    ),
    _row(
        "placeholder",
        "warning",
        "go",
        _SOURCE,
        "line",
        rf"\bpanic\(\s*\"{_UNREADY}",
        "a body that is not written yet",
    ),
    _row(
        "placeholder",
        "warning",
        "java csharp",
        _SOURCE,
        "line",
        rf"\bthrow (?:new )?\w+(?:Exception|Error)\(\s*\"{_UNREADY}|NotImplementedException\("
        r"|(?<![\w.])TODO\(",
        "a body that is not written yet",
    ),
    _row(
        "placeholder",
        "warning",
        "rust",
        _BOTH,
        "code",
        r"\b(?:todo|unimplemented)!\(",
        "a body that is not written yet",
    ),
    _row(
        "skipped_test",
        "warning",
        "javascript",
        _TEST,
        "code",
        r"\b(?:it|test|describe|context|suite)\.(?:skip|todo|fixme)\(|^\s*x(?:it|test|describe)\(",
        "a test that is not run",
    ),
    _row(
        "skipped_test",
        "warning",
        "javascript",
        _TEST,
        "code",
        r"\b(?:it|test|describe|context|suite)\.only\(|^\s*f(?:it|describe)\(",
        "only this test is run, all others are left out",
    ),
    _row(
        "skipped_test",
        "notice",
        "go",
        _TEST,
        "code",
        r"\b[tb]\.Skip(?:Now|f)?\(",
        "a test that may be skipped: see the condition",
    ),
    _row(
        "skipped_test",
        "warning",
        "java",
        _TEST,
        "code",
        r"@(?:Disabled|Ignore)\b(?!d)",
        "a test that is not run",
    ),
    _row(
        "skipped_test",
        "warning",
        "rust",
        _BOTH,
        "code",
        r"#\[ignore\b",
        "a test that is not run",
    ),
    _row(
        "skipped_test",
        "warning",
        "csharp",
        _TEST,
        "code",
        r"\[(?:Fact|Theory)\(Skip\s*=|\[Ignore\b",
        "a test that is not run",
    ),
    _row(
        "skipped_test",
        "warning",
        "ruby",
        _TEST,
        "code",
        r"^\s*(?:xit|xdescribe|xcontext|pending)\b",
        "a test that is not run",
    ),
    _row(
        "meaningless_assert",
        "warning",
        "javascript",
        _TEST,
        "code",
        r"\bexpect\(\s*(true|1)\s*\)\s*\.\s*(?:toBe(?:Truthy|Defined)\(\)|(?:toBe|toEqual)\(\s*\1\s*\))"
        r"|\bassert(?:\.ok)?\(\s*true\s*[,)]",
        "an assertion that cannot fail",
    ),
    _row(
        "meaningless_assert",
        "warning",
        "java csharp go rust",
        _TEST,
        "code",
        r"(?i:\bassert\.?(?:true|that)?!?\((?:t,\s*)?true\s*[,)])"
        r"|(?i:\bassert\.?(?:equals?|eq|areequal)!?\((?:t,\s*)?(\d+),\s*\1\s*[,)])",
        "an assertion that cannot fail",
    ),
)


def by_rows(
    path: str, kind: FileKind, text: SourceText, lines: list[int], is_script: bool
) -> Iterator[DiffFinding]:
    """What the rows say about these lines. Each kind is told once for a line."""
    rows = [row for row in ROWS if _applies(row, kind, text.language, is_script)]
    whole = text.whole.split("\n")
    parts = {"code": text.code_lines, "comment": text.comment_lines, "line": whole}
    for number in lines:
        told: set[str] = set()
        for row in rows:
            found = row.kind not in told and row.pattern.search(parts[row.part][number - 1])
            # A pattern over the whole line must begin in code: prose about it is no tell.
            if found and (row.part != "line" or text.code_lines[number - 1][found.start()] != " "):
                told.add(row.kind)
                yield DiffFinding(path, number, row.kind, row.sentence, row.severity)


def _applies(row: DiffPattern, kind: FileKind, language: str, is_script: bool) -> bool:
    fits = not row.languages or language in row.languages
    return fits and kind in row.files and not (row.spares_scripts and is_script)
