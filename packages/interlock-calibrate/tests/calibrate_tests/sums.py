"""A benchmark of another circuit: sums that an agent adds up, and no failures."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.engine.circuit import Circuit
from interlock.engine.replay import RecordedDecisions
from interlock.engine.verify.finding import Finding
from interlock.journal.connection import Connection, transaction
from interlock.journal.history import list_cases, list_dispatches
from interlock.journal.runs import NewCase, NewRun, insert_cases, insert_run
from interlock_calibrate.benchmark import (
    BenchmarkTexts,
    CaptureMode,
    CaseView,
    Column,
    Edition,
    Judgement,
    Metric,
    MetricTable,
    ScenarioFile,
    ScoredCase,
    Split,
    StepCost,
)

CIRCUIT = """
circuit: sums
version: 1
start: ADD
ends: {RIGHT: healthy, DOUBTFUL: healthy, FAILED: unhealthy}
max_steps: 9
thresholds: {sure_enough: 0.5}
roles: {pupil: {}}
steps:
  ADD:
    role: pupil
    prompt: "Add {{ case.a }} and {{ case.b }}."
    timeout: 1m
    why: The sum is wanted.
    answer:
      type: object
      required: [sum, sure]
      properties: {sum: {type: integer}, sure: {type: number, minimum: 0, maximum: 1}}
rules:
  - {id: sure, at: ADD, when: sure >= sure_enough, to: RIGHT, why: It is sure.}
  - {id: unsure, at: ADD, to: DOUBTFUL, why: It is not.}
otherwise: {to: FAILED, why: Nothing came back.}
"""


class Sum(msgspec.Struct, frozen=True):
    id: str
    a: int
    b: int
    split: Split = ""


class Sums(msgspec.Struct, frozen=True):
    name: str
    cases: tuple[Sum, ...]
    description: str = "sums of two numbers"
    digest: str = "d1"
    candidates: tuple[Sum, ...] = ()
    verified_count: int = 0
    has_world: bool = False

    def of_split(self, split: Split) -> "Sums":
        kept = tuple(each for each in self.cases if each.split == split)
        return msgspec.structs.replace(self, cases=kept)


class SumResult(msgspec.Struct, frozen=True, kw_only=True):
    case_id: str
    said: int | None = None
    sure: float = 0.0
    prompt_tokens_total: int = 0
    artifact_tokens_total: int = 0
    step_count: int = 0
    wall_clock_ms: int = 0
    pipeline_error: str = ""
    steps: tuple[StepCost, ...] = ()


FOUR = Sums(
    "four", tuple(Sum(f"S{n}", n, n * n, "train" if n < 3 else "test") for n in range(1, 5))
)


class SumsBenchmark:
    """A benchmark that answers everything statistics and campaigns ask."""

    result_type = SumResult
    own_agent = "exec:true"
    root = ".sums"
    closing_steps: frozenset[str] = frozenset()
    texts = BenchmarkTexts(
        subject="Sum",
        place="Book",
        label="parity",
        solved="the number is right",
        reference="zero",
        reference_meaning="always nought",
        columns=(Column("Said", 20, "n"), Column("Sure", 8)),
    )
    metrics = MetricTable(
        "one",
        {"one": Edition("plain")},
        {"plain": {"right": 1.0}},
        (
            Metric(
                "right", "right_sums", "sums", "ratio", "right / all", {"one": (0.5, None)}, True
            ),
            Metric("sure", "sure_sums", "sums", "correlation", "r", {"one": (0.1, None)}),
            Metric("all", "overall", "whole", "weighted", "mean", {"one": (0.5, None)}),
            Metric("spread", "spread", "whole", "spread", "deviation", {"one": (None, 0.2)}),
        ),
    )

    def list_scenarios(self) -> list[str]:
        return [FOUR.name]

    def find_scenario(self, name: str) -> ScenarioFile[Sums]:
        assert name == FOUR.name
        return ScenarioFile(FOUR, ())

    def summarize_scenario(self, scenario: Sums) -> dict[str, Any]:
        return {"name": scenario.name}

    def check_scenario(self, scenario: Sums, unread: Sequence[str]) -> tuple[Finding, ...]:
        return ()

    def refuse_unusable(self, scenario: Sums) -> None:
        pass

    def make_config(self, scenario: Sums, home: Path, *, in_families: bool) -> dict[str, Any]:
        return {}

    def make_world(self, scenario: Sums, home: Path) -> None:
        raise AssertionError

    def begin(
        self,
        scenario: Sums,
        connection: Connection,
        circuit: Circuit,
        text: str,
        *,
        number: int,
        options: Mapping[str, Any],
        at: float,
    ) -> int:
        with transaction(connection) as raw:
            new = NewRun(
                circuit=circuit,
                text=text,
                source=scenario.name,
                fingerprint="f",
                options=options,
                at=at,
            )
            run_id = insert_run(raw, new, number)
            cases = [NewCase(each.id, {"a": each.a, "b": each.b}) for each in scenario.cases]
            insert_cases(raw, circuit, run_id, cases)
        return run_id

    def make_ideal_agent(
        self, scenario: Sums, connection: Connection, run_id: int
    ) -> Callable[[Ask], Reply | None]:
        sums = {each.id: each.a + each.b for each in scenario.cases}
        return lambda ask: build_answer(ask, {"sum": sums[ask.case_id], "sure": 0.9})

    def approve(self, ask: Ask) -> Reply | None:
        raise AssertionError

    def capture(
        self,
        scenario: Sums,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        mode: CaptureMode,
    ) -> tuple[SumResult, ...]:
        answers = {
            case.case_id: [
                each.answer
                for each in list_dispatches(connection, case_no=case.case_no, texts=True)
                if each.decision is not None
            ]
            for case in list_cases(connection, run_id)
        }
        return tuple(
            SumResult(case_id=case, said=found[-1]["sum"], sure=found[-1]["sure"], step_count=1)
            for case, found in answers.items()
            if found
        )

    def score(
        self, scenario: Sums, results: Sequence[SumResult], edition: str
    ) -> tuple[ScoredCase[SumResult], ...]:
        given = {each.case_id: each for each in results}
        return tuple(self._score(each, given.get(each.id)) for each in scenario.cases)

    def _score(self, case: Sum, result: SumResult | None) -> ScoredCase[SumResult]:
        result = result or SumResult(case_id=case.id, pipeline_error="no answer")
        total = case.a + case.b
        right = result.said == total
        marks = {"right": (float(right), 1.0)}
        if result.sure:
            marks["sure"] = (result.sure, float(right))
        return ScoredCase(
            result=result,
            solved=right,
            marks=marks,
            label="odd" if total % 2 else "even",
            is_label_right=result.said is not None and result.said % 2 == total % 2,
            family=total % 2,
            found_family=(result.said or 0) % 2,
        )

    def make_baselines(self, scenario: Sums) -> Mapping[str, Sequence[SumResult]]:
        return {"zero": [SumResult(case_id=each.id, said=0) for each in scenario.cases]}

    def list_left_out(self, scenario: Sums, edition: str) -> tuple[str, ...]:
        return ()

    def list_remarks(self, scenario: Sums) -> tuple[str, ...]:
        return ()

    def describe(self, result: SumResult) -> CaseView:
        return CaseView(f"sum {result.case_id}", "first", (str(result.said), f"{result.sure:g}"))

    def make_judge(
        self, scenario: Sums, connection: Connection, circuit: Circuit
    ) -> Callable[[str, RecordedDecisions], Judgement]:
        sums = {each.id: each.a + each.b for each in scenario.cases}
        ends = {"sure"}
        return lambda case, decided: Judgement(
            bool(decided) and decided[-1][0].rule in ends and decided[-1][1]["sum"] == sums[case]
        )
