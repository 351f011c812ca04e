"""Guards a machine holds: what is corrected, capped, merged, refused once, and never an agent's."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.case import Case
from interlock_rca.check_answer import (
    MAX_SCORE_WITHOUT_EVIDENCE,
    CheckedAnswer,
    check_answer,
    is_vague,
    list_selected_repos,
)
from interlock_rca.records import Evidence
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6
from interlock_rca.taxonomy import TAXONOMY

TRIAGE: dict[str, Any] = {
    "symptom_category": "product",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": ["hull"],
    "skip_investigation": False,
}
FINDING: dict[str, Any] = {
    "rca_message": "Keel.weigh() counts the anchor twice",
    "defect_type": "pb001",
    "convergence_score": 0.9,
    "evidence_refs": ["hull:keel.py:3"],
}


def checked(verdict: str) -> Any:
    def check(refs: Sequence[str]) -> list[Evidence]:
        return [Evidence(ref=ref, verdict=verdict) for ref in refs]

    return check


FOUND, MISSING, UNCHECKED = checked("found"), checked("missing"), checked("unchecked")


def at(
    step: str,
    data: Mapping[str, Any],
    *,
    check: Any = FOUND,
    context: Mapping[str, Any] | None = None,
    again: bool = False,
) -> CheckedAnswer:
    case = Case("C1", step, complaint="no" if again else "", context=context or {})
    return check_answer(case, data, check, TAXONOMY)


# F1


def test_a_triage_in_our_words_stays_as_it_is() -> None:
    assert at(F1, TRIAGE) == CheckedAnswer(TRIAGE)


@pytest.mark.parametrize(
    ("given_code", "code"),
    [("PB001", "pb001"), ("au001", "ab001"), (" en001 ", "si001"), ("ib003", "ib003")],
)
def test_aliases_of_codes_become_codes(given_code: str, code: str) -> None:
    found = at(F1, TRIAGE | {"defect_type_hypothesis": given_code})
    assert (found.data["defect_type_hypothesis"], found.refused) == (code, "")
    found = at(F3, FINDING | {"defect_type": given_code})
    assert (found.data["defect_type"], found.refused) == (code, "")


@pytest.mark.parametrize(
    ("word", "category", "note"),
    [
        ("environment", "infra", "category 'environment' read as infra"),
        ("timeout", "unknown", "category 'timeout' read as unknown"),
        ("goblins", "unknown", "category 'goblins' read as unknown"),
    ],
)
def test_other_words_for_categories_are_read_and_said(word: str, category: str, note: str) -> None:
    found = at(F1, TRIAGE | {"symptom_category": word, "data_quality_notes": "log is cut"})
    assert found.data["symptom_category"] == category
    assert found.data["data_quality_notes"].startswith(f"log is cut; {note}")


def test_case_and_spaces_of_a_category_are_not_worth_a_note() -> None:
    assert at(F1, TRIAGE | {"symptom_category": " Product"}) == CheckedAnswer(TRIAGE)


def test_a_word_of_any_length_makes_a_short_note() -> None:
    found = at(F1, TRIAGE | {"symptom_category": "x" * 100_000})
    assert len(found.data["data_quality_notes"]) < 300


@pytest.mark.parametrize(("step", "name"), [(F1, "defect_type_hypothesis"), (F3, "defect_type")])
def test_an_unknown_code_is_refused_once_then_taken_as_unsure(step: str, name: str) -> None:
    good = TRIAGE if step == F1 else FINDING
    first = at(step, good | {name: "zz999"})
    assert first.refused.startswith("'zz999' is not a defect code; use one of pb001, ab001, si001")
    second = at(step, good | {name: "zz999"}, again=True)
    assert (second.refused, second.data[name]) == ("", "ti001")
    result = second.data["data_quality_notes"] if step == F1 else second.data["notes"][0]
    assert result == "'zz999' is not a defect code; ti001 was written instead"


def test_a_refusal_repeats_little_of_what_was_said() -> None:
    assert len(at(F1, TRIAGE | {"defect_type_hypothesis": "y" * 50_000}).refused) < 300


# F3


def test_a_finding_keeps_its_score_when_its_evidence_is_there() -> None:
    found = at(F3, FINDING)
    assert found.data["convergence_score"] == 0.9
    assert found.data["evidence"] == [
        {"ref": "hull:keel.py:3", "verdict": "found", "why": "", "url": ""}
    ]
    assert found.data["notes"] == []
    assert "claimed_score" not in found.data


@pytest.mark.parametrize(
    ("refs", "check", "why"),
    [
        ([], FOUND, "it cites no evidence"),
        (["hull:nowhere.py:1"], MISSING, "none of its evidence is there"),
    ],
)
def test_without_evidence_a_score_is_capped_and_the_claim_kept(
    refs: list[str], check: Any, why: str
) -> None:
    found = at(F3, FINDING | {"evidence_refs": refs}, check=check).data
    assert (found["convergence_score"], found["claimed_score"]) == (MAX_SCORE_WITHOUT_EVIDENCE, 0.9)
    assert found["notes"] == [f"score 0.9 lowered to 0.5: {why}"]


def test_evidence_nobody_could_check_caps_nothing() -> None:
    found = at(F3, FINDING, check=UNCHECKED).data
    assert found["convergence_score"] == 0.9
    assert found["evidence"][0]["verdict"] == "unchecked"


def test_one_reference_that_is_there_is_enough() -> None:
    def half(refs: Sequence[str]) -> list[Evidence]:
        return [*MISSING(refs[:1]), *FOUND(refs[1:])]

    found = at(F3, FINDING | {"evidence_refs": ["a:b:1", "c:d:2"]}, check=half).data
    assert found["convergence_score"] == 0.9


@given(st.floats(0, 1), st.lists(st.sampled_from(["found", "missing", "unchecked"]), max_size=4))
def test_no_score_is_ever_raised_and_none_above_the_cap_without_evidence(
    score: float, verdicts: list[str]
) -> None:
    def check(refs: Sequence[str]) -> list[Evidence]:
        return [
            Evidence(ref=ref, verdict=result) for ref, result in zip(refs, verdicts, strict=True)
        ]

    refs = [f"r{n}" for n in range(len(verdicts))]
    finding = FINDING | {"convergence_score": score, "evidence_refs": refs}
    found = at(F3, finding, check=check).data["convergence_score"]
    supported = any(result != "missing" for result in verdicts)
    assert found == (score if supported else min(score, MAX_SCORE_WITHOUT_EVIDENCE))


@pytest.mark.parametrize(
    "message", ["The test failed.", "unknown error", "!!!", "It is a bug in the product code", "…"]
)
def test_a_message_that_says_nothing_is_refused_once_then_taken_with_a_note(message: str) -> None:
    assert is_vague(message)
    first = at(F3, FINDING | {"rca_message": message})
    assert first.refused.startswith("rca_message says nothing that can be checked; name the")
    second = at(F3, FINDING | {"rca_message": message}, again=True)
    assert second.refused == ""
    assert second.data["notes"] == ["the message names nothing that can be checked"]


@pytest.mark.parametrize(
    "message",
    ["error 500 from the gateway", "Keel.weigh() fails", "船が沈んだ", "mooring_line was cut"],
)
def test_a_message_that_names_something_is_not_vague(message: str) -> None:
    assert not is_vague(message)


def test_agents_cannot_write_the_fields_of_the_machine() -> None:
    forged = {
        "repos_left": 7,
        "findings": [FINDING | {"convergence_score": 1.0}],
        "evidence": [{"ref": "forged", "verdict": "found"}],
        "claimed_score": 0.1,
        "repo": "elsewhere",
        "notes": ["all is well"],
    }
    honest = at(F3, FINDING)
    assert at(F3, FINDING | forged) == honest
    assert not {"repos_left", "findings", "claimed_score", "repo"} & set(honest.data)


def test_in_several_repositories_agents_cannot_write_them_either() -> None:
    context = {"selected_repos": [{"name": "hull"}, {"name": "sail"}]}
    forged = {"repos_left": 0, "findings": [], "repo": "sail", "evidence": []}
    assert at(F3, FINDING | forged, context=context) == at(F3, FINDING, context=context)


# Several repositories


def looked_into(repos: Sequence[Any], findings: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The merged answers as one repository after another is looked into."""
    context: dict[str, Any] = {"selected_repos": repos, "findings": []}
    answers = []
    for finding in findings:
        found = at(F3, finding, context=context)
        assert found.refused == ""
        answers.append(found.data)
        context = context | {"findings": found.data.get("findings", [])}
    return answers


def test_each_selected_repository_is_looked_into_then_the_surest_speaks() -> None:
    repos = [{"name": "hull"}, {"name": "sail"}, {"name": "crew"}]
    sail = FINDING | {
        "rca_message": "Sail.reef() tears at 20 knots",
        "convergence_score": 0.95,
        "evidence_refs": ["sail:reef.py:9"],
    }
    answers = looked_into(repos, [FINDING, sail, FINDING | {"convergence_score": 0.2}])
    assert [each["repos_left"] for each in answers] == [2, 1, 0]
    last = answers[-1]
    assert (last["rca_message"], last["repo"]) == ("Sail.reef() tears at 20 knots", "sail")
    assert last["convergence_score"] == 0.95
    assert last["evidence_refs"] == ["hull:keel.py:3", "sail:reef.py:9"]
    assert [each["ref"] for each in last["evidence"]] == ["hull:keel.py:3", "sail:reef.py:9"]
    assert [each["repo"] for each in last["findings"]] == ["hull", "sail", "crew"]


def test_of_equals_the_first_speaks() -> None:
    other = FINDING | {"rca_message": "Sail.reef() tears"}
    assert looked_into(["hull", "sail"], [FINDING, other])[-1]["repo"] == "hull"


def test_a_capped_claim_does_not_speak_for_the_others() -> None:
    boast = FINDING | {"convergence_score": 1.0, "evidence_refs": []}
    modest = FINDING | {"convergence_score": 0.6}
    assert looked_into(["hull", "sail"], [boast, modest])[-1]["repo"] == "sail"


def test_a_repository_named_twice_is_looked_into_once() -> None:
    named = [{"name": "hull", "reason": "a"}, {"name": "hull", "reason": "b"}, {"name": "sail"}]
    assert [each["name"] for each in list_selected_repos({"selected_repos": named})] == [
        "hull",
        "sail",
    ]
    assert list_selected_repos({"selected_repos": named})[0]["reason"] == "a"
    assert [each["repos_left"] for each in looked_into(named, [FINDING, FINDING])] == [1, 0]


def test_one_repository_or_none_needs_no_merge() -> None:
    assert list_selected_repos({}) == []
    assert list_selected_repos({"selected_repos": ["hull"]})[0]["name"] == "hull"
    for repos in ([], ["hull"], [{"name": "hull"}, {"name": "hull"}]):
        assert "findings" not in at(F3, FINDING, context={"selected_repos": repos}).data


@given(
    st.lists(st.sampled_from("abcdef"), min_size=2, max_size=9),
    st.lists(st.floats(0, 1), min_size=9, max_size=9),
)
def test_as_many_dispatches_as_repositories_and_the_best_score(
    names: list[str], scores: list[float]
) -> None:
    count = len(set(names))
    findings = [FINDING | {"convergence_score": score} for score in scores[:count]]
    answers = looked_into([{"name": name} for name in names], findings)
    if count > 1:
        assert [each["repos_left"] for each in answers] == list(range(count - 1, -1, -1))
        assert answers[-1]["convergence_score"] == max(scores[:count])
        assert answers[-1]["evidence_refs"] == ["hull:keel.py:3"]


# F5 and the others


def test_a_reviewers_code_is_read_like_any_other() -> None:
    result = {
        "decision": "overturn",
        "human_override": {"defect_type": "AU001", "rca_message": "x"},
    }
    found = at(F5, result)
    assert found.data["human_override"] == {"defect_type": "ab001", "rca_message": "x"}
    assert result["human_override"] == {"defect_type": "AU001", "rca_message": "x"}


@pytest.mark.parametrize("again", [False, True])
def test_a_reviewers_unknown_code_is_never_taken(again: bool) -> None:
    result = {"decision": "overturn", "human_override": {"defect_type": "goblins"}}
    assert at(F5, result, again=again).refused.startswith(
        "'goblins' is not a defect code; use one of"
    )


@pytest.mark.parametrize(
    "result",
    [
        {"decision": "approve"},
        {"decision": "overturn"},
        {"decision": "overturn", "human_override": {}},
        {"decision": "overturn", "human_override": {"defect_type": ""}},
    ],
)
def test_a_review_without_a_code_stays_as_it_is(result: dict[str, Any]) -> None:
    assert at(F5, result) == CheckedAnswer(result)


@pytest.mark.parametrize("step", [F0, F2, F4, F6])
def test_other_answers_pass_untouched(step: str) -> None:
    data = {"match": True, "notes": ["mine"], "repos_left": 3}
    assert at(step, data) == CheckedAnswer(data)
