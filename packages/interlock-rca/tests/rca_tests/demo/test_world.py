"""The small world: made in its own folder only, the same each time, broken exactly as planted.

The planted causes are the causes: without one of them, its family passes, and no other does.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from interlock.system.errors import SourceError, StateError
from interlock.system.git import SEED, Git
from interlock_rca.demo.history import PlantedFault
from interlock_rca.demo.world import PURPOSES, DemoWorld, build_world, run_job, run_nightly
from interlock_rca.seed_repository import check_out
from rca_tests.demo.junit import Result, failing, read_results

MAKE = """
import sys
from pathlib import Path
from interlock.system.errors import InterlockError
from interlock_rca.demo.world import build_world
try:
    world = build_world(Path(sys.argv[1]))
except InterlockError as error:
    sys.exit(f"interlock: {error}")
print({repo.name: [repo.path, world.last_green[repo.name]] for repo in world.repos})
"""


def begin(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Make the world in a process of its own, with that environment on top."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", MAKE, folder],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def family(world: DemoWorld, family_id: str) -> PlantedFault:
    return next(each for each in world.truth if each.family_id == family_id)


def results_of(world: DemoWorld, family_id: str) -> list[Result]:
    tests = family(world, family_id).tests
    return [result for result in read_results(world.today) if result.name in tests]


def test_three_repositories_with_a_history(world: DemoWorld) -> None:
    assert [repo.name for repo in world.repos] == list(PURPOSES)
    for repo in world.repos:
        folder = Path(repo.path)
        authors = Git(folder, SEED).read_line("log", "--format=%an", repo.branch).splitlines()
        assert 15 <= len(authors) <= 40
        assert len(set(authors)) >= 3
        assert Git(folder, SEED).read_line("status", "--porcelain") == ""
        assert (
            Git(folder, SEED).read_line("rev-parse", "last-green").strip()
            == world.last_green[repo.name]
        )
        since = Git(folder, SEED).read_line("rev-list", f"last-green..{repo.branch}").split()
        assert len(since) >= 5


def test_a_commit_near_the_culprit_touches_the_same_files_and_is_innocent(world: DemoWorld) -> None:
    shop = Path(world.repos[0].path)
    outcome = Git(shop, SEED).read_line(
        "log", "--format=%H", "last-green..main", "--", "src/shop/pricing.py"
    )
    assert family(world, "floats").commit in outcome.split()[:-1]
    assert len(outcome.split()) == 3


def test_today_fails_what_was_planted_and_nothing_else(world: DemoWorld) -> None:
    results = read_results(world.today)
    planted = [test for each in world.truth for test in each.tests]
    assert Counter(planted).most_common(1)[0][1] == 1
    assert failing(results) == set(planted)
    assert len(planted) == 37
    assert len({result.name for result in results}) == 94


def test_the_product_regression_shows_many_faces(world: DemoWorld) -> None:
    results = results_of(world, "floats")
    assert {result.type for result in results} == {
        "AssertionError",
        "TypeError",
        "shop.pricing.QuoteError",
    }
    deepest = {re.findall(r'File ".*/(\w+\.py)", line', result.text)[-1] for result in results}
    assert deepest == {"discounts.py", "pricing.py", "test_discounts.py", "test_pricing.py"}


def test_duplicates_differ_in_their_names_only(world: DemoWorld) -> None:
    found = Counter(
        (result.name.rpartition(".")[2], result.message)
        for result in results_of(world, "floats")
        if "Checkout" in result.name
    )
    assert sorted(found.values()) == [2, 2, 2]


def test_the_automation_bug_fails_inside_the_tests_repository(world: DemoWorld) -> None:
    for result in results_of(world, "pattern"):
        frames = re.findall(r'File "(.+)", line', result.text)
        assert all("/shop-tests/" in frame for frame in frames)
        assert frames[-1].endswith("/shop-tests/support/receipts.py")


def test_the_environment_failure_is_a_refused_connection(world: DemoWorld) -> None:
    for result in results_of(world, "stock-b"):
        assert "ConnectionRefusedError: " in result.text
        assert "/shop-deploy/environments/ci.toml: stock is stock-b, 127.0.0.1:" in result.log


def test_the_cascade_begins_before_its_tests(world: DemoWorld) -> None:
    results = results_of(world, "channel")
    assert len(results) == 7
    assert len({result.text for result in results}) == 1
    assert "in setUpClass\n" in results[0].text


def test_the_flake_passes_when_it_is_tried_again(world: DemoWorld) -> None:
    results = results_of(world, "slow-mail")
    tried = Counter((result.name, result.status) for result in results)
    assert sorted(status for _, status in tried) == ["failure", "failure", "passed", "passed"]
    failed = [result for result in results if result.status == "failure"]
    assert all(result.log.endswith(": second attempt passed\n") for result in failed)
    often = Counter(result.name for result in read_results(world.today))
    assert {name for name, times in often.items() if times > 1} == {name for name, _ in tried}


def test_one_was_seen_before_at_other_lines(world: DemoWorld) -> None:
    before = [result for result in read_results(world.earlier) if result.status != "passed"]
    now = results_of(world, "columns")
    assert {result.name for result in before} < {result.name for result in now}
    assert {(result.type, result.message) for result in [*before, *now]} == {
        ("TypeError", "Object of type Decimal is not JSON serializable")
    }
    lines = [
        set(re.findall(r'export\.py", line (\d+), in _line', result.text))
        for result in (before[0], now[0])
    ]
    assert lines[0] != lines[1]
    assert [each.family_id for each in world.truth if each.seen_before] == ["columns"]


def test_a_run_says_when_and_what_it_ran(world: DemoWorld) -> None:
    days = {world.earlier: "2026-10-22", world.today: "2026-11-12"}
    for folder, day in days.items():
        for path in folder.glob("*.xml"):
            root = ElementTree.parse(path).getroot()
            assert root.attrib["timestamp"].startswith(day)
            output = {each.attrib["name"]: each.attrib["value"] for each in root.iter("property")}
            assert output["build"] == folder.name
            repo = world.folder / "repos" / "shop"
            assert Git(repo, SEED).read_line("cat-file", "-t", output["shop.commit"]) == "commit"


def test_every_machine_makes_the_same_commits(world: DemoWorld, tmp_path: Path) -> None:
    settings = "[init]\ndefaultBranch = trunk\n[user]\nname = Me\n[commit]\ngpgSign = true\n"
    settings += "[core]\nautocrlf = true\nhooksPath = /nonexistent\n"
    (tmp_path / ".gitconfig").write_text(settings)
    mine = {
        "HOME": str(tmp_path),
        "GIT_CONFIG_GLOBAL": str(tmp_path / ".gitconfig"),
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
        "GIT_DEFAULT_HASH": "sha256",
        "PYTHONOPTIMIZE": "2",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
    }
    process = begin(tmp_path / "ein Ort für alles", **mine)
    _, problem = process.communicate()
    assert (process.returncode, problem) == (0, "")
    other = tmp_path / "ein Ort für alles"
    for repo in world.repos:
        heads = [
            Git(folder / "repos" / repo.name, SEED).read_line("show-ref")
            for folder in (world.folder, other)
        ]
        assert heads[0] == heads[1]
    here, there = (
        read_results(folder / "results" / world.today.name) for folder in (world.folder, other)
    )
    assert [(each.name, each.status) for each in here] == [
        (each.name, each.status) for each in there
    ]
    assert not (tmp_path / "elsewhere").exists()


def test_a_finished_world_is_used_again(world: DemoWorld) -> None:
    files = sorted(world.folder.rglob("*"))
    before = {path: path.stat().st_mtime_ns for path in files}
    assert build_world(world.folder) == world
    assert {path: path.stat().st_mtime_ns for path in sorted(world.folder.rglob("*"))} == before


def test_a_world_half_made_is_made_anew_once_and_nothing_else_touched(
    world: DemoWorld, tmp_path: Path
) -> None:
    folder = tmp_path / "half"
    shutil.copytree(world.folder / "repos" / "shop", folder / "repos" / "shop")
    (folder / "repos" / "shop" / ".git" / "index.lock").write_text("")
    (folder / "results" / world.today.name).mkdir(parents=True)
    mark = json.loads((world.folder / "world.json").read_bytes())
    (folder / "world.json").write_text(json.dumps({"interlock_demo": mark["interlock_demo"]}))
    (folder / "world.json.new").write_text("{")
    (folder / "notes.txt").write_text("mine")

    both = [begin(folder), begin(folder)]
    outcome = [process.communicate() for process in both]

    assert [process.returncode for process in both] == [0, 0], outcome
    assert outcome[0] == outcome[1]
    today = folder / "results" / world.today.name
    assert failing(read_results(today)) == failing(read_results(world.today))
    assert build_world(folder).last_green == world.last_green
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "repos" / "shop" / ".git" / "index.lock").exists()


@pytest.mark.parametrize(
    "mark", [None, b"", b"{", b"[]", b'{"name": "world"}', b'{"interlock_demo": 1}', b"\xff\x00"]
)
def test_a_folder_that_is_not_ours_is_not_touched(tmp_path: Path, mark: bytes | None) -> None:
    (tmp_path / "repos").mkdir()
    (tmp_path / "repos" / "thesis.txt").write_text("ten years of work")
    if mark is not None:
        (tmp_path / "world.json").write_bytes(mark)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StateError, match="is not empty and not an earlier demo; name another"):
        build_world(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "world").write_text("")
    with pytest.raises(StateError, match="is a file; name a folder"):
        build_world(tmp_path / "world")


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=r"the demo cannot be made in .*/file/world: "):
        build_world(tmp_path / "file" / "world")


def test_without_git_the_user_is_told(tmp_path: Path) -> None:
    process = begin(tmp_path / "world", PATH=str(tmp_path))
    outcome = process.communicate()
    problem = "interlock: the demo makes git repositories, and git is not there: install git\n"
    assert (process.returncode, outcome) == (1, ("", problem))
    assert not (tmp_path / "world").exists()


QUIET = "1198"  # a build in which no mail is slow
BEGAN = "2026-11-12T05:30:00+00:00"


def heads(world: DemoWorld) -> dict[str, str]:
    return {repo.name: repo.branch for repo in world.repos}


def test_last_green_is_green(world: DemoWorld, tmp_path: Path) -> None:
    results = tmp_path / QUIET
    workspace = tmp_path / "ci"
    repos = world.folder / "repos"
    assert run_nightly(repos, world.last_green, workspace, results, began=BEGAN)
    assert failing(read_results(results)) == set()


@pytest.mark.parametrize("family_id", ["floats", "columns", "channel", "pattern", "stock-b"])
def test_without_the_culprit_its_family_passes_and_no_other(
    world: DemoWorld, tmp_path: Path, family_id: str
) -> None:
    guilty = next(each for each in world.truth if each.family_id == family_id)
    for name, branch in heads(world).items():
        check_out(world.folder / "repos" / name, branch, tmp_path / "ci" / name)
    Git(tmp_path / "ci" / guilty.repo, SEED).read_line("revert", "--no-commit", guilty.commit)
    assert not run_job(tmp_path / "ci", tmp_path / QUIET, began=BEGAN)
    left = {test for each in world.truth for test in each.tests if each.commit and each != guilty}
    assert failing(read_results(tmp_path / QUIET)) == left


def test_a_job_that_cannot_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"could not be run: .*can't open file"):
        run_job(tmp_path, tmp_path / QUIET, began=BEGAN)


def test_a_suite_that_breaks_down_leaves_its_words(world: DemoWorld, tmp_path: Path) -> None:
    workspace = tmp_path / "ci"
    results = tmp_path / QUIET
    for name, branch in heads(world).items():
        check_out(world.folder / "repos" / name, branch, workspace / name)
    (workspace / "shop-tests" / "suite" / "junit.py").write_text("import nothing_like_it\n")
    console = results / "logs" / "console.log"
    with pytest.raises(SourceError, match=f"could not be run: see {console}"):
        run_job(workspace, results, began=BEGAN)
    assert console.read_text().endswith("No module named 'nothing_like_it'\n")
