"""What a worker can be told of runs while nobody works on one: read from the database alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.journal.runs import Run

_LONGEST_REPORT = 200_000


class RunStatusReader:
    """The database, read anew each time: runs come and go while an agent's client stays open."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _store(self, run_id: int | None) -> Path:
        """Runs of a calibration hand their work out here, and have a store of their own."""
        from interlock.calibrate.campaign import store_of

        own = store_of(self._path.parent, run_id or 0)
        return own if own.exists() else self._path

    def standing(self, run_id: int | None) -> dict[str, Any]:
        from interlock.journal.database import reading
        from interlock.journal.runs import FINISHED, find_run
        from interlock.system.errors import StoreError

        begin = "begin one with 'interlock run … --dispatch mcp', and ask again"
        try:
            with reading(self._store(run_id)) as connection:
                run = find_run(connection, run_id)
        except StoreError:
            none = {"run_id": None, "status": "", "over": False, "changed_at": 0.0}
            return none | {"reason": f"no run yet: {begin}"}
        over = run.status in FINISHED
        reason = f"run {run.run_id} is over ({run.status}) and no other is worked on"
        if not over:
            reason = f"no process works on run {run.run_id} ({run.status}): "
            reason += "'interlock inbox' shows what waits for a human, " * (run.status == "waiting")
            reason += f"'interlock resume {run.run_id}' goes on; ask again"
        found = {"run_id": run.run_id, "status": run.status, "over": over, "reason": reason}
        return found | {"changed_at": run.changed_at}

    def report(self, run_id: int | None) -> dict[str, Any]:
        from interlock.journal.database import reading
        from interlock.journal.history import counts
        from interlock.journal.runs import find_run
        from interlock.system.errors import StoreError

        try:
            with reading(self._store(run_id)) as connection:
                run = find_run(connection, run_id)
                ends = counts(connection, run.run_id)
                text = _markdown(connection, run)
        except StoreError as error:
            return {"run_id": None, "reason": str(error)}
        fields = {"run_id": run.run_id, "circuit": run.circuit, "status": run.status}
        return fields | {"ends": dict(ends), "markdown": text[:_LONGEST_REPORT], "reason": ""}


def _markdown(connection: "Connection", run: "Run") -> str:
    """The report of a suite; of any other run, its cases."""
    from interlock.journal.history import cases_of
    from interlock.rca.knowledge.suites import find_suite
    from interlock.rca.report.markdown import markdown_of
    from interlock.rca.report.outline import outline
    from interlock.rca.suites import findings_now

    suite = find_suite(connection, run_id=run.run_id)
    if suite is not None:
        return markdown_of(outline(findings_now(connection, suite)))
    lines = [f"# Run {run.run_id}: {run.circuit}", "", f"{run.status}", ""]
    cases = cases_of(connection, run.run_id)
    return "\n".join([*lines, *(f"- {c.case_id}: {c.state.end or c.step}" for c in cases), ""])
