"""The overview of a case on pages. An application that fails at it costs nobody their page."""

import traceback

from interlock.api.browse import CaseOverview, read_overview
from interlock.api.records import Connection


def show_overview(connection: Connection, run_id: int, case_no: int | None) -> CaseOverview | None:
    """What a person should know about a case; None if its application tells nothing, or fails."""
    if case_no is None:
        return None
    try:
        return read_overview(connection, run_id, case_no)
    except Exception as error:  # whatever a foreign application raises
        traceback.print_exception(error)
        return None
