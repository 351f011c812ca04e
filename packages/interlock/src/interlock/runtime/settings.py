"""The settings of a project, and the configuration that its runs keep.

Settings come from interlock.toml and the environment. Packages register their own tables under the
entry-point group `interlock.settings` and read them with `Settings.read_tables`.
"""

import os
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from interlock.carriers.acp.settings import AcpSettings
from interlock.carriers.human import EVERYBODY, AnswerPolicy
from interlock.carriers.queries import QueryBroker
from interlock.carriers.registry import check_agent_tables
from interlock.journal.address import DatabaseAddress, parse_address
from interlock.journal.mailbox import Mailbox
from interlock.runtime.budget import flatten_limits
from interlock.system.errors import SourceError
from interlock.system.files import read_text

GROUP = "interlock.settings"
FILE = "interlock.toml"
DATABASE = Path(".interlock") / "interlock.db"

Tables = TypeVar("Tables", bound=msgspec.Struct)


class Notify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How people hear of a question, an end or a spent budget."""

    bell: bool = True
    """Ring the terminal's bell."""
    command: list[str] = []
    """A command to run for each notification, with JSON on stdin."""
    webhook: str = ""
    """A URL that gets each notification as a signed POST."""
    secret_env: str = "INTERLOCK_WEBHOOK_SECRET"  # noqa: S105 - a variable's name
    """The environment variable that holds the webhook's secret, never the secret itself."""


class RoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent of a role, and its limits."""

    agent: str = ""
    """The agent, as `--agent` names it."""
    model: str = ""
    """The model of the agent; its own default if empty."""
    slots: int | None = None
    """How many dispatches of the role run at once."""
    timeout: str = ""
    """How long one dispatch may take; the circuit's timeout if empty."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings in interlock.toml; environment variables and flags override them."""

    db: str | None = None
    """The database: a path, or `postgresql://USER@HOST/NAME`; `.interlock/interlock.db` by
    default."""
    parallel: int | None = None
    """How many dispatches of all roles run at once."""
    agents: dict[str, str] = {}
    """The agent of each role, as `--agent ROLE=AGENT` names it; `""` stands for all others."""
    agent: dict[str, dict[str, Any]] = {}
    """`[agent.NAME]`: changes to the profile of an agent CLI, such as `claude`, or a model
    endpoint."""
    slots: dict[str, int] = {}
    """How many dispatches of each role run at once."""
    budget: dict[str, Any] = {}
    """Limits as for `--budget`: `dispatches`, `tokens`, `money`, `time`; `[budget.role.NAME]` and
    `[budget.day]` for one role and for one day."""
    inbox: AnswerPolicy = EVERYBODY
    notify: Notify = Notify()
    thresholds: dict[str, Any] = {}
    """Values for circuits' thresholds, as `--set NAME=VALUE` gives them."""
    acp: AcpSettings = AcpSettings()
    roles: dict[str, RoleSettings] = {}
    file: str = FILE
    """The file that the settings come from; not a setting."""
    written: dict[str, Any] = {}
    """The whole file, with the tables of packages; not a setting."""

    def read_tables(self, kind: type[Tables]) -> Tables:
        """Read the top-level tables that the fields of `kind` name; SourceError if they do not
        fit."""
        given = {
            name: self.written[name] for name in kind.__struct_fields__ if name in self.written
        }
        try:
            return msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            raise SourceError(f"{self.file}: {error}") from None


class RunConfig(msgspec.Struct, frozen=True):
    """The configuration of a run, beside its circuit. It is stored with the run; a later start may
    change it."""

    agents: dict[str, str] = {}
    slots: dict[str, int] = {}
    budget: dict[str, str | int | float] = {}
    thresholds: dict[str, Any] = {}
    parallel: int | None = None
    files: dict[str, str | int] = {}
    application_config: dict[str, Any] = msgspec.field(name="terms", default_factory=dict)
    """The application's part of the configuration."""
    after: int = 0
    """Dispatches get numbers after this one, where runs of several databases share a root."""
    id: str = ""
    """The user's name for the run; empty if it has only its number."""
    input: str = ""
    """A digest of everything that a run with an id was started with."""


def default_config(settings: Settings, thresholds: dict[str, Any]) -> RunConfig:
    """Return the configuration that the settings give any new run."""
    return RunConfig(
        agents=dict(settings.agents),
        slots=dict(settings.slots),
        budget=flatten_limits(settings.budget),
        thresholds=thresholds,
        parallel=settings.parallel,
    )


def read_settings(project: Path) -> Settings:
    """Read the project's settings, overridden by INTERLOCK_* variables; SourceError if they do not
    fit."""
    path = project / FILE
    found = Settings(file=str(path))
    if path.exists():
        try:
            table = tomllib.loads(read_text(path, 1_000_000))
            own = {name: value for name, value in table.items() if name not in list_tables()}
            found = msgspec.convert(own, Settings)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise SourceError(f"{path}: {error}") from None
        found = msgspec.structs.replace(found, file=str(path), written=table)
    check_agent_tables(found.agent)
    db = os.environ.get("INTERLOCK_DB") or found.db
    parallel = os.environ.get("INTERLOCK_PARALLEL") or found.parallel
    return msgspec.structs.replace(found, db=db, parallel=_check_parallel(parallel))


@cache
def list_tables() -> dict[str, metadata.EntryPoint]:
    """Return the tables of interlock.toml that installed packages read, by name."""
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


def _check_parallel(given: str | int | None) -> int | None:
    if given is None:
        return None
    if not str(given).isdecimal() or int(given) < 1:
        raise SourceError(f"parallel (INTERLOCK_PARALLEL) must be a number from 1, not {given!r}")
    return int(given)


def find_database(project: Path, flag: str | Path | None) -> DatabaseAddress:
    """Return the address of the project's database, which need not exist yet."""
    named = read_settings(project).db
    found = parse_address(flag or named or DATABASE, project)
    if not isinstance(found, Path):
        return found
    path = found if flag else project / found
    if path.is_dir():
        raise SourceError(f"the database {path} is a folder; name a file, for example {DATABASE}")
    return path


def open_answers(db: DatabaseAddress) -> Mailbox:
    """Open the mailbox in which `interlock answer` leaves answers."""
    return Mailbox(db, "answers")


def open_queries(db: DatabaseAddress) -> Mailbox:
    """Open the mailbox in which agents leave questions to people."""
    return Mailbox(db, "queries")


def open_query_broker(db: DatabaseAddress, policy: AnswerPolicy = EVERYBODY) -> QueryBroker:
    """Open the broker through which agents ask people."""
    return QueryBroker(open_queries(db), policy)
