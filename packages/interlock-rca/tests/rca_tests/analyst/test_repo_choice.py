"""Places to look: what a repository is for, and what speaks for it."""

from typing import Any

import msgspec
import pytest

from interlock_rca.analyst.answers import FaultKind, RepoCandidate
from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.repo_choice import (
    choose_by_changes,
    choose_by_purpose,
    choose_by_stack,
    find_missing_files,
    judge_by_leads,
    judge_by_location,
    list_uses,
    rank_repos,
)
from interlock_rca.analyst.stack import StackLocation
from interlock_rca.records import Failure, Repo
from interlock_rca.sources.git.history import ChangedFile, Commit
from interlock_rca.sources.git.roles import INFRASTRUCTURE

BOAT = Repo(name="boat", purpose="what floats, and tests of it", role="product")
TESTS = Repo(name="boat-tests", purpose="acceptance", role="tests")
SURE = 0.75
HULL = StackLocation("hull/keel.py", 12, "weigh", False)
CHECK = StackLocation("tests/test_keel.py", 3, "test_weigh", True)


@pytest.mark.parametrize(
    ("role", "uses"),
    [
        ("", ("product",)),
        ("product", ("product",)),
        ("tests", ("automation",)),
        ("infrastructure", ("infra",)),
        ("mixed", ("product", "automation")),
    ],
)
def test_a_repository_is_for_what_its_role_says(role: str, uses: tuple[str, ...]) -> None:
    purpose = "the product and its tests, deployed by CI"
    assert list_uses(Repo(name="e2e-tests", purpose=purpose, role=role)) == uses


def test_a_stack_leads_to_the_repository_that_holds_its_places() -> None:
    found = choose_by_stack(BOAT, [HULL, CHECK], "product", SURE)
    assert found is not None
    assert (found.repo, found.paths) == ("boat", ("hull/keel.py",))
    assert found.why == "the stack leads to hull/keel.py:12"
    assert choose_by_stack(BOAT, [], "product", SURE) is None


def test_places_of_the_product_count_more_than_those_of_tests() -> None:
    strong, weak = (
        choose_by_stack(BOAT, [HULL], "product", SURE),
        choose_by_stack(BOAT, [CHECK], "product", SURE),
    )
    assert strong is not None
    assert weak is not None
    assert strong.score > weak.score > 0


@pytest.mark.parametrize("category", ["product", "automation"])
def test_a_fitting_purpose_counts(category: str) -> None:
    found = rank_repos([choose_by_stack(each, [HULL], category, SURE) for each in (TESTS, BOAT)])
    assert found[0].repo == ("boat" if category == "product" else "boat-tests")
    alike = rank_repos([choose_by_stack(each, [HULL], "unknown", SURE) for each in (TESTS, BOAT)])
    assert alike[0].score == alike[1].score
    assert [each.repo for each in alike] == ["boat", "boat-tests"], "equals stand by name"


def test_where_no_stack_leads_the_purpose_does() -> None:
    assert choose_by_purpose(TESTS, "product") is None
    found = choose_by_purpose(BOAT, "product")
    assert found is not None
    assert found.why == "it is for: what floats, and tests of it"


def test_changes_speak_for_a_repository() -> None:
    commit = Commit(hash="a" * 40, at="2024-05-01T00:00:00Z", author="Ann", subject="Move ballast")
    why, tied = ("it changed hull/keel.py",), {"subject": 1.0}
    lead = CulpritLead("boat", commit, 0.8, why, "hull/keel.py", clues=tied)
    found = choose_by_changes(BOAT, [lead], "product", SURE)
    assert found == RepoCandidate(
        repo="boat",
        score=0.8,
        why='aaaaaaaaaaaa "Move ballast": it changed hull/keel.py',
        paths=("hull/keel.py",),
    )
    assert choose_by_changes(BOAT, [], "product", SURE) is None
    bare = choose_by_changes(BOAT, [CulpritLead("boat", commit, 0.3, (), "hull/keel.py")], "", SURE)
    assert bare is not None
    assert bare.score == pytest.approx(0.15), "nothing ties it"
    assert bare.why == 'aaaaaaaaaaaa "Move ballast"'


def test_of_each_repository_the_best_is_kept() -> None:
    some = [
        RepoCandidate(repo="b", score=0.2, why=""),
        None,
        RepoCandidate(repo="b", score=0.9, why="x"),
    ]
    assert [(each.repo, each.score) for each in rank_repos(some)] == [("b", 0.9)]
    assert rank_repos([]) == rank_repos([None]) == []


def kind(category: str) -> FaultKind:
    return FaultKind(category=category, code="x", confidence=0.5, why="said so")


@pytest.mark.parametrize(
    ("failure", "place", "category", "found"),
    [
        ({"type": "KeyError"}, (TESTS, CHECK), "product", "automation"),
        ({"type": "AssertionError"}, (TESTS, CHECK), "product", "product"),
        ({"type": "KeyError"}, (BOAT, HULL), "product", "product"),
        ({"type": "KeyError"}, (TESTS, CHECK), "infra", "infra"),
        ({"type": "KeyError"}, None, "product", "product"),
    ],
)
def test_where_it_broke_says_something_of_its_kind(
    failure: dict[str, Any], place: Any, category: str, found: str
) -> None:
    assert judge_by_location(kind(category), Failure(id="a", **failure), place).category == found


def lead(score: float, *paths: str) -> CulpritLead:
    files = tuple(ChangedFile(path, "M") for path in paths)
    commit = Commit("a" * 40, "", "", "", files)
    tied = {"subject": 1.0}
    return CulpritLead("boat", commit, score, ("it changed it",), paths[0], clues=tied)


def missed(found: CulpritLead) -> CulpritLead:
    return msgspec.structs.replace(found, clues={"dependency": 1.0})


@pytest.mark.parametrize(
    ("found", "category", "output"),
    [
        (lead(0.9, "tests/test_keel.py", "README.md"), "product", "automation"),
        (lead(0.9, "tests/test_keel.py"), "unknown", "automation"),
        (lead(0.9, "tests/test_keel.py"), "infra", "infra"),
        (lead(0.6, "tests/test_keel.py"), "product", "product"),
        (lead(0.9, "tests/test_keel.py", "hull/keel.py"), "product", "product"),
        (lead(0.9, "hull/keel.py"), "unknown", "product"),
        (lead(0.6, "hull/keel.py"), "unknown", "product"),
        (lead(0.4, "hull/keel.py"), "unknown", "unknown"),
        (lead(0.9, "yard.yaml"), "unknown", "unknown"),
        (missed(lead(0.9, "yard.yaml")), "unknown", "product"),
        (lead(0.9, "README.md"), "product", "product"),
        (lead(0.6, "hull/keel.py"), "automation", "product"),
        (lead(0.4, "hull/keel.py"), "automation", "automation"),
        (lead(0.9, "tests/test_keel.py"), "automation", "automation"),
        (None, "product", "product"),
    ],
)
def test_a_sure_suspect_says_something_of_the_kind(
    found: CulpritLead | None, category: str, output: str
) -> None:
    kind = FaultKind(category=category, code="x", confidence=0.5, why="")
    leads = [found] if found else []
    searched = bool(found)
    judged = judge_by_leads(kind, leads, {"boat": "product"}, is_searched=searched)
    assert judged.category == output
    if output == "product" and category == "unknown":
        assert judge_by_leads(kind, leads, {"boat": INFRASTRUCTURE}).category == "unknown"


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        ("[Errno 2] No such file or directory: '/ci/boat/data/a.csv'", ["/ci/boat/data/a.csv"]),
        ("ENOENT: no such file or directory, open '/ci/boat/a b.csv'", ["/ci/boat/a b.csv"]),
        ("open /ci/boat/a.csv: no such file or directory", []),
        ("No such file or directory: 'a.csv'", []),
        ("no such file or directory", []),
    ],
)
def test_files_that_were_not_there(message: str, paths: list[str]) -> None:
    assert find_missing_files(Failure(id="a", message=message)) == paths
