"""Ask applications about their cases for pages. A page is shown even if an application fails."""

import traceback
from collections.abc import Collection, Mapping

from interlock.api.browse import CaseOverview, name_cases, read_overview
from interlock.api.records import Connection, RunRecord


def show_overview(connection: Connection, run_id: int, case_no: int | None) -> CaseOverview | None:
    """Return the overview of a case; None if its application has none, or fails."""
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
    """Return what each case is about; nothing if their application fails."""
    try:
        return name_cases(connection, run, case_nos)
    except Exception as error:  # whatever a foreign application raises
        traceback.print_exception(error)
        return {}
