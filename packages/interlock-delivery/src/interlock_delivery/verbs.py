"""The verbs of deliveries."""

from interlock.cli.verbs import Verb

VERBS = {
    "deliver": Verb(
        "Main jobs",
        "Carry out a plan: written, reviewed, audited, proven, merged.",
        "interlock_delivery.cli.deliver",
        "interlock deliver PLAN",
    ),
    "plan": Verb("Results", "Plans of tasks: check and show them.", "interlock_delivery.cli.plan"),
}
