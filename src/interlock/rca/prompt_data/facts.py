"""Facts for prompts: what the store knows about a case's launch, its siblings and its past.

Turns rows into the records that `apps/rca` shows. Launches are read once: they do not change while
they are looked at, and get no more cases. How their cases stand is read anew each time.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from interlock.engine.case import Case
from interlock.rca.knowledge.causes import Rca, history_of, rcas_of_suite
from interlock.rca.knowledge.suites import (
    CaseBrief,
    CasePosition,
    briefs,
    environment_of,
    launches_of,
    shared_by,
    siblings,
)
from interlock.rca.known_causes import KnownCauses, StoredMatch
from interlock.rca.prompt_data.params import parameters
from interlock.rca.prompt_data.subject import PromptLimits
from interlock.rca.records import Failure, Launch, PriorCause, PriorKnowledge, Sibling, SymptomInfo
from interlock.rca.steps import F0, F1, F3, F4
from interlock.rca.taxonomy import Taxonomy
from interlock.rca.workspace import CheckoutSet

_FIRST_LINE = 300


class PromptFacts:
    """Fills the parameters of prompts from the store."""

    def __init__(self, connection: Connection, workspace: CheckoutSet, taxonomy: Taxonomy) -> None:
        self._connection = connection
        self._workspace = workspace
        self._taxonomy = taxonomy
        self._lore = KnownCauses(connection)
        self._launches: dict[int, Launch] = {}
        self._members: dict[int, list[int]] = {}

    def parameters(
        self, case: Case, failure: Failure, place: CasePosition | None, fence: str
    ) -> dict[str, Any]:
        """All groups of parameters for the step where the case stands."""
        members = self._cases_of(place) if place else []
        launch = self.launch(place)
        return parameters(
            failure=failure,
            launch=launch,
            repos=self._workspace.told(launch),
            siblings=self._siblings(members, case.case_id),
            siblings_total=max(0, len(members) - 1),
            case=case,
            step=case.step,
            history=self._history(place, case.step) if place else PriorKnowledge(),
            taxonomy=self._taxonomy,
            fence=fence,
        )

    def launch(self, place: CasePosition | None) -> Launch | None:
        if place is None:
            return None
        if place.launch_id not in self._launches:
            found = launches_of(self._connection, place.suite_id)
            self._launches |= {each.launch_id: each.launch for each in found}
        return self._launches.get(place.launch_id)

    def _cases_of(self, place: CasePosition) -> list[int]:
        """The numbers of all cases of its launch."""
        if place.launch_id not in self._members:
            found = siblings(self._connection, place.launch_id)
            self._members[place.launch_id] = [each.case_no for each in found]
        return self._members[place.launch_id]

    def _siblings(self, members: Sequence[int], own: str) -> list[Sibling]:
        """As many as a prompt has room for."""
        most = PromptLimits().siblings
        found = briefs(self._connection, members[: most + 1])
        return [_sibling(each) for each in found if each.case_id != own][:most]

    def _history(self, place: CasePosition, step: str) -> PriorKnowledge:
        """What is like it is looked up where that is the question; the root causes of the suite,
        where they are compared."""
        memories = self._lore.memories(place, near=step in (F0, F1))
        past = history_of(self._connection, place.fingerprint)
        earlier = (
            [each for each in past.occurrences if each.launch_id != place.launch_id] if past else []
        )
        causes = {
            rca.rca_id: rca
            for memory in memories
            for rca in memory.rcas
            if rca.case_no != place.case_no  # its own finding is no earlier one
        }
        return PriorKnowledge(
            symptoms=tuple(self._symptom(memory, place, causes) for memory in memories),
            prior_rcas=tuple(map(self._prior, causes.values())),
            failure_count=sum(each.cases for each in earlier),
            last_seen=told(earlier[0].at) if earlier else "",
            digest=tuple(map(self._prior, self._digest(place))) if step in (F3, F4) else (),
        )

    def _digest(self, place: CasePosition) -> Sequence[Rca]:
        found = rcas_of_suite(self._connection, place.suite_id)
        return [rca for rca in found if rca.status != "archived" and rca.rca_id != place.rca_id]

    def _symptom(
        self, memory: StoredMatch, place: CasePosition, causes: Collection[int]
    ) -> SymptomInfo:
        symptom = memory.symptom
        return SymptomInfo(
            symptom_id=symptom.symptom_id,
            name=symptom.name,
            status=symptom.status,
            occurrence_count=symptom.occurrence_count,
            first_seen=told(symptom.first_seen_at),
            last_seen=told(symptom.last_seen_at),
            error_pattern=symptom.error_pattern,
            component=symptom.component,
            affected_versions=tuple(
                sorted({label for rca in memory.rcas for label in rca.affected_versions if label})
            ),
            environment=environment_of(self._connection, symptom.symptom_id, place.launch_id),
            rca_ids=tuple(rca.rca_id for rca in memory.rcas if rca.rca_id in causes),
            similarity=memory.likeness,
            is_dormant_reactivation=symptom.status == "dormant",
        )

    def _prior(self, rca: Rca) -> PriorCause:
        return PriorCause(
            rca_id=rca.rca_id,
            title=rca.title,
            description=rca.description,
            defect_type=rca.defect_type,
            component=rca.component,
            status=rca.status,
            jira_link=rca.jira_link,
            affected_versions=rca.affected_versions,
            created_at=told(rca.created_at),
            resolved_at=told(rca.resolved_at),
            verified_at=told(rca.verified_at),
            cases=shared_by(self._connection, rca.rca_id),
        )


def told(at: float | None) -> str:
    """A time of the store as RFC 3339, in UTC; empty if there is none."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _sibling(brief: CaseBrief) -> Sibling:
    return Sibling(
        id=brief.case_id,
        name=f"{brief.class_name}.{brief.name}" if brief.class_name else brief.name,
        parent_name=brief.job,
        status=brief.status,
        error=brief.error_message.partition("\n")[0][:_FIRST_LINE],
        rca_id=brief.rca_id or 0,
    )
