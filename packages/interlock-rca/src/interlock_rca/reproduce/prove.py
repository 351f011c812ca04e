"""Confirm the suspects of a suite by running one test of each family.

Chooses the case that represents a family and the commits between the last green and the tested one,
lets the search decide what to run next, and stores every run as soon as it ends.
"""

import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from interlock.journal.connection import Connection
from interlock.system.errors import SourceError
from interlock.system.text import format_line
from interlock.system.time import format_duration
from interlock_rca.config import AUTO, RcaConfig
from interlock_rca.intake import decode_failure
from interlock_rca.knowledge.reproductions import (
    build_run_key,
    load_reproductions,
    load_runs,
    save_reproduction,
    save_run,
)
from interlock_rca.knowledge.suites import Suite, iterate_case_views
from interlock_rca.records import (
    CaseFinding,
    CommandRun,
    Failure,
    FindingFamily,
    Findings,
    Launch,
    Reproduction,
    Suspect,
)
from interlock_rca.reproduce.command import ReproduceCommand, fill_command
from interlock_rca.reproduce.run_command import RunJudge, build_environment, run_command
from interlock_rca.reproduce.scratch_tree import ScratchTree, open_scratch_tree
from interlock_rca.reproduce.search import (
    BudgetSpentError,
    CommitGraph,
    Outcome,
    SearchResult,
    search_culprit,
)
from interlock_rca.reproduce.sentences import format_verdict
from interlock_rca.sources.git.repository import Repository
from interlock_rca.test_names import name_failed_test
from interlock_rca.workspace import CheckoutSet

MAX_COMMITS = 20_000
MAX_COMMITS_WITHOUT_GREEN = 200
_LAST = ("infra", "flake")
"""Kinds that commits rarely cause: their families are run last."""

MakeTag = Callable[[str], str]
"""Returns the tag of one run's processes, given a unique part."""


class RunBudget:
    """The remaining runs, and their deadline."""

    def __init__(self, runs: int, minutes: float, now: Callable[[], float]) -> None:
        self._left = runs
        self._now = now
        self._until = now() + 60 * minutes

    @property
    def is_spent(self) -> bool:
        return self._left <= 0 or self._now() >= self._until

    def take(self, timeout: float) -> float:
        """Use up one run and return its time limit in seconds. Raise BudgetSpentError if none is
        left."""
        if self.is_spent:
            raise BudgetSpentError
        self._left -= 1
        return min(timeout, max(1.0, self._until - self._now()))


def prove_suite(
    connection: Connection,
    suite: Suite,
    findings: Findings,
    config: RcaConfig,
    *,
    folder: Path,
    make_tag: MakeTag,
    note: Callable[[str], None],
) -> int:
    """Run tests that may tell more about the suite's families, within the budget; return the number
    of families.

    A family whose test cannot be run is marked so, and the next one is tried.
    """
    known = load_reproductions(connection, suite.suite_id)
    ready = {each.case_id for each in findings.cases if _is_found(each)}
    families = {
        each.family_id: each
        for each in findings.families
        if any(one in ready for one in each.members)
    }
    # Unproven families are tried again; earlier runs are not repeated.
    pending = [name for name in families if not _is_proven(known.get(name))]
    cases = {each.case_id: each for each in findings.cases}
    pending.sort(key=lambda name: _rank_family(families[name], cases))
    if not pending:
        return 0
    prover = _Prover(connection, findings, config, folder, make_tag, note)
    prover.failures = {
        view.case_id: decode_failure(view.case_id, view.input)
        for view in iterate_case_views(connection, suite.suite_id)
    }
    for number, name in enumerate(pending, 1):
        family = families[name]
        note(f"running family {number} of {len(pending)}: {format_line(family.title, 80)}")
        case, found = prover.prove(family, cases)
        save_reproduction(connection, suite.suite_id, name, case.case_no, found, time.time())
        note(f"  {found.verdict}: {found.sentence}")
    return len(pending)


def _is_proven(found: Reproduction | None) -> bool:
    return found is not None and found.verdict == "proven"


def _is_found(case: CaseFinding) -> bool:
    """Return True if a case was investigated."""
    return case.step.startswith(("F5", "F6")) or not case.step


def _rank_family(family: FindingFamily, cases: Mapping[str, CaseFinding]) -> tuple[bool, int, str]:
    first = cases[family.members[0]]
    return first.category in _LAST, -len(family.members), family.family_id


class _Prover:
    """Proves families for one analysis, within one budget."""

    def __init__(
        self,
        connection: Connection,
        findings: Findings,
        config: RcaConfig,
        folder: Path,
        make_tag: MakeTag,
        note: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._launches = {each.launch_id: each for each in findings.launches}
        self._config = config
        self._settings = config.reproduce
        self._workspace = CheckoutSet(config)
        self._folder = folder
        self._make_tag = make_tag
        self._note = note
        self._budget = RunBudget(self._settings.runs, self._settings.minutes, time.monotonic)
        self.failures: dict[str, Failure] = {}

    def prove(
        self, family: FindingFamily, cases: Mapping[str, CaseFinding]
    ) -> tuple[CaseFinding, Reproduction]:
        """Return the family's representative, and the result of running its test."""
        why = ""
        members = [cases[name] for name in family.members]
        suspects = next((each.suspects for each in members if each.suspects), ())
        for case in members[:20]:
            repository = self._choose_repository(suspects)
            if isinstance(repository, str):
                return case, Reproduction(verdict="untestable", sentence=repository)
            command = self._fill_command(repository, case)
            if isinstance(command, str):
                why = why or command
                continue
            return case, self._prove_case(repository, case, command, suspects)
        return members[0], Reproduction(
            verdict="untestable",
            sentence=f"Its test was not run: {why}.",
            case_id=members[0].case_id,
        )

    def _choose_repository(self, suspects: Sequence[Suspect]) -> Repository | str:
        """Return the repository to run the command in, or why there is none."""
        known = self._workspace.repositories
        named = self._settings.repo or next((each.repo for each in suspects), "")
        name = named or next(iter(known), "")
        repository = known.get(name)
        if repository is None:
            return (
                f"No test was run: there is no repository {name}."
                if name
                else ("No test was run: no repository was named with --repo.")
            )
        if not repository.is_readable:
            problem = next((each.sentence for each in repository.problems if each.fatal), "")
            return f"No test was run: {problem or f'{name} cannot be read'}."
        return repository

    def _find_launch(self, case: CaseFinding) -> Launch | None:
        return self._launches.get(case.launch_id)

    def _fill_command(self, repository: Repository, case: CaseFinding) -> ReproduceCommand | str:
        tested = self._workspace.find_tested(repository.name, self._find_launch(case))

        def find_file(word: str) -> str:
            matches = repository.find_files(word, tested)
            return matches[0].path if matches else ""

        return fill_command(self._settings.command, self.failures[case.case_id], find_file)

    def _prove_case(
        self,
        repository: Repository,
        case: CaseFinding,
        command: ReproduceCommand,
        suspects: Sequence[Suspect],
    ) -> Reproduction:
        tested = self._workspace.find_tested(repository.name, self._find_launch(case))
        good, bad = choose_range(self._config, repository.name, self.failures[case.case_id])
        graph = read_graph(
            repository,
            repository.resolve_revision(good),
            repository.resolve_revision(bad) or repository.resolve_or_tip(tested),
        )
        ranked = [each.commit for each in suspects if each.repo == repository.name]
        try:
            with open_scratch_tree(self._folder, repository) as tree:
                runner = _CommitRunner(self, repository, tree, command, graph, case)
                result = search_culprit(graph, ranked, runner.run, repeats=self._settings.repeats)
        except SourceError as error:
            return Reproduction(
                verdict="untestable",
                sentence=f"Its test was not run: {error}.",
                repo=repository.name,
                case_id=case.case_id,
                command=command.text,
            )
        return self._describe(repository, case, command, result, runner.runs, graph)

    def _describe(
        self,
        repository: Repository,
        case: CaseFinding,
        command: ReproduceCommand,
        result: SearchResult,
        runs: Sequence[CommandRun],
        graph: CommitGraph,
    ) -> Reproduction:
        culprit = _describe_culprit(repository, result.culprit) if result.culprit else None
        decisive = {result.culprit, result.parent, result.about, graph.chain[-1]}
        shown = [
            each if each.commit in decisive else msgspec.structs.replace(each, tail="")
            for each in runs
        ]
        return Reproduction(
            verdict=result.verdict,
            sentence=format_verdict(result, culprit, runs, self._settings.repeats),
            repo=repository.name,
            case_id=case.case_id,
            command=command.text,
            culprit=culprit,
            parent=result.parent,
            candidates=result.candidates,
            runs=tuple(_keep_first_tails(shown)),
        )

    # The part of the analysis that one case's runner needs.

    def load_runs(self, key: str) -> list[CommandRun]:
        return load_runs(self._connection, key)

    def keep_run(self, key: str, attempt: int, run: CommandRun) -> None:
        """Store a run, unless something outside prevented it and may be gone next time."""
        if run.timed_out or not run.stopped:
            save_run(self._connection, key, attempt, run)
        self._note(f"  {run.commit[:12]} {run.outcome} ({run.why or format_duration(run.seconds)})")

    def execute(
        self, script: str, tree: Path, environ: Mapping[str, str], commit: str, shown: str
    ) -> CommandRun:
        seconds = self._budget.take(self._settings.timeout)
        run = run_command(
            script,
            tree,
            environ,
            self._make_tag(secrets.token_hex(4)),
            commit=commit,
            command=shown,
            timeout=seconds,
        )
        if run.timed_out and seconds < self._settings.timeout:
            raise BudgetSpentError  # the budget's end stopped it: that says nothing about the test
        return run

    @property
    def settings_words(self) -> tuple[str, bool]:
        return self._settings.setup, self._settings.keep_ignored


class _CommitRunner:
    """Runs one command at commits, or takes the stored result."""

    def __init__(
        self,
        prover: _Prover,
        repository: Repository,
        tree: ScratchTree,
        command: ReproduceCommand,
        graph: CommitGraph,
        case: CaseFinding,
    ) -> None:
        self._prover = prover
        self._tree = tree
        self._command = command
        self._place = repository.git_dir
        self._judge = RunJudge(case.test_name)
        self._asked: dict[str, int] = {}
        self._kept: dict[str, list[CommandRun]] = {}
        self._at = ""
        self.runs: list[CommandRun] = []
        self._environ = {
            **build_environment(os.environ, repository.top, tree.folder),
            **command.variables,
            "INTERLOCK_FAILING_COMMIT": graph.chain[-1],
        }

    def run(self, commit: str) -> Outcome:
        setup, keep_ignored = self._prover.settings_words
        key = build_run_key(self._place, commit, f"{setup}\0{keep_ignored}", self._command.text)
        if key not in self._kept:
            self._kept[key] = self._prover.load_runs(key)
        attempt = self._asked[key] = self._asked.get(key, 0) + 1
        is_kept = attempt <= len(self._kept[key])
        raw = self._kept[key][attempt - 1] if is_kept else self._execute(commit)
        outcome, why = self._judge.judge(raw)
        run = msgspec.structs.replace(raw, outcome=outcome, why=why)
        self.runs.append(run)
        if not is_kept:
            self._prover.keep_run(key, attempt, run)
        return outcome

    def _execute(self, commit: str) -> CommandRun:
        setup, keep_ignored = self._prover.settings_words
        shown = self._command.text
        if self._at != commit:
            self._at = ""
            if problem := self._tree.check_out(commit, keep_ignored=keep_ignored):
                return CommandRun(commit=commit, command=shown, at=time.time(), stopped=problem)
            if setup and (broken := self._set_up(commit, setup)):
                return broken
            self._at = commit
        return self._run_line(self._command.script, commit, shown)

    def _set_up(self, commit: str, setup: str) -> CommandRun | None:
        """Return the run of a set-up that failed, or None."""
        ran = self._run_line(setup, commit, setup)
        if ran.exit_code == 0:
            return None
        why = ran.stopped or f"the set-up failed with exit code {ran.exit_code}"
        return msgspec.structs.replace(ran, stopped=why, timed_out=False)

    def _run_line(self, script: str, commit: str, shown: str) -> CommandRun:
        environ = {**self._environ, "INTERLOCK_COMMIT": commit}
        return self._prover.execute(script, self._tree.folder, environ, commit, shown)


def _describe_culprit(repository: Repository, commit: str) -> Suspect:
    found = next(iter(repository.read_commits([commit])), None)
    return Suspect(
        repo=repository.name,
        commit=commit,
        subject=found.subject if found else "",
        author=found.author if found else "",
        at=found.at if found else "",
        files=tuple(each.path for each in found.files[:20]) if found else (),
        url=repository.build_commit_url(commit),
        proof="proven",
    )


def _keep_first_tails(runs: Iterable[CommandRun]) -> Iterable[CommandRun]:
    """Keep the last lines of only the first run of a commit: the others repeat them."""
    seen: set[str] = set()
    for run in runs:
        yield msgspec.structs.replace(run, tail="") if run.commit in seen else run
        seen.add(run.commit)


def choose_range(config: RcaConfig, repo: str, failure: Failure) -> tuple[str, str]:
    """Return the passing and the failing commit of a test: by its own results' history, else by the
    last green revision; empty if unknown."""
    own = config.ranges.get(repo, {}).get(name_failed_test(failure)) if config.ranges else None
    if own is not None and own.is_accusing:
        return own.good, own.bad
    green = config.last_green.get(repo) or config.last_green.get("", "")
    return ("" if green == AUTO else green), ""


def read_graph(repository: Repository, good: str, bad: str) -> CommitGraph:
    """Return the commits that the failing one has and the passing one lacks; without a passing one,
    the newest."""
    words = ["rev-list", "--parents", "--topo-order"]
    count = MAX_COMMITS if good else 10 * MAX_COMMITS_WITHOUT_GREEN
    words += [f"--max-count={count}", bad, *([f"^{good}"] if good else [])]
    rows = [line.split() for line in repository.git.read_line(*words).split("\n") if line]
    parents = {commit: tuple(before) for commit, *before in rows} or {bad: ()}
    chain = [bad]
    most = MAX_COMMITS if good else MAX_COMMITS_WITHOUT_GREEN
    while len(chain) < most and parents.get(chain[-1]):
        before = parents[chain[-1]][0]
        if before not in parents:
            break
        chain.append(before)
    return CommitGraph(tuple(reversed(chain)), parents, has_good=bool(good))
