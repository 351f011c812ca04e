"""The verbs of deliver: a plan's tasks through developer, critic and auditor to merged work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.crew import (
    Agents,
    Limited,
    Limits,
    OnLimit,
    Parallel,
    Slots,
    crew_of,
    merged,
    open_run,
    usual_options,
)
from interlock.cli.default_verb import DefaultVerb
from interlock.cli.delivering import (
    Wishes,
    agreed,
    as_json,
    begin,
    free_slug,
    go_on,
    outcome,
    terms_of,
    with_roles,
    with_stand_ins,
)
from interlock.cli.door import Exit, app
from interlock.cli.run import New, Wait, advice, changed
from interlock.cli.show import Db, Json, Sets, document, say, tell
from interlock.cli.sitting import Sat, sit

if TYPE_CHECKING:
    from sqlalchemy import Connection

deliver = typer.Typer(
    name="deliver",
    cls=DefaultVerb,
    help="Carry out a plan: written, reviewed, audited, proven, merged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(deliver)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, as Markdown or YAML.")]
Repo = Annotated[
    Path, typer.Option("--repo", metavar="PATH", help="The repository; default: this folder.")
]
BaseRev = Annotated[
    str, typer.Option("--base", metavar="REV", help="Where the work begins; default HEAD.")
]
Strict = Annotated[
    bool, typer.Option("--strict-signals", help="Answers must repeat their dispatch's mark.")
]
Untestable = Annotated[
    bool, typer.Option("--allow-untestable", help="Take tasks without acceptance criteria.")
]
_EXITS = {"COMPLETE": Exit.DONE, "PARTIAL": Exit.UNHEALTHY, "FAILED": Exit.UNHEALTHY,
          "HALTED": Exit.FAILED}  # fmt: skip


@deliver.command()
def run(
    plan: PlanFile,
    repo: Repo = Path(),
    base: BaseRev = "HEAD",
    agent: Agents = None,
    slots: Slots = None,
    parallel: Parallel = None,
    budget: Limits = None,
    sets: Sets = None,
    strict_signals: Strict = False,
    allow_untestable: Untestable = False,
    new: New = False,
    wait: Wait = False,
    on_limit: Limited = OnLimit.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Carry out a plan. Run again after a stop or crash, it goes on where it was."""
    from interlock import wiring
    from interlock.runner.library import find_circuit
    from interlock.store.database import writing
    from interlock.store.runs import find_run, newest_run

    wishes = Wishes(plan, repo, base, strict_signals, allow_untestable)
    usual, path = wiring.settings(Path()), wiring.database(Path(), db)
    bundle = find_circuit(wiring.DELIVERY, Path())
    written, changes = changed(bundle.open(), usual.thresholds, sets or [])
    before = with_roles(usual_options(usual, changes), usual)
    options = with_stand_ins(merged(before, agent, slots, budget, parallel, {}))
    crew = crew_of(written.circuit, options, path)
    with writing(path) as connection:
        run_id = None if new else newest_run(connection, wishes.mark)
        if run_id is None:
            terms = agreed(wishes, usual, path, free_slug(wishes, path))
            run_id = begin(connection, bundle, options, terms, wishes.mark)
        else:
            found = find_run(connection, run_id)
            crew = crew_of(open_run(found), go_on(connection, found, options), path)
        found = find_run(connection, run_id)
        sat = sit(connection, found, crew, wait=wait, on_limit=on_limit)
        _report(connection, run_id, sat, json=json)


def _report(connection: "Connection", run_id: int, sat: Sat, *, json: bool) -> None:
    from interlock.store.history import counts
    from interlock.store.runs import find_run

    found, ends = find_run(connection, run_id), dict(counts(connection, run_id))
    said, terms = outcome(sat.status, ends, sat.tally.halted), terms_of(found)
    for note in sat.application.notes() if sat.application else ():
        tell(f"note: {note}")
    if json:
        document(as_json(run_id, terms, said, ends))
    else:
        shown = ", ".join(f"{count} {end}" for end, count in ends.items())
        say(f"run {run_id}: {said}; {shown}; merged work is on branch interlock/{terms.slug}")
        for line in advice(sat.status, run_id) if said not in _EXITS else ():
            say(line)
    if said in _EXITS:
        raise typer.Exit(_EXITS[said])
    sat.leave()
