"""The verbs of the analyst's parts, and the first of them. Others add theirs in files beside this.

Each reads files and prints JSON lines: made for pipes and for scoring, not for people.
"""

import typer

from interlock.cli.door import app

analyst = typer.Typer(
    help="The built-in analyst's parts: JSONL in, JSONL out.", no_args_is_help=True
)
app.add_typer(analyst, name="analyst")


@analyst.callback()
def _parts() -> None:
    pass
