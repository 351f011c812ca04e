"""A console log read once, and quickly: what it says about its tests, and how its job ended.

Nearly all lines of a log mean nothing to anybody, and they are told apart by their words before
they are decoded: a line can only matter if one of its words can, and a log has few words, numbers
aside. What may matter goes to the readers, line by line; so does everything while one of them is
listening. The result is the same as if they had read every line.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import BinaryIO

import msgspec

from interlock.rca.sources.job_log import JobReader, JobVerdict
from interlock.rca.sources.job_log import is_idle as is_idle_for_job
from interlock.rca.sources.job_log import list_patterns as list_job_patterns
from interlock.system.test_output.counts import LINE_LIMIT, MOST_SHAPES
from interlock.system.test_output.failures import TestLog, TestLogReader
from interlock.system.test_output.failures import is_idle as is_idle_for_tests
from interlock.system.test_output.failures import list_patterns as list_test_patterns
from interlock.system.test_output.names import MARKS
from interlock.system.text import strip_colours

_BLOCK = 1 << 18
_DIGITS = b"0123456789"
_SLASHES = bytes.maketrans(b"/", b" ")
_NAME_ENDS = (b":", b":\r")
_LINE_ENDS = (b":\n", b":\r\n")
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_NONE = re.compile(rb"(?<![\d.:,])0(?![\d.:])")
"""A count of nothing."""
_ONES = bytes.maketrans(b"0", b"1")
_MOST_WORDS = 200_000
_TO_TESTS, _TO_JOB = 1, 2
_READ = 6_000
"""Bytes of a line in which its words are looked for: no reader looks further."""
_WORD = re.compile(
    r"abort|bail|cancel|could|denied|elife|err|exce|exit|fail|fatal|hook|kill|npm|offense|panic|pass"
    r"|problem|reform|segm|skip|succe|test|thresh|unable|unauth|unde|unexpected|uns|rspec|stdout"
    rf"|feature|\[section|\*\*\*|<<<|==>|----|\"action\"|[{MARKS}\u25cf\u25b6\u2139]|[\w)\]]::"
    r"|^\W*(?:agent|ambiguous|bus|cleaning|complet\w+|congrat\w+|counts?|current|diff|done|examples?"
    r"|executed|finish\w*|flak\w+|following|found|gate|hangup|memory|quit|violations?|vulnerabilit\w+|issues?|line|long|matching|met|non-zero|not"
    r"|ok|orphan|pending|ran|received|require\w+|results?|run|runner|running|runs|scenarios?"
    r"|solution|specs?|stop\w*|terminated?|there|todo|total|warning|x)\W*$"
    r"|^(?:!|\?|\}|\)|---|===+|___+|==+|#|e:|go:|.*ld:|vet:|state:|\[!\])$"
)
"""In small letters and without digits: a word without this means nothing to any reader."""
_CLOCK = re.compile(r"[\[(]?-*t?::[.,]?z?[\])]?$|-*t::[.,]?(?:z|[+-]:?)?$")

_GO_NAME = rb"[\w/.#,=+-]{1,500}"
_GO_ALONE = rb"""
    ^===\ RUN\ +(?P<alone>%b)\n (?:(?!===\ |---\ )[^\n]*\n)* ---\ PASS:\ (?P=alone)\ \([\d.]+s\)\n
""" % (_GO_NAME)
_GO_LINE = rb"""
    ^===\ (?:RUN|CONT|NAME|PAUSE)\ +(?P<begun>%b)\n
    | ^\ *---\ (?:PASS|SKIP):\ (?P<ended>%b)\ \([\d.]+s\)\n
""" % (_GO_NAME, _GO_NAME)
_GO_EVENT = re.compile(
    rb"(?P<each>(?:%b)+) | %b | ^\ *---\ FAIL:" % (_GO_ALONE, _GO_LINE), re.MULTILINE | re.VERBOSE
)
"""Tests that passed one after the other; one that begins or ends, perhaps inside of another."""
_GO_LINES = re.compile(_GO_LINE, re.MULTILINE | re.VERBOSE)
_GO_WORDS = (b"exit", b"returned", b"failed", b"...")
"""The name of a test that holds none of these looks like nothing else to any reader."""
_GO_PLACE = re.compile(rb"^[ \t]+[\w./-]+\.go:\d+: ", re.MULTILINE)
"""Where in its source a test says something. Without the indent it would be a compiler's."""


class _PassedTests(msgspec.Struct, frozen=True):
    """A part of a log of `go test -v` in which every test that begins ends well."""

    start: int
    end: int
    in_order: bool
    """Whether each has ended before the next begins: then it can be cut in two."""


class LogScan(msgspec.Struct, frozen=True):
    """All that a console log says."""

    tests: TestLog
    verdict: JobVerdict


def scan_log(stream: BinaryIO) -> LogScan:
    """What the log says; one pass, in memory that does not grow with it."""
    scanner = _Scanner()
    for block in _read_blocks(stream):
        scanner.add_block(block)
    return LogScan(scanner.tests.finish(), scanner.job.finish())


class _Scanner:
    def __init__(self) -> None:
        self.tests = TestLogReader()
        self.job = JobReader()
        self._idle: set[bytes] = set()
        """Lines without their digits of which no word matters."""
        self._dead: set[bytes] = set()
        """Words that mean nothing."""
        self._alive: set[bytes] = set()
        self._skeletons = _Skeletons()
        self._judged: dict[bytes, int] = {}
        """To which readers a line with that skeleton means something."""

    @property
    def is_listening(self) -> bool:
        return self.tests.is_listening or self.job.is_listening

    def add_block(self, block: bytes) -> None:
        """Whole lines, each ended but perhaps the last."""
        at = 0
        waiting = list(_find_passed(block))[::-1] if b"--- " in block else []
        while waiting:
            passed = waiting.pop()
            if at < passed.start:
                self._add_lines(block[at : passed.start])
                at = passed.start
            if not self.is_listening and self._skip_passed(block[at : passed.end]):
                at = passed.end
            elif cut := _find_cut(block, passed, is_first=self.is_listening):
                waiting.append(msgspec.structs.replace(passed, start=cut))
                waiting.append(msgspec.structs.replace(passed, end=cut))
            else:
                self._add_lines(block[at : passed.end])
                at = passed.end
        self._add_lines(block[at:])

    def _skip_passed(self, passed: bytes) -> bool:
        """Whether only the number of these tests matters: then they are counted, no more."""
        said = _GO_PLACE.sub(b"", _GO_LINES.sub(b"", passed))
        words = said.translate(_SLASHES, _DIGITS).split()
        is_heard = any(map(passed.__contains__, (*_GO_WORDS, *_LINE_ENDS)))
        if is_heard or not (self._dead.issuperset(words) or self._are_dead(words)):
            return False
        last = passed[passed.rfind(b"\n", 0, -1) + 1 :]
        self.tests.skip_passed(
            passed.count(b"--- PASS: "), passed.count(b"--- SKIP: "), _decode(last)
        )
        self.job.skip_lines(passed.count(b"\n"))
        return True

    def _add_lines(self, block: bytes) -> None:
        tests, job, idle = self.tests, self.job, self._idle
        lines = block.split(b"\n")
        shapes = block.translate(None, _DIGITS).split(b"\n")
        if not lines[-1]:
            del lines[-1]
        # A path is a word that comes once; its parts come again and again.
        parts = block.translate(_SLASHES, _DIGITS).split(b"\n")
        knows = self._dead.issuperset
        is_listening = self.is_listening
        skipped, is_blank = 0, True
        for raw, shape, part in zip(lines, shapes, parts, strict=False):
            if not is_listening:
                # Most lines end here; the rest is asked only about words that are new.
                is_dead = shape in idle or (
                    knows(part[:_READ].split()) and not shape.endswith(_NAME_ENDS)
                )
                if is_dead or self._is_dead(shape) or not (means := self._judge_line(raw)):
                    skipped += 1
                    is_blank = is_blank and not raw.strip()
                    continue
            else:
                means = self._judge_line(raw)
            if skipped:
                self._skip(skipped, is_blank=is_blank)
                skipped, is_blank = 0, True
            line = _decode(raw)
            if means & _TO_TESTS:
                tests.add_line(line)
            else:
                tests.add_plain_line(line)
            if means & _TO_JOB or job.is_listening:
                job.add_line(line)
            else:
                job.skip_lines(1)
            is_listening = self.is_listening
        self._skip(skipped, is_blank=is_blank)

    def _skip(self, count: int, *, is_blank: bool) -> None:
        self.job.skip_lines(count)
        if not is_blank:
            self.tests.skip_lines()

    def _is_dead(self, shape: bytes) -> bool:
        """Whether no word of the line can mean anything."""
        if not self._are_dead(shape[:_READ].split()) or _may_end_name(shape):
            return False
        if len(self._idle) < MOST_SHAPES:
            self._idle.add(shape)
        return True

    def _are_dead(self, words: list[bytes]) -> bool:
        if not self._alive.isdisjoint(words):
            return False
        if len(self._dead) + len(self._alive) > _MOST_WORDS:
            self._dead.clear()
            self._alive.clear()
        for word in words:
            for part in word.split(b"/"):
                if part not in self._dead:
                    if _may_matter(part):
                        self._alive.add(word)
                        return False
                    self._dead.add(part)
        return True

    def _judge_line(self, raw: bytes) -> int:
        """To which readers a line may mean something by itself."""
        if self.tests.failures and b" PASSED" in raw:
            return _TO_TESTS | _TO_JOB  # perhaps a test that failed before
        words = raw[:_READ].translate(_ZEROS).split(b" ")
        skeleton = b" ".join(map(self._skeletons.__getitem__, words))
        means = self._judged.get(skeleton)
        if means is None:
            if len(self._judged) >= MOST_SHAPES:
                self._judged.clear()
            means = _judge(_decode(raw))
            if means != _TO_TESTS | _TO_JOB and _NONE.search(raw):
                means |= _judge(_decode(raw.translate(_ONES)))  # it holds for other counts, too
            self._judged[skeleton] = means
        return means


def _judge(line: str) -> int:
    means = 0 if is_idle_for_tests(line) else _TO_TESTS
    return means | (0 if is_idle_for_job(line) else _TO_JOB)


class _Skeletons(dict[bytes, bytes]):
    """Words with all letters and digits replaced that no pattern of any reader asks for."""

    def __missing__(self, word: bytes) -> bytes:
        if len(self) >= _MOST_WORDS:
            self.clear()
        bare = re.sub(rb"0+", b"0", word)
        self[word] = found = re.sub(rb"[A-Za-z]+", _replace_letters, bare)
        return found


def _replace_letters(found: re.Match[bytes]) -> bytes:
    letters = found[0].decode()
    if _asks_for(letters.lower()):
        return found[0]
    return b"U" if letters.isupper() else b"W" if letters[0].isupper() else b"w"


@lru_cache(maxsize=_MOST_WORDS)
def _asks_for(letters: str) -> bool:
    """Whether some pattern may ask for a word with these letters."""
    return bool(_compile_asked().search(letters) or _WORD.search(letters))


@cache
def _compile_asked() -> re.Pattern[str]:
    """Letters that stand as such in the patterns of the readers: short ones as they are, longer
    ones inside of others too."""
    texts = (_NO_LETTERS.sub(" ", text) for text in (*list_test_patterns(), *list_job_patterns()))
    asked = sorted({part for text in texts for part in re.findall(r"[a-z]+", text.lower())})
    short = "|".join(part for part in asked if len(part) < _LONG)
    return re.compile(f"^(?:{short})$|" + "|".join(part for part in asked if len(part) >= _LONG))


_LONG = 4
_NO_LETTERS = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\(\?P<\w+>|\(\?i")


def _find_passed(block: bytes) -> Iterator[_PassedTests]:
    """Parts in which no test is left open."""
    start, running = 0, set[bytes]()
    for found in _GO_EVENT.finditer(block):
        if found["each"]:
            if not running:
                yield _PassedTests(found.start(), found.end(), in_order=True)
            continue
        if not running:
            start = found.start()
        if found["begun"]:
            running.add(found["begun"])
        elif found["ended"]:
            running.discard(found["ended"])
            if not running:
                yield _PassedTests(start, found.end(), in_order=False)
        else:
            running.clear()


def _find_cut(block: bytes, passed: _PassedTests, *, is_first: bool) -> int:
    """Where a part may be cut in two, behind its first test or in its middle; 0 if nowhere."""
    if not passed.in_order:
        return 0
    middle = passed.start if is_first else (passed.start + passed.end) // 2
    return block.find(b"\n=== RUN ", middle, passed.end) + 1


def _decode(raw: bytes) -> str:
    return raw[:LINE_LIMIT].decode("utf-8", "replace").rstrip("\r\n")


def _may_matter(word: bytes) -> bool:
    text = strip_colours(word.decode("utf-8", "replace")).lower()
    return bool(_WORD.search(text)) and not _CLOCK.match(text)


def _may_end_name(shape: bytes) -> bool:
    """Whether it may be the name of a group of tests, which ends with a colon."""
    return shape.endswith(_NAME_ENDS) and len(shape) < _READ


def _read_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, the last of all perhaps without its end. A line without end is cut."""
    rest = b""
    while part := stream.read(_BLOCK):
        at = part.rfind(b"\n") + 1
        if at:
            yield rest + part[:at]
            rest = part[at:]
        elif len(rest) < LINE_LIMIT:
            rest += part
    if rest:
        yield rest
