"""The planted causes are the causes: without one of them, its family passes, and no other does."""

from pathlib import Path

import pytest
from tests.rca.demo.junit import failing, read_results

from interlock.rca.demo.world import World, run_job, run_nightly
from interlock.system.errors import SourceError
from interlock.system.git import SEED, Git, check_out

QUIET = "1198"  # a build in which no mail is slow
BEGAN = "2026-11-12T05:30:00+00:00"


def heads(world: World) -> dict[str, str]:
    return {repo.name: repo.branch for repo in world.repos}


def test_last_green_is_green(world: World, tmp_path: Path) -> None:
    results = tmp_path / QUIET
    workspace = tmp_path / "ci"
    repos = world.folder / "repos"
    assert run_nightly(repos, world.last_green, workspace, results, began=BEGAN)
    assert failing(read_results(results)) == set()


@pytest.mark.parametrize("family_id", ["floats", "columns", "channel", "pattern", "stock-b"])
def test_without_the_culprit_its_family_passes_and_no_other(
    world: World, tmp_path: Path, family_id: str
) -> None:
    guilty = next(each for each in world.truth if each.family_id == family_id)
    for name, branch in heads(world).items():
        check_out(world.folder / "repos" / name, branch, tmp_path / "ci" / name)
    Git(tmp_path / "ci" / guilty.repo, SEED).ask("revert", "--no-commit", guilty.commit)
    assert not run_job(tmp_path / "ci", tmp_path / QUIET, began=BEGAN)
    left = {test for each in world.truth for test in each.tests if each.commit and each != guilty}
    assert failing(read_results(tmp_path / QUIET)) == left


def test_a_job_that_cannot_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"could not be run: .*can't open file"):
        run_job(tmp_path, tmp_path / QUIET, began=BEGAN)


def test_a_suite_that_breaks_down_leaves_its_words(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "ci"
    results = tmp_path / QUIET
    for name, branch in heads(world).items():
        check_out(world.folder / "repos" / name, branch, workspace / name)
    (workspace / "shop-tests" / "suite" / "junit.py").write_text("import nothing_like_it\n")
    console = results / "logs" / "console.log"
    with pytest.raises(SourceError, match=f"could not be run: see {console}"):
        run_job(workspace, results, began=BEGAN)
    assert console.read_text().endswith("No module named 'nothing_like_it'\n")
