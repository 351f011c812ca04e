"""The analyst's words: how sure, what is said, and what is left out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.answers import (
    SAME_COMMIT_CONFIDENCE,
    SURE_KIND_SCORE,
    FaultKind,
    RepoCandidate,
    ReportedFinding,
    RepositorySearch,
    SuiteCause,
    build_correlate_answer,
    build_investigate_answer,
    build_report_answer,
    build_resolve_answer,
    build_triage_answer,
)
from interlock_rca.analyst.chances import CulpritLead
from interlock_rca.analyst.stack import StackLocation
from interlock_rca.check_answer import is_vague
from interlock_rca.records import Failure, Suspect
from interlock_rca.sources.git.history import ChangedFile, Commit

FAILURE = Failure(id="a", test_name="test_weigh", message="keel weighs 5", item_id=9, launch="L1")
SPOT = StackLocation("hull/keel.py", 9, "weigh", False)


def kind(category: str = "product", confidence: float = 0.7) -> FaultKind:
    return FaultKind(category=category, code="pb001", confidence=confidence, why="the words say so")


def lead(score: float, mark: str = "a") -> CulpritLead:
    commit = Commit(
        mark * 40, "Ann", "2024-05-01T10:00:00Z", "Move ballast", (ChangedFile("k.py", "M"),)
    )
    return CulpritLead(
        *("boat", commit, score, ("it changed hull/keel.py",), "hull/keel.py"),
        clues={"subject": 1.0},
    )


def triage(found: FaultKind, failure: Failure = FAILURE, **more: Any) -> dict[str, Any]:
    given_facts: dict[str, Any] = {"cascade": 0, "skew": "", "failure": failure}
    return build_triage_answer(found, [], **given_facts | more)


# F1


@pytest.mark.parametrize("category", ["infra", "flake"])
def test_an_environment_failure_is_skipped_only_when_it_is_sure(category: str) -> None:
    sure, unsure = (
        triage(kind(category, SURE_KIND_SCORE)),
        triage(kind(category, SURE_KIND_SCORE - 0.01)),
    )
    assert (sure["skip_investigation"], sure["symptom_category"]) == (True, category)
    assert (unsure["skip_investigation"], unsure["symptom_category"]) == (False, "unknown")


@pytest.mark.parametrize("category", ["product", "automation", "firmware", "unknown"])
def test_other_kinds_are_investigated_however_sure(category: str) -> None:
    found = triage(kind(category, 0.99))
    assert (found["skip_investigation"], found["symptom_category"]) == (False, category)


def test_triage_says_what_is_odd_about_the_data() -> None:
    cut = Failure(id="a", log="x", log_truncated=True)
    notes = triage(kind(), cut, cascade=4, skew="two clocks")["data_quality_notes"]
    assert "product: the words say so (confidence 0.70)" in notes
    assert "4 siblings fail in the same set-up" in notes
    assert "clock skew: two clocks" in notes
    assert "its log was cut" in notes
    silent = triage(kind(), Failure(id="a"))["data_quality_notes"]
    assert "the report says nothing but that it failed" in silent


def test_severity_follows_reach() -> None:
    assert triage(kind("flake", 0.9))["severity"] == "low"
    assert triage(kind("infra"))["severity"] == "medium"
    assert triage(kind("infra"), cascade=3)["severity"] == "high"


# F2


def where(*scores: float) -> list[RepoCandidate]:
    return [
        RepoCandidate(repo=f"r{number}", score=score, why="-")
        for number, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("places", "tried", "chosen"),
    [
        (where(0.9, 0.5), set(), ["r0"]),
        (where(0.9, 0.8), set(), ["r0", "r1"]),
        (where(0.9, 0.9, 0.9), set(), ["r0", "r1"]),
        (where(0.9, 0.5), {"r0"}, ["r1"]),
        (where(0.9), {"r0"}, ["r0"]),
        ([], set(), ["known"]),
        ([], {"known"}, ["known"]),
    ],
)
def test_the_likeliest_places_are_chosen_and_tried_ones_go_last(
    places: list[RepoCandidate], tried: set[str], chosen: list[str]
) -> None:
    found = build_resolve_answer(places, ["known", "other"], tried)
    assert [each["name"] for each in found["selected_repos"]] == chosen
    assert all(each["reason"] for each in found["selected_repos"])


def test_without_repositories_there_is_no_place() -> None:
    assert build_resolve_answer([], [], set())["selected_repos"] == []


# F3


def investigate(
    *found: CulpritLead,
    spots: tuple[StackLocation, ...] = (SPOT,),
    looked_at: int = 5,
    sure: FaultKind | None = None,
    is_exhausted: bool = True,
) -> Any:
    search = RepositorySearch(
        repo="boat",
        leads=found,
        spots=spots,
        looked_at=looked_at,
        is_exhausted=is_exhausted,
        urls={"a" * 40: "https://git.example/a"},
        sizes={"a" * 40: (7, 2)},
    )
    return build_investigate_answer(FAILURE, search, sure or kind())


def test_a_finding_names_suspect_place_and_evidence() -> None:
    found = investigate(lead(0.9), lead(0.4, "b"))
    assert [each["score"] for each in found["suspects"]] == [0.9, 0.4]
    assert found["evidence_refs"] == [
        f"boat@{'a' * 40}",
        f"boat@{'b' * 40}",
        "boat:hull/keel.py:9",
    ]
    assert found["component"] == "boat/hull"
    sizes = [(each["added"], each["removed"]) for each in found["suspects"]]
    assert sizes == [(7, 2), (0, 0)]
    assert "keel weighs 5. It shows in weigh at hull/keel.py:9. " in found["rca_message"]
    assert 'boat aaaaaaaaaaaa "Move ballast" by Ann, 2024-05-01' in found["rca_message"]
    assert [each["commit"][0] for each in found["suspects"]] == ["a", "b"]
    assert found["suspects"][0]["url"] == "https://git.example/a"
    assert (found["launch_id"], found["case_ids"]) == ("L1", [9])


@given(st.floats(0.02, 1), st.floats(0, 1), st.booleans())
def test_a_finding_is_as_sure_as_its_kind_or_its_suspect(
    chance: float, known: float, last: bool
) -> None:
    sure = kind("product", known)
    found = investigate(lead(chance), lead(0.01, "b"), sure=sure, is_exhausted=last)
    assert found["suspects"][0]["score"] == chance
    assert len(found["suspects"]) == 1, "what is hardly possible is not named"
    least = max(0.35, chance, known) if last else max(0.35, chance)
    assert min(least, 0.97) - 0.001 <= found["convergence_score"] <= 0.97
    if not last:
        assert found["convergence_score"] == pytest.approx(min(least, 0.97), abs=0.001)
    unknown = investigate(lead(chance), sure=kind("unknown", known))
    assert unknown["convergence_score"] == pytest.approx(min(max(0.35, chance), 0.97), abs=0.001)
    assert found["is_exhausted"] is last


def test_it_broke_where_the_stack_is_innermost_unless_a_check_failed() -> None:
    helper = StackLocation("tests/support.py", 3, "fill", True)
    outer = StackLocation("hull/keel.py", 9, "weigh", False, depth=1)
    found = investigate(lead(0.9), spots=(outer, helper))
    assert "It shows in fill at tests/support.py:3." in found["rca_message"]
    assert found["evidence_refs"][1:] == ["boat:tests/support.py:3", "boat:hull/keel.py:9"]
    nameless = investigate(lead(0.9), spots=(StackLocation("hull/keel.py", 9, "", False),))
    assert "It shows at hull/keel.py:9." in nameless["rca_message"]
    check = msgspec.structs.replace(FAILURE, type="AssertionError")
    search = RepositorySearch(repo="boat", leads=(lead(0.9),), spots=(outer, helper), looked_at=1)
    output = build_investigate_answer(check, search, kind())
    assert "in weigh at hull/keel.py:9." in output["rca_message"]


def test_where_nothing_is_known_to_have_passed_it_says_so_and_accuses_nobody() -> None:
    search = RepositorySearch(
        repo="boat", leads=(lead(0.9),), spots=(SPOT,), looked_at=3, is_bounded=False
    )
    output = build_investigate_answer(FAILURE, search, kind())
    told = output["rca_message"]
    assert "Suspect: " not in told
    assert "The likeliest, at 0.90: boat aaaaaaaaaaaa" in told
    assert "only the newest 3 commits were looked at, and the culprit may be older." in told


def test_a_message_that_is_cut_says_so() -> None:
    long = msgspec.structs.replace(FAILURE, message="the keel is not sound and " * 10)
    search = RepositorySearch(repo="boat", leads=(lead(0.9),), spots=(SPOT,), looked_at=1)
    output = build_investigate_answer(long, search, kind())
    assert "… It shows in weigh at hull/keel.py:9. " in output["rca_message"]


def test_a_weak_lead_is_named_as_one_and_not_called_the_suspect() -> None:
    message = investigate(lead(0.29))["rca_message"]
    assert "None of the 5 commits of boat stands out; the likeliest, at 0.29: boat aaaa" in message
    assert "Suspect:" not in message
    lone = investigate(lead(0.29), looked_at=1)["rca_message"]
    assert "The one commit of boat that may have brought it, with little against it" in lone


def test_nobody_is_cleared_by_a_search_that_found_nothing() -> None:
    inert = msgspec.structs.replace(lead(0.4), clues={}, is_inert=True)
    for found in (investigate(), investigate(inert)):
        message = found["rca_message"]
        assert found["suspects"] == []
        assert found["convergence_score"] < 0.5
        assert "No suspect was found among the 5 commits of boat" in message
        assert "Looked at, as far as it could be found: " in message
        assert "Not looked at: " in message
        assert "touches" not in message, "nobody looked everywhere"
    assert "among the one commit of boat" in investigate(looked_at=1)["rca_message"]


def test_without_history_it_says_so() -> None:
    found = investigate(spots=(), looked_at=0)
    assert "No history is known that could have brought it." in found["rca_message"]
    assert (found["evidence_refs"], found["component"]) == ([], "boat")


def test_what_the_analyst_says_is_never_vague() -> None:
    silent = build_investigate_answer(Failure(id="a"), RepositorySearch(repo=""), kind())
    assert not is_vague(silent["rca_message"])


# F4


def suspect(commit: str = "c1", score: float = 0.9, **more: Any) -> Suspect:
    return Suspect(repo="boat", commit=commit, score=score, **more)


def prior(
    rca_id: int,
    likeness: float = 0.1,
    *suspects: Suspect,
    score: float = 0.9,
    same_kind: bool = True,
) -> SuiteCause:
    return SuiteCause(
        rca_id=rca_id,
        title="twice",
        likeness=likeness,
        suspects=suspects,
        score=score,
        versions=("1", "2"),
        is_same_kind=same_kind,
    )


ONE, OTHER, FAINT = suspect(), suspect("c2", 0.05), suspect(score=0.3)
NEAR = suspect(near=True)


@pytest.mark.parametrize(
    ("mine", "others", "linked"),
    [
        ([ONE], [], None),
        ([ONE], [prior(4, 0.8)], None),
        ([ONE], [prior(4, 0.9)], 4),
        ([ONE], [prior(4, 0.1, suspect("c2"))], None),
        ([ONE], [prior(4, 0.1, ONE)], 4),
        ([ONE, OTHER], [prior(4, 0.1, ONE, OTHER)], 4),
        # A shared suspect is not enough.
        ([ONE], [prior(4, 0.1, ONE, same_kind=False)], None),
        ([ONE], [prior(4, 0.4, ONE, same_kind=False)], 4),
        ([NEAR], [prior(4, 0.1, ONE, same_kind=False)], None),
        ([NEAR], [prior(4, 0.1, NEAR, same_kind=False)], 4),
        # One that neither is sure of joins them only if there is no other.
        ([FAINT, OTHER], [prior(4, 0.1, ONE, OTHER)], None),
        ([ONE, OTHER], [prior(4, 0.1, FAINT, OTHER)], None),
        ([FAINT], [prior(4, 0.1, FAINT)], 4),
        ([FAINT], [prior(4, 0.1, FAINT, same_kind=False)], None),
        # One that touched everything joins nothing.
        ([suspect(touched=900)], [prior(4, 0.1, ONE)], None),
        ([ONE], [prior(4, 0.1, suspect(touched=900))], None),
        # Agents give no chances: then the finding's own score counts.
        ([suspect(score=0.0), OTHER], [prior(4, 0.1, ONE, OTHER)], 4),
        ([ONE, OTHER], [prior(4, 0.1, suspect(score=0.0), OTHER, score=0.6)], None),
        ([ONE], [prior(4, 0.1, ONE), prior(3, 0.97)], 3),
        ([ONE], [prior(3, 0.1, ONE), prior(4, 0.1, ONE)], 3),
        ([], [prior(4, 0.1)], None),
    ],
)
def test_a_duplicate_has_the_same_suspect_and_more_or_looks_the_same(
    mine: list[Suspect], others: list[SuiteCause], linked: int | None
) -> None:
    found = build_correlate_answer(mine, 0.9, others, 0.7)
    assert found["is_duplicate"] == (linked is not None)
    assert found.get("linked_rca_id") == linked
    assert (found["confidence"] >= SAME_COMMIT_CONFIDENCE) == (linked is not None)
    assert found["reasoning"]


# F6


def test_a_draft_holds_what_is_known() -> None:
    finding = ReportedFinding(
        message="m " * 200,
        defect_type="pb001",
        component="boat",
        evidence=["r"],
        versions=["1"],
        tests=3,
    )
    found = build_report_answer(FAILURE, finding, "high")
    assert len(found["summary"]) <= 200
    assert found["summary"].endswith("…")
    assert found["description"].endswith("2 more tests fail for the same reason.")
    assert (found["priority"], found["components"]) == ("high", ["boat"])
    bare = build_report_answer(FAILURE, ReportedFinding(message="", defect_type="ti001"), "")
    assert (bare["priority"], bare["components"], bare["description"]) == ("medium", [], "")
