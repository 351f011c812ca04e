"""How the real clients speak MCP: the revision they ask for, and what they let a model call."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.world.agent_cli import Claude, Codex
from tests.world.models.script import Call, Says, in_order

WITNESS = Path(__file__).parents[1] / "world" / "recording_mcp_server.py"


def count(tool: str = "count") -> Says:
    return Says("I count.", (Call(tool, {"text": "letters"}, server="witness"),))


def diary(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "diary").read_text().splitlines()]


def claude_flags(folder: Path, revision: str = "") -> tuple[str, ...]:
    entry = {"command": sys.executable, "args": [str(WITNESS), str(folder / "diary"), revision]}
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"witness": entry}}))
    return ("--mcp-config", str(file), "--strict-mcp-config")


def codex_flags(folder: Path, **more: object) -> tuple[str, ...]:
    args = json.dumps([str(WITNESS), str(folder / "diary")])
    output = "".join(f",{name}={json.dumps(value)}" for name, value in more.items())
    entry = f'{{command="{sys.executable}",args={args}{output}}}'
    return ("-s", "read-only", "-c", f"mcp_servers.witness={entry}")


def test_claude_asks_for_its_revision_and_calls(claude: Claude, tmp_path: Path) -> None:
    claude.model.script = in_order(count(), Says("Seven."))
    allowed = ("--allowedTools", "mcp__witness__count")
    wait = {"MCP_CONNECTION_NONBLOCKING": "0"}
    ran = claude.run("Count.", *claude_flags(tmp_path), *allowed, env=wait)
    assert ran.events[0]["mcp_servers"] == [{"name": "witness", "status": "connected"}]
    assert diary(tmp_path)[0]["params"]["protocolVersion"] == "2025-11-25"
    assert claude.model.asked[-1].results[0].text == "seven"
    assert ran.last["permission_denials"] == []


@pytest.mark.parametrize("tool", ["count", "look"])
def test_claude_denies_a_tool_that_is_not_allowed(
    claude: Claude, tmp_path: Path, tool: str
) -> None:
    claude.model.script = in_order(count(tool), Says("Seven."))
    wait = {"MCP_CONNECTION_NONBLOCKING": "0"}
    ran = claude.run("Count.", *claude_flags(tmp_path), env=wait)
    assert (ran.code, len(ran.last["permission_denials"])) == (0, 1)
    assert "tools/call" not in [message.get("method") for message in diary(tmp_path)]


@pytest.mark.parametrize(
    ("revision", "status"), [("2025-06-18", "connected"), ("2026-07-28", "failed")]
)
def test_claude_takes_older_revisions_only(
    claude: Claude, tmp_path: Path, revision: str, status: str
) -> None:
    wait = {"MCP_CONNECTION_NONBLOCKING": "0"}
    ran = claude.run("Count.", *claude_flags(tmp_path, revision), env=wait)
    assert (ran.code, ran.events[0]["mcp_servers"][0]["status"]) == (0, status)


def test_codex_asks_for_its_revision_and_calls(codex: Codex, tmp_path: Path) -> None:
    codex.model.script = in_order(count(), Says("Seven."))
    flags = codex_flags(tmp_path, required=True, default_tools_approval_mode="approve")
    ran = codex.run("Count.", *flags)
    assert ran.code == 0
    assert diary(tmp_path)[0]["params"]["protocolVersion"] == "2025-06-18"
    assert "seven" in codex.model.asked[-1].results[0].text
    item = ran.of("item.completed/mcp_tool_call")[0]["item"]
    assert (item["server"], item["tool"], item["status"]) == ("witness", "count", "completed")


@pytest.mark.parametrize(("tool", "status"), [("count", "failed"), ("look", "completed")])
def test_codex_calls_only_what_reads_unless_approved(
    codex: Codex, tmp_path: Path, tool: str, status: str
) -> None:
    codex.model.script = in_order(count(tool), Says("Seven."))
    ran = codex.run("Count.", *codex_flags(tmp_path, required=True))
    assert ran.code == 0
    assert ran.of("item.completed/mcp_tool_call")[0]["item"]["status"] == status
