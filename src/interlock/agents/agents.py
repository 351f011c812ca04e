"""From the word of an agent CLI to its carrier: its settings, its program, where it works.

Knows interlock.toml's `[agent.NAME]` and where beside the database the agents' papers lie. The
profiles know the CLIs.
"""

import os
import shutil
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.carrier import Clock
from interlock.agents.cli.carrier import AgentHome, ProcessAgent, nonce
from interlock.agents.cli.orphans import WorkspaceOwner
from interlock.agents.cli.profiles import NAMES, AgentSettings, Profile, agent_settings, profile
from interlock.agents.cli.tag import ProcessTag
from interlock.journal.database import reading
from interlock.journal.runs import FINISHED, find_run
from interlock.system.errors import InterlockError, SourceError

CLI_AGENTS = NAMES
"""The words that name an agent CLI; `WORD:MODEL` also names its model."""


def agents_folder(db: Path) -> Path:
    """Where the papers and the own work folders of agents lie."""
    return db.with_name(f"{db.name}.agents")


def workspace_of(db: Path) -> str:
    """What the tags of processes call this workspace: the same for the same database."""
    return blake2b(os.fsencode(db.resolve()), digest_size=8).hexdigest()


def ours(db: Path) -> WorkspaceOwner:
    """The processes of this database's runs; the database says which runs are over."""

    def is_over(tag: ProcessTag) -> bool:
        if not tag.run.isdecimal():
            return False
        try:
            with reading(db) as connection:
                return find_run(connection, int(tag.run)).status in FINISHED
        except InterlockError:
            return False

    return WorkspaceOwner(workspace_of(db), is_over)


def cli_agent(
    word: str,
    model: str,
    tables: Mapping[str, Any],
    db: Path,
    clock: Clock,
    environment: Mapping[str, str],
) -> ProcessAgent:
    """The carrier of an agent CLI; SourceError if it is not installed or wrongly set."""
    known = profile(word)
    settings = settings_of(known, tables, model)
    program = program_of(known, settings)
    if not program:
        names = " or ".join((settings.command,) if settings.command else known.commands)
        raise SourceError(
            f"{known.title} is not installed: there is no command {names}; "
            f"install it, or name it as command in [agent.{word}] of interlock.toml"
        )
    root, project = agents_folder(db).resolve(), Path.cwd()
    station = AgentHome(root, project, ours(db), environment, nonce)
    return ProcessAgent(known, settings, program, station, clock)


def settings_of(known: Profile, tables: Mapping[str, Any], model: str = "") -> AgentSettings:
    found = agent_settings(tables.get(known.name, {}), known)
    if model:
        found = msgspec.structs.replace(found, model=model)
    return found


def program_of(known: Profile, settings: AgentSettings) -> str:
    """The program's path; empty if it is not there. The settings' command goes before."""
    names = (settings.command,) if settings.command else known.commands
    return next((found for name in names if (found := shutil.which(name))), "")


def check_tables(tables: Mapping[str, Any]) -> None:
    """No table may be for an agent that does not exist."""
    for name in sorted(set(tables) - set(NAMES)):
        raise SourceError(f"interlock.toml: [agent.{name}] names no agent; use {', '.join(NAMES)}")
