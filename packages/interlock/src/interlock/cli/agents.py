"""The verbs agents and agents probe: the agent CLIs of this machine, and the model endpoints that
can be asked."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_table
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.api.agents import AgentListing
    from interlock.carriers.cli.probe import ProbeResult
    from interlock.carriers.cli.profiles import Profile
    from interlock.carriers.models.carrier import Endpoint

agents = typer.Typer(help="List agent CLIs: installed or not, version known or not.")
app.add_typer(agents, name="agents")


class EndpointListing(msgspec.Struct, frozen=True):
    """A model endpoint, as the settings and the environment describe it."""

    name: str
    dialect: str
    base_url: str
    model: str
    key: str
    """The variable of its key, and whether the key is set; never the key."""


@agents.callback(invoke_without_command=True)
def list_agents(ctx: typer.Context, json: Json = False) -> None:
    """List agent CLIs and model endpoints, with their versions and what they may do."""
    if ctx.invoked_subcommand is not None:
        return
    from interlock.api.agents import list_agent_clis

    found, endpoints = list_agent_clis(Path(), versions=True), _list_endpoints()
    if json:
        listed = {"agents": msgspec.to_builtins(found)}
        echo_json(listed | {"endpoints": msgspec.to_builtins(endpoints)})
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
    echo_table(
        ("ENDPOINT", "DIALECT", "KEY", "MODEL", "ADDRESS"),
        (
            (each.name, each.dialect, each.key, each.model or "-", each.base_url)
            for each in endpoints
        ),
    )
    for each in found:
        if each.skips_permissions:
            echo(f"{each.name} asks for no permission, because interlock.toml says so")


@agents.command()
def probe(
    name: Annotated[str, typer.Argument(metavar="NAME", help="claude, codex, …, openai")],
    json: Json = False,
) -> None:
    """Run an agent's --version and --help and compare them with its profile; ask a model endpoint
    for its models. Exit 6 on findings."""
    import asyncio

    from interlock.carriers.cli import probe as probing
    from interlock.carriers.cli.profiles import read_profile

    endpoint = next((each for each in _find_endpoints() if each.name == name), None)
    if endpoint is not None:
        _probe_endpoint(endpoint, json=json)
        return
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


def _find_endpoints() -> "list[Endpoint]":
    from interlock.carriers.models.carrier import find_endpoint
    from interlock.carriers.registry import list_endpoints
    from interlock.runtime.settings import read_settings

    tables = read_settings(Path()).agent
    return [
        find_endpoint(name, tables.get(name, {}), os.environ) for name in list_endpoints(tables)
    ]


def _list_endpoints() -> list[EndpointListing]:
    return [
        EndpointListing(
            each.name,
            each.dialect.name,
            each.base_url,
            each.settings.model,
            f"{each.key_variable}{'' if each.key else ': not set'}"
            if each.key_variable
            else "none",
        )
        for each in _find_endpoints()
    ]


def _probe_endpoint(endpoint: "Endpoint", *, json: bool) -> None:
    """Ask an endpoint for its models, which also tests the key."""
    from interlock.carriers.models.carrier import list_models

    try:
        models, problem = list_models(endpoint), ""
    except SourceError as error:
        models, problem = [], str(error)
    if json:
        fields = {"name": endpoint.name, "base_url": endpoint.base_url, "models": models}
        echo_json({**fields, "problem": problem, "ok": not problem})
    else:
        echo(f"{endpoint.name}: {endpoint.base_url}")
        echo(f"BAD   {problem}" if problem else f"ok    {len(models)} models")
        for each in models:
            echo(f"      {endpoint.name}:{each}")
    if problem:
        raise typer.Exit(ExitCode.FINDINGS)


def _format_login(each: "AgentListing") -> str:
    if each.login:
        return each.login
    return "not seen" if each.program else "-"


def _find_program(known: "Profile") -> str:
    from interlock.carriers.registry import cli_settings, find_program
    from interlock.runtime.settings import read_settings

    settings = cli_settings(known, read_settings(Path()).agent)
    if settings.command and not find_program(known, settings):
        raise SourceError(
            f"[agent.{known.name}] command: there is no {settings.command}; correct it"
        )
    return find_program(known, settings)
