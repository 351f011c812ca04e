"""Marks: what an agent made of each case, and the two numbers that it brings to each metric.

The formulas follow the ancestor to the letter, the odd ones included: results must stay comparable
with published ones. Nothing is added up here: sums, intervals and comparisons are all made from
the same marks. A code that our taxonomy calls by another name is read in the scenario's own word.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from interlock.system.yaml_text import read_yaml
from interlock_calibrate.benchmark import Edition, Mark, MetricTable, ScoredCase, StepCost
from interlock_rca.calibration.scenario import LabelledCase, RootCause, Scenario
from interlock_rca.calibration.world import find_commit
from interlock_rca.taxonomy import TAXONOMY


class RcaEdition(Edition, frozen=True, forbid_unknown_fields=True):
    """One way to count that was in use."""

    same_path_is_found: bool
    """Evidence is found more easily: another line of the same file will do."""
    by_later_rules: bool
    """Results are captured as the ancestor's authors did in the end, and metrics that a scenario
    caps do not count."""


class RcaMetrics(MetricTable, frozen=True, forbid_unknown_fields=True):
    """The table in `metrics.yaml`."""

    editions: Mapping[str, RcaEdition]

    def find_edition(self, name: str) -> RcaEdition:
        super().find_edition(name)
        return self.editions[name]


@cache
def read_metrics() -> RcaMetrics:
    """The metric table, checked once and trusted from then on."""
    text = resources.files("interlock_rca.calibration").joinpath("metrics.yaml").read_text("utf-8")
    return msgspec.convert(read_yaml(text, "metrics.yaml").value, RcaMetrics)


class RcaCaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a calibration run writes down of one case, and all that is scored."""

    case_id: str
    test_name: str = ""
    version: str = ""
    job: str = ""
    store_case_id: int = 0
    actual_defect_type: str = ""
    actual_category: str = ""
    actual_rca_message: str = ""
    actual_component: str = ""
    actual_path: tuple[str, ...] = ()
    """Short step names, F0 to F6, in the order of their visits."""
    actual_recall_hit: bool = False
    actual_recall_case: str = ""
    """The case whose cause was recalled; empty if there is none of that number."""
    actual_skip: bool = False
    actual_cascade: bool = False
    actual_loops: int = 0
    """How often F3 sent the case back to F2."""
    actual_evidence_refs: tuple[str, ...] = ()
    actual_selected_repos: tuple[str, ...] = ()
    """Each repository once."""
    actual_rca_id: int = 0
    """The cause in the store; 0 if there is none."""
    actual_convergence: float = 0.0
    """How sure the agent was; 0 if it did not say."""
    rp_issue_type: str = ""
    rp_auto_analyzed: bool = False
    prompt_tokens_total: int = 0
    artifact_tokens_total: int = 0
    step_count: int = 0
    wall_clock_ms: int = 0
    pipeline_error: str = ""
    """Why the case did not come to an end; empty if it did."""
    steps: tuple[StepCost, ...] = ()


def align_results(
    scenario: Scenario, results: Iterable[RcaCaseResult]
) -> tuple[RcaCaseResult, ...]:
    """One result for each scored case, in the scenario's order and words.

    A case without a result counts as one that failed; results of anything else are left out.
    """
    by_id = {result.case_id: result for result in results}
    return tuple(
        use_scenario_words(scenario, case, by_id.get(case.id) or _make_missing_result(case))
        for case in scenario.cases
    )


def _make_missing_result(case: LabelledCase) -> RcaCaseResult:
    return RcaCaseResult(
        case_id=case.id,
        test_name=case.test_name,
        version=case.version,
        job=case.job,
        pipeline_error="there is no result",
    )


def use_scenario_words(
    scenario: Scenario, case: LabelledCase, result: RcaCaseResult
) -> RcaCaseResult:
    """The result with the scenario's own words where ours mean the same."""
    cause = scenario.cause_of(case)
    code, category = result.actual_defect_type, result.actual_category
    if cause and _is_same(TAXONOMY.find_code(code), TAXONOMY.find_code(cause.defect_type)):
        code = cause.defect_type
    label = case.expected_triage.symptom_category if case.expected_triage else ""
    if _is_same(TAXONOMY.find_category(category), TAXONOMY.find_category(label)) and _are_names(
        category, label
    ):
        category = label
    return msgspec.structs.replace(result, actual_defect_type=code, actual_category=category)


def _is_same(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def _are_names(one: str, other: str) -> bool:
    """Words of the surface all read as unknown: they are not each other's names."""
    return not {one.strip().lower(), other.strip().lower()} & TAXONOMY.surfaces.keys()


_MarkFunction = Callable[[Scenario, LabelledCase, RcaCaseResult], Mark | None]
_SHORT_WORD = 3
_LINES = re.compile(r":(\d{1,7})(?:-(\d{1,7}))?")
_NEAR_LINES = 10
"""A line so near to a symbol is where one looks at it."""


def make_marks(
    scenario: Scenario, results: Sequence[RcaCaseResult], *, same_path_is_found: bool = False
) -> dict[str, dict[str, Mark]]:
    """The marks of all cases; `results` has one for each, in the scenario's order."""
    pairs = list(zip(scenario.cases, results, strict=True))
    marks = {
        metric: {
            case.id: mark
            for case, result in pairs
            if (mark := score(scenario, case, result)) is not None
        }
        for metric, score in _MARKS.items()
    }
    evidence = {
        case.id: _count_evidence(scenario, case, result, same_path_is_found)
        for case, result in pairs
    }
    found: dict[str, dict[str, Mark]] = {
        **marks,
        "M5": _mark_links(pairs),
        "M12": {case: (found, due) for case, (found, due, _) in evidence.items() if due},
        "M13": {case: (found, cited) for case, (found, _, cited) in evidence.items() if cited},
    }
    return {
        metric: {case: (float(one), float(other)) for case, (one, other) in each.items()}
        for metric, each in found.items()
    }


def score_cases(
    scenario: Scenario, results: Iterable[RcaCaseResult], edition: str
) -> tuple[ScoredCase[RcaCaseResult], ...]:
    """Each result held against its labels, in the scenario's order."""
    rules = read_metrics().find_edition(edition)
    complete = align_results(scenario, results)
    marks = make_marks(scenario, complete, same_path_is_found=rules.same_path_is_found)
    return tuple(
        _score_case(scenario, case, result, marks)
        for case, result in zip(scenario.cases, complete, strict=True)
    )


def _score_case(
    scenario: Scenario,
    case: LabelledCase,
    result: RcaCaseResult,
    marks: Mapping[str, Mapping[str, Mark]],
) -> ScoredCase[RcaCaseResult]:
    cause = scenario.cause_of(case)
    return ScoredCase(
        result=result,
        solved=is_solved(scenario, case, result),
        marks={metric: each[case.id] for metric, each in marks.items() if case.id in each},
        label=cause.defect_type if cause else None,
        is_label_right=is_defect_right(scenario, case, result),
        family=scenario.family_of(case),
        found_family=result.actual_rca_id or result.case_id,
    )


def is_defect_right(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> bool:
    cause = scenario.cause_of(case)
    return cause is not None and result.actual_defect_type == cause.defect_type


def is_component_right(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> bool:
    """The component itself, or its name anywhere in the message."""
    cause = scenario.cause_of(case)
    if cause is None:
        return False
    message = result.actual_rca_message.lower()
    named = bool(message) and cause.component.lower() in message
    return result.actual_component == cause.component or named


def is_solved(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> bool:
    """Defect type and component are right; without a cause, the category is."""
    if case.rca_id:
        return is_defect_right(scenario, case, result) and is_component_right(
            scenario, case, result
        )
    mark = _mark_category(scenario, case, result)
    return mark is not None and mark[0] == 1


def has_evidence(expected: str, cited: Sequence[str], *, same_path_is_found: bool) -> bool:
    """Whether one of the references is the expected one, by parts of their texts."""
    name = expected.rsplit("/", 1)[-1]
    return any(
        name in each or each in expected or (same_path_is_found and _is_same_path(expected, each))
        for each in cited
    )


def _is_same_path(one: str, other: str) -> bool:
    here, there = one.split(":"), other.split(":")
    return len(here) > 1 and len(there) > 1 and here[:2] == there[:2]


def points_at(scenario: Scenario, cause: RootCause | None, expected: str, cited: str) -> bool:
    """Whether a reference of ours points at the expected place in a planted world: a line near the
    symbol, or the commit that brought the cause to that file. The ancestor had no worlds."""
    repo, path, symbol = [*expected.split(":", 2), "", ""][:3]
    world = scenario.worlds.get(repo, ())
    if cited.startswith(f"{repo}@"):
        commit = find_commit(scenario.worlds, repo, cited.removeprefix(f"{repo}@"))
        if commit is None or cause is None or cause.culprit != f"{repo}@{commit.id}":
            return False
        return path in (*commit.files, *commit.remove)
    place = _LINES.fullmatch(cited.removeprefix(f"{repo}:{path}"))
    if place is None or not cited.startswith(f"{repo}:{path}:"):
        return False
    first, last = int(place[1]), int(place[2] or place[1])
    return any(
        symbol in line and first - _NEAR_LINES <= number <= last + _NEAR_LINES
        for commit in world
        for number, line in enumerate(commit.files.get(path, "").splitlines(), 1)
    )


def _count_evidence(
    scenario: Scenario, case: LabelledCase, result: RcaCaseResult, same_path_is_found: bool
) -> tuple[int, int, int]:
    expected = case.expected_invest.evidence_refs if case.expected_invest else ()
    cited, cause = result.actual_evidence_refs, scenario.cause_of(case)
    found = sum(
        has_evidence(each, cited, same_path_is_found=same_path_is_found)
        or any(points_at(scenario, cause, each, ref) for ref in cited)
        for each in expected
    )
    return found, len(expected), len(cited)


def _mark_links(pairs: Sequence[tuple[LabelledCase, RcaCaseResult]]) -> dict[str, Mark]:
    """Every case after the first of its cause: is it linked to what the first is linked to?"""
    first: dict[str, int] = {}
    marks: dict[str, Mark] = {}
    for case, result in pairs:
        if not case.rca_id:
            continue
        if case.rca_id not in first:
            first[case.rca_id] = result.actual_rca_id
            continue
        linked = result.actual_rca_id != 0 and result.actual_rca_id == first[case.rca_id]
        marks[case.id] = (linked, 1)
    return marks


def _mark_defect(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return (is_defect_right(scenario, case, result), 1) if case.rca_id else None


def _mark_category(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    triage = case.expected_triage
    return (result.actual_category == triage.symptom_category, 1) if triage else None


def _mark_recall_hit(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return (result.actual_recall_hit, 1) if case.expect_recall_hit else None


def _mark_false_recall(
    scenario: Scenario, case: LabelledCase, result: RcaCaseResult
) -> Mark | None:
    """A recall that nobody expected is right all the same if it points to the true cause."""
    if case.expect_recall_hit:
        return None
    recalled = scenario.case_by_id.get(result.actual_recall_case)
    is_true = bool(case.rca_id) and recalled is not None and recalled.rca_id == case.rca_id
    return result.actual_recall_hit and not is_true, 1


def _mark_skip(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return (result.actual_skip, 1) if case.expect_skip else None


def _mark_cascade(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return (result.actual_cascade, 1) if case.expect_cascade else None


def _mark_confidence(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    if not case.rca_id or result.actual_convergence == 0:
        return None
    return result.actual_convergence, is_defect_right(scenario, case, result)


def _mark_repo_precision(
    scenario: Scenario, case: LabelledCase, result: RcaCaseResult
) -> Mark | None:
    selected = result.actual_selected_repos
    if not case.rca_id or not selected:
        return None
    relevant = _find_relevant_repos(scenario.cause_of(case))
    return sum(repo in relevant for repo in selected) / len(selected), 1


def _mark_repo_recall(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    if not case.rca_id or case.expected_resolve is None:
        return None
    relevant = _find_relevant_repos(scenario.cause_of(case))
    if not relevant:
        return 1, 1
    return len(relevant & set(result.actual_selected_repos)) / len(relevant), 1


def _find_relevant_repos(cause: RootCause | None) -> frozenset[str]:
    return frozenset(cause.relevant_repos if cause else ())


def _mark_red_herring(scenario: Scenario, _: LabelledCase, result: RcaCaseResult) -> Mark | None:
    selected = result.actual_selected_repos
    return (not scenario.red_herrings.isdisjoint(selected), 1) if selected else None


def _mark_keywords(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    cause = scenario.cause_of(case)
    message = result.actual_rca_message.lower()
    if cause is None or not message or not cause.required_keywords:
        return None
    if cause.keyword_threshold <= 0:
        return 1, 1
    matched = sum(word.lower() in message for word in cause.required_keywords)
    return min(1.0, matched / cause.keyword_threshold), 1


def _mark_smoking_gun(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    cause = scenario.cause_of(case)
    message = result.actual_rca_message.lower()
    if cause is None or not message or not cause.smoking_gun:
        return None
    words = [word for word in cause.smoking_gun.lower().split() if len(word) > _SHORT_WORD]
    hits = sum(word in message for word in words)
    return bool(words) and hits * 2 >= len(words), 1


def _mark_component(scenario: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return (is_component_right(scenario, case, result), 1) if case.rca_id else None


def _mark_path(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return result.actual_path == case.expected_path, 1


def _mark_loops(_: Scenario, case: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return result.actual_loops, case.expected_loops


def _mark_tokens(_: Scenario, __: LabelledCase, result: RcaCaseResult) -> Mark | None:
    return result.prompt_tokens_total, len(result.actual_path)


_MARKS: Mapping[str, _MarkFunction] = {
    "M1": _mark_defect,
    "M2": _mark_category,
    "M3": _mark_recall_hit,
    "M4": _mark_false_recall,
    "M6": _mark_skip,
    "M7": _mark_cascade,
    "M8": _mark_confidence,
    "M9": _mark_repo_precision,
    "M10": _mark_repo_recall,
    "M11": _mark_red_herring,
    "M14": _mark_keywords,
    "M14b": _mark_smoking_gun,
    "M15": _mark_component,
    "M16": _mark_path,
    "M17": _mark_loops,
    "M18": _mark_tokens,
}
