"""Laws of whole investigations: whatever agents and reviewers say, rows and journal agree."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from interlock_rca.config import RcaConfig
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6
from rca_tests.worlds.analysis_world import (
    APPROVE,
    CAUSE,
    DRAFT,
    GOOD,
    NEW,
    OWN,
    PRODUCT,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)
from tests.world.places import ROOT

HIT = {"match": True, "confidence": 0.8, "prior_rca_id": 1, "symptom_id": 1, "reasoning": "-"}
TWO = {"selected_repos": [{"name": "boat", "reason": "-"}, {"name": "yard", "reason": "-"}]}
UNSURE = CAUSE | {"convergence_score": 0.5}
SAME = {"is_duplicate": True, "confidence": 0.8, "linked_rca_id": 1, "reasoning": "-"}
OVERTURN = {
    "decision": "overturn",
    "human_override": {"defect_type": "au001", "rca_message": "the test weighs in pounds"},
}


def back(target: str = "") -> dict[str, str]:
    return {"decision": "reassess", "loop_target": target, "comment": "look again"}


def worked(folder: Path, answers: dict[str, Any], terms: RcaConfig = RcaConfig()) -> AnalysisWorld:  # noqa: B008
    """Case C1 has those answers; C0 was done before it, and has root cause 1 and symptom 1."""
    room = AnalysisWorld(folder)
    room.take_in(launch(make_failure("alpha")), name="before")
    room.work_on(write_script(), terms)
    room.take_in(launch(make_failure("beta"), launch_id="L2"))
    room.work_on(write_script(answers), terms, run_id=2, wait=True)
    return room


RULES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a hit": ({F0: HIT}, "H1 H12 H16", "closed"),
    "a candidate": ({F0: HIT | {"confidence": 0.79}}, "H3 H7 H9 H15b H12 H16", "closed"),
    "a weak match": ({F0: HIT | {"confidence": 0.39}}, "H2-weak H7 H9 H15b H12 H16", "closed"),
    "nothing known": ({}, "H2 H7 H9 H15b H12 H16", "closed"),
    "environment": ({F1: PRODUCT | {"symptom_category": "infra"}}, "H2 H4 H12 H16", "closed"),
    "a flake": ({F1: PRODUCT | {"symptom_category": "flake"}}, "H2 H5 H12 H16", "closed"),
    "skipped": ({F1: PRODUCT | {"skip_investigation": True}}, "H2 H18 H12 H16", "closed"),
    "clocks": (
        {F1: PRODUCT | {"clock_skew_suspected": True}},
        "H2 H7 H9 H15b H12 H16",
        "closed",
    ),
    "no place": (
        {F1: PRODUCT | {"candidate_repos": []}},
        "H2 H6 H8 H9 H15b H12 H16",
        "closed",
    ),
    "two places": (
        {F1: PRODUCT | {"candidate_repos": []}, F2: TWO},
        "H2 H6 H8 H8-next H9 H15b H12 H16",
        "closed",
    ),
    "nothing to hold on to": (
        {F3: CAUSE | {"evidence_refs": []}},
        "H2 H7 H10a H15b H12 H16",
        "closed",
    ),
    "nowhere else to look": (
        {F3: UNSURE | {"is_exhausted": True}},
        "H2 H7 H10b H15b H12 H16",
        "closed",
    ),
    "sure at the second look": (
        {F3: [UNSURE, CAUSE]},
        "H2 H7 H10 H8 H9 H15b H12 H16",
        "closed",
    ),
    "never sure": ({F3: UNSURE}, "H2 H7 H10 H8 H10 H8 H11 H12 H16", "closed"),
    "a duplicate": ({F4: SAME}, "H2 H7 H9 H15 H12 H16", "closed"),
    "nearly a duplicate": (
        {F4: SAME | {"confidence": 0.79}},
        "H2 H7 H9 H15b H12 H16",
        "closed",
    ),
    "overturned": ({F5: OVERTURN}, "H2 H7 H9 H15b H14 H16", "closed"),
    "overturned without words": (
        {F5: {"decision": "overturn"}},
        "H2 H7 H9 H15b H14 H16",
        "closed",
    ),
    "triaged anew": (
        {F5: [back(F1), APPROVE]},
        "H2 H7 H9 H15b H13-F1 H7 H9 H15b H12 H16",
        "closed",
    ),
    "another place": (
        {F5: [back(), APPROVE]},
        "H2 H7 H9 H15b H13 H8 H9 H15b H12 H16",
        "closed",
    ),
    "investigated anew": (
        {F5: [back(F3), APPROVE]},
        "H2 H7 H9 H15b H13-F3 H9 H15b H12 H16",
        "closed",
    ),
    "a hit that was none": (
        {F0: HIT, F5: [back(), APPROVE]},
        "H1 H13 H8 H9 H15b H12 H16",
        "closed",
    ),
    "nobody agrees": (
        {F0: HIT, F5: back(F3), F4: SAME},
        "H1 H13-F3 H9 H15 H13-F3 H9 H15 H13-F3 H9 H15 H13-spent",
        "investigated",
    ),
    "silence": ({F5: {"silent": True}}, "H2 H7 H9 H15b silence", "investigated"),
    "an agent that is gone": (
        {F3: {"crash": "gone"}},
        "H2 H7 retry retry otherwise",
        "triaged",
    ),
    "numbers nobody gave out": (
        {F0: HIT | {"prior_rca_id": 999_999, "symptom_id": 999_999}},
        "H1 H12 H16",
        "closed",
    ),
    "a duplicate of nothing": (
        {F4: SAME | {"linked_rca_id": 999_999}},
        "H2 H7 H9 H15 H12 H16",
        "closed",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_with_its_effects(tmp_path: Path, name: str) -> None:
    answers, rules, status = RULES[name]
    room = worked(tmp_path, answers)
    assert " ".join(room.rules(run_id=2)) == rules
    assert room.statuses(2) == {"C1": status}
    assert room.faults() == []
    assert all(count == 1 for count in room.open_rcas().values())
    case = room.cases(2)["C1"]
    assert (case.decision != "") == (status == "closed")
    if status == "closed" and not rules.startswith("H1 H12"):
        assert case.rca is not None


def test_all_rules_of_the_circuit_are_tried(tmp_path: Path) -> None:
    tried = {rule for _, rules, _ in RULES.values() for rule in rules.split()}
    known = {rule.id for rule in AnalysisWorld(tmp_path).circuit.rules} | {"otherwise"}
    assert known - tried == {"linked", "H17"}


# What is written


def test_a_hit_shares_the_known_cause_and_makes_none(tmp_path: Path) -> None:
    room = worked(tmp_path, RULES["a hit"][0])
    case = room.cases(2)["C1"]
    assert case.recalled
    assert case.rca is not None
    assert (case.rca.rca_id, case.rca.case_no) == (1, 1)
    assert room.rows("select count(*) from rcas") == [(1,)]


def test_a_hit_that_a_human_overturns_gets_a_cause_of_its_own(tmp_path: Path) -> None:
    room = worked(tmp_path, {F0: HIT, F5: OVERTURN})
    case = room.cases(2)["C1"]
    assert case.rca is not None
    assert (case.rca.rca_id, case.rca.case_no) == (2, 2)
    assert (case.rca.description, case.decision) == ("the test weighs in pounds", "overturn")
    (earlier,) = room.findings(suite_id=1).cases
    assert (earlier.rca_id, earlier.decision) == (1, "approve"), "one word rewrites one case"


def test_a_hit_that_was_none_leaves_no_link(tmp_path: Path) -> None:
    room = worked(tmp_path, RULES["a hit that was none"][0])
    case = room.cases(2)["C1"]
    assert not case.recalled
    assert case.rca is not None
    assert (case.rca.rca_id, case.rca.case_no) == (2, 2)


def test_a_duplicate_gives_up_its_own_cause(tmp_path: Path) -> None:
    room = worked(tmp_path, RULES["a duplicate"][0])
    assert room.rows("select rca_id, case_no, status from rcas order by 1") == [
        (1, 1, "open"),
        (2, 2, "archived"),
    ]


def test_a_cause_nobody_was_sure_of_is_to_be_investigated(tmp_path: Path) -> None:
    rca = worked(tmp_path, RULES["never sure"][0]).cases(2)["C1"].rca
    assert rca is not None
    assert (rca.defect_type, rca.category, rca.attempt) == ("ti001", "unknown", 3)


def test_a_human_who_knows_better_gives_code_category_and_words(tmp_path: Path) -> None:
    room = worked(tmp_path, RULES["overturned"][0])
    (finding,) = room.findings(suite_id=2).cases
    assert (finding.defect_type, finding.category) == ("ab001", "automation")
    assert finding.message == "the test weighs in pounds"
    assert (finding.decision, finding.status) == ("overturn", "closed")


def test_made_up_numbers_are_noted_and_link_nothing(tmp_path: Path) -> None:
    case = worked(tmp_path, RULES["numbers nobody gave out"][0]).cases(2)["C1"]
    assert case.rca is None
    assert len(case.notes) == 2


def test_the_answers_of_all_looked_into_repositories_are_one_cause(tmp_path: Path) -> None:
    hull = CAUSE | {"convergence_score": 0.8, "evidence_refs": ["boat:a.py:1"]}
    yard = CAUSE | {"rca_message": "Crane.lift() is off by one", "evidence_refs": ["yard:b.py:2"]}
    answers = RULES["two places"][0] | {F3: [hull, yard]}
    room = worked(tmp_path, answers)
    rca = room.cases(2)["C1"].rca
    assert rca is not None
    assert rca.title == "Crane.lift() is off by one"
    assert [each["ref"] for each in rca.evidence] == ["boat:a.py:1", "yard:b.py:2"]
    assert room.rows("select count(*) from rcas where case_no = 2") == [(1,)]


# Anything goes

_score = st.sampled_from([0.0, 0.39, 0.4, 0.69, 0.7, 0.79, 0.8, 1.0])
_number = st.sampled_from([0, 1, 2, 3, 99, 2**64])
_says: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    F0: st.builds(
        lambda match, score, rca, symptom: (
            NEW | {"match": match, "confidence": score, "prior_rca_id": rca, "symptom_id": symptom}
        ),
        *(st.booleans(), _score, _number, _number),
    ),
    F1: st.builds(
        lambda category, repos, skip: (
            PRODUCT
            | {"symptom_category": category, "candidate_repos": repos, "skip_investigation": skip}
        ),
        st.sampled_from(["product", "infra", "flake", "timeout", "nonsense"]),
        st.lists(st.sampled_from(["boat", "yard"]), max_size=2),
        st.booleans(),
    ),
    F2: st.sampled_from([GOOD[F2], TWO, {"selected_repos": []}]),
    F3: st.builds(
        lambda score, refs, message: (
            CAUSE | {"convergence_score": score, "evidence_refs": refs, "rca_message": message}
        ),
        *(_score, st.sampled_from([[], ["boat:keel.py:3"]])),
        st.sampled_from(["it failed", "Keel.weigh() lies"]),
    ),
    F4: st.builds(
        lambda same, score, rca: (
            OWN | {"is_duplicate": same, "confidence": score, "linked_rca_id": rca}
        ),
        *(st.booleans(), _score, _number),
    ),
    F5: st.sampled_from(
        [APPROVE, OVERTURN, {"decision": "overturn"}, back(), back(F1), back(F2), back(F3)]
    ),
    F6: st.sampled_from([DRAFT, {}]),
}
_faults = st.sampled_from([{"crash": "gone"}, {"raw": "?"}, {"silent": True}])
_crews = st.fixed_dictionaries(
    {
        name: st.fixed_dictionaries(
            {
                step: st.lists(st.one_of(result, result, result, _faults), min_size=1, max_size=4)
                for step, result in _says.items()
            }
        )
        for name in ("C1", "C2", "C3")
    }
)


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(_crews, st.booleans(), st.booleans())
def test_whatever_is_said_the_books_agree(
    answers: dict[str, Any], families: bool, alike: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        room = AnalysisWorld(Path(folder))
        message = "Keel.weigh() gave 12 tons for an anchor of 3" if alike else ""
        room.take_in(launch(*(make_failure(name, message) for name in ("alpha", "beta", "gamma"))))
        terms = RcaConfig(families=families, recall_first=True)
        status = room.work_on(write_script({}, **answers), terms, wait=True)
        assert status in ("done", "unhealthy")
        assert room.faults() == []
        assert all(count == 1 for count in room.open_rcas().values())
        for case_id, case in room.cases().items():
            rules = room.rules(case_id)
            assert case.engine_status == "ended", "somebody is left waiting"
            assert (case.status == "closed") == (case.end == "DONE")
            assert (case.decision != "") == (case.status in ("reviewed", "closed"))
            assert (case.decision != "") == bool({"H12", "H14"} & {*rules})


def test_killed_at_any_moment_decision_and_effects_are_there_together_or_not_at_all(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rca_tests.worlds.kill_analysis", str(tmp_path), "29"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["moments"] > 500
    assert report["expected"][-1] == []
