"""Root-cause analysis as an application: configuration, hooks and roles."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.files import NameFiles
from interlock.carriers.files.batch import BatchCarrier
from interlock.carriers.function import Handler, PromptlessHandler
from interlock.carriers.pull.carrier import PullCarrier
from interlock.carriers.registry import AgentContext, AgentSpec
from interlock.engine.case import Case
from interlock.engine.circuit import HUMAN, Circuit
from interlock.journal.connection import Connection
from interlock.journal.runs import Run
from interlock.runtime.application import Application, QuestionGroup, RunSetup
from interlock.runtime.case_overview import CaseOverview
from interlock.runtime.settings import Settings
from interlock.signals.batch import Briefing, Phase
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock_cluster.worker.carrier import WorkerCarrier
from interlock_rca.briefing import add_findings
from interlock_rca.builtin_answers import BuiltinAnalyst
from interlock_rca.case_overview import name_failures, read_overview
from interlock_rca.check_answer import check_answer
from interlock_rca.config import RcaConfig, RcaTables
from interlock_rca.families import list_reviews
from interlock_rca.hooks import CaseOrder, PromptReaders, RcaHooks
from interlock_rca.intake import begin_cases
from interlock_rca.knowledge.audit import KNOWLEDGE_RULES
from interlock_rca.knowledge.reproductions import find_reproduction
from interlock_rca.knowledge.suites import find_position, find_suite
from interlock_rca.prompt_data.subject import PARAMETER_NAMES
from interlock_rca.reproduce.sentences import format_reproduction
from interlock_rca.sources.git.open import read_repo_tables
from interlock_rca.steps import F5, choose_names, find_phase
from interlock_rca.taxonomy import TAXONOMY

BASIC = "basic"
"""The word that selects the built-in analyst."""


class BuiltinAnalystRole(PromptlessHandler):
    """Stands for the built-in analyst until a run is open."""

    def __init__(self) -> None:
        super().__init__(_refuse_to_answer)


def _refuse_to_answer(_ask: Ask) -> Reply | None:
    raise SourceError("the built-in analyst answers only in a run of the circuit rca")


def build_basic(_spec: AgentSpec, context: AgentContext) -> Carrier:
    """Return the built-in analyst as an agent. It knows one circuit and reviews nothing."""
    if context.circuit != "rca":
        other = f", not for {context.circuit}" if context.circuit else ""
        raise SourceError(f"the built-in analyst answers only for rca{other}")
    if HUMAN in context.roles:
        raise SourceError(
            "the built-in analyst reviews nothing: use --review auto or human, or name who "
            "reviews with --dispatch or --agent human=AGENT"
        )
    return BuiltinAnalystRole()


_WITH_FAMILIES = (BuiltinAnalystRole, BatchCarrier, PullCarrier)
"""The carriers that investigate one case of a family for all, by default."""
_UNREAD = "The built-in analyst was asked."


class Rca(Application):
    """The circuit `rca`: suites of failures, families, knowledge of earlier causes."""

    prompt_names = PARAMETER_NAMES
    audits = KNOWLEDGE_RULES

    def default_config(self, settings: Settings, project: Path) -> dict[str, Any]:
        tables = settings.read_tables(RcaTables)
        greens = tables.last_green
        config = RcaConfig(
            repos=read_repo_tables(tables.repo, "interlock.toml", project),
            last_green=greens if isinstance(greens, dict) else ({"": greens} if greens else {}),
            codes=tables.defect_codes,
            cache=str(project / ".interlock" / "histories"),
            reproduce=tables.reproduce,
        )
        found: dict[str, Any] = msgspec.to_builtins(config)
        return found

    begin = staticmethod(begin_cases)

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        config: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        own = msgspec.convert(config, RcaConfig)
        promptless = {
            role for role, carrier in carriers.items() if isinstance(carrier, PromptlessHandler)
        }
        in_families = own.families
        if in_families is None:
            in_families = any(isinstance(each, _WITH_FAMILIES) for each in carriers.values())
        hooks = RcaHooks(
            connection,
            run.run_id,
            circuit,
            own,
            order=CaseOrder(
                families=in_families,
                phases=any(isinstance(each, BatchCarrier) for each in carriers.values()),
                only=only,
            ),
            readers=PromptReaders(
                prompted=lambda step: circuit.steps[step].role not in promptless,
                elsewhere=lambda step: isinstance(
                    carriers.get(circuit.steps[step].role), WorkerCarrier
                ),
            ),
        )
        analysis = BuiltinAnalyst(hooks, circuit.thresholds)

        suite = find_suite(connection, run_id=run.run_id)

        def enrich(known: Briefing) -> Briefing:
            if suite and known.scenario == circuit.name:
                known = msgspec.structs.replace(known, scenario=suite.name)
            return add_findings(known, connection, run.run_id, hooks.families)

        look_ahead = in_families or own.recall_first
        given = _add_builtin_answers(carriers, analysis, own, look_ahead=look_ahead)
        return RunSetup(_drop_prompts(circuit, promptless), given, hooks, enrich)

    def file_names(self, root: Path) -> NameFiles:
        return choose_names(root)

    def phase_of(self, step: str) -> Phase:
        return find_phase(step)

    def check_review(self, config: Mapping[str, Any], step: str, data: Mapping[str, Any]) -> str:
        if step != F5:
            return ""
        taxonomy = TAXONOMY.with_codes(msgspec.convert(config, RcaConfig).codes)
        return check_answer(Case("", F5), data, lambda _refs: (), taxonomy).refused

    def group_questions(self, connection: Connection, run_id: int) -> list[QuestionGroup]:
        return [
            QuestionGroup(tuple(each.question_ids), tuple(each.case_ids), each.about)
            for each in list_reviews(connection, run_id)
        ]

    def describe_case(self, connection: Connection, case_no: int) -> Sequence[str]:
        own = find_position(connection, case_no)
        found = find_reproduction(connection, own.suite_id, own.rca_id) if own else None
        return format_reproduction(found).split("\n") if found else ()

    def name_cases(self, connection: Connection, case_nos: Collection[int]) -> Mapping[int, str]:
        return name_failures(connection, case_nos)

    def read_overview(
        self, connection: Connection, case_no: int, config: Mapping[str, Any]
    ) -> CaseOverview | None:
        return read_overview(connection, case_no, msgspec.convert(config, RcaConfig))

    def report(self, connection: Connection, run: Run) -> str:
        from interlock_rca.analyze import collect_findings
        from interlock_rca.report.markdown import render_markdown
        from interlock_rca.report.outline import build_outline

        suite = find_suite(connection, run_id=run.run_id)
        return render_markdown(build_outline(collect_findings(connection, suite))) if suite else ""


def _drop_prompts(circuit: Circuit, promptless: Collection[str]) -> Circuit:
    """Drop the prompts of roles that do not read them."""
    steps = {
        name: msgspec.structs.replace(step, prompt=_UNREAD) if step.role in promptless else step
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


def _add_builtin_answers(
    carriers: Mapping[str, Carrier],
    analysis: BuiltinAnalyst,
    config: RcaConfig,
    *,
    look_ahead: bool,
) -> dict[str, Carrier]:
    """Put our own answers before each carrier; roles that share a carrier share them. With
    `look_ahead`, anything that needs no agent is answered first."""
    made: dict[int, Carrier] = {}
    for role, carrier in carriers.items():
        if id(carrier) in made:
            continue
        if isinstance(carrier, BuiltinAnalystRole):
            made[id(carrier)] = Handler(analysis.answer_as_analyst)
        elif role == HUMAN and config.review == "auto":
            made[id(carrier)] = Handler(analysis.approve_by_rule, carrier)
        elif look_ahead and (role != HUMAN or config.review == "dispatch"):
            made[id(carrier)] = Handler(analysis.answer_without_agent, carrier)
        else:
            made[id(carrier)] = carrier
    return {role: made[id(carrier)] for role, carrier in carriers.items()}
