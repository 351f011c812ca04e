"""From a signal's template to its sections.

Knows what the labels of seed 002 hold. Refuses to know messages: see body for those.
"""

import re
from typing import Final

from interlock.signals.columns import Section, SectionKind

# What a label's list or line holds; a label that is not here is plain text.
_KINDS: Final[dict[str, SectionKind]] = {
    "Files Modified": "files",
    "Tests Written": "files",
    "Verification Results": "checks",
    "Commands Executed": "checks",
    "Quality Assessment": "checks",
    "Failed Criteria": "checks",
    "Failed Checks": "checks",
    "Passing Checks": "checks",
    "Issues Found": "issues",
    "Acceptance Criteria": "criteria",
    "Required Fixes": "list",
    "Passing Criteria": "list",
    "Pre-existing Failures": "list",
    "Files Reviewed": "list",
    "Target Files": "list",
    "Rationale": "list",
    "Pitfalls Avoided": "list",
    "Expertise Encoded": "list",
    "Issues Fixed": "pairs",
    "Options Considered": "pairs",
    "Attempts Made": "pairs",
    "Attempts": "pairs",
    "Delegation Triggers": "pairs",
    "Supports": "names",
    "Tasks": "names",
    "Task": "name",
    "Agent": "name",
    "Target Agent": "name",
    "Requesting Agent": "name",
    "Context Snapshot": "name",
    "Assigned To": "name",
    "File": "name",
}
_LABEL: Final = re.compile(r"(?m)^([A-Z][A-Za-z -]*)(?: \([^)]*\))?:(?: (.+))?$")
_CHOICE: Final = re.compile(r"\[([^|\]]+(?: \| [^|\]]+)+)\]$")


def sections_of(template: str, closing: str) -> tuple[Section, ...]:
    """The labelled sections of a signal, in the order of its template."""
    body = template.partition("\n")[2].replace(closing or "\0", "")
    found = [_section(label[1], label[2] or "") for label in _LABEL.finditer(body)]
    if "DELEGATION PROMPT" in template:
        found += [_section("Task", ""), _section("Prompt", "")]
    return tuple(found)


def _section(label: str, sample: str) -> Section:
    choice = _CHOICE.match(sample)
    options = tuple(choice[1].split(" | ")) if choice else ()
    if options and (all(map(str.isupper, options)) or all(map(str.islower, options))):
        return Section(label, "choice", options)
    # A number or a remark in place of the list that other signals have under this label.
    plain = sample == "[count]" or bool(options)
    return Section(label, "text" if plain else _KINDS.get(label, "text"))
