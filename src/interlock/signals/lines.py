"""Line signals from a stream: a plain command's output, or an agent's messages.

Knows lines, chunks and whose last word counts. Refuses to know processes and JSON: a carrier feeds
it text and says how the stream ended. How the text is cut into chunks never changes the result.
"""

import re
from typing import Final, Literal, TypeGuard

import msgspec

from interlock.signals.legacy_block import LegacyBlock, is_rule, open_block
from interlock.signals.line_payload import LineRefusal, LineSignal, canonical_line, read_payload
from interlock.signals.line_rows import PREFIX
from interlock.signals.own_words import units
from interlock.signals.reading import Reason

__all__ = ["LineReader", "LineRefusal", "LineSignal", "canonical_line"]

Found = LineSignal | LineRefusal
LONGEST_LINE: Final = 1 << 16
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\-_])")
_NEAR: Final = re.compile(
    r"(?:[ \t]|\x1b\[[0-9;]*+m)*+sage_signal[ \t]*+:", re.IGNORECASE | re.ASCII
)
_LAST_WORD: Final = "EPIC_COMPLETE"


class LineReader:
    """Reads one session. In `message` mode a message ends with `end_message` or `close`."""

    def __init__(self, mode: Literal["raw", "message"] = "raw") -> None:
        self._mode = mode
        self._rest: list[str] = []
        self._lines = _Lines()
        self._seen: set[tuple[str, str]] = set()
        self._last_words: list[LineSignal] = []

    def feed(self, text: str) -> list[Found]:
        """Take the next piece of the stream; in raw mode, give what its whole lines say."""
        head, newline, tail = text.rpartition("\n")
        if self._mode == "message" or not newline:
            self._keep(text)
            return []
        whole = "".join([*self._rest, head])
        self._rest = []
        self._keep(tail)
        return self._heard(self._lines.take_all(whole))

    def _keep(self, text: str) -> None:
        """Hold an unfinished line, but of an endless one only what is needed to refuse it."""
        held = sum(map(len, self._rest)) if self._mode == "raw" else 0
        if text and held <= LONGEST_LINE:
            self._rest.append(text if self._mode == "message" else text[: LONGEST_LINE + 1])

    def end_message(self) -> list[Found]:
        """The agent has finished one message and may go on with another."""
        text, self._rest = "".join(self._rest), []
        passed = [self._too_early(signal) for signal in self._last_words]
        self._last_words = []
        found = self._lines.take_message(text.removeprefix("\ufeff"))
        now = [one for one in found if not self._is_last_word(one)]
        self._last_words = [one for one in found if self._is_last_word(one)]
        return [*passed, *self._heard(now)]

    def close(self, ended_by_itself: bool) -> list[Found]:
        """The stream is over. What was cut off does not count."""
        if self._mode == "message":
            return self._close_message(ended_by_itself)
        rest, self._rest = "".join(self._rest), []
        found = self._lines.take_all(rest) if rest and ended_by_itself else []
        found += self._lines.end()
        if rest and not ended_by_itself and _NEAR.match(_plain(rest)):
            sentence = "the stream was cut off in this line"
            where = self._lines.count + 1
            found.append(LineRefusal(sentence, rest[:500], where, Reason.MISSING))
        return self._heard(found)

    def _close_message(self, ended_by_itself: bool) -> list[Found]:
        if not ended_by_itself and self._rest:
            self._rest = ["".join(self._rest).rpartition("\n")[0]]
        found = self.end_message() if self._rest else []
        held, self._last_words = self._last_words, []
        if ended_by_itself:
            return [*found, *self._heard(list[Found](held))]
        return [*found, *(self._too_early(signal) for signal in held)]

    def _is_last_word(self, one: Found) -> TypeGuard[LineSignal]:
        return isinstance(one, LineSignal) and one.type == _LAST_WORD

    def _too_early(self, signal: LineSignal) -> LineRefusal:
        text = f"{PREFIX}{signal.type}:{signal.payload}"
        sentence = f"{signal.type} counts only from the final message"
        return LineRefusal(sentence, text, signal.where, Reason.STALE)

    def _heard(self, found: list[Found]) -> list[Found]:
        return [self._marked(one) for one in found]

    def _marked(self, one: Found) -> Found:
        if isinstance(one, LineRefusal):
            return one
        said = (one.type, one.payload)
        repeated = said in self._seen
        self._seen.add(said)
        return msgspec.structs.replace(one, repeated=True) if repeated else one


class _Lines:
    """Line by line: single-line signals, and the blocks that older tools print."""

    def __init__(self) -> None:
        self.count = 0
        self._after_rule = False
        self._block: LegacyBlock | None = None

    def take_all(self, text: str) -> list[Found]:
        """Whole lines of raw output, without the last newline."""
        if self._block is None and "signal" not in text.lower():
            last = _plain(text[text.rfind("\n") + 1 :])
            self.count += text.count("\n") + 1
            self._after_rule = is_rule(last)
            return []
        found: list[Found] = []
        for line in text.split("\n"):
            self.count += 1
            long = len(line) > LONGEST_LINE
            found += self._take_long(line) if long else self._take(_plain(line))
        return found

    def take_message(self, text: str) -> list[Found]:
        """The live lines of one message; what is inert ends a block that was open."""
        found: list[Found] = []
        self.count, self._after_rule = 0, False
        if "signal" in text.lower():
            source = "\n" + text.replace("\r\n", "\n")
            for unit in units(source):
                self.count += 1
                found += self._take(unit.text.rstrip(" \t")) if unit.kind == "line" else self.end()
                self.count += unit.text.count("\n")
        return [*found, *self.end()]

    def end(self) -> list[Found]:
        block, self._block, self._after_rule = self._block, None, False
        return [block.refuse("the block is not closed")] if block else []

    def _take_long(self, line: str) -> list[Found]:
        found = self.end()
        if _NEAR.match(line):
            sentence = f"a signal has at most {LONGEST_LINE} characters"
            found.append(LineRefusal(sentence, line[:500], self.count))
        return found

    def _take(self, line: str) -> list[Found]:
        block = self._block
        if block is None:
            return self._take_single(line)
        if is_rule(line):
            self._block = None
            return [block.read()]
        if block.take(line):
            return []
        self._block = None
        return [block.refuse("the block is damaged"), *self._take_single(line)]

    def _take_single(self, line: str) -> list[Found]:
        after_rule, self._after_rule = self._after_rule, is_rule(line)
        self._block = open_block(line, after_rule, self.count)
        if self._block or not _NEAR.match(line):
            return []
        return [_single(line, self.count)]


def _plain(line: str) -> str:
    line = line.removesuffix("\r")
    return (_ANSI.sub("", line) if "\x1b" in line else line).rstrip(" \t")


def _single(line: str, where: int) -> Found:
    if not line.startswith(PREFIX):
        return LineRefusal(f"a signal starts at column 0 with {PREFIX}", line[:500], where)
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    found = read_payload(kind, payload, where)
    return LineRefusal(found, line[:500], where) if isinstance(found, str) else found
