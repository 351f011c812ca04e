"""The journal's records that commands and pages show."""

from interlock.journal.events import Notification
from interlock.journal.history import CaseSummary, DispatchRecord, JournalLine, RefusalRecord
from interlock.journal.runs import FINISHED
from interlock.journal.runs import Run as RunRecord

__all__ = [
    "FINISHED",
    "CaseSummary",
    "DispatchRecord",
    "JournalLine",
    "Notification",
    "RefusalRecord",
    "RunRecord",
]
