"""What is said with an agent about one dispatch: hello, a session, the prompt, its answer.

Knows the order of the protocol's requests and what an agent's errors mean. Refuses to know the
process at the other end and the clocks that watch it.
"""

from collections.abc import Callable
from contextlib import suppress

from acp import PROTOCOL_VERSION, RequestError, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    PromptResponse,
)
from pydantic import ValidationError

from interlock import __version__
from interlock.agents.acp import outcome
from interlock.agents.acp.host import Host
from interlock.agents.acp.terms import AcpSettings
from interlock.agents.carrier import Ask, Reply
from interlock.agents.cli.carrier import Session, WorkFolder
from interlock.agents.cli.start import ProcessSpec
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH

_MOST_TOKENS = 10**12
_LONGEST_ID = 1_000
_READ = "fs/read_text_file"
_WRITE = "fs/write_text_file"
_FILES: dict[str, tuple[str, ...]] = {"none": (), "read": (_READ,), "write": (_READ, _WRITE)}


def offers(terms: AcpSettings) -> tuple[str, ...]:
    """The requests an agent may make of us."""
    return ("session/request_permission", *_FILES[terms.files])


class Conversation:
    """One session and one prompt over an open line."""

    def __init__(
        self,
        connection: ClientSideConnection,
        host: Host,
        place: WorkFolder,
        ask: Ask,
        start: ProcessSpec,
        terms: AcpSettings,
    ) -> None:
        self._connection = connection
        self._host = host
        self._place = place
        self._ask = ask
        self._folder = str(start.cwd)
        self._resumes = terms.resume
        self._offers = offers(terms)
        self._session_id = ""
        self._request = "initialize"

    async def held(self, now: Callable[[], float]) -> Reply | None:
        """How it went; None if the line ended before."""
        try:
            return await self._hold()
        except RequestError as error:
            return outcome.errored(self._ask.dispatch_id, error, self._request, now())
        except (ValidationError, RecursionError):
            return self._failed(f"its response to {self._request} is not what the protocol says")
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
            return self._failed("the id of its session is empty or endless")
        self._place.keep(Session(self._session_id, self._folder))
        self._request = "session/prompt"
        self._host.listen(self._session_id)
        ended = await self._connection.prompt(
            prompt=[text_block(self._ask.prompt)], session_id=self._session_id
        )
        usage = Usage(tokens=_tokens(ended), money=self._host.money)
        message = self._host.final_message
        return outcome.ended(self._ask.dispatch_id, ended.stop_reason, message, usage)

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
