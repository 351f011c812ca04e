"""The verbs that measure agents."""

from interlock.cli.verbs import Verb

VERBS = {
    "calibrate": Verb(
        "Main jobs",
        "Measure an agent against failures whose causes are known.",
        "interlock_calibrate.cli",
    ),
    "tune": Verb(
        "Results",
        "Try other thresholds on recorded calibrations.",
        "interlock_calibrate.cli",
        "interlock calibrate",
    ),
}
