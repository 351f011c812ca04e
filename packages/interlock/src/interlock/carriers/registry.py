"""Build the carrier for the words that name an agent.

In `exec:COMMAND`, `claude:MODEL` or `file`, the word before the colon is an entry point of the
group `interlock.agents`. Its factory takes an `AgentSpec` and an `AgentContext` and returns a
carrier. Built-in agents are found in the same way as those of other packages.
"""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.carriers.contract import Carrier
from interlock.carriers.files import NameFiles, name_files
from interlock.carriers.queries import QueryBroker
from interlock.journal.address import DatabaseAddress, beside, identify
from interlock.system.clock import Clock
from interlock.system.errors import InterlockError, SourceError
from interlock.system.folder_watch import Mode

if TYPE_CHECKING:
    from interlock.carriers.cli.carrier import AgentHome
    from interlock.carriers.cli.ownership import WorkspaceOwner
    from interlock.carriers.cli.profiles import AgentSettings, Profile

GROUP = "interlock.agents"
FUNCTION = "function"
"""The word for a Python function, which only its own program can call."""
MCP = "mcp"
"""The carrier whose dispatches agents pull."""
MODELS = ("openai", "anthropic")
"""The model endpoints that need no table, each named like its dialect."""
FILE_CARRIERS = ("batch-file", "file", "manual")
"""The carriers that ask by files."""
DEFAULT_BATCH_SIZE = 4
_MOST_SCRIPT = 4_000_000
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", re.ASCII)


class FileOptions(msgspec.Struct, frozen=True):
    """How dispatches of roles without an agent travel."""

    dispatch: str = ""
    """The carrier for roles without an agent: one of FILE_CARRIERS, or MCP."""
    root: str = ".interlock/runs"
    watch: Mode = "auto"
    batch_size: int = DEFAULT_BATCH_SIZE


class AgentSpec(msgspec.Struct, frozen=True):
    """The words that name an agent: `kind:rest`."""

    kind: str
    rest: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.rest}" if self.rest else self.kind


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a factory may use."""

    project: Path
    db: DatabaseAddress
    clock: Clock
    circuit: str = ""
    """The circuit's name; empty outside of a run."""
    roles: tuple[str, ...] = ()
    """The roles that the agent will play."""
    settings: Mapping[str, Any] = {}
    """The project's interlock.toml, as it is written."""
    environment: Mapping[str, str] = {}
    queries: QueryBroker
    """The broker for an agent's own questions to people."""
    files: FileOptions = FileOptions()
    file_names: NameFiles = name_files
    token_limit: int = 0


AgentFactory = Callable[[AgentSpec, AgentContext], Carrier]


def build_agent(text: str, context: AgentContext) -> Carrier:
    """Build the carrier of the agent of that name; SourceError if it is unknown."""
    kind, _, rest = text.partition(":")
    entry = list_agents().get(kind)
    if kind == FUNCTION:
        role = context.roles[0] if context.roles else "a role"
        raise SourceError(
            f"{role} was answered by the Python function {rest}; continue from the program that "
            f"has it, or name another agent: --agent {role}=AGENT"
        )
    if entry is None and "dialect" in context.settings.get("agent", {}).get(kind, {}):
        return build_model(AgentSpec(kind, rest), context)
    if entry is None:
        raise SourceError(
            f"{text!r} names no agent; use exec:COMMAND, acp:COMMAND, script:FILE or a name that "
            "'interlock agents' lists"
        )
    try:
        factory: AgentFactory = entry.load()
    except Exception as error:
        raise SourceError(
            f"the agent {kind!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return factory(AgentSpec(kind, rest), context)


@cache
def list_agents() -> dict[str, metadata.EntryPoint]:
    """Return every installed agent by its word."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def split_command(spec: AgentSpec) -> list[str]:
    """Return the words of a command; SourceError if its program does not exist."""
    try:
        argv = shlex.split(spec.rest)
    except ValueError as error:
        raise SourceError(f"{spec}: {error}") from None
    if not argv or shutil.which(argv[0]) is None:
        raise SourceError(f"{spec}: {explain_not_runnable(argv[0] if argv else '')}")
    return argv


def explain_not_runnable(name: str) -> str:
    if "/" in name and Path(name).is_file():
        return f"{name!r} may not be executed; chmod +x it, or name its interpreter first"
    near = f"; did you mean './{name}'?" if name and Path(name).is_file() else ""
    return f"there is no command {name!r} to run{near}"


def agents_folder(db: DatabaseAddress) -> Path:
    """Return the folder of agents' files and work folders."""
    return beside(db, "agents")


def workspace_id(db: DatabaseAddress) -> str:
    """Return the workspace's name in the tags of processes; the same database gives the same
    name."""
    return blake2b(identify(db), digest_size=8).hexdigest()


def workspace_owner(db: DatabaseAddress) -> "WorkspaceOwner":
    """Return the owner of this database's processes, which knows the runs that are over."""
    from interlock.carriers.cli.ownership import ProcessTag, WorkspaceOwner
    from interlock.journal.database import open_reader
    from interlock.journal.runs import FINISHED, find_run

    def is_over(tag: ProcessTag) -> bool:
        if not tag.run.isdecimal():
            return False
        try:
            with open_reader(db) as connection:
                return find_run(connection, int(tag.run)).status in FINISHED
        except InterlockError:
            return False

    return WorkspaceOwner(workspace_id(db), is_over)


def cli_settings(profile: "Profile", tables: Mapping[str, Any], model: str = "") -> "AgentSettings":
    """Return the `[agent.NAME]` settings of an agent CLI; a `model` named with the agent overrides
    them."""
    from interlock.carriers.cli.profiles import read_agent_settings

    found = read_agent_settings(tables.get(profile.name, {}), profile)
    return msgspec.structs.replace(found, model=model) if model else found


def find_program(profile: "Profile", settings: "AgentSettings") -> str:
    """Return the path of an agent CLI, from its settings or PATH; empty if it is not installed."""
    names = (settings.command,) if settings.command else profile.commands
    return next((found for name in names if (found := shutil.which(name))), "")


def check_agent_tables(tables: Mapping[str, Any]) -> None:
    """Raise SourceError if a table `[agent.NAME]` names no known agent and defines none; a table
    with a dialect defines a model endpoint."""
    from interlock.carriers.cli.profiles import PROFILE_NAMES

    for name in sorted(set(tables) - {*PROFILE_NAMES, *MODELS}):
        if "dialect" not in tables[name]:
            raise SourceError(
                f"interlock.toml: [agent.{name}] names no agent; use {', '.join(PROFILE_NAMES)}, "
                f"{' or '.join(MODELS)}, or give a model endpoint its dialect"
            )
        if name in list_agents():
            raise SourceError(f"interlock.toml: [agent.{name}]: there is an agent of that name")


def list_endpoints(tables: Mapping[str, Any]) -> list[str]:
    """Return the names of all model endpoints, including the tables `[agent.NAME]` with a
    dialect."""
    return [*MODELS, *sorted(name for name in tables if "dialect" in tables[name])]


# The factories of the built-in agents. What only some runs need is loaded when they need it.


def build_command(spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.exec import CommandAgent

    first, *others = split_command(spec)
    argv = (_absolute(first) if "/" in first else first, *map(_absolute, others))
    owner, root = workspace_owner(context.db), agents_folder(context.db)
    return CommandAgent(argv, context.environment, owner, root)


def _absolute(word: str) -> str:
    """Return the absolute path of a word that names a file here, so that it names the same file
    wherever the command is started."""
    try:
        return str(Path(word).absolute()) if Path(word).is_file() else word
    except (OSError, ValueError):
        return word


def build_script(spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.script import ScriptAgent, read_script
    from interlock.system.files import read_text

    if not spec.rest:
        raise SourceError("script: names no file; use script:FILE")
    path = context.project / spec.rest
    return ScriptAgent(read_script(read_text(path, _MOST_SCRIPT), str(path)), context.clock)


def build_acp(spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.acp import build_acp_agent
    from interlock.carriers.acp.settings import AcpSettings

    settings = msgspec.convert(context.settings.get("acp", {}), AcpSettings)
    argv = split_command(spec)
    return build_acp_agent(argv, settings, _agent_home(context), context.queries, context.clock)


def _agent_home(context: AgentContext) -> "AgentHome":
    from interlock.carriers.cli.carrier import AgentHome, make_nonce

    return AgentHome(
        agents_folder(context.db).resolve(),
        context.project.resolve(),
        workspace_owner(context.db),
        context.environment,
        make_nonce,
    )


def build_cli(spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.cli.carrier import ProcessAgent
    from interlock.carriers.cli.profiles import read_profile

    known = read_profile(spec.kind)
    settings = cli_settings(known, context.settings.get("agent", {}), spec.rest)
    program = find_program(known, settings)
    if not program:
        names = " or ".join((settings.command,) if settings.command else known.commands)
        raise SourceError(
            f"{known.title} is not installed: there is no command {names}; "
            f"install it, or name it as command in [agent.{spec.kind}] of interlock.toml"
        )
    return ProcessAgent(known, settings, program, _agent_home(context), context.clock)


def build_model(spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.models.carrier import Model, find_endpoint

    table = context.settings.get("agent", {}).get(spec.kind, {})
    return Model(str(spec), endpoint=find_endpoint(spec.kind, table, context.environment))


def _file_root(context: AgentContext) -> Path:
    return context.project / context.files.root


def build_file(_spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.files.file import FileCarrier

    return FileCarrier(
        _file_root(context), context.clock, names=context.file_names, mode=context.files.watch
    )


def build_manual(_spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.files.file import ManualCarrier

    return ManualCarrier(_file_root(context), context.clock, names=context.file_names, mode="poll")


def build_batch(_spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.files.batch import BatchCarrier
    from interlock.carriers.files.file import FileCarrier

    return BatchCarrier(
        FileCarrier(
            _file_root(context), context.clock, names=context.file_names, mode=context.files.watch
        ),
        context.clock,
        workspace=context.project,
        size=context.files.batch_size,
        tokens=context.token_limit,
    )


def build_mcp(_spec: AgentSpec, context: AgentContext) -> Carrier:
    from interlock.carriers.pull.carrier import PullCarrier

    return PullCarrier(context.db)


def is_label(text: str) -> bool:
    """Return whether the text may label workers."""
    return _LABEL.fullmatch(text) is not None
