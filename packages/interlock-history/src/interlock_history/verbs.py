"""The verbs of interlock-history."""

from interlock.cli.verbs import Verb

VERBS = {
    "ci": Verb(
        "Main jobs",
        "Report the results of a CI run: ingest, analyse, publish.",
        "interlock_history.cli.ci",
    ),
    "ingest": Verb(
        "Test history",
        "Store the results of a CI job, passed tests included.",
        "interlock_history.cli.ingest",
    ),
    "history": Verb(
        "Test history",
        "What is remembered: flaky, broken, failing since, last pass.",
        "interlock_history.cli.history",
    ),
    "quarantine": Verb(
        "Test history",
        "Tests whose failures do not count for a while.",
        "interlock_history.cli.quarantine",
    ),
    "last-green": Verb(
        "Test history",
        "Show between which commits each failing test broke.",
        "interlock_history.cli.ingest",
    ),
}
