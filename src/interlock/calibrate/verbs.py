"""The verbs that measure agents."""

from interlock.cli.verbs import Verb

VERBS = {
    "calibrate": Verb(
        "Main jobs",
        "Measure an agent against failures whose causes are known.",
        "interlock.cli.calibrate",
    ),
    "tune": Verb(
        "Results",
        "Try other thresholds on recorded calibrations.",
        "interlock.cli.calibrate",
        "interlock calibrate",
    ),
}
