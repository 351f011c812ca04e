"""Log templates, mined as lines stream by: which line is which message with other values.

Lines of one shape (all digits alike) are one template, found in a memo: that is nearly every line.
A new shape becomes words, with `<*>` for what can only be a value (numbers, addresses, paths,
quotes); then a word that many otherwise equal lines vary in one place is a value too. What is new
in a block is judged together. A number never changes its words, and memory is bounded.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import BinaryIO

VALUE = "<*>"
_CHARS, _WORDS = 2_000, 100

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DATE = (
    rf"\b(?:{_DAY},? )?(?:{_MONTH} {{1,2}}\d+|\d+ {_MONTH})\b,?(?: \d+)?(?: \d+(?::\d+)+)?"
    r"(?: [A-Z]{3,4}\b)?(?: \d{4}\b)?"
)
_PLAIN_VALUES = re.compile(
    r"\b[a-zA-Z][\w+-]{0,20}://[^\s\"'<>,;()\[\]]+"
    rf"|{_DATE}"
    r"|(?<![\w:])(?:[0-9a-fA-F]{0,4}:){3,8}[0-9a-fA-F]{0,4}(?![\w:])"
    r"|(?<![\w.])(?:~?/|[A-Za-z]:\\|\\\\)[^\s,:;()\[\]{}\"'=<>]+(?:\?[^\s\"']*)?"
    r"|(?<![\w/.-])[\w.-]+/[\w.-]+/[\w./-]*"
)
_HINT = re.compile(rf"[/:\\]|{_MONTH} +\d|\d {_MONTH}")
_BRACKETS = re.compile(r"[\"']|\(\)|\[\]")
"""Most lines have nothing of the kind, and a look is cheaper than the work."""
_SETTING = re.compile(
    r"(?<=[\w\]])(?<!\bmsg)(?<!\bmessage)(?<!\berror)(?<!\berr)(?<!\breason)(?<!\bevent)"
    r"=(?!=)(?:\"[^\"]*\"|\[[^\]\s]*\]|[^\s,;()\[\]{}]+)"
)
"""What a name is set to, except where it is the message itself."""
_MEMBER = re.compile(r"\"([\w.@-]+)\": ?(\"(?:[^\"\\]|\\.)*\"|[^\s,{}\[\]]+),?")
_MESSAGE_KEYS = frozenset({"msg", "message", "event", "error", "err", "reason"})
_QUOTED = re.compile(r"\"[^\"\s]*\"|(?<!\w)'[^'\s]*'(?!\w)|\(\)|\[\]")
_CONSTANT = re.compile(r"\b(?:[Tt]rue|[Ff]alse|TRUE|FALSE|null|NULL|root)\b")
_NUMBERS = re.compile(
    r"\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{6,}\b"
    r"|[-+#*]{0,3}(?:\b[A-Za-z_]+-?)?\d\w*(?:[.:,/x-]{0,3}[-+]?\d\w*)*(?:%| ?[KMGT]?i?B\b)?"
)
_MAP = re.compile(r"\{\w+=<\*>(?:, \w+=<\*>)*\}")
_LIST = re.compile(r"<\*>(?:, <\*>)+")
"""However many they are, they are one value."""
_ENDPOINT = re.compile(
    r"(?<![\w./-])[A-Za-z][\w-]*(?:\.[\w-]+)+(?<!\.\w)(?<!\.(?:py|cc|go|rs|js|ts|rb))(?<!\.(?:cpp|php))"
    r"(?<!\.java)(?<!\.scala)[:/@](?=<\*>)|(?<=<\*>)[:/@][\w-]+(?:\.[\w-]+)+"
)
"""A machine's or a program's dotted name, beside a port or an address; a source file is none."""
_GLUED = re.compile(r"(?:[\w.#\\-]*<\*>[\w.#/\\-]*)+(?:[.,:/@+-]*<\*>)*")


def split_shape(shape: str) -> tuple[str, ...]:
    """The words of a line; values that follow one another are one value."""
    text = shape[:_CHARS]
    if text.startswith('{"'):
        text = _MEMBER.sub(_replace_member, text)
    if _HINT.search(text):
        text = _PLAIN_VALUES.sub(VALUE, text)
    if "=" in text:
        text = _SETTING.sub("=" + VALUE, text)
    if _BRACKETS.search(text):
        text = _QUOTED.sub(lambda found: found[0][0] + VALUE + found[0][-1], text)
    text = _CONSTANT.sub(VALUE, text)
    if "0" in text:
        text = _NUMBERS.sub(VALUE, text)
    if VALUE in text and (", " in text or "{" in text):
        text = _LIST.sub(VALUE, _MAP.sub(VALUE, text))
    words: list[str] = []
    for word in text.split(None, _WORDS)[:_WORDS]:
        masked = _GLUED.sub(VALUE, _ENDPOINT.sub("", word)) if VALUE in word else word
        if masked != VALUE or not words or words[-1] != VALUE:
            words.append(masked)
    return tuple(words)


def _replace_member(found: re.Match[str]) -> str:
    """A member of a JSON object, as a setting; a message stays."""
    name, value = found[1], found[2]
    return f"{name}={value if name in _MESSAGE_KEYS else VALUE} "


Words = tuple[str, ...]

_HAPPENED = re.compile(r".*(?:ed|ing)\W*$")
_STATE = re.compile(r"[A-Z_]{2,}\W*$")
"""A participle or a state says what happened; others of these are other messages."""
_SET = re.compile(r"\w[:.]?\w+=<\*>")
"""Another thing that is set is another message."""
_NAME = re.compile(r".*\w[._@/\\-]\w")
_NOUN = re.compile(
    r"(?:user|host|hostname|name|device|file|driver|service|module|interface|process|job|task|node"
    r"|server|client|domain|queue|topic|table|key|id)[:=]?$",
    re.IGNORECASE,
)
"""What a name follows."""
_OWN_WORD = re.compile(r"[^<]*[^\W\d_]{2}[^<]*$")
_ENOUGH_FIRST_WORDS, _ENOUGH_WORDS, _ENOUGH_NAMES, _ENOUGH_BESIDE_VALUE = 12, 5, 3, 2
_MOST_COMPARED = 100
"""How many lines of one length and first or last word are compared with each other."""


def find_joint_patterns(group: list[Words]) -> list[Words]:
    """Lines with values where several words vary at once among lines of one length."""
    compared = rest = group[:_MOST_COMPARED]
    found = []
    while len(rest) >= _ENOUGH_WORDS:
        pattern, rest = _find_joint_pattern(rest[0], compared), rest[1:]
        if pattern:
            found.append(pattern)
            rest = [line for line in rest if not matches_pattern(line, pattern)]
    return found


def has_own_words(line: Words) -> bool:
    """Whether a line with values has enough words of its own to be known by them."""
    own_words = sum(map(bool, map(_OWN_WORD.match, line)))
    return own_words >= max(_ENOUGH_BESIDE_VALUE, line.count(VALUE))


def _find_joint_pattern(line: Words, group: list[Words]) -> Words | None:
    """The line with values where it differs from many others that are otherwise the same."""
    own_words = {at for at, word in enumerate(line) if _OWN_WORD.match(word)}
    differs = Counter(
        places for other in group if len(places := _find_differences(line, other)) > 1
    )
    for places, times in differs.most_common(2):
        if times < _ENOUGH_WORDS - 1 or len(own_words.difference(places)) < max(3, len(places)):
            continue
        same = [other for other in group if set(_find_differences(line, other)) <= set(places)]
        if all(
            are_values({o[at] for o in same}, line[at - 1] if at else None, alone=False)
            for at in places
        ):
            return tuple(VALUE if at in places else word for at, word in enumerate(line))
    return None


def _find_differences(one: Words, two: Words) -> tuple[int, ...]:
    return tuple(at for at, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)


def matches_pattern(line: Words, pattern: Words) -> bool:
    """Whether a line has the words of a pattern of its length, values aside."""
    return all(b in (a, VALUE) for a, b in zip(line, pattern, strict=True))


def merge_values(pattern: Words) -> Words:
    """Values that meet become one."""
    pairs = zip(("", *pattern), pattern, strict=False)
    return tuple(word for before, word in pairs if word != VALUE or before != VALUE)


def insert_value(pattern: Words, at: int) -> Words:
    """The pattern with a value at one place; values that meet become one."""
    return merge_values((*pattern[:at], VALUE, *pattern[at + 1 :]))


def are_values(seen: Collection[str], before: str | None, *, alone: bool = True) -> bool:
    """Whether words seen in one place are values. The first word of a line hardly ever is one."""
    half = len(seen) / 2
    if sum(map(bool, map(_SET.search, seen))) > half:
        return False
    if before is not None and any(VALUE in word for word in seen):
        return len(seen) >= _ENOUGH_BESIDE_VALUE
    if sum(bool(_HAPPENED.match(word) or (alone and _STATE.match(word))) for word in seen) > half:
        return False
    if sum(map(bool, map(_NAME.match, seen))) > half:
        return len(seen) >= _ENOUGH_NAMES
    if before is None:
        return len(seen) >= _ENOUGH_FIRST_WORDS
    return len(seen) >= (_ENOUGH_NAMES if _NOUN.match(before) else _ENOUGH_WORDS)


BLOCK_SIZE = 1 << 20
"""Bytes that are judged together."""
_LINE_LIMIT = 65_536

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_DRAWN = re.compile(
    rb"\b0x[0-9a-fA-F]+|\b[0-9a-fA-F]{4,}(?:-[0-9a-fA-F]{4,}){2,}|\b[0-9a-f]{16,}\b"
)
"""Digits above 9 in what is certainly drawn: the second, slower sight of a shape."""

_WORD = re.compile(r"[^\W\d_]{2}")
_SAMPLE = 16
_MOST_WIDE = 64
"""How many lines of one length a new one is held against."""
_MOST_VALUES = 4
"""How many words of one line may become values by comparing."""


class TemplateMiner:
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

    def add_block(self, block: bytes) -> list[int]:
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

    def get_text(self, number: int) -> str:
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
                words[drawn] = split_shape(drawn.decode("utf-8", "replace"))
        numbers = self._number_lines([*dict.fromkeys(words.values())])
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

    def _number_lines(self, lines: list[Words]) -> dict[Words, int]:
        """The numbers of lines that came together: what they have in common decides."""
        found = {words: number for words in lines if (number := self._find_number(words))}
        patterns = {words: words for words in lines if words not in found}
        if len(self._numbers) + len(patterns) > self._most:
            return found | {words: self._assign_rough_number(words) for words in patterns}
        changed = [*patterns.values()]
        for _ in range(_MOST_VALUES):
            for pattern in changed:
                self._record_words(pattern)
            wider = {pattern: self._widen(pattern) for pattern in changed}
            patterns = {words: wider.get(pattern, pattern) for words, pattern in patterns.items()}
            changed = [*dict.fromkeys(wide for was, wide in wider.items() if wide != was)]
        wide = self._join_varying_lines(patterns)
        for words, pattern in patterns.items():
            found[words] = self._numbers[words] = self._assign_number(wide.get(pattern, pattern))
        return found

    def _join_varying_lines(self, patterns: dict[Words, Words]) -> dict[Words, Words]:
        """Lines in which several words vary at once, with values there."""
        lines = [*dict.fromkeys(patterns.values())]
        new = [*dict.fromkeys(wide for words, wide in patterns.items() if words != wide)]
        for part in (0.0, 0.5, 1.0):  # some word is the same: the first, the last, or one between
            groups: dict[tuple[int, str], list[Words]] = {}
            for line in filter(None, lines):
                groups.setdefault((len(line), line[int(part * (len(line) - 1))]), []).append(line)
            for group in groups.values():
                new += find_joint_patterns(group)
        for wide in sorted(new, key=lambda wide: -wide.count(VALUE)):
            kept = self._wide.setdefault(len(wide), [])
            if len(kept) < _MOST_WIDE and has_own_words(wide) and not self._find_wide(wide):
                kept.append(wide)
        fit = {line: self._find_wide(line) for line in lines}
        return {line: merge_values(wide) for line, wide in fit.items() if wide}

    def _find_wide(self, line: Words) -> Words | None:
        """The first of the lines with values that this one fits: it stays the first."""
        return next(
            (wide for wide in self._wide.get(len(line), ()) if matches_pattern(line, wide)), None
        )

    def _find_number(self, words: Words) -> int:
        """The number of words seen before, or that differ from them only where values stand."""
        for _ in range(_MOST_VALUES):
            if words in self._numbers:
                return self._numbers[words]
            places = enumerate(_hash_places(words))
            at = next((at for at, place in places if place in self._open and at), 0)
            if not at or words[at] == VALUE:
                break
            words = insert_value(words, at)
        if wide := self._find_wide(words):
            return self._assign_number(merge_values(wide))
        return self._numbers.get(words, 0)

    def _assign_number(self, pattern: Words) -> int:
        if pattern not in self._numbers:
            self._texts.append(" ".join(pattern))
            self._numbers[pattern] = len(self._texts)
        return self._numbers[pattern]

    def _assign_rough_number(self, words: Words) -> int:
        """Past the bound a new line is known by its first word, and in the end by nothing."""
        pattern = (*words[:1], VALUE)
        if pattern in self._numbers or len(self._numbers) < self._most * 2:
            return self._assign_number(pattern)
        return self._assign_number((VALUE,))

    def _record_words(self, pattern: Words) -> None:
        for place, word in zip(_hash_places(pattern), pattern, strict=True):
            seen = self._beside.setdefault(place, [])
            if len(seen) < _SAMPLE and word not in seen:
                seen.append(word)
            if word == VALUE:
                self._open.add(place)

    def _widen(self, pattern: Words) -> Words:
        """The pattern with the word that varies most as a value, if one varies enough."""
        own_words = [
            at for at, word in enumerate(pattern) if VALUE not in word and _WORD.search(word)
        ]
        best, most = -1, 1
        for at, place in enumerate(_hash_places(pattern)):
            seen = self._beside[place]
            if len(seen) <= most or pattern[at] == VALUE or not own_words or own_words == [at]:
                continue
            if are_values(seen, pattern[at - 1] if at else None):
                best, most = at, len(seen)
        if best < 0:
            return pattern
        return insert_value(pattern, best)


def _hash_places(pattern: Words) -> list[int]:
    """For each word: the line without it, as one number."""
    after = [0]
    for word in reversed(pattern):
        after.append(hash((after[-1], word)))
    before, places = 0, []
    for at, word in enumerate(pattern):
        places.append(hash((at, before, after[len(pattern) - at - 1])))
        before = hash((before, word))
    return places


def read_blocks(file: BinaryIO, size: int = BLOCK_SIZE) -> Iterator[bytes]:
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
