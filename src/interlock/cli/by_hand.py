"""The command `asterisk`: an investigation by hand, a step per call. State survives between calls.

`cursor` writes the next prompt, `save` takes its answer and goes on, `status` tells where a case
stands. They work on the same database as everything else.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api import manual
from interlock.api.work import load_circuit, work_on_run
from interlock.cli.app import app as interlock
from interlock.cli.calibrate import run as calibrate
from interlock.cli.options import RunFlags, merge_config, read_thresholds
from interlock.cli.output import Db, Json, Sets, counted, document, open_project, say, tell
from interlock.cli.rca import (
    LastGreen,
    New,
    PromptDir,
    RecallFlag,
    RepoWords,
    WorkspaceFile,
    analyze,
    push,
    report,
)
from interlock.engine.circuit import UNREADABLE
from interlock.rca import analyze as analysis
from interlock.rca.config import change_config
from interlock.runtime.application import find_application
from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError, StateError
from interlock.version import __version__

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.api.project import Project
    from interlock.engine.circuit import Circuit
    from interlock.journal.history import CaseSummary, DispatchRecord
    from interlock.rca.knowledge.suites import Suite


def standings(
    connection: "Connection", suite: "Suite", numbers: Iterable[int], since: float
) -> list[dict[str, Any]]:
    """Where these cases stand, and what was decided about them since then."""
    from interlock.journal.history import list_cases
    from interlock.journal.runs import find_run

    run = find_run(connection, suite.run_id)
    circuit, options = load_circuit(run), msgspec.convert(run.options, RunConfig)
    cases = {each.case_no: each for each in list_cases(connection, suite.run_id)}
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
    from interlock.agents.registry import FILE_CARRIERS, FileOptions
    from interlock.journal.history import list_dispatches
    from interlock.rca.case_folder import list_entries

    decided = [each for each in list_dispatches(connection, case_no=case.case_no) if each.decision]
    refused = [each for each in decided[-1:] if _unused(each)]
    root = msgspec.convert(options.files, FileOptions).root
    names = find_application(circuit.name).file_names(Path(root))
    papers = names(case.step, case.state.visits.get(case.step, 1))
    folder = Path(root).resolve() / f"{suite.run_id}" / f"{case.case_no}"
    asked_of = _asked_of(circuit, options, case)
    waits = case.dispatch_id is not None and asked_of in FILE_CARRIERS
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
        "decided": msgspec.to_builtins(list(list_entries(news, circuit))),
    }


def _unused(each: "DispatchRecord") -> bool:
    return each.decision is not None and each.decision.signal == UNREADABLE


def _asked_of(circuit: "Circuit", options: RunConfig, case: "CaseSummary") -> str:
    """Whose answer an open case waits for, in the words of --agent and --dispatch."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.agent_pool import assign_agents

    if case.dispatch_id is None:
        return ""
    dispatch = str(options.files.get("dispatch", ""))
    specs = {HUMAN: HUMAN, **assign_agents(circuit, options.agents, dispatch)}
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


app = typer.Typer(
    name="asterisk",
    help="Root cause analysis by hand: cursor writes the next prompt, save takes its answer.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"asterisk {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


CaseWord = Annotated[
    str,
    typer.Option(
        "--case-id", metavar="CASE", help="The case: its number, name (C1) or ReportPortal item."
    ),
]
SuiteNumber = Annotated[
    int | None, typer.Option("--suite-id", metavar="N", help="The suite; default the newest.")
]
_DIGITS = 20
"""No item has a number as long as this."""


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
    new: New = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the prompt of a case's next step, and say where it is."""

    project = open_project(db)
    words = (repo, workspace, last_green, recall_first)
    if not launch and (new or sets or prompt_dir or any(each is not None for each in words)):
        raise SourceError("what shall hold for a suite is said with its --launch SOURCE; add that")
    with project.write() as connection:
        if launch:
            suite = _begun(project, connection, launch, sets or [], prompt_dir, words, new=new)
        else:
            suite = analysis.get_suite(connection, suite_id)
        chosen = _open_cases(connection, suite) if batch else [_case(connection, suite, case_id)]
        for problem in manual.take_saved_files(connection, suite.run_id, chosen):
            tell(f"note: {problem}")
        told = _advanced(project, connection, suite, [each.case_no for each in chosen])
    tell_standings(told, json=json)


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

    project = open_project(db)
    with project.read() as connection:
        suite = analysis.get_suite(connection, suite_id)
        case = _case(connection, suite, case_id or _case_in(connection, suite, file))
        asked, left = manual.save_artifact(
            connection, case, file, f"asterisk cursor --case-id {case.case_no}"
        )
    if project.writer():
        tell_saved(case, asked, left, json=json)
        return
    with project.write() as connection:
        told = _advanced(project, connection, suite, [case.case_no])
    tell_standings(told, json=json)


@app.command()
def status(
    case_id: CaseWord = "", suite_id: SuiteNumber = None, db: Db = None, json: Json = False
) -> None:
    """Where a case stands: its step, its loops, its history."""
    from interlock.journal.history import list_dispatches
    from interlock.journal.runs import find_run
    from interlock.rca.case_folder import build_state

    with open_project(db).read() as connection:
        suite = analysis.get_suite(connection, suite_id)
        case = _case(connection, suite, case_id)
        circuit = load_circuit(find_run(connection, suite.run_id))
        state = build_state(
            case, list_dispatches(connection, case_no=case.case_no), suite.suite_id, circuit
        )
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


def _begun(
    project: "Project",
    connection: "Connection",
    sources: list[str],
    sets: list[str],
    prompt_dir: Path | None,
    words: Any,
    *,
    new: bool,
) -> "Suite":
    """The suite of these sources, begun if need be, to be answered by hand."""
    repo, workspace, last_green, recall_first = words
    intakes = analysis.read_launches(sources, "", None, tell)
    name = analysis.name_suite(sources, intakes)
    found = None if new else analysis.find_matching_suite(connection, name, intakes)
    if found is None and not any(intake.failures for intake in intakes):
        raise StateError("nothing failed, so there is nothing to investigate")
    circuit, changes = analysis.load_rca(project, read_thresholds(sets), prompt_dir)
    files: dict[str, str | int] = {"dispatch": "manual"} if found is None else {}
    usual = analysis.find_config(project, connection, found, changes, files)
    usual = msgspec.structs.replace(usual, agents={}) if found is None else usual
    config = change_config(
        analysis.read_config(usual), repo, workspace, last_green, recall_first=recall_first
    )
    options = analysis.assign_reviewer(merge_config(usual, RunFlags(files=files)), config)
    suite, count = analysis.add_launches(connection, found, name, circuit, intakes, options)
    tell(f"suite {suite.suite_id} ({name}): {counted(count, 'new case', 'new cases')}")
    return suite


def _advanced(
    project: "Project", connection: "Connection", suite: "Suite", only: list[int]
) -> list[dict[str, Any]]:
    """Take what was saved for these cases, write out what is next, and tell where they stand."""
    from interlock.agents.registry import FileOptions
    from interlock.journal.runs import find_run
    from interlock.rca.case_folder import write_case_folders
    from interlock.rca.report.markdown import render_regressions
    from interlock.rca.report.outline import build_outline

    since = time.time()
    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    circuit = load_circuit(run)
    pool = project.build_pool(circuit, options)
    work_on_run(connection, run, pool, display=project.display, only=set(only))
    root = Path(msgspec.convert(options.files, FileOptions).root)
    told = render_regressions(build_outline(analysis.collect_findings(connection, suite)))
    write_case_folders(connection, root, suite.run_id, suite.suite_id, circuit, told, only=only)
    return standings(connection, suite, only, since)


def _case_in(connection: "Connection", suite: "Suite", file: Path) -> str:
    """The case that an artifact names itself, by the number of its item; nothing if it names none.
    Whatever is wrong with the file is said by whoever reads it in earnest."""
    from interlock.agents.files.file import read_item_ids
    from interlock.rca.knowledge.suites import find_case_of_item

    items = read_item_ids(file)
    found = {item: find_case_of_item(connection, suite.suite_id, item) for item in items}
    if not any(found.values()):
        return ""
    if len(found) > 1:
        named = ", ".join(map(str, found))
        raise SourceError(f"{file} names the items {named}; say which case it is for: --case-id")
    return str(*found.values())


def _open_cases(connection: "Connection", suite: "Suite") -> "list[CaseSummary]":
    from interlock.journal.history import list_cases

    found = [each for each in list_cases(connection, suite.run_id) if each.status == "open"]
    if not found:
        raise StateError(f"suite {suite.suite_id} has no open case")
    return found


def _case(connection: "Connection", suite: "Suite", word: str) -> "CaseSummary":
    """The case of that name, number or item; the first open one if none is named."""
    from interlock.journal.history import list_cases
    from interlock.rca.knowledge.suites import find_case_of_item

    cases = list_cases(connection, suite.run_id)
    if not cases:
        raise StateError(f"suite {suite.suite_id} has no cases")
    if not word:
        return next((each for each in cases if each.status == "open"), cases[0])
    item = int(word) if word.isdecimal() and word.isascii() and len(word) < _DIGITS else 0
    known = {name: each for each in cases for name in (str(each.case_no), each.case_id)}
    found = known.get(word) or known.get(str(find_case_of_item(connection, suite.suite_id, item)))
    if found:
        return found
    names = ", ".join(each.case_id for each in cases[:10])
    more = f" and {len(cases) - 10} more" if len(cases) > 10 else ""
    raise StateError(f"suite {suite.suite_id} has no case {word[:80]!r}; it has {names}{more}")
