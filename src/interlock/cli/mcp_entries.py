"""The entries by which agents' clients find `interlock mcp`, put into the files they read.

Knows three clients. Adds one entry and changes nothing else: what is there already is the user's.
No entry keeps a client from starting where Interlock is not installed. A file that cannot be
understood is refused, with what to write by hand.
"""

import json
import tomllib
from typing import Any, Final

from interlock.system.errors import SourceError

FILES: Final = {
    "claude": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "codex": ".codex/config.toml",
}
NAME: Final = "interlock"
_SERVERS: Final = "mcpServers"
_COMMAND: Final[dict[str, Any]] = {"command": "interlock", "args": ["mcp"]}
_ENTRIES: Final = {"claude": {"type": "stdio", **_COMMAND}, "cursor": _COMMAND}
_TOML: Final = """\
[mcp_servers.interlock]
command = "interlock"
args = ["mcp"]
default_tools_approval_mode = "approve"
"""


def with_entry(agent: str, before: str | None) -> str:
    """The file's text with our entry; the same text if it has one by that name."""
    if agent == "codex":
        return _with_table(before or "")
    return _with_member(agent, before)


def has_own(agent: str, before: str | None) -> bool:
    """Whether an entry of that name stands there that we did not write."""
    if before is None:
        return False
    if agent == "codex":
        found = _toml(before).get("mcp_servers", {})
        mine = tomllib.loads(_TOML)["mcp_servers"][NAME]
        return isinstance(found, dict) and found.get(NAME, mine) != mine
    servers = _json(agent, before).get(_SERVERS, {})
    return bool(servers.get(NAME, _ENTRIES[agent]) != _ENTRIES[agent])


def _with_member(agent: str, before: str | None) -> str:
    found = {} if before is None else _json(agent, before)
    servers = found.setdefault(_SERVERS, {})
    if before is not None and NAME in servers:
        return before
    servers[NAME] = _ENTRIES[agent]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _json(agent: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _unclear(agent, f"is no JSON ({error})") from None
    if not isinstance(found, dict) or not isinstance(found.get(_SERVERS, {}), dict):
        raise _unclear(agent, f"has no object {_SERVERS!r}")
    return found


def _with_table(before: str) -> str:
    found = _toml(before)
    if NAME in found.get("mcp_servers", {}):
        return before
    gap = "\n" if before and not before.endswith("\n\n") else ""
    after = f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{gap}{_TOML}"
    servers = dict(found.get("mcp_servers", {}))
    mine = tomllib.loads(_TOML)["mcp_servers"]
    try:
        kept = tomllib.loads(after) == {**found, "mcp_servers": servers | mine}
    except tomllib.TOMLDecodeError:
        kept = False
    if not kept:
        raise _unclear("codex", "writes mcp_servers in a way that nothing can be added to")
    return after


def _toml(text: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unclear("codex", f"is no TOML ({error})") from None
    if not isinstance(found.get("mcp_servers", {}), dict):
        raise _unclear("codex", "has no table mcp_servers")
    return found


def _unclear(agent: str, what: str) -> SourceError:
    mine = _TOML if agent == "codex" else json.dumps({_SERVERS: {NAME: _ENTRIES[agent]}})
    entry = "; ".join(mine.splitlines())
    return SourceError(f"{FILES[agent]} {what}; nothing was changed. Add by hand: {entry}")
