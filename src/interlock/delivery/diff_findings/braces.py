"""Findings in languages with braces, and code that was commented out in any language. Pure.

Knows how tests begin in JavaScript, Go, Java and its kin, and Rust; in doubt a test is trusted.
Commented-out code needs two lines in a row that look like code, and in Python they must parse: an
example in prose is let pass rather than a reviewer bothered.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from interlock.delivery.diff_findings.python import parse_python
from interlock.delivery.diff_findings.source import DiffFinding, SourceText
from interlock.system.file_kinds import FileKind

_LONGEST: Final = 100_000
_CLOSES: Final = {"(": ")", "{": "}"}
_HEADER: Final = r"[^;]{0,2000}?\)\s*(?:throws [\w.,\s]+|=\s*\w+\s*)?(?P<open>\{)"
_CLAIM: Final = r"(?i)assert|expect|should|verif|check|must|ensure|fail|throw|reject|match"


class BlockForm(msgspec.Struct, frozen=True):
    """How a test begins, up to the bracket that holds it, and what in it is a claim."""

    begins: re.Pattern[str]
    claims: re.Pattern[str]
    expects: re.Pattern[str]
    """A claim in the words before the bracket."""


def _build_form(begins: str, claims: str, expects: str = r"(?!)") -> BlockForm:
    return BlockForm(re.compile(begins, re.MULTILINE), re.compile(claims), re.compile(expects))


_JAVA: Final = _build_form(
    rf"@(?:Test|ParameterizedTest|RepeatedTest)\b{_HEADER}",
    rf"{_CLAIM}|isEqual|StepVerifier",
    r"\bexpected\b",
)
_FORMS: Final = {
    "javascript": _build_form(
        r"(?:^|[\s;{])(?:it|test)(?:\.(?:only|concurrent))?(?P<open>\()(?=\s*[\"'`])",
        rf"{_CLAIM}|\bt\.\w|\bdone\b(?s:.*)\bdone\b|\b(?:get|find)(?:All)?By|snapshot|\bcy\.",
    ),
    "go": _build_form(
        r"^func Test\w*\(\w+ \*testing\.T\) (?P<open>\{)",
        rf"{_CLAIM}|\b\w+\.(?:Error|Fatal|Run|Skip)|\w\((?:t|tb)\b(?! \*testing)|\bis\.\w|panic\(",
    ),
    "java": _JAVA,
    "csharp": _build_form(
        rf"\[(?:Fact|Theory|Test|TestMethod)\b{_HEADER}", _CLAIM, r"ExpectedException"
    ),
    "rust": _build_form(
        r"#\[(?:\w+::)?test\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn \w+\(\)[^{]*(?P<open>\{)",
        rf"{_CLAIM}|unwrap|panic|\?;",
        r"Result|should_panic",
    ),
}
_DEFINED: Final = re.compile(
    r"\b(?P<name>[A-Za-z_]\w*)\s*(?:\([^()]{0,500}\)[^;{}()=]{0,200}"
    r"|=\s*(?:async\s*)?\(?[^()=;{}]{0,300}\)?\s*=>\s*)(?P<open>\{)"
)
_CALLED: Final = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>()]{0,100}>)?\(")
_ANY_CLAIM: Final = re.compile(_CLAIM)
_CATCH: Final = re.compile(r"\bcatch\s*(?:\([^()]*\))?\s*\{(?P<body>\s*)\}")


def find_brace_issues(path: str, kind: FileKind, text: SourceText) -> Iterator[DiffFinding]:
    if text.language in ("javascript", "java", "csharp", "php") and kind == "source":
        yield from _find_swallowed_errors(path, text)
    form = _FORMS.get(text.language)
    if form is not None and (kind == "test" or text.language == "rust"):
        yield from _find_empty_tests(path, text, form)


def _find_swallowed_errors(path: str, text: SourceText) -> Iterator[DiffFinding]:
    """An empty block with a comment in it says why it is empty."""
    for found in _CATCH.finditer(text.code):
        if not text.comments[found.start("body") : found.end("body")].strip():
            sentence = "an error is swallowed: handle it, or say why that is right"
            yield DiffFinding(path, _count_line(text.code, found.start()), "bare_except", sentence)


def _find_empty_tests(path: str, text: SourceText, form: BlockForm) -> Iterator[DiffFinding]:
    helpers: set[str] | None = None
    for found in form.begins.finditer(text.code):
        start = found.start("open")
        end = find_closing_bracket(text.code, start)
        if (
            end is None
            or form.expects.search(found[0])
            or form.claims.search(text.code, start, end)
        ):
            continue
        helpers = _find_helpers(text.code, form) if helpers is None else helpers
        if helpers.isdisjoint(_CALLED.findall(text.code, start, end)):
            line = _count_line(text.code, start)
            yield DiffFinding(
                path, line, "empty_test", "this test asserts nothing: only an error can fail it"
            )


def count_claims(text: SourceText) -> int:
    """How many assertions stand in a file of tests, by the words of its language."""
    form = _FORMS.get(text.language)
    if form is None:
        return len(_ANY_CLAIM.findall(text.code))
    return sum(1 for line in text.code_lines if form.claims.search(line))


def _find_helpers(code: str, form: BlockForm) -> set[str]:
    """Functions of the file that claim something, so that whoever calls them does."""
    found = set()
    for each in _DEFINED.finditer(code):
        end = find_closing_bracket(code, each.start("open"))
        if end is not None and form.claims.search(code, each.start("open"), end):
            found.add(each["name"])
    return found


def find_closing_bracket(code: str, at: int) -> int | None:
    """Where the bracket at that place is closed; None if it is not, or too far away."""
    opens, closes, depth = code[at], _CLOSES[code[at]], 0
    for each in re.compile(f"[{re.escape(opens + closes)}]").finditer(code, at, at + _LONGEST):
        depth += 1 if each[0] == opens else -1
        if depth == 0:
            return each.start()
    return None


def _count_line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


_LEAST: Final = 2
_MARK: Final = re.compile(r"\s*(?://(?!/|\t| {3})|#(?![!:#]))")
"""Not what is set in after the slashes: that is how examples are written."""
_PYTHON: Final = re.compile(
    r"\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]|return\b|raise \w"
    r"|(?:el)?if .+:$|else:$|for .+ in .+:$|while .+:$|with .+:$|try:$|except\b.*:$|await \w"
    r"|[\w.\[\]'\"]+ ?[-+*/|&]?= ?\S|[\w.]+\(.*$|@\w|[)\]}]+,?$)"
)
_BRACES: Final = re.compile(
    r"\s*(?:\}?.*[;{]$|\}[);,]*$|.*\) ?=> ?[{(]$|\w[\w.,\s]* := \S.*$|\w[\w.]*\([^()]*\)[;,]?$)"
)
_ACTS: Final = re.compile(r"[=(]")
_STRONG: Final = (
    ast.Assign,
    ast.AugAssign,
    ast.Call,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.Return,
    ast.Raise,
)


def find_commented_code(path: str, text: SourceText, lines: Sequence[int]) -> Iterator[DiffFinding]:
    """`lines` are looked at alone: a run that goes on beyond them is judged by its new part."""
    for run in _group_lines(text, lines):
        body = [_MARK.sub("", text.comment_lines[number - 1], count=1) for number in run]
        if _looks_like_code(text.language, body):
            sentence = f"{len(run)} lines of code that are commented out: delete them"
            yield DiffFinding(path, run[0], "commented_code", sentence, "notice")


def _group_lines(text: SourceText, lines: Sequence[int]) -> Iterator[list[int]]:
    form = _PYTHON if text.language == "python" else _BRACES
    run: list[int] = []
    for number in lines:
        comment = text.comment_lines[number - 1]
        marked = _MARK.match(comment)
        alone = not text.code_lines[number - 1].strip()
        fits = bool(marked) and alone and form.match(comment, marked.end() if marked else 0)
        if run and (not fits or number != run[-1] + 1):
            yield run
            run = []
        if fits:
            run.append(number)
    yield run


def _looks_like_code(language: str, body: list[str]) -> bool:
    if len(body) < _LEAST:
        return False
    if language != "python":
        return any(_ACTS.search(line) for line in body)
    inside = textwrap.indent(textwrap.dedent("\n".join(body)), " ")
    tree = parse_python(f"async def _():\n{inside}\n")
    if tree is None:
        return False
    return sum(isinstance(node, _STRONG) for node in ast.walk(tree.body[0])) >= _LEAST
