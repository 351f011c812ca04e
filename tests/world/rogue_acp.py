"""An agent that breaks the protocol, line by line, without any SDK: `rogue_acp.py SCENE`.

Answers the handshake as it should be, unless its scene says otherwise, and then does its worst.
"""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

OUT = sys.stdout.buffer
SESSION = "s-1"


def note(name: str, text: str) -> None:
    folder = os.environ.get("NOTES")
    if folder:
        with (Path(folder) / name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def put(line: bytes) -> None:
    OUT.write(line + b"\n")
    OUT.flush()


def send(**fields: Any) -> None:
    put(json.dumps({"jsonrpc": "2.0", **fields}).encode())


def take() -> dict[str, Any]:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(0)
    return dict(json.loads(line))


def update(session: str = SESSION, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": fields})


def says(text: str, session: str = SESSION) -> None:
    content = {"type": "text", "text": text}
    update(session, sessionUpdate="agent_message_chunk", content=content)


def wish(number: object, **fields: Any) -> None:
    call = {"toolCallId": "t", "kind": "execute", "title": "rm -rf /"}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": SESSION, "toolCall": call, "options": options, **fields}
    send(id=number, method="session/request_permission", params=params)


def lasts() -> None:
    note("pid", str(os.getpid()))
    while True:
        time.sleep(60)


def prompted() -> int:
    """The handshake; the id of the prompt that is open then."""
    for result in ({"protocolVersion": 1}, {"sessionId": SESSION}):
        send(id=asked(), result=result)
    return asked()


def asked() -> int:
    """The id of the next request, whatever else comes before it."""
    while "method" not in (message := take()):
        pass
    return int(message["id"])


def answered(number: int) -> None:
    says('{"n":1}')
    send(id=number, result={"stopReason": "end_turn"})


def garbage_before() -> None:
    for line in (
        b"Welcome!",
        b"\xff\xfe\x00",
        b"{",
        b"[1]",
        b"null",
        b'{"id": [1]}',
        b"[" * 100_000,
    ):
        put(line)
    put(b'{"id": {}, "result": 1}')
    put(b'{"id": 0, "error": "no"}')
    put(b'{"id": true, "result": {}}')
    put(b'{"method": 7}')
    put(b'{"jsonrpc":"2.0","method":"session/update","params":null}')
    put(b'{"jsonrpc":"2.0","method":"nobody/knows","params":{}}')
    put(b'{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{}}')
    put(b'{"jsonrpc":"2.0","id":99,"result":{"stopReason":"end_turn"}}')
    answered(prompted())


def garbage_for_ever() -> None:
    while True:
        put(b"no json at all")


def bad_welcome() -> None:
    send(id=take()["id"], result={"protocolVersion": "one"})
    lasts()


def null_welcome() -> None:
    send(id=take()["id"])
    lasts()


def bad_session() -> None:
    send(id=take()["id"], result={"protocolVersion": 1})
    send(id=take()["id"], result={"sessionId": ""})
    lasts()


def bad_stop() -> None:
    send(id=prompted(), result={"stopReason": "bored"})
    lasts()


def error_with_odd_words() -> None:
    send(id=prompted(), error={"code": "x", "message": ["\x1b[2J"], "data": {"a": [1]}})
    lasts()


def rate_limited() -> None:
    send(id=prompted(), error={"code": -32603, "message": "Internal error", "data": "HTTP 429"})
    lasts()


def endless_chunks() -> None:
    prompted()
    while True:
        says("x" * 10_000)


def endless_thoughts() -> None:
    prompted()
    content = {"type": "text", "text": "x" * 1_000_000}
    while True:
        update(sessionUpdate="agent_thought_chunk", content=content)


def endless_line() -> None:
    prompted()
    while True:
        OUT.write(b"x" * 1_000_000)


def huge_message() -> None:
    number = prompted()
    content = [{"type": "content", "content": {"type": "text", "text": "x" * 9_000_000}}]
    update(sessionUpdate="tool_call_update", toolCallId="t", status="completed", content=content)
    answered(number)


def huge_answer() -> None:
    number = prompted()
    says("x" * 2_000_000)
    send(id=number, result={"stopReason": "end_turn"})


def wrong_sessions() -> None:
    number = prompted()
    says('{"n":9}', "s-2")
    wish(1, sessionId="s-2")
    note("answer", json.dumps(take()))
    send(
        method="session/update",
        params={
            "sessionId": "s-2",
            "_meta": {"session_id": SESSION},
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": '{"n":8}'},
            },
        },
    )
    send(id=number, result={"stopReason": "end_turn"})
    lasts()


def forged_meta() -> None:
    number = prompted()
    read = {"toolCallId": "t", "kind": "read"}
    wish(1, _meta={"tool_call": read, "session_id": SESSION})
    note("answer", json.dumps(take()))
    answered(number)


def never_offered() -> None:
    number = prompted()
    for index, method in enumerate(
        ("fs/read_text_file", "fs/write_text_file", "terminal/create", "session/prompt", "_x")
    ):
        params = {"sessionId": SESSION, "path": "/etc/passwd", "command": "id", "content": ""}
        send(id=index, method=method, params=params)
        note("answers", str(take()["error"]["code"]))
    answered(number)


def permission_flood() -> None:
    prompted()
    for number in count():
        wish(number)


def deaf_flood() -> None:
    prompted()
    for number in count():
        send(id=number, method="x/y" * 30, params={})


def bad_wishes() -> None:
    number = prompted()
    wishes: list[dict[str, Any]] = [{"toolCall": 1}, {"options": "all"}, {"options": []}]
    for index, fields in enumerate([*wishes, {"toolCall": {"toolCallId": []}}]):
        wish(index, **fields)
        note("answers", json.dumps(take()))
    answered(number)


def exits_in_the_middle() -> None:
    prompted()
    says('{"n":1}')
    sys.stderr.write("out of memory\n")
    sys.exit(3)


def killed_in_the_middle() -> None:
    prompted()
    os.kill(os.getpid(), signal.SIGKILL)


def exits_at_once() -> None:
    sys.exit(0)


def closes_its_output() -> None:
    prompted()
    os.close(1)
    lasts()


def answers_and_stays() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("pid", str(os.getpid()))
    answered(prompted())
    lasts()


def leaves_a_daemon() -> None:
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    note("pid", str(child.pid))
    answered(prompted())


def hangs() -> None:
    prompted()
    lasts()


def hangs_stubbornly() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    prompted()
    lasts()


def never_answers() -> None:
    lasts()


def never_reads() -> None:
    send(id=0, result={"protocolVersion": 1})
    lasts()


def hangs_with_a_tool() -> None:
    prompted()
    update(sessionUpdate="tool_call", toolCallId="t", title="make", status="in_progress")
    lasts()


def late_words() -> None:
    number = prompted()
    send(id=number, result={"stopReason": "end_turn"})
    says('{"n":1}')
    lasts()


def two_messages() -> None:
    number = prompted()
    for message_id, text in (("m-1", '{"n":0}'), ("m-2", '{"n":'), ("m-2", "1}")):
        content = {"type": "text", "text": text}
        update(sessionUpdate="agent_message_chunk", content=content, messageId=message_id)
    send(id=number, result={"stopReason": "end_turn"})


def half_a_line() -> None:
    prompted()
    OUT.write(b'{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}')
    OUT.flush()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
