"""What is said with an agent about one dispatch: hello, a session, the prompt, its answer.

`Conversation` keeps the order of the protocol's requests. `Host` is what the agent may tell and ask
of us meanwhile: its final message is what it said after its last tool call, in its own session,
while our prompt is open; for leave it asks the policy, then a human. A table says what a stop
reason means; only a turn that ended by itself has an answer. Processes and time are elsewhere.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from acp import PROTOCOL_VERSION, RequestError, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentCapabilities,
    AgentMessageChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    PermissionOption,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WriteTextFileResponse,
)
from pydantic import ValidationError

from interlock.agents.acp.settings import AcpSettings, Policy
from interlock.agents.carrier import MAX_ANSWER, Ask, Reply
from interlock.agents.cli.carrier import Session, WorkFolder, zone_named
from interlock.agents.cli.outcome import reset_time
from interlock.agents.cli.process import ProcessSpec
from interlock.agents.cli.timeouts import Alive, Sight, ToolBegan, ToolEnded, WaitsForPermission
from interlock.agents.queries import Leave, PermissionRequest
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.signals.answer_text import NoObject, object_in
from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder
from interlock.version import __version__

STOPS: Mapping[str, tuple[str, str]] = {
    "end_turn": ("", ""),
    "max_tokens": (UNREADABLE, "the answer was cut off at the agent's token limit; be brief"),
    "max_turn_requests": (CRASH, "the agent used up the model requests of one turn"),
    "refusal": (CRASH, "the agent refused to answer"),
    "cancelled": (CRASH, "the agent says the turn was cancelled, but nobody cancelled it"),
}
"""The protocol's stop reasons: the failure each is, and why. `end_turn` is none."""

_AUTH_REQUIRED = -32000
_TOO_MANY = 429
_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|usage limit|quota", re.IGNORECASE)
_LONGEST = 2_000
_A_FEW = 200


def build_reply(dispatch_id: int, stop: str, message: str, usage: Usage) -> Reply:
    """The reply of a turn that came to an end."""
    failure, reason = STOPS[stop]
    if failure:
        return Reply(dispatch_id, failure=failure, reason=reason, usage=usage)
    found = object_in(message, MAX_ANSWER)
    if isinstance(found, NoObject):
        began = " ".join(message.split())[:_A_FEW]
        reason = f"{found.sentence} (it began: {began})" if began else found.sentence
        return Reply(dispatch_id, failure=UNREADABLE, reason=reason, usage=usage)
    return Reply(dispatch_id, found, usage=usage)


def build_error_reply(dispatch_id: int, error: RequestError, request: str, now: float) -> Reply:
    """The reply when the agent answered one of our requests with an error."""
    told = _told(error)
    if error.code == _AUTH_REQUIRED:
        reason = f"the agent needs a login: start it once by hand and log in ({told})"
        return Reply(dispatch_id, failure=CRASH, reason=reason)
    reason = f"the agent failed at {request}: {told}"
    if error.code == _TOO_MANY or _LIMITED.search(told):
        until = reset_time(told, now, zone_named) or 0
        return Reply(dispatch_id, failure=RATE_LIMIT, reason=reason, until=until)
    return Reply(dispatch_id, failure=CRASH, reason=reason)


def _told(error: RequestError) -> str:
    words = f"{error} ({error.data})" if error.data else f"{error}"
    return " ".join(words.split())[:_LONGEST]


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


LARGEST_FILE = 1024 * 1024
"""Bytes of a file that an agent reads or writes through us."""


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


_MOST_TOKENS = 10**12
_LONGEST_ID = 1_000
_READ = "fs/read_text_file"
_WRITE = "fs/write_text_file"
_FILES: dict[str, tuple[str, ...]] = {"none": (), "read": (_READ,), "write": (_READ, _WRITE)}


def offers(settings: AcpSettings) -> tuple[str, ...]:
    """The requests an agent may make of us."""
    return ("session/request_permission", *_FILES[settings.files])


class Conversation:
    """One session and one prompt over an open line."""

    def __init__(
        self,
        connection: ClientSideConnection,
        host: Host,
        place: WorkFolder,
        ask: Ask,
        start: ProcessSpec,
        settings: AcpSettings,
    ) -> None:
        self._connection = connection
        self._host = host
        self._place = place
        self._ask = ask
        self._folder = str(start.cwd)
        self._resumes = settings.resume
        self._offers = offers(settings)
        self._session_id = ""
        self._request = "initialize"

    async def held(self, now: Callable[[], float]) -> Reply | None:
        """How it went; None if the line ended before."""
        try:
            return await self._hold()
        except RequestError as error:
            return build_error_reply(self._ask.dispatch_id, error, self._request, now())
        except (ValidationError, RecursionError):
            return self._failed(f"its response to {self._request} does not follow the protocol")
        except ConnectionError:
            return None

    async def cancel(self) -> None:
        """Tell the agent to stop, if it is at work."""
        if self._request == "session/prompt":
            with suppress(ConnectionError):
                await self._connection.cancel(session_id=self._session_id)

    async def _hold(self) -> Reply:
        hello = await self._connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=self._capabilities(),
            client_info=Implementation(name="interlock", version=__version__),
        )
        if hello.protocol_version != PROTOCOL_VERSION:
            return self._failed(
                f"it speaks version {hello.protocol_version} of the Agent Client Protocol, "
                f"Interlock speaks {PROTOCOL_VERSION}"
            )
        self._session_id = await self._session(hello.agent_capabilities or AgentCapabilities())
        if not 0 < len(self._session_id) <= _LONGEST_ID:
            return self._failed("its session id is empty or too long")
        self._place.keep(Session(self._session_id, self._folder))
        self._request = "session/prompt"
        self._host.listen(self._session_id)
        ended = await self._connection.prompt(
            prompt=[text_block(self._ask.prompt)], session_id=self._session_id
        )
        usage = Usage(tokens=_tokens(ended), money=self._host.money)
        message = self._host.final_message
        return build_reply(self._ask.dispatch_id, ended.stop_reason, message, usage)

    async def _session(self, can: AgentCapabilities) -> str:
        """The session this step of the case had before, where the agent can take it up; else a
        new one."""
        known = self._place.session() if self._resumes and can.load_session else None
        if known is not None and known.folder == self._folder:
            self._request = "session/load"
            with suppress(RequestError, ValidationError):
                await self._connection.load_session(
                    cwd=self._folder, session_id=known.session_id, mcp_servers=[]
                )
                return known.session_id
        self._request = "session/new"
        return (await self._connection.new_session(cwd=self._folder, mcp_servers=[])).session_id

    def _capabilities(self) -> ClientCapabilities:
        files = FileSystemCapabilities(
            read_text_file=_READ in self._offers, write_text_file=_WRITE in self._offers
        )
        return ClientCapabilities(fs=files, terminal=False)

    def _failed(self, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=CRASH, reason=reason)


def _tokens(ended: PromptResponse) -> int:
    """What the turn cost, as the agent says; nobody's word is taken for an impossible number."""
    return min(ended.usage.total_tokens, _MOST_TOKENS) if ended.usage else 0
