"""Start, continue, find and clean up deliveries.

Turns command-line options into a configuration and a run, and decides which run belongs to a plan
and where its workspace lies.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.journal.address import DatabaseAddress, state_folder
from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError, StateError, StoreError, UsageError
from interlock.system.text import transliterate

if TYPE_CHECKING:
    from interlock.api.project import Project
    from interlock.engine.circuit import Circuit
    from interlock.journal.connection import Connection
    from interlock.journal.runs import Run
    from interlock.runtime.circuits import Bundle
    from interlock.runtime.settings import Settings
    from interlock_delivery.config import DeliveryConfig
    from interlock_delivery.worktrees.workspace import Removal

CIRCUIT: Final = "delivery"
STAND_INS: Final = {
    "business-analyst": "developer",
    "remediation": "developer",
    "expert": "critic",
    "expert-maker": "critic",
    "health-auditor": "auditor",
}
"""The role whose agent also plays a rarely needed one."""
_KEPT_BESIDE: Final = ("baselines", "checked", "experts", "plan.json")
"""The files of a delivery beside its workspace."""


class DeliveryOptions(msgspec.Struct, frozen=True):
    """The user's options for a delivery, apart from its agents."""

    plan: Path
    repo: Path
    base: str = "HEAD"
    strict_signals: bool = False
    allow_untestable: bool = False

    @property
    def fingerprint(self) -> str:
        """Return a digest of the plan's path and the repository; editing the plan does not change
        it.
        """
        return hashlib.sha256(f"{self.plan.resolve()}\0{self.repo.resolve()}".encode()).hexdigest()


def add_role_settings(config: RunConfig, settings: "Settings") -> RunConfig:
    """Return the configuration with the agents and slots of `[roles.NAME]`."""
    agents = {
        name: f"{role.agent}:{role.model}" if role.model else role.agent
        for name, role in settings.roles.items()
        if role.agent
    }
    slots = {name: role.slots for name, role in settings.roles.items() if role.slots}
    return msgspec.structs.replace(
        config, agents={**config.agents, **agents}, slots={**config.slots, **slots}
    )


def add_stand_ins(config: RunConfig) -> RunConfig:
    """Fill rare roles, so that a developer, a critic and an auditor are enough."""
    named = config.agents
    if "" in named:
        return config
    others = {role: named[by] for role, by in STAND_INS.items() if by in named}
    return msgspec.structs.replace(config, agents={**others, **named})


def _drop_stand_ins(config: RunConfig) -> RunConfig:
    """Undo `add_stand_ins`, so that stand-ins follow a change of agent."""
    named = config.agents
    agents = {
        role: agent
        for role, agent in named.items()
        if role not in STAND_INS or agent != named.get(STAND_INS[role])
    }
    return msgspec.structs.replace(config, agents=agents)


def require_agents(circuit: "Circuit", config: RunConfig) -> None:
    """Raise UsageError unless every role outside our own code has an agent."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.application import find_application

    own = find_application(circuit.name).own_roles
    roles = {step.role for step in circuit.steps.values()} - {HUMAN, *own}
    vacant = [role for role in sorted(roles) if not config.agents.get(role)]
    if vacant and not config.agents.get(""):
        raise UsageError(
            f"who plays {', '.join(vacant)}? Use --agent claude for all roles or --agent "
            f"{vacant[0]}=codex for one, or add [roles.{vacant[0]}] to interlock.toml; "
            "'interlock agents' lists what is installed"
        )


def build_config(
    options: DeliveryOptions, settings: "Settings", db: DatabaseAddress, slug: str
) -> "DeliveryConfig":
    from interlock.carriers.registry import workspace_id
    from interlock.system.time import parse_duration
    from interlock_delivery.config import DeliveryConfig, DeliveryTables

    tables = settings.read_tables(DeliveryTables)
    return DeliveryConfig(
        plan=str(options.plan.resolve()),
        source=str(options.repo.resolve()),
        home=str(_list_homes(db) / slug),
        slug=slug,
        secret=secrets.token_hex(16),
        workspace=workspace_id(db),
        base=options.base,
        timeouts={
            name: parse_duration(role.timeout)
            for name, role in settings.roles.items()
            if role.timeout
        },
        strict_signals=options.strict_signals,
        allow_untestable=options.allow_untestable,
        work=tables.delivery,
        checks=tuple(tables.check),
        environments=tuple(tables.environment),
    )


def choose_slug(options: DeliveryOptions, db: DatabaseAddress) -> str:
    """Return a name that no other delivery's folder or branch has."""
    from interlock.system.git import Git, read_safe_folders
    from interlock_delivery.worktrees.names import published_ref

    plain = transliterate(options.plan.stem).lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "plan"
    repo = options.repo if options.repo.is_dir() else Path()
    git, number = Git(repo, safe=read_safe_folders()), 1

    def is_taken(slug: str) -> bool:
        ref = git.run("rev-parse", "--verify", "--quiet", published_ref(slug))
        return (_list_homes(db) / slug).exists() or ref.is_ok

    while is_taken(slug := stem if number == 1 else f"{stem}-{number}"):
        number += 1
    return slug


def _list_homes(db: DatabaseAddress) -> Path:
    return state_folder(db) / "delivery"


def begin_delivery(
    connection: "Connection",
    bundle: "Bundle",
    run_config: RunConfig,
    config: "DeliveryConfig",
    fingerprint: str,
) -> "Run":
    """Begin a run with a case per task; raise SourceError if plan or repository is unusable."""
    from interlock.journal.runs import NewRun, begin_run, find_run
    from interlock_delivery.plan.watch import build_cases, load_usable_plan
    from interlock_delivery.worktrees.clone import inspect_repository
    from interlock_delivery.worktrees.remote import check_workers

    plan = load_usable_plan(config)
    # A run keeps its configuration for good, so none begins with a repository that cannot be used.
    inspect_repository(Path(config.source), config.base)
    check_workers(run_config.agents, config.work.remote)
    run_config = msgspec.structs.replace(run_config, application_config=msgspec.to_builtins(config))
    new = NewRun(
        circuit=bundle.open().circuit.with_thresholds(run_config.thresholds),
        text=bundle.encode(),
        source=config.plan,
        fingerprint=fingerprint,
        options=msgspec.to_builtins(run_config),
        at=time.time(),
    )
    return find_run(connection, begin_run(connection, new, build_cases(plan)))


def find_earlier_run(connection: "Connection", options: DeliveryOptions) -> "Run | None":
    """Return the newest run of this plan in this repository."""
    from interlock.journal.runs import find_newest_run, find_run

    run_id = find_newest_run(connection, options.fingerprint)
    return None if run_id is None else find_run(connection, run_id)


def find_earlier_run_id(project: "Project", options: DeliveryOptions) -> int | None:
    """Return that run's number, or None, even without a database."""
    if not project.has_database:
        return None
    with project.read() as connection:
        earlier = find_earlier_run(connection, options)
    return earlier.run_id if earlier else None


def continue_delivery(
    connection: "Connection", run: "Run", update: Callable[[RunConfig], RunConfig]
) -> "Run":
    """Return the run with its configuration updated; everything else stays as it began."""
    from interlock.journal.history import count_ends
    from interlock.journal.runs import find_run, set_options
    from interlock_delivery.report.render import HTML
    from interlock_delivery.steps import HALTED
    from interlock_delivery.worktrees.workspace import MANIFEST

    if count_ends(connection, run.run_id).get(HALTED):
        raise StateError(
            f"run {run.run_id} was halted by a human and is over; "
            "'interlock deliver PLAN --new' starts another"
        )
    home = Path(read_config(run).home)
    if (home / HTML).exists() and not (home / MANIFEST).exists():
        raise StateError(
            f"the workspace of run {run.run_id} was removed, so the run cannot continue; "
            "'interlock deliver PLAN --new' starts another"
        )
    config = update(_drop_stand_ins(msgspec.convert(run.options, RunConfig)))
    set_options(connection, run.run_id, msgspec.to_builtins(add_stand_ins(config)))
    return find_run(connection, run.run_id)


def read_config(run: "Run") -> "DeliveryConfig":
    from interlock_delivery.config import DeliveryConfig

    if run.circuit != CIRCUIT:
        raise SourceError(
            f"run {run.run_id} is not a delivery but a run of {run.circuit}; "
            "'interlock runs' lists them"
        )
    config = msgspec.convert(run.options, RunConfig)
    return msgspec.convert(config.application_config, DeliveryConfig)


def find_delivery(connection: "Connection", which: str | None = None) -> "Run":
    """Return a delivery by its run's number or plan file; the newest by default."""
    from interlock.journal.runs import find_run, list_runs

    if which is not None and which.isascii() and which.isdigit():
        run = find_run(connection, int(which))
        read_config(run)
        return run
    runs = [run for run in list_runs(connection) if run.circuit == CIRCUIT]
    if which is not None:
        plan = str(Path(which).resolve())
        runs = [run for run in runs if read_config(run).plan == plan]
        if not runs:
            raise StoreError(
                f"there is no delivery of {which}; 'interlock runs' lists the runs there are"
            )
    if not runs:
        raise StoreError("there is no delivery yet; 'interlock deliver PLAN' starts one")
    return runs[-1]


def clean_delivery(run: "Run", *, dry_run: bool, force: bool) -> "list[Removal]":
    """Remove a run's clone and worktrees; raise StateError if it still needs them."""
    from interlock.journal.runs import FINISHED
    from interlock_delivery.worktrees.workspace import clean_workspace

    if run.status not in FINISHED and not (dry_run or force):
        raise StateError(
            f"run {run.run_id} is not over and needs its worktrees; finish it, or use --force"
        )
    home = Path(read_config(run).home)
    return clean_workspace(home, dry_run=dry_run, force=force, also=_KEPT_BESIDE)
