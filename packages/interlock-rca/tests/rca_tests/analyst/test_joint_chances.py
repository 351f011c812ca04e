"""Commits of several repositories beside each other: none is named because it is alone in its
own, and what is known of the failing test in one of them counts in all."""

from pathlib import Path

from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.culprits import CommitRange, rank_commits
from interlock_rca.analyst.repo_choice import choose_by_name, choose_by_stack
from interlock_rca.analyst.stack import StackLocation, locate_frames
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.repository import Repository
from rca_tests.analyst.test_culprits import BROKEN, CHECK, FAILURE, SAIL, SampleRepository
from tests.world.git_repo import GitRepo


def plant(folder: Path, before: dict[str, str], *changes: dict[str, str]) -> CommitRange:
    """A repository with a green beginning and some commits after it."""
    git = GitRepo(folder)
    green = git.commit("Begin", before)
    for number, change in enumerate(changes):
        git.commit(f"Change {number}", change)
    repository = Repository(Repo(name=folder.name, path=str(folder)))
    return CommitRange(repository, repository.list_commits_since(green))


def find_sum(leads: list[CulpritLead]) -> float:
    return sum(lead.score for lead in leads)


def test_the_only_commit_of_an_unrelated_repository_is_no_suspect(tmp_path: Path) -> None:
    sample = SampleRepository(tmp_path / "boat")
    planted = sample.git.commit("Weigh the anchor", {"hull/keel.py": BROKEN})
    boat = CommitRange(sample.repository(), sample.repository().list_commits_since(sample.green))
    shed = plant(tmp_path / "shed", {"tool.py": "SAWS = 1\n"}, {"tool.py": "SAWS = 2\n"})
    found = rank_commits(FAILURE, [shed, boat])
    assert found[0].commit.hash == planted
    assert [lead.repo for lead in found] == ["boat", "shed"]
    assert found[1].score < 0.1
    assert find_sum(found) <= 1
    (alone,) = rank_commits(FAILURE, [shed])
    assert found[1].score < alone.score, "beside the culprit it is less likely than by itself"


def test_likely_commits_of_two_repositories_share_their_chance(tmp_path: Path) -> None:
    change = {"keel.py": "def weigh(anchor):\n    return anchor + 2\n"}
    before = {"keel.py": "def weigh(anchor):\n    return anchor\n"}
    one, two = (plant(tmp_path / name, before, change) for name in ("boat", "ship"))
    found = rank_commits(CHECK, [one, two])
    assert [lead.repo for lead in found] == ["boat", "ship"]
    assert found[0].score < rank_commits(CHECK, [one])[0].score
    assert find_sum(found) <= 1


def test_what_a_test_in_another_repository_is_about_counts(tmp_path: Path) -> None:
    source = "def test_trip():\n    ship = sail(harbour='Cork')\n    assert ship.ballast == 3\n"
    tests = plant(tmp_path / "boat-tests", {"tests/test_trip.py": source})
    product = plant(
        tmp_path / "boat",
        {"a.py": "def pump():\n    return 1\n", "b.py": "def load():\n    return 1\n"},
        {"a.py": "def pump():\n    return bilge\n"},
        {"b.py": "def load():\n    return ballast\n"},
    )
    stack = "tests/test_trip.py:3: in test_trip\n    assert ship.ballast == 3\n"
    failure = Failure(id="a", test_name="test_trip", type="AssertionError", stack=stack)
    first, second = rank_commits(failure, [tests, product])
    assert (first.path, second.path) == ("b.py", "a.py")
    assert first.score > 2 * second.score
    one, other = rank_commits(failure, [product])
    assert one.odds == other.odds, "without the test's source nothing tells them apart"


def test_a_data_file_is_named_without_its_ending_unless_that_is_a_plain_word(
    tmp_path: Path,
) -> None:
    before = {"chart_bay.yml": "a: 1\n", "chart.yml": "a: 1\n"}
    place = plant(tmp_path / "boat", before, {"chart_bay.yml": "a: 2\n"}, {"chart.yml": "a: 2\n"})
    failure = Failure(id="a", test_name="t", message="no depth in chart_bay v2 of the chart")
    named = {
        lead.path: "named by the failure" in lead.clues for lead in rank_commits(failure, [place])
    }
    assert named == {"chart_bay.yml": True, "chart.yml": False}


def test_a_file_that_is_only_called_alike_is_no_place_of_the_stack(tmp_path: Path) -> None:
    place = plant(tmp_path / "boat", {"keel.py": "A = 1\n", "rig/sail.py": SAIL})
    for path, line, found in (("hull/keel.py", 1, 1), ("hull/keel.py", 80, 0), ("keel.py", 80, 1)):
        failure = Failure(id="a", stack=f'  File "{path}", line {line}, in weigh\n')
        assert len(locate_frames(failure, place.repository)) == found


def test_a_test_is_about_the_repository_that_is_called_alike() -> None:
    names = ("shop-cart", "shop-search", "shop-tests", "cart")
    repos = [Repo(name=name, role="tests" if "tests" in name else "product") for name in names]
    failure = Failure(id="a", test_name="finds apostrophes", class_name="tests.search.Names")
    found = [choose_by_name(each, repos, failure, "product", 0.7) for each in repos]
    assert [each.repo for each in found if each] == ["shop-search"], "tests are in any name"


def test_a_kind_that_is_not_sure_rules_no_repository_out() -> None:
    spots = [StackLocation("hull/keel.py", 12, "weigh", False)]
    boat = Repo(name="boat", role="product")
    scores = [choose_by_stack(boat, spots, "automation", each) for each in (0.5, 0.6, 0.9)]
    none, some, most = (each.score if each else 0.0 for each in scores)
    assert none > some > most > 0
    fitting = choose_by_stack(boat, spots, "product", 0.9)
    assert fitting is not None
    assert none == fitting.score
