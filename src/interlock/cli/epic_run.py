"""The verbs epic run and epic resume: session after session, until the epic ends or waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from interlock.api.project import Limited, Limits, RateLimitPolicy, crew_of, open_run
from interlock.api.sitting import RunResult, sit
from interlock.cli.epic import epic
from interlock.cli.epic_hook import hooked
from interlock.cli.run import Wait
from interlock.cli.show import Db, Json, counted, document, say, tell
from interlock.epic.epic_begin import EpicOptions, agreed, begun, written_epic
from interlock.system.errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.case import Case
    from interlock.epic.epic_file import EpicText
    from interlock.journal.runs import Run


class DeskName(StrEnum):
    """Where humans are asked."""

    INBOX = "inbox"
    GITHUB = "github"


SessionAgent = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="Who works: exec:COMMAND, or claude, codex or another of `interlock agents`.",
    ),
]
Cycles = Annotated[
    int | None,
    typer.Option("--max-cycles", metavar="N", min=0, max=4000, help="Fresh sessions; default 50."),
]
Longest = Annotated[
    str | None, typer.Option("--session-timeout", metavar="TIME", help="Of one session: 90s, 2h.")
]
Idle = Annotated[
    str | None, typer.Option("--idle-timeout", metavar="TIME", help="Of a silent session.")
]
Asked = Annotated[DeskName | None, typer.Option("--hitl", help="Where humans are asked.")]
Hook = Annotated[
    str | None,
    typer.Option(
        "--hook", metavar="[HOST:]PORT", help="Wait, and hear GitHub's webhooks here meanwhile."
    ),
]

_CODES = (
    "Exit: 0 complete, 1 fatal, 3 partial, 4 a human is asked, 5 budget spent, 10 paused to "
    "discuss, 11 nobody answered in time, 12 put off, 13 halted, 14 a limit is spent or nothing "
    "moves, 15 no checkpoint, 16 git does not fit, 17 a session ended without a word, 18 locked, "
    "75 rate-limited."
)


@epic.command("run", epilog=_CODES)
def run(
    what: Annotated[
        str, typer.Argument(metavar="FILE|ID", help="The epic's file, or the id of one.")
    ],
    agent: SessionAgent = None,
    max_cycles: Cycles = None,
    session_timeout: Longest = None,
    idle_timeout: Idle = None,
    hitl: Asked = None,
    hook: Hook = None,
    budget: Limits = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Work on an epic, session by session. Run again, it goes on where it was."""
    words = (agent, budget, max_cycles, session_timeout, idle_timeout, hitl, hook)
    text, file = written_epic(what)
    _work(text.id if text else what, text, file, EpicOptions(*words), db, wait, on_limit, json)


@epic.command("resume", epilog=_CODES)
def resume(
    epic_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The epic; default the active one.")
    ] = None,
    agent: SessionAgent = None,
    max_cycles: Cycles = None,
    session_timeout: Longest = None,
    idle_timeout: Idle = None,
    hitl: Asked = None,
    hook: Hook = None,
    budget: Limits = None,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Go on with an epic from its checkpoint. It was stopped, killed, paused or waits."""
    from interlock.epic.checkpoints.checkpoints import Checkpoints
    from interlock.epic.checkpoints.place import find_place

    words = (agent, budget, max_cycles, session_timeout, idle_timeout, hitl, hook)
    wanted = epic_id or Checkpoints(find_place(Path())).active()
    if not wanted:
        _nothing(json)
    _work(wanted, None, "", EpicOptions(*words), db, wait, on_limit, json)


def _work(
    epic_id: str,
    text: "EpicText | None",
    file: str,
    wishes: EpicOptions,
    db: Path | None,
    wait: bool,
    on_limit: RateLimitPolicy,
    json: bool,
) -> None:
    from interlock.epic.checkpoints.place import find_place
    from interlock.epic.checkpoints.sole import sole
    from interlock.journal.database import writing
    from interlock.runtime.settings import database, read_settings

    usual, path = read_settings(Path()), database(Path(), db)
    place = find_place(Path())
    terms = agreed(epic_id, text, file, place, path, usual, wishes)
    with (
        _alone(epic_id, json),
        sole(place, epic_id),
        writing(path) as connection,
        hooked(terms.settings, wishes.hook) as dress,
    ):
        found, options = begun(connection, terms, usual, wishes)
        crew = crew_of(open_run(found), options, path)
        wait = wait or wishes.hook is not None
        sat = sit(connection, found, crew, wait=wait, on_limit=on_limit, dress=dress)
        _report(connection, found, sat, epic_id, json=json)


@contextmanager
def _alone(epic_id: str, json: bool) -> Iterator[None]:
    """Whoever is second is told so, with a code of its own."""
    from interlock.epic.checkpoints.sole import LockedError
    from interlock.epic.outcomes import LOCKED, LOCKED_EXIT

    try:
        yield
    except (LockedError, StoreError) as error:
        if isinstance(error, StoreError) and " is in use by " not in str(error):
            raise
        if json:
            fields = {"epic_id": epic_id, "outcome": LOCKED, "exit_code": LOCKED_EXIT}
            document({**fields, "reason": str(error)})
        tell(f"interlock: {error}")
        raise typer.Exit(LOCKED_EXIT) from None


def _nothing(json: bool) -> NoReturn:
    """No epic is named, and none was ever begun here."""
    from interlock.epic.outcomes import ENDINGS
    from interlock.signals.line_payload import canonical_line

    code = ENDINGS["NO_CHECKPOINT"].exit_code
    reason = "there is no checkpoint here: begin with 'interlock epic run FILE'"
    line = canonical_line("FATAL_ERROR", ["NO_CHECKPOINT", reason])
    if json:
        fields = {"epic_id": "", "outcome": "NO_CHECKPOINT", "code": "NO_CHECKPOINT"}
        document({**fields, "exit_code": code, "reason": reason, "signals": [line]})
    tell(line)
    raise typer.Exit(code)


def _report(
    connection: "Connection", found: "Run", sat: RunResult, epic_id: str, *, json: bool
) -> None:
    """Say how the epic stands, and leave with its exit code."""
    from interlock.cli.epic_look import case_of, checkpoint_of, questions_of
    from interlock.epic.application import EpicApplication
    from interlock.epic.outcomes import ENDINGS

    case = case_of(connection, found.run_id)
    outcome = outcome_of(sat.status, case)
    spoken = sat.application.voice.said if isinstance(sat.application, EpicApplication) else []
    for note in sat.application.notes() if sat.application else ():
        tell(f"note: {note}")
    questions = questions_of(connection, found.run_id)
    fields = {
        "epic_id": epic_id,
        "run_id": found.run_id,
        "outcome": outcome,
        "status": sat.status,
        "code": str(case.context.get("code", "")) if case.end else "",
        "reason": _reason(case),
        "sessions": case.visits.get("SESSION", 0),
        "questions": questions,
        "signals": spoken,
        "checkpoint": checkpoint_of(epic_id),
    }
    if outcome in ENDINGS:
        fields["exit_code"] = ENDINGS[outcome].exit_code
    if json:
        document(fields)
    else:
        _say(fields, case)
    if outcome in ENDINGS:
        raise typer.Exit(ENDINGS[outcome].exit_code)
    sat.leave()


def outcome_of(status: str, case: "Case") -> str:
    """One word for how an epic stands."""
    if case.end:
        return case.end
    if case.status != "open":
        return "FATAL"
    return {"waiting": "WAITING", "budget": "BUDGET", "rate-limited": "RATE_LIMITED"}.get(
        status, "STOPPED"
    )


def _reason(case: "Case") -> str:
    if case.end:
        return str(case.context.get("reason", "")) or case.reason
    return case.reason


def _say(fields: dict[str, Any], case: "Case") -> None:
    epic_id, outcome = fields["epic_id"], fields["outcome"]
    sessions = counted(fields["sessions"], "session", "sessions")
    say(f"{epic_id}: {outcome} after {sessions} (run {fields['run_id']})")
    if fields["reason"]:
        code = f"{fields['code']}: " if fields["code"] else ""
        say(f"  {code}{fields['reason']}")
    for number in fields["questions"]:
        say(f"  a human is asked: 'interlock inbox', 'interlock answer {number} DECISION'")
    if outcome not in ("COMPLETE", "PARTIAL"):
        say(f"  'interlock epic resume {epic_id}' goes on")
