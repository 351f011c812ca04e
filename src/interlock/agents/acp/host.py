"""The agent's host: what an agent may tell and ask of us while it works on one dispatch.

Knows which words are its final message: those after its last tool call, in its own session, while
our prompt is open. Asks the policy, then a human, for leave. Refuses to know processes and time.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WriteTextFileResponse,
)

from interlock.agents.acp.terms import Policy
from interlock.agents.carrier import MAX_ANSWER
from interlock.agents.cli.timeouts import Alive, Sight, ToolBegan, ToolEnded, WaitsForPermission
from interlock.agents.queries import Leave, PermissionRequest
from interlock.engine.circuit import CRASH, UNREADABLE
from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder

LARGEST_FILE = 1024 * 1024
"""Bytes of a file that an agent reads or writes through us."""
MOST_WISHES = 200
"""Requests for permission within one dispatch."""
_MOST_TOOLS = 10_000
_LONGEST_TITLE = 300
_LONGEST_DETAIL = 4_000
_OVER = ("completed", "failed")
_OPTIONS: dict[Leave, tuple[str, ...]] = {
    # Never `allow_always`: what comes after must be asked again.
    "allow": ("allow_once",),
    "reject": ("reject_once", "reject_always"),
}

AskLeave = Callable[[PermissionRequest], Awaitable[Leave]]
"""Asks a human; whatever goes wrong on the way is a no."""


class Host:
    """The SDK's client side, for one session. `see` is told what the clocks want to know, `fail`
    the failure and the reason when the agent goes too far."""

    def __init__(
        self,
        policy: Policy,
        ask_leave: AskLeave,
        files: OpenFolder | None,
        see: Callable[[Sight], None],
        fail: Callable[[str, str], None],
    ) -> None:
        self.asking = 0
        self.money = 0.0
        self._policy = policy
        self._ask_leave = ask_leave
        self._files = files
        self._see = see
        self._fail = fail
        self._session_id: str | None = None
        self._kinds: dict[str, str | None] = {}
        self._wishes = 0
        self._words: list[str] = []
        self._size = 0
        self._message_id: str | None = None

    @property
    def final_message(self) -> str:
        return "".join(self._words)

    def listen(self, session_id: str) -> None:
        """From now on what is said in that session counts; what was said before does not."""
        self._session_id = session_id
        self._forget()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if session_id != self._session_id:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text), message_id=message_id):
                self._hear(text, message_id)
            case ToolCallStart():
                self._forget()
                self._note(update)
            case ToolCallProgress():
                self._note(update)
            case UsageUpdate(cost=cost) if cost is not None and cost.currency == "USD":
                self.money = max(self.money, cost.amount)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self._expect(session_id)
        self._wishes += 1
        if self._wishes > MOST_WISHES:
            self._fail(CRASH, f"it asked for permission more than {MOST_WISHES} times")
            return _chosen("reject", options)
        told = self._kinds.get(tool_call.tool_call_id)
        verdict = self._policy.verdict(tool_call.kind, told)
        if verdict != "ask":
            return _chosen(verdict, options)
        wish = _wish(tool_call, told)
        self.asking += 1
        self._see(WaitsForPermission(f"{wish.kind}: {wish.title}"))
        try:
            return _chosen(await self._ask_leave(wish), options)
        finally:
            self.asking -= 1
            self._see(Alive())

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        try:
            text = read_text(self._shared(session_id), path, line, limit)
        except SourceError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        return ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        try:
            write_text(self._shared(session_id), path, content)
        except SourceError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        return WriteTextFileResponse()

    def _shared(self, session_id: str) -> OpenFolder:
        self._expect(session_id)
        if self._files is None:
            raise RequestError.invalid_params({"details": "no files are shared"})
        return self._files

    def _expect(self, session_id: str) -> None:
        if self._session_id is None or session_id != self._session_id:
            raise RequestError.invalid_params({"details": "this is not the open session"})

    def _hear(self, text: str, message_id: str | None) -> None:
        if message_id is not None and message_id != self._message_id:
            self._forget()
            self._message_id = message_id
        self._words.append(text)
        self._size += len(text.encode(errors="replace"))
        if self._size > MAX_ANSWER:
            self._forget()
            self._fail(UNREADABLE, f"the answer is longer than {MAX_ANSWER:,} bytes")

    def _forget(self) -> None:
        self._words = []
        self._size = 0
        self._message_id = None

    def _note(self, tool: ToolCallStart | ToolCallProgress) -> None:
        """Which tools run, and what kind each said it is; the kind told first stays."""
        if tool.status in _OVER:
            self._see(ToolEnded(tool.tool_call_id))
        elif isinstance(tool, ToolCallStart) or tool.status is not None:
            self._see(ToolBegan(tool.tool_call_id))
        if self._kinds.setdefault(tool.tool_call_id, tool.kind) is None:
            self._kinds[tool.tool_call_id] = tool.kind
        if len(self._kinds) > _MOST_TOOLS:
            self._fail(CRASH, f"it called more than {_MOST_TOOLS:,} tools")


def read_text(
    files: OpenFolder, path: str, line: int | None = None, limit: int | None = None
) -> str:
    """A file's text, or that many lines of it from that line (the first is 1)."""
    try:
        text = files.read(Path(path), LARGEST_FILE).decode()
    except UnicodeDecodeError:
        raise SourceError(f"{path!r} is no UTF-8 text") from None
    except OSError as error:
        raise SourceError(f"{path!r}: {error.strerror or 'there is no such file'}") from None
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    lines = text.splitlines(keepends=True)
    return "".join(lines[first : None if limit is None else first + limit])


def write_text(files: OpenFolder, path: str, text: str) -> None:
    """The text takes the place of what is there, whole or not at all."""
    content = text.encode("utf-8", "replace")
    if len(content) > LARGEST_FILE:
        raise SourceError(f"a file may have {LARGEST_FILE:,} bytes")
    try:
        files.write(Path(path), content, make=True)
    except OSError as error:
        raise SourceError(f"{path!r}: {error.strerror}") from None


def _chosen(leave: Leave, options: list[PermissionOption]) -> RequestPermissionResponse:
    """The agent's own option for that leave; without one it is as if the turn were cancelled."""
    for kind in _OPTIONS[leave]:
        for option in options:
            if option.kind == kind:
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def _wish(tool: ToolCallUpdate, told: str | None) -> PermissionRequest:
    """What a human reads before deciding: nothing of it is trusted, all of it is bounded."""
    particulars: dict[str, Any] = {}
    if tool.locations:
        particulars["paths"] = [each.path for each in tool.locations]
    if tool.raw_input is not None:
        particulars["input"] = tool.raw_input
    detail = msgspec.json.encode(particulars, enc_hook=str).decode() if particulars else ""
    if len(detail) > _LONGEST_DETAIL:
        detail = f"{detail[:_LONGEST_DETAIL]}… ({len(detail):,} characters in all)"
    title = " ".join((tool.title or "").split())[:_LONGEST_TITLE]
    return PermissionRequest(
        tool.kind or told or "other", title or "(it does not say what)", detail
    )
