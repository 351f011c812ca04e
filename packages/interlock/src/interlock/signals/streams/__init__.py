"""Decode an agent CLI's JSON lines into typed events and one final message.

`StreamReader` hides lines, chunks, damage, and which message is the last word of a turn that ended
by itself. It knows no process: a carrier feeds it and reports when it stopped the agent itself.
"""

from typing import Final, Literal, Protocol

import msgspec

from interlock.signals.streams.claude import ClaudeDecoder, CursorDecoder
from interlock.signals.streams.events import (
    AssistantText,
    BadLine,
    OtherEvent,
    SessionStarted,
    StreamError,
    StreamEvent,
    TurnEnd,
)
from interlock.signals.streams.others import (
    CodexDecoder,
    CopilotDecoder,
    GeminiDecoder,
    OpencodeDecoder,
)


class PlainDecoder:
    """An agent that prints plain text: every line is its word, and only the exit ends it."""

    def decode(self, line: str) -> list[StreamEvent]:
        return [AssistantText(line, "text")]


StreamFormat = Literal[
    "claude-stream-json",
    "codex-jsonl",
    "copilot-json",
    "cursor-stream-json",
    "gemini-stream-json",
    "opencode-json",
    "plain-text",
]
LONGEST_LINE: Final = 1 << 26


class Decoder(Protocol):
    def decode(self, line: str) -> list[StreamEvent]: ...


FORMATS: Final[dict[str, type[Decoder]]] = {
    "claude-stream-json": ClaudeDecoder,
    "codex-jsonl": CodexDecoder,
    "copilot-json": CopilotDecoder,
    "cursor-stream-json": CursorDecoder,
    "gemini-stream-json": GeminiDecoder,
    "opencode-json": OpencodeDecoder,
    "plain-text": PlainDecoder,
}


class StreamReader:
    """Read one process. `final_message` is None unless the last turn ended by itself."""

    def __init__(self, stream_format: StreamFormat) -> None:
        self._decoder = FORMATS[stream_format]()
        self._rest: list[str] = []
        self._count = 0
        self._end: TurnEnd | None = None
        self._stopped = False

    @property
    def final_message(self) -> str | None:
        return self._end.text if self._end and self._end.ended_by_itself else None

    @property
    def end(self) -> TurnEnd | None:
        """The last end of a turn, if nothing came after it."""
        return self._end

    @property
    def why_missing(self) -> str:
        """The reason there is no final message, for the refusal."""
        if self.final_message is not None:
            return ""
        if self._end and self._end.reason:
            return self._end.reason
        return "the session was stopped" if self._stopped else "the session ended without a result"

    def feed(self, text: str) -> list[StreamEvent]:
        head, newline, tail = text.rpartition("\n")
        if not newline:
            self._rest.append(text)
            return []
        lines = "".join([*self._rest, head]).split("\n")
        self._rest = [tail] if tail else []
        return [event for line in lines for event in self._read_line(line)]

    def close(self, ended_by_itself: bool) -> list[StreamEvent]:
        """End the stream; a line without its newline counts only after a proper end."""
        rest, self._rest = "".join(self._rest), []
        if not rest.strip():
            return []
        if ended_by_itself:
            return self._read_line(rest)
        self._count += 1
        return [BadLine("the stream ended in the middle of this line", rest[:500], self._count)]

    def stop(self) -> None:
        """Note that we end the agent now: nothing it says from here on counts."""
        self._stopped = True

    def _read_line(self, line: str) -> list[StreamEvent]:
        self._count += 1
        line = line.strip(" \t\r")
        if not line:
            return []
        events = self._decode(line)
        for event in events:
            self._note(event)
        return events

    def _decode(self, line: str) -> list[StreamEvent]:
        if len(line) > LONGEST_LINE:
            return [BadLine("the line is too long", line[:500], self._count)]
        try:
            return self._decoder.decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
            return [BadLine(str(error), line[:500], self._count)]
        except RecursionError:
            return [BadLine("the JSON is nested too deep", line[:500], self._count)]

    def _note(self, event: StreamEvent) -> None:
        if self._stopped:
            return
        if isinstance(event, TurnEnd):
            self._end = event
        elif isinstance(event, SessionStarted) or _is_continuation(event):
            self._end = None


def _is_continuation(event: StreamEvent) -> bool:
    """Return True if the agent continues after a result, which then was not its last word."""
    if isinstance(event, StreamError):
        return not event.passing
    if isinstance(event, OtherEvent):
        return event.name == "turn.started"
    return isinstance(event, AssistantText) and not event.by_subagent
