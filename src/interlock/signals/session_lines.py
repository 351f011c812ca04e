"""Line signals of an agent's session, from its decoded stream.

Knows which words are the agent's own and where one message ends and the next begins. Refuses to
know any CLI's JSON: the stream decoders know that.
"""

from interlock.signals.lines import Found, LineReader
from interlock.signals.streams.stream import StreamFormat, StreamReader
from interlock.signals.streams.stream_events import AssistantText, StreamEvent, TurnEnd


class SessionLines:
    """Feeds the agent's own messages, one by one, to a reader of line signals."""

    def __init__(self) -> None:
        self._reader = LineReader("message")
        self._message_id: str | None = None

    def take(self, events: list[StreamEvent]) -> list[Found]:
        found: list[Found] = []
        for event in events:
            if isinstance(event, AssistantText) and not event.by_subagent:
                found += self._take_text(event)
            elif isinstance(event, TurnEnd) and self._message_id is not None:
                found += self._reader.end_message()
                self._message_id = None
        return found

    def close(self, ended_by_itself: bool) -> list[Found]:
        """The session is over; its last word counts only if it had one."""
        ended = self._reader.end_message() if self._message_id is not None else []
        return [*ended, *self._reader.close(ended_by_itself)]

    def _take_text(self, event: AssistantText) -> list[Found]:
        """A message comes in pieces that carry its id; one without an id is a whole message."""
        goes_on = bool(event.message_id) and event.message_id == self._message_id
        ended = [] if goes_on or self._message_id is None else self._reader.end_message()
        self._message_id = event.message_id
        self._reader.feed(event.text if event.text.endswith("\n") else event.text + "\n")
        return ended


def read_session(text: str, stream_format: StreamFormat, ended_by_itself: bool) -> list[Found]:
    """Every line signal of a whole recorded session, in the order in which it was said."""
    stream, lines = StreamReader(stream_format), SessionLines()
    found = lines.take([*stream.feed(text), *stream.close(ended_by_itself)])
    return [*found, *lines.close(ended_by_itself and stream.final_message is not None)]
