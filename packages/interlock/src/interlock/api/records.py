"""The journal's records that commands and pages show."""

from interlock.journal.address import DatabaseAddress, make_absolute, state_folder
from interlock.journal.connection import Connection
from interlock.journal.events import Notification
from interlock.journal.history import CaseSummary, DispatchRecord, JournalLine, RefusalRecord
from interlock.journal.runs import FINISHED
from interlock.journal.runs import Run as RunRecord

__all__ = [
    "FINISHED",
    "CaseSummary",
    "Connection",
    "DatabaseAddress",
    "DispatchRecord",
    "JournalLine",
    "Notification",
    "RefusalRecord",
    "RunRecord",
    "make_absolute",
    "state_folder",
]
