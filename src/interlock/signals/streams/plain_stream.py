"""An agent that prints text and nothing else: every line is a word of it, and none is the last.

Knows nothing of turns, tools or ends; only the process says when it is over.
"""

from interlock.signals.streams.stream_events import AssistantText, StreamEvent


class PlainStream:
    """All lines are one message."""

    def decode(self, line: str) -> list[StreamEvent]:
        return [AssistantText(line, "text")]
