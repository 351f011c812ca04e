"""The verbs for many machines."""

from interlock.cli.verbs import Verb

VERBS = {
    "coordinator": Verb(
        "Many machines",
        "Work on runs that nobody works on, until stopped.",
        "interlock_cluster.cli",
    ),
    "worker": Verb(
        "Many machines",
        "Answer dispatches of some roles with agents of this host.",
        "interlock_cluster.cli",
    ),
    "workers": Verb(
        "Many machines",
        "List the workers of the database, and the dispatches of each.",
        "interlock_cluster.cli",
    ),
    "init-db": Verb(
        "Many machines", "Make the database, or bring it up to date.", "interlock_cluster.cli"
    ),
    "db": Verb("Many machines", "The database: move it.", "interlock_cluster.cli"),
}
