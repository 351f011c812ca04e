"""Let commands inside a supervised session send signals to its coordinator.

Anything that a session prints can be forged; this socket needs a token.
"""

import asyncio
import hmac
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from interlock.signals.catalogue import PREFIX
from interlock.signals.lines import read_payload
from interlock.system.errors import SourceError

SOCKET_VARIABLE: Final = "INTERLOCK_CHANNEL"
TOKEN_VARIABLE: Final = "INTERLOCK_TOKEN"  # noqa: S105 -- the variable's name, not a token
LONGEST: Final = 1 << 17
_PATIENCE: Final = 10.0
_MOST_CONNECTIONS: Final = 16
_LONGEST_PATH: Final = 100

OnSignal = Callable[[str, str], None]


class ChannelMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request, on one line."""

    token: str
    type: str
    payload: str = ""


class ChannelReply(msgspec.Struct, frozen=True):
    """A reply, on one line: accepted, or the reason for the refusal."""

    ok: bool
    error: str = ""


class Channel:
    """A unix socket in a private folder; `on_signal` gets each signal's type and payload."""

    def __init__(self, folder: Path, token: str, on_signal: OnSignal) -> None:
        if not token:
            raise ValueError("a channel needs a token")
        self.path = folder / "channel.sock"
        self._token = token.encode()
        self._on_signal = on_signal
        self._server: asyncio.Server
        self._connections = 0

    def environment(self) -> dict[str, str]:
        """Return the variables that give the session access to the channel."""
        return {SOCKET_VARIABLE: str(self.path), TOKEN_VARIABLE: self._token.decode()}

    async def start(self) -> None:
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise SourceError(f"{self.path} is too long for a socket: use a shorter folder")
        _make_private_folder(self.path.parent)
        with suppress(FileNotFoundError):
            self.path.unlink()
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path, limit=LONGEST)
        finally:
            os.umask(before)

    async def close(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        with suppress(FileNotFoundError):
            self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            answer = await self._read_message(reader)
            writer.write(msgspec.json.encode(answer) + b"\n")
            with suppress(ConnectionError):
                await writer.drain()
        finally:
            self._connections -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _read_message(self, reader: asyncio.StreamReader) -> ChannelReply:
        if self._connections > _MOST_CONNECTIONS:
            return ChannelReply(False, "too many connections at once")
        try:
            async with asyncio.timeout(_PATIENCE):
                line = await reader.readline()
        except TimeoutError:
            return ChannelReply(False, "no line came in time")
        except (ValueError, ConnectionError):
            return ChannelReply(False, f"a line has at most {LONGEST} bytes")
        return self._handle_line(line)

    def _handle_line(self, line: bytes) -> ChannelReply:
        try:
            message = msgspec.json.decode(line, type=ChannelMessage)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
            return ChannelReply(False, "write one line of JSON: token, type, payload")
        if not hmac.compare_digest(message.token.encode(), self._token):
            return ChannelReply(False, "the token is not this session's")
        found = read_payload(message.type, message.payload, 1)
        if isinstance(found, str):
            return ChannelReply(False, found)
        self._on_signal(message.type, message.payload)
        return ChannelReply(True)


def _make_private_folder(folder: Path) -> None:
    """Make a folder private to this user; raise SourceError if it belongs to another."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise SourceError(f"{folder} is not a folder of this user")
    folder.chmod(0o700)


def send_signal(path: str, token: str, kind: str, payload: str, patience: float = _PATIENCE) -> str:
    """Send a signal; return "" if it was accepted, else why not."""
    line = msgspec.json.encode(ChannelMessage(token, kind, payload)) + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ours:
            ours.settimeout(patience)
            ours.connect(path)
            ours.sendall(line)
            with ours.makefile("rb") as theirs:
                answer = msgspec.json.decode(theirs.readline(LONGEST), type=ChannelReply)
    except TimeoutError:
        return "the coordinator does not answer"
    except OSError as error:
        return f"the channel cannot be used: {error.strerror or error}"
    except (msgspec.DecodeError, msgspec.ValidationError):
        return "the coordinator hung up without an answer"
    return "" if answer.ok else answer.error or "the coordinator refused it"


def deliver_line(line: str) -> str | None:
    """Send a line to the coordinator of our session.

    Return "" if it was delivered, the reason if it was not, and None outside a session.
    """
    path, token = os.environ.get(SOCKET_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    if not path and not token:
        return None
    if not path or not token:
        return f"{TOKEN_VARIABLE if path else SOCKET_VARIABLE} is not set"
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    return send_signal(path, token, kind, payload)
