"""Learning from reviews: accepted only if newer failures say so, kept, shown, and undone."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.world import World

from interlock.api.project import Project
from interlock.journal.address import PostgresAddress
from interlock.rca.analyst.triage import TriageResult
from interlock.rca.learning import (
    Label,
    compute_mcnemar,
    evaluate_labels,
    is_human,
    list_issue_types,
)
from interlock.rca.records import Failure, Launch
from interlock.rca.sources.read import SourceLaunch
from interlock.rca.taxonomy import TAXONOMY

WORDS = {
    "infra": ("the tide table of harbour {} is empty", "no berth at harbour {}"),
    "product": ("the keel of boat {} weighs 3", "ballast of boat {} moved"),
    "automation": ("fixture buoy {} drifted", "buoy {} has no chain"),
}


def labels(count: int) -> list[Label]:
    """Reviewed failures of a trade of its own, whose words no rule knows."""
    kinds: Iterator[str] = cycle(WORDS)
    found = []
    for at in range(count):
        kind = next(kinds)
        text = WORDS[kind][at % 2].format(at)
        found.append(Label(Failure(id=str(at), test_name=f"t{at}", message=text), kind, float(at)))
    return found


def test_a_model_is_accepted_if_it_is_better_on_newer_failures() -> None:
    found = evaluate_labels(labels(90))
    scores = {score.name: score.right / score.of for score in found.scores}
    assert (found.trained, found.tested, found.accepted) == (63, 27, True)
    assert scores["new model"] > 0.9 > scores["the rules"]
    assert scores["new model"] > scores["always infra"]
    assert found.gained > 6
    assert found.difference is not None
    assert found.difference[0] > 0


def test_a_model_that_learnt_nothing_is_refused_and_says_why() -> None:
    found = evaluate_labels(labels(90), _know)
    assert not found.accepted
    assert "no proof that it is better" in found.why
    few = evaluate_labels(labels(20))
    assert (few.accepted, few.p_value) == (False, None)
    assert few.why == "20 reviewed causes; about 50 are needed to tell"


def _know(failure: Failure) -> TriageResult:
    marks = {"harbour": "infra", "boat": "product", "buoy": "automation"}
    kind = next(kind for mark, kind in marks.items() if mark in failure.message)
    return TriageResult(kind, 1.0, ())


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_symmetric_and_no_evidence_is_no_difference(gained: int, lost: int) -> None:
    p = compute_mcnemar(gained, lost)
    assert 0 < p <= 1
    assert p == compute_mcnemar(lost, gained)
    assert compute_mcnemar(gained, gained) == 1
    assert (compute_mcnemar(6, 0), compute_mcnemar(5, 0)) == (0.03125, 0.0625)


@pytest.mark.parametrize(
    ("name", "human"),
    [("ada", True), ("", False), ("rule: score 0.90 >= 0.85", False), ("whoever was asked", False)],
)
def test_only_humans_teach(name: str, human: bool) -> None:
    assert is_human(name) is human


def test_types_that_people_gave_in_reportportal_are_labels() -> None:
    failures = [
        Failure(id="1", message="a", issue_type="pb001"),
        Failure(id="2", message="a", issue_type="pb001"),
        Failure(id="3", message="b", issue_type="si001", auto_analyzed=True),
        Failure(id="4", message="c", issue_type="ti001"),
        Failure(id="5", message="d", issue_type="ab001", at="2026-01-01T00:00:00Z"),
    ]
    launch = SourceLaunch(Launch(launch_id="7"), failures, [])
    assert [(each.failure.id, each.kind) for each in list_issue_types([launch], TAXONOMY)] == [
        ("1", "product"),
        ("5", "automation"),
    ]


REPORT = '<testsuite name="s" tests="{n}" failures="{n}">{cases}</testsuite>'
CASE = '<testcase classname="c" name="{name}"><failure message="{text}">x</failure></testcase>'
CODES = {"product": "pb001", "automation": "ab001", "infra": "si001"}


@pytest.mark.soak
def test_models_are_kept_on_a_server_too(
    tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    check_learning(tmp_path)


def test_reviews_become_a_model_that_is_shown_used_and_left_again(tmp_path: Path) -> None:
    check_learning(tmp_path)


def check_learning(tmp_path: Path) -> None:
    world, known = World(tmp_path), labels(51)
    rows = [CASE.format(name=f"t{at}", text=each.failure.message) for at, each in enumerate(known)]
    world.write("r.xml", REPORT.format(n=len(rows), cases="".join(rows)))
    world.say("analyze", "r.xml", "--each")
    kind_of = {label.failure.test_name: label.kind for label in known}
    cases = world.say("report", "--json").json["findings"]["cases"]
    with Project(tmp_path) as project:
        for case in cases:
            override = {"defect_type": CODES[kind_of[case["test_name"]]], "rca_message": "seen"}
            fields = {"human_override": override}
            project.answer(case["question_id"], "overturn", by="ada", fields=fields, group=False)
    world.say("analyze", "r.xml")
    said = world.say("analyst", "fit")
    assert "is used from now on" in said.out, said.out
    visible = world.say("analyst", "show").out
    assert "active" in visible
    said = world.say("calibrate", "--from-history")
    assert "in use" in said.out
    world.write("new.xml", REPORT.format(n=1, cases=CASE.format(name="n", text="buoy 7 is gone")))
    assert _find_kind(world) == "automation"
    assert world.say("analyst", "use", "rules").code == 0
    assert _find_kind(world) != "automation"
    said = world.say("analyst", "use", "7")
    assert (
        said.code,
        "there is no model 7 that was accepted; there are: 1, rules" in said.err,
    ) == (
        2,
        True,
    )


def _find_kind(world: World) -> str:
    said = world.say("analyze", "new.xml", "--new", "--json")
    return str(said.json["findings"]["cases"][0]["triaged"])
