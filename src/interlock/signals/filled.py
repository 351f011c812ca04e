"""Whether a section says something, or is only the template handed back.

Knows placeholders and empty words. Refuses to know which sections are required.
"""

import re
from functools import cache
from typing import Final

from interlock.signals.body import SectionText
from interlock.signals.columns import SignalRow
from interlock.signals.items import lines_of, value_of

_EMPTY: Final = frozenset({"", "none", "n/a", "na", "nothing", "tbd", "todo", "-", "..", "…"})
_WHOLE_PLACEHOLDER: Final = re.compile(r"\[[^\[\]\n]*\]\Z")
_BOX: Final = re.compile(r"\[[ xX]\][ \t]*")


def is_present(part: SectionText | None, row: SignalRow) -> bool:
    if part is None:
        return False
    if part.items or part.table:
        return any(is_filled(entry, row) for entry in lines_of(part))
    if part.section.kind == "checks" and row.verdict:
        # A pass stands on items; a sentence counts as one only if it states a result.
        return any(check.status and is_filled(check.name, row) for check in value_of(part))
    return any(is_filled(text, row) for text in (*part.text, *part.fences))


def is_filled(text: str, row: SignalRow) -> bool:
    plain = _BOX.sub("", text.strip(), count=1).strip("*_` \t")
    if plain.lower().rstrip(".") in _EMPTY or _WHOLE_PLACEHOLDER.match(plain):
        return False
    return not any(placeholder in plain for placeholder in _placeholders(row))


@cache
def _placeholders(row: SignalRow) -> tuple[str, ...]:
    return tuple(sorted(set(re.findall(r"\[[^\[\]\n]{2,}\]", row.template))))
