"""The command `asterisk`: an investigation by hand, a step per call. State survives between calls.

`cursor` writes the next prompt, `save` takes its answer and goes on, `status` tells where a case
stands. They work on the same store as everything else.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli import suites
from interlock.cli.analysing import (
    LastGreen,
    PromptDir,
    RecallFlag,
    RepoWords,
    WorkspaceFile,
    agreed,
)
from interlock.cli.analyze import analyze, report
from interlock.cli.calibrate_run import run as calibrate
from interlock.cli.crew import Options, crew_of, open_run
from interlock.cli.door import app as interlock
from interlock.cli.opening import answered, before, circuit_for, read
from interlock.cli.push import push
from interlock.cli.save import leave
from interlock.cli.show import Db, Json, Sets, counted, document, say, tell
from interlock.cli.sitting import sit
from interlock.core.circuit import UNREADABLE
from interlock.core.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

    from interlock.store.history import CaseLine, Episode
    from interlock.store.runs import Run
    from interlock.store.suites import Suite

app = typer.Typer(
    name="asterisk",
    help="Root cause analysis by hand: cursor writes the next prompt, save takes its answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
CaseWord = Annotated[
    str, typer.Option("--case-id", metavar="CASE", help="The case: its number, or its name (C1).")
]
SuiteNumber = Annotated[
    int | None, typer.Option("--suite-id", metavar="N", help="The suite; default the newest.")
]


@interlock.command()
@app.command()
def cursor(
    launch: Annotated[
        list[str] | None,
        typer.Option("--launch", metavar="SOURCE", help="What failed, as for analyze; repeatable."),
    ] = None,
    suite_id: SuiteNumber = None,
    case_id: CaseWord = "",
    batch: Annotated[bool, typer.Option("--batch", help="All open cases, not only one.")] = False,
    repo: RepoWords = None,
    workspace: WorkspaceFile = None,
    last_green: LastGreen = None,
    recall_first: RecallFlag = None,
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the prompt of a case's next step, and say where it is."""
    from interlock import wiring
    from interlock.store.database import writing

    path = wiring.database(Path(), db)
    with writing(path) as connection:
        if launch:
            words = (repo, workspace, last_green, recall_first)
            suite = _begun(connection, launch, sets or [], prompt_dir, words)
        else:
            suite = suites.the_suite(connection, suite_id)
        chosen = _open_cases(connection, suite) if batch else [_case(connection, suite, case_id)]
        _advance(connection, suite, path, {each.case_no for each in chosen})
        told = [_standing(connection, suite, each.case_no) for each in chosen]
    _tell(told, json=json)


@app.command("save")
def save_artifact(
    file: Annotated[
        Path, typer.Option("-f", "--file", help="The artifact: JSON, with or without its wrapper.")
    ],
    case_id: CaseWord = "",
    suite_id: SuiteNumber = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Save the answer to a case's open step, and go on to the next."""
    from interlock import wiring
    from interlock.store.database import reading, writing
    from interlock.store.lock import writer_of

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        suite = suites.the_suite(connection, suite_id)
        case = _case(connection, suite, case_id)
        asked, left = leave(connection, case, file, f"asterisk cursor --case-id {case.case_no}")
    if writer_of(path):
        _saved(case, asked, left, json=json)
        return
    with writing(path) as connection:
        _advance(connection, suite, path, {case.case_no})
        told = [_standing(connection, suite, case.case_no)]
    _tell(told, json=json)


@app.command()
def status(
    case_id: CaseWord = "", suite_id: SuiteNumber = None, db: Db = None, json: Json = False
) -> None:
    """Where a case stands: its step, its loops, its history."""
    from interlock import wiring
    from interlock.casework.folder import state_of
    from interlock.store.database import reading
    from interlock.store.history import life_of
    from interlock.store.runs import find_run

    with reading(wiring.database(Path(), db)) as connection:
        suite = suites.the_suite(connection, suite_id)
        case = _case(connection, suite, case_id)
        circuit = open_run(find_run(connection, suite.run_id))
        state = state_of(case, life_of(connection, case.case_no), suite.suite_id, circuit)
    if json:
        document(msgspec.to_builtins(state))
        return
    loops = ", ".join(f"{name} {count}" for name, count in state.loop_counts.items()) or "none"
    say(f"case {case.case_id} (number {state.case_id}) of suite {state.suite_id}: {state.status}")
    say(f"  step  {state.current_step}")
    say(f"  loops {loops}")
    for entry in state.history:
        say(f"  {entry.timestamp}  {entry.step:<15} {entry.heuristic_id:<9} {entry.outcome}")


app.command()(analyze)
app.command()(report)
app.command()(push)
app.command("calibrate")(calibrate)


def _saved(case: "CaseLine", asked: "Episode", left: Path, *, json: bool) -> None:
    """Somebody else writes to the store: the answer lies where they will find it."""
    if json:
        fields = {"run_id": case.run_id, "case_id": case.case_id, "step": asked.step}
        document(fields | {"dispatch_id": asked.dispatch_id, "artifact_path": str(left)})
        return
    say(f"saved the answer of {case.case_id} to step {asked.step}; the running process takes it")


def _begun(
    connection: "Connection",
    sources: list[str],
    sets: list[str],
    prompt_dir: Path | None,
    words: Any,
) -> "Suite":
    """The suite of these sources, begun if need be, to be answered by hand."""
    from interlock.cli.crew import merged

    repo, workspace, last_green, recall_first = words
    intakes = read(sources, "", None)
    name = suites.name_of(sources, intakes)
    found = suites.find(connection, name, intakes)
    if found is None and not any(intake.failures for intake in intakes):
        raise StateError("nothing failed, so there is nothing to investigate")
    bundle, circuit, changes = circuit_for(sets, prompt_dir)
    files: dict[str, str | int] = {"dispatch": "manual"} if found is None else {}
    usual = before(connection, found, changes, files)
    usual = msgspec.structs.replace(usual, agents={}) if found is None else usual
    terms = agreed(suites.terms_in(usual), repo, workspace, last_green, recall_first=recall_first)
    options = answered(merged(usual, None, None, None, None, files), terms)
    suite, count = suites.take_in(connection, found, name, bundle, circuit, intakes, options)
    tell(f"suite {suite.suite_id} ({name}): {counted(count, 'new case', 'new cases')}")
    return suite


def _advance(connection: "Connection", suite: "Suite", path: Path, only: "Collection[int]") -> None:
    """Take what was saved for these cases and write out what is next."""
    from interlock import wiring
    from interlock.casework.folder import project
    from interlock.report.regressions import regressions
    from interlock.store.runs import find_run

    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, Options)
    circuit = open_run(run)
    sit(connection, run, crew_of(circuit, options, path), wait=False, only=only)
    root = Path(msgspec.convert(options.files, wiring.Files).root)
    told = regressions(suites.findings_now(connection, suite))
    project(connection, root, suite.run_id, suite.suite_id, circuit, told, only=tuple(only))


def _open_cases(connection: "Connection", suite: "Suite") -> "list[CaseLine]":
    from interlock.store.history import cases_of

    found = [each for each in cases_of(connection, suite.run_id) if each.status == "open"]
    if not found:
        raise StateError(f"suite {suite.suite_id} has no open case")
    return found


def _case(connection: "Connection", suite: "Suite", word: str) -> "CaseLine":
    """The case of that name or number; the first open one if none is named."""
    from interlock.store.history import cases_of

    cases = cases_of(connection, suite.run_id)
    if not cases:
        raise StateError(f"suite {suite.suite_id} has no cases")
    if not word:
        return next((each for each in cases if each.status == "open"), cases[0])
    for each in cases:
        if word in (each.case_id, str(each.case_no)):
            return each
    names = ", ".join(each.case_id for each in cases[:10])
    raise StateError(f"suite {suite.suite_id} has no case {word[:80]!r}; it has {names}")


def _standing(connection: "Connection", suite: "Suite", case_no: int) -> dict[str, Any]:
    from interlock import wiring
    from interlock.store.history import cases_of, life_of
    from interlock.store.runs import find_run

    last = [each for each in life_of(connection, case_no) if each.decision][-1:]
    refused = [each for each in last if each.decision and each.decision.signal == UNREADABLE]
    case = next(each for each in cases_of(connection, suite.run_id) if each.case_no == case_no)
    run = find_run(connection, suite.run_id)
    root = msgspec.convert(msgspec.convert(run.options, Options).files, wiring.Files).root
    papers = wiring.names(open_run(run), root)(case.step, case.state.visits.get(case.step, 1))
    folder = Path(root).resolve() / f"{suite.run_id}" / f"{case_no}"
    asked_of = _asked_of(run, case)
    waits = case.dispatch_id is not None and asked_of in wiring.FILED
    return {
        "suite_id": suite.suite_id,
        "case_id": case.case_id,
        "case_no": case_no,
        "step": case.state.end or case.step,
        "status": case.status,
        "dispatch_id": case.dispatch_id,
        "asked_of": asked_of,
        "prompt_path": str(folder / papers.prompt) if waits else "",
        "artifact_path": str(folder / papers.artifact) if waits else "",
        "folder": str(folder),
        "complaint": str(refused[0].answer["reason"]) if refused else "",
    }


def _asked_of(run: "Run", case: "CaseLine") -> str:
    """Whose answer an open case waits for, in the words of --agent and --dispatch."""
    from interlock import wiring
    from interlock.core.circuit import HUMAN

    circuit, options = open_run(run), msgspec.convert(run.options, Options)
    if case.dispatch_id is None:
        return ""
    dispatch = str(options.files.get("dispatch", ""))
    specs = {HUMAN: HUMAN, **wiring.agents_by_role(circuit, options.agents, dispatch)}
    return specs[circuit.steps[case.step].role]


def _tell(told: list[dict[str, Any]], *, json: bool) -> None:
    if json:
        document({"cases": told})
        return
    for each in told:
        who = f"case {each['case_id']} (number {each['case_no']})"
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
    return f", which {told['asked_of']} answers" if told["asked_of"] else ""
