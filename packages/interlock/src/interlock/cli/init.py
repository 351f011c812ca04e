"""The verb init: set a project up, and teach its agents the protocols.

It writes only what is missing. A file that differs is kept and named; --force replaces skills,
never the user's own files. In the files where clients look for MCP servers, it adds only the entry
of `interlock mcp`; a file that cannot be parsed is refused, with the text to add by hand.
"""

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from interlock.cli.app import app
from interlock.cli.output import Json, echo, echo_json, echo_note
from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock.version import __version__

if TYPE_CHECKING:
    from interlock.signals.skills import Agent


class AgentName(StrEnum):
    """The agents whose skills can be written."""

    CLAUDE = "claude"
    CURSOR = "cursor"
    CODEX = "codex"


SETTINGS = """\
# Settings of this project. Environment variables INTERLOCK_* and flags go before them.

# db = ".interlock/interlock.db"
# parallel = 8

# Who answers which role: a command, or a script of prepared answers.
# [agents]
# author = "exec:my-agent --headless"

# What a run may cost, what a role of it, and what all runs of a day. At 80 % you are warned; at
# 100 % the run rests, and its inbox asks whether to raise it.
# [budget]
# dispatches = 500
# time = "2h"
# [budget.role.author]
# tokens = 200_000
# [budget.day]
# money = 5

# Who may answer at gates, and who is told when something waits.
# [inbox]
# answerers = ["ann", "bob"]
# [notify]
# command = ["notify-send", "Interlock"]
# webhook = "https://example.com/hook"
"""
CIRCUIT = """\
# A question is answered, and somebody else judges the answer. Change it, then try
#   interlock circuit verify first
circuit: first
start: answer
why: The smallest circuit with a second pair of eyes.

ends:
  accepted: healthy
  given-up: unhealthy

loops:
  rework: 2

roles: [author, critic]

steps:
  answer:
    role: author
    prompt: "{{ case.question }}"
    timeout: 10m
    answer:
      type: object
      properties:
        text: {type: string, minLength: 1}
      required: [text]

  judge:
    role: critic
    judges: answer
    prompt: "Is this a good answer? {{ answers.answer.text }}"
    timeout: 10m
    answer:
      type: object
      properties:
        good: {type: boolean}
      required: [good]

rules:
  - {id: answered, at: answer, to: judge}
  - {id: good, at: judge, when: good, to: accepted}
  - {id: again, at: judge, when: not good, to: answer, loop: rework}
  - {id: enough, at: judge, when: not good, to: given-up}

otherwise: given-up
"""


@app.command()
def init(
    agent: Annotated[
        list[AgentName] | None,
        typer.Option(help="Write skills for it; several are fine. Default: those found here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace skills that differ.")] = False,
    json: Json = False,
) -> None:
    """Set up a project. Writes settings, a first circuit, skills, MCP entries; safe to repeat."""
    root = Path()
    agents: tuple[Agent, ...] = tuple(dict.fromkeys(a.value for a in agent or _detect_agents(root)))
    skills = [*_write_starters(root), *_write_skills(root, agents, force)]
    done = [*skills, *_write_entries(root, agents), _write_instructions(root)]
    if json:
        echo_json({"files": [{"path": path, "did": did} for did, path in done]})
        return
    for did, path in done:
        echo(f"{did:9}  {path}")
    if any(did == "kept" for did, _ in done):
        echo("kept: the file differs from the new one; --force replaces skills")
    if shutil.which("interlock") is None:
        where = Path(sys.executable).parent
        echo_note(f"agents start 'interlock' by name, and it is not on your PATH: add {where}")


def _detect_agents(root: Path) -> list[AgentName]:
    """Return the agents that have a folder here; without any, the folder that most of them read."""
    folders = {AgentName.CLAUDE: ".claude", AgentName.CURSOR: ".cursor", AgentName.CODEX: ".agents"}
    found = [name for name, folder in folders.items() if (root / folder).is_dir()]
    return found or [AgentName.CODEX]


def _write_starters(root: Path) -> Iterator[tuple[str, str]]:
    if not (root / "interlock.toml").exists():
        yield _write(root, "interlock.toml", SETTINGS), "interlock.toml"
    if not (root / "circuits").exists():
        yield _write(root, "circuits/first.yaml", CIRCUIT), "circuits/first.yaml"


def _write_skills(
    root: Path, agents: "tuple[Agent, ...]", force: bool
) -> Iterator[tuple[str, str]]:
    from interlock.signals.skills import render_skill_files

    for agent in agents:
        for path, text in render_skill_files(agent, __version__).items():
            yield _write(root, path, text, replace=force), path


def _write_entries(root: Path, agents: "tuple[Agent, ...]") -> Iterator[tuple[str, str]]:
    """Add `interlock mcp` where each client looks for servers; a file with other entries is backed
    up."""

    for agent in agents:
        name = FILES[agent]
        before = _read(root / name)
        after = add_entry(agent, before)
        if before is not None and before != after:
            _write(root, f"{name}.before-interlock", before)
        kept = has_other_entry(agent, before)
        yield "kept" if kept else _write(root, name, after, replace=True), name


def _write_instructions(root: Path) -> tuple[str, str]:
    from interlock.signals.skills import FOLDERS, SKILL_NAME, insert_block, render_managed_block

    there = [folder for folder in FOLDERS.values() if (root / folder / SKILL_NAME).is_dir()]
    before = _read(root / "AGENTS.md") or ""
    after = insert_block(before, render_managed_block(there))
    if after is None:
        raise SourceError(
            "AGENTS.md has damaged interlock markers: leave one pair, or none, and try again"
        )
    return _write(root, "AGENTS.md", after, replace=True), "AGENTS.md"


def _write(root: Path, name: str, text: str, *, replace: bool = False) -> str:
    """Write a file and return what was done: written, replaced, unchanged, or kept because it
    differs."""
    path = root / name
    before = _read(path)
    if before == text:
        return "unchanged"
    if before is not None and not replace:
        return "kept"
    _write_inside(root, path, text)
    return "written" if before is None else "replaced"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None


def _write_inside(root: Path, path: Path, text: str) -> None:
    """Write a whole file, through a link only if it stays inside the project."""
    target = path.resolve()
    if not target.is_relative_to(root.resolve()):
        raise SourceError(f"{path} leads out of the project to {target}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        write_file(target, text.encode(), mode=mode)
        target.chmod(mode)  # the umask may have taken from it
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None


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


def add_entry(agent: str, before: str | None) -> str:
    """Return the file's text with our entry; unchanged if it has one of that name."""
    if agent == "codex":
        return _add_table(before or "")
    return _add_member(agent, before)


def has_other_entry(agent: str, before: str | None) -> bool:
    """Return whether an entry of that name exists that we did not write."""
    if before is None:
        return False
    if agent == "codex":
        found = _parse_toml(before).get("mcp_servers", {})
        mine = tomllib.loads(_TOML)["mcp_servers"][NAME]
        return isinstance(found, dict) and found.get(NAME, mine) != mine
    servers = _parse_json(agent, before).get(_SERVERS, {})
    return bool(servers.get(NAME, _ENTRIES[agent]) != _ENTRIES[agent])


def _add_member(agent: str, before: str | None) -> str:
    found = {} if before is None else _parse_json(agent, before)
    servers = found.setdefault(_SERVERS, {})
    if before is not None and NAME in servers:
        return before
    servers[NAME] = _ENTRIES[agent]
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _parse_json(agent: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _entry_error(agent, f"is not JSON ({error})") from None
    if not isinstance(found, dict) or not isinstance(found.get(_SERVERS, {}), dict):
        raise _entry_error(agent, f"has no object {_SERVERS!r}")
    return found


def _add_table(before: str) -> str:
    found = _parse_toml(before)
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
        raise _entry_error("codex", "writes mcp_servers in a way that nothing can be added to")
    return after


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _entry_error("codex", f"is not TOML ({error})") from None
    if not isinstance(found.get("mcp_servers", {}), dict):
        raise _entry_error("codex", "has no table mcp_servers")
    return found


def _entry_error(agent: str, what: str) -> SourceError:
    mine = _TOML if agent == "codex" else json.dumps({_SERVERS: {NAME: _ENTRIES[agent]}})
    entry = "; ".join(mine.splitlines())
    return SourceError(f"{FILES[agent]} {what}; nothing was changed. Add by hand: {entry}")
