"""Hear reviewers and let what they said count: in the memory, and as answers to the inbox.

Only where the default branch's own code runs is anything kept. A job of a pull request reads what
was said there, shows it, and keeps it in its own comment.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from interlock.api.inbox import AnswerRequest, give_answer
from interlock.api.project import Project
from interlock.journal.database import open_reader
from interlock.rca.analyst.masking import compute_fingerprint
from interlock.rca.ci.forge import GITLAB_TOKENS, Forge, open_forge
from interlock.rca.ci.reviewers import KnownCause, Listener, ReviewerComments
from interlock.rca.history.identity import CiRun
from interlock.rca.history.memory import History
from interlock.rca.history.statements import (
    Statement,
    is_failure_number,
    number_failure,
    unite_statements,
)
from interlock.rca.history.store import HistoryStore
from interlock.rca.intake import decode_failure
from interlock.rca.knowledge.causes import find_rca
from interlock.rca.knowledge.suites import find_open_reviews, list_suites
from interlock.system.errors import (
    InterlockError,
    NoDatabaseError,
    SourceError,
    StateError,
    StoreError,
)
from interlock.system.github import TOKENS, GithubAuthError
from interlock.system.retry import TransientError
from interlock.system.text import find_first_line, format_line

_COLUMNS = 60
"""Of so many of the newest sources the failures are known causes."""
_FLAKE = "nd001"
_READ = ("default", "pull-request")
DAYS = 7 * 86_400.0
"""How far back a repository is searched for what was said to us."""


class CommentReader:
    """Reads the comments on the pull requests of one project. What fails is added to `problems`."""

    def __init__(
        self,
        forge: Forge,
        project: str,
        store: HistoryStore,
        database: Project,
        problems: list[str],
    ) -> None:
        self._forge = forge
        self._project = project
        self._store = store
        self._database = database
        self._problems = problems
        self._known = store.read_statements()

    def read(self, pr: str, *, is_asked: bool = True) -> ReviewerComments:
        """What is said in a pull request, acknowledged there."""
        listener = Listener(self._forge, self._project, self._find_cause, self._known)
        found = listener.read(pr, is_asked=is_asked)
        self._problems += found.problems
        self._known = unite_statements(self._known.every, found.new)
        return found

    def keep(self, pr: str, found: ReviewerComments) -> int:
        """Remember what is new, show it in the report, and answer the inbox with it; how many
        questions that answered."""
        for each in found.statements:
            self._store.add_statement(each)
        if found.new:
            listener = Listener(self._forge, self._project, self._find_cause, self._known)
            listener.show(pr, found.statements)
        return sum(answer_questions(self._database, each, self._problems) for each in found.new)

    def read_repository(self, now: float) -> Iterator[tuple[str, ReviewerComments]]:
        """Every pull request in which somebody may have spoken to us lately."""
        for pr in self._forge.list_addressed(now - DAYS):
            found = self.read(pr, is_asked=False)
            if found.reports:
                yield pr, found

    def _find_cause(self, number: int) -> KnownCause | None:
        """What a number means: a failure that is remembered, or a root cause of the database."""
        if is_failure_number(number):
            return find_remembered_cause(self._store, self._project, number)
        try:
            with open_reader(self._database.db) as connection:
                found = find_rca(connection, number)
        except NoDatabaseError:
            return None
        return KnownCause(format_line(found.title, 200)) if found else None


def read_reviewers(
    run: CiRun,
    store: HistoryStore,
    database: Project,
    problems: list[str],
    environ: Mapping[str, str] = os.environ,
) -> tuple[Statement, ...]:
    """What reviewers said that counts for a run: in its own pull request, of which nothing is
    kept; for the default branch in all of them, which is kept. Without a token nothing is read."""
    names = {"github": TOKENS, "gitlab": GITLAB_TOKENS}.get(run.provider, ())
    if not any(environ.get(name) for name in names) or run.scope not in _READ:
        return ()
    try:
        forge = open_forge(run.provider, environ, run.project)
    except SourceError as error:
        problems += [str(error)] if run.pr else []
        return ()
    if forge is None:
        return ()
    reader = CommentReader(forge, run.project, store, database, problems)
    try:
        if run.pr:
            return reader.read(run.pr, is_asked=False).statements
        for pr, found in reader.read_repository(time.time()):
            reader.keep(pr, found)
    except GithubAuthError as error:
        # A token that is not meant to comment needs no warning on every push.
        problems += [f"the reviewers' comments were not read: {error}"] if run.pr else []
    except (SourceError, StoreError) as error:
        problems.append(f"the reviewers' comments were not read: {error}")
    except TransientError as error:
        problems.append(f"the reviewers' comments were not read: the server {error.reason}")
    finally:
        forge.close()
    return ()


def find_remembered_cause(store: HistoryStore, project: str, number: int) -> KnownCause | None:
    """A failure of the default branch with that number. Two that share it are none."""
    memory = History(store)
    found: dict[str, str] = {}
    for lane in memory.list_lanes(project):
        for column in memory.list_columns(lane)[-_COLUMNS:]:
            for segment_id in column.segments:
                packed = store.read(segment_id)
                for each in packed.failures if packed else ():
                    if each.fingerprint and number_failure(each.fingerprint) == number:
                        found[each.fingerprint] = find_first_line(each.excerpt) or each.test
    if len(found) != 1:
        return None
    ((mark, title),) = found.items()
    return KnownCause(title, (mark,))


def answer_questions(project: Project, said: Statement, problems: list[str]) -> int:
    """Answer the reviews that wait for a word about these failures, if the project's database has
    any; how many. The first answer to a question counts, so reading it twice changes nothing."""
    answered = 0
    try:
        for question in _find_questions(project, said.fingerprints):
            decision, fields = _make_answer(said)
            if decision:
                given = AnswerRequest(
                    str(question), decision, said.describe(), fields, said.by, said.by, True
                )
                with suppress(StateError):  # somebody answered it before
                    give_answer(project.db, project.settings, given)
                    answered += 1
    except NoDatabaseError:
        return 0
    except InterlockError as error:
        problems.append(f"the inbox is not answered: {format_line(str(error), 300)}")
    return answered


def _find_questions(project: Project, fingerprints: Iterable[str]) -> list[int]:
    """One question of each family that waits: an answer is for the family."""
    wanted, families, found = set(fingerprints), set[str](), []
    with open_reader(project.db) as connection:
        for suite in list_suites(connection):
            for question, case in find_open_reviews(connection, suite.run_id).items():
                mark = compute_fingerprint(decode_failure(case.case_id, case.input))
                family = f"{suite.suite_id} {case.input.get('family', case.case_id)}"
                if mark in wanted and family not in families:
                    families.add(family)
                    found.append(question)
    return found


def _make_answer(said: Statement) -> tuple[str, dict[str, str]]:
    """The decision at the review, with its fields."""
    match said.action:
        case "not-this":
            return "reassess", {}
        case "flaky":
            fields = {"human_override.defect_type": _FLAKE}
            return "overturn", {**fields, "human_override.rca_message": said.describe()}
        case "cause":
            return "overturn", {"human_override.rca_message": said.describe()}
    return "", {}
