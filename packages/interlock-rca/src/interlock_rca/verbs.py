"""The verbs of root-cause analysis."""

from interlock.cli.verbs import Verb

VERBS = {
    "demo": Verb("Main jobs", "See Interlock at work, in seconds.", "interlock_rca.cli.demo"),
    "analyze": Verb("Main jobs", "Find the causes of failing tests.", "interlock_rca.cli.analyze"),
    "cursor": Verb(
        "People",
        "Write the prompt of a case's next step, and print its path.",
        "interlock_rca.cli.by_hand",
        "interlock cursor --launch SOURCE",
    ),
    "report": Verb(
        "Results",
        "Write the report of a suite again.",
        "interlock_rca.cli.analyze",
        "interlock analyze SOURCE",
    ),
    "causes": Verb(
        "Results",
        "List the known root causes of all suites.",
        "interlock_rca.cli.analyze",
        "interlock analyze SOURCE",
    ),
    "cause": Verb(
        "Results",
        "Show or set the status of a root cause.",
        "interlock_rca.cli.analyze",
        "interlock analyze SOURCE",
    ),
    "push": Verb(
        "Results",
        "Send reviewed results to ReportPortal.",
        "interlock_rca.cli.analyze",
        "interlock analyze SOURCE",
    ),
}
