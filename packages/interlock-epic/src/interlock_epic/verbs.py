"""The verbs of epics."""

from interlock.cli.verbs import Verb

VERBS = {
    "epic": Verb(
        "Main jobs",
        "Epics: long work over many sessions.",
        "interlock_epic.cli.checkpoint",
        "interlock epic run FILE",
    ),
    "emit": Verb("Agents", "Send a line signal.", "interlock_epic.cli.emit"),
}
