"""The parameters of a prompt: everything that is known about a case, in groups, ready to be shown.

`PromptDataReader` reads it from the store, `build_parameters` arranges it. Text from outside
appears only as a harmless line or inside a fenced block, never longer than there is room, and what
was cut or is missing is said. No template is named here.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
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
from interlock.rca.prompt_data import groups
from interlock.rca.prompt_data import history as recollection
from interlock.rca.prompt_data.groups import took
from interlock.rca.prompt_data.history import BLOCKS, fill_blocks
from interlock.rca.prompt_data.instructions import (
    ARTIFACTS,
    CONDITIONS,
    PromptGuard,
    example_of,
    guards_for,
    schema_text,
)
from interlock.rca.prompt_data.subject import PromptLimits, Subject
from interlock.rca.records import (
    Checkout,
    Failure,
    Launch,
    PriorCause,
    PriorKnowledge,
    Sibling,
    SymptomInfo,
)
from interlock.rca.steps import F0, F1, F3, F4, family_of
from interlock.rca.taxonomy import TAXONOMY, Taxonomy
from interlock.rca.workspace import CheckoutSet
from interlock.runtime.fence import FencedText, PromptFence, ends, is_noisy

_PROSE: Final = 3_600
"""Characters for a template's own words and notes."""
_TEXTS: Final = {"error_message": "message", "stack": "stack", "log_snippet": "log"}
_TIMEOUT: Final = (
    "timeout",
    "timed out",
    "time out",
    "time-out",
    "times out",
    "timing out",
    "deadline",
    "eventually",
)


def parameters(
    *,
    failure: Failure,
    launch: Launch | None,
    repos: Sequence[Checkout],
    siblings: Sequence[Sibling],
    siblings_total: int,
    case: Case,
    step: str,
    history: PriorKnowledge,
    taxonomy: Taxonomy = TAXONOMY,
    fence: str,
    limits: PromptLimits = PromptLimits(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """All groups of parameters for one prompt. `fence` is 8 to 64 hexadecimal digits of chance,
    new for each prompt; `siblings_total` counts the other failures of the launch."""
    others = [each for each in siblings if each.id != failure.id]
    about = Subject(
        failure=failure,
        launch=launch,
        repos=repos,
        siblings=others,
        siblings_total=max(siblings_total, len(others)),
        case=case,
        family=family_of(step),
        history=history,
        taxonomy=taxonomy,
        fence=PromptFence(fence, limits.value),
        limits=limits,
    )
    found = _groups(about)
    pieces = fill_blocks(about, found, limits.prompt - _words(about))
    found["failure"] |= _texts(about, pieces)
    found["data"] = {name: pieces[name].text if name in pieces else "" for name in BLOCKS}
    found["missing"] = _missing(about)
    found["guards"] = _shown(guards_for(about.family.short, _holding(about, found, pieces)))
    found["notes"] = _notes(about, found, pieces)
    return found


def _groups(about: Subject) -> dict[str, Any]:
    fields = ARTIFACTS[about.family.name]
    return {
        "identity": groups.identity(about),
        "envelope": groups.envelope(about),
        "env": groups.env(about),
        "git": groups.git(about),
        "failure": groups.failure(about),
        "timestamps": groups.timestamps(about),
        "siblings": groups.siblings(about),
        "workspace": groups.workspace(about),
        "urls": groups.urls(about),
        "prior": recollection.prior(about),
        "history": recollection.history(about),
        "digest": recollection.digest(about),
        "taxonomy": {
            "text": about.taxonomy.text(),
            "defect_types": about.taxonomy.code_text(),
            "symptom_categories": about.taxonomy.category_text(),
        },
        "artifact_schema": {
            "text": schema_text(fields),
            "example": example_of(fields),
            "fields": [msgspec.structs.asdict(field) for field in fields],
        },
        "fence": {"mark": about.fence.mark, "note": about.fence.note},
    }


def _words(about: Subject) -> int:
    """How many characters of the prompt are ours: its words, guards, taxonomy and schema."""
    guards = guards_for(about.family.short, CONDITIONS)
    guard_length = sum(len(guard.sentence) + len(guard.mark) + 6 for guard in guards)
    schema = len(schema_text(ARTIFACTS[about.family.name]))
    return _PROSE + guard_length + schema + len(about.taxonomy.text()) + len(about.fence.note)


def _texts(about: Subject, pieces: Mapping[str, FencedText]) -> dict[str, str]:
    """The texts of the failure, fenced: as the step shows them, or short where it does not."""
    raw = {"message": about.failure.message, "stack": about.failure.stack, "log": about.failure.log}
    return {
        name: pieces[block].text
        if block in pieces
        else about.fence.block(BLOCKS[block].title, raw[block], about.limits.snippet).text
        for name, block in _TEXTS.items()
    }


def _shown(guards: Sequence[PromptGuard]) -> list[dict[str, Any]]:
    return [
        {"number": it.number, "name": it.name, "mark": it.mark, "sentence": it.sentence}
        for it in guards
    ]


def _missing(about: Subject) -> list[str]:
    """What is not known, in our words."""
    it, launch = about.failure, about.launch
    facts = (
        ("the test's name", it.test_name),
        ("the error message", it.message),
        ("the stack", it.stack),
        ("the log", it.log),
        ("the times of the test", it.at and took(it) is not None),
        ("the launch", launch),
        ("the version", launch and launch.version),
        ("the branch", launch and launch.branch),
        ("the commit", launch and launch.commit),
        ("the times of the launch", launch and launch.started_at and launch.ended_at),
        ("attributes of the environment", it.attributes or (launch and launch.attributes)),
        ("repositories to look in", about.repos),
    )
    return [name for name, value in facts if not value]


def _holding(
    about: Subject, found: Mapping[str, Any], pieces: Mapping[str, FencedText]
) -> set[str]:
    """The conditions of guards that hold here."""
    it, launch = about.failure, about.launch
    texts = (it.message, it.stack, it.log)
    cut = any(pieces[name].cut for name in _TEXTS.values() if name in pieces)
    holds = {
        "cut": it.log_truncated or cut,
        "no_log": not it.log.strip(),
        "noise": any(is_noisy(text) for text in texts),
        "missing": bool(found["missing"]),
        "candidates": bool(about.history.symptoms or about.history.prior_rcas),
        "siblings": about.siblings_total > 0,
        "timeout_words": any(word in text for text in map(_lowered, texts) for word in _TIMEOUT),
        "many_skipped": _many_skipped(about),
        "no_git": launch is None or not (launch.branch or launch.commit),
    }
    return {name for name, value in holds.items() if value}


def _lowered(text: str) -> str:
    return ends(text).lower()


def _many_skipped(about: Subject) -> bool:
    tallies = [each.tally for each in (about.launch, about.job) if each]
    return any(it.skipped > it.tests * about.limits.skipped_share for it in tallies if it.tests)


def _notes(about: Subject, found: Mapping[str, Any], pieces: Mapping[str, FencedText]) -> list[str]:
    """What the reader must know about the data themselves, in our words."""
    notes = []
    cut = [f"{BLOCKS[name].title} ({it.cut:,} characters)" for name, it in pieces.items() if it.cut]
    if cut:
        notes.append(f"Cut to fit: {', '.join(cut)}.")
    if about.failure.log_truncated and "log" in pieces:
        notes.append("The source had cut the log already.")
    if "siblings" in pieces and found["siblings"]["left_out"]:
        shown, total = found["siblings"]["shown"], found["siblings"]["total"]
        notes.append(f"Of {total:,} other failures of this launch, {shown} are shown.")
    if found["missing"]:
        notes.append(f"Not known: {', '.join(found['missing'])}.")
    if "times" in pieces and found["timestamps"]["clock_skew_unchecked"]:
        unchecked = "; ".join(found["timestamps"]["clock_skew_unchecked"])
        notes.append(f"Clock skew could not be looked for in: {unchecked}.")
    return notes


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
