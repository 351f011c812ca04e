"""A small agent that speaks the Agent Client Protocol with the official SDK: `acp_agent.py SCENE`.

A scene says what it does with its prompt. It is a real process, started by the carrier under test;
what a test wants to know of it is written to the folder $NOTES, if there is one.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import acp
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
    Usage,
)

ANSWER = f'{{"n":{os.environ["INTERLOCK_DISPATCH_ID"]}}}'
OPTIONS = [
    PermissionOption(option_id="forever", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


def note(name: str, text: str) -> None:
    folder = os.environ.get("NOTES")
    if folder:
        with (Path(folder) / name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


class SmallAgent:
    """Answers as its scene says."""

    def __init__(self, scene: str) -> None:
        self.scene = scene
        self.cancelled = asyncio.Event()
        self.client: Any = None

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: Any = None, **_: Any
    ) -> Any:
        note("capabilities", client_capabilities.model_dump_json(by_alias=True))
        version = 7 if self.scene == "other-version" else protocol_version
        can = AgentCapabilities(load_session=self.scene in ("load", "load-fails"))
        return InitializeResponse(protocol_version=version, agent_capabilities=can)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if self.scene == "login":
            raise acp.RequestError.auth_required({"details": "no key"})
        note("sessions", f"new {cwd}")
        return NewSessionResponse(session_id="s-1")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        if self.scene == "load-fails":
            raise acp.RequestError.resource_not_found(session_id)
        note("sessions", f"load {session_id}")
        await self.say("old words of a session that goes on", session_id)
        return LoadSessionResponse()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        note("prompt", prompt[0].text)
        note("environment", json.dumps(dict(os.environ)))
        scene = getattr(self, self.scene.replace("-", "_"), self.answers)
        return await scene(session_id) or PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        note("cancelled", session_id)
        self.cancelled.set()

    async def say(self, text: str, session_id: str) -> None:
        await self.client.session_update(session_id, acp.update_agent_message_text(text))

    async def answers(self, session_id: str) -> PromptResponse | None:
        half = len(ANSWER) // 2
        await self.say(ANSWER[:half], session_id)
        await self.say(ANSWER[half:], session_id)
        return None

    async def thinks_aloud(self, session_id: str) -> None:
        thought = acp.update_agent_thought_text('{"thought": 1}')
        await self.say('I will look: {"n": 0}', session_id)
        await self.client.session_update(session_id, acp.start_read_tool_call("t", "Read", "/x"))
        await self.client.session_update(session_id, thought)
        await self.say(f"\n```json\n{ANSWER}\n```\n", session_id)
        await self.client.session_update(session_id, acp.update_tool_call("t", status="completed"))

    async def bills(self, session_id: str) -> PromptResponse:
        await self.answers(session_id)
        usage = Usage(total_tokens=120, input_tokens=100, output_tokens=20)
        return PromptResponse(stop_reason="end_turn", usage=usage)

    async def hangs(self, session_id: str) -> PromptResponse:
        note("pid", str(os.getpid()))
        await self.cancelled.wait()
        return PromptResponse(stop_reason="cancelled")

    async def asks(self, session_id: str) -> None:
        """Asks for what $WISH says, and answers with the option it got."""
        wish = json.loads(os.environ["WISH"])
        if "start" in wish:
            started = acp.start_tool_call("t", "Work", kind=wish.pop("start"))
            await self.client.session_update(session_id, started)
        offered = wish.pop("options", "yes no forever").split()
        options = [each for each in OPTIONS if each.option_id in offered]
        call = ToolCallUpdate.model_validate({"toolCallId": "t", **wish})
        note("pid", str(os.getpid()))
        found = await self.client.request_permission(
            session_id=session_id, tool_call=call, options=options
        )
        chosen = getattr(found.outcome, "option_id", found.outcome.outcome)
        await self.say(json.dumps({"chosen": chosen}), session_id)

    async def files(self, session_id: str) -> None:
        """Reads and writes what $WISH says, and answers with what came of it."""
        output: list[str] = []
        for verb, named in json.loads(os.environ["WISH"]):
            path = named.replace("HERE", str(Path.cwd()))
            try:
                if verb == "read":
                    found = await self.client.read_text_file(session_id=session_id, path=path)
                    output.append(found.content)
                else:
                    await self.client.write_text_file(
                        session_id=session_id, path=path, content="written"
                    )
                    output.append("ok")
            except acp.RequestError as error:
                output.append(f"{error.code}")
        await self.say(json.dumps({"told": output}), session_id)


for _reason in ("max_tokens", "max_turn_requests", "refusal", "cancelled"):

    async def _stops(self: SmallAgent, session_id: str, reason: Any = _reason) -> PromptResponse:
        await self.answers(session_id)
        return PromptResponse(stop_reason=reason)

    setattr(SmallAgent, f"stops_{_reason}", _stops)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast(acp.Agent, SmallAgent(sys.argv[1]))))
