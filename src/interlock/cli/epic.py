"""The verb epic: long work over many sessions. Each file of its verbs adds them to this group."""

import typer

from interlock.cli.door import app

epic = typer.Typer(help="Epics: long work over many sessions.", no_args_is_help=True)
app.add_typer(epic, name="epic")
