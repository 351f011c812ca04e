"""Why a case stands where it stands, in one line: whom it asks, what it comes after, how it ended.

Reads what is committed; knows nothing of how it is shown.

What a worker can be told of runs while nobody works on one: read from the database alone.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.engine.circuit import FAILURES

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.agents.mcp.messages import RunReport
    from interlock.engine.circuit import Circuit
    from interlock.journal.history import CaseSummary
    from interlock.journal.journal import Pause
    from interlock.journal.runs import LoadedCase, Run


def whys(
    connection: "Connection", circuit: "Circuit", run_id: int, lines: "Sequence[CaseSummary]"
) -> Iterator[str]:
    """A reason for each of these cases of a run."""
    from interlock.journal.runs import load_cases
    from interlock.runtime.occasions import hour

    resting = resting_dispatches(connection, run_id, time.time())
    unsent = any(line.status == "open" and line.dispatch_id is None for line in lines)
    loaded = load_cases(connection, circuit, run_id) if unsent else ()
    cases = {each.case.case_id: each for each in loaded}
    for line in lines:
        if line.status != "open":
            yield line.state.reason or _ended(connection, circuit, line)
        elif line.dispatch_id is None:
            yield _turn(circuit, cases[line.case_id], cases)
        elif line.dispatch_id in resting:
            until = hour(resting[line.dispatch_id].until, time.time())
            yield f"rate-limited until {until} (dispatch {line.dispatch_id})"
        else:
            role = circuit.steps[line.step].role
            yield f"waits for the {role} (dispatch {line.dispatch_id})"


def _turn(circuit: "Circuit", waiting: "LoadedCase", cases: "dict[str, LoadedCase]") -> str:
    """Not asked yet: it comes after another case, or places are few."""
    for name in waiting.needs:
        before = cases[name].case
        if before.status == "open":
            return f"comes after {name}"
        if not circuit.ends.get(before.end):
            return f"comes after {name}, which did not end well ({before.end or before.status})"
    return "waits for its turn"


def _ended(connection: "Connection", circuit: "Circuit", line: "CaseSummary") -> str:
    """The reason of the rule that ended it, and of the failure it answered."""
    from interlock.journal.history import life_of

    last = life_of(connection, line.case_no)[-1]
    if last.decision is None:
        return ""
    rule = circuit.rule(last.decision.rule) or circuit.otherwise
    why = rule.why if rule else ""
    if last.decision.signal in FAILURES:
        why += f" ({last.decision.signal}: {last.answer.get('reason')})"
    return why.strip()


def resting_dispatches(connection: "Connection", run_id: int, at: float) -> "dict[int, Pause]":
    """Dispatches of a run whose rate limit is not over, by their last pause. One that was answered
    meanwhile is among them."""
    from interlock.journal.usage import pauses_of

    return {each.dispatch_id: each for each in pauses_of(connection, run_id) if each.until > at}


def low_limits(connection: "Connection", run: "Run", at: float) -> list[str]:
    """A line for each limit of a run that is nearly or wholly spent."""
    from interlock.api.project import RunConfig
    from interlock.api.sitting import spending_of
    from interlock.runtime.limits import LOW, low, parts, read_limits

    limits = read_limits(msgspec.convert(run.options, RunConfig).budget)
    found = parts(limits, spending_of(connection, run, limits, at))
    return [low(word, part) for word, part in found.items() if part >= LOW]


def open_limits(connection: "Connection", run_id: int, at: float) -> "dict[str, float]":
    """Accounts that rest because of a rate limit met in this run, each until when."""
    from interlock.journal.usage import newest_pauses

    mine = {each.account for each in resting_dispatches(connection, run_id, at).values()}
    found = {each.account: each.until for each in newest_pauses(connection)}
    return {name: found[name] for name in sorted(mine) if found[name] > at}


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

    def report(self, run_id: int | None) -> "RunReport":
        from interlock.agents.mcp.messages import RunReport
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
            return RunReport(run_id=None, reason=str(error))
        return RunReport(
            run_id=run.run_id,
            circuit=run.circuit,
            status=run.status,
            ends=dict(ends),
            markdown=text[:_LONGEST_REPORT],
            reason="",
        )


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
