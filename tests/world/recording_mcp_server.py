"""A tiny MCP server for real clients: answers, and writes down every message it was sent.

Plain lines of JSON over stdio, without a library, so that a test sees the client's own bytes.
`python mcp_witness.py DIARY [REVISION]`: the revision it answers with instead of the client's.
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = [
    {"name": "count", "description": "Count the letters.", "inputSchema": {"type": "object"}},
    {
        "name": "look",
        "description": "Look only.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
]


def main(diary: Path, revision: str) -> None:
    for line in sys.stdin:
        with diary.open("a", encoding="utf-8") as pages:
            pages.write(line)
        message = json.loads(line)
        if "id" in message and "method" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": _result(message, revision)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


def _result(message: dict[str, Any], revision: str) -> dict[str, Any]:
    if message["method"] == "initialize":
        return {
            "protocolVersion": revision or message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "witness", "version": "1"},
        }
    if message["method"] == "tools/list":
        return {"tools": TOOLS}
    if message["method"] == "tools/call":
        return {"content": [{"type": "text", "text": "seven"}]}
    return {}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
