"""Separate an agent's own words in a message from inert text.

Reads just enough Markdown to tell live text from fences, quotes, comments, tags and delegation
prompts. The caller supplies the line to search for.

Linear on any input: possessive patterns walk whole runs of lines, and Python only sees rare cases.
Sources are "\\n" + text, so that every line starts with a newline.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import msgspec

_EOL: Final = r"(?=\n|\Z)"
_TAG: Final = r"(?:!--|(?i:pre|code|thinking|think|blockquote)(?=[\s>/]))"
_FENCE_OPEN: Final = rf" {{0,3}}(?:`{{3,}}[^`\n]*+|~{{3,}}[^\n]*+){_EOL}"
_PROMPT_OPEN: Final = rf"-{{3,}}[ \t]*DELEGATION PROMPT START[ \t]*-{{3,}}[ \t]*{_EOL}"
_PROMPT_CLOSE: Final = rf"\n-{{3,}}[ \t]*DELEGATION PROMPT END[ \t]*-{{3,}}[ \t]*{_EOL}"
_QUOTE_OPEN: Final = r"[ \t]*+(?:(?:[-+*]|\d{1,9}[.)])[ \t]++){0,4}+>"
_INFO: Final = {"`": r"[^`\n]*+", "~": r"[^\n]*+"}


def _build_pair_pattern(mark: str, length: int, info: str, longer: str = "*+") -> str:
    """Return the pattern of a closed fence of that length without another fence line of its
    kind."""
    fence = rf" {{0,3}}{mark}{{{length}}}"
    return (
        rf"{fence}(?!{mark}){info}{_EOL}(?:\n(?! {{0,3}}{mark * 3})[^\n]*+)*+"
        rf"\n{fence}{mark}{longer}[ \t]*+{_EOL}"
    )


def _build_deep_pair_pattern(mark: str) -> str:
    """Return the same pattern, indented as under a list item; any other fence line spoils it."""
    deep = rf"(?: {{4}}| {{0,3}}\t)[ \t]*+{mark * 3}"
    return (
        rf"{deep}{_INFO[mark]}{_EOL}(?:\n(?![ \t]*+(?:```|~~~))[^\n]*+)*+"
        rf"\n{deep}{mark}*+[ \t]*+{_EOL}"
    )


_FENCE: Final = (
    r"\n(?=[ \t]*+(?:```|~~~))(?:"
    + "|".join(
        _build_pair_pattern(mark, length, info)
        for mark, info in _INFO.items()
        for length in range(3, 7)
    )
    + "|".join(["", *map(_build_deep_pair_pattern, _INFO)])
    + ")"
)
# Lines that end a paragraph without a blank line, and with it a quote's lazy continuation.
_INTERRUPT: Final = (
    rf"[ \t]*+(?:\n|\Z)| {{0,3}}(?:```|~~~|>|\#{{1,6}}(?:[ \t]|{_EOL})|[-+*][ \t]|1[.)][ \t]"
    rf"|(?:[-*_][ \t]*+){{3,}}|<{_TAG})"
)
# Nothing continues a quote whose last line is blank, a heading or a fence.
_QUOTE: Final = (
    rf"\n{_QUOTE_OPEN}(?:[^\n]*+(?=\n[ \t]*+>)(?:\n[ \t]*+>[^\n]*+(?=\n[ \t]*+>))*+"
    rf"|[ \t>]*+(?:{_EOL}|(?:```|~~~|\#{{1,6}}[ \t])[^\n]*+)"
    rf"|[^\n]*+(?:\n(?!{_INTERRUPT})[^\n]++)*+)"
)
_CODE_SPAN: Final = r"`++[^`\n]*+`++|`++"
_CODE_TAG: Final = r"<(?i:code)>[^\n<]*+</(?i:code)>"

_FENCE_RE: Final = re.compile(_FENCE)
_QUOTE_RE: Final = re.compile(_QUOTE)
_FENCE_OPEN_RE: Final = re.compile(rf"\n{_FENCE_OPEN}")
_PROMPT_CLOSE_RE: Final = re.compile(_PROMPT_CLOSE)
_PROMPT_OPEN_RE: Final = re.compile(rf"\n{_PROMPT_OPEN}")
_PLAIN_LINE: Final = re.compile(
    rf"\n(?!{_FENCE_OPEN}|{_PROMPT_OPEN}|{_QUOTE_OPEN})"
    rf"(?:[^\n<`]++|{_CODE_SPAN}|<(?!{_TAG})|{_CODE_TAG}"
    rf"|<!--(?:[^\n-]|-(?!->))*+-->)*+{_EOL}"
)
_FENCE_LINE: Final = re.compile(r"\n {0,3}(`{3,}|~{3,})([^\n]*)")
_INSIDE: Final = {
    mark: re.compile(
        rf"(?:\n(?! {{0,3}}{mark * 3})[^\n]*+|\n{_build_pair_pattern(mark, 3, info, '{0}')})*+"
    )
    for mark, info in (("`", r"[ \t]*+[^`\s][^`\n]*+"), ("~", r"[ \t]*+[^\s][^\n]*+"))
}
_DEEPEST_NEST: Final = 32
_TAG_RE: Final = re.compile(rf"<({_TAG})")
_CLOSERS: Final = {
    "!--": re.compile("-->"),
    "pre": re.compile(r"</pre[ \t]*>", re.IGNORECASE),
    "code": re.compile(r"</code[ \t]*>", re.IGNORECASE),
    "think": re.compile(r"</think[ \t]*>", re.IGNORECASE),
    "blockquote": re.compile(r"</blockquote[ \t]*>", re.IGNORECASE),
    "thinking": re.compile(r"</thinking[ \t]*>", re.IGNORECASE),
}


class LiveLines:
    """Find the live lines that match `line`, a pattern of a whole line without groups.

    The patterns are compiled on first use, because most runs never read a message.
    """

    def __init__(self, line: str) -> None:
        self._line = rf"(?:{line})[ \t]*+{_EOL}"

    @cached_property
    def anywhere(self) -> re.Pattern[str]:
        return re.compile(rf"\n{self._line}")

    @cached_property
    def _skip(self) -> re.Pattern[str]:
        line = self._line
        return re.compile(
            rf"(?:\n+(?=\n)|\n(?![\s>`~+*0-9-]|{line})[^\n<`]*+|{_FENCE}|{_QUOTE}"
            rf"|\n(?!{line}|{_FENCE_OPEN}|{_PROMPT_OPEN})[^\n<`]*+"
            rf"|{_CODE_SPAN}|{_CODE_TAG}|<+(?=<)|<(?!{_TAG})[^\n<`]*+|[^\n<`]++)*+"
        )

    def find(self, source: str, start: int = 0) -> Iterator[re.Match[str]]:
        if not self.anywhere.search(source, start):
            return
        spans, position = _Spans(source), start
        while (position := self._find_run_end(source, position)) < len(source):
            hit = self.anywhere.match(source, position)
            if hit:
                yield hit
            position = hit.end() if hit else spans.find_end(position)

    def _find_run_end(self, source: str, position: int) -> int:
        run = self._skip.match(source, position)
        return run.end() if run else position


class Unit(msgspec.Struct, frozen=True):
    """One piece of a message: a live line, or a whole inert span."""

    kind: str
    text: str


def split_units(text: str) -> Iterator[Unit]:
    """Yield the units of a piece of a message that begins with a newline."""
    spans, start = _Spans(text), 0
    while start < len(text):
        kind, stop = _read_unit(text, start, spans)
        yield Unit(kind, text[start:stop].removeprefix("\n"))
        start = stop


def _read_unit(source: str, start: int, spans: "_Spans") -> tuple[str, int]:
    if source[start] != "\n":  # the rest of the line on which a tag was closed
        stop = source.find("\n", start)
        return "html", stop if stop > 0 else len(source)
    for kind, pattern in (("fence", _FENCE_RE), ("quote", _QUOTE_RE), ("line", _PLAIN_LINE)):
        if found := pattern.match(source, start):
            return kind, found.end()
    kind = "prompt" if _PROMPT_OPEN_RE.match(source, start) else "html"
    kind = "fence" if _FENCE_OPEN_RE.match(source, start) else kind
    return kind, spans.find_end(start)


class _Spans:
    """Find the ends of rarer inert spans; remembers missing closers, to stay linear."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._unclosed: set[str] = set()

    def find_end(self, start: int) -> int:
        if _FENCE_OPEN_RE.match(self._source, start):
            return self._find_fence_end(start)
        if opener := _PROMPT_OPEN_RE.match(self._source, start):
            closer = _PROMPT_CLOSE_RE.search(self._source, opener.end())
            return closer.end() if closer else len(self._source)
        return self._find_tag_end(start)

    def _find_tag_end(self, start: int) -> int:
        opener = _TAG_RE.search(self._source, start)
        if not opener:
            return len(self._source)
        name = opener[1].lower()
        closer = None
        if name not in self._unclosed:
            closer = _CLOSERS[name].search(self._source, opener.end())
        if closer:
            return closer.end()
        self._unclosed.add(name)
        return len(self._source) if self._is_at_line_start(opener.start()) else opener.end()

    def _is_at_line_start(self, start: int) -> bool:
        _, newline, blank = self._source[max(0, start - 4) : start].rpartition("\n")
        return bool(newline) and not blank.strip(" ")

    def _find_fence_end(self, start: int) -> int:
        """Follow nested fences: one with an info string opens a level, a bare one closes one."""
        source, open_lengths, mark = self._source, list[int](), ""
        while (line := _FENCE_LINE.match(source, start)) and len(open_lengths) < _DEEPEST_NEST:
            mark = mark or line[1][0]
            _update_nesting(open_lengths, line[1], line[2].strip(" \t"), mark)
            if not open_lengths:
                return line.end()
            inside = _INSIDE[mark].match(source, line.end())
            start = inside.end() if inside else line.end()
        return len(source)


def _update_nesting(open_lengths: list[int], run: str, info: str, mark: str) -> None:
    if run[0] != mark or (mark == "`" and "`" in info):
        return
    if info or not open_lengths:
        open_lengths.append(len(run))
        return
    level = next(
        (i for i in reversed(range(len(open_lengths))) if open_lengths[i] == len(run)),
        next((i for i in reversed(range(len(open_lengths))) if open_lengths[i] < len(run)), None),
    )
    if level is not None:
        del open_lengths[level:]
