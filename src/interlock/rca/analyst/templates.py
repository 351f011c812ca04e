"""Log templates, mined as lines stream by: which line is which message with other values.

Lines of one shape (all digits alike) are one template, found in a memo: that is nearly every line.
A new shape becomes words; a word that many lines vary at the same place is a value. What is new in
a block of lines is judged together. A number never changes its words, and memory is bounded.
"""

import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from interlock.rca.analyst.line_words import VALUE, words_of
from interlock.rca.analyst.template_values import (
    Words,
    fits,
    merged,
    tells,
    varies,
    vary_together,
    with_value,
)

BLOCK = 1 << 20
"""Bytes that are judged together."""
_LINE_LIMIT = 65_536

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DRAWN = re.compile(
    rb"\b0x[0-9a-fA-F]+|\b[0-9a-fA-F]{4,}(?:-[0-9a-fA-F]{4,}){2,}|\b[0-9a-f]{16,}\b"
)
"""Digits above 9 in what is certainly drawn: the second, slower sight of a shape."""

_WORD = re.compile(r"[A-Za-z]{2}")
_SAMPLE = 16
_MOST_WIDE = 64
"""How many lines of one length a new one is held against."""
_MOST_VALUES = 4
"""How many words of one line may become values by comparing."""


class Miner:
    """Templates by number, from 1. Feed it blocks of whole lines in order."""

    def __init__(self, most_templates: int = 20_000, memo_bytes: int = 32 << 20) -> None:
        self._most = most_templates
        self._room = self._memo_bytes = memo_bytes
        self._memo: dict[bytes, int] = {}
        self._numbers: dict[Words, int] = {}
        self._texts: list[str] = []
        self._beside: dict[int, list[str]] = {}
        """Of each line with one word left out: the words seen in that place."""
        self._open: set[int] = set()
        """The places in which a value was seen."""
        self._wide: dict[int, list[Words]] = {}
        """Of each length: lines with values that were found by comparing."""

    def add(self, block: bytes) -> list[int]:
        """The template of each line of a block; its last line may lack its end."""
        shapes = block.translate(_DIGITS).split(b"\n")
        if not shapes[-1]:
            shapes.pop()
        numbers = [*map(self._memo.get, shapes)]
        if None not in numbers:
            return numbers  # type: ignore[return-value]
        fresh = (shape for shape, number in zip(shapes, numbers, strict=True) if number is None)
        found = self._learn([*dict.fromkeys(fresh)])
        return [
            found[shape] if number is None else number
            for shape, number in zip(shapes, numbers, strict=True)
        ]

    def text(self, number: int) -> str:
        """The words of a template, `<*>` where values stand."""
        return self._texts[number - 1]

    def __len__(self) -> int:
        return len(self._texts)

    def _learn(self, shapes: list[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        words: dict[bytes, Words] = {}
        second = {shape: _DRAWN.sub(b"0", shape) for shape in shapes}
        for shape, drawn in second.items():
            if number := self._memo.get(drawn):
                found[shape] = number
            elif drawn not in words:
                words[drawn] = words_of(drawn.decode("utf-8", "replace"))
        numbers = self._judge([*dict.fromkeys(words.values())])
        for shape, drawn in second.items():
            if shape not in found:
                found[shape] = numbers[words[drawn]]
                self._remember(drawn, found[shape])
            if self._room > self._memo_bytes // 2:  # what is drawn once may never come again
                self._remember(shape, found[shape])
        return found

    def _remember(self, shape: bytes, number: int) -> None:
        size = len(shape) + 150
        if size > 1_200 or shape in self._memo:
            return
        self._room -= size
        if self._room < 0:
            self._memo.clear()
            self._room = self._memo_bytes - size
        self._memo[shape] = number

    def _judge(self, lines: list[Words]) -> dict[Words, int]:
        """The numbers of lines that came together: what they have in common decides."""
        found = {words: number for words in lines if (number := self._known(words))}
        patterns = {words: words for words in lines if words not in found}
        if len(self._numbers) + len(patterns) > self._most:
            return found | {words: self._rough(words) for words in patterns}
        changed = [*patterns.values()]
        for _ in range(_MOST_VALUES):
            for pattern in changed:
                self._note(pattern)
            wider = {pattern: self._widened(pattern) for pattern in changed}
            patterns = {words: wider.get(pattern, pattern) for words, pattern in patterns.items()}
            changed = [*dict.fromkeys(wide for was, wide in wider.items() if wide != was)]
        wide = self._joined(patterns)
        for words, pattern in patterns.items():
            found[words] = self._numbers[words] = self._number(wide.get(pattern, pattern))
        return found

    def _joined(self, patterns: dict[Words, Words]) -> dict[Words, Words]:
        """Lines in which several words vary at once, with values there."""
        lines = [*dict.fromkeys(patterns.values())]
        new = [*dict.fromkeys(wide for words, wide in patterns.items() if words != wide)]
        for part in (0.0, 0.5, 1.0):  # some word is the same: the first, the last, or one between
            groups: dict[tuple[int, str], list[Words]] = {}
            for line in filter(None, lines):
                groups.setdefault((len(line), line[int(part * (len(line) - 1))]), []).append(line)
            for group in groups.values():
                new += vary_together(group)
        for wide in sorted(new, key=lambda wide: -wide.count(VALUE)):
            kept = self._wide.setdefault(len(wide), [])
            if len(kept) < _MOST_WIDE and tells(wide) and not self._wide_of(wide):
                kept.append(wide)
        fit = {line: self._wide_of(line) for line in lines}
        return {line: merged(wide) for line, wide in fit.items() if wide}

    def _wide_of(self, line: Words) -> Words | None:
        """The first of the lines with values that this one fits: it stays the first."""
        return next((wide for wide in self._wide.get(len(line), ()) if fits(line, wide)), None)

    def _known(self, words: Words) -> int:
        """The number of words seen before, or that differ from such only where values stand."""
        for _ in range(_MOST_VALUES):
            if words in self._numbers:
                return self._numbers[words]
            places = enumerate(_places(words))
            at = next((at for at, place in places if place in self._open and at), 0)
            if not at or words[at] == VALUE:
                break
            words = with_value(words, at)
        if wide := self._wide_of(words):
            return self._number(merged(wide))
        return self._numbers.get(words, 0)

    def _number(self, pattern: Words) -> int:
        if pattern not in self._numbers:
            self._texts.append(" ".join(pattern))
            self._numbers[pattern] = len(self._texts)
        return self._numbers[pattern]

    def _rough(self, words: Words) -> int:
        """Past the bound a new line is known by its first word, and in the end by nothing."""
        pattern = (*words[:1], VALUE)
        if pattern in self._numbers or len(self._numbers) < self._most * 2:
            return self._number(pattern)
        return self._number((VALUE,))

    def _note(self, pattern: Words) -> None:
        for place, word in zip(_places(pattern), pattern, strict=True):
            seen = self._beside.setdefault(place, [])
            if len(seen) < _SAMPLE and word not in seen:
                seen.append(word)
            if word == VALUE:
                self._open.add(place)

    def _widened(self, pattern: Words) -> Words:
        """The pattern with the word that varies most as a value, if one varies enough."""
        told = [at for at, word in enumerate(pattern) if VALUE not in word and _WORD.search(word)]
        best, most = -1, 1
        for at, place in enumerate(_places(pattern)):
            seen = self._beside[place]
            if len(seen) <= most or pattern[at] == VALUE or not told or told == [at]:
                continue
            if varies(seen, pattern[at - 1] if at else None):
                best, most = at, len(seen)
        if best < 0:
            return pattern
        return with_value(pattern, best)


def _places(pattern: Words) -> list[int]:
    """For each word: the line without it, as one number."""
    after = [0]
    for word in reversed(pattern):
        after.append(hash((after[-1], word)))
    before, places = 0, []
    for at, word in enumerate(pattern):
        places.append(hash((at, before, after[len(pattern) - at - 1])))
        before = hash((before, word))
    return places


def blocks_of(file: BinaryIO, size: int = BLOCK) -> Iterator[bytes]:
    """A file as blocks of whole lines; a line past the limit is cut, not kept."""
    rest = b""
    while data := file.read(size):
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = data[end:]
        else:
            rest += data
        rest = rest[:_LINE_LIMIT]
    if rest:
        yield rest


def mined(blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The template's number and words for each line of blocks of whole lines."""
    miner = Miner()
    for block in blocks:
        for number in miner.add(block):
            yield number, miner.text(number)
