"""The command `asterisk`: an investigation by hand, a step per call. State survives between calls.

`cursor` writes the next prompt, `save` takes its answer and continues, `status` shows a case. They
work on the same database as all other verbs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from interlock.api.manual import take_saved_files
from interlock.cli.app import add_version_option, load_verb, run_verbs
from interlock.cli.app import app as interlock
from interlock.cli.options import PromptDir, read_thresholds
from interlock.cli.output import (
    Db,
    Json,
    Sets,
    echo,
    echo_json,
    echo_note,
    echo_table,
    open_project,
)
from interlock.cli.verbs import find_verb
from interlock.system.errors import SourceError, StateError
from interlock.system.text import plural
from interlock_rca import manual
from interlock_rca.analyze import AnalysisRequest, get_suite
from interlock_rca.cli.analyze import (
    LastGreen,
    New,
    RecallFlag,
    RepoWords,
    WorkspaceFile,
    analyze,
    push,
    report,
)

if TYPE_CHECKING:
    from interlock_rca.knowledge.suites import Suite
    from interlock_rca.manual import CaseStanding


class _Verbs(TyperGroup):
    """The verbs below, and calibrate if it is installed."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *(["calibrate"] if find_verb("calibrate") else [])]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "calibrate":
            return load_verb(cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="asterisk",
    cls=_Verbs,
    help="Root cause analysis by hand: cursor writes the next prompt, save takes its answer.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
add_version_option(app, "asterisk")

CaseWord = Annotated[
    str,
    typer.Option(
        "--case-id", metavar="CASE", help="The case: its number, name (C1) or ReportPortal item."
    ),
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
    new: New = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the prompt of a case's next step, and print its path."""
    project = open_project(db)
    changes: dict[str, Any] = {
        "repo": repo,
        "workspace": workspace,
        "last_green": last_green,
        "recall_first": recall_first,
    }
    changed = any(value is not None for value in changes.values())
    if not launch and (new or sets or prompt_dir or changed):
        raise SourceError("these flags hold for a suite when it is begun; add --launch SOURCE")
    with project.write() as connection:
        if launch:
            request = AnalysisRequest(
                sources=launch,
                is_new=new,
                thresholds=read_thresholds(sets or []),
                prompt_dir=prompt_dir,
                changes=changes,
                note=echo_note,
                begun=_announce_cases,
            )
            suite = manual.begin_by_hand(project, connection, request)
        else:
            suite = get_suite(connection, suite_id)
        chosen = [manual.find_case(connection, suite, case_id)]
        if batch:
            chosen = manual.list_open_cases(connection, suite)
        if not chosen:
            raise StateError(f"suite {suite.suite_id} has no open case")
        for problem in take_saved_files(connection, suite.run_id, chosen):
            echo_note(f"note: {problem}")
        numbers = [case.case_no for case in chosen]
        standings = manual.advance_cases(project, connection, suite, numbers)
    _echo_standings(standings, json=json)


def _announce_cases(suite: "Suite", count: int, _is_new: bool) -> None:
    more = plural(count, "new case", "new cases")
    echo_note(f"suite {suite.suite_id} ({suite.name}): {more}")


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
        suite = get_suite(connection, suite_id)
        case, saved = manual.save_case_artifact(connection, suite, case_id, file)
    if project.writer():  # whoever works on the database takes it from where it is saved
        if json:
            echo_json(saved)
        else:
            echo(
                f"saved the answer of {saved.case_id} to step {saved.step}; "
                "the running process takes it"
            )
        return
    with project.write() as connection:
        standings = manual.advance_cases(project, connection, suite, [case.case_no])
    _echo_standings(standings, json=json)


@app.command()
def status(
    case_id: CaseWord = "", suite_id: SuiteNumber = None, db: Db = None, json: Json = False
) -> None:
    """Show a case: its step, loops and history. Without --case-id, shows the first open case and
    lists the others."""
    with open_project(db).read() as connection:
        suite = get_suite(connection, suite_id)
        case = manual.find_case(connection, suite, case_id)
        state = manual.read_case_state(connection, suite, case)
        open_cases = [] if case_id else manual.list_open_cases(connection, suite)
    rows = [
        {"case_no": each.case_no, "case_id": each.case_id, "step": each.step} for each in open_cases
    ]
    if json:
        more = {} if case_id else {"open_cases": rows}
        echo_json({**msgspec.to_builtins(state), **more})
        return
    loops = ", ".join(f"{name} {count}" for name, count in state.loop_counts.items()) or "none"
    echo(f"case {case.case_id} (number {state.case_id}) of suite {state.suite_id}: {state.status}")
    echo(f"  step  {state.current_step}")
    echo(f"  loops {loops}")
    for entry in state.history:
        echo(f"  {entry.timestamp}  {entry.step:<15} {entry.heuristic_id:<9} {entry.outcome}")
    if len(rows) > 1:
        echo(f"{len(rows)} cases are open:")
        echo_table(("NUMBER", "CASE", "STEP"), (tuple(row.values()) for row in rows))


def _echo_standings(standings: "list[CaseStanding]", *, json: bool) -> None:
    if json:
        echo_json({"cases": msgspec.to_builtins(standings)})
        return
    for each in standings:
        case = f"case {each.case_id} (number {each.case_no})"
        for entry in each.decided:
            echo(f"{each.case_id} {entry['step']} {entry['heuristic_id']}: {entry['outcome']}")
        if each.complaint:
            echo(f"{case}: the last answer could not be used. {each.complaint}")
        if not each.prompt_path:
            echo(f"{case} is {each.status} at {each.step}{_format_hint(each)}")
            continue
        echo(f"{case} is at {each.step}: answer {each.prompt_path}")
        ids = f"--case-id {each.case_no} --suite-id {each.suite_id}"
        echo(f"  then: asterisk save -f ARTIFACT.json {ids}")


def _format_hint(standing: "CaseStanding") -> str:
    """Return a hint for a case that has no prompt to answer."""
    if standing.asked_of == "human":
        return f": 'interlock answer {standing.dispatch_id} approve', see 'interlock inbox'"
    if standing.status == "ended":
        return f"; its files are in {standing.folder}"
    return f", which {standing.asked_of} answers" if standing.asked_of else ""


app.command()(analyze)
app.command()(report)
app.command()(push)


def main() -> None:
    """Run the command `asterisk`."""
    run_verbs(app, "asterisk", "asterisk cursor --launch SOURCE")
