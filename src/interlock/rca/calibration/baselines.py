"""Trivial baselines: what one scores without looking. An agent that is no better knows nothing.

Each baseline is a full set of results and goes through the same metrics as an agent. `majority`
has seen the labels it counts: those of the train split, or of all cases where there is no split.

How well cases were grouped: the families that were found, held against the true ones.

Knows two ways to put the same things into groups. Pairs that are together in both count, so the
names of groups do not matter, nor which case is first.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import comb
from typing import NamedTuple

import msgspec

from interlock.rca.calibration.marks import CaseResult
from interlock.rca.calibration.scenario import LabelledCase, PlantedCommit, Scenario
from interlock.rca.calibration.world import moment_of

MEANINGS = {
    "majority": "always the most frequent labels",
    "echo": "the error message as the cause, and nothing else",
    "majority+echo": "both together",
    "last commit": "the newest planted commit, its repository and files",
}


class _Usual(NamedTuple):
    defect_type: str
    category: str
    component: str
    path: tuple[str, ...]
    repos: tuple[str, ...]


def baselines(scenario: Scenario) -> dict[str, tuple[CaseResult, ...]]:
    """Results by baseline. `last commit` is there only where a world is planted."""
    usual = _usual(scenario)
    newest = _newest(scenario)
    found = {
        "majority": [_majority(case, usual) for case in scenario.cases],
        "echo": [_echo(_plain(case), case) for case in scenario.cases],
        "majority+echo": [_echo(_majority(case, usual), case) for case in scenario.cases],
    }
    if newest:
        found["last commit"] = [_last_commit(case, *newest) for case in scenario.cases]
    return {name: tuple(results) for name, results in found.items()}


def _plain(case: LabelledCase) -> CaseResult:
    return CaseResult(case_id=case.id, test_name=case.test_name, version=case.version, job=case.job)


def _usual(scenario: Scenario) -> _Usual:
    cases = [case for case in scenario.cases if case.split == "train"] or scenario.cases
    causes = [cause for case in cases if (cause := scenario.cause_of(case))]
    return _Usual(
        most_frequent(cause.defect_type for cause in causes),
        most_frequent(
            each.expected_triage.symptom_category for each in cases if each.expected_triage
        ),
        most_frequent(cause.component for cause in causes),
        tuple(most_frequent("-".join(case.expected_path) for case in cases).split("-")),
        tuple(filter(None, (most_frequent(r for each in causes for r in each.relevant_repos),))),
    )


def most_frequent(words: Iterable[str]) -> str:
    """The word met most often, of several the first by the alphabet; empty if there is none."""
    counts = Counter(words)
    return min(counts, key=lambda word: (-counts[word], word), default="")


def _majority(case: LabelledCase, usual: _Usual) -> CaseResult:
    return msgspec.structs.replace(
        _plain(case),
        actual_defect_type=usual.defect_type,
        actual_category=usual.category,
        actual_component=usual.component,
        actual_path=usual.path,
        actual_selected_repos=usual.repos,
    )


def _echo(result: CaseResult, case: LabelledCase) -> CaseResult:
    return msgspec.structs.replace(result, actual_rca_message=case.error_message)


def _newest(scenario: Scenario) -> tuple[str, PlantedCommit] | None:
    last = [(repo, world[-1]) for repo, world in sorted(scenario.worlds.items()) if world]
    return max(last, key=lambda each: _age(each[1]), default=None)


def _age(commit: PlantedCommit) -> float:
    moment = moment_of(commit.date)
    return moment.timestamp() if moment else 0.0


def _last_commit(case: LabelledCase, repo: str, commit: PlantedCommit) -> CaseResult:
    return msgspec.structs.replace(
        _plain(case),
        actual_defect_type="pb001",
        actual_category="product",
        actual_component=repo,
        actual_rca_message=commit.message,
        actual_selected_repos=(repo,),
        actual_evidence_refs=_touched(repo, commit),
    )


def _touched(repo: str, commit: PlantedCommit) -> Sequence[str]:
    return tuple(f"{repo}:{path}" for path in sorted({*commit.files, *commit.remove}))


class Grouping(msgspec.Struct, frozen=True):
    """B³ precision, recall and F, and the adjusted Rand index: 1 is best, about 0 is chance."""

    precision: float
    recall: float
    f: float
    rand: float
    cases: int
    true_groups: int
    found_groups: int


def grouping(truth: Mapping[str, Hashable], found: Mapping[str, Hashable]) -> Grouping | None:
    """Both map the same things to their groups; None if there is nothing to group."""
    if not truth:
        return None
    both = Counter((truth[each], found[each]) for each in truth)
    true_sizes, found_sizes = Counter(truth.values()), Counter(found[each] for each in truth)
    precision = sum(n * n / found_sizes[group] for (_, group), n in both.items()) / len(truth)
    recall = sum(n * n / true_sizes[group] for (group, _), n in both.items()) / len(truth)
    return Grouping(
        precision,
        recall,
        2 * precision * recall / (precision + recall),
        _rand(both, true_sizes, found_sizes, len(truth)),
        len(truth),
        len(true_sizes),
        len(found_sizes),
    )


def _rand(
    both: Counter[tuple[Hashable, Hashable]],
    true_sizes: Counter[Hashable],
    found_sizes: Counter[Hashable],
    total: int,
) -> float:
    together = sum(comb(n, 2) for n in both.values())
    in_truth = sum(comb(n, 2) for n in true_sizes.values())
    in_found = sum(comb(n, 2) for n in found_sizes.values())
    if total < 2:
        return 1.0
    by_chance = in_truth * in_found / comb(total, 2)
    most = (in_truth + in_found) / 2
    if most == by_chance:  # all alone, or all together, in both
        return 1.0 if together == most else 0.0
    return (together - by_chance) / (most - by_chance)
