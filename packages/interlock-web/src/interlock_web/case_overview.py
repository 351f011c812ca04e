"""What an application tells of its cases, on pages. One that fails costs nobody their page."""

import traceback
from collections.abc import Collection, Mapping

from interlock.api.browse import CaseOverview, name_cases, read_overview
from interlock.api.records import Connection, RunRecord


def show_overview(connection: Connection, run_id: int, case_no: int | None) -> CaseOverview | None:
    """What a person should know about a case; None if its application tells nothing, or fails."""
    if case_no is None:
        return None
    try:
        return read_overview(connection, run_id, case_no)
    except Exception as error:  # whatever a foreign application raises
        traceback.print_exception(error)
        return None


def show_names(
    connection: Connection, run: RunRecord, case_nos: Collection[int]
) -> Mapping[int, str]:
    """What cases are about; of none, if their application fails."""
    try:
        return name_cases(connection, run, case_nos)
    except Exception as error:  # whatever a foreign application raises
        traceback.print_exception(error)
        return {}
