"""The first words of the protocol, said before the SDK is loaded, which takes about a second.

Clients drop a server that is not up by then. What is said here is what the SDK's server says, and a
test keeps them equal; everything else waits for it.
"""

from typing import Any, Final

import msgspec

from interlock import __version__
from interlock.agents.mcp.tools import INSTRUCTIONS, TEMPLATES, specs

NAME: Final = "interlock"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that begin with `initialize`. The current one does not, and is the SDK's alone."""
CAPABILITIES: Final[dict[str, Any]] = {
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600


class Head(msgspec.Struct):
    """What must be read of any message to answer it."""

    jsonrpc: str = ""
    method: str = ""
    id: int | str | float | None = None
    params: Any = None


class Handshake:
    """Answers what can be said without the SDK; remembers what the SDK must hear all the same."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.answered: list[int | str | float | None] = []
        self._version = ""

    def greet(self, line: bytes) -> bytes | None:
        """The answer to this line, or None if it must wait for the SDK."""
        try:
            head = msgspec.json.decode(line, type=Head)
        except (ValueError, RecursionError):
            return None
        if head.method == "initialize" and not self._version and not self.heard:
            return self._initialized(head, line)
        if head.method == "notifications/initialized" and self._version:
            self.heard.append(line)
            return b""
        if head.method == "tools/list" and self._version and _plain(head.params):
            return answer(head.id, {"tools": specs()})
        if head.method == "resources/templates/list" and self._version and _plain(head.params):
            return answer(head.id, {"resourceTemplates": list(TEMPLATES)})
        return None

    def _initialized(self, head: Head, line: bytes) -> bytes | None:
        """A client that does not say who it is gets its answer from the SDK."""
        params = head.params if isinstance(head.params, dict) else {}
        asked = params.get("protocolVersion")
        known = isinstance(params.get("clientInfo"), dict) and isinstance(asked, str)
        if not known or head.id is None:
            return None
        self._version = str(asked) if asked in HANDSHAKES else HANDSHAKES[-1]
        self.heard.append(line)
        self.answered.append(head.id)
        return answer(head.id, initialized(self._version))


def initialized(version: str) -> dict[str, Any]:
    """The result of `initialize`."""
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "version": __version__},
        "instructions": INSTRUCTIONS,
    }


def _plain(params: Any) -> bool:
    return not params or set(params) <= {"_meta"}


def answer(number: int | str | float | None, result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "result": result}) + b"\n"


def complaint(number: int | str | float | None, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error}) + b"\n"
