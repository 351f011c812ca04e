"""Count assertions and skipped tests in languages other than Python, by their frameworks' calls.

Comments and the insides of strings are blanked first. An assertion whose arguments are all
constants cannot fail and counts as none. Pure.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from interlock.system.file_kinds import find_language

_ASSERT: Final = r"\bassert\w*(?:\.\w+)*\s*\("
_CALLS: Final = {
    "javascript": rf"\bexpect\s*\(|{_ASSERT}",
    "go": r"\b(?:assert|require)\.\w+\(",
    "java": rf"{_ASSERT}|\bverify(?:NoMoreInteractions|NoInteractions)?\s*\(",
    "csharp": r"\bAssert\.\w+(?:<[\w.]+>)?\s*\(",
    "rust": r"\b(?:debug_)?assert(?:_eq|_ne|_matches)?!\s*\(",
}
"""The start of an assertion, up to the bracket that holds its arguments."""
_ANY_CALL: Final = rf"\bexpect\s*\(|{_ASSERT}"
_FAILURES: Final = {
    "javascript": r"\bexpect\.fail\(|\.should\b",
    "go": r"\b(?:t|tb|b|f)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(",
    "java": r"\bfail\s*\(|@Test\s*\(\s*expected",
    "csharp": r"\.Should\s*\(\)|\[ExpectedException",
    "rust": r"#\[should_panic|\bpanic!",
}
"""Calls that fail a test by themselves, or assert something about the expression before them."""
_SKIPS: Final = {
    "javascript": r"\b(?:it|test|describe)\.(?:skip|todo)\b|\bx(?:it|test|describe)\s*\(",
    "go": r"\b(?:t|tb|b|f)\.(?:Skip|Skipf|SkipNow)\(",
    "java": r"@(?:Disabled|Ignore)\b",
    "csharp": r"\[Ignore\b|\bSkip\s*=",
    "rust": r"#\[ignore\b",
}
_NAME: Final = re.compile(r"\b(?!(?:true|false|null|undefined|nil|None)\b)[A-Za-z_]\w*")
_CHAINED: Final = re.compile(r"\s*[!?]?\.\s*\w+(?:<[\w.]+>)?\s*(\()?")
_BRACKETS: Final = re.compile(r"[()]")
_LONGEST: Final = 100_000

_NOT_BLANK: Final = re.compile(r"[^\n]")
_TRIPLE: Final = r'"""(?:\\.|[^\\])*?(?:"""|\Z)'
_DOUBLE: Final = r'"(?:\\.|[^"\\\n])*+"?'
_SINGLE: Final = r"'(?:\\.|[^'\\\n])*+'?"
_CHARACTER: Final = r"'(?:\\[^'\n]{1,8}|[^'\\\n])'"
_BACKTICK: Final = r"`(?:\\.|[^`\\])*+`?"
_SLASHES: Final = r"(?P<comment>//[^\n]*+|/\*.*?(?:\*/|\Z))"
_HASH: Final = r"(?P<comment>(?<![^\s;])#[^\n]*+)"
_TOKENS: Final = {
    "javascript": rf"{_SLASHES}|{_DOUBLE}|{_SINGLE}|{_BACKTICK}",
    "go": rf"{_SLASHES}|{_DOUBLE}|{_CHARACTER}|`[^`]*+`?",
    "java": rf"{_SLASHES}|{_TRIPLE}|{_DOUBLE}|{_CHARACTER}",
    "rust": rf"{_SLASHES}|{_DOUBLE}|{_CHARACTER}",
    "php": rf"{_SLASHES}|(?P<hash>#(?!\[)[^\n]*+)|{_DOUBLE}|{_SINGLE}",
    "shell": rf"{_HASH}|{_DOUBLE}|{_SINGLE}",
}
_LIKE: Final = {"csharp": "java", "c": "java", "swift": "java", "ruby": "shell"}


def count_assertions(path: str, text: str) -> int:
    """Return the number of assertions in a file of tests that can fail."""
    language = find_language(path)
    code = blank_text(language, text)
    calls = re.finditer(_CALLS.get(language, _ANY_CALL), code)
    failures = re.findall(_FAILURES.get(language, r"(?!)"), code)
    return len(failures) + sum(_can_fail(code, call) for call in calls)


def count_skips(path: str, text: str) -> int:
    """Return the number of tests in a file that are marked as skipped."""
    language = find_language(path)
    return len(re.findall(_SKIPS.get(language, r"(?!)"), blank_text(language, text)))


def _can_fail(code: str, call: re.Match[str]) -> bool:
    """Return False if a call asserts only something about constants.

    `expect(x)` and `assertThat(x)` assert nothing until a matcher follows.
    """
    end = _find_end(code, call.end())
    arguments = [code[call.end() : end]]
    chained = [*_read_chain(code, end + 1)]
    waits = re.match(r"expect\b|assertThat\b", call[0])
    if waits and not chained and (call[0].startswith("expect") or "," not in arguments[0]):
        return False
    return any(_NAME.search(each) for each in (*arguments, *chained))


def _read_chain(code: str, at: int) -> Iterator[str]:
    """Yield the arguments of the calls chained at a position; "" for a plain attribute."""
    while link := _CHAINED.match(code, at):
        at = link.end()
        if link[1]:
            end = _find_end(code, at)
            yield code[at:end]
            at = end + 1
        else:
            yield ""


def _find_end(code: str, at: int) -> int:
    """Return the position of the bracket that closes the one before `at`, or the search's end."""
    depth = 1
    for each in _BRACKETS.finditer(code, at, at + _LONGEST):
        depth += 1 if each[0] == "(" else -1
        if depth == 0:
            return each.start()
    return min(len(code), at + _LONGEST)


def blank_text(language: str, text: str) -> str:
    """Return the text with comments and the insides of strings blanked, keeping every position."""
    tokens = _compile_tokens(_LIKE.get(language, language))
    return tokens.sub(_blank_token, text) if tokens else text


@cache
def _compile_tokens(language: str) -> re.Pattern[str] | None:
    pattern = _TOKENS.get(language)
    return re.compile(pattern, re.DOTALL) if pattern else None


def _blank_token(token: re.Match[str]) -> str:
    found = token[0]
    blank = _NOT_BLANK.sub(" ", found)
    is_string = found[0] in "\"'`" and len(found) > 1
    return found[0] + blank[1:-1] + found[-1] if is_string else blank
