"""Find fixes whose undoing a project's own tests notice.

A fix changed sources and tests. Its case counts if its tests pass at the fix and just before the
culprit, and one of them fails at the culprit and still at the head.
"""

import hashlib
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.regressions.history import (
    GitError,
    Recipe,
    build_history,
    count_undoable,
    list_changes,
    run_git,
)
from bench.regressions.runners import Project, RunError, RunResult, prepare, run_tests

PROJECTS = Path(__file__).with_name("projects.toml")
RECIPES = Path(__file__).with_name("recipes.jsonl")
_FIXING = re.compile(
    r"fix|bug|issue|regress|crash|wrong|incorrect|error|correct|#\d+", re.IGNORECASE
)
_MOST_SOURCES, _MOST_TESTS = 4, 4
_MOST_CANDIDATES = 40
_FEWEST = 5
_MOST_TRIES = 20
_MOST_MISSES = 6
"""So many tries in a row without a case end a project."""


def load_projects() -> list[Project]:
    """Return the projects that may be mined."""
    rows = tomllib.loads(PROJECTS.read_text())["project"]
    return msgspec.convert(rows, list[Project])


def load_recipes() -> list[Recipe]:
    """Return the recipes of all cases that were found."""
    decoder = msgspec.json.Decoder(Recipe)
    return [decoder.decode(line) for line in RECIPES.read_bytes().splitlines()]


def open_clone(project: Project, work: Path) -> Path:
    """Return a clone of the project below the work folder, made from its mirror if need be."""
    repo = work / "repos" / project.name
    if not repo.exists():
        mirror = work.parent / ".mirror" / project.repository.replace("/", "+") / "repo"
        run_git(Path.cwd(), "clone", "-q", "-s", str(mirror), str(repo))
    return repo


def mine_project(project: Project, work: Path, most: int, seconds: float) -> Iterator[Recipe]:
    """Yield cases of a project that were run, until it has `most` of them or the time is up."""
    known = {each.fix for each in load_recipes() if each.repository == project.repository}
    repo = open_clone(project, work)
    check_out(repo, project.rev)
    prepare(project, work, repo)
    end = time.monotonic() + seconds
    rev = run_git(repo, "rev-parse", project.rev).strip()
    line = run_git(repo, "rev-list", "--first-parent", rev).split()
    tries, found, misses = 0, len(known), 0
    last = -_FEWEST
    for place, fix in enumerate(line):
        if found >= most or max(tries - _MOST_TRIES, misses - _MOST_MISSES) >= 0:
            return
        if time.monotonic() > end:
            return
        if fix in known:
            last = place
        if place <= _FEWEST or place < last + _FEWEST or not _is_fix(repo, fix):
            continue
        recipe = _plan(repo, project, line[: place + 1][::-1])
        if recipe is None:
            continue
        tries, misses = tries + 1, misses + 1
        try:
            run_case(project, work, recipe)
        except (GitError, RunError) as error:
            print(f"{recipe.name}: {str(error)[:160]!r}", file=sys.stderr, flush=True)
            continue
        found, misses, last = found + 1, 0, place
        yield recipe


def _is_fix(repo: Path, commit: str) -> bool:
    if not _FIXING.search(run_git(repo, "log", "-1", "--format=%B", commit)):
        return False
    try:
        sources, tests = list_changes(repo, commit)
    except GitError:
        return False
    return 0 < len(sources) <= _MOST_SOURCES and 0 < len(tests) <= _MOST_TESTS


def _plan(repo: Path, project: Project, line: list[str]) -> Recipe | None:
    """Choose where the fix is undone, how, and how far the history goes, by its hash alone."""
    fix = line[0]
    dice = hashlib.sha256(fix.encode()).digest()
    before, after = 2 + dice[0] % 18, 2 + dice[1] % 18
    places = list(count_undoable(repo, line[: before + after + 3]))
    if len(places) < _FEWEST:
        return None
    if len(places) < before + after:
        before = max(1, before * len(places) // (before + after))
    form = "hidden" if dice[2] % 2 else "alone"
    if form == "hidden":
        fits = (at for at in range(before, len(places) - 1) if list_changes(repo, line[at + 1])[0])
        before = next(fits, -1)
        if before < 0:
            return None
    end = min(len(places), before + after, _MOST_CANDIDATES - 1)
    if end <= before:
        return None
    return Recipe(project.repository, project.language, fix, line[end], form, before)


def check_out(repo: Path, rev: str) -> None:
    run_git(repo, "checkout", "-q", "-f", "--detach", rev)
    run_git(repo, "clean", "-fdxq", "-e", "node_modules")


def run_case(project: Project, work: Path, recipe: Recipe) -> Path:
    """Make a case and run it; return the report, or raise if the tests do not tell the culprit."""
    repo = open_clone(project, work)
    report = work / "reports" / f"{recipe.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    history = build_history(repo, recipe)
    _, tests = list_changes(repo, recipe.fix)

    def run(rev: str) -> RunResult:
        check_out(repo, rev)
        return run_tests(project, work, repo, tests, work / f"{project.name}.xml")

    head = run(history.head)
    if not head.red:
        raise RunError("no test fails at the head")
    red = head.red - run(history.green).red
    if not red:
        raise RunError("its tests fail at the fix, too")
    red &= run(history.before).green
    if not red:
        raise RunError("no test that fails at the head passes before the culprit")
    red &= run(history.culprit).red
    if not red:
        raise RunError("no test fails at the culprit")
    for parent in list(head.tree.iter()):
        for case in parent.findall("testcase"):
            failed = any(child.tag in ("failure", "error") for child in case)
            if failed and (case.get("classname", ""), case.get("name", "")) not in red:
                parent.remove(case)
    head.tree.write(report)
    run_git(repo, "update-ref", f"refs/cases/{recipe.name}", history.head)
    return report
