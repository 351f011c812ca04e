"""Wiring of root cause analysis: its terms, its application, and who of ours answers what."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Carrier
from interlock.agents.files.batch import BatchCarrier
from interlock.agents.function import Handler, PromptlessHandler
from interlock.agents.mcp.carrier import McpCarrier
from interlock.agents.specs import UnstaffedRole
from interlock.engine.case import Case
from interlock.engine.circuit import HUMAN, Circuit
from interlock.journal.runs import Run
from interlock.rca.application import RcaApplication
from interlock.rca.briefing import enriched
from interlock.rca.builtin_answers import BuiltinAnalyst
from interlock.rca.check_answer import examine
from interlock.rca.config import RcaConfig
from interlock.rca.intake import begin_cases
from interlock.rca.knowledge.suites import find_suite
from interlock.rca.prompt_data.parameters import NAMES
from interlock.rca.sources.git.open import repos_of
from interlock.rca.steps import F5
from interlock.rca.taxonomy import TAXONOMY
from interlock.runtime.settings import Settings
from interlock.runtime.staff import Application, RunSetup
from interlock.signals.batch import Briefing

_WITH_FAMILIES = (UnstaffedRole, BatchCarrier, McpCarrier)
"""Where one case of a family is investigated for all, unless the terms say otherwise."""
_UNREAD = "The built-in analyst was asked."


def staff(
    connection: Connection,
    run: Run,
    circuit: Circuit,
    carriers: Mapping[str, Carrier],
    terms: Any,
    *,
    only: Collection[int] | None = None,
) -> RunSetup:
    """The carriers, with our own programs where they belong, and the application. Other cases than
    `only` these rest, if some are named."""
    agreed = msgspec.convert(terms, RcaConfig)
    silent = {role for role, carrier in carriers.items() if isinstance(carrier, PromptlessHandler)}
    in_families = agreed.families
    if in_families is None:
        in_families = any(isinstance(each, _WITH_FAMILIES) for each in carriers.values())
    work = RcaApplication(
        *(connection, run.run_id, circuit, agreed),
        families=in_families,
        phases=any(isinstance(each, BatchCarrier) for each in carriers.values()),
        only=only,
        prompted=lambda step: circuit.steps[step].role not in silent,
    )
    analysis = BuiltinAnalyst(work, circuit.thresholds)

    suite = find_suite(connection, run_id=run.run_id)

    def enrich(briefing: Briefing) -> Briefing:
        if suite and briefing.scenario == circuit.name:
            briefing = msgspec.structs.replace(briefing, scenario=suite.name)
        return enriched(briefing, connection, run.run_id, work.families)

    ahead = in_families or agreed.recall_first
    own = _with_programs(carriers, analysis, agreed, ahead=ahead)
    return RunSetup(_without_prompts(circuit, silent), own, work, enrich)


def _without_prompts(circuit: Circuit, silent: Collection[str]) -> Circuit:
    """Our own analyst reads no prompts, so none are written for it."""
    steps = {
        name: msgspec.structs.replace(step, prompt=_UNREAD) if step.role in silent else step
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


def _with_programs(
    carriers: Mapping[str, Carrier], analysis: BuiltinAnalyst, terms: RcaConfig, *, ahead: bool
) -> dict[str, Carrier]:
    """Roles that share a carrier share what goes before it; something does if we look `ahead`."""
    made: dict[int, Carrier] = {}
    for role, carrier in carriers.items():
        if id(carrier) in made:
            continue
        if isinstance(carrier, UnstaffedRole):
            made[id(carrier)] = Handler(analysis.basic)
        elif role == HUMAN and terms.review == "auto":
            made[id(carrier)] = Handler(analysis.review, carrier)
        elif ahead and (role != HUMAN or terms.review == "dispatch"):
            made[id(carrier)] = Handler(analysis.first, carrier)
        else:
            made[id(carrier)] = carrier
    return {role: made[id(carrier)] for role, carrier in carriers.items()}


def terms_of(usual: Settings, project: Path) -> RcaConfig:
    """What a project's settings agree to."""
    greens = usual.last_green
    return RcaConfig(
        repos=repos_of(usual.repo, "interlock.toml", project),
        last_green=greens if isinstance(greens, dict) else ({"": greens} if greens else {}),
        codes=usual.defect_codes,
        cache=str(project / ".interlock" / "histories"),
    )


def unfit_review(terms: Any, step: str, data: Mapping[str, Any]) -> str:
    """Why a reviewer's answer cannot be used, though its shape is right; nothing if it can."""
    if step != F5:
        return ""
    taxonomy = TAXONOMY.with_codes(msgspec.convert(terms, RcaConfig).codes)
    return examine(Case("", F5), data, lambda _refs: (), taxonomy).refused


APP = Application(staff, begin_cases, unfit_review, NAMES)
