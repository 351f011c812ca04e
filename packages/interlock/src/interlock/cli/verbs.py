"""The verbs of the command line: the kernel's own table, and those of installed packages.

A package declares its table under the entry-point group `interlock.verbs`. Tables are small modules
that import nothing heavy: a verb's module is imported when the verb is used.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module, metadata
from typing import Any, NamedTuple

GROUP = "interlock.verbs"
RESUME_GROUP = "interlock.resume"
"""The entry-point group that maps a circuit to its own function for resuming and showing runs."""


class Verb(NamedTuple):
    """A row of a table of verbs."""

    heading: str
    """The heading under which `--help` lists the verb."""
    summary: str
    """The first sentence of the verb's own help."""
    module: str
    """The module that registers the command with the application `interlock.cli.app.app`."""
    starter: str = ""
    """The command that creates the database the verb reads."""


HEADINGS = (
    "Main jobs",
    "Runs",
    "People",
    "Results",
    "Test history",
    "Circuits",
    "Agents",
    "Many machines",
    "Checks",
)
"""The order of headings; those of other packages follow."""

_OWN = {
    "init": Verb("Main jobs", "Set up a project.", "interlock.cli.init"),
    "run": Verb("Runs", "Run cases through a circuit.", "interlock.cli.run"),
    "resume": Verb("Runs", "Continue a run.", "interlock.cli.run"),
    "stop": Verb("Runs", "Ask the running process to stop.", "interlock.cli.run"),
    "runs": Verb("Runs", "List all runs in the database.", "interlock.cli.inspect"),
    "status": Verb(
        "Runs",
        "Show the state of a run, and which cases need attention.",
        "interlock.cli.inspect",
    ),
    "logs": Verb(
        "Runs",
        "Print the journal: every decision and refused answer, in order.",
        "interlock.cli.inspect",
    ),
    "explain": Verb("Runs", "Explain a case.", "interlock.cli.inspect"),
    "replay": Verb(
        "Runs", "Decide a recorded run again with other thresholds.", "interlock.cli.inspect"
    ),
    "inbox": Verb(
        "People", "List the questions that wait for a human, in all runs.", "interlock.cli.inbox"
    ),
    "answer": Verb("People", "Answer a question.", "interlock.cli.inbox"),
    "save": Verb("People", "Save the answer to a case's open step.", "interlock.cli.run"),
    "circuit": Verb(
        "Circuits", "Circuits: list, show, draw and verify them.", "interlock.cli.circuits"
    ),
    "agents": Verb(
        "Agents",
        "List agent CLIs: installed or not, version known or not.",
        "interlock.cli.agents",
    ),
    "mcp": Verb("Agents", "Let an agent pull its work.", "interlock.cli.mcp"),
    "respond": Verb(
        "Agents",
        "Answer signals that wait in files, with any command.",
        "interlock.cli.respond",
    ),
    "doctor": Verb("Checks", "Check the machine and the database.", "interlock.cli.doctor"),
    "lint": Verb("Checks", "Check prompts, transcripts and human comments.", "interlock.cli.lint"),
    "conform": Verb("Checks", "Test a watcher against the file protocol.", "interlock.cli.respond"),
}


def find_verb(name: str) -> Verb | None:
    """Return the verb of that name, or None. Packages are only searched for verbs not our own."""
    return _OWN.get(name) or list_verbs().get(name)


@cache
def list_verbs() -> Mapping[str, Verb]:
    """Return all verbs, ordered as `--help` lists them."""
    found = dict(_OWN)
    for entry in metadata.entry_points(group=GROUP):
        found |= entry.load()
    return dict(sorted(found.items(), key=_rank))


def group_verbs() -> Iterator[tuple[str, dict[str, Verb]]]:
    """Yield each heading with its verbs."""
    headings = dict.fromkeys(verb.heading for verb in list_verbs().values())
    for heading in headings:
        yield heading, {n: verb for n, verb in list_verbs().items() if verb.heading == heading}


def find_resume(circuit: str) -> Callable[..., None] | None:
    """Return the circuit's own function for resuming runs, if there is one."""
    for entry in metadata.entry_points(group=RESUME_GROUP, name=circuit):
        function: Callable[..., None] = entry.load()
        return function
    return None


def import_verb(verb: Verb) -> Any:
    """Import the module that registers the verb's command."""
    return import_module(verb.module)


def _rank(row: tuple[str, Verb]) -> tuple[int, str, str]:
    name, verb = row
    known = verb.heading in HEADINGS
    return (HEADINGS.index(verb.heading) if known else len(HEADINGS), verb.heading, name)
