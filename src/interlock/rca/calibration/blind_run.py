"""Blind runs: a scenario as a suite without its labels, and a search for labels that leaked.

Failures, repositories and the project's own defect codes are all that reaches a store, a prompt or
a folder. Afterwards, words of the truth are looked for in everything that was written for agents;
what failures, repositories, our own templates or the agents themselves said first is no leak.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection, raw_connection
from interlock.journal.journal import read_blob
from interlock.journal.runs import find_run
from interlock.rca.calibration.scenario import ExpectedInvest, LabelledCase, RootCause, Scenario
from interlock.rca.config import RcaConfig
from interlock.rca.intake import make_arrivals
from interlock.rca.knowledge.intake import begin_suite
from interlock.rca.records import Failure, Job, Launch, Repo
from interlock.rca.sources.read import SourceLaunch
from interlock.rca.taxonomy import TAXONOMY
from interlock.runtime.benchmark import Leak
from interlock.system.errors import SourceError

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
        circuit,
        text,
        launches,
        name=f"calibration {number}",
        source=scenario.name,
        fingerprint=f"{scenario.digest}-{number}",
        options=options,
        at=at,
        number=number,
    )
    return opened.run_id


_MAX_BYTES = 20_000_000
_STORED_ID = re.compile(r"[RS]?[0-9]+")
"""Ids that the store could have given as well."""
_OWN_FILES = ("signal.json", "batch-manifest.json", "briefing.md", "budget-status.json")
_PROMPTS_QUERY = (
    "select c.case_id, d.step, d.prompt, d.dispatch_id from dispatches d"
    " join cases c on c.case_no = d.case_no where c.run_id = ? order by d.dispatch_id"
)
_ANSWERS_QUERY = (
    "select j.answer from journal j join cases c on c.case_no = j.case_no where c.run_id = ?"
)
_NON_WORD = re.compile(r"\W+")


class LeakPattern(msgspec.Struct, frozen=True):
    """A word of the truth: what it is, and of whom."""

    kind: str
    subject: str
    text: str


def list_leak_patterns(scenario: Scenario) -> list[LeakPattern]:
    """All words that only the truth says, each once."""
    found: dict[str, LeakPattern] = {}
    for each in (
        *_list_cause_patterns(scenario),
        *_list_symptom_patterns(scenario),
        *_list_case_patterns(scenario),
    ):
        if len(each.text.strip()) > 1:
            found.setdefault(each.text.lower(), each)
    return list(found.values())


def collect_visible_text(scenario: Scenario) -> str:
    """All that may be shown: failures and repositories."""
    parts = [scenario.name]
    for case in scenario.cases:
        fields = msgspec.to_builtins(make_failure(case))
        parts += [case.version, *(str(value) for value in fields.values())]
    for repo in scenario.workspace.repos:
        parts += [repo.name, repo.path, repo.purpose, repo.branch]
    parts.append(msgspec.json.encode(scenario.worlds).decode())
    for world in scenario.worlds.values():
        parts += [text for commit in world for text in (commit.message, *commit.files.values())]
    return "\n".join(parts)


def find_leaks(scenario: Scenario, connection: Connection, run_id: int, root: Path) -> list[Leak]:
    """What of the truth is in the prompts of a run, or in its files below `root`."""
    allowed = (
        f"{collect_visible_text(scenario)}\n{_collect_allowed_text(connection, run_id)}".lower()
    )
    hidden = [each for each in list_leak_patterns(scenario) if each.text.lower() not in allowed]
    texts = (*_read_prompts(connection, run_id), *_read_files(root / str(run_id)))
    lowered = [(where, text.lower()) for where, text in texts]
    return [
        Leak(where, pattern.kind, pattern.subject, pattern.text)
        for where, text in lowered
        for pattern in hidden
        if _is_in(pattern, text)
    ]


def _is_in(pattern: LeakPattern, lowered: str) -> bool:
    """Single words stand alone, sentences anywhere."""
    text = pattern.text.lower()
    if text not in lowered:
        return False
    if _NON_WORD.search(text):
        return True
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", lowered) is not None


def _list_cause_patterns(scenario: Scenario) -> Iterator[LeakPattern]:
    for cause in scenario.rcas:
        yield from (LeakPattern(kind, cause.id, text) for kind, text in _list_cause_words(cause))
        if not _STORED_ID.fullmatch(cause.id):
            yield LeakPattern("id", cause.id, cause.id)


def _list_cause_words(cause: RootCause) -> Iterator[tuple[str, str]]:
    yield "title", cause.title
    yield "description", cause.description
    yield "smoking gun", cause.smoking_gun
    yield "ticket", cause.jira_id
    yield "culprit", cause.culprit
    yield from (("fix", each) for each in cause.fix_prs)
    yield from (("keyword", each) for each in cause.required_keywords)


def _list_symptom_patterns(scenario: Scenario) -> Iterator[LeakPattern]:
    for symptom in scenario.symptoms:
        yield LeakPattern("symptom", symptom.id, symptom.name)
        yield LeakPattern("pattern", symptom.id, symptom.error_pattern)
        if not _STORED_ID.fullmatch(symptom.id):
            yield LeakPattern("id", symptom.id, symptom.id)


def _list_case_patterns(scenario: Scenario) -> Iterator[LeakPattern]:
    for case in (*scenario.cases, *scenario.candidates):
        yield from (LeakPattern(kind, case.id, text) for kind, text in _list_case_words(case))


def _list_case_words(case: LabelledCase) -> Iterator[tuple[str, str]]:
    yield "family", case.family
    invests: tuple[ExpectedInvest | None, ...] = (*case.first_invests, case.expected_invest)
    for invest in invests:
        if invest is not None:
            yield "message", invest.rca_message
            yield from (("evidence", ref) for ref in invest.evidence_refs)
    if case.expected_resolve:
        yield from (("reason", repo.reason) for repo in case.expected_resolve.selected_repos)


def _collect_allowed_text(connection: Connection, run_id: int) -> str:
    """Our own templates, and every answer that was taken."""
    raw = raw_connection(connection)
    bundle: Any = msgspec.json.decode(find_run(connection, run_id).text)
    own = [*bundle["prompts"].values(), bundle["text"]]
    rows = raw.execute(_ANSWERS_QUERY, (run_id,)).fetchall()
    texts: list[str] = [read_blob(raw, blob).decode() for (blob,) in rows]
    return "\n".join([*own, *texts])


def _read_prompts(connection: Connection, run_id: int) -> Iterator[tuple[str, str]]:
    raw = raw_connection(connection)
    for case_id, step, blob, dispatch_id in raw.execute(_PROMPTS_QUERY, (run_id,)).fetchall():
        where = f"prompt of dispatch {dispatch_id} ({case_id}, {step})"
        yield where, read_blob(raw, blob).decode()


def _read_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Paths, and the texts that we write; artifacts are the agents' own."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        yield f"path {path}", str(path.relative_to(folder))
        ours = path.name in _OWN_FILES or path.name.startswith("prompt-")
        if ours and path.is_file() and not path.is_symlink() and path.stat().st_size < _MAX_BYTES:
            yield str(path), path.read_text("utf-8", errors="replace")
