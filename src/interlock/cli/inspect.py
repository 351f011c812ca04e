"""Verbs that look: runs, status, logs, explain, replay. They read what is committed."""

import sys
import time
from collections import Counter
from pathlib import Path
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
    counted,
    document,
    harmless,
    open_project,
    say,
    table,
)
from interlock.cli.run import advice
from interlock.system.time import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from interlock.agents.status import AgentStatus
    from interlock.api.inspect import CaseLife
    from interlock.engine.replay import ReplayedCase
    from interlock.journal.history import CaseSummary, JournalLine
    from interlock.journal.runs import Run


_POLL = 0.25
_SHOWN = 20


@app.command()
def runs(db: Db = None, json: Json = False) -> None:
    """All runs in the database."""
    from interlock.journal.history import count_ends
    from interlock.journal.runs import list_runs

    project = open_project(db)
    with project.read() as connection:
        found = [(run, count_ends(connection, run.run_id)) for run in list_runs(connection)]
    shown = {run.run_id: _status(run, project.db) for run, _ in found}
    if json:
        fields = [
            {**_run_fields(run), "status": shown[run.run_id], "ends": dict(ends)}
            for run, ends in found
        ]
        document({"runs": fields})
        return
    if not found:
        say("no runs yet; 'interlock run' begins one")
    table(
        ("RUN", "CIRCUIT", "STATUS", "CASES", "DISPATCHES", "BEGUN", "SOURCE"),
        (
            (
                *(run.run_id, f"{run.circuit} v{run.version}", shown[run.run_id], ends.total()),
                *(run.spent.dispatches, format_time(run.created_at), run.source),
            )
            for run, ends in found
        ),
    )


@app.command()
def status(run_id: RunId = None, db: Db = None, json: Json = False) -> None:
    """How a run stands, and which of its cases need a look."""
    from interlock.api.inspect import explain_standing, list_low_limits, list_rate_limits
    from interlock.api.work import load_circuit
    from interlock.journal.history import compute_digest, count_ends, list_cases, list_refusals
    from interlock.journal.runs import find_run
    from interlock.system.time import format_clock_time

    project, now = open_project(db), time.time()
    with project.read() as connection:
        run = find_run(connection, run_id)
        lows, limited = (
            list_low_limits(connection, run, now),
            list_rate_limits(connection, run.run_id, now),
        )
        cases = list_cases(connection, run.run_id)
        ends = count_ends(connection, run.run_id)
        refused = Counter(each.reason for each in list_refusals(connection, run.run_id))
        digest = compute_digest(connection, run.run_id)
        circuit = load_circuit(run)
        notable = [line for line in cases if not circuit.ends.get(line.state.end)]
        reasons = list(explain_standing(connection, circuit, run.run_id, notable[:_SHOWN]))
    shown, writer = _status(run, project.db), project.writer()
    at_work = _at_work(run, project.db) if shown == "running" else []
    if json:
        fields = {**_run_fields(run), "status": shown, "ends": dict(ends)}
        fields |= {"refused": refused.total(), "refused_by_reason": dict(refused)}
        fields |= {"budget_low": lows, "rate_limited_until": limited}
        rows = [_case_fields(line) for line in cases]
        fields |= {"digest": digest, "worked_on_by": str(writer or "")}
        document({**fields, "cases": rows, "agents": msgspec.to_builtins(at_work)})
        return
    by = f" by {writer}" if writer and shown == "running" else ""
    say(f"run {run.run_id}: {run.circuit} v{run.version}, {shown}{by}")
    say(", ".join(f"{count} {end}" for end, count in ends.most_common()))
    spent = run.spent
    say(
        f"{counted(spent.dispatches, 'dispatch', 'dispatches')}, {spent.tokens} tokens, "
        f"{spent.money:.2f} money, {spent.seconds:.1f} s"
    )
    for line in lows:
        say(line)
    for account, until in limited.items():
        say(f"{account}: rate-limited until {format_clock_time(until, now)}")
    if refused:
        say(f"answers refused: {', '.join(f'{n} {why}' for why, n in sorted(refused.items()))}")
    _say_notable(notable, reasons)
    _say_at_work(at_work)
    if shown == "unhealthy" and notable:
        say(f"'interlock explain {notable[0].case_id}' tells the whole story")
        return
    for line in advice("stopped" if shown == "interrupted" else shown, run.run_id):
        say(line)


def _at_work(run: "Run", path: Path) -> "list[AgentStatus]":
    """How the agents of this run stand, as their carrier last saw them."""
    from interlock.agents.registry import agents_folder
    from interlock.agents.status import read_agent_status

    return [each for each in read_agent_status(agents_folder(path)) if each.run_id == run.run_id]


def _say_at_work(agents: "list[AgentStatus]") -> None:
    table(
        ("DISPATCH", "CASE", "STEP", "AGENT", "STANDS", "BECAUSE"),
        (
            (
                *(each.dispatch_id, each.case_id, each.step, each.agent, each.word),
                "; ".join(each.reasons),
            )
            for each in agents[:_SHOWN]
        ),
    )


def _say_notable(lines: "list[CaseSummary]", reasons: list[str]) -> None:
    """The first of the cases that are open, stuck or ended badly."""
    table(
        ("CASE", "STATUS", "STEP", "WHY"),
        (
            (line.case_id, line.state.end or line.status, line.step, " ".join(reason.split()))
            for line, reason in zip(lines, reasons, strict=False)
        ),
    )
    if len(lines) > len(reasons):
        say(f"… and {len(lines) - len(reasons)} more; --json lists all")


@app.command()
def logs(
    run_id: RunId = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows.")] = False,
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """The journal: every decision, in order. With -f and --json a line is one JSON object."""
    from interlock.journal.history import find_case, list_lines
    from interlock.journal.runs import find_run

    project = open_project(db)
    with project.read() as connection:
        run = find_run(connection, run_id)
        if case:
            find_case(connection, case, run.run_id)
        if json and not follow:
            lines = list_lines(connection, run.run_id, 0, case)
            document({"run_id": run.run_id, "entries": [_line_fields(line) for line in lines]})
            return
        for line in _growing(connection, run.run_id, case, project.db if follow else None):
            _say_line(line, json=json)
        if json:
            shown = _status(find_run(connection, run.run_id), project.db)
            last = {"type": "result", "run_id": run.run_id, "status": shown}
            _say_record(last | {"is_error": shown != "done"})


def _growing(
    connection: "Connection", run_id: int, case: str, followed: Path | None
) -> "Iterator[JournalLine]":
    """The decisions so far, and if the database is followed those to come, to the last one."""
    from interlock.journal.history import list_lines
    from interlock.journal.runs import find_run

    seq = 0
    while True:
        # Asked before reading: a writer that ends in between has left its lines behind.
        growing = followed and _status(find_run(connection, run_id), followed) == "running"
        for line in list_lines(connection, run_id, seq, case):
            seq = line.seq
            yield line
        if not growing:
            return
        sys.stdout.flush()
        time.sleep(_POLL)


def _status(run: "Run", path: Path) -> str:
    """The run's status; one that runs without a process to run it was interrupted."""
    from interlock.journal.database import find_writer

    return run.status if run.status != "running" or find_writer(path) else "interrupted"


def _say_line(line: "JournalLine", *, json: bool) -> None:
    if json:
        _say_record({"type": "decision", **_line_fields(line)})
        return
    decision = line.decision
    target = decision.to or f"{decision.status}: {decision.reason}"
    say(
        f"{format_time(line.at)}  {line.case_id}  {decision.step}#{decision.attempt} "
        f"{decision.signal} -> {target}  [{decision.rule or '-'}]  dispatch {line.dispatch_id}"
    )


def _say_record(record: dict[str, Any]) -> None:
    sys.stdout.write(harmless(msgspec.json.encode(record).decode()) + "\n")


def _line_fields(line: "JournalLine") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(line)
    fields["decision"] = msgspec.structs.asdict(line.decision)
    return fields


def _run_fields(run: "Run") -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.structs.asdict(run)
    del fields["text"]
    fields["spent"] = msgspec.structs.asdict(run.spent)
    return fields


def _case_fields(line: "CaseSummary") -> dict[str, Any]:
    fields = {"case_id": line.case_id, "status": line.status, "step": line.step}
    return {**fields, "dispatch_id": line.dispatch_id, **msgspec.structs.asdict(line.state)}


@app.command()
def explain(
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")],
    run: Annotated[
        int | None, typer.Option("--run", metavar="RUN", help="Default: the newest that has it.")
    ] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="Show the prompts too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """The life of a case. What was asked, what came back, what was decided and why."""
    life = open_project(db).explain(case_id, run)
    if json:
        document(_life_fields(life))
        return
    for line in life.format(prompts=prompts):
        say(line)


@app.command()
def replay(
    run_id: RunId = None,
    sets: Sets = None,
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Decide a recorded run again with other thresholds. Which cases go another way?"""
    from interlock.journal.runs import find_run

    project, changes = open_project(db), read_thresholds(sets or ())
    with project.read() as connection:
        found = find_run(connection, run_id)
    results = project.replay(found.run_id, changes, case)
    turned = [result for result in results if result.turn is not None]
    if json:
        document(_replay_fields(found.run_id, changes, results, turned))
    else:
        _say_replay(found.run_id, changes, results, turned)


def _life_fields(life: "CaseLife") -> dict[str, Any]:
    from interlock.api.inspect import explain_passed

    line, circuit = life.case, life.circuit
    episodes = []
    for episode in life.dispatches:
        fields: dict[str, Any] = {
            "dispatch_id": episode.dispatch_id,
            "step": episode.step,
            "attempt": episode.attempt,
            "role": episode.role,
            "sent_at": episode.sent_at,
            "prompt": episode.prompt,
            "refused": msgspec.to_builtins(episode.refused),
            "pauses": msgspec.to_builtins(episode.pauses),
            "answered_at": episode.answered_at,
            "answer": episode.answer,
            "decision": None,
            "answered_by": episode.answered_by,
        }
        if episode.decision is not None:
            decision = msgspec.structs.asdict(episode.decision)
            decision["passed"] = [
                {
                    "rule": each.rule,
                    "why": each.why,
                    "because": explain_passed(circuit, each.rule, each.why),
                }
                for each in episode.decision.passed
            ]
            rule = circuit.find_rule(episode.decision.rule) or circuit.otherwise
            decision["why"] = rule.why if rule is not None and rule.id == decision["rule"] else ""
            fields["decision"] = decision
        episodes.append(fields)
    head = {"case_id": line.case_id, "run_id": line.run_id, "circuit": circuit.name}
    head |= {"status": line.status, "step": line.step, "dispatches": episodes}
    return head | msgspec.structs.asdict(line.state)


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


def _say_replay(
    run_id: int,
    changes: dict[str, Any],
    results: "list[ReplayedCase]",
    turned: "list[ReplayedCase]",
) -> None:
    words = ", ".join(f"{name}={value}" for name, value in changes.items()) or "nothing changed"
    say(f"run {run_id} decided again with {words}")
    rows = []
    for result in turned:
        turn = result.turn
        if turn is not None:
            more = result.dispatches_after - result.dispatches_before
            at_least = " or more" if result.lacks else ""
            rows.append(
                (
                    *(result.case_id, f"{turn.step}#{turn.attempt}"),
                    *(
                        f"{turn.rule_before} -> {turn.to_before}",
                        f"{turn.rule_after} -> {turn.to_after}",
                    ),
                    *(f"{more:+d}{at_least}", f"{result.end_before} -> {result.end_after}"),
                )
            )
    table(("CASE", "AT", "WAS", "WOULD BE", "DISPATCHES", "END"), rows)
    before = sum(result.dispatches_before for result in results)
    after = sum(result.dispatches_after for result in results)
    open_ends = sum(bool(result.lacks) for result in results)
    say(
        f"{len(turned)} of {len(results)} cases go another way; "
        f"{before} dispatches before, {after} after"
    )
    if open_ends:
        need = "1 of them needs" if open_ends == 1 else f"{open_ends} of them need"
        say(f"{need} answers that were never given: {after} is a lower bound")
