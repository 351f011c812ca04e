"""The verbs of deliveries."""

from interlock.cli.verbs import Verb

VERBS = {
    "deliver": Verb(
        "Main jobs",
        "Carry out a plan: written, reviewed, audited, proven, merged.",
        "interlock.cli.delivery",
        "interlock deliver PLAN",
    ),
    "plan": Verb("Results", "Plans of tasks: check and show them.", "interlock.cli.plan"),
}
