"""Root-cause analysis as a benchmark: failures whose causes are known.

One place where everything meets that `calibrate` asks for: scenarios and their worlds, blind runs,
the ideal agent, capture, marks, baselines.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.journal.connection import Connection
from interlock.system.text import plural
from interlock_calibrate.benchmark import (
    BenchmarkTexts,
    CaseView,
    Column,
)
from interlock_rca.application import BASIC
from interlock_rca.calibration.baselines import REFERENCE, REFERENCE_MEANING, make_baselines
from interlock_rca.calibration.blind_run import (
    begin_scenario,
    make_config,
    refuse_unusable,
)
from interlock_rca.calibration.capture import capture
from interlock_rca.calibration.ideal_agent import IdealAgent
from interlock_rca.calibration.marks import RcaCaseResult, RcaMetrics, read_metrics, score_cases
from interlock_rca.calibration.rescore import make_judge
from interlock_rca.calibration.scenario import Scenario, find_scenario, list_shipped_scenarios
from interlock_rca.calibration.scenario_check import check_scenario, list_hidden_evidence
from interlock_rca.calibration.world import plant_worlds
from interlock_rca.steps import CALIBRATE_FOLDER, F5, F6

_WORLDS = "worlds"
_HISTORIES = "histories"


class RcaBenchmark:
    """What `calibrate` asks of the circuit `rca`."""

    result_type = RcaCaseResult
    own_agent = BASIC
    root = CALIBRATE_FOLDER
    closing_steps = frozenset({F5, F6})
    texts = BenchmarkTexts(
        subject="Test",
        place="Ver/Job",
        label="defect type",
        solved="defect type and component right",
        reference=REFERENCE,
        reference_meaning=REFERENCE_MEANING,
        columns=(
            Column("Defect type", 30),
            Column("Component", 40, "text"),
            Column("Path", 60),
            Column("Sure", 20, "n"),
            Column("What it said", 220, "text"),
        ),
    )

    @property
    def metrics(self) -> RcaMetrics:
        return read_metrics()

    list_scenarios = staticmethod(list_shipped_scenarios)
    find_scenario = staticmethod(find_scenario)
    check_scenario = staticmethod(check_scenario)
    refuse_unusable = staticmethod(refuse_unusable)
    begin = staticmethod(begin_scenario)
    capture = staticmethod(capture)
    score = staticmethod(score_cases)
    make_baselines = staticmethod(make_baselines)
    make_judge = staticmethod(make_judge)

    def summarize_scenario(self, scenario: Scenario) -> dict[str, Any]:
        return {
            "name": scenario.name,
            "description": scenario.description,
            "cases": len(scenario.cases),
            "causes": len(scenario.rcas),
            "versions": len({case.version for case in scenario.cases}),
            "repositories": len(scenario.workspace.repos),
            "planted": len(scenario.worlds),
            "test": sum(case.split == "test" for case in scenario.cases),
            "digest": scenario.digest,
        }

    def make_config(self, scenario: Scenario, home: Path, *, in_families: bool) -> dict[str, Any]:
        worlds = home / _WORLDS if scenario.has_world else None
        config = make_config(scenario, worlds, families=in_families, cache=home / _HISTORIES)
        plain: dict[str, Any] = msgspec.to_builtins(config)
        return plain

    def make_world(self, scenario: Scenario, home: Path) -> None:
        plant_worlds(scenario, home / _WORLDS)

    def make_ideal_agent(
        self, scenario: Scenario, connection: Connection, run_id: int
    ) -> Callable[[Ask], Reply | None]:
        return IdealAgent(scenario, connection, run_id).answer

    def approve(self, ask: Ask) -> Reply | None:
        return build_answer(ask, {"decision": "approve"})

    def list_left_out(self, scenario: Scenario, edition: str) -> tuple[str, ...]:
        by_later_rules = read_metrics().find_edition(edition).by_later_rules
        return scenario.dry_capped_metrics if by_later_rules else ()

    def list_remarks(self, scenario: Scenario) -> tuple[str, ...]:
        hidden = list_hidden_evidence(scenario)
        if not hidden:
            return ()
        repos = ", ".join(sorted({repo for _, repo in hidden}))
        cases = plural(len({case for case, _ in hidden}), "case")
        return (f"M12 and M13 cannot be met for {cases}: the evidence is in {repos}, not planted",)

    def describe(self, result: RcaCaseResult) -> CaseView:
        sure = result.actual_convergence
        return CaseView(
            subject=result.test_name,
            place=f"{result.version}/{result.job}".strip("/"),
            cells=(
                result.actual_defect_type,
                result.actual_component,
                " ".join(result.actual_path),
                f"{sure:.2f}" if sure else "",
                result.pipeline_error or result.actual_rca_message,
            ),
        )
