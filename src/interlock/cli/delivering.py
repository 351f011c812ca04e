"""What a delivery is begun with: from the words of a command line to its terms and its run.

Knows where its workshop lies and when a plan's earlier run is gone on with. Nothing here works on a
task.
"""

import hashlib
import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli.crew import Options
from interlock.cli.show import tell
from interlock.core.errors import SourceError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.foreman.terms import Terms
    from interlock.runner.library import Bundle
    from interlock.store.runs import Run
    from interlock.wiring import Settings


class Wishes(msgspec.Struct, frozen=True):
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


def with_roles(options: Options, usual: "Settings") -> Options:
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


def agreed(wishes: Wishes, usual: "Settings", db: Path, slug: str) -> "Terms":
    from interlock.core.format import seconds_of
    from interlock.foreman.terms import Terms
    from interlock.wiring.agents import workspace_of

    return Terms(
        plan=str(wishes.plan.resolve()),
        source=str(wishes.repo.resolve()),
        home=str(db.resolve().parent / "delivery" / slug),
        slug=slug,
        secret=secrets.token_hex(16),
        workspace=workspace_of(db),
        base=wishes.base,
        timeouts={
            name: seconds_of(role.timeout) for name, role in usual.roles.items() if role.timeout
        },
        strict_signals=wishes.strict_signals,
        allow_untestable=wishes.allow_untestable,
        work=usual.delivery,
        checks=tuple(usual.check),
        environments=tuple(usual.environment),
    )


def free_slug(wishes: Wishes, db: Path) -> str:
    """A name for the work that no other delivery has: no folder and no branch is called so."""
    from interlock.sources.git import Git, declared_safe
    from interlock.workshop.names import published_ref

    stem = re.sub(r"[^a-z0-9]+", "-", wishes.plan.stem.lower()).strip("-")[:40] or "plan"
    homes = db.resolve().parent / "delivery"
    repo = wishes.repo if wishes.repo.is_dir() else Path()
    git, number = Git(repo, declared_safe()), 1

    def is_taken(slug: str) -> bool:
        words = ("rev-parse", "--verify", "--quiet", published_ref(slug))
        return (homes / slug).exists() or git.run(*words).fine

    while is_taken(slug := stem if number == 1 else f"{stem}-{number}"):
        number += 1
    return slug


def begin(
    connection: "Connection", bundle: "Bundle", options: Options, terms: "Terms", mark: str
) -> int:
    """A new run with a case for each task of the plan; nothing if the plan cannot be used."""
    from interlock.foreman.plan_watch import cases_of, usable_plan
    from interlock.store.runs import begin_run

    plan = usable_plan(terms)
    options = msgspec.structs.replace(options, terms=msgspec.to_builtins(terms))
    return begin_run(
        connection,
        bundle.open().circuit.with_thresholds(options.thresholds),
        msgspec.json.encode(bundle).decode(),
        cases_of(plan),
        source=terms.plan,
        fingerprint=mark,
        options=msgspec.to_builtins(options),
        at=time.time(),
    )


def go_on(connection: "Connection", found: "Run", options: Options) -> Options:
    """The options of a run that has begun, with today's words about who works on it."""
    from interlock.store.runs import set_options

    before = msgspec.convert(found.options, Options)
    now = msgspec.structs.replace(
        options,
        terms=before.terms,
        thresholds=before.thresholds,
        budget=before.budget | options.budget,
    )
    set_options(connection, found.run_id, msgspec.to_builtins(now))
    tell(f"going on with run {found.run_id} of this plan (--new begins another)")
    return now


def terms_of(found: "Run") -> "Terms":
    from interlock.foreman.terms import Terms

    if found.circuit != "delivery":
        raise SourceError(f"run {found.run_id} is none of deliver, but of {found.circuit}")
    return msgspec.convert(found.options["terms"], Terms)


def outcome(status: str, ends: dict[str, int], halted: str) -> str:
    """The word for how a delivery stands."""
    if halted or "HALTED" in ends:
        return "HALTED"
    if status == "done":
        return "COMPLETE"
    if status == "unhealthy":
        return "PARTIAL" if ends.get("COMPLETE") else "FAILED"
    return {"running": "RUNNING"}.get(status, "PAUSED")


def as_json(run_id: int, terms: "Terms", said: str, ends: dict[str, int]) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "outcome": said,
        "ends": ends,
        "branch": f"interlock/{terms.slug}",
        "home": terms.home,
    }
