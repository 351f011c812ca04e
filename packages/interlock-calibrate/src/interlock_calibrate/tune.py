"""Decide recorded runs again with other thresholds. No agent is asked.

If another threshold asks for an answer that was never given, the case is unknown, and counts as
neither right nor wrong.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.project import Project
from interlock.api.work import load_circuit
from interlock.engine.advance import open_case
from interlock.engine.case import OPEN, Case
from interlock.engine.circuit import Circuit
from interlock.engine.replay import RecordedDecisions, decide_again
from interlock.journal.connection import Connection
from interlock.journal.runs import find_run, load_cases, load_decisions
from interlock.system.errors import SourceError, UsageError
from interlock.system.statistics import Interval, wilson_interval
from interlock_calibrate.benchmark import AnyBenchmark, Judgement, Scenario, Split
from interlock_calibrate.scorecard import read_calibration

MAX_POINTS = 20_000
_MAX_VALUES = 1_000
GridPoint = Mapping[str, Any]


def parse_axis(word: str, circuit: Circuit) -> tuple[str, tuple[float, ...]]:
    """Parse `recall_hit=0.6..0.9/7` into seven values from 0.6 to 0.9, or `recall_hit=0.6,0.8` into
    two.
    """
    name, equals, text = word.partition("=")
    if not equals or name not in circuit.thresholds:
        known = ", ".join(circuit.thresholds)
        raise UsageError(f"--grid {word!r}: write NAME=0.6..0.9/7 or NAME=0.6,0.8; names: {known}")
    usual = circuit.thresholds[name]
    if isinstance(usual, bool) or not isinstance(usual, int | float):
        raise UsageError(f"--grid {name}: {usual!r} is not a number, so it has no range of values")
    try:
        found = tuple(_parse_values(text))
    except ValueError:
        raise UsageError(f"--grid {word!r}: write {name}=0.6..0.9/7 or {name}=0.6,0.8") from None
    if isinstance(usual, int):
        if any(value != int(value) or value < 0 for value in found):
            raise UsageError(f"--grid {name}: use whole numbers, for example {name}=0..3/4")
        return name, tuple(int(value) for value in found)
    if any(not 0 <= value <= 1 for value in found):
        raise UsageError(f"--grid {name}: use values from 0 to 1")
    return name, found


def _parse_values(text: str) -> Iterator[float]:
    span, slash, count = text.partition("/")
    if ".." not in span:
        if slash:
            raise ValueError(text)
        yield from dict.fromkeys(float(each) for each in text.split(","))
        return
    low, _, high = span.partition("..")
    first, last, many = float(low), float(high), int(count)
    if not 2 <= many <= _MAX_VALUES or not first < last:
        raise ValueError(text)
    for index in range(many):
        yield round(first + (last - first) * index / (many - 1), 6)


def parse_grid(words: Iterable[str], circuit: Circuit) -> list[GridPoint]:
    """Return all combinations of all axes."""
    axes: dict[str, tuple[float, ...]] = {}
    for word in words:
        name, values = parse_axis(word, circuit)
        if name in axes:
            raise UsageError(f"--grid names {name} twice; give all its values at once")
        axes[name] = values
    if not axes:
        raise UsageError("name the values to try, for example --grid recall_hit=0.6..0.9/7")
    if (count := prod(map(len, axes.values()))) > MAX_POINTS:
        raise UsageError(f"{count:,} combinations are too many; try at most {MAX_POINTS:,}")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


class Recording(msgspec.Struct, frozen=True):
    """A case of a recorded run: its start, its answers, and its judge."""

    case_id: str
    split: Split
    start: Case
    recorded: RecordedDecisions
    judge: Callable[[str, RecordedDecisions], Judgement]


class RecordedCases(msgspec.Struct, frozen=True):
    """All cases of some calibrations, with the circuit of the first."""

    circuit: Circuit
    recordings: list[Recording]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid; `right` counts among the `known` cases."""

    thresholds: dict[str, Any]
    right: int
    known: int
    unknown: int
    dispatches: int
    """A lower bound: it leaves out what an unknown case would have asked next."""
    changed: int
    """The number of cases that take another way than recorded."""
    interval: Interval | None
    misled: int = 0
    """The number of cases that were taken for a known one that they are not."""
    is_best: bool = False
    """It loses nothing against the current thresholds, and no other such point has a better balance
    with fewer dispatches.
    """

    @property
    def balance(self) -> int:
        """Return right cases minus misled ones: a wrong recall is worse than no answer."""
        return self.right - self.misled

    @property
    def accuracy(self) -> float | None:
        return self.right / self.known if self.known else None


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The result of trying other thresholds on recorded cases."""

    on: str
    """The cases that were decided again: the training cases if there are any."""
    recorded: int
    usual: Trial
    """The result of the current thresholds."""
    trials: list[Trial]
    """The trials, best first."""
    advised: Trial | None
    held_out: Trial | None
    """The advised thresholds on the test cases."""


def tune(
    benchmark: AnyBenchmark, results: Sequence[Path], grid: Iterable[str], source: str
) -> Tuning:
    """Try every point of a grid on the recorded cases of these results."""
    recorded = load_recordings(benchmark, results, source)
    points = parse_grid(grid, recorded.circuit)

    def make_bench(recordings: Sequence[Recording]) -> TuningBench:
        return TuningBench(recorded.circuit, recordings, benchmark.closing_steps)

    train, test = (
        [each for each in recorded.recordings if each.split == split] for split in ("train", "test")
    )
    bench = make_bench(train or recorded.recordings)
    test_bench = make_bench(test) if test else None
    usual = bench.try_point({})
    trials = rank_trials([bench.try_point(point) for point in points], usual)
    advised = recommend(trials, test_bench)
    return Tuning(
        on="train" if train else "all cases",
        recorded=len(recorded.recordings),
        usual=usual,
        trials=trials,
        advised=advised,
        held_out=test_bench.try_point(advised.thresholds) if test_bench and advised else None,
    )


def load_recordings(benchmark: AnyBenchmark, results: Sequence[Path], source: str) -> RecordedCases:
    """Return all cases of all runs in these results.

    They must share one scenario, which is at `source` if that is given, and the runs must still
    exist.
    """
    recordings: list[Recording] = []
    scenario: Scenario | None = None
    circuit: Circuit | None = None
    for path in results:
        card = read_calibration(path, benchmark.result_type).scorecard
        scenario = scenario or benchmark.find_scenario(source or card.about.source).scenario
        if card.digest != scenario.digest:
            raise SourceError(
                f"{path}: the labels of {scenario.name!r} have changed since; calibrate again, "
                "or name the old scenario with --scenario"
            )
        for store in card.about.stores:
            if not Path(store).exists():
                raise SourceError(f"{path}: its run {store} no longer exists; calibrate again")
            with Project(db=store).read() as connection:
                run = find_run(connection)
                own = load_circuit(run)
                circuit = circuit or own
                recordings += read_recordings(benchmark, connection, run.run_id, scenario, own)
    if circuit is None or not recordings:
        raise SourceError("no case is finished; calibrate without --token-budget")
    return RecordedCases(circuit, recordings)


def read_recordings(
    benchmark: AnyBenchmark,
    connection: Connection,
    run_id: int,
    scenario: Scenario,
    circuit: Circuit,
) -> list[Recording]:
    """Return the cases of a run that came to an end."""
    splits = {case.id: case.split for case in scenario.cases}
    judge = benchmark.make_judge(scenario, connection, circuit)
    return [
        Recording(
            each.case.case_id,
            splits[each.case.case_id],
            open_case(circuit, each.case.case_id, each.case.input),
            tuple(load_decisions(connection, each.case_no)),
            judge,
        )
        for each in load_cases(connection, circuit, run_id, whole=True)
        if each.dispatch_id is None and each.case.status != OPEN and each.case.case_id in splits
    ]


class TuningBench:
    """Tries points on the same recordings, caching judgements."""

    def __init__(
        self, circuit: Circuit, recordings: Sequence[Recording], closing_steps: frozenset[str]
    ) -> None:
        self._circuit = circuit
        self._recordings = recordings
        self._closing_steps = closing_steps
        self._judged: dict[tuple[int, tuple[str, ...]], Judgement] = {}

    def try_point(self, point: GridPoint) -> Trial:
        circuit = self._circuit.with_thresholds(point)
        right = known = unknown = dispatches = changed = misled = 0
        for number, each in enumerate(self._recordings):
            decided, _, lacks = decide_again(circuit, each.start, each.recorded)
            way = tuple(decision.rule for decision, _ in decided)
            dispatches += len(way) + bool(lacks)
            changed += way != tuple(decision.rule for decision, _ in each.recorded)
            if lacks and lacks not in self._closing_steps:
                unknown += 1
                continue
            known += 1
            if (number, way) not in self._judged:
                self._judged[number, way] = each.judge(each.case_id, decided)
            right += self._judged[number, way].is_solved
            misled += self._judged[number, way].is_misled
        return Trial(
            thresholds=dict(point),
            right=right,
            known=known,
            unknown=unknown,
            dispatches=dispatches,
            changed=changed,
            interval=wilson_interval(right, known) if known else None,
            misled=misled,
        )


def rank_trials(trials: Sequence[Trial], usual: Trial) -> list[Trial]:
    """Sort the points and mark the best ones.

    The best balance comes first, then fewer dispatches, then fewer unknown cases. A point that
    loses against `usual` is never best.
    """
    ordered = sorted(
        trials,
        key=lambda each: (
            -each.balance,
            each.dispatches,
            each.unknown,
            tuple(each.thresholds.values()),
        ),
    )
    found: list[Trial] = []
    cheapest: int | None = None
    for each in ordered:
        best = not loses(each, usual) and (cheapest is None or each.dispatches < cheapest)
        cheapest = each.dispatches if best else cheapest
        found.append(msgspec.structs.replace(each, is_best=best))
    return found


def loses(trial: Trial, usual: Trial) -> bool:
    """Return True if a point gets less right than the current thresholds, or misleads more."""
    return (
        trial.right < usual.right
        or (trial.accuracy or 0.0) < (usual.accuracy or 0.0)
        or trial.misled > usual.misled
    )


def recommend(ranked: Sequence[Trial], bench: TuningBench | None) -> Trial | None:
    """Return the first best point that loses nothing on the held-out cases, or None."""
    usual = bench.try_point({}) if bench else None
    for each in ranked:
        if each.is_best and (
            bench is None or usual is None or not loses(bench.try_point(each.thresholds), usual)
        ):
            return each
    return None
