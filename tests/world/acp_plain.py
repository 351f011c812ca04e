"""The agent of acp_agent.py, scene by scene, without the SDK: `acp_plain.py SCENE`.

The SDK takes most of a second to load, which every test of the carrier would pay. That both are
taken for the same agent is shown where the SDK's own is used: by the contract of carriers, and in
runs from the command line.
"""

import json
import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

ANSWER = f'{{"n":{os.environ["INTERLOCK_DISPATCH_ID"]}}}'
OPTIONS = [
    {"optionId": "forever", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
NUMBERS = count(1)
session_id = "s-1"
"""The session that is spoken in; another one once it is loaded."""


class RefusedError(Exception):
    """An error of the protocol, with its code."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def note(name: str, text: str) -> None:
    folder = os.environ.get("NOTES")
    if folder:
        with (Path(folder) / name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def send(**fields: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


def take() -> dict[str, Any]:
    """The next message; one that cancels is noted, and handed on."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    if message.get("method") == "session/cancel":
        note("cancelled", message["params"]["sessionId"])
    return message


def ask(method: str, **params: Any) -> Any:
    """What the client answers to a request of ours; RefusedError if it refuses."""
    number = next(NUMBERS)
    send(id=number, method=method, params={"sessionId": session_id, **params})
    while (message := take()).get("id") != number or "method" in message:
        pass
    if "error" in message:
        raise RefusedError(message["error"]["code"], message["error"]["message"])
    return message["result"]


def update(what: str, **fields: Any) -> None:
    changed = {"sessionUpdate": what, **fields}
    send(method="session/update", params={"sessionId": session_id, "update": changed})


def say(text: str, kind: str = "agent_message_chunk") -> None:
    update(kind, content={"type": "text", "text": text})


def answers() -> None:
    half = len(ANSWER) // 2
    say(ANSWER[:half])
    say(ANSWER[half:])


def thinks_aloud() -> None:
    say('I will look: {"n": 0}')
    update("tool_call", toolCallId="t", title="Read", kind="read", status="pending")
    say('{"thought": 1}', "agent_thought_chunk")
    say(f"\n```json\n{ANSWER}\n```\n")
    update("tool_call_update", toolCallId="t", status="completed")


def bills() -> dict[str, Any]:
    answers()
    usage = {"totalTokens": 120, "inputTokens": 100, "outputTokens": 20}
    return {"stopReason": "end_turn", "usage": usage}


def hangs() -> dict[str, Any]:
    note("pid", str(os.getpid()))
    while take().get("method") != "session/cancel":
        pass
    return {"stopReason": "cancelled"}


def asks() -> None:
    """Asks for what $WISH says, and answers with the option it got."""
    wish = json.loads(os.environ["WISH"])
    if "start" in wish:
        kind = wish.pop("start")
        update("tool_call", toolCallId="t", title="Work", kind=kind, status="pending")
    offered = wish.pop("options", "yes no forever").split()
    options = [each for each in OPTIONS if each["optionId"] in offered]
    note("pid", str(os.getpid()))
    call = {"toolCallId": "t", **wish}
    outcome = ask("session/request_permission", toolCall=call, options=options)["outcome"]
    say(json.dumps({"chosen": outcome.get("optionId", outcome["outcome"])}))


def files() -> None:
    """Reads and writes what $WISH says, and answers with what came of it."""
    output: list[str] = []
    for verb, named in json.loads(os.environ["WISH"]):
        path = named.replace("HERE", str(Path.cwd()))
        try:
            if verb == "read":
                output.append(ask("fs/read_text_file", path=path)["content"])
            else:
                ask("fs/write_text_file", path=path, content="written")
                output.append("ok")
        except RefusedError as error:
            output.append(f"{error.code}")
    say(json.dumps({"told": output}))


SCENES = {each.__name__: each for each in (answers, thinks_aloud, bills, hangs, asks, files)}


def handle(scene: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request of the client's."""
    global session_id  # noqa: PLW0603 - a process has one
    session_id = params.get("sessionId", session_id)
    if method == "initialize":
        note("capabilities", json.dumps(params.get("clientCapabilities", {})))
        version = 7 if scene == "other-version" else params["protocolVersion"]
        can = {"loadSession": scene in ("load", "load-fails")}
        return {"protocolVersion": version, "agentCapabilities": can}
    if method == "session/new":
        if scene == "login":
            raise RefusedError(-32000, "Authentication required", {"details": "no key"})
        note("sessions", f"new {params['cwd']}")
        return {"sessionId": session_id}
    if method == "session/load":
        if scene == "load-fails":
            raise RefusedError(-32002, "Resource not found", {"uri": params["sessionId"]})
        note("sessions", f"load {params['sessionId']}")
        say("old words of a session that goes on")
        return {}
    note("prompt", params["prompt"][0]["text"])
    note("environment", json.dumps(dict(os.environ)))
    if scene.startswith("stops_"):
        answers()
        return {"stopReason": scene.removeprefix("stops_")}
    return SCENES.get(scene.replace("-", "_"), answers)() or {"stopReason": "end_turn"}


def main(scene: str) -> None:
    while True:
        message = take()
        if "id" not in message or "method" not in message:
            continue
        try:
            result = handle(scene, message["method"], message["params"])
            send(id=message["id"], result=result)
        except RefusedError as error:
            fields = {"code": error.code, "message": str(error), "data": error.data}
            send(id=message["id"], error=fields)


if __name__ == "__main__":
    main(sys.argv[1])
