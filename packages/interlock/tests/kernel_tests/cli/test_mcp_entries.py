"""Entries for agents' clients: added to what is there, and never over it."""

import json
import tomllib
from pathlib import Path

import pytest

from interlock.cli.init import FILES
from tests.world.command_line import World

CLAUDE = {"type": "stdio", "command": "interlock", "args": ["mcp"]}
CODEX = {
    "command": "interlock",
    "args": ["mcp"],
    "default_tools_approval_mode": "approve",
}


def init(world: World, agent: str) -> tuple[int, str, str]:
    result = world.say("init", "--agent", agent)
    return result.code, result.out, result.err


def text(world: World, agent: str) -> str:
    return (world.folder / FILES[agent]).read_text(encoding="utf-8")


def test_each_client_gets_its_entry(world: World) -> None:
    world.say("init", "--agent", "claude", "--agent", "cursor", "--agent", "codex")
    assert json.loads(text(world, "claude")) == {"mcpServers": {"interlock": CLAUDE}}
    plain = {"command": "interlock", "args": ["mcp"]}
    assert json.loads(text(world, "cursor")) == {"mcpServers": {"interlock": plain}}
    assert tomllib.loads(text(world, "codex")) == {"mcp_servers": {"interlock": CODEX}}
    assert not list(world.folder.rglob("*.before-interlock"))


def test_other_servers_and_settings_stay(world: World) -> None:
    theirs = {"note": "größer", "mcpServers": {"db": {"command": "db"}}}
    world.write(".mcp.json", json.dumps(theirs))
    world.write(".codex/config.toml", '# ours\nmodel = "m"\n[mcp_servers.db]\ncommand = "db"')
    init(world, "claude")
    init(world, "codex")
    found = json.loads(text(world, "claude"))
    assert found == {**theirs, "mcpServers": {"db": {"command": "db"}, "interlock": CLAUDE}}
    assert text(world, "codex").startswith(
        '# ours\nmodel = "m"\n[mcp_servers.db]\ncommand = "db"\n'
    )
    servers = tomllib.loads(text(world, "codex"))["mcp_servers"]
    assert servers == {"db": {"command": "db"}, "interlock": CODEX}
    kept = world.folder / ".mcp.json.before-interlock"
    assert json.loads(kept.read_text(encoding="utf-8")) == theirs
    before = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    assert init(world, "claude")[0] == init(world, "codex")[0] == 0
    after = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    assert {p for p in after if after[p] != before.get(p)} <= {Path(world.folder / "AGENTS.md")}


@pytest.mark.parametrize(
    ("agent", "content"),
    [
        ("claude", '{"mcpServers": {"interlock": {"command": "/opt/interlock", "args": ["mcp"]}}}'),
        ("cursor", '{"mcpServers": {"interlock": {"url": "http://localhost"}}}'),
        ("codex", '[mcp_servers.interlock]\ncommand = "/opt/interlock"\n'),
    ],
)
def test_an_entry_of_the_users_own_is_kept(world: World, agent: str, content: str) -> None:
    world.write(FILES[agent], content)
    code, out, _ = init(world, agent)
    assert code == 0
    assert f"kept       {FILES[agent]}\n" in out
    assert text(world, agent) == content


@pytest.mark.parametrize(
    ("agent", "content", "sentence"),
    [
        ("claude", "// mine\n{}", ".mcp.json is not JSON"),
        ("claude", "[]", ".mcp.json has no object 'mcpServers'"),
        ("claude", '{"mcpServers": []}', ".mcp.json has no object 'mcpServers'"),
        ("claude", "[" * 100_000, ".mcp.json is not JSON"),
        ("cursor", '{"mcpServers": 7}', ".cursor/mcp.json has no object 'mcpServers'"),
        ("codex", "model = ", ".codex/config.toml is not TOML"),
        ("codex", "mcp_servers = 7\n", ".codex/config.toml has no table mcp_servers"),
        ("codex", 'mcp_servers = {db = {command = "x"}}\n', "nothing can be added to"),
    ],
)
def test_what_cannot_be_understood_is_left(
    world: World, agent: str, content: str, sentence: str
) -> None:
    world.write(FILES[agent], content)
    code, _, err = init(world, agent)
    assert code == 2
    assert sentence in err
    assert "Add by hand: " in err
    assert text(world, agent) == content
