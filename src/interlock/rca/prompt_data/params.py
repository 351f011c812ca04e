"""The parameters of a prompt: everything that is known about a case, in groups, ready to be shown.

Text from outside is here only as a harmless line or inside a fenced block, never longer than there
is room, and what was cut or is missing is said. Names no template, and reads nothing by itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.engine.case import Case
from interlock.rca.prompt_data import groups, recollection
from interlock.rca.prompt_data.blocks import BLOCKS, fill_blocks
from interlock.rca.prompt_data.clocks import took
from interlock.rca.prompt_data.instructions import (
    ARTIFACTS,
    CONDITIONS,
    PromptGuard,
    example_of,
    guards_for,
    schema_text,
)
from interlock.rca.prompt_data.subject import PromptLimits, Subject
from interlock.rca.records import Checkout, Failure, Launch, PriorKnowledge, Sibling
from interlock.rca.steps import family_of
from interlock.rca.taxonomy import TAXONOMY, Taxonomy
from interlock.runtime.fence import FencedText, PromptFence, ends, is_noisy

NAMES: Final = (
    *("identity", "envelope", "env", "git", "failure", "timestamps", "siblings", "workspace"),
    *("urls", "prior", "history", "digest", "taxonomy", "artifact_schema", "guards", "data"),
    *("fence", "notes", "missing"),
)
"""The names that `parameters` gives to a template, beside those every prompt can read."""

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
    said = sum(len(guard.sentence) + len(guard.mark) + 6 for guard in guards)
    schema = len(schema_text(ARTIFACTS[about.family.name]))
    return _PROSE + said + schema + len(about.taxonomy.text()) + len(about.fence.note)


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
