"""`--last-green auto`: compare each failing test with its own last remembered pass."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from interlock.system.git import READ, Git, read_safe_folders
from interlock.system.text import plural
from interlock_history.memory import History
from interlock_history.ranges import RangeFinder
from interlock_history.settings import HistorySettings, read_history_settings
from interlock_history.store import HistoryStore, open_store
from interlock_rca.ci_run import CiRun, identify_run
from interlock_rca.config import AUTO, RcaConfig
from interlock_rca.records import Failure, Repo, TestRange
from interlock_rca.sources.git.open import resolve_revision
from interlock_rca.sources.read import SourceLaunch
from interlock_rca.test_names import make_test_id, name_failed_test


def compare_with_history(
    config: RcaConfig,
    intakes: Iterable[SourceLaunch],
    store: str | None,
    note: Callable[[str], None],
) -> RcaConfig:
    """Implement the port `interlock.ranges` of rca with the project's memory of results."""
    settings = read_history_settings()
    memory = open_store(store or os.environ.get("INTERLOCK_STORE") or settings.store)
    return resolve_last_green(config, intakes, memory, settings, os.environ, note)


def resolve_last_green(
    config: RcaConfig,
    intakes: Iterable[SourceLaunch],
    store: HistoryStore,
    settings: HistorySettings,
    environ: Mapping[str, str],
    note: Callable[[str], None],
    known: CiRun | None = None,
) -> RcaConfig:
    """Return the configuration with a range for every failing test, in each repository that has the
    tested commit and whose last green revision is `auto`. `known` is the run; without it, the
    environment and the reports identify the run."""
    greens = config.last_green
    wanted = [repo for repo in config.repos if greens.get(repo.name, greens.get("", "")) == AUTO]
    plain = {name: green for name, green in greens.items() if green != AUTO}
    if not wanted:
        return msgspec.structs.replace(config, last_green=plain)
    memory = History(store, settings)
    for problem in memory.problems:
        note(f"left out: {problem}")
    launches = list(intakes)
    failures = [failure for intake in launches for failure in intake.failures]
    commits = [intake.launch.commit for intake in launches if intake.launch.commit]
    ranges: dict[str, dict[str, TestRange]] = {}
    for repo in wanted:
        run = known or _find_run(repo, commits, memory, settings, environ)
        if not known and run.provider == "local" and not commits:
            run = _find_remembered_run(repo, run, failures, memory, note)
        finder = RangeFinder(memory, run, Path(repo.path), may_deepen=run.provider != "local")
        found = find_test_ranges(finder, failures)
        for text in finder.notes:
            note(f"note: {repo.name}: {text}")
        note(_describe_ranges(repo.name, found))
        ranges[repo.name] = found
    return msgspec.structs.replace(config, last_green=plain, ranges={**config.ranges, **ranges})


def find_test_ranges(finder: RangeFinder, failures: Iterable[Failure]) -> dict[str, TestRange]:
    """Return the range of each failed test by its id. If a report names no suite, or is only a log,
    the test's id without a suite is looked up too."""
    known = {name_failed_test(failure): failure for failure in failures}
    asked = {
        test: test
        if finder.has_test(test)
        else make_test_id("", failure.class_name, failure.test_name)
        for test, failure in known.items()
    }
    found = finder.find_ranges(asked.values())
    return {test: found[name] for test, name in asked.items()}


def _find_run(
    repo: Repo,
    commits: list[str],
    memory: History,
    settings: HistorySettings,
    environ: Mapping[str, str],
) -> CiRun:
    """Return the analysed run: from the environment, on the commit that the reports name if the
    repository has it."""
    folder = Path(repo.path)
    flags = {}
    git = Git(folder, READ, safe=read_safe_folders())
    full = next(filter(None, (resolve_revision(git, commit) for commit in commits)), "")
    if full:
        flags["commit"] = full
    branch = settings.default_branch
    run = identify_run(environ, flags, folder=folder, default_branch=branch).run
    if run.project not in memory.projects and len(memory.projects) == 1:
        run = msgspec.structs.replace(run, project=memory.projects[0])
    return run


def _find_remembered_run(
    repo: Repo,
    run: CiRun,
    failures: list[Failure],
    memory: History,
    note: Callable[[str], None],
) -> CiRun:
    """Guess the commit of results that name none. If the memory has no failure of the tests on the
    checked-out commit, return the newest commit on which all of them fail."""
    tests = {name_failed_test(failure) for failure in failures}
    if tests & set(memory.list_failing(run)):
        return run
    git = Git(Path(repo.path), READ, safe=read_safe_folders())
    for column in memory.list_columns_with(run.project, tests):
        commit = next(filter(None, (resolve_revision(git, each) for each in column.commits)), "")
        if commit:
            note(f"note: {repo.name}: taken for results of {commit[:12]}, where these tests fail")
            return msgspec.structs.replace(run, commit=commit, tree=column.source)
    return run


def _describe_ranges(repo: str, found: Mapping[str, TestRange]) -> str:
    own = sum(each.kind == "last-pass" for each in found.values())
    unsteady = sum(each.kind == "unsteady" for each in found.values())
    none = sum(each.kind == "none" for each in found.values())
    words = [f"{own} compared with the last pass of the same test"]
    words += [f"{unsteady} unsteady"] if unsteady else []
    words += [f"{len(found) - own - unsteady - none} by a weaker comparison"]
    words += [f"{none} without any"] if none else []
    return f"note: {repo}: of {plural(len(found), 'failing test')}, {', '.join(words)}"
