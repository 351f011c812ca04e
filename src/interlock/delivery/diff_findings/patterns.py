"""Findings that a pattern detects, as a table: one more habit is one more row. Pure.

A row says in which languages, in which kinds of file, and in what part of a line (its code, its
comment, or all of it) the pattern is searched for. Secrets are found by well-known token shapes,
keys and odd values; a finding never shows the value, only its first letters.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final, Literal

import msgspec

from interlock.delivery.diff_findings.source import DiffFinding, Severity, SourceText
from interlock.system.file_kinds import FileKind

Part = Literal["code", "comment", "line"]
_BOTH: Final[tuple[FileKind, ...]] = ("source", "test")
_SOURCE: Final[tuple[FileKind, ...]] = ("source",)
_TEST: Final[tuple[FileKind, ...]] = ("test",)


class DiffPattern(msgspec.Struct, frozen=True):
    kind: str
    severity: Severity
    sentence: str
    languages: tuple[str, ...]
    """Empty: all."""
    files: tuple[FileKind, ...]
    part: Part
    pattern: re.Pattern[str]
    spares_scripts: bool = False
    """A program that people start prints what they are to read."""


def _build_patterns(
    kind: str,
    severity: Severity,
    sentence: str,
    *rows: tuple[str, tuple[FileKind, ...], Part, str],
    spares_scripts: bool = False,
) -> tuple[DiffPattern, ...]:
    """Patterns that find the same thing. A row is languages, kinds of file, part of the line and
    the expression."""
    return tuple(
        DiffPattern(
            kind=kind,
            severity=severity,
            sentence=sentence,
            languages=tuple(languages.split()),
            files=files,
            part=part,
            pattern=re.compile(expression),
            spares_scripts=spares_scripts,
        )
        for languages, files, part, expression in rows
    )


_UNREADY = r"(?:TODO|(?i:not (?:yet )?implemented|unimplemented|implement me))"

ROWS: Final = (
    *_build_patterns(
        "leftover",
        "warning",
        "a note of work left over: do it, or put it where work is planned",
        (
            "",
            _BOTH,
            "comment",
            r"(?:^[\W_]*(?:TODO|FIXME|XXX|HACK)\b(?![-.\w])|\b(?:TODO|FIXME|HACK)(?:\(|:(?!:)))",
        ),
    ),
    *_build_patterns(
        "suppression",
        "warning",
        "a suppression of every finding: name the one rule and say why",
        (
            "",
            _BOTH,
            "comment",
            (
                r"#\s*noqa\s*(?:$|(?=#))|#\s*type:\s*ignore\s*(?:$|(?=#))|pylint:\s*disable=all|@ts-nocheck"
                r"|/\*\s*eslint-disable\s*\*/|eslint-disable-(?:next-)?line\s*(?:$|\*/)|//nolint\s*$"
            ),
        ),
    ),
    *_build_patterns(
        "suppression",
        "notice",
        "a finding is suppressed without a reason",
        (
            "",
            _BOTH,
            "comment",
            (
                r"#\s*noqa:\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*\s*$|#\s*type:\s*ignore\[[^\]]*\]\s*$"
                r"|pylint:\s*disable=[\w,\s-]+$|#\s*nosec\s*$|@ts-(?:ignore|expect-error)\s*(?:\*/)?$"
                r"|eslint-disable(?:-next-line|-line)?\s+(?!.* -- )[\w@]|//nolint:[\w,]+\s*$"
                r"|NOSONAR\s*$"
                r"|rubocop:disable|istanbul ignore\s+\w+\s*(?:\*/)?$"
            ),
        ),
        (
            "java rust csharp",
            _BOTH,
            "line",
            r"@SuppressWarnings\(\{?\"all\"|#!\[allow\(|#pragma warning disable\s*$",
        ),
    ),
    *_build_patterns(
        "debug",
        "warning",
        "a stop for a debugger: take it out",
        ("javascript", _BOTH, "code", r"(?:^|[;{}\s])debugger\s*(?:;|$)"),
        ("ruby", _BOTH, "code", r"\bbinding\.(?:pry|irb|break)\b|^\s*byebug\b"),
    ),
    *_build_patterns(
        "debug",
        "warning",
        "debug output: take it out or use the logger",
        ("javascript", _SOURCE, "code", r"\bconsole\.(?:log|debug|trace|dir|table)\("),
        ("java", _SOURCE, "code", r"\bSystem\.(?:out|err)\.print|\.printStackTrace\(\)"),
        spares_scripts=True,
    ),
    *_build_patterns(
        "debug",
        "notice",
        "output on stdout: a debug print?",
        (
            "go",
            _SOURCE,
            "code",
            r"\bfmt\.Print(?:ln|f)?\(|(?:^|[\s;{])print(?:ln)?\(|\bspew\.Dump\(",
        ),
        spares_scripts=True,
    ),
    *_build_patterns(
        "debug", "warning", "a debug macro: take it out", ("rust", _BOTH, "code", r"\bdbg!\(")
    ),
    *_build_patterns(
        "debug",
        "warning",
        "debug output: take it out",
        ("php", _SOURCE, "code", r"\b(?:var_dump|print_r|dd)\("),
    ),
    *_build_patterns(
        "placeholder",
        "warning",
        "a body that is not written yet",
        ("javascript", _SOURCE, "line", rf"\bthrow new \w*Error\(\s*[\"'`]{_UNREADY}"),
        ("go", _SOURCE, "line", rf"\bpanic\(\s*\"{_UNREADY}"),
        (
            "java csharp",
            _SOURCE,
            "line",
            (
                rf"\bthrow (?:new )?\w+(?:Exception|Error)\(\s*\"{_UNREADY}"
                r"|NotImplementedException\(|(?<![\w.])TODO\("
            ),
        ),
        ("rust", _BOTH, "code", r"\b(?:todo|unimplemented)!\("),
    ),
    *_build_patterns(
        "skipped_test",
        "warning",
        "a test that is not run",
        (
            "javascript",
            _TEST,
            "code",
            r"\b(?:it|test|describe|context|suite)\.(?:skip|todo|fixme)\(|^\s*x(?:it|test|describe)\(",
        ),
        ("java", _TEST, "code", r"@(?:Disabled|Ignore)\b(?!d)"),
        ("rust", _BOTH, "code", r"#\[ignore\b"),
        ("csharp", _TEST, "code", r"\[(?:Fact|Theory)\(Skip\s*=|\[Ignore\b"),
        ("ruby", _TEST, "code", r"^\s*(?:xit|xdescribe|xcontext|pending)\b"),
    ),
    *_build_patterns(
        "skipped_test",
        "warning",
        "only this test is run, all others are left out",
        (
            "javascript",
            _TEST,
            "code",
            r"\b(?:it|test|describe|context|suite)\.only\(|^\s*f(?:it|describe)\(",
        ),
    ),
    *_build_patterns(
        "skipped_test",
        "notice",
        "a test that may be skipped: see the condition",
        ("go", _TEST, "code", r"\b[tb]\.Skip(?:Now|f)?\("),
    ),
    *_build_patterns(
        "meaningless_assert",
        "warning",
        "an assertion that cannot fail",
        (
            "javascript",
            _TEST,
            "code",
            (
                r"\bexpect\(\s*(true|1)\s*\)\s*\.\s*"
                r"(?:toBe(?:Truthy|Defined)\(\)|(?:toBe|toEqual)\(\s*\1\s*\))"
                r"|\bassert(?:\.ok)?\(\s*true\s*[,)]"
            ),
        ),
        (
            "java csharp go rust",
            _TEST,
            "code",
            (
                r"(?i:\bassert\.?(?:true|that)?!?\((?:t,\s*)?true\s*[,)])"
                r"|(?i:\bassert\.?(?:equals?|eq|areequal)!?\((?:t,\s*)?(\d+),\s*\1\s*[,)])"
            ),
        ),
    ),
)


def match_patterns(
    path: str, kind: FileKind, text: SourceText, lines: list[int], is_script: bool
) -> Iterator[DiffFinding]:
    """What the rows say about these lines. Each kind is reported once per line."""
    rows = [row for row in ROWS if _applies(row, kind, text.language, is_script)]
    whole = text.whole.split("\n")
    parts = {"code": text.code_lines, "comment": text.comment_lines, "line": whole}
    for number in lines:
        reported: set[str] = set()
        for row in rows:
            found = row.kind not in reported and row.pattern.search(parts[row.part][number - 1])
            # A pattern over the whole line must begin in code: prose about it is no finding.
            if found and (row.part != "line" or text.code_lines[number - 1][found.start()] != " "):
                reported.add(row.kind)
                yield DiffFinding(path, number, row.kind, row.sentence, row.severity)


def _applies(row: DiffPattern, kind: FileKind, language: str, is_script: bool) -> bool:
    fits = not row.languages or language in row.languages
    return fits and kind in row.files and not (row.spares_scripts and is_script)


_LONGEST_LINE: Final = 4_000
_SHAPES: Final = (
    ("an AWS access key", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b|\bgithub_pat_[A-Za-z0-9_]{60,251}\b"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Stripe key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}(?![\w-])"),
    ("an Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("an OpenAI key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40,}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,45}\b"),
    ("a signed web token", r"\beyJ[\w-]{15,}\.eyJ[\w-]{15,}\.[\w-]{20,}"),
    ("a private key", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
)
_SHAPE: Final = re.compile(
    "|".join(f"(?P<s{number}>{shape})" for number, (_, shape) in enumerate(_SHAPES))
)
_NAMES: Final = {f"s{number}": name for number, (name, _) in enumerate(_SHAPES)}
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"']{1,60}:([^\s@/\"']{6,100})@")
_ASSIGNED: Final = re.compile(
    r"(?i)\b[\w.-]{0,40}(?:api_?key|secret|token|passwd|password|pwd|access_?key|private_?key"
    r"|credential)[\w-]{0,20}[\"']?\s{0,3}(?::\s?=|[:=]|=>)\s{0,3}[brfu]?[\"']([^\"'\s]{12,200})[\"']"
)
_HARMLESS: Final = re.compile(
    r"(?i)example|changeme|change[_-]me|your[_-]|xxxx|\*\*\*|dummy|fake|sample|placeholder|redact"
    r"|not[_-]?a|insecure|[<>{}$%]|test|mock|1234567|abcdef|\.\.\."
)
_LEAST_ENTROPY: Final = 3.4


def find_secrets(path: str, kind: FileKind, lines: list[tuple[int, str]]) -> Iterator[DiffFinding]:
    for number, text in lines:
        found = _match_secret(text[:_LONGEST_LINE], kind)
        if found is not None:
            what, shown = found
            severity: Severity = "error" if kind == "source" else "warning"
            sentence = f"{what} ({shown}): take it out, and revoke it if it is real"
            yield DiffFinding(path, number, "secret", sentence, severity)


def _match_secret(text: str, kind: FileKind) -> tuple[str, str] | None:
    for shape in _SHAPE.finditer(text):
        if not _HARMLESS.search(shape[0].replace("-----BEGIN", "")):
            return _NAMES[shape.lastgroup or ""], _mask_secret(shape[0])
    if kind != "source":
        return None
    address = _ADDRESS.search(text)
    if address and not _HARMLESS.search(address[1]) and _looks_random(address[1]):
        return "a password in an address", _mask_secret(address[1])
    for assigned in _ASSIGNED.finditer(text):
        if not _HARMLESS.search(assigned[1]) and _looks_random(assigned[1]):
            return "a value like a secret", _mask_secret(assigned[1])
    return None


def _looks_random(value: str) -> bool:
    """Whether nobody would write it by hand as a word: letters and digits mixed, no order."""
    if not (re.search(r"\d", value) and re.search(r"[A-Za-z]", value)):
        return False
    return measure_entropy(value) >= _LEAST_ENTROPY


def measure_entropy(value: str) -> float:
    """Bits for each character, by how often each occurs."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def _mask_secret(value: str) -> str:
    return "the key itself" if value.startswith("---") else f"{value[:4]}…, {len(value)} characters"
