"""Benchmarks: what an application brings so that agents can be measured on its circuit.

A benchmark has scenarios (cases whose right answers are known), a table of metrics, and the
knowledge of its own results: how a run is captured, what counts as right, how it is shown. Whoever
measures asks through these types and never learns what the cases are about.
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
"""How tokens are estimated where nobody said what was used."""

Mark = tuple[float, float]
"""What counts for a case, and of how much."""
Marks = Mapping[str, Mapping[str, Mark]]
"""Metric -> case -> mark. A case that does not matter to a metric is not there."""
Split = Literal["", "train", "test"]
Bounds = tuple[float | None, float | None]
"""The lowest and the highest value that pass."""
MetricKind = Literal["ratio", "complement", "correlation", "loops", "tokens", "weighted", "spread"]
"""How a value comes from marks; `weighted` and `spread` come from other metrics."""


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a metric table. `passes` has the bounds by edition."""

    id: str
    name: str
    group: str
    kind: MetricKind
    formula: str
    passes: Mapping[str, Bounds]
    is_key: bool = False
    """Whether the short tables of train and test cases show it."""

    @property
    def counted(self) -> bool:
        """Whether it comes from cases, not from other metrics."""
        return self.kind not in ("weighted", "spread")


class Edition(msgspec.Struct, frozen=True):
    """One way to count that was in use. A benchmark may add columns of its own."""

    weights: str


class MetricTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All metrics, and the sets of weights and bounds that they are judged by."""

    default: str
    editions: Mapping[str, Edition]
    weights: Mapping[str, Mapping[str, float]]
    metrics: tuple[Metric, ...]

    @property
    def counted(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.counted)

    @property
    def overall(self) -> str:
        """The id of the weighted mean."""
        return self._find_kind("weighted")

    @property
    def confidence(self) -> str:
        """The id of the metric whose marks are how sure an answer was, and whether it was right."""
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
    """One visit of a step. `money` is what a carrier reported; None lets the price list decide."""

    step: str
    prompt_tokens: int = 0
    artifact_tokens: int = 0
    wall_clock_ms: int = 0
    money: float | None = None


@runtime_checkable
class CaseResult(Protocol):
    """What an agent made of one case, as far as whoever measures it asks."""

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
        """Why the case did not come to an end; empty if it did."""

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
        """Changes with every label: results of other labels are not comparable."""

    @property
    def cases(self) -> Sequence[BenchmarkCase]: ...

    @property
    def candidates(self) -> Sized: ...

    @property
    def verified_count(self) -> int:
        """How many cases have labels that somebody verified."""

    @property
    def has_world(self) -> bool:
        """Whether something must be made before agents can look into it."""

    def of_split(self, split: Split) -> Self:
        """The same scenario with the cases of one split alone."""


ScenarioT = TypeVar("ScenarioT", bound=Scenario)
ResultT = TypeVar("ResultT", bound=CaseResult)


class ScenarioFile(NamedTuple, Generic[ScenarioT]):
    """A scenario as it was read, and what in the file was not understood."""

    scenario: ScenarioT
    unread: tuple[str, ...]


class ScoredCase(msgspec.Struct, Generic[ResultT], frozen=True, kw_only=True):
    """One result held against its labels: all that statistics need of a case."""

    result: ResultT
    solved: bool
    marks: dict[str, Mark]
    """By metric."""
    label: str | None
    """The true class of the case; None if it has none."""
    is_label_right: bool
    family: Hashable
    """Cases of one true family belong together."""
    found_family: Hashable
    """The family that the agent put it into."""


class Judgement(NamedTuple):
    """What decisions come to for one case."""

    is_solved: bool
    is_misled: bool = False
    """It was taken for something known that it is not: whoever believes it looks no further."""


class CaptureMode(msgspec.Struct, frozen=True):
    """How a run was done, as far as it matters for what is captured."""

    prompted: bool = True
    """Whether prompts were read; tokens of those that were not are not counted."""
    billed: bool = False
    """Whether carriers said what answers cost; else bytes are counted."""
    edition: str = ""


class Column(msgspec.Struct, frozen=True):
    """A column of the table of cases, with the most characters of a cell."""

    title: str
    width: int
    style: Literal["", "text", "n"] = ""


class CaseView(msgspec.Struct, frozen=True):
    """A result as tables show it: what it is about, where it was, a cell for each column."""

    subject: str
    place: str
    cells: tuple[str, ...]


class BenchmarkTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmark's own words in scorecards."""

    subject: str
    """The title of what cases are about."""
    place: str
    """The title of where they were."""
    label: str
    """What the true class of a case is called."""
    solved: str
    """When a case is solved."""
    reference: str
    """The baseline that plots show."""
    reference_meaning: str
    columns: tuple[Column, ...]


class Benchmark(Protocol[ScenarioT, ResultT]):
    """What an application knows about its scenarios and results."""

    @property
    def metrics(self) -> MetricTable: ...

    @property
    def texts(self) -> BenchmarkTexts: ...

    @property
    def result_type(self) -> type[ResultT]:
        """The record that results are read from files as."""

    @property
    def own_agent(self) -> str:
        """The agent that the application itself brings; measured if none is named."""

    @property
    def root(self) -> str:
        """The folder for the files of dispatches, if the user names none."""

    @property
    def closing_steps(self) -> frozenset[str]:
        """Steps after which nothing is found any more: a case without them is still judged."""

    # Scenarios.

    def list_scenarios(self) -> list[str]:
        """The names of those that come with the application."""

    def find_scenario(self, name: str) -> ScenarioFile[ScenarioT]:
        """One that comes with the application, by its name, or a file, by its path."""

    def summarize_scenario(self, scenario: ScenarioT) -> dict[str, Any]:
        """What a list of scenarios says: at least name, description, cases, test and digest."""

    def check_scenario(self, scenario: ScenarioT, unread: Sequence[str]) -> tuple[Finding, ...]:
        """All that is wrong with the labels, worst first."""

    def refuse_unusable(self, scenario: ScenarioT) -> None:
        """SourceError if no run can be made of it."""

    # Runs.

    def make_config(self, scenario: ScenarioT, home: Path, *, in_families: bool) -> dict[str, Any]:
        """What runs of the scenario are begun with; `home` is a folder for what they need."""

    def make_world(self, scenario: ScenarioT, home: Path) -> None:
        """Make what agents look into, below the same folder."""

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
        """Write down a run of that number. No label may reach the database."""

    def make_ideal_agent(
        self, scenario: ScenarioT, connection: Connection, run_id: int
    ) -> Callable[[Ask], Reply | None]:
        """An agent that answers from the labels: what a perfect one would score."""

    def approve(self, ask: Ask) -> Reply | None:
        """A review that agrees: the application's own agent has nobody else to ask."""

    def capture(
        self,
        scenario: ScenarioT,
        connection: Connection,
        run_id: int,
        circuit: Circuit,
        mode: CaptureMode,
    ) -> tuple[ResultT, ...]:
        """The results of a run, in the scenario's order. Labels change nothing in them."""

    # Scores.

    def score(
        self, scenario: ScenarioT, results: Sequence[ResultT], edition: str
    ) -> tuple[ScoredCase[ResultT], ...]:
        """One for each case, in the scenario's order; a case without a result has failed."""

    def make_baselines(self, scenario: ScenarioT) -> Mapping[str, Sequence[ResultT]]:
        """What one would answer without looking, by the name of the trick."""

    def list_left_out(self, scenario: ScenarioT, edition: str) -> tuple[str, ...]:
        """Metrics that do not count for this scenario by the rules of that edition."""

    def list_remarks(self, scenario: ScenarioT) -> tuple[str, ...]:
        """What no agent can reach in this scenario, in sentences."""

    def describe(self, result: ResultT) -> CaseView:
        """A result for tables; cells are in the order of the columns."""

    def make_judge(
        self, scenario: ScenarioT, connection: Connection, circuit: Circuit
    ) -> Callable[[str, RecordedDecisions], Judgement]:
        """What a case of a recorded run would have come to by these decisions. What is needed from
        the database is read now."""


AnyBenchmark = Benchmark[Any, Any]
"""A benchmark whose cases are nobody's business."""

GROUP = "interlock.benchmarks"
"""A circuit, and the class of its benchmark."""


@cache
def find_benchmarks() -> Mapping[str, AnyBenchmark]:
    """Return the benchmarks that installed packages bring, by their circuit."""
    entries = sorted(metadata.entry_points(group=GROUP))
    return {entry.name: entry.load()() for entry in entries}
