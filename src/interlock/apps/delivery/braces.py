"""Blocks in languages with braces: tests without a claim, errors that are swallowed. Pure.

Knows how tests begin in JavaScript, Go, Java and its kin, Rust; reads code whose strings and
comments were taken out. In doubt a test is believed.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from interlock.apps.delivery.file_kind import FileKind
from interlock.apps.delivery.source_text import SourceText
from interlock.apps.delivery.tell import Tell

_LONGEST: Final = 100_000
_CLOSES: Final = {"(": ")", "{": "}"}
_CLAIM: Final = r"(?i)assert|expect|should|verif|check|must|ensure|fail|throw|reject|match"


class Form(msgspec.Struct, frozen=True):
    """How a test begins, up to the bracket that holds it, and what in it is a claim."""

    begins: re.Pattern[str]
    claims: re.Pattern[str]


def _form(begins: str, claims: str) -> Form:
    return Form(re.compile(begins, re.MULTILINE), re.compile(claims))


_JAVA: Final = _form(
    r"@(?:Test|ParameterizedTest|RepeatedTest)\b(?:\((?P<how>[^()]*)\))?[^;{}]*(?P<open>\{)",
    rf"{_CLAIM}|isEqual|StepVerifier|@Test\([^)]*expected",
)
_FORMS: Final = {
    "javascript": _form(
        r"(?:^|[\s;{])(?:it|test)(?:\.(?:only|concurrent))?(?P<open>\()",
        rf"{_CLAIM}|\bt\.\w|\bdone\(|\b(?:get|find)(?:All)?By|snapshot|\bchai\b|\bsinon\b|\bcy\.",
    ),
    "go": _form(
        r"^func Test\w*\((?P<how>\w+) \*testing\.T\) (?P<open>\{)",
        rf"{_CLAIM}|\b\w+\.(?:Error|Fatal|Run|Skip)|\w\((?:t|tb)\b|\bis\.\w|panic\(",
    ),
    "java": _JAVA,
    "csharp": _form(
        r"\[(?:Fact|Theory|Test|TestMethod)\b[^;{}]*(?P<open>\{)", rf"{_CLAIM}|ExpectedException"
    ),
    "rust": _form(
        r"#\[(?:\w+::)?test\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn \w+\(\)(?P<how>[^{]*)(?P<open>\{)",
        rf"{_CLAIM}|unwrap|panic|\?;|Result|should_panic",
    ),
}
_CATCH: Final = re.compile(r"\bcatch\s*(?:\([^()]*\))?\s*\{(?P<body>\s*)\}")


def brace_tells(path: str, kind: FileKind, text: SourceText) -> Iterator[Tell]:
    if text.language in ("javascript", "java", "csharp", "php") and kind == "source":
        yield from _swallowed(path, text)
    form = _FORMS.get(text.language)
    if form is not None and (kind == "test" or text.language == "rust"):
        yield from _empty_tests(path, text, form)


def _swallowed(path: str, text: SourceText) -> Iterator[Tell]:
    """An empty block with a comment in it says why it is empty."""
    for found in _CATCH.finditer(text.code):
        if not text.comments[found.start("body") : found.end("body")].strip():
            sentence = "an error is swallowed: handle it, or say why that is right"
            yield Tell(path, _line(text.code, found.start()), "bare_except", sentence)


def _empty_tests(path: str, text: SourceText, form: Form) -> Iterator[Tell]:
    for found in form.begins.finditer(text.code):
        end = closing(text.code, found.start("open"))
        if end is None or form.claims.search(text.code, found.start("open"), end):
            continue
        if form.claims.search(found[0]):
            continue
        line = _line(text.code, found.end() - 1)
        yield Tell(path, line, "empty_test", "this test asserts nothing: it cannot fail")


def closing(code: str, at: int) -> int | None:
    """Where the bracket at that place is closed; None if it is not, or too far away."""
    opens, closes, depth = code[at], _CLOSES[code[at]], 0
    for each in re.compile(f"[{re.escape(opens + closes)}]").finditer(code, at, at + _LONGEST):
        depth += 1 if each[0] == opens else -1
        if depth == 0:
            return each.start()
    return None


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
