"""What a scripted model says, whatever API it says it over.

A script is asked once per request and gives one answer: words, tool calls, a fault of the line, a
refusal by status. It sees the request as the model would: prompt, tool results, tools on offer.
Knows no HTTP and no provider's JSON.
"""

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec


class ToolResult(msgspec.Struct, frozen=True):
    """What the client says a tool gave."""

    call_id: str
    text: str
    failed: bool = False


class Asked(msgspec.Struct, frozen=True):
    """One request, as a model sees it."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    prompt: str
    """The last words of the user."""
    results: tuple[ToolResult, ...]
    """What tools gave, in all of the conversation."""
    tools: tuple[str, ...]
    streamed: bool


class Call(msgspec.Struct, frozen=True):
    """A tool call; `server` names the MCP server the tool is of."""

    tool: str
    input: dict[str, Any]
    server: str = ""


class Says(msgspec.Struct, frozen=True):
    """A whole answer: thinking first, then words, then calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    stop: str = ""
    tokens: tuple[int, int] = (10, 5)
    headers: dict[str, str] = {}


class Line(Enum):
    """How a connection fails. The silent ones last until the server is stopped."""

    SILENT = "no answer at all"
    HELD = "headers, then nothing"
    HALF = "half the words, then nothing"
    CUT = "half the words, then the connection is closed"
    ENDLESS = "all words, but never the end of the answer"
    PAGE = "a web page"


class Fault(msgspec.Struct, frozen=True):
    """The line fails while `text` is said."""

    line: Line
    text: str = "Words that are never finished."


class Refuses(msgspec.Struct, frozen=True):
    """The provider says no: a status with a body and headers of its dialect."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = {}


Answer = Says | Fault | Refuses
Script = Callable[[Asked], Answer]


def in_order(*answers: Answer) -> Script:
    """One after the other; the last one for ever."""
    left = list(answers)
    turn = threading.Lock()

    def script(_asked: Asked) -> Answer:
        with turn:
            return left.pop(0) if len(left) > 1 else left[0]

    return script


def always(text: str) -> Script:
    return in_order(Says(text))
