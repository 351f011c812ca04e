"""Notices at the command line: a line on stderr for some, a bell, and the herald for all."""

import sys
from typing import TYPE_CHECKING

from interlock.api.project import AgentPool
from interlock.cli.show import tell

if TYPE_CHECKING:
    from interlock.journal.events import Notification, Tell

_SAID = ("query", "rate-limit", "budget-low")
"""What is said at once; the rest is in the result, or in the inbox."""
_BELL = "\a"


def crier(crew: AgentPool) -> "Tell":
    """Whom to tell that something happened in a run."""

    def told(notice: "Notification") -> None:
        if notice.event in _SAID:
            tell(notice.text)
        if crew.bell and sys.stderr.isatty():
            sys.stderr.write(_BELL)
        if crew.herald is not None:
            crew.herald.tell(notice)

    return told
