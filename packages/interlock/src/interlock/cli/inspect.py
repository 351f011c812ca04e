"""Verbs that read committed work: runs, status, logs, explain, replay."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import app
from interlock.cli.options import read_thresholds
from interlock.cli.output import (
    Db,
    Json,
    RunId,
    Sets,
    echo,
    echo_json,
    echo_record,
    echo_table,
    escape_text,
    open_project,
)
from interlock.cli.run import format_ends, list_next_steps
from interlock.system.text import align_columns, plural
from interlock.system.time import format_time

if TYPE_CHECKING:
    from interlock.api.inspect import CaseLife, RunStanding
    from interlock.api.records import (
        CaseSummary,
        DispatchRecord,
        JournalLine,
        RefusalRecord,
        RunRecord,
    )
    from interlock.carriers.status import AgentStatus
    from interlock.engine.circuit import Circuit
    from interlock.engine.replay import ReplayedCase

_POLL = 0.25
"""Seconds between two looks at a journal that is followed."""
_REDRAW_SECONDS = 1.0
_MAX_ROWS = 20


@app.command()
def runs(db: Db = None, json: Json = False) -> None:
    """List all runs in the database."""
    from interlock.api.inspect import list_overviews

    found = list_overviews(open_project(db).db)
    if json:
        rows = [
            {**_run_fields(each.run), "status": each.status, "ends": dict(each.ends)}
            for each in found
        ]
        echo_json({"runs": rows})
        return
    if not found:
        echo("no runs yet; 'interlock run' begins one")
    echo_table(
        ("RUN", "CIRCUIT", "STATUS", "CASES", "DISPATCHES", "BEGUN", "SOURCE"),
        (
            (
                each.run.run_id,
                f"{each.run.circuit} v{each.run.version}",
                each.status,
                each.ends.total(),
                each.run.spent.dispatches,
                format_time(each.run.created_at),
                each.run.source,
            )
            for each in found
        ),
    )


@app.command()
def status(
    run_id: RunId = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="In a terminal: redraw it while the run goes on.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the state of a run, and which cases need attention."""
    from interlock.api.inspect import read_standing

    path = open_project(db).db

    def look() -> tuple["RunStanding", float]:
        now = time.time()
        return read_standing(path, run_id, _MAX_ROWS, now), now

    if json:
        echo_json(_standing_fields(look()[0]))
        return
    found = _watch_standing(look) if watch and sys.stdout.isatty() else look()
    for line in _format_standing(*found):
        echo(line)


def _watch_standing(
    look: "Callable[[], tuple[RunStanding, float]]",
) -> "tuple[RunStanding, float]":
    """Redraw the standing until nobody works on the run or Ctrl-C is pressed; return the last."""
    from rich.live import Live
    from rich.text import Text

    found = look()
    with Live(auto_refresh=False, screen=True) as screen, suppress(KeyboardInterrupt):
        while found[0].status == "running":
            lines = map(escape_text, _format_standing(*found))
            screen.update(Text("\n".join(lines)), refresh=True)
            time.sleep(_REDRAW_SECONDS)
            found = look()
    return found


def _standing_fields(standing: "RunStanding") -> dict[str, Any]:
    return {
        **_run_fields(standing.run),
        "status": standing.status,
        "ends": dict(standing.ends),
        "refused": standing.refused.total(),
        "refused_by_reason": dict(standing.refused),
        "budget_low": standing.low_limits,
        "rate_limited_until": standing.rate_limits,
        "digest": standing.digest,
        "worked_on_by": str(standing.writer or ""),
        "cases": [_case_fields(case) for case in standing.cases],
        "agents": msgspec.to_builtins(standing.agents),
    }


def _format_standing(standing: "RunStanding", now: float) -> Iterator[str]:
    """Yield the lines that a person reads about a run."""
    from interlock.system.time import format_clock_time

    run, spent, notable = standing.run, standing.run.spent, standing.notable
    by = f" by {standing.writer}" if standing.writer and standing.status == "running" else ""
    yield f"run {run.run_id}: {run.circuit} v{run.version}, {standing.status}{by}"
    yield format_ends(standing.ends)
    yield (
        f"{plural(spent.dispatches, 'dispatch', 'dispatches')}, {spent.tokens} tokens, "
        f"{spent.money:.2f} money, {spent.seconds:.1f} s"
    )
    yield from standing.low_limits
    for account, until in standing.rate_limits.items():
        yield f"{account}: rate-limited until {format_clock_time(until, now)}"
    if standing.refused:
        reasons = (f"{count} {reason}" for reason, count in sorted(standing.refused.items()))
        yield f"answers refused: {', '.join(reasons)}"
    yield from _format_notable(notable, standing.reasons)
    yield from _format_agents(standing.agents)
    if standing.status == "unhealthy" and notable:
        yield f"'interlock explain {notable[0].case_id}' tells the whole story"
        return
    outcome = "stopped" if standing.status == "interrupted" else standing.status
    yield from list_next_steps(outcome, run.run_id)


def _format_notable(cases: "list[CaseSummary]", reasons: list[str]) -> Iterator[str]:
    """Yield the first of the cases that are open, stuck or ended badly."""
    yield from align_columns(
        ("CASE", "STATUS", "STEP", "WHY"),
        (
            (case.case_id, case.end or case.status, case.step, " ".join(reason.split()))
            for case, reason in zip(cases, reasons, strict=False)
        ),
    )
    if len(cases) > len(reasons):
        yield f"… and {len(cases) - len(reasons)} more; --json lists all"


def _format_agents(agents: "list[AgentStatus]") -> Iterator[str]:
    yield from align_columns(
        ("DISPATCH", "CASE", "STEP", "AGENT", "STANDS", "BECAUSE"),
        (
            (
                each.dispatch_id,
                each.case_id,
                each.step,
                each.agent,
                each.word,
                "; ".join(each.reasons),
            )
            for each in agents[:_MAX_ROWS]
        ),
    )


@app.command()
def logs(
    run_id: RunId = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing as it grows.")
    ] = False,
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Print the journal: every decision and refused answer, in order. With -f and --json, each
    line is one JSON object."""
    from interlock.api.inspect import JournalReader
    from interlock.api.records import JournalLine

    reader = JournalReader(open_project(db).db, run_id, case)
    if json and not follow:
        lines = reader.read()
        entries = [_line_fields(line) for line in lines if isinstance(line, JournalLine)]
        refused = [line for line in lines if not isinstance(line, JournalLine)]
        fields = {"run_id": reader.run_id, "entries": entries}
        echo_json(fields | {"refused": msgspec.to_builtins(refused)})
        return
    for line in reader.follow(_wait_for_more) if follow else reader.read():
        if isinstance(line, JournalLine):
            record, text = {"type": "decision", **_line_fields(line)}, _format_line(line)
        else:
            record, text = {"type": "refusal", **msgspec.to_builtins(line)}, _format_refusal(line)
        if json:
            echo_record(record)
        else:
            echo(text)
    if json:
        outcome = reader.read_status()
        last = {"type": "result", "run_id": reader.run_id, "status": outcome}
        echo_record(last | {"is_error": outcome != "done"})


def _wait_for_more() -> None:
    sys.stdout.flush()
    time.sleep(_POLL)


def _format_line(line: "JournalLine") -> str:
    decision = line.decision
    target = decision.to or f"{decision.status}: {decision.reason}"
    return (
        f"{format_time(line.at)}  {line.case_id}  {decision.step}#{decision.attempt} "
        f"{decision.signal} -> {target}  [{decision.rule or '-'}]  dispatch {line.dispatch_id}"
    )


def _format_refusal(refusal: "RefusalRecord") -> str:
    case, number = refusal.case_id or "-", refusal.dispatch_id
    where = f"  dispatch {number}" if number is not None else ""
    return (
        f"{format_time(refusal.at)}  {case}  refused ({refusal.reason}): {refusal.sentence}{where}"
    )


def _line_fields(line: "JournalLine") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(line)
    fields["decision"] = msgspec.structs.asdict(line.decision)
    return fields


def _run_fields(run: "RunRecord") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(run)
    del fields["text"]
    fields["spent"] = msgspec.structs.asdict(run.spent)
    return fields


def _case_fields(case: "CaseSummary") -> dict[str, Any]:
    fields = {"case_id": case.case_id, "status": case.status, "step": case.step}
    return {**fields, "dispatch_id": case.dispatch_id, **msgspec.structs.asdict(case.state)}


@app.command()
def explain(
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")],
    run: Annotated[
        int | None,
        typer.Option("--run", metavar="RUN", help="The run; default the newest that has the case."),
    ] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="Show the prompts too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Explain a case. What was asked, what came back, what was decided and why."""
    life = open_project(db).explain(case_id, run)
    if json:
        echo_json(_life_fields(life))
        return
    for line in life.format(prompts=prompts):
        echo(line)


@app.command()
def replay(
    run_id: RunId = None,
    sets: Sets = None,
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Decide a recorded run again with other thresholds. Shows which cases go another way."""
    project, changes = open_project(db), read_thresholds(sets or ())
    number = project.run(run_id).number
    results = project.replay(number, changes, case)
    turned = [result for result in results if result.turn is not None]
    if json:
        echo_json(_replay_fields(number, changes, results, turned))
    else:
        _echo_replay(number, changes, results, turned)


def _life_fields(life: "CaseLife") -> dict[str, Any]:
    case, circuit = life.case, life.circuit
    head = {"case_id": case.case_id, "run_id": case.run_id, "circuit": circuit.name}
    head |= {"status": case.status, "step": case.step}
    dispatches = [_dispatch_fields(each, circuit) for each in life.dispatches]
    for fields in dispatches:
        if notes := life.notes.get(fields["dispatch_id"]):
            fields["notes"] = notes
    known = {"known": life.known} if life.known else {}
    return {**head, "dispatches": dispatches, **known, **msgspec.structs.asdict(case.state)}


def _dispatch_fields(dispatch: "DispatchRecord", circuit: "Circuit") -> dict[str, Any]:
    from interlock.api.inspect import explain_passed

    fields: dict[str, Any] = {
        "dispatch_id": dispatch.dispatch_id,
        "step": dispatch.step,
        "attempt": dispatch.attempt,
        "role": dispatch.role,
        "sent_at": dispatch.sent_at,
        "prompt": dispatch.prompt,
        "refused": msgspec.to_builtins(dispatch.refused),
        "pauses": msgspec.to_builtins(dispatch.pauses),
        "calls": msgspec.to_builtins(dispatch.calls),
        "answered_at": dispatch.answered_at,
        "answer": dispatch.answer,
        "decision": None,
        "answered_by": dispatch.answered_by,
    }
    if dispatch.decision is not None:
        decision = msgspec.structs.asdict(dispatch.decision)
        decision["passed"] = [
            {
                "rule": each.rule,
                "why": each.why,
                "because": explain_passed(circuit, each.rule, each.why),
            }
            for each in dispatch.decision.passed
        ]
        rule = circuit.find_rule(dispatch.decision.rule) or circuit.otherwise
        decision["why"] = rule.why if rule is not None and rule.id == decision["rule"] else ""
        fields["decision"] = decision
    return fields


def _replay_fields(
    run_id: int,
    changes: dict[str, Any],
    results: "list[ReplayedCase]",
    turned: "list[ReplayedCase]",
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "set": changes,
        "cases": len(results),
        "changed": msgspec.to_builtins(turned),
        "dispatches_before": sum(result.dispatches_before for result in results),
        "dispatches_after": sum(result.dispatches_after for result in results),
        "exact": not any(result.lacks for result in results),
    }


def _echo_replay(
    run_id: int,
    changes: dict[str, Any],
    results: "list[ReplayedCase]",
    turned: "list[ReplayedCase]",
) -> None:
    words = ", ".join(f"{name}={value}" for name, value in changes.items()) or "nothing changed"
    echo(f"run {run_id} decided again with {words}")
    rows = []
    for result in turned:
        turn = result.turn
        if turn is not None:
            more = result.dispatches_after - result.dispatches_before
            at_least = " or more" if result.lacks else ""
            rows.append(
                (
                    result.case_id,
                    f"{turn.step}#{turn.attempt}",
                    f"{turn.rule_before} -> {turn.to_before}",
                    f"{turn.rule_after} -> {turn.to_after}",
                    f"{more:+d}{at_least}",
                    f"{result.end_before} -> {result.end_after}",
                )
            )
    echo_table(("CASE", "AT", "WAS", "WOULD BE", "DISPATCHES", "END"), rows)
    before = sum(result.dispatches_before for result in results)
    after = sum(result.dispatches_after for result in results)
    open_ends = sum(bool(result.lacks) for result in results)
    echo(
        f"{len(turned)} of {len(results)} cases go another way; "
        f"{before} dispatches before, {after} after"
    )
    if open_ends:
        need = "1 of them needs" if open_ends == 1 else f"{open_ends} of them need"
        echo(f"{need} answers that were never given: {after} is a lower bound")
