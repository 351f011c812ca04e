"""The tools of agents that pull their work from the runs of a project.

The entry-point group `interlock.stores` names functions that take a project's state folder and the
number of a run, and return the database of a run that has one of its own, or None.
"""

from importlib import metadata
from typing import Any, Final

from interlock.api.inspect import report_run
from interlock.api.project import Project
from interlock.api.records import make_absolute, state_folder
from interlock.carriers.pull.messages import RunReport
from interlock.carriers.pull.offers import OfferTable
from interlock.carriers.pull.tools import PullTools
from interlock.journal.address import DatabaseAddress
from interlock.journal.database import open_reader
from interlock.journal.history import count_cases, count_ends
from interlock.journal.runs import FINISHED, find_run
from interlock.runtime.settings import open_query_broker
from interlock.system.errors import StoreError

_LONGEST_REPORT = 200_000

GROUP: Final = "interlock.stores"


def open_pull_tools(project: Project, **more: Any) -> PullTools:
    """Return the tools for a project; `more` is what `PullTools` takes."""
    path = make_absolute(project.db)
    queries = open_query_broker(path, project.settings.inbox)
    return PullTools(OfferTable(path), queries, RunStatusReader(path), **more)


class RunStatusReader:
    """Read the database anew each time: runs come and go while an agent's client stays open."""

    def __init__(self, path: DatabaseAddress) -> None:
        self._path = path
        self._finders = [entry.load() for entry in metadata.entry_points(group=GROUP)]

    def _find_database(self, run_id: int | None) -> DatabaseAddress:
        folder = state_folder(self._path)
        for find in self._finders:
            found: DatabaseAddress | None = find(folder, run_id or 0)
            if found is not None:
                return found
        return self._path

    def read_status(self, run_id: int | None) -> dict[str, Any]:
        begin = "begin one with 'interlock run … --dispatch mcp', and ask again"
        try:
            with open_reader(self._find_database(run_id)) as connection:
                run = find_run(connection, run_id)
                cases, cases_over = count_cases(connection, run.run_id)
        except StoreError:
            none = {"run_id": None, "status": "", "over": False, "changed_at": 0.0}
            return none | {"cases": 0, "cases_over": 0, "reason": f"no run yet: {begin}"}
        over = run.status in FINISHED
        reason = f"run {run.run_id} is over ({run.status}) and no other is worked on"
        if not over:
            reason = f"no process works on run {run.run_id} ({run.status}): "
            reason += "'interlock inbox' shows what waits for a human, " * (run.status == "waiting")
            reason += f"'interlock resume {run.run_id}' continues; ask again"
        found = {"run_id": run.run_id, "status": run.status, "over": over, "reason": reason}
        return found | {
            "changed_at": run.changed_at,
            "cases": cases,
            "cases_over": cases_over,
        }

    def read_report(self, run_id: int | None) -> RunReport:
        try:
            with open_reader(self._find_database(run_id)) as connection:
                run = find_run(connection, run_id)
                ends = count_ends(connection, run.run_id)
                text = report_run(connection, run)
        except StoreError as error:
            return RunReport(run_id=None, reason=str(error))
        return RunReport(
            run_id=run.run_id,
            circuit=run.circuit,
            status=run.status,
            ends=dict(ends),
            markdown=text[:_LONGEST_REPORT],
            reason="",
        )
