"""Verbs that explain: the life of a case, and what other thresholds would have done."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api.project import open_run
from interlock.cli.door import app
from interlock.cli.show import Db, Json, RunId, Sets, clock_time, document, say, table

if TYPE_CHECKING:
    from interlock.engine.circuit import Circuit
    from interlock.engine.replay import Replayed
    from interlock.journal.history import CaseSummary, DispatchRecord


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
    from interlock.journal.database import reading
    from interlock.journal.history import find_case, life_of
    from interlock.journal.runs import find_run
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
        line = find_case(connection, case_id, run)
        circuit = open_run(find_run(connection, line.run_id))
        life = life_of(connection, line.case_no)
    if json:
        document(_life_fields(line, circuit, life))
        return
    say(f"case {line.case_id} of run {line.run_id}, circuit {circuit.name} v{circuit.version}")
    for episode in life:
        _say_episode(episode, circuit, prompts=prompts)
    ended = f"ended: {line.state.end}" if line.state.end else f"{line.status} at {line.step}"
    say(f"{ended}{f' ({line.state.reason})' if line.state.reason else ''}")


@app.command()
def replay(
    run_id: RunId = None,
    sets: Sets = None,
    case: Annotated[str, typer.Option("--case", metavar="CASE", help="Only this case.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Decide a recorded run again with other thresholds. Which cases go another way?"""
    from interlock.cli.words import thresholds
    from interlock.engine.advance import open_case
    from interlock.engine.replay import replay as decided_again
    from interlock.engine.replay import standing
    from interlock.journal.database import reading
    from interlock.journal.history import find_case
    from interlock.journal.runs import find_run, journal_of, load_cases
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
        found = find_run(connection, run_id)
        before = open_run(found)
        changes = thresholds(before, sets or ())
        after = before.with_thresholds(changes)
        only = find_case(connection, case, found.run_id).case_no if case else None
        results = [
            decided_again(
                after,
                open_case(after, loaded.case.case_id, loaded.case.input),
                list(journal_of(connection, loaded.case_no)),
                standing(loaded.case),
            )
            for loaded in load_cases(connection, before, found.run_id, whole=True)
            if only is None or loaded.case_no == only
        ]
    turned = [result for result in results if result.turn is not None]
    if json:
        document(_replay_fields(found.run_id, changes, results, turned))
    else:
        _say_replay(found.run_id, changes, results, turned)


def _say_episode(episode: "DispatchRecord", circuit: "Circuit", *, prompts: bool) -> None:
    from interlock.runtime.occasions import hour

    say()
    say(
        f"{episode.step}, attempt {episode.attempt}: dispatch {episode.dispatch_id} to "
        f"{episode.role} at {clock_time(episode.sent_at)}"
    )
    if prompts:
        say("  prompt:")
        say("\n".join(f"  | {line}" for line in episode.prompt.splitlines()))
    for refused in episode.refused:
        say(f"  refused ({refused.reason}): {refused.sentence}")
    for pause in episode.pauses:
        until = hour(pause.until, pause.at)
        say(f"  rate-limited at {clock_time(pause.at)} until {until}: {pause.reason}")
    decision = episode.decision
    if decision is None:
        say("  no answer yet")
        return
    answer = msgspec.json.encode(episode.answer).decode()
    by = f" by {episode.answered_by}" if episode.answered_by else ""
    say(f"  came back{by}: {decision.signal} {_cut(answer)}")
    for name, value in decision.read.items():
        say(f"  read {name} = {msgspec.json.encode(value).decode()}")
    for passed in decision.passed:
        say(f"  passed over {passed.rule}: {_passed(circuit, passed.rule, passed.why)}")
    for noted in decision.noted:
        say(f"  noted by {noted}")
    for name, value in decision.adds.items():
        say(f"  added {name} = {_cut(msgspec.json.encode(value).decode())}")
    if decision.reason:
        say(f"  stuck: {decision.reason}")
        return
    say(f"  rule {decision.rule} -> {decision.to}{_because(circuit, decision.rule)}")


def _passed(circuit: "Circuit", rule_id: str, why: str) -> str:
    rule = circuit.rule(rule_id)
    if why == "spent" and rule is not None:
        return f"loop {rule.loop} is spent ({circuit.loops[str(rule.loop)].max})"
    guard = rule.guard.text if rule is not None and rule.guard is not None else rule_id
    return f"not ({guard})" if " and " in guard or " or " in guard else f"not {guard}"


def _because(circuit: "Circuit", rule_id: str) -> str:
    rule = circuit.otherwise if rule_id == "otherwise" else circuit.rule(rule_id)
    if rule is None:
        return ""
    guard = f" when {rule.guard.text}" if rule.guard is not None else ""
    return f"{guard}{f' ({rule.why})' if rule.why else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:280]}… ({len(text)} characters)"


def _life_fields(
    line: "CaseSummary", circuit: "Circuit", life: "list[DispatchRecord]"
) -> dict[str, Any]:
    episodes = []
    for episode in life:
        fields = msgspec.structs.asdict(episode)
        fields["refused"] = msgspec.to_builtins(episode.refused)
        fields["pauses"] = msgspec.to_builtins(episode.pauses)
        fields["decision"] = None
        if episode.decision is not None:
            decision = msgspec.structs.asdict(episode.decision)
            decision["passed"] = [
                {"rule": each.rule, "why": each.why, "because": _passed(circuit, *_pair(each))}
                for each in episode.decision.passed
            ]
            rule = circuit.rule(episode.decision.rule) or circuit.otherwise
            decision["why"] = rule.why if rule is not None and rule.id == decision["rule"] else ""
            fields["decision"] = decision
        episodes.append(fields)
    head = {"case_id": line.case_id, "run_id": line.run_id, "circuit": circuit.name}
    head |= {"status": line.status, "step": line.step, "dispatches": episodes}
    return head | msgspec.structs.asdict(line.state)


def _pair(passed: Any) -> tuple[str, str]:
    return passed.rule, passed.why


def _replay_fields(
    run_id: int, changes: dict[str, Any], results: "list[Replayed]", turned: "list[Replayed]"
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
    run_id: int, changes: dict[str, Any], results: "list[Replayed]", turned: "list[Replayed]"
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
