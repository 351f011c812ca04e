"""Blind runs: a scenario as a suite without its labels.

Failures, repositories and the project's own defect codes are all that reaches a store, a prompt or
a folder.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection
from interlock.journal.runs import NewRun
from interlock.system.errors import SourceError
from interlock_rca.calibration.scenario import LabelledCase, Scenario
from interlock_rca.config import RcaConfig
from interlock_rca.intake import make_arrivals
from interlock_rca.knowledge.intake import NewSuite, begin_suite
from interlock_rca.records import Failure, Job, Launch, Repo
from interlock_rca.sources.read import SourceLaunch
from interlock_rca.taxonomy import TAXONOMY

LAST_GREEN_TAG = "last-green"
"""The tag of a planted world that says what last passed."""
_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#:-]{0,127}")


def refuse_unusable(scenario: Scenario) -> None:
    """What no store can hold: cases that cannot be told apart, or that are no names."""
    if not scenario.cases:
        raise SourceError(f"scenario {scenario.name!r} has no cases to run")
    seen: set[str] = set()
    for case in scenario.cases:
        if case.id in seen:
            raise SourceError(f"two cases have the id {case.id[:80]!r}; give each its own")
        if not _CASE_ID.fullmatch(case.id):
            raise SourceError(f"{case.id[:80]!r} is not a valid case id; use one like C1")
        seen.add(case.id)


def make_failure(case: LabelledCase) -> Failure:
    """All that a source would have told of the case."""
    return Failure(
        id=case.id,
        test_name=case.test_name,
        message=case.error_message,
        log=case.log_snippet,
        job=case.job,
    )


def make_launches(scenario: Scenario) -> Iterator[SourceLaunch]:
    """One launch for each version and job; the cases keep the scenario's order."""
    for (version, job), cases in groupby(scenario.cases, lambda case: (case.version, case.job)):
        key = hashlib.sha256(f"{version}\n{job}".encode()).hexdigest()[:16]
        launch = Launch(
            launch_id=key,
            name=job or "tests",
            version=version,
            jobs=(Job(name=job),) if job else (),
        )
        yield SourceLaunch(launch, [make_failure(case) for case in cases], [])


def make_config(
    scenario: Scenario, worlds: Path | None, *, families: bool, cache: Path | None = None
) -> RcaConfig:
    """How the suite is investigated. Repositories without a world are named, and not looked into
    unless they are there."""
    planted = set(scenario.worlds) if worlds else set()
    greens = {
        name: LAST_GREEN_TAG
        for name in planted
        if any(LAST_GREEN_TAG in commit.tags for commit in scenario.worlds[name])
    }
    return RcaConfig(
        repos=tuple(_list_repos(scenario, worlds, planted)),
        last_green=dict(sorted(greens.items())),
        review="dispatch",
        families=families,
        codes=find_own_codes(scenario),
        cache=str(cache) if cache else "",
    )


def _list_repos(scenario: Scenario, worlds: Path | None, planted: set[str]) -> Iterator[Repo]:
    for repo in scenario.workspace.repos:
        path = repo.path if repo.path and Path(repo.path).is_dir() else ""
        if worlds is not None and repo.name in planted:
            path = str((worlds / repo.name).resolve())
        yield Repo(name=repo.name, path=path, purpose=repo.purpose, branch=repo.branch)


def find_own_codes(scenario: Scenario) -> Mapping[str, str]:
    """Defect codes that the scenario's project has and ours does not know, with their category."""
    found: dict[str, str] = {}
    for cause in scenario.rcas:
        if cause.defect_type and TAXONOMY.find_code(cause.defect_type) is None:
            found[cause.defect_type] = TAXONOMY.find_category(cause.category) or "unknown"
    return dict(sorted(found.items()))


def begin_scenario(
    scenario: Scenario,
    connection: Connection,
    circuit: Circuit,
    text: str,
    *,
    number: int,
    options: Mapping[str, Any],
    at: float,
) -> int:
    """The scenario's failures as a suite of that number, ready to be worked on."""
    launches = [
        msgspec.structs.replace(
            each,
            cases=[msgspec.structs.replace(c, case_id=c.failure.id) for c in each.cases],
        )
        for each in make_arrivals(list(make_launches(scenario)))
    ]
    opened = begin_suite(
        connection,
        NewSuite(
            run=NewRun(
                circuit=circuit,
                text=text,
                source=scenario.name,
                fingerprint=f"{scenario.digest}-{number}",
                options=options,
                at=at,
            ),
            name=f"calibration {number}",
            number=number,
        ),
        launches,
    )
    return opened.run_id
