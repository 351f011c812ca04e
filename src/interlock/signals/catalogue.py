"""The one table of every signal, and the questions that are asked of it.

Knows how to find a row and what a role may say. Refuses to know how anything is parsed: parsers,
schemas, pages and prompts are made from here.
"""

from functools import cache
from typing import Final

from interlock.signals import file_rows, line_rows, text_rows
from interlock.signals.columns import ANALYST, CREATOR, HEALTH, REMEDIATION, Protocol, SignalRow

# Seed 002 and its prompts spell roles in more than one way; these are the same roles.
_ALIASES: Final = {
    "ba": ANALYST,
    "analyst": ANALYST,
    "remediator": REMEDIATION,
    "health": HEALTH,
    "creator": CREATOR,
    "prompt-creator": CREATOR,
    "expert-maker": CREATOR,
    "orchestrator": CREATOR,
    "coordinator": CREATOR,
}

# A transcript may be read without knowing who spoke: then authority is not checked.
ANYONE: Final = "anyone"


@cache
def rows(protocol: Protocol | None = None) -> tuple[SignalRow, ...]:
    table = (*text_rows.ROWS, *line_rows.ROWS, *file_rows.ROWS)
    return tuple(row for row in table if protocol in (None, row.protocol))


@cache
def _by_name(protocol: Protocol) -> dict[str, SignalRow]:
    return {row.name: row for row in rows(protocol)}


def row_of(protocol: Protocol, name: str) -> SignalRow | None:
    return _by_name(protocol).get(name)


def role_named(role: str) -> str:
    """The catalogue's spelling of a role; an unknown one stays as it is and may say nothing."""
    plain = role.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(plain, plain)


def may_say(role: str, row: SignalRow) -> bool:
    return role in row.roles or role == ANYONE


def legal_for(role: str, protocol: Protocol = "text") -> tuple[SignalRow, ...]:
    role = role_named(role)
    return tuple(row for row in rows(protocol) if row.roles and may_say(role, row))
