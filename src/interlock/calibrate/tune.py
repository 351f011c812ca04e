"""Tuning: recorded runs decided again with other thresholds. No agent is asked.

Knows what a case would have come to: the cause that its last word names. Where another threshold
asks for an answer that nobody ever gave, the case is unknown, and counts as neither right nor
wrong.

Grids: the values of thresholds that are tried, from a user's words to points.

Knows which thresholds a circuit has and what they may be; refuses to know what comes of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.calibrate.statistics import Interval, wilson
from interlock.engine.advance import open_case
from interlock.engine.case import Case
from interlock.engine.circuit import ARTIFACT, Circuit
from interlock.engine.replay import Recorded, redecide
from interlock.journal.runs import journal_of, load_cases
from interlock.rca.calibration.marks import CaseResult, in_words_of, solved
from interlock.rca.calibration.scenario import LabelledCase, Scenario
from interlock.rca.knowledge.causes import causes
from interlock.rca.steps import F0, F1, F3, F4, F5, F6, LINKED
from interlock.system.errors import SourceError

MOST = 20_000
_MOST_VALUES = 1_000
Point = Mapping[str, Any]


def axis(word: str, circuit: Circuit) -> tuple[str, tuple[float, ...]]:
    """`recall_hit=0.6..0.9/7` are seven values from 0.6 to 0.9; `recall_hit=0.6,0.8` are two."""
    name, equals, text = word.partition("=")
    if not equals or name not in circuit.thresholds:
        known = ", ".join(circuit.thresholds)
        raise SourceError(f"--grid {word!r}: write NAME=0.6..0.9/7 or NAME=0.6,0.8; names: {known}")
    usual = circuit.thresholds[name]
    if isinstance(usual, bool) or not isinstance(usual, int | float):
        raise SourceError(f"--grid {name}: {usual!r} is no number, so there is nothing between")
    try:
        found = tuple(_values(text))
    except ValueError:
        raise SourceError(f"--grid {word!r}: write {name}=0.6..0.9/7 or {name}=0.6,0.8") from None
    if isinstance(usual, int):
        if any(value != int(value) or value < 0 for value in found):
            raise SourceError(f"--grid {name}: it is a whole number, such as {name}=0..3/4")
        return name, tuple(int(value) for value in found)
    if any(not 0 <= value <= 1 for value in found):
        raise SourceError(f"--grid {name}: values are from 0 to 1")
    return name, found


def _values(text: str) -> Iterator[float]:
    span, slash, count = text.partition("/")
    if ".." not in span:
        if slash:
            raise ValueError(text)
        yield from dict.fromkeys(float(each) for each in text.split(","))
        return
    low, _, high = span.partition("..")
    first, last, many = float(low), float(high), int(count)
    if not 2 <= many <= _MOST_VALUES or not first < last:
        raise ValueError(text)
    for index in range(many):
        yield round(first + (last - first) * index / (many - 1), 6)


def points(words: Iterable[str], circuit: Circuit) -> list[Point]:
    """All combinations of all axes."""
    axes: dict[str, tuple[float, ...]] = {}
    for word in words:
        name, values = axis(word, circuit)
        if name in axes:
            raise SourceError(f"--grid names {name} twice; give all its values at once")
        axes[name] = values
    if not axes:
        raise SourceError("say what to try: --grid recall_hit=0.6..0.9/7")
    if (count := prod(map(len, axes.values()))) > MOST:
        raise SourceError(f"{count:,} combinations; try at most {MOST:,}")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


_AFTERWARDS = (F5, F6)
"""Steps that do not change what was found, unless they say so."""


class FindingText(msgspec.Struct, frozen=True):
    """What is said of a cause."""

    defect_type: str = ""
    component: str = ""
    message: str = ""


class Recording(msgspec.Struct, frozen=True):
    """A case of a recorded run: where it began, and all that was answered."""

    label: LabelledCase
    start: Case
    recorded: Recorded
    causes: Mapping[int, FindingText]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid. `right` is of the `known`; `low` counts the unknown as wrong."""

    thresholds: dict[str, Any]
    right: int
    known: int
    unknown: int
    dispatches: int
    """At least: what an unknown case would have asked further is not in it."""
    changed: int
    """Cases that go another way than they were recorded."""
    interval: Interval | None
    is_best: bool = False
    """No other point is right more often with fewer dispatches."""

    @property
    def accuracy(self) -> float | None:
        return self.right / self.known if self.known else None


def recordings(
    connection: Connection, run_id: int, scenario: Scenario, circuit: Circuit
) -> list[Recording]:
    """The cases of a run that came to an end."""
    labels = {case.id: case for case in scenario.cases}
    known = {
        each.rca.rca_id: FindingText(each.rca.defect_type, each.rca.component, each.rca.description)
        for each in causes(connection, archived=True)
    }
    starts = _starts(connection, run_id, circuit)
    return [
        Recording(labels[case_id], start, tuple(journal_of(connection, number)), known)
        for case_id, (number, start) in starts.items()
        if case_id in labels
    ]


def _starts(connection: Connection, run_id: int, circuit: Circuit) -> dict[str, tuple[int, Case]]:
    return {
        each.case.case_id: (
            each.case_no,
            open_case(circuit, each.case.case_id, each.case.input),
        )
        for each in load_cases(connection, circuit, run_id, whole=True)
        if each.dispatch_id is None and each.case.status != "open"
    }


class TuningBench:
    """Tries points on the same recordings, and remembers what each way came to."""

    def __init__(self, scenario: Scenario, circuit: Circuit, recorded: Sequence[Recording]) -> None:
        self._scenario = scenario
        self._circuit = circuit
        self._recorded = recorded
        self._right: dict[tuple[int, tuple[str, ...]], bool] = {}

    def trial(self, point: Point) -> Trial:
        circuit = self._circuit.with_thresholds(point)
        right = known = unknown = dispatches = changed = 0
        for number, each in enumerate(self._recorded):
            decided, _, lacks = redecide(circuit, each.start, each.recorded)
            way = tuple(decision.rule for decision, _ in decided)
            dispatches += len(way) + bool(lacks)
            changed += way != tuple(decision.rule for decision, _ in each.recorded)
            if lacks and lacks not in _AFTERWARDS:
                unknown += 1
                continue
            known += 1
            if (number, way) not in self._right:
                self._right[number, way] = self._is_right(each, decided)
            right += self._right[number, way]
        return Trial(
            thresholds=dict(point),
            right=right,
            known=known,
            unknown=unknown,
            dispatches=dispatches,
            changed=changed,
            interval=wilson(right, known) if known else None,
        )

    def _is_right(self, each: Recording, decided: Recorded) -> bool:
        result = in_words_of(self._scenario, each.label, result_of(each, decided))
        return solved(self._scenario, each.label, result)


def result_of(recording: Recording, decided: Recorded) -> CaseResult:
    """What the case came to on this way."""
    words = FindingText()
    category = ""
    for decision, data in decided:
        if decision.signal not in (ARTIFACT, LINKED):
            continue
        words = _after(words, decision.step, decision.rule, decision.signal, data, recording)
        if decision.step == F1:
            category = str(data.get("claimed_category", data["symptom_category"]))
        if decision.step == F3 and "defect_type" in decision.adds:
            words = msgspec.structs.replace(words, defect_type=str(decision.adds["defect_type"]))
    return CaseResult(
        case_id=recording.label.id,
        actual_defect_type=words.defect_type,
        actual_component=words.component,
        actual_rca_message=words.message,
        actual_category=category,
    )


def _after(
    words: FindingText, step: str, rule: str, signal: str, data: Mapping[str, Any], told: Recording
) -> FindingText:
    """What is known of the cause after one more decision."""
    if signal == LINKED or (step, rule) == (F4, "H15"):
        return told.causes.get(data.get("linked_rca_id", 0), words)
    match step:
        case _ if step == F0:
            return told.causes.get(data.get("prior_rca_id", 0), words) if rule == "H1" else words
        case _ if step == F1:
            return (
                FindingText(data["defect_type_hypothesis"])
                if data["skip_investigation"]
                else FindingText()
            )
        case _ if step == F3 and rule != "H8-next":
            return FindingText(data["defect_type"], data.get("component", ""), data["rca_message"])
        case _ if step == F5 and rule == "H14":
            said = data.get("human_override", {})
            return FindingText(
                said.get("defect_type") or words.defect_type,
                words.component,
                said.get("rca_message") or words.message,
            )
    return words


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """The points with the best ones marked, most often right first, then the cheaper, then the one
    of which more is known."""
    ordered = sorted(
        trials,
        key=lambda each: (
            -each.right,
            each.dispatches,
            each.unknown,
            tuple(each.thresholds.values()),
        ),
    )
    found: list[Trial] = []
    cheapest: int | None = None
    for each in ordered:
        best = cheapest is None or each.dispatches < cheapest
        cheapest = each.dispatches if best else cheapest
        found.append(msgspec.structs.replace(each, is_best=best))
    return found
