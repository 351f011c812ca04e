"""From the word of an agent to its carrier: `exec:…`, `script:…`, `acp:…`, a CLI, the analyst.

Agents are a table: a word before the colon, and what makes a carrier of the rest.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from interlock.agents.acp import acp_agent
from interlock.agents.agents import CLI_AGENTS, agents_folder, cli_agent, ours
from interlock.agents.carrier import Ask, Carrier, Clock, Reply
from interlock.agents.cli.carrier import AgentHome, nonce
from interlock.agents.command import CommandAgent
from interlock.agents.function import PromptlessHandler
from interlock.agents.programs import argv_of
from interlock.agents.script import ScriptAgent, read_script
from interlock.runtime.circuits import read_text
from interlock.runtime.settings import DATABASE, query_desk, read_settings
from interlock.system.errors import SourceError

ACP = "acp"
BASIC = "basic"
"""The built-in analyst. It answers only for circuits it knows."""
_MOST_SCRIPT = 4_000_000


class UnstaffedRole(PromptlessHandler):
    """The place of the built-in analyst, until a run is open that it can look into."""

    def __init__(self) -> None:
        super().__init__(_knows_nothing)


def _knows_nothing(_ask: Ask) -> Reply | None:
    raise SourceError("the built-in analyst answers only for the circuit rca")


def agent(
    spec: str,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
    db: Path = DATABASE,
) -> Carrier:
    kind, _, rest = spec.partition(":")
    if spec == BASIC:
        return UnstaffedRole()
    if kind in CLI_AGENTS:
        return cli_agent(kind, rest, read_settings(Path()).agent, db, clock, environment)
    if kind == ACP and rest:
        home = AgentHome(agents_folder(db).resolve(), Path.cwd(), ours(db), environment, nonce)
        return acp_agent(
            argv_of(kind, rest), read_settings(Path()).acp, home, query_desk(db), clock
        )
    if kind not in AGENTS or not rest:
        known = ", ".join((BASIC, *(f"{name}:…" for name in (ACP, *AGENTS))))
        raise SourceError(f"{spec!r} names no agent; use {known} or a name of 'interlock agents'")
    return AGENTS[kind](rest, clock, environment, db)


def _script(rest: str, clock: Clock, _environment: Mapping[str, str], _db: Path) -> Carrier:
    path = Path(rest)
    return ScriptAgent(read_script(read_text(path, _MOST_SCRIPT), str(path)), clock)


def _command(rest: str, _clock: Clock, environment: Mapping[str, str], db: Path) -> Carrier:
    first, *others = argv_of("exec", rest)
    argv = (_found(first) if "/" in first else first, *map(_found, others))
    return CommandAgent(argv, environment, ours(db))


def _found(word: str) -> str:
    """A word that names a file here names the same file where the command is started."""
    try:
        return str(Path(word).absolute()) if Path(word).is_file() else word
    except (OSError, ValueError):
        return word


AGENTS: dict[str, Callable[[str, Clock, Mapping[str, str], Path], Carrier]] = {
    "exec": _command,
    "script": _script,
}
