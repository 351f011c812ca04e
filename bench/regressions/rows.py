"""The clues of every candidate commit of every case, as the analyst computes them.

Rows are stored, so that weights can be fitted and clues be left out without any repository. They
hold names of repositories, hashes and numbers only.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.regressions.history import Recipe, build_history, list_changes
from bench.regressions.mine import load_projects, open_clone, run_case
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.names import detect_language, find_subject
from interlock_rca.analyst.stack import is_test_name
from interlock_rca.records import Repo
from interlock_rca.sources.git.history import Commit
from interlock_rca.sources.git.repository import Repository
from interlock_rca.sources.read import read_sources

ROWS = Path(__file__).with_name("rows.jsonl")
_MARK = re.compile(r"[._-](?:tests?|spec)$", re.IGNORECASE)
_HELD_OUT = 2, 5
"""So many of so many projects are held out."""


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """One commit of a case."""

    commit: str
    clues: dict[str, float] | None = None
    """The values of its clues; None if the analyst did not look into it."""
    named: bool = False
    """Whether it changed a file that is named like the failing test's: a baseline's only clue."""


class Case(msgspec.Struct, frozen=True):
    """One failing test, and the commits that may have brought it, newest first."""

    case: str
    project: str
    language: str
    form: str
    split: str
    culprit: str
    candidates: tuple[Candidate, ...]


def load_rows() -> list[Case]:
    """Return the stored cases."""
    decoder = msgspec.json.Decoder(Case)
    return [decoder.decode(line) for line in ROWS.read_bytes().splitlines()]


def choose_split(project: str) -> str:
    """Return the split of a project, which depends on its name alone."""
    number = int.from_bytes(hashlib.sha256(project.encode()).digest()[:4], "big")
    return "held-out" if number % _HELD_OUT[1] < _HELD_OUT[0] else "development"


def compute_rows(recipes: Sequence[Recipe], work: Path) -> Iterator[Case]:
    """Yield each case with its rows; a report that is not there is made by running the tests."""
    projects = {each.repository: each for each in load_projects()}
    for recipe in recipes:
        project = projects[recipe.repository]
        clone = open_clone(project, work)
        report = work / "reports" / f"{recipe.name}.xml"
        if not report.exists():
            run_case(project, work, recipe)
        history = build_history(clone, recipe)
        repository = Repository(Repo(name=project.name, path=str(clone)))
        commits = repository.list_commits_since(history.green, history.head)
        launch = read_sources([str(report)])[0]
        span = CommitRange(repository, commits, history.head)
        leads = rank_commits(launch.failures[0], [span])
        clues = {lead.commit.hash: dict(lead.clues) for lead in leads}
        subjects = {_strip(path) for path in list_changes(clone, recipe.fix)[1]}
        yield Case(
            case=recipe.name,
            project=recipe.repository,
            language=recipe.language,
            form=recipe.form,
            split=choose_split(recipe.repository),
            culprit=history.culprit[:12],
            candidates=tuple(
                Candidate(
                    commit.hash[:12], clues.get(commit.hash), _changes_named(commit, subjects)
                )
                for commit in commits
            ),
        )


def _changes_named(commit: Commit, subjects: set[str]) -> bool:
    return any(
        detect_language(change.path)
        and not is_test_name(change.path)
        and _strip(change.path) in subjects
        for change in commit.files
    )


def _strip(path: str) -> str:
    """Return what a file is named after, without its ending and the marks of a test."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return find_subject(_MARK.sub("", stem)).casefold()
