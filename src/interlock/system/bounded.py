"""Text of any length within a bound: its head, its tail, and a line that says what was cut.

Knows sizes in characters. Refuses to know what the text means.
"""

from collections import deque
from typing import Final

LOG_BOUND: Final = 256 * 1024
"""How much of one failure's log is kept, in characters."""


class ClippedText:
    """Takes text in pieces; holds no more than about its bound, however much comes."""

    __slots__ = ("_bound", "_head", "_head_size", "_tail", "_tail_size", "total")

    def __init__(self, bound: int = LOG_BOUND) -> None:
        self.total = 0
        self._bound = bound
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0

    def add(self, piece: str) -> None:
        self.total += len(piece)
        room = self._bound // 2 - self._head_size
        if room > 0:
            taken, piece = piece[:room], piece[room:]
            self._head.append(taken)
            self._head_size += len(taken)
        if piece:
            self._add_to_tail(piece)

    def _add_to_tail(self, piece: str) -> None:
        keep = self._bound - self._bound // 2
        piece = piece[-keep:]
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= keep:
            self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        return self.total > self._bound

    def text(self) -> str:
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.truncated:
            return head + tail
        tail = tail[-(self._bound - self._bound // 2) :]
        cut = self.total - len(head) - len(tail)
        return f"{head}\n[{cut:,} characters cut]\n{tail}"


def bounded(text: str, bound: int = LOG_BOUND) -> tuple[str, bool]:
    """The text within the bound, and whether something was cut."""
    if len(text) <= bound:
        return text, False
    kept = ClippedText(bound)
    kept.add(text)
    return kept.text(), True
