"""The conversation with an agent about one dispatch: hello, a session, the prompt, its answer.

`Conversation` keeps the order of the protocol's requests. `Host` handles the agent's reports and
requests meanwhile. The final message is what the agent wrote after its last tool call, in its own
session, while our prompt was open. The policy decides on permissions, then a person. Only a turn
that ended by itself has an answer.
"""

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

from interlock.carriers.acp.settings import AcpSettings, Policy
from interlock.carriers.cli.outcome import (
    LIMIT_TEXT,
    explain_no_object,
    find_time_zone,
    parse_reset_time,
)
from interlock.carriers.cli.timeouts import (
    Alive,
    StreamSign,
    ToolBegan,
    ToolEnded,
    WaitsForPermission,
)
from interlock.carriers.cli.work_folder import Session, WorkFolder
from interlock.carriers.contract import MAX_ANSWER, Ask, Reply
from interlock.carriers.queries import PermissionDecision, PermissionRequest
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.signals.answer_text import NoObject, find_answer_object
from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder
from interlock.version import __version__

STOP_REASONS: Mapping[str, tuple[str, str]] = {
    "end_turn": ("", ""),
    "max_tokens": (UNREADABLE, "the answer was cut off at the agent's token limit; be brief"),
    "max_turn_requests": (CRASH, "the agent used up the model requests of one turn"),
    "refusal": (CRASH, "the agent refused to answer"),
    "cancelled": (CRASH, "the agent says the turn was cancelled, but nobody cancelled it"),
}
"""The failure and the reason for each of the protocol's stop reasons; `end_turn` is no failure."""

_AUTH_REQUIRED = -32000
_LIMIT_CODES = (429, 529)
_MAX_ERROR = 2_000


def build_reply(dispatch_id: int, stop: str, message: str, usage: Usage) -> Reply:
    """Build the reply of a turn that came to an end."""
    failure, reason = STOP_REASONS[stop]
    if failure:
        return Reply(dispatch_id, failure=failure, reason=reason, usage=usage)
    found = find_answer_object(message, MAX_ANSWER)
    if isinstance(found, NoObject):
        reason = explain_no_object(found, message)
        return Reply(dispatch_id, failure=UNREADABLE, reason=reason, usage=usage)
    return Reply(dispatch_id, found, usage=usage)


def build_error_reply(dispatch_id: int, error: RequestError, request: str, now: float) -> Reply:
    """Build the reply when the agent answered one of our requests with an error."""
    text = _format_error(error)
    if error.code == _AUTH_REQUIRED:
        reason = f"the agent needs a login: start it once by hand and log in ({text})"
        return Reply(dispatch_id, failure=CRASH, reason=reason)
    reason = f"the agent failed at {request}: {text}"
    if error.code in _LIMIT_CODES or LIMIT_TEXT.search(text):
        until = parse_reset_time(text, now, find_time_zone) or 0
        return Reply(dispatch_id, failure=RATE_LIMIT, reason=reason, until=until)
    return Reply(dispatch_id, failure=CRASH, reason=reason)


def _format_error(error: RequestError) -> str:
    words = f"{error} ({error.data})" if error.data else f"{error}"
    return " ".join(words.split())[:_MAX_ERROR]


MAX_PERMISSION_REQUESTS = 200
"""The number of permissions an agent may ask for within one dispatch."""
_MAX_TOOL_CALLS = 10_000
_MAX_TITLE = 300
_MAX_DETAIL = 4_000
_FINISHED = ("completed", "failed")
_OPTION_KINDS: dict[PermissionDecision, tuple[str, ...]] = {
    # Never `allow_always`: what comes after must be asked again.
    "allow": ("allow_once",),
    "reject": ("reject_once", "reject_always"),
}

AskPermission = Callable[[PermissionRequest], Awaitable[PermissionDecision]]
"""Ask a person; any error on the way is a no."""


class Host:
    """The SDK's client side, for one session.

    `on_sign` gets the signs that the timeouts need, `fail` the failure and the reason when the
    agent breaks a limit.
    """

    def __init__(
        self,
        policy: Policy,
        ask_permission: AskPermission,
        files: OpenFolder | None,
        on_sign: Callable[[StreamSign], None],
        fail: Callable[[str, str], None],
    ) -> None:
        self.open_requests = 0
        self.money = 0.0
        self._policy = policy
        self._ask_permission = ask_permission
        self._files = files
        self._on_sign = on_sign
        self._fail = fail
        self._session_id: str | None = None
        self._kinds: dict[str, str | None] = {}
        self._permission_count = 0
        self._text: list[str] = []
        self._size = 0
        self._message_id: str | None = None

    @property
    def final_message(self) -> str:
        return "".join(self._text)

    def open_session(self, session_id: str) -> None:
        """Count messages of that session from now on; earlier ones do not count."""
        self._session_id = session_id
        self._clear_text()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if session_id != self._session_id:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text), message_id=message_id):
                self._add_text(text, message_id)
            case ToolCallStart():
                self._clear_text()
                self._note_tool(update)
            case ToolCallProgress():
                self._note_tool(update)
            case UsageUpdate(cost=cost) if cost is not None and cost.currency == "USD":
                self.money = max(self.money, cost.amount)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self._check_session(session_id)
        self._permission_count += 1
        if self._permission_count > MAX_PERMISSION_REQUESTS:
            self._fail(CRASH, f"it asked for permission more than {MAX_PERMISSION_REQUESTS} times")
            return _choose_option("reject", options)
        known_kind = self._kinds.get(tool_call.tool_call_id)
        verdict = self._policy.find_verdict(tool_call.kind, known_kind)
        if verdict != "ask":
            return _choose_option(verdict, options)
        request = _build_permission_request(tool_call, known_kind)
        self.open_requests += 1
        self._on_sign(WaitsForPermission(f"{request.kind}: {request.title}"))
        try:
            return _choose_option(await self._ask_permission(request), options)
        finally:
            self.open_requests -= 1
            self._on_sign(Alive())

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        try:
            text = read_text(self._require_files(session_id), path, line, limit)
        except SourceError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        return ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        try:
            write_text(self._require_files(session_id), path, content)
        except SourceError as error:
            raise RequestError.invalid_params({"details": str(error)}) from None
        return WriteTextFileResponse()

    def _require_files(self, session_id: str) -> OpenFolder:
        self._check_session(session_id)
        if self._files is None:
            raise RequestError.invalid_params({"details": "no files are shared"})
        return self._files

    def _check_session(self, session_id: str) -> None:
        if self._session_id is None or session_id != self._session_id:
            raise RequestError.invalid_params({"details": "this is not the open session"})

    def _add_text(self, text: str, message_id: str | None) -> None:
        if message_id is not None and message_id != self._message_id:
            self._clear_text()
            self._message_id = message_id
        self._text.append(text)
        self._size += len(text.encode(errors="replace"))
        if self._size > MAX_ANSWER:
            self._clear_text()
            self._fail(UNREADABLE, f"the answer is longer than {MAX_ANSWER:,} bytes")

    def _clear_text(self) -> None:
        self._text = []
        self._size = 0
        self._message_id = None

    def _note_tool(self, tool: ToolCallStart | ToolCallProgress) -> None:
        """Note which tools run, and of which kind; the first kind that is named stays."""
        if tool.status in _FINISHED:
            self._on_sign(ToolEnded(tool.tool_call_id))
        elif isinstance(tool, ToolCallStart) or tool.status is not None:
            self._on_sign(ToolBegan(tool.tool_call_id))
        if self._kinds.setdefault(tool.tool_call_id, tool.kind) is None:
            self._kinds[tool.tool_call_id] = tool.kind
        if len(self._kinds) > _MAX_TOOL_CALLS:
            self._fail(CRASH, f"it called more than {_MAX_TOOL_CALLS:,} tools")


LARGEST_FILE = 1024 * 1024
"""The largest file that an agent reads or writes through us, in bytes."""


def read_text(
    files: OpenFolder, path: str, line: int | None = None, limit: int | None = None
) -> str:
    """Return a file's text, or `limit` lines of it from a line (the first is 1)."""
    try:
        text = files.read(Path(path), LARGEST_FILE).decode()
    except UnicodeDecodeError:
        raise SourceError(f"{path!r} is not UTF-8 text") from None
    except OSError as error:
        raise SourceError(f"{path!r}: {error.strerror or 'there is no such file'}") from None
    if line is None and limit is None:
        return text
    first = max(line or 1, 1) - 1
    lines = text.splitlines(keepends=True)
    return "".join(lines[first : None if limit is None else first + limit])


def write_text(files: OpenFolder, path: str, text: str) -> None:
    """Replace a file's text, whole or not at all."""
    content = text.encode("utf-8", "replace")
    if len(content) > LARGEST_FILE:
        raise SourceError(f"a file may have at most {LARGEST_FILE:,} bytes")
    try:
        files.write(Path(path), content, make=True)
    except OSError as error:
        raise SourceError(f"{path!r}: {error.strerror}") from None


def _choose_option(
    decision: PermissionDecision, options: list[PermissionOption]
) -> RequestPermissionResponse:
    """Return the agent's own option for a decision; without one, cancel the turn."""
    for kind in _OPTION_KINDS[decision]:
        for option in options:
            if option.kind == kind:
                outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=outcome)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def _build_permission_request(tool: ToolCallUpdate, known_kind: str | None) -> PermissionRequest:
    """Build the request that a person reads before deciding. All of it is untrusted and bounded."""
    particulars: dict[str, Any] = {}
    if tool.locations:
        particulars["paths"] = [each.path for each in tool.locations]
    if tool.raw_input is not None:
        particulars["input"] = tool.raw_input
    detail = msgspec.json.encode(particulars, enc_hook=str).decode() if particulars else ""
    if len(detail) > _MAX_DETAIL:
        detail = f"{detail[:_MAX_DETAIL]}… ({len(detail):,} characters in all)"
    title = " ".join((tool.title or "").split())[:_MAX_TITLE]
    return PermissionRequest(
        tool.kind or known_kind or "other", title or "(it does not say what)", detail
    )


_MAX_TOKENS = 10**12
_MAX_SESSION_ID = 1_000
_READ_FILE = "fs/read_text_file"
_WRITE_FILE = "fs/write_text_file"
_FILE_REQUESTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "read": (_READ_FILE,),
    "write": (_READ_FILE, _WRITE_FILE),
}


def list_offered_requests(settings: AcpSettings) -> tuple[str, ...]:
    """Return the requests that an agent may make of us."""
    return ("session/request_permission", *_FILE_REQUESTS[settings.files])


class Conversation:
    """One session and one prompt over an open connection."""

    def __init__(
        self,
        connection: ClientSideConnection,
        host: Host,
        work_folder: WorkFolder,
        ask: Ask,
        cwd: Path,
        settings: AcpSettings,
    ) -> None:
        self._connection = connection
        self._host = host
        self._work_folder = work_folder
        self._ask = ask
        self._folder = str(cwd)
        self._may_resume = settings.resume
        self._offered = list_offered_requests(settings)
        self._session_id = ""
        self._request = "initialize"

    async def run(self, now: Callable[[], float]) -> Reply | None:
        """Hold the conversation; return its reply, or None if the connection ended before."""
        try:
            return await self._run()
        except RequestError as error:
            return build_error_reply(self._ask.dispatch_id, error, self._request, now())
        except (ValidationError, RecursionError):
            return self._build_failure(
                f"its response to {self._request} does not follow the protocol"
            )
        except ConnectionError:
            return None

    async def cancel(self) -> None:
        """Tell the agent to stop, if it is at work."""
        if self._request == "session/prompt":
            with suppress(ConnectionError):
                await self._connection.cancel(session_id=self._session_id)

    async def _run(self) -> Reply:
        hello = await self._connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=self._build_capabilities(),
            client_info=Implementation(name="interlock", version=__version__),
        )
        if hello.protocol_version != PROTOCOL_VERSION:
            return self._build_failure(
                f"it speaks version {hello.protocol_version} of the Agent Client Protocol, "
                f"Interlock speaks {PROTOCOL_VERSION}"
            )
        self._session_id = await self._open_session(hello.agent_capabilities or AgentCapabilities())
        if not 0 < len(self._session_id) <= _MAX_SESSION_ID:
            return self._build_failure("its session id is empty or too long")
        self._work_folder.keep_session(Session(self._session_id, self._folder))
        self._request = "session/prompt"
        self._host.open_session(self._session_id)
        ended = await self._connection.prompt(
            prompt=[text_block(self._ask.prompt)], session_id=self._session_id
        )
        usage = Usage(tokens=_count_tokens(ended), money=self._host.money)
        message = self._host.final_message
        return build_reply(self._ask.dispatch_id, ended.stop_reason, message, usage)

    async def _open_session(self, can: AgentCapabilities) -> str:
        """Open the session that this step of the case had before, if the agent can load it, else a
        new one."""
        known = self._work_folder.read_session() if self._may_resume and can.load_session else None
        if known is not None and known.folder == self._folder:
            self._request = "session/load"
            with suppress(RequestError, ValidationError):
                await self._connection.load_session(
                    cwd=self._folder, session_id=known.session_id, mcp_servers=[]
                )
                return known.session_id
        self._request = "session/new"
        return (await self._connection.new_session(cwd=self._folder, mcp_servers=[])).session_id

    def _build_capabilities(self) -> ClientCapabilities:
        files = FileSystemCapabilities(
            read_text_file=_READ_FILE in self._offered, write_text_file=_WRITE_FILE in self._offered
        )
        return ClientCapabilities(fs=files, terminal=False)

    def _build_failure(self, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=CRASH, reason=reason)


def _count_tokens(ended: PromptResponse) -> int:
    """Return the tokens that the agent reports; 0 for an impossible number."""
    return min(ended.usage.total_tokens, _MAX_TOKENS) if ended.usage else 0
