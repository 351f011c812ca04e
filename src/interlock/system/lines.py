"""A stream cut into lines, with a bound on what is kept of a line that does not end.

Knows bytes and newlines. Refuses to know encodings: NUL, ANSI and bad UTF-8 pass as they are.
"""

from interlock.agents.cli.sight import OutputLine

LONGEST = 8 * 1024 * 1024
"""Bytes of one line. The rest of a longer one is dropped as it comes."""


class Lines:
    """Feed it chunks, get whole lines; whatever the chunks, the lines are the same."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._is_cut = False
        self.count = 0
        self.cut = 0

    def feed(self, data: bytes, late: bool = False) -> list[OutputLine]:
        parts = data.split(b"\n")
        rest = parts.pop()
        lines: list[OutputLine] = []
        if parts:
            if self._held or self._is_cut:
                self._hold(parts[0])
                parts[0] = bytes(self._held)
                lines.append(self._line(parts[0], self._is_cut, late))
                self._held.clear()
                self._is_cut = False
                del parts[0]
            lines += [self._line(part, False, late) for part in parts]
        self._hold(rest)
        return lines

    def end(self, late: bool = False) -> list[OutputLine]:
        """The stream is over: what is held was a line without an end."""
        if not self._held and not self._is_cut:
            return []
        line = self._line(bytes(self._held), self._is_cut, late, half=True)
        self._held.clear()
        self._is_cut = False
        return [line]

    def _hold(self, data: bytes) -> None:
        room = self._longest - len(self._held)
        self._is_cut = self._is_cut or len(data) > room
        if room and data:
            self._held += data[:room]

    def _line(self, text: bytes, is_cut: bool, late: bool, half: bool = False) -> OutputLine:
        if len(text) > self._longest:
            text, is_cut = text[: self._longest], True
        self.count += 1
        self.cut += is_cut
        if text.endswith(b"\r") and not is_cut:
            text = text[:-1]
        return OutputLine(text, is_cut, half, late)
