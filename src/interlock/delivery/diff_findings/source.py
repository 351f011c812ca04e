"""`DiffFinding`, and a source file split into code without strings and comments without code.

Knows how comments and strings are written in families of languages, not what the code means. Both
copies keep the lines and columns of the original; what does not belong is blank. Pure.
"""

import re
from functools import cache
from typing import Final, Literal

import msgspec

from interlock.system.file_kinds import find_language

Severity = Literal["error", "warning", "notice"]


class DiffFinding(msgspec.Struct, frozen=True, order=True):
    path: str
    line: int
    kind: str
    sentence: str
    severity: Severity = "warning"


_NOT_BLANK: Final = re.compile(r"[^\n]")
_TRIPLE: Final = r'"""(?:\\.|[^\\])*?(?:"""|\Z)'
_DOUBLE: Final = r'"(?:\\.|[^"\\\n])*+"?'
_SINGLE: Final = r"'(?:\\.|[^'\\\n])*+'?"
_CHARACTER: Final = r"'(?:\\[^'\n]{1,8}|[^'\\\n])'"
_BACKTICK: Final = r"`(?:\\.|[^`\\])*+`?"
_BLOCK: Final = r"/\*.*?(?:\*/|\Z)"
_SLASHES: Final = rf"(?P<comment>//[^\n]*+|{_BLOCK})"
_HASH: Final = r"(?P<comment>#[^\n]*+)"

_TOKENS: Final = {
    "python": rf"{_HASH}|(?P<string>{_TRIPLE}|'''(?:\\.|[^\\])*?(?:'''|\Z)|{_DOUBLE}|{_SINGLE})",
    "javascript": rf"{_SLASHES}|(?P<string>{_DOUBLE}|{_SINGLE}|{_BACKTICK})",
    "go": rf"{_SLASHES}|(?P<string>{_DOUBLE}|{_CHARACTER}|`[^`]*+`?)",
    "java": rf"{_SLASHES}|(?P<string>{_TRIPLE}|{_DOUBLE}|{_CHARACTER})",
    "php": rf"(?P<comment>(?://|#(?!\[))[^\n]*+|{_BLOCK})|(?P<string>{_DOUBLE}|{_SINGLE})",
    "rust": rf"{_SLASHES}|(?P<string>{_DOUBLE}|{_CHARACTER})",
    "shell": rf"(?P<comment>(?<![^\s;])#[^\n]*+)|(?P<string>{_DOUBLE}|{_SINGLE})",
    "data": rf"(?P<comment>(?<!\S)#[^\n]*+)|(?P<string>{_DOUBLE}|{_SINGLE})",
}
_LIKE: Final = {"csharp": "java", "c": "java", "swift": "java", "ruby": "shell"}


class SourceText(msgspec.Struct, frozen=True):
    """The two copies, line by line; line 1 has index 0."""

    language: str
    whole: str
    code: str
    comments: str
    code_lines: tuple[str, ...]
    comment_lines: tuple[str, ...]


def split_source(path: str, text: str) -> SourceText:
    language = find_language(path)
    tokens = _compile_tokens(_LIKE.get(language, language))
    code, comments, at = [], [], 0
    for token in tokens.finditer(text) if tokens else ():
        between, found = text[at : token.start()], token[0]
        code.append(between)
        comments.append(_blank_out(between))
        is_comment = token["comment"] is not None
        comments.append(found if is_comment else _blank_out(found))
        code.append(_blank_out(found) if is_comment else _blank_string(found))
        at = token.end()
    code.append(text[at:])
    comments.append(_blank_out(text[at:]))
    whole_code, whole_comments = "".join(code), "".join(comments)
    return SourceText(
        language,
        text,
        whole_code,
        whole_comments,
        tuple(whole_code.split("\n")),
        tuple(whole_comments.split("\n")),
    )


@cache
def _compile_tokens(language: str) -> re.Pattern[str] | None:
    pattern = _TOKENS.get(language)
    return re.compile(pattern, re.DOTALL) if pattern else None


def _blank_out(text: str) -> str:
    return _NOT_BLANK.sub(" ", text)


def _blank_string(text: str) -> str:
    """A string's quotes stay: that there is one may matter."""
    return text[0] + _blank_out(text[1:-1]) + text[-1] if len(text) > 1 else text
