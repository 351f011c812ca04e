"""The background of a case on pages. An application that fails at it costs nobody their page."""

import traceback

from interlock.api.browse import Background, read_background
from interlock.api.records import Connection


def show_background(connection: Connection, run_id: int, case_no: int | None) -> Background | None:
    """What a person should know about a case; None if its application tells nothing, or fails."""
    if case_no is None:
        return None
    try:
        return read_background(connection, run_id, case_no)
    except Exception as error:  # whatever a foreign application raises
        traceback.print_exception(error)
        return None
