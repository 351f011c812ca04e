"""What `asterisk` says about cases: what was decided, where they stand, which prompt to answer.

Reads the store and says it, for people or as JSON. Refuses to move anything.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.api.project import RunConfig, open_run
from interlock.cli.show import document, say
from interlock.engine.circuit import UNREADABLE

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.journal.history import CaseSummary, DispatchRecord
    from interlock.rca.knowledge.suites import Suite


def standings(
    connection: "Connection", suite: "Suite", numbers: Iterable[int], since: float
) -> list[dict[str, Any]]:
    """Where these cases stand, and what was decided about them since then."""
    from interlock.journal.history import cases_of
    from interlock.journal.runs import find_run

    run = find_run(connection, suite.run_id)
    circuit, options = open_run(run), msgspec.convert(run.options, RunConfig)
    cases = {each.case_no: each for each in cases_of(connection, suite.run_id)}
    return [
        _standing(connection, suite, cases[number], circuit, options, since) for number in numbers
    ]


def _standing(
    connection: "Connection",
    suite: "Suite",
    case: "CaseSummary",
    circuit: "Circuit",
    options: RunConfig,
    since: float,
) -> dict[str, Any]:
    from interlock.agents.wiring_files import FILED, Files, case_names
    from interlock.journal.history import life_of
    from interlock.rca.case_folder import entries

    decided = [each for each in life_of(connection, case.case_no) if each.decision]
    refused = [each for each in decided[-1:] if _unused(each)]
    root = msgspec.convert(options.files, Files).root
    papers = case_names(circuit, root)(case.step, case.state.visits.get(case.step, 1))
    folder = Path(root).resolve() / f"{suite.run_id}" / f"{case.case_no}"
    asked_of = _asked_of(circuit, options, case)
    waits = case.dispatch_id is not None and asked_of in FILED
    news = [each for each in decided if each.answered_at and each.answered_at >= since]
    return {
        "suite_id": suite.suite_id,
        "case_id": case.case_id,
        "case_no": case.case_no,
        "step": case.state.end or case.step,
        "status": case.status,
        "dispatch_id": case.dispatch_id,
        "asked_of": asked_of,
        "prompt_path": str(folder / papers.prompt) if waits else "",
        "artifact_path": str(folder / papers.artifact) if waits else "",
        "folder": str(folder),
        "complaint": str(refused[0].answer["reason"]) if refused else "",
        "decided": msgspec.to_builtins(list(entries(news, circuit))),
    }


def _unused(each: "DispatchRecord") -> bool:
    return each.decision is not None and each.decision.signal == UNREADABLE


def _asked_of(circuit: "Circuit", options: RunConfig, case: "CaseSummary") -> str:
    """Whose answer an open case waits for, in the words of --agent and --dispatch."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.roles import agents_by_role

    if case.dispatch_id is None:
        return ""
    dispatch = str(options.files.get("dispatch", ""))
    specs = {HUMAN: HUMAN, **agents_by_role(circuit, options.agents, dispatch)}
    return specs[circuit.steps[case.step].role]


def tell_standings(told: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        document({"cases": told})
        return
    for each in told:
        who = f"case {each['case_id']} (number {each['case_no']})"
        for entry in each["decided"]:
            say(f"{each['case_id']} {entry['step']} {entry['heuristic_id']}: {entry['outcome']}")
        if each["complaint"]:
            say(f"{who}: the last answer could not be used. {each['complaint']}")
        if not each["prompt_path"]:
            say(f"{who} is {each['status']} at {each['step']}{_hint(each)}")
            continue
        say(f"{who} is at {each['step']}: answer {each['prompt_path']}")
        ids = f"--case-id {each['case_no']} --suite-id {each['suite_id']}"
        say(f"  then: asterisk save -f ARTIFACT.json {ids}")


def _hint(told: dict[str, Any]) -> str:
    """What else to do, where nothing was written out."""
    if told["asked_of"] == "human":
        return f": 'interlock answer {told['dispatch_id']} approve', see 'interlock inbox'"
    if told["status"] == "ended":
        return f"; its papers are in {told['folder']}"
    return f", which {told['asked_of']} answers" if told["asked_of"] else ""


def tell_saved(case: "CaseSummary", asked: "DispatchRecord", left: Path, *, json: bool) -> None:
    """Somebody else writes to the store: the answer lies where they will find it."""
    if json:
        fields = {"run_id": case.run_id, "case_id": case.case_id, "step": asked.step}
        document(fields | {"dispatch_id": asked.dispatch_id, "artifact_path": str(left)})
        return
    say(f"saved the answer of {case.case_id} to step {asked.step}; the running process takes it")
