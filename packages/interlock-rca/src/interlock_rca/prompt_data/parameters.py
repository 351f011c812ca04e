"""The parameters of a prompt: everything known about a case, in groups, ready to be shown.

`PromptDataReader` reads the store, `build_parameters` arranges the result. Text from outside
appears only as a harmless line or inside a fenced block, never longer than its room, and cut or
missing parts are named. No template is named here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from interlock.engine.case import Case
from interlock.journal.connection import Connection
from interlock.runtime.fence import FencedText, PromptFence, is_noisy, take_ends
from interlock.system.time import format_timestamp
from interlock_rca.knowledge.causes import Rca, list_suite_rcas, read_history
from interlock_rca.knowledge.reproductions import find_reproduction
from interlock_rca.knowledge.suites import (
    CaseBrief,
    CasePosition,
    count_cases_of_rca,
    list_briefs,
    list_case_numbers,
    list_launches,
    read_environment,
)
from interlock_rca.known_causes import KnownCauses, StoredMatch
from interlock_rca.prompt_data import groups
from interlock_rca.prompt_data import history as recollection
from interlock_rca.prompt_data.groups import measure_test_duration
from interlock_rca.prompt_data.history import BLOCKS, fill_blocks
from interlock_rca.prompt_data.instructions import (
    PromptGuard,
    format_example,
    format_schema,
    read_instructions,
    select_guards,
)
from interlock_rca.prompt_data.subject import PARAMETER_NAMES, PromptLimits, PromptSubject
from interlock_rca.records import (
    Failure,
    Launch,
    PriorCause,
    PriorKnowledge,
    Sibling,
    SymptomInfo,
    TestRange,
)
from interlock_rca.reproduce.sentences import format_reproduction
from interlock_rca.steps import F0, F1, F3, F4, F5, F6, get_family
from interlock_rca.taxonomy import Taxonomy
from interlock_rca.workspace import CheckoutSet

_PROSE: Final = 3_600
"""Characters reserved for a template's own words and notes."""
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


def build_parameters(
    subject: PromptSubject, wanted: Collection[str] = PARAMETER_NAMES
) -> dict[str, Any]:
    """Return the groups of parameters for one prompt, at least those `wanted`."""
    found = _Groups(subject)
    pieces = fill_blocks(subject, found, subject.limits.prompt - _count_own_characters(subject))
    if "failure" in wanted:
        found["failure"] |= _fence_texts(subject, pieces)
    found["data"] = {name: pieces[name].text if name in pieces else "" for name in BLOCKS}
    found["missing"] = _list_missing(subject)
    found["guards"] = _describe_guards(_select_holding_guards(subject, found, pieces))
    found["notes"] = _write_notes(subject, found, pieces)
    names = (*_GROUPS, "data", "missing", "guards", "notes")
    return {name: found[name] for name in names if name in wanted}


class _Groups(dict[str, Any]):
    """Groups by name, each built when first asked for."""

    def __init__(self, subject: PromptSubject) -> None:
        super().__init__()
        self._subject = subject

    def __missing__(self, name: str) -> Any:
        self[name] = found = _GROUPS[name](self._subject)
        return found


def _build_taxonomy(subject: PromptSubject) -> dict[str, str]:
    return {
        "text": subject.taxonomy.format_all(),
        "defect_types": subject.taxonomy.format_codes(),
        "symptom_categories": subject.taxonomy.format_categories(),
    }


def _build_schema(subject: PromptSubject) -> dict[str, Any]:
    return {**_describe_schema(subject.family.name)}


@cache
def _describe_schema(family: str) -> Mapping[str, Any]:
    fields = read_instructions().artifacts[family]
    return {
        "text": format_schema(fields),
        "example": format_example(fields),
        "fields": [msgspec.structs.asdict(field) for field in fields],
    }


def _build_fence(subject: PromptSubject) -> dict[str, str]:
    return {"mark": subject.fence.mark, "note": subject.fence.note}


_GROUPS: Final[Mapping[str, Callable[[PromptSubject], Any]]] = MappingProxyType(
    {
        "identity": groups.build_identity,
        "envelope": groups.build_envelope,
        "env": groups.build_environment,
        "git": groups.build_git,
        "failure": groups.build_failure,
        "timestamps": groups.build_timestamps,
        "siblings": groups.build_siblings,
        "workspace": groups.build_workspace,
        "urls": groups.build_urls,
        "prior": recollection.build_prior,
        "history": recollection.build_history,
        "digest": recollection.build_digest,
        "taxonomy": _build_taxonomy,
        "artifact_schema": _build_schema,
        "fence": _build_fence,
    }
)


def _count_own_characters(subject: PromptSubject) -> int:
    """Count the prompt's own characters: words, guards, taxonomy and schema."""
    table = read_instructions()
    guards = select_guards(subject.family.short, table.conditions)
    guard_length = sum(len(guard.sentence) + len(guard.mark) + 6 for guard in guards)
    schema = len(_describe_schema(subject.family.name)["text"])
    return (
        _PROSE
        + guard_length
        + schema
        + len(subject.taxonomy.format_all())
        + len(subject.fence.note)
    )


def _fence_texts(subject: PromptSubject, pieces: Mapping[str, FencedText]) -> dict[str, str]:
    """Return the failure's texts, fenced: as the step shows them, or short where it does not."""
    raw = {
        "message": subject.failure.message,
        "stack": subject.failure.stack,
        "log": subject.failure.log,
    }
    return {
        name: pieces[block].text
        if block in pieces
        else subject.fence.enclose(BLOCKS[block].title, raw[block], subject.limits.snippet).text
        for name, block in _TEXTS.items()
    }


def _describe_guards(guards: Sequence[PromptGuard]) -> list[dict[str, Any]]:
    return [
        {"number": it.number, "name": it.name, "mark": it.mark, "sentence": it.sentence}
        for it in guards
    ]


def _list_missing(subject: PromptSubject) -> list[str]:
    """List what is unknown, in our words."""
    it, launch = subject.failure, subject.launch
    facts = (
        ("the test's name", it.test_name),
        ("the error message", it.message),
        ("the stack", it.stack),
        ("the log", it.log),
        ("the times of the test", it.at and measure_test_duration(it) is not None),
        ("the launch", launch),
        ("the version", launch and launch.version),
        ("the branch", launch and launch.branch),
        ("the commit", launch and launch.commit),
        ("the times of the launch", launch and launch.started_at and launch.ended_at),
        ("attributes of the environment", it.attributes or (launch and launch.attributes)),
        ("repositories to look in", subject.repos),
    )
    return [name for name, value in facts if not value]


def _select_holding_guards(
    subject: PromptSubject, found: Mapping[str, Any], pieces: Mapping[str, FencedText]
) -> Sequence[PromptGuard]:
    """Return the step's guards whose conditions hold; others are not evaluated."""
    it, launch = subject.failure, subject.launch
    texts = (it.message, it.stack, it.log)
    holds: dict[str, Callable[[], Any]] = {
        "cut": lambda: (
            it.log_truncated or any(pieces[name].cut for name in _TEXTS.values() if name in pieces)
        ),
        "no_log": lambda: not it.log.strip(),
        "noise": lambda: any(is_noisy(text) for text in texts),
        "missing": lambda: found["missing"],
        "candidates": lambda: subject.history.symptoms or subject.history.prior_rcas,
        "siblings": lambda: subject.siblings_total > 0,
        "timeout_words": lambda: any(
            word in text for text in map(_lower_ends, texts) for word in _TIMEOUT
        ),
        "many_skipped": lambda: _has_many_skipped(subject),
        "no_git": lambda: launch is None or not (launch.branch or launch.commit),
    }
    able = select_guards(subject.family.short, holds)
    return [guard for guard in able if not guard.condition or holds[guard.condition]()]


def _lower_ends(text: str) -> str:
    return take_ends(text).lower()


def _has_many_skipped(subject: PromptSubject) -> bool:
    tallies = [each.tally for each in (subject.launch, subject.job) if each]
    return any(it.skipped > it.tests * subject.limits.skipped_share for it in tallies if it.tests)


def _write_notes(
    subject: PromptSubject, found: Mapping[str, Any], pieces: Mapping[str, FencedText]
) -> list[str]:
    """Return notes about the data that the reader needs, in our words."""
    notes = []
    cut = [f"{BLOCKS[name].title} ({it.cut:,} characters)" for name, it in pieces.items() if it.cut]
    if cut:
        notes.append(f"Cut to fit: {', '.join(cut)}.")
    if subject.failure.log_truncated and "log" in pieces:
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


class PromptDataReader:
    """Fills the parameters of prompts from the store."""

    def __init__(self, connection: Connection, workspace: CheckoutSet, taxonomy: Taxonomy) -> None:
        self._connection = connection
        self._workspace = workspace
        self._taxonomy = taxonomy
        self._known_causes = KnownCauses(connection)
        self._launches: dict[int, Launch] = {}
        self._members: dict[int, list[int]] = {}

    def read_parameters(
        self,
        case: Case,
        failure: Failure,
        place: CasePosition | None,
        fence: str,
        ranges: Mapping[str, TestRange] = MappingProxyType({}),
        wanted: Collection[str] = PARAMETER_NAMES,
    ) -> dict[str, Any]:
        """Return the groups of parameters for the case's current step, at least those `wanted`."""
        members = self._list_cases(place) if place else []
        launch = self.read_launch(place)
        shows = "siblings" in wanted or get_family(case.step).short in BLOCKS["siblings"].families
        siblings = self._read_siblings(members, case.case_id) if shows else ()
        limits = PromptLimits()
        subject = PromptSubject(
            failure=failure,
            launch=launch,
            repos=self._workspace.list_checkouts(launch, ranges),
            siblings=siblings,
            siblings_total=max(0, len(members) - 1),
            case=case,
            family=get_family(case.step),
            history=self._read_history(place, case.step) if place else PriorKnowledge(),
            taxonomy=self._taxonomy,
            fence=PromptFence(fence, limits.value),
            limits=limits,
        )
        return build_parameters(subject, wanted)

    def read_launch(self, place: CasePosition | None) -> Launch | None:
        if place is None:
            return None
        if place.launch_id not in self._launches:
            found = list_launches(self._connection, place.suite_id)
            self._launches |= {each.launch_id: each.launch for each in found}
        return self._launches.get(place.launch_id)

    def _list_cases(self, place: CasePosition) -> list[int]:
        """Return the numbers of all cases of its launch."""
        if place.launch_id not in self._members:
            self._members[place.launch_id] = list_case_numbers(self._connection, place.launch_id)
        return self._members[place.launch_id]

    def _read_siblings(self, members: Sequence[int], own: str) -> list[Sibling]:
        """Return as many siblings as a prompt has room for."""
        most = PromptLimits().siblings
        found = list_briefs(self._connection, members[: most + 1])
        return [_build_sibling(each) for each in found if each.case_id != own][:most]

    def _read_history(self, place: CasePosition, step: str) -> PriorKnowledge:
        """Return similar failures where recall asks for them, and the suite's root causes where
        they are compared."""
        memories = self._known_causes.find_matches(place, near=step in (F0, F1))
        past = read_history(self._connection, place.fingerprint)
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
            symptoms=tuple(self._build_symptom(memory, place, causes) for memory in memories),
            prior_rcas=tuple(map(self._build_prior_cause, causes.values())),
            failure_count=sum(each.cases for each in earlier),
            last_seen=format_timestamp(earlier[0].at) if earlier else "",
            digest=tuple(map(self._build_prior_cause, self._read_digest(place)))
            if step in (F3, F4)
            else (),
            reproduction=self._read_reproduction(place) if step in (F5, F6) else "",
        )

    def _read_reproduction(self, place: CasePosition) -> str:
        found = find_reproduction(self._connection, place.suite_id, place.rca_id)
        return format_reproduction(found) if found else ""

    def _read_digest(self, place: CasePosition) -> Sequence[Rca]:
        found = list_suite_rcas(self._connection, place.suite_id)
        return [rca for rca in found if rca.status != "archived" and rca.rca_id != place.rca_id]

    def _build_symptom(
        self, memory: StoredMatch, place: CasePosition, causes: Collection[int]
    ) -> SymptomInfo:
        symptom = memory.symptom
        return SymptomInfo(
            symptom_id=symptom.symptom_id,
            name=symptom.name,
            status=symptom.status,
            occurrence_count=symptom.occurrence_count,
            first_seen=format_timestamp(symptom.first_seen_at),
            last_seen=format_timestamp(symptom.last_seen_at),
            error_pattern=symptom.error_pattern,
            component=symptom.component,
            affected_versions=tuple(
                sorted({label for rca in memory.rcas for label in rca.affected_versions if label})
            ),
            environment=read_environment(self._connection, symptom.symptom_id, place.launch_id),
            rca_ids=tuple(rca.rca_id for rca in memory.rcas if rca.rca_id in causes),
            similarity=memory.likeness,
            is_dormant_reactivation=symptom.status == "dormant",
        )

    def _build_prior_cause(self, rca: Rca) -> PriorCause:
        return PriorCause(
            rca_id=rca.rca_id,
            title=rca.title,
            description=rca.description,
            defect_type=rca.defect_type,
            component=rca.component,
            status=rca.status,
            jira_link=rca.jira_link,
            affected_versions=rca.affected_versions,
            created_at=format_timestamp(rca.created_at),
            resolved_at=format_timestamp(rca.resolved_at),
            verified_at=format_timestamp(rca.verified_at),
            cases=count_cases_of_rca(self._connection, rca.rca_id),
        )


def _build_sibling(brief: CaseBrief) -> Sibling:
    return Sibling(
        id=brief.case_id,
        name=f"{brief.class_name}.{brief.name}" if brief.class_name else brief.name,
        parent_name=brief.job,
        status=brief.status,
        error=brief.error_message.partition("\n")[0][:_FIRST_LINE],
        rca_id=brief.rca_id or 0,
    )
