"""The types by which an application lets agents be measured on its circuit.

A benchmark has scenarios (cases with known answers), a table of metrics, and the knowledge of its
own results: how a run is captured, what counts as right, how it is shown. Calibration uses only
these types and never learns what the cases are about.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.engine.circuit import Circuit
from interlock.engine.replay import RecordedDecisions
from interlock.engine.verify.finding import Finding
from interlock.journal.connection import Connection
from interlock.system.errors import UsageError

BYTES_PER_TOKEN = 4
"""The estimate for tokens that nobody reported."""

Mark = tuple[float, float]
"""The counted amount for a case, and the amount it is out of."""
Marks = Mapping[str, Mapping[str, Mark]]
"""Metric -> case -> mark. A case that a metric ignores is missing."""
Split = Literal["", "train", "test"]
Bounds = tuple[float | None, float | None]
"""The lowest and the highest value that pass."""
MetricKind = Literal["ratio", "complement", "correlation", "loops", "tokens", "weighted", "spread"]
"""The way to compute a value from marks; `weighted` and `spread` use other metrics."""


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a metric table; `passes` has the bounds by edition."""

    id: str
    name: str
    group: str
    kind: MetricKind
    formula: str
    passes: Mapping[str, Bounds]
    is_key: bool = False
    """True if the short tables of train and test cases show it."""

    @property
    def counted(self) -> bool:
        """Return True if the metric comes from cases, not from other metrics."""
        return self.kind not in ("weighted", "spread")


class Edition(msgspec.Struct, frozen=True):
    """A set of counting rules. A benchmark may add columns of its own."""

    weights: str


class MetricTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All metrics, with the weights and bounds that judge them."""

    default: str
    editions: Mapping[str, Edition]
    weights: Mapping[str, Mapping[str, float]]
    metrics: tuple[Metric, ...]

    @property
    def counted(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.counted)

    @property
    def overall(self) -> str:
        """Return the id of the weighted mean."""
        return self._find_kind("weighted")

    @property
    def confidence(self) -> str:
        """Return the id of the metric that correlates confidence with being right."""
        return self._find_kind("correlation")

    def find_edition(self, name: str) -> Edition:
        if name not in self.editions:
            raise UsageError(f"there is no edition {name!r}; use {', '.join(self.editions)}")
        return self.editions[name]

    def find_weights(self, name: str) -> Mapping[str, float]:
        if name not in self.weights:
            raise UsageError(f"there are no weights {name!r}; use {', '.join(self.weights)}")
        return self.weights[name]

    def _find_kind(self, kind: MetricKind) -> str:
        return next(metric.id for metric in self.metrics if metric.kind == kind)


class StepCost(msgspec.Struct, frozen=True, kw_only=True):
    """One visit of a step. `money` is what a carrier reported; None uses the price list."""

    step: str
    prompt_tokens: int = 0
    artifact_tokens: int = 0
    wall_clock_ms: int = 0
    money: float | None = None


@runtime_checkable
class CaseResult(Protocol):
    """An agent's result for one case, as far as calibration needs it."""

    @property
    def case_id(self) -> str: ...

    @property
    def prompt_tokens_total(self) -> int: ...

    @property
    def artifact_tokens_total(self) -> int: ...

    @property
    def step_count(self) -> int: ...

    @property
    def wall_clock_ms(self) -> int: ...

    @property
    def pipeline_error(self) -> str:
        """Return why the case did not finish, or ""."""

    @property
    def steps(self) -> tuple[StepCost, ...]: ...


class BenchmarkCase(Protocol):
    """One case of a scenario."""

    @property
    def id(self) -> str: ...

    @property
    def split(self) -> Split: ...


class Scenario(Protocol):
    """Cases with their right answers. `candidates` are never scored."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def digest(self) -> str:
        """Return a digest of all labels; results with other labels are not comparable."""

    @property
    def cases(self) -> Sequence[BenchmarkCase]: ...

    @property
    def candidates(self) -> Sized: ...

    @property
    def verified_count(self) -> int:
        """Return the number of cases whose labels somebody verified."""

    @property
    def has_world(self) -> bool:
        """Return True if something must be made before agents can inspect it."""

    def of_split(self, split: Split) -> Self:
        """Return the scenario with only the cases of one split."""


ScenarioT = TypeVar("ScenarioT", bound=Scenario)
ResultT = TypeVar("ResultT", bound=CaseResult)


class ScenarioFile(NamedTuple, Generic[ScenarioT]):
    """A scenario as read from a file, with what the file has beside it."""

    scenario: ScenarioT
    unread: tuple[str, ...]


class ScoredCase(msgspec.Struct, Generic[ResultT], frozen=True, kw_only=True):
    """One result compared with its labels, as statistics need it."""

    result: ResultT
    solved: bool
    marks: dict[str, Mark]
    """By metric."""
    label: str | None
    """The true class of the case, or None."""
    is_label_right: bool
    family: Hashable
    """The true family; cases of one family belong together."""
    found_family: Hashable
    """The family that the agent put it into."""


class Judgement(NamedTuple):
    """The judgement on the decisions about one case."""

    is_solved: bool
    is_misled: bool = False
    """The case was taken for a known one that it is not, which ends the search."""


class CaptureMode(msgspec.Struct, frozen=True):
    """The way a run was done, as far as it matters for capturing."""

    prompted: bool = True
    """True if prompts were read; the tokens of unread ones do not count."""
    billed: bool = False
    """True if carriers reported the cost of answers; otherwise bytes are counted."""
    edition: str = ""


class Column(msgspec.Struct, frozen=True):
    """A column of the table of cases; `width` is the most characters of a cell."""

    title: str
    width: int
    style: Literal["", "text", "n"] = ""


class CaseView(msgspec.Struct, frozen=True):
    """A result as tables show it: its subject, its place, and a cell for each column."""

    subject: str
    place: str
    cells: tuple[str, ...]


class BenchmarkTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmark's own words in scorecards."""

    subject: str
    """The title of the cases' subjects."""
    place: str
    """The title of the cases' places."""
    label: str
    """The word for the true class of a case."""
    solved: str
    """The condition for a solved case."""
    reference: str
    """The baseline that the scorecard explains."""
    reference_meaning: str
    columns: tuple[Column, ...]


class Benchmark(Protocol[ScenarioT, ResultT]):
    """An application's knowledge of its scenarios and results."""

    @property
    def metrics(self) -> MetricTable: ...

    @property
    def texts(self) -> BenchmarkTexts: ...

    @property
    def result_type(self) -> type[ResultT]:
        """Return the record type of results in files."""

    @property
    def own_agent(self) -> str:
        """Return the application's own agent, which is measured if none is named."""

    @property
    def root(self) -> str:
        """Return the default folder for the files of dispatches."""

    @property
    def closing_steps(self) -> frozenset[str]:
        """Return the steps that find nothing more: a case without them is still judged."""

    # Scenarios.

    def list_scenarios(self) -> list[str]:
        """Return the names of the scenarios that come with the application."""

    def find_scenario(self, name: str) -> ScenarioFile[ScenarioT]:
        """Return a scenario: a shipped one by name, or a file by path."""

    def summarize_scenario(self, scenario: ScenarioT) -> dict[str, Any]:
        """Return a row for a list: at least name, description, cases, test and digest."""

    def check_scenario(self, scenario: ScenarioT, unread: Sequence[str]) -> tuple[Finding, ...]:
        """Return everything wrong with the labels, worst first."""

    def refuse_unusable(self, scenario: ScenarioT) -> None:
        """Raise SourceError if the scenario cannot be run."""

    # Runs.

    def make_config(self, scenario: ScenarioT, home: Path, *, in_families: bool) -> dict[str, Any]:
        """Return the configuration of its runs; `home` is a folder for their files."""

    def make_world(self, scenario: ScenarioT, home: Path) -> None:
        """Make what agents inspect, below the same folder."""

    def begin(
        self,
        scenario: ScenarioT,
        connection: Connection,
        circuit: Circuit,
        text: str,
        *,
        number: int,
        options: Mapping[str, Any],
        at: float,
    ) -> int:
        """Record a run of that number. No label may reach the database."""

    def make_ideal_agent(
        self, scenario: ScenarioT, connection: Connection, run_id: int
    ) -> Callable[[Ask], Reply | None]:
        """Return an agent that answers from the labels, as a perfect one would."""

    def approve(self, ask: Ask) -> Reply | None:
        """Approve a review, since the application's own agent has nobody else to ask."""

    def capture(
        self,
        scenario: ScenarioT,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        mode: CaptureMode,
    ) -> tuple[ResultT, ...]:
        """Return the results of a run in the scenario's order; labels do not affect them."""

    # Scores.

    def score(
        self, scenario: ScenarioT, results: Sequence[ResultT], edition: str
    ) -> tuple[ScoredCase[ResultT], ...]:
        """Return a score for each case in the scenario's order; a missing result has failed."""

    def make_baselines(self, scenario: ScenarioT) -> Mapping[str, Sequence[ResultT]]:
        """Return the answers that need no investigation, by the name of the trick."""

    def list_left_out(self, scenario: ScenarioT, edition: str) -> tuple[str, ...]:
        """Return the metrics that the edition's rules leave out for this scenario."""

    def list_remarks(self, scenario: ScenarioT) -> tuple[str, ...]:
        """Return sentences about what no agent can reach in this scenario."""

    def describe(self, result: ResultT) -> CaseView:
        """Return a result for tables, with cells in the order of the columns."""

    def make_judge(
        self, scenario: ScenarioT, connection: Connection, circuit: Circuit
    ) -> Callable[[str, RecordedDecisions], Judgement]:
        """Return a judge of what other decisions would have led to.

        Everything it needs from the database is read now.
        """


AnyBenchmark = Benchmark[Any, Any]
"""A benchmark with any types of scenarios and results."""

GROUP = "interlock.benchmarks"
"""The entry points: a circuit's name, and the class of its benchmark."""


@cache
def find_benchmarks() -> Mapping[str, AnyBenchmark]:
    """Return the benchmarks that installed packages bring, by their circuit."""
    entries = sorted(metadata.entry_points(group=GROUP))
    return {entry.name: entry.load()() for entry in entries}
