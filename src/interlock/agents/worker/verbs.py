"""The verbs for many machines."""

from interlock.cli.verbs import Verb

VERBS = {
    "coordinator": Verb(
        "Many machines",
        "Work on runs that nobody works on, until stopped.",
        "interlock.cli.machines",
    ),
    "worker": Verb(
        "Many machines",
        "Answer dispatches of some roles with agents of this host.",
        "interlock.cli.machines",
    ),
    "workers": Verb(
        "Many machines",
        "List the workers of the database, and what each does.",
        "interlock.cli.machines",
    ),
    "init-db": Verb(
        "Many machines", "Make the database, or bring it up to date.", "interlock.cli.machines"
    ),
    "db": Verb("Many machines", "The database: move it.", "interlock.cli.machines"),
}
