"""Jira drafts: one per family, for people to read and programs to send.

The answer to F6 comes first; the family fills gaps. References that were looked for and not found
stay out.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from interlock.system.text import (
    clean_text,
    clip_block,
    find_first_line,
    format_line,
    plural,
    replace_unencodable,
)
from interlock_rca.records import CaseFinding
from interlock_rca.report.outline import Cause, Outline
from interlock_rca.report.summary import format_history
from interlock_rca.report.words import explain_defect

FOLDER = "jira-drafts"
SCHEMA_VERSION = 1
_TESTS = 50
_PRIORITIES = {"critical": "Highest", "high": "High", "medium": "Medium", "low": "Low"}


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of one ticket. A person fills the empty ones."""

    schema_version: int = SCHEMA_VERSION
    family_id: str
    summary: str
    description: str
    defect_type: str
    priority: str
    components: tuple[str, ...]
    evidence_refs: tuple[str, ...]
    affected_versions: tuple[str, ...]
    labels: tuple[str, ...]
    reviewed: bool
    """True if a person, or their rule, approved every case."""
    case_ids: tuple[str, ...]


def render_drafts(outline: Outline) -> dict[str, str]:
    """Return the file of each family: path -> text."""
    found = {}
    names = name_files([cause.family_id for cause in outline.families])
    for cause, name in zip(outline.families, names, strict=True):
        draft = build_draft(cause)
        body = msgspec.json.format(msgspec.json.encode(draft), indent=2).decode()
        found[f"{FOLDER}/{name}.json"] = body + "\n"
    return dict(sorted(found.items()))


def name_files(family_ids: Iterable[str]) -> list[str]:
    """Return file names that any file system accepts; an id has the same name in every report."""
    met: Counter[str] = Counter()
    found = []
    for family_id in family_ids:
        name = _name_file(family_id)
        met[name] += 1
        found.append(name if met[name] == 1 else f"{name}_{met[name]}")
    return found


def _name_file(family_id: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", family_id[:200].lower()).strip("-")[:48].rstrip("-")
    if plain and plain == family_id:
        return f"family-{plain}"
    mark = hashlib.sha256(family_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"family-{plain}_{mark}" if plain else f"family_{mark}"


def build_draft(cause: Cause) -> Draft:
    written = [case.draft for case in cause.cases if case.draft]
    refs = [*_collect_texts(written, "evidence_refs"), *(each.ref for each in cause.evidence)]
    missing = {each.ref for each in cause.evidence if each.verdict == "missing"}
    return Draft(
        family_id=_clean_text(cause.family_id),
        summary=format_line(_find_text(written, "summary"), 250) or format_line(cause.title, 250),
        description=_find_text(written, "description") or _build_description(cause),
        defect_type=cause.defect_type and format_line(cause.defect_type, 40),
        priority=format_line(_find_text(written, "priority"), 40)
        or _PRIORITIES.get(cause.severity.strip().lower(), ""),
        components=_drop_duplicates([*_collect_texts(written, "components"), cause.component]),
        evidence_refs=_drop_duplicates(ref for ref in refs if ref not in missing),
        affected_versions=_drop_duplicates(
            [*_collect_texts(written, "affected_versions"), *cause.versions]
        ),
        labels=_choose_labels(cause),
        reviewed=_is_reviewed(cause),
        case_ids=tuple(_clean_text(case.case_id) for case in cause.cases),
    )


def format_case_draft(case: CaseFinding) -> str:
    """Return one case's draft from F6 as text, or ""."""
    lines = []
    for name in sorted(case.draft, key=_sort_key):
        value = ", ".join(_to_texts(case.draft[name]))
        if value:
            lines.append(f"{format_line(str(name), 60)}: {value}")
    return "\n".join(lines)


def format_plain_text(draft: Draft) -> str:
    """Return a draft as text to be pasted into a ticket."""
    parts = [draft.summary, "", draft.description, ""]
    rows = {
        "Defect type": _format_defect_type(draft),
        "Priority": draft.priority,
        "Components": ", ".join(draft.components),
        "Affected versions": ", ".join(draft.affected_versions),
        "Evidence": ", ".join(draft.evidence_refs),
        "Labels": ", ".join(draft.labels),
    }
    parts += [f"{name}: {value}" for name, value in rows.items() if value]
    return "\n".join(parts)


def _sort_key(name: str) -> tuple[int, str]:
    order = ("summary", "description", "defect_type", "priority")
    return (order.index(name) if name in order else len(order), str(name))


def _build_description(cause: Cause) -> str:
    """Build a description from the family for causes without an F6 draft."""
    message = clip_block(cause.beyond, 4000)[0]
    names = [_format_test_name(case) for case in cause.cases[:_TESTS]]
    parts = [message or ("" if cause.message else "The root cause is not known yet.")]
    parts.append(f"Failing: {plural(cause.size, 'test')}.\n" + "\n".join(f"- {n}" for n in names))
    if cause.size > _TESTS:
        parts.append(f"… and {cause.size - _TESTS:,} more.")
    if error := find_first_line(cause.lead.error, 400):
        parts.append(f"Error: {error}")
    parts.append(format_history(cause) + ".")
    return replace_unencodable("\n\n".join(filter(None, parts)))


def _format_test_name(case: CaseFinding) -> str:
    name = format_line(case.test_name, 160) or "a test without a name"
    return f"{format_line(case.class_name, 160)}.{name}" if case.class_name.strip() else name


def _choose_labels(cause: Cause) -> tuple[str, ...]:
    found = ["interlock", cause.kind]
    if cause.regression:
        found.append("regression")
    if any(case.cascade for case in cause.cases):
        found.append("cascade")
    return tuple(found) if _is_reviewed(cause) else (*found, "unreviewed")


def _is_reviewed(cause: Cause) -> bool:
    return cause.states.keys() <= {"reviewed", "closed"}


def _format_defect_type(draft: Draft) -> str:
    meaning = explain_defect(draft.defect_type)
    return f"{draft.defect_type} ({meaning})" if meaning else draft.defect_type


def _find_text(written: Iterable[Any], name: str) -> str:
    """Return the first draft's value of a field as text."""
    for draft in written:
        value = draft.get(name)
        if isinstance(value, str) and value.strip():
            return _clean_text(clip_block(value, 20_000)[0])
    return ""


def _collect_texts(written: Iterable[Any], name: str) -> list[str]:
    return [text for draft in written for text in _to_texts(draft.get(name))]


def _to_texts(value: Any) -> list[str]:
    """Return an agent's value as a list of words."""
    if isinstance(value, str):
        return [_clean_text(clip_block(value, 20_000)[0])] if value.strip() else []
    if isinstance(value, list | tuple):
        return [text for each in value[:200] for text in _to_texts(each)]
    if value is None or isinstance(value, bool):
        return []
    return [format_line(str(value), 400)]


def _clean_text(text: str) -> str:
    return replace_unencodable(clean_text(text))


def _drop_duplicates(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            found for text in texts if (found := replace_unencodable(format_line(text, 400)))
        )
    )
