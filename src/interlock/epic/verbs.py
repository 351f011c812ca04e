"""The verbs of epics."""

from interlock.cli.verbs import Verb

VERBS = {
    "epic": Verb(
        "Main jobs",
        "Epics: long work over many sessions.",
        "interlock.cli.epic_checkpoint",
        "interlock epic run FILE",
    ),
    "emit": Verb("Agents", "Send a line signal.", "interlock.cli.emit"),
}
