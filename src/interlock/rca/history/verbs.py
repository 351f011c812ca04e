"""The verbs that remember test results and report CI runs."""

from interlock.cli.verbs import Verb

VERBS = {
    "ci": Verb(
        "Main jobs", "Report the results of a CI run: ingest, analyse, publish.", "interlock.cli.ci"
    ),
    "ingest": Verb(
        "Test history", "Remember the results of a CI job, passed ones too.", "interlock.cli.ingest"
    ),
    "history": Verb(
        "Test history",
        "What is remembered: flaky, broken, failing since, last pass.",
        "interlock.cli.history",
    ),
    "quarantine": Verb(
        "Test history", "Tests whose failures do not count for a while.", "interlock.cli.quarantine"
    ),
    "last-green": Verb(
        "Test history", "Between which commits each failing test broke.", "interlock.cli.ingest"
    ),
}
