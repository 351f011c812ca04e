"""What a delivery is begun with: from the words of a command line to its terms and its run.

Knows where its workshop lies and when a plan's earlier run is gone on with. Nothing here works on a
task.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError, SourceError, StateError, StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.delivery.report.records import DeliveryReport
    from interlock.delivery.terms import DeliveryConfig
    from interlock.engine.circuit import Circuit
    from interlock.journal.runs import Run
    from interlock.runtime.circuits import Bundle
    from interlock.runtime.settings import Settings

_CIRCUIT: Final = "delivery"


class DeliveryOptions(msgspec.Struct, frozen=True):
    """What a user says about a delivery, beside who works on it."""

    plan: Path
    repo: Path
    base: str
    strict_signals: bool
    allow_untestable: bool

    @property
    def mark(self) -> str:
        """The same for the same plan and repository: an edited plan is still that plan."""
        words = f"{self.plan.resolve()}\0{self.repo.resolve()}"
        return hashlib.sha256(words.encode()).hexdigest()


def with_roles(options: RunConfig, usual: "Settings") -> RunConfig:
    """The options with what `[roles.NAME]` says: who plays it, in how many places."""
    agents = {
        name: f"{role.agent}:{role.model}" if role.model else role.agent
        for name, role in usual.roles.items()
        if role.agent
    }
    slots = {name: role.slots for name, role in usual.roles.items() if role.slots}
    return msgspec.structs.replace(
        options, agents={**options.agents, **agents}, slots={**options.slots, **slots}
    )


STAND_INS = {
    "business-analyst": "developer",
    "remediation": "developer",
    "expert": "critic",
    "expert-maker": "critic",
    "health-auditor": "auditor",
}
"""Who plays a role that is rarely needed, if nobody is named for it."""


def with_stand_ins(options: RunConfig) -> RunConfig:
    """Three agents are enough for a delivery: a developer, a critic and an auditor."""
    named = options.agents
    if "" in named:
        return options
    others = {role: named[by] for role, by in STAND_INS.items() if by in named}
    return msgspec.structs.replace(options, agents={**others, **named})


def refuse_vacancies(circuit: "Circuit", options: RunConfig) -> None:
    """Every role that is not ours must have somebody who plays it."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.application import find_application

    roles = {step.role for step in circuit.steps.values()} - {
        HUMAN,
        *find_application(circuit.name).own_roles,
    }
    vacant = [role for role in sorted(roles) if not options.agents.get(role)]
    if vacant and not options.agents.get(""):
        raise SourceError(
            f"who plays {', '.join(vacant)}? Say --agent claude for all, --agent {vacant[0]}=codex "
            f"for one, or write [roles.{vacant[0]}] into interlock.toml; 'interlock agents' lists "
            "what is installed"
        )


def agreed(wishes: DeliveryOptions, usual: "Settings", db: Path, slug: str) -> "DeliveryConfig":
    from interlock.agents.registry import workspace_id
    from interlock.delivery.terms import DeliveryConfig, DeliveryTables
    from interlock.engine.circuit_file import parse_duration

    tables = usual.read_tables(DeliveryTables)
    return DeliveryConfig(
        plan=str(wishes.plan.resolve()),
        source=str(wishes.repo.resolve()),
        home=str(db.resolve().parent / "delivery" / slug),
        slug=slug,
        secret=secrets.token_hex(16),
        workspace=workspace_id(db),
        base=wishes.base,
        timeouts={
            name: parse_duration(role.timeout) for name, role in usual.roles.items() if role.timeout
        },
        strict_signals=wishes.strict_signals,
        allow_untestable=wishes.allow_untestable,
        work=tables.delivery,
        checks=tuple(tables.check),
        environments=tuple(tables.environment),
    )


def free_slug(wishes: DeliveryOptions, db: Path) -> str:
    """A name for the work that no other delivery has: no folder and no branch is called so."""
    from interlock.delivery.worktrees.names import published_ref
    from interlock.system.git import Git, read_safe_folders

    stem = re.sub(r"[^a-z0-9]+", "-", wishes.plan.stem.lower()).strip("-")[:40] or "plan"
    homes = db.resolve().parent / "delivery"
    repo = wishes.repo if wishes.repo.is_dir() else Path()
    git, number = Git(repo, safe=read_safe_folders()), 1

    def is_taken(slug: str) -> bool:
        words = ("rev-parse", "--verify", "--quiet", published_ref(slug))
        return (homes / slug).exists() or git.run(*words).is_ok

    while is_taken(slug := stem if number == 1 else f"{stem}-{number}"):
        number += 1
    return slug


def begin(
    connection: "Connection",
    bundle: "Bundle",
    options: RunConfig,
    terms: "DeliveryConfig",
    mark: str,
) -> int:
    """A new run with a case for each task of the plan; nothing if the plan cannot be used."""
    from interlock.delivery.plan.watch import build_cases, load_usable_plan
    from interlock.delivery.worktrees.clone import inspect_repository
    from interlock.journal.runs import begin_run

    plan = load_usable_plan(terms)
    inspect_repository(
        Path(terms.source), terms.base
    )  # a run keeps its terms: none begins with useless ones
    options = msgspec.structs.replace(options, terms=msgspec.to_builtins(terms))
    return begin_run(
        connection,
        bundle.open().circuit.with_thresholds(options.thresholds),
        msgspec.json.encode(bundle).decode(),
        build_cases(plan),
        source=terms.plan,
        fingerprint=mark,
        options=msgspec.to_builtins(options),
        at=time.time(),
    )


def go_on(
    connection: "Connection", found: "Run", options: RunConfig, note: Callable[[str], None]
) -> RunConfig:
    """The options of a run that has begun, with today's words about who works on it."""
    from interlock.journal.runs import set_options

    _refuse_cleaned(found)
    before = msgspec.convert(found.options, RunConfig)
    now = msgspec.structs.replace(
        options,
        terms=before.terms,
        thresholds=before.thresholds,
        budget=before.budget | options.budget,
    )
    set_options(connection, found.run_id, msgspec.to_builtins(now))
    note(f"going on with run {found.run_id} of this plan (--new begins another)")
    return now


def _refuse_cleaned(found: "Run") -> None:
    """Without its workshop a run has lost its trees; its report stays to tell the tale."""
    from interlock.delivery.report.render import HTML
    from interlock.delivery.worktrees.workspace import MANIFEST

    home = Path(terms_of(found).home)
    if (home / HTML).exists() and not (home / MANIFEST).exists():
        raise StateError(
            f"the workshop of run {found.run_id} was cleaned, so it cannot go on; "
            "'interlock deliver PLAN --new' begins another run"
        )


def terms_of(found: "Run") -> "DeliveryConfig":
    from interlock.delivery.terms import DeliveryConfig

    if found.circuit != _CIRCUIT:
        raise SourceError(
            f"run {found.run_id} is none of deliver, but of {found.circuit}; "
            "'interlock runs' lists them"
        )
    return msgspec.convert(found.options["terms"], DeliveryConfig)


def find_delivery(connection: "Connection", run_id: int | None = None) -> "Run":
    """That run of deliver, or the newest."""
    from interlock.journal.runs import find_run, list_runs

    if run_id is None:
        mine = [each.run_id for each in list_runs(connection) if each.circuit == _CIRCUIT]
        if not mine:
            raise StoreError("nothing was delivered yet; 'interlock deliver PLAN' begins")
        run_id = mine[-1]
    found = find_run(connection, run_id)
    terms_of(found)
    return found


def told_of(
    connection: "Connection",
    found: "Run",
    db: Path | None = None,
    notes: Iterable[str] = (),
    *,
    sat: bool = False,
) -> "DeliveryReport":
    """All that is known of a run; `sat` says that it is this process that has worked on it. With
    the database's path, one that nobody works on any more is told as interrupted."""
    from interlock.api.work import load_circuit
    from interlock.delivery.report.collect import ReportCollector
    from interlock.journal.database import find_writer

    options = msgspec.convert(found.options, RunConfig)
    alive = sat or found.status != "running" or db is None or find_writer(db) is not None
    status = found.status if alive else "interrupted"
    teller = ReportCollector(found, load_circuit(found), terms_of(found), options.agents, status)
    return teller.collect(connection, time.time(), _title(Path(terms_of(found).plan)), notes)


def _title(plan: Path) -> str:
    """What the plan calls itself, if it is still there to say so."""
    from interlock.delivery.plan import read_plan

    try:
        return read_plan(plan).title
    except InterlockError:
        return ""
