"""Trivial baselines: what one scores without looking. An agent that is no better knows nothing.

`majority` always answers the most frequent labels, and has seen those it counts: of the train
split, or of all cases where there is no split. `echo` says the error message as the cause, and
nothing else; `majority+echo` does both. `last commit` blames the newest planted commit, with its
repository and files. Each is a full set of results and goes through the same metrics as an agent.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from interlock_rca.calibration.marks import RcaCaseResult
from interlock_rca.calibration.scenario import LabelledCase, PlantedCommit, Scenario
from interlock_rca.calibration.world import parse_date

REFERENCE = "majority+echo"
REFERENCE_MEANING = (
    "always the most frequent labels, the error message as the cause, and nothing else"
)


class _MajorityLabels(NamedTuple):
    defect_type: str
    category: str
    component: str
    path: tuple[str, ...]
    repos: tuple[str, ...]


def make_baselines(scenario: Scenario) -> dict[str, tuple[RcaCaseResult, ...]]:
    """Results by baseline. `last commit` is there only where a world is planted."""
    usual = _find_majority_labels(scenario)
    newest = _find_newest_commit(scenario)
    found = {
        "majority": [_answer_majority(case, usual) for case in scenario.cases],
        "echo": [_answer_echo(_make_empty_result(case), case) for case in scenario.cases],
        "majority+echo": [
            _answer_echo(_answer_majority(case, usual), case) for case in scenario.cases
        ],
    }
    if newest:
        found["last commit"] = [_answer_last_commit(case, *newest) for case in scenario.cases]
    return {name: tuple(results) for name, results in found.items()}


def _make_empty_result(case: LabelledCase) -> RcaCaseResult:
    return RcaCaseResult(
        case_id=case.id, test_name=case.test_name, version=case.version, job=case.job
    )


def _find_majority_labels(scenario: Scenario) -> _MajorityLabels:
    cases = [case for case in scenario.cases if case.split == "train"] or scenario.cases
    causes = [cause for case in cases if (cause := scenario.cause_of(case))]
    return _MajorityLabels(
        find_most_frequent(cause.defect_type for cause in causes),
        find_most_frequent(
            each.expected_triage.symptom_category for each in cases if each.expected_triage
        ),
        find_most_frequent(cause.component for cause in causes),
        tuple(find_most_frequent("-".join(case.expected_path) for case in cases).split("-")),
        tuple(
            filter(None, (find_most_frequent(r for each in causes for r in each.relevant_repos),))
        ),
    )


def find_most_frequent(words: Iterable[str]) -> str:
    """The word met most often, of several the first by the alphabet; empty if there is none."""
    counts = Counter(words)
    return min(counts, key=lambda word: (-counts[word], word), default="")


def _answer_majority(case: LabelledCase, usual: _MajorityLabels) -> RcaCaseResult:
    return msgspec.structs.replace(
        _make_empty_result(case),
        actual_defect_type=usual.defect_type,
        actual_category=usual.category,
        actual_component=usual.component,
        actual_path=usual.path,
        actual_selected_repos=usual.repos,
    )


def _answer_echo(result: RcaCaseResult, case: LabelledCase) -> RcaCaseResult:
    return msgspec.structs.replace(result, actual_rca_message=case.error_message)


def _find_newest_commit(scenario: Scenario) -> tuple[str, PlantedCommit] | None:
    last = [(repo, world[-1]) for repo, world in sorted(scenario.worlds.items()) if world]
    return max(last, key=lambda each: _read_timestamp(each[1]), default=None)


def _read_timestamp(commit: PlantedCommit) -> float:
    moment = parse_date(commit.date)
    return moment.timestamp() if moment else 0.0


def _answer_last_commit(case: LabelledCase, repo: str, commit: PlantedCommit) -> RcaCaseResult:
    return msgspec.structs.replace(
        _make_empty_result(case),
        actual_defect_type="pb001",
        actual_category="product",
        actual_component=repo,
        actual_rca_message=commit.message,
        actual_selected_repos=(repo,),
        actual_evidence_refs=_list_touched_files(repo, commit),
    )


def _list_touched_files(repo: str, commit: PlantedCommit) -> Sequence[str]:
    return tuple(f"{repo}:{path}" for path in sorted({*commit.files, *commit.remove}))
