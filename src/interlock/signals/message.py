"""A message as it is read: its source, what was asked, and the signal blocks in it.

Knows lines, blocks and the question the message answers. Refuses to judge any of it.
"""

import msgspec

from interlock.signals.grammar import SIGNALS, SignalName, spoken, tag_nonce
from interlock.signals.reading import Reason, SignalRefused


class ExpectedReply(msgspec.Struct, frozen=True):
    """What the message answers: who was asked, about what, and under which nonce."""

    role: str
    task_id: str | None
    request_id: str | None = None
    nonce: str | None = None
    strict: bool = False


class SignalBlock(msgspec.Struct, frozen=True):
    """Signal lines with only blank lines between them; its body runs from `start` to `end`."""

    said: tuple[SignalName, ...]
    start: int
    end: int


class Message(msgspec.Struct, frozen=True):
    """The source begins with a newline, so that every line does."""

    source: str
    asked: ExpectedReply
    blocks: tuple[SignalBlock, ...]

    def line_at(self, start: int) -> int:
        """The number of the line whose newline stands at `start`."""
        return self.source.count("\n", 0, start) + 1

    def refuse(self, reason: Reason, sentence: str, start: int | None = None) -> SignalRefused:
        return SignalRefused(reason, sentence, None if start is None else self.line_at(start))


def open_message(text: str, asked: ExpectedReply) -> Message:
    source = "\n" + text.removeprefix("\ufeff").replace("\r\n", "\n")
    if asked.nonce:
        source = tag_nonce(source, asked.nonce)
    return Message(source, asked, _blocks(source))


def _blocks(source: str) -> tuple[SignalBlock, ...]:
    groups: list[list[SignalName]] = []
    for line in SIGNALS.find(source):
        said = spoken(line)
        if groups and not source[groups[-1][-1].end : said.start].strip(" \t\n"):
            groups[-1].append(said)
        else:
            groups.append([said])
    ends = [*(group[0].start for group in groups[1:]), len(source)]
    return tuple(
        SignalBlock(tuple(group), group[-1].end, end)
        for group, end in zip(groups, ends, strict=False)
    )
