"""A scenario as a suite: what an agent may know of its cases, written where a run begins.

Takes the failures, the repositories and the project's own defect codes out of a scenario, and
leaves every label behind: nothing else of a scenario reaches a store, a prompt or a folder.

Blindness: what an agent may see of a scenario, and a search for what it must not.

Words of the truth are looked for in everything that is written for agents. What the failures, the
repositories, our own templates or the agents themselves said first is no leak.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.engine.circuit import Circuit
from interlock.journal.journal import read_blob
from interlock.journal.runs import find_run
from interlock.journal.sqlite import driver
from interlock.rca.calibration.scenario import ExpectedInvest, LabelledCase, RootCause, Scenario
from interlock.rca.config import RcaConfig
from interlock.rca.intake import arrivals
from interlock.rca.knowledge.intake import begin_suite
from interlock.rca.records import Failure, Job, Launch, Repo
from interlock.rca.sources.read import SourceLaunch
from interlock.rca.taxonomy import TAXONOMY
from interlock.system.errors import SourceError

LAST_GREEN = "last-green"
"""The tag of a planted world that says what last passed."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#:-]{0,127}")


def refuse_unusable(scenario: Scenario) -> None:
    """What no store can hold: cases that cannot be told apart, or that are no names."""
    if not scenario.cases:
        raise SourceError(f"scenario {scenario.name!r} has no cases to run")
    seen: set[str] = set()
    for case in scenario.cases:
        if case.id in seen:
            raise SourceError(f"two cases are called {case.id[:80]!r}; give each its own id")
        if not _ID.fullmatch(case.id):
            raise SourceError(f"{case.id[:80]!r} is no name for a case; write one such as C1")
        seen.add(case.id)


def failure_of(case: LabelledCase) -> Failure:
    """All that a source would have told of the case."""
    return Failure(
        id=case.id,
        test_name=case.test_name,
        message=case.error_message,
        log=case.log_snippet,
        job=case.job,
    )


def intakes_of(scenario: Scenario) -> Iterator[SourceLaunch]:
    """One launch for each version and job; the cases keep the scenario's order."""
    for (version, job), cases in groupby(scenario.cases, lambda case: (case.version, case.job)):
        key = hashlib.sha256(f"{version}\n{job}".encode()).hexdigest()[:16]
        launch = Launch(
            launch_id=key,
            name=job or "tests",
            version=version,
            jobs=(Job(name=job),) if job else (),
        )
        yield SourceLaunch(launch, [failure_of(case) for case in cases], [])


def terms_of(
    scenario: Scenario, worlds: Path | None, *, families: bool, cache: Path | None = None
) -> RcaConfig:
    """How the suite is investigated. Repositories without a world are named, and not looked into
    unless they are there."""
    planted = set(scenario.worlds) if worlds else set()
    greens = {
        name: LAST_GREEN
        for name in planted
        if any(LAST_GREEN in commit.tags for commit in scenario.worlds[name])
    }
    return RcaConfig(
        repos=tuple(_repos(scenario, worlds, planted)),
        last_green=dict(sorted(greens.items())),
        review="dispatch",
        families=families,
        codes=codes_of(scenario),
        cache=str(cache) if cache else "",
    )


def _repos(scenario: Scenario, worlds: Path | None, planted: set[str]) -> Iterator[Repo]:
    for repo in scenario.workspace.repos:
        path = repo.path if repo.path and Path(repo.path).is_dir() else ""
        if worlds is not None and repo.name in planted:
            path = str((worlds / repo.name).resolve())
        yield Repo(name=repo.name, path=path, purpose=repo.purpose, branch=repo.branch)


def codes_of(scenario: Scenario) -> Mapping[str, str]:
    """Defect codes that the scenario's project has and ours does not know, with their category."""
    found: dict[str, str] = {}
    for cause in scenario.rcas:
        if cause.defect_type and TAXONOMY.code(cause.defect_type) is None:
            found[cause.defect_type] = TAXONOMY.category(cause.category) or "unknown"
    return dict(sorted(found.items()))


def begin_scenario(
    connection: Connection,
    scenario: Scenario,
    circuit: Circuit,
    text: str,
    *,
    number: int,
    options: Mapping[str, Any],
    at: float,
) -> int:
    """The scenario's failures as a suite of that number, ready to be worked on."""
    told = [
        msgspec.structs.replace(
            each,
            cases=[msgspec.structs.replace(c, case_id=c.failure.id) for c in each.cases],
        )
        for each in arrivals(list(intakes_of(scenario)))
    ]
    opened = begin_suite(
        *(connection, circuit, text, told),
        name=f"calibration {number}",
        source=scenario.name,
        fingerprint=f"{scenario.digest}-{number}",
        options=options,
        at=at,
        number=number,
    )
    return opened.run_id


_LARGEST = 20_000_000
_STORE_LIKE = re.compile(r"[RS]?[0-9]+")
"""Ids that the store could have given as well."""
_OWN = ("signal.json", "batch-manifest.json", "briefing.md", "budget-status.json")
_PROMPTS = (
    "select c.case_id, d.step, d.prompt, d.dispatch_id from dispatches d"
    " join cases c on c.case_no = d.case_no where c.run_id = ? order by d.dispatch_id"
)
_ANSWERS = "select j.answer from journal j join cases c on c.case_no = j.case_no where c.run_id = ?"
_WORD = re.compile(r"\W+")


class LeakPattern(msgspec.Struct, frozen=True):
    """A word of the truth: what it is, and of whom."""

    kind: str
    subject: str
    text: str


class Leak(msgspec.Struct, frozen=True):
    """A word of the truth, and where it was found."""

    where: str
    kind: str
    subject: str
    text: str


def needles(scenario: Scenario) -> list[LeakPattern]:
    """All words that only the truth says, each once."""
    found: dict[str, LeakPattern] = {}
    for each in (*_of_causes(scenario), *_of_symptoms(scenario), *_of_cases(scenario)):
        if len(each.text.strip()) > 1:
            found.setdefault(each.text.lower(), each)
    return list(found.values())


def visible(scenario: Scenario) -> str:
    """All that may be shown: failures and repositories."""
    parts = [scenario.name]
    for case in scenario.cases:
        fields = msgspec.to_builtins(failure_of(case))
        parts += [case.version, *(str(value) for value in fields.values())]
    for repo in scenario.workspace.repos:
        parts += [repo.name, repo.path, repo.purpose, repo.branch]
    parts.append(msgspec.json.encode(scenario.worlds).decode())
    for world in scenario.worlds.values():
        parts += [text for commit in world for text in (commit.message, *commit.files.values())]
    return "\n".join(parts)


def leaks_of(connection: Connection, run_id: int, scenario: Scenario, root: Path) -> Iterator[Leak]:
    """What of the truth is in the prompts of a run, or in its files below `root`."""
    allowed = f"{visible(scenario)}\n{_said(connection, run_id)}".lower()
    hidden = [each for each in needles(scenario) if each.text.lower() not in allowed]
    for where, text in (*_prompts(connection, run_id), *_files(root / str(run_id))):
        lowered = text.lower()
        for needle in hidden:
            if _stands_in(needle, lowered):
                yield Leak(where, needle.kind, needle.subject, needle.text)


def _stands_in(needle: LeakPattern, lowered: str) -> bool:
    """Single words stand alone, sentences anywhere."""
    text = needle.text.lower()
    if text not in lowered:
        return False
    if _WORD.search(text):
        return True
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", lowered) is not None


def _of_causes(scenario: Scenario) -> Iterator[LeakPattern]:
    for cause in scenario.rcas:
        yield from (LeakPattern(kind, cause.id, text) for kind, text in _told(cause))
        if not _STORE_LIKE.fullmatch(cause.id):
            yield LeakPattern("id", cause.id, cause.id)


def _told(cause: RootCause) -> Iterator[tuple[str, str]]:
    yield "title", cause.title
    yield "description", cause.description
    yield "smoking gun", cause.smoking_gun
    yield "ticket", cause.jira_id
    yield "culprit", cause.culprit
    yield from (("fix", each) for each in cause.fix_prs)
    yield from (("keyword", each) for each in cause.required_keywords)


def _of_symptoms(scenario: Scenario) -> Iterator[LeakPattern]:
    for symptom in scenario.symptoms:
        yield LeakPattern("symptom", symptom.id, symptom.name)
        yield LeakPattern("pattern", symptom.id, symptom.error_pattern)
        if not _STORE_LIKE.fullmatch(symptom.id):
            yield LeakPattern("id", symptom.id, symptom.id)


def _of_cases(scenario: Scenario) -> Iterator[LeakPattern]:
    for case in (*scenario.cases, *scenario.candidates):
        yield from (LeakPattern(kind, case.id, text) for kind, text in _labels(case))


def _labels(case: LabelledCase) -> Iterator[tuple[str, str]]:
    yield "family", case.family
    invests: tuple[ExpectedInvest | None, ...] = (*case.first_invests, case.expected_invest)
    for invest in invests:
        if invest is not None:
            yield "message", invest.rca_message
            yield from (("evidence", ref) for ref in invest.evidence_refs)
    if case.expected_resolve:
        yield from (("reason", repo.reason) for repo in case.expected_resolve.selected_repos)


def _said(connection: Connection, run_id: int) -> str:
    """Our own templates, and every answer that was taken."""
    raw = driver(connection)
    bundle: Any = msgspec.json.decode(find_run(connection, run_id).text)
    own = [*bundle["prompts"].values(), bundle["text"]]
    rows = raw.execute(_ANSWERS, (run_id,)).fetchall()
    texts: list[str] = [read_blob(raw, blob).decode() for (blob,) in rows]
    return "\n".join([*own, *texts])


def _prompts(connection: Connection, run_id: int) -> Iterator[tuple[str, str]]:
    raw = driver(connection)
    for case_id, step, blob, dispatch_id in raw.execute(_PROMPTS, (run_id,)).fetchall():
        where = f"prompt of dispatch {dispatch_id} ({case_id}, {step})"
        yield where, read_blob(raw, blob).decode()


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Paths, and the texts that we write; artifacts are the agents' own."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        yield f"path {path}", str(path.relative_to(folder))
        ours = path.name in _OWN or path.name.startswith("prompt-")
        if ours and path.is_file() and not path.is_symlink() and path.stat().st_size < _LARGEST:
            yield str(path), path.read_text("utf-8", errors="replace")
