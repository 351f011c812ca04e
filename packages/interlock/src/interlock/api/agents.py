"""Agents: which CLIs this machine has, who is at work, and how the answers of each came out."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock.carriers.cli.probe import find_login, find_version
from interlock.carriers.cli.profiles import list_profiles, may_skip_permissions
from interlock.carriers.registry import agents_folder, cli_settings, find_program
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import AskedRole, RoleRecord, list_asked_roles, list_role_records
from interlock.journal.connection import Connection
from interlock.journal.database import find_writers
from interlock.runtime.settings import RunConfig, read_settings


class AgentListing(msgspec.Struct, frozen=True):
    """An agent CLI on this machine."""

    name: str
    title: str
    program: str
    version: str
    login: str
    permission_mode: str
    means: str
    skips_permissions: bool
    resumes: bool


class AgentRecord(msgspec.Struct, frozen=True):
    """The record of an agent's answers in the runs that were read."""

    agent: str
    """The words that name the agent; its role, if nobody is named."""
    roles: tuple[str, ...]
    answers: int
    """Answers that were accepted and moved a case."""
    failed: int
    """Dispatches without a usable answer: crashes, timeouts, answers that cannot be read."""
    refused: int
    """Answers that were refused: too late, forged, out of shape."""
    tokens: int
    money: float
    seconds: float

    @property
    def share(self) -> float | None:
        """The accepted share of the agent's answers."""
        asked = self.answers + self.failed + self.refused
        return self.answers / asked if asked else None


def list_agent_clis(project: Path, *, versions: bool) -> list[AgentListing]:
    """Return the known agent CLIs, installed or not; asking for `versions` starts each of them."""
    tables = read_settings(project).agent
    known = [(each, cli_settings(each, tables)) for each in list_profiles()]
    programs = [find_program(*each) for each in known]

    async def ask_versions() -> list[str]:
        asked = [
            find_version(program, each, os.environ) if program and versions else _find_no_version()
            for (each, _), program in zip(known, programs, strict=True)
        ]
        return list(await asyncio.gather(*asked))

    return [
        AgentListing(
            name=each.name,
            title=each.title,
            program=program,
            version=version,
            login=find_login(each, {**os.environ, **settings.env}),
            permission_mode=settings.permission_mode or each.mode,
            means=each.modes[settings.permission_mode or each.mode].means,
            skips_permissions=may_skip_permissions(each, settings),
            resumes=each.can_resume,
        )
        for (each, settings), program, version in zip(
            known, programs, asyncio.run(ask_versions()), strict=True
        )
    ]


async def _find_no_version() -> str:
    return ""


def list_alive(db: DatabaseAddress) -> list[AgentStatus]:
    """Return the agents at work, as their carriers last saw them."""
    return read_agent_status(agents_folder(db))


class AskedAgent(msgspec.Struct, frozen=True):
    """An agent's open questions in a run."""

    agent: str
    run_id: int
    roles: tuple[str, ...]
    count: int
    since: float
    """The time at which the oldest question was sent."""


def list_asked(connection: Connection, db: DatabaseAddress) -> list[AskedAgent]:
    """Return the agents whose answers running runs wait for, the newest run first."""
    found: dict[tuple[int, str], list[AskedRole]] = {}
    writers = find_writers(db)
    for each in list_asked_roles(connection):
        if writers.find(each.run_id) is not None:
            found.setdefault((each.run_id, _name_agent(each.role, each.options)), []).append(each)
    return [
        AskedAgent(
            agent=agent,
            run_id=run_id,
            roles=tuple(each.role for each in asked),
            count=sum(each.count for each in asked),
            since=min(each.since for each in asked),
        )
        for (run_id, agent), asked in found.items()
    ]


def list_records(connection: Connection, *, runs: int) -> list[AgentRecord]:
    """Return the record of each agent in the newest runs."""
    found: dict[str, list[RoleRecord]] = {}
    for record in list_role_records(connection, runs=runs):
        found.setdefault(_name_agent(record.role, record.options), []).append(record)
    return [
        AgentRecord(
            agent=agent,
            roles=tuple(sorted({each.role for each in records})),
            answers=sum(each.answers for each in records),
            failed=sum(each.failed for each in records),
            refused=sum(each.refused for each in records),
            tokens=sum(each.cost.tokens for each in records),
            money=sum(each.cost.money for each in records),
            seconds=sum(each.seconds for each in records),
        )
        for agent, records in sorted(found.items())
    ]


def _name_agent(role: str, options: Mapping[str, object]) -> str:
    words = msgspec.convert(options, RunConfig).agents
    return words.get(role) or words.get("") or role
