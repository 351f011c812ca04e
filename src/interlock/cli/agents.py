"""The verbs agents and agents probe: which agent CLIs this machine has, and whether they are those
that are known.
"""

import os
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_table
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.agents.cli.probe import ProbeResult
    from interlock.agents.cli.profiles import Profile

agents = typer.Typer(help="List agent CLIs: installed or not, version known or not.")
app.add_typer(agents, name="agents")


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


@agents.callback(invoke_without_command=True)
def list_agents(ctx: typer.Context, json: Json = False) -> None:
    """Which agent CLIs are installed, their versions, and what they may do."""
    if ctx.invoked_subcommand is not None:
        return
    found = _find_agents()
    if json:
        echo_json({"agents": msgspec.to_builtins(found)})
        return
    echo_table(
        ("AGENT", "VERSION", "LOGIN", "MODE", "PROGRAM"),
        (
            (
                *(each.name, each.version or "-", _format_login(each)),
                *(f"{each.permission_mode}: {each.means}", each.program or "not installed"),
            )
            for each in found
        ),
    )
    for each in found:
        if each.skips_permissions:
            echo(f"{each.name} asks for no permission, because interlock.toml says so")


@agents.command()
def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="claude, codex, …")],
    json: Json = False,
) -> None:
    """Run an agent's --version and --help, and compare with its profile. Exit 6 on findings."""
    import asyncio

    from interlock.agents.cli import probe as probing
    from interlock.agents.cli.profiles import read_profile

    known = read_profile(name)
    program = _find_program(known)
    if program:
        checks = asyncio.run(probing.probe_cli(program, known, os.environ))
    else:
        there = f"there is no command {' or '.join(known.commands)}; install {known.title}"
        checks = [probing.ProbeResult("agent.installed", False, there)]
    _echo_probe(known, program, checks, json=json)
    if not all(each.ok for each in checks):
        raise typer.Exit(ExitCode.FINDINGS)


def _echo_probe(known: "Profile", program: str, checks: "list[ProbeResult]", *, json: bool) -> None:
    if json:
        fields: dict[str, Any] = {"name": known.name, "program": program}
        fields |= {"checks": msgspec.to_builtins(checks), "traps": list(known.traps)}
        echo_json({**fields, "seen": known.seen, "ok": all(each.ok for each in checks)})
        return
    echo(f"{known.title}: {program or 'not installed'}")
    for each in checks:
        echo(f"{'ok  ' if each.ok else 'BAD '}  {each.id}: {each.message}")
    for trap in known.traps:
        echo(f"note  {trap}")


def _find_agents() -> list[AgentListing]:
    import asyncio
    from pathlib import Path

    from interlock.agents.cli.probe import find_login, find_version
    from interlock.agents.cli.profiles import list_profiles, may_skip_permissions
    from interlock.agents.registry import cli_settings, find_program
    from interlock.runtime.settings import read_settings

    tables = read_settings(Path()).agent
    known = [(each, cli_settings(each, tables)) for each in list_profiles()]
    programs = [find_program(*each) for each in known]

    async def versions() -> list[str]:
        asked = [
            find_version(program, each, os.environ) if program else _find_no_version()
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
            known, programs, asyncio.run(versions()), strict=True
        )
    ]


async def _find_no_version() -> str:
    return ""


def _format_login(each: AgentListing) -> str:
    if each.login:
        return each.login
    return "not seen" if each.program else "-"


def _find_program(known: "Profile") -> str:
    from pathlib import Path

    from interlock.agents.registry import cli_settings, find_program
    from interlock.runtime.settings import read_settings

    settings = cli_settings(known, read_settings(Path()).agent)
    if settings.command and not find_program(known, settings):
        raise SourceError(
            f"[agent.{known.name}] command: there is no {settings.command}; correct it"
        )
    return find_program(known, settings)
