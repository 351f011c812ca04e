"""A project: what it sets in interlock.toml and the environment, and where its things lie.

Knows the names of settings, files and folders. Refuses to know what is made of them.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from interlock.agents.acp.settings import AcpSettings
from interlock.agents.agents import check_tables
from interlock.agents.human import EVERYBODY, AnswerPolicy
from interlock.agents.queries import QueryBroker
from interlock.delivery.plan.yaml import CheckText, EnvironmentText
from interlock.delivery.terms import DeliverySettings
from interlock.epic.terms import EpicSettings, check_settings
from interlock.runtime.circuits import read_text
from interlock.system.errors import SourceError

DATABASE = Path(".interlock") / "interlock.db"


class Notify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told what happens in a run."""

    bell: bool = True
    command: list[str] = []
    webhook: str = ""
    secret_env: str = "INTERLOCK_WEBHOOK_SECRET"  # noqa: S105 - a variable's name
    """The environment variable that holds the secret, never the secret itself."""


class RoleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who plays a role, as which model, in how many places, and how long each may take."""

    agent: str = ""
    model: str = ""
    slots: int | None = None
    timeout: str = ""


class Calibrating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project says about its calibrations."""

    prices: dict[str, Any] = {}
    """What a million tokens cost: input, output, currency."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may set in interlock.toml; environment and flags go before it."""

    db: str | None = None
    parallel: int | None = None
    agents: dict[str, str] = {}
    agent: dict[str, dict[str, Any]] = {}
    slots: dict[str, int] = {}
    budget: dict[str, Any] = {}
    inbox: AnswerPolicy = EVERYBODY
    notify: Notify = Notify()
    thresholds: dict[str, Any] = {}
    acp: AcpSettings = AcpSettings()
    repo: list[dict[str, Any]] = []
    last_green: str | dict[str, str] = ""
    defect_codes: dict[str, str] = {}
    calibrate: Calibrating = Calibrating()
    roles: dict[str, RoleSettings] = {}
    delivery: DeliverySettings = DeliverySettings()
    epic: EpicSettings = EpicSettings()
    check: list[CheckText] = []
    environment: list[EnvironmentText] = []


def read_settings(project: Path) -> Settings:
    """The project's settings, with INTERLOCK_* from the environment on top."""
    path = project / "interlock.toml"
    found = Settings()
    if path.exists():
        try:
            table = tomllib.loads(read_text(path, 1_000_000))
            found = msgspec.convert(table, Settings)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise SourceError(f"{path}: {error}") from None
    check_tables(found.agent)
    check_settings(found.epic)
    db = os.environ.get("INTERLOCK_DB") or found.db
    parallel = os.environ.get("INTERLOCK_PARALLEL") or found.parallel
    return msgspec.structs.replace(found, db=db, parallel=_places(parallel))


def _places(given: str | int | None) -> int | None:
    """How many dispatches at once, if it is said."""
    if given is None:
        return None
    if not str(given).isdecimal() or int(given) < 1:
        raise SourceError(f"parallel (INTERLOCK_PARALLEL) must be a number from 1, not {given!r}")
    return int(given)


def database(project: Path, flag: Path | None) -> Path:
    named = read_settings(project).db
    path = flag or (project / named if named else project / DATABASE)
    if path.is_dir():
        raise SourceError(f"the database {path} is a folder; name a file, for example {DATABASE}")
    return path


def answers_folder(db: Path) -> Path:
    """Where `interlock answer` leaves what a human said."""
    return db.with_name(f"{db.name}.answers")


def pull_folder(db: Path) -> Path:
    """Where workers that pull find the coordinator."""
    return db.with_name(f"{db.name}.pull")


def queries_folder(db: Path) -> Path:
    """Where agents leave their questions to a human."""
    return db.with_name(f"{db.name}.queries")


def query_desk(db: Path) -> QueryBroker:
    """Where agents ask a human, and who may answer there."""
    return QueryBroker(queries_folder(db), read_settings(Path()).inbox)
