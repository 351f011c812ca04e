"""The command `asterisk`: an investigation by hand, a step per call. State survives between calls.

`cursor` writes the next prompt, `save` takes its answer and goes on, `status` tells where a case
stands. They work on the same store as everything else.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api.manual import leave, take_laid
from interlock.api.project import RunConfig, crew_of, open_run
from interlock.api.sitting import sit
from interlock.cli.analyze import New, analyze, report
from interlock.cli.calibrate_run import run as calibrate
from interlock.cli.door import app as interlock
from interlock.cli.handed import standings, tell_saved, tell_standings
from interlock.cli.push import push
from interlock.cli.show import Db, Json, Sets, counted, document, say, tell
from interlock.rca import suites
from interlock.rca.analysing import (
    LastGreen,
    PromptDir,
    RecallFlag,
    RepoWords,
    WorkspaceFile,
    agreed,
)
from interlock.rca.opening import answered, before, circuit_for, read
from interlock.system.errors import SourceError, StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.journal.history import CaseSummary
    from interlock.rca.knowledge.suites import Suite

app = typer.Typer(
    name="asterisk",
    help="Root cause analysis by hand: cursor writes the next prompt, save takes its answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
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
    from interlock.journal.database import writing
    from interlock.runtime.settings import database

    path = database(Path(), db)
    words = (repo, workspace, last_green, recall_first)
    if not launch and (new or sets or prompt_dir or any(each is not None for each in words)):
        raise SourceError("what shall hold for a suite is said with its --launch SOURCE; add that")
    with writing(path) as connection:
        if launch:
            suite = _begun(connection, launch, sets or [], prompt_dir, words, new=new)
        else:
            suite = suites.the_suite(connection, suite_id)
        chosen = _open_cases(connection, suite) if batch else [_case(connection, suite, case_id)]
        take_laid(connection, suite.run_id, chosen)
        told = _advanced(connection, suite, path, [each.case_no for each in chosen])
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
    from interlock.journal.database import reading, writing
    from interlock.journal.lock import writer_of
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        suite = suites.the_suite(connection, suite_id)
        case = _case(connection, suite, case_id or _case_in(connection, suite, file))
        asked, left = leave(connection, case, file, f"asterisk cursor --case-id {case.case_no}")
    if writer_of(path):
        tell_saved(case, asked, left, json=json)
        return
    with writing(path) as connection:
        told = _advanced(connection, suite, path, [case.case_no])
    tell_standings(told, json=json)


@app.command()
def status(
    case_id: CaseWord = "", suite_id: SuiteNumber = None, db: Db = None, json: Json = False
) -> None:
    """Where a case stands: its step, its loops, its history."""
    from interlock.journal.database import reading
    from interlock.journal.history import life_of
    from interlock.journal.runs import find_run
    from interlock.rca.case_folder import state_of
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
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


def _begun(
    connection: "Connection",
    sources: list[str],
    sets: list[str],
    prompt_dir: Path | None,
    words: Any,
    *,
    new: bool,
) -> "Suite":
    """The suite of these sources, begun if need be, to be answered by hand."""
    from interlock.api.project import merged

    repo, workspace, last_green, recall_first = words
    intakes = read(sources, "", None)
    name = suites.name_of(sources, intakes)
    found = None if new else suites.find(connection, name, intakes)
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


def _advanced(
    connection: "Connection", suite: "Suite", path: Path, only: list[int]
) -> list[dict[str, Any]]:
    """Take what was saved for these cases, write out what is next, and tell where they stand."""
    from interlock.agents.wiring_files import Files
    from interlock.journal.runs import find_run
    from interlock.rca.case_folder import project
    from interlock.rca.report.regressions import regressions

    since = time.time()
    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    circuit = open_run(run)
    sit(connection, run, crew_of(circuit, options, path), wait=False, only=set(only))
    root = Path(msgspec.convert(options.files, Files).root)
    told = regressions(suites.findings_now(connection, suite))
    project(connection, root, suite.run_id, suite.suite_id, circuit, told, only=only)
    return standings(connection, suite, only, since)


def _case_in(connection: "Connection", suite: "Suite", file: Path) -> str:
    """The case that an artifact names itself, by the number of its item; nothing if it names none.
    Whatever is wrong with the file is said by whoever reads it in earnest."""
    from interlock.agents.files.manual import items_in
    from interlock.rca.knowledge.looks import case_of_item

    items = items_in(file)
    found = {item: case_of_item(connection, suite.suite_id, item) for item in items}
    if not any(found.values()):
        return ""
    if len(found) > 1:
        named = ", ".join(map(str, found))
        raise SourceError(f"{file} names the items {named}; say which case it is for: --case-id")
    return str(*found.values())


def _open_cases(connection: "Connection", suite: "Suite") -> "list[CaseSummary]":
    from interlock.journal.history import cases_of

    found = [each for each in cases_of(connection, suite.run_id) if each.status == "open"]
    if not found:
        raise StateError(f"suite {suite.suite_id} has no open case")
    return found


def _case(connection: "Connection", suite: "Suite", word: str) -> "CaseSummary":
    """The case of that name, number or item; the first open one if none is named."""
    from interlock.journal.history import cases_of
    from interlock.rca.knowledge.looks import case_of_item

    cases = cases_of(connection, suite.run_id)
    if not cases:
        raise StateError(f"suite {suite.suite_id} has no cases")
    if not word:
        return next((each for each in cases if each.status == "open"), cases[0])
    item = int(word) if word.isdecimal() and word.isascii() and len(word) < _DIGITS else 0
    known = {name: each for each in cases for name in (str(each.case_no), each.case_id)}
    found = known.get(word) or known.get(str(case_of_item(connection, suite.suite_id, item)))
    if found:
        return found
    names = ", ".join(each.case_id for each in cases[:10])
    more = f" and {len(cases) - 10} more" if len(cases) > 10 else ""
    raise StateError(f"suite {suite.suite_id} has no case {word[:80]!r}; it has {names}{more}")
