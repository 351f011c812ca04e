"""One example of each protocol file, as pages and skills show them.

Knows values that look real. Refuses to know how they are laid out: the encoders write them.
"""

from typing import Final

from interlock.signals.batch import new_manifest
from interlock.signals.signal_file import Artifact, SignalFile

EXAMPLE_SIGNAL: Final = SignalFile(
    status="waiting",
    dispatch_id=1,
    case_id="C1",
    step="F0_RECALL",
    prompt_path="/absolute/path/to/prompt-recall.md",
    artifact_path="/absolute/path/to/recall-result.json",
    timestamp="2026-02-16T12:00:00Z",
)
EXAMPLE_ARTIFACT: Final = Artifact(
    1,
    {
        "match": True,
        "confidence": 0.95,
        "reasoning": "Error pattern matches known symptom S1.",
    },
)
EXAMPLE_MANIFEST: Final = new_manifest(
    1,
    "triage",
    "2026-02-17T10:00:00Z",
    ".asterisk/calibrate/1001/briefing.md",
    {
        "C1": ".asterisk/calibrate/1001/101/signal.json",
        "C2": ".asterisk/calibrate/1001/102/signal.json",
    },
)
