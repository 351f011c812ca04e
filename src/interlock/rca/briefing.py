"""What the workers of a batch are told of an investigation, and what its files are called.

The briefing grows from batch to batch, with all that the store knows by then.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from interlock.agents.files.case_folder import Names, Papers
from interlock.rca.analyst.masking import masked_line
from interlock.rca.families import Families
from interlock.rca.knowledge.suites import SuiteCase, suite_cases
from interlock.rca.steps import ARTIFACTS, TRIAGE, named_prompt, numbered_prompt
from interlock.signals.batch import (
    Briefing,
    BriefingCause,
    BriefingSymptom,
    Cluster,
    ErrorPattern,
    Phase,
)

_OFTEN = 2
_MOST_PATTERNS = 20
_TOKEN = re.compile(r"<(?:num|id|ip|url|uuid|time|tmp|path)>")


def enriched(
    briefing: Briefing, connection: Connection, suite_id: int, families: Families | None
) -> Briefing:
    """The briefing with all that the store knows by now."""
    cases = suite_cases(connection, suite_id)
    return msgspec.structs.replace(
        briefing,
        symptoms=tuple(_symptoms(cases)),
        clusters=tuple(_clusters(families, cases))
        if families and briefing.phase != "triage"
        else (),
        rcas=tuple(_causes(cases)),
        patterns=tuple(_patterns(cases)),
    )


def _symptoms(cases: Iterable[SuiteCase]) -> Iterable[BriefingSymptom]:
    for case in cases:
        if case.triage:
            found = case.triage
            component = next(iter(found.candidate_repos), "")
            yield BriefingSymptom(
                case.case_id, found.category, component, found.hypothesis, found.severity
            )


def _clusters(families: Families, cases: Iterable[SuiteCase]) -> Iterable[Cluster]:
    by_id = {case.case_id: case for case in cases}
    for number, members in enumerate(families.of_several(), 1):
        key = _key(by_id[members[0]])
        yield Cluster(f"K{number}", members[0], tuple(members), key)


def _key(case: SuiteCase) -> str:
    """What a cluster has in common, in the words of its triage."""
    triage = case.triage
    return f"{triage.category}|{_component(case)}|{triage.hypothesis}" if triage else ""


def _causes(cases: Iterable[SuiteCase]) -> Iterable[BriefingCause]:
    found = {case.rca.rca_id: case.rca for case in cases if case.rca}
    for rca_id, cause in sorted(found.items()):
        yield BriefingCause(f"R{rca_id}", cause.component, cause.defect_type, cause.title)


def _patterns(cases: Sequence[SuiteCase]) -> Iterable[ErrorPattern]:
    """Messages that several cases have, the most frequent first."""
    heads = Counter(head for case in cases if (head := _head(case)))
    components = {_head(case): _component(case) for case in reversed(cases)}
    for head, count in heads.most_common(_MOST_PATTERNS):
        if count >= _OFTEN:
            yield ErrorPattern(head, count, len(cases), components[head])


def _head(case: SuiteCase) -> str:
    """The first line of its message, a star for what changes from case to case."""
    masked = masked_line(case.error_message.strip().partition("\n")[0][:400])
    return _TOKEN.sub("*", masked)[:120]


def _component(case: SuiteCase) -> str:
    if case.rca and case.rca.component:
        return case.rca.component
    return next(iter(case.triage.candidate_repos), "") if case.triage else ""


CALIBRATE = ".asterisk/calibrate"
"""Where watchers look for signals."""
INVESTIGATIONS = ".asterisk/investigations"
"""Where the manual flow writes its prompts."""


def names(root: Path) -> Names:
    """Prompts are numbered below `investigations`, and called by family everywhere else."""
    prompt = numbered_prompt if root.name == Path(INVESTIGATIONS).name else named_prompt

    def papers(step: str, attempt: int) -> Papers:
        return Papers(prompt(step, attempt), ARTIFACTS[step])

    return papers


def phase_of(step: str) -> Phase:
    return "triage" if step in TRIAGE else "investigation"
