"""Metrics to the letter: small scenarios, and numbers reckoned by hand."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from interlock.system.errors import UsageError
from interlock_calibrate.benchmark import Marks
from interlock_calibrate.metrics import (
    Measure,
    ScoringRules,
    collect_marks,
    is_passing,
    measure_metrics,
    measure_overall_by_weights,
)
from interlock_rca.calibration.marks import RcaCaseResult, read_metrics, score_cases
from interlock_rca.calibration.scenario import Scenario
from interlock_rca.calibration.world import plant_worlds
from rca_tests.calibration.worlds import built, small

Fields = Mapping[str, Any]
RULES = ScoringRules(read_metrics())
LATER = ScoringRules(read_metrics(), "v2")


def scenario(*cases: Fields, **causes: Fields) -> Scenario:
    rcas = [
        {"id": name, "defect_type": "pb001", "component": "core", **each}
        for name, each in causes.items()
    ]
    repos = [{"name": "herring", "is_red_herring": True}, {"name": "core"}]
    output = [{"id": f"C{number}", **case} for number, case in enumerate(cases, 1)]
    return msgspec.convert(
        {"name": "s", "rcas": rcas, "cases": output, "workspace": {"repos": repos}}, Scenario
    )


def results(*fields: Fields) -> list[RcaCaseResult]:
    output = [{"case_id": f"C{number}", **each} for number, each in enumerate(fields, 1)]
    return [msgspec.convert(each, RcaCaseResult) for each in output]


def tally(world: Scenario, given: list[RcaCaseResult], rules: ScoringRules) -> Marks:
    scored = score_cases(world, given, rules.edition_name)
    return collect_marks((case.result.case_id, case.marks) for case in scored)


def of(
    metric: str,
    world: Scenario,
    *fields: Fields,
    rules: ScoringRules = RULES,
) -> Measure:
    runs = [tally(world, results(*fields), rules)]
    return next(each for each in measure_metrics(runs, rules) if each.id == metric)


def test_m1_counts_cases_with_a_cause_and_takes_aliases_for_the_same_word() -> None:
    world = scenario(
        {"rca_id": "R"}, {"rca_id": "Q"}, {"rca_id": "Q"}, {}, R={}, Q={"defect_type": "au001"}
    )
    found = of(
        "M1",
        world,
        {"actual_defect_type": "pb001"},
        {"actual_defect_type": "ab001"},
        {"actual_defect_type": "en001"},
        {"actual_defect_type": "pb001"},
    )
    assert found.value == pytest.approx(2 / 3)
    assert found.cases == 3


@pytest.mark.parametrize(
    ("label", "outcome", "value"),
    [
        ("infra", "environment", 1),
        ("environment", "infra", 1),
        ("timeout", "config", 0),
        ("timeout", "timeout", 1),
        ("product", "", 0),
        ("unknown", "timeout", 0),
    ],
)
def test_m2_knows_the_names_of_categories_but_not_surfaces(
    label: str, outcome: str, value: int
) -> None:
    world = scenario({"expected_triage": {"symptom_category": label}}, {})
    assert of("M2", world, {"actual_category": outcome}).value == value


def test_m3_and_m4_share_the_cases() -> None:
    world = scenario(*[{"expect_recall_hit": hit} for hit in (True, True, False, False, False)])
    outcome = [{"actual_recall_hit": hit} for hit in (True, False, True, False, False)]
    assert of("M3", world, *outcome).value == 0.5
    assert of("M4", world, *outcome).value == pytest.approx(1 / 3)


def test_m4_takes_a_recall_to_the_true_cause_for_right() -> None:
    world = scenario(*[{"rca_id": name} for name in ("R", "R", "Q")], {}, R={}, Q={})
    recalled = {"actual_recall_hit": True, "actual_recall_case": "C1"}
    assert of("M4", world, {}, recalled, {}, {}).value == 0.0
    assert of("M4", world, {}, {}, recalled, {}).value == 0.25, "C1 has another cause"
    assert of("M4", world, {}, {}, {}, recalled).value == 0.25, "C4 has no cause at all"
    unknown = {"actual_recall_hit": True}
    assert of("M4", world, {}, unknown, {}, {}).value == 0.25, "nobody knows what was recalled"


def test_m5_hangs_on_the_first_case_in_the_scenarios_order() -> None:
    world = scenario(*[{"rca_id": name} for name in "RRRQQP"], R={}, Q={}, P={})
    ids = [{"actual_rca_id": number} for number in (7, 7, 8, 0, 0, 7)]
    found = of("M5", world, *ids)
    assert found.value == pytest.approx(1 / 3), "zero links nothing"
    assert found.cases == 3
    turned = [
        {"case_id": f"C{number}", "actual_rca_id": id_} for number, id_ in ((3, 8), (2, 7), (1, 7))
    ]
    assert of("M5", world, *turned).value == pytest.approx(1 / 3), "the order of results is nothing"


def test_m6_and_m7_look_at_the_cases_that_are_one() -> None:
    world = scenario({"expect_skip": True, "expect_cascade": True}, {"expect_skip": True}, {})
    outcome = [{"actual_skip": True}, {}, {"actual_skip": True, "actual_cascade": True}]
    assert of("M6", world, *outcome).value == 0.5
    assert of("M7", world, *outcome).value == 0.0


def test_m8_is_the_correlation_over_answers_that_are_not_zero() -> None:
    world = scenario(*[{"rca_id": "R"}] * 5, {}, R={})
    right, wrong = "pb001", "ab001"
    outcome = [(0.9, right), (0.8, right), (0.4, wrong), (0.5, right), (0.0, wrong), (0.1, right)]
    fields = [{"actual_convergence": score, "actual_defect_type": code} for score, code in outcome]
    # x = .9 .8 .4 .5, y = 1 1 0 1: means .65 and .75, sum of products .25, of squares .17 and .75
    assert of("M8", world, *fields).value == pytest.approx(0.25 / (0.17 * 0.75) ** 0.5)
    assert of("M8", world, *fields).cases == 4


@pytest.mark.parametrize(
    "outcome",
    [
        [],
        [(0.9, "pb001")],
        [(0.7, "pb001")] * 3,
        [(0.7, "pb001"), (0.9, "pb001")],
        [(0.7, "pb001"), (0.7, "ab001"), (0.7, "pb001")],
    ],
)
def test_m8_without_variance_is_not_measured(outcome: list[tuple[float, str]]) -> None:
    world = scenario(*[{"rca_id": "R"}] * 3, R={})
    fields = [{"actual_convergence": score, "actual_defect_type": code} for score, code in outcome]
    assert of("M8", world, *fields).value is None


def test_m9_and_m10_are_means_over_cases() -> None:
    cause = {"relevant_repos": ["core", "web"]}
    resolve: Fields = {"expected_resolve": {}}
    world = scenario(
        {"rca_id": "R", **resolve},
        {"rca_id": "R", **resolve},
        {"rca_id": "Q", **resolve},
        resolve,
        {"rca_id": "R"},
        R=cause,
        Q={},
    )
    outcome: list[Fields] = [
        {"actual_selected_repos": ["core", "docs", "herring"]},
        {},
        {"actual_selected_repos": ["docs"]},
        {"actual_selected_repos": ["core"]},
        {"actual_selected_repos": ["web"]},
    ]
    assert of("M9", world, *outcome).value == pytest.approx((1 / 3 + 0 + 1) / 3)
    assert of("M10", world, *outcome).value == pytest.approx((1 / 2 + 0 + 1) / 3), (
        "none relevant is 1"
    )
    assert of("M11", world, *outcome).value == pytest.approx(1 - 1 / 4)


def test_m12_and_m13_add_up_over_all_cases_and_count_found_on_the_expected_side() -> None:
    refs = [["r:src/a.py:f", "r:src/b.py:g"], ["r:c.py"], [], None]
    cases: list[Fields] = [
        {"expected_invest": {"evidence_refs": each}} if each is not None else {} for each in refs
    ]
    outcome: list[Fields] = [
        {"actual_evidence_refs": ["x:a.py:f and more", "1", "2"]},
        {},
        {"actual_evidence_refs": ["r:c.py"]},
        {"actual_evidence_refs": ["r:c.py", "3"]},
    ]
    world = scenario(*cases)
    assert of("M12", world, *outcome).value == pytest.approx(1 / 3)
    assert of("M13", world, *outcome).value == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("expected", "cited", "v1", "v2"),
    [
        ("r:src/a.py:f", "r:src/a.py:f", 1, 1),
        ("r:src/a.py:f", "other/a.py:f()", 1, 1),
        ("r:src/a.py:f", "a.py", 1, 1),
        ("r:src/a.py:f", "r:src/a.py:g", 0, 1),
        ("r:src/a.py:f", "q:src/a.py:g", 0, 0),
        ("r:src/a.py:f", "R:SRC/A.PY:F", 0, 0),
        ("r:src/a.py:f", "", 1, 1),
        ("whole", "the whole of it", 1, 1),
    ],
)
def test_evidence_is_found_by_parts_of_its_text(
    expected: str, cited: str, v1: int, v2: int
) -> None:
    world = scenario({"expected_invest": {"evidence_refs": [expected]}})
    outcome: Fields = {"actual_evidence_refs": [cited]}
    assert of("M12", world, outcome).value == v1
    assert of("M12", world, outcome, rules=LATER).value == v2


def test_m14_counts_keywords_up_to_what_is_needed_where_there_is_a_message() -> None:
    cause = {"required_keywords": ["Lock", "race", "stock", "60"], "keyword_threshold": 2}
    world = scenario(*[{"rca_id": "R"}] * 4, {"rca_id": "Q"}, R=cause, Q={})
    outcome = ["a LOCK, a race, no stock", "clocked at 1600", "nothing", "", "lock"]
    found = of("M14", world, *[{"actual_rca_message": each} for each in outcome])
    assert found.value == pytest.approx((1 + 1 + 0) / 3)
    assert found.cases == 3


def test_m14b_needs_half_of_the_longer_words() -> None:
    world = scenario(
        *[{"rca_id": "R"}] * 3,
        {"rca_id": "Q"},
        {"rca_id": "P"},
        R={"smoking_gun": "The Lock was Never taken again"},
        Q={"smoking_gun": "a b c"},
        P={},
    )
    # longer than three letters: lock, never, taken, again
    outcome = ["locks are never seen", "the lock was", "", "a b c", "lock never taken again"]
    found = of("M14b", world, *[{"actual_rca_message": each} for each in outcome])
    assert found.value == pytest.approx(1 / 3)
    assert found.cases == 3


def test_m15_takes_the_component_or_its_name_in_the_message() -> None:
    world = scenario(*[{"rca_id": "R"}] * 4, {}, R={"component": "Stock-API"})
    outcome: list[Fields] = [
        {"actual_component": "Stock-API"},
        {"actual_component": "stock-api"},
        {"actual_component": "web", "actual_rca_message": "the stock-api is late"},
        {"actual_rca_message": "stock"},
        {"actual_component": "Stock-API"},
    ]
    assert of("M15", world, *outcome).value == 0.5


def test_m16_wants_the_very_same_path_of_every_case() -> None:
    world = scenario(
        {"expected_path": ["F0", "F1"]}, {"expected_path": ["F0"]}, {"expected_path": ["F0"]}
    )
    outcome = [{"actual_path": path} for path in (["F0", "F1"], ["F0", "F1"])]
    assert of("M16", world, *outcome).value == pytest.approx(1 / 3), "no result is a wrong path"


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ((1, 3), (2, 4), 1.5),
        ((0, 0), (0, 0), None),
        ((0, 0), (2, 1), 4.0),
        ((2, 0), (0, 0), 0.0),
    ],
)
def test_m17_compares_sums_of_loops(
    expected: tuple[int, int], actual: tuple[int, int], value: float | None
) -> None:
    world = scenario(*[{"expected_loops": each} for each in expected])
    found = of("M17", world, *[{"actual_loops": each} for each in actual])
    assert found.value == value


def test_m18_is_of_measured_tokens_only() -> None:
    world = scenario({}, {})
    path: Fields = {"actual_path": ["F0", "F1", "F5"]}
    assert of("M18", world, path, {"actual_path": ["F0"]}).value is None
    measured = of("M18", world, {**path, "prompt_tokens_total": 70}, {"actual_path": ["F0"]})
    assert measured.value == 70, "one that is measured is enough"


TAKEN = "import os\n" + "\n" * 40 + "def take():\n    pass\n"
CITED = {
    "core:a.py:take": True,
    "core:a.py:42": True,
    "core:a.py:35-38": True,
    "core:a.py:1": False,
    "core:b.py:42": False,
    "web:a.py:42": False,
    "core@{break}": True,
    "core@{begin}": False,
    "web@{break}": False,
    "core@zzzzzzzz": False,
}


@pytest.mark.parametrize(("ref", "found"), CITED.items())
def test_m12_takes_what_an_honest_analyst_can_cite(ref: str, found: bool) -> None:
    plain = small()
    plain["worlds"] = {
        "core": [
            {"id": "begin", "author": "A <a@b.c>", "date": "2026-01-01T00:00:00Z"}
            | {"message": "Begin", "files": {"a.py": "import os\n"}},
            {"id": "break", "author": "A <a@b.c>", "date": "2026-01-02T00:00:00Z"}
            | {"message": "Break", "files": {"a.py": TAKEN}},
        ]
    }
    world = built(plain)
    with TemporaryDirectory() as folder:
        hashes = plant_worlds(world, Path(folder))["core"]
    cited = {"actual_evidence_refs": [ref.format_map(hashes)[:20]]}
    assert of("M12", world, cited).value == float(found)


def test_what_was_not_measured_has_no_value() -> None:
    world = scenario({})
    found = {each.id: each for each in measure_metrics([tally(world, [], RULES)], RULES)}
    ratios = ["M1", "M2", "M3", "M5", "M6", "M7", "M9", "M10", "M12", "M13", "M14", "M14b", "M15"]
    assert [found[name].value for name in (*ratios, "M11")] == [None] * 14
    assert found["M4"].value == 0.0, "nothing was recalled that should not be"
    assert of("M4", scenario({"expect_recall_hit": True})).value is None


def test_m19_weighs_what_is_there() -> None:
    world = scenario({"rca_id": "R"}, {"rca_id": "R"}, R={})
    outcome: list[Fields] = [{"actual_defect_type": "pb001"}, {}]
    # M1 is .5, M5 and M15 are 0, the others are not measured.
    assert of("M19", world, *outcome).value == pytest.approx(0.20 * 0.5 / (0.20 + 0.15 + 0.15))
    v2 = of("M19", world, *outcome, rules=LATER)
    assert v2.value == pytest.approx(0.25 * 0.5 / (0.25 + 0.05 + 0.20))
    capped = of("M19", world, *outcome, rules=ScoringRules(read_metrics(), left_out=("M5",)))
    assert capped.value == pytest.approx(0.20 * 0.5 / 0.35)
    runs = [tally(world, results(*outcome), RULES)]
    original = measure_overall_by_weights(runs, RULES)["original"]
    assert original == pytest.approx(0.20 * 0.5 / 0.40)


def test_m20_is_the_spread_of_m19_over_runs_and_other_metrics_are_means() -> None:
    world = scenario({"rca_id": "R"}, R={})
    good: Fields = {"actual_defect_type": "pb001", "actual_component": "core"}
    runs = [tally(world, results(each), RULES) for each in (good, {}, {})]
    found = {each.id: each for each in measure_metrics(runs, RULES)}
    assert found["M1"].value == pytest.approx(1 / 3)
    overall = [of("M19", world, each).value or 0.0 for each in (good, {}, {})]
    mean = sum(overall) / 3
    assert found["M19"].value == pytest.approx(mean)
    spread = (sum((each - mean) ** 2 for each in overall) / 2) ** 0.5
    assert found["M20"].value == pytest.approx(spread)
    assert of("M20", world, good).value is None


def test_results_of_candidates_and_strangers_are_not_scored() -> None:
    world = scenario({"rca_id": "R"}, R={})
    outcome: list[Fields] = [{}, {"actual_defect_type": "pb001"}, {"case_id": "K"}]
    assert of("M1", world, *outcome).value == 0.0
    assert of("M16", world, *outcome).cases == 1


def test_the_table_has_all_metrics_with_weights_that_add_up() -> None:
    table = read_metrics()
    names = [*(f"M{number}" for number in range(1, 15)), "M14b", *(f"M{n}" for n in range(15, 21))]
    assert [metric.id for metric in table.metrics] == names
    for weights in table.weights.values():
        assert sum(weights.values()) == pytest.approx(1.0)
    v1 = {m.id: m.passes["v1"] for m in table.metrics}
    assert (v1["M1"], v1["M4"], v1["M17"]) == ((0.8, None), (None, 0.1), (0.5, 2.0))
    assert table.default == "v1"
    assert RULES.weights_name == "february"


def test_bounds_hold_their_ends_and_words_that_are_not_there_are_told() -> None:
    assert is_passing((0.8, None), 0.8)
    assert is_passing((None, 0.1), 0.1)
    assert not is_passing((0.5, 2.0), 2.01)
    with pytest.raises(UsageError, match="there is no edition 'v9'; use v1, v2"):
        tally(scenario({}), [], ScoringRules(read_metrics(), "v9"))
    with pytest.raises(UsageError, match="no weights 'heavy'"):
        measure_metrics(
            [tally(scenario({}), [], RULES)], ScoringRules(read_metrics(), weights="heavy")
        )
