"""The verb top: runs, agents, costs and what waits for people, at a glance in the terminal."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import app
from interlock.cli.output import Db, Json, echo, echo_json, open_project
from interlock.system.errors import SourceError
from interlock.system.text import align_columns, plural, shorten
from interlock.system.time import format_age

if TYPE_CHECKING:
    from interlock.agents.status import AgentStatus
    from interlock.api.browse import PlaceCount, RunGlance
    from interlock.api.project import Project
    from interlock.api.waiting import InboxEntry

MOST_RUNS = 50
_OPEN = ("running", "waiting", "budget", "rate-limited", "interrupted", "stopped")


class TopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How everything stands at one moment."""

    at: float
    runs: "list[RunGlance]" = []
    """The newest first."""
    places: "dict[int, list[PlaceCount]]" = {}
    """Where the cases are, of each run that is open."""
    agents: "list[AgentStatus]" = []
    inbox: "list[InboxEntry]" = []
    dispatches: int = 0
    tokens: int = 0
    money: float = 0.0

    @property
    def waiting(self) -> int:
        return sum(each.count for each in self.inbox)


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Print it once, as text, and end.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show runs, agents, costs and questions in the terminal, live.

    j and k move, Tab goes to the next table, Enter shows a question whole. a, r or a number and
    then y answers the question under the cursor; q ends. Without a terminal it is printed once.
    """
    project = open_project(db)
    if json:
        echo_json(_encode(read_snapshot(project)))
        return
    if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for line in format_snapshot(read_snapshot(project)):
            echo(line)
        return
    from importlib.util import find_spec

    if find_spec("textual") is None:
        raise SourceError("this needs textual: pip install 'interlock[web]', or use --once")
    from interlock.cli.top_screen import TopApp

    TopApp(project).run()


def read_snapshot(project: "Project") -> TopSnapshot:
    """How everything stands now."""
    from interlock.api.agents import list_alive
    from interlock.api.browse import count_places, list_run_glances, read_today
    from interlock.api.waiting import list_entries

    at = project.clock.now() if project.clock else time.time()
    if not project.has_database:
        return TopSnapshot(at=at)
    with project.read() as connection:
        runs = list_run_glances(project.db, connection, limit=MOST_RUNS)
        spent = read_today(connection, at)
        places = {
            run.run_id: count_places(connection, run.run_id) for run in runs if run.status in _OPEN
        }
    working = {run.run_id for run in runs if run.status == "running"}
    return TopSnapshot(
        at=at,
        runs=runs,
        places=places,
        agents=[each for each in list_alive(project.db) if each.run_id in working],
        inbox=list_entries(project.db),
        dispatches=spent.dispatches,
        tokens=spent.tokens,
        money=spent.money,
    )


def format_head(found: TopSnapshot) -> str:
    """All of it in one line."""
    running = sum(run.status == "running" for run in found.runs)
    return (
        f"{plural(running, 'run', 'runs')} at work, "
        f"{plural(found.waiting, 'question waits', 'questions wait')}, today "
        f"{plural(found.dispatches, 'dispatch', 'dispatches')}, {found.tokens:,} tokens, "
        f"{found.money:.2f} spent"
    )


def list_run_cells(found: TopSnapshot) -> list[tuple[str, ...]]:
    """A row per run; cases by their end, or by their status while they are open."""
    return [
        (
            str(run.run_id),
            run.circuit,
            run.status,
            ", ".join(f"{count} {end}" for end, count in sorted(run.ends.items())),
            f"{run.cost.tokens:,}",
            f"{run.cost.money:.2f}",
            format_age(found.at - run.changed_at),
        )
        for run in found.runs
    ]


RUN_HEAD = ("RUN", "CIRCUIT", "STATUS", "CASES", "TOKENS", "MONEY", "CHANGED")
STEP_HEAD = ("RUN", "STEP", "OPEN", "ASKED", "STUCK")
AGENT_HEAD = ("AGENT", "RUN", "CASE", "STEP", "LIVENESS", "WHY")
INBOX_HEAD = ("ID", "RUN", "CASE", "STEP", "WAITS", "QUESTION", "ANSWERS")


def list_step_cells(found: TopSnapshot) -> list[tuple[str, ...]]:
    """Where the cases of the open runs are."""
    rows: list[tuple[str, ...]] = []
    for run_id, places in found.places.items():
        steps: dict[str, list[int]] = {}
        for place in places:
            if not place.end:
                counts = steps.setdefault(place.step, [0, 0, 0])
                stuck = place.status == "stuck"
                counts[2 if stuck else 0] += place.cases
                counts[1] += place.asked
        rows += [(str(run_id), step, *map(str, counts)) for step, counts in steps.items()]
    return rows


def list_agent_cells(found: TopSnapshot) -> list[tuple[str, ...]]:
    return [
        (each.agent, str(each.run_id), each.case_id, each.step, each.word, "; ".join(each.reasons))
        for each in found.agents
    ]


def list_inbox_cells(found: TopSnapshot) -> list[tuple[str, ...]]:
    """A row per question, the most blocking first; a group that one answer settles shares its
    row."""
    rows: list[tuple[str, ...]] = []
    for entry in found.inbox:
        question = entry.question
        more = f" +{entry.count - 1}" if entry.count > 1 else ""
        saved = "answered" if question.answer_saved else "/".join(question.options)
        rows.append(
            (
                str(question.question_id),
                str(question.run_id),
                f"{question.case_id or '-'}{more}",
                question.step,
                format_age(found.at - question.asked_at),
                shorten(entry.about or question.summary, 60),
                saved,
            )
        )
    return rows


def list_question_lines(entry: "InboxEntry") -> Iterator[str]:
    """A question whole, for people, and the keys of its answers."""
    from interlock.api.waiting import assign_keys

    question = entry.question
    about = f" about {question.case_id}" if question.case_id else ""
    yield f"Question {question.question_id}{about} of run {question.run_id}, at {question.step}"
    if entry.also:
        yield f"{plural(len(entry.also), 'other case')} alike: {', '.join(entry.case_ids[:20])}"
    if entry.blocks:
        yield f"blocks {plural(entry.blocks, 'case')}"
    for part in question.parts:
        yield ""
        if part.title:
            yield f"{part.title}:"
        yield from part.text.splitlines()
    yield ""
    keys = assign_keys(question.options)
    yield ", ".join(f"{keys[word]} {word}" if word in keys else word for word in question.options)


def format_snapshot(found: TopSnapshot) -> Iterator[str]:
    """Everything as text."""
    yield format_head(found)
    tables = (
        ("Runs", RUN_HEAD, list_run_cells(found)),
        ("Open cases by step", STEP_HEAD, list_step_cells(found)),
        ("Agents at work", AGENT_HEAD, list_agent_cells(found)),
        ("Inbox", INBOX_HEAD, list_inbox_cells(found)),
    )
    for title, head, rows in tables:
        if rows:
            yield ""
            yield title
            yield from align_columns(head, rows)


def _encode(found: TopSnapshot) -> dict[str, Any]:
    return {
        "at": found.at,
        "runs": [
            {
                "run_id": run.run_id,
                "circuit": run.circuit,
                "status": run.status,
                "ends": dict(run.ends),
                "tokens": run.cost.tokens,
                "money": run.cost.money,
            }
            for run in found.runs
        ],
        "steps": [
            {"run_id": run_id, **msgspec.to_builtins(place)}
            for run_id, places in found.places.items()
            for place in places
        ],
        "agents": msgspec.to_builtins(found.agents),
        "inbox": [
            {**msgspec.to_builtins(each.question), "also": each.also, "blocks": each.blocks}
            for each in found.inbox
        ],
        "today": {
            "dispatches": found.dispatches,
            "tokens": found.tokens,
            "money": found.money,
        },
    }
