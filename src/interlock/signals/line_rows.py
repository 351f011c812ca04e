"""The line signals: seed 004's twenty rows.

Knows types, payload fields and what each asks. Refuses to know any code.
A field is `required` where a line without it is refused; the last field takes the rest of the line.
"""

from typing import Final

from interlock.signals.columns import COORDINATOR, SESSION, SignalField, SignalRow

PREFIX: Final = "SAGE_SIGNAL:"
_ISSUE: Final = (SignalField("issue", "number"),)
_CLAIMED_ISSUE: Final = (SignalField("issue", "number", required=True),)
_ERROR: Final = (
    SignalField(
        "error_code",
        "choice",
        (
            "NO_CHECKPOINT",
            "CHECKPOINT_CORRUPT",
            "GIT_STATE_MISMATCH",
            "GITHUB_AUTH_FAILED",
            "SUBAGENT_FAILED",
            "MAX_RETRIES_EXCEEDED",
        ),
    ),
    SignalField("message", "text"),
)


def _line(name: str, asks: str, *payload: SignalField, **columns: bool) -> SignalRow:
    shown = "".join(
        f":issue:{{{f.name}_number}}" if f.kind == "number" else f":{{{f.name}}}" for f in payload
    )
    return SignalRow(
        name=name,
        protocol="line",
        asks=asks,
        roles=(SESSION,) if not name.startswith("HITL_") else (SESSION, COORDINATOR),
        payload=payload,
        template=f"{PREFIX}{name}{shown}",
        terminal=columns.get("terminal", False),
        passing=columns.get("passing", False),
    )


ROWS: Final = (
    _line(
        "CHECKPOINT:WRITE",
        "End this session cleanly and start a fresh one that resumes from the checkpoint.",
        SignalField("epic_id", required=True),
        SignalField("story_id", required=True),
        SignalField("phase", required=True),
        SignalField("task", "text", required=True),
        terminal=True,
    ),
    _line(
        "CHECKPOINT:LOADED",
        "Note that the checkpoint was loaded.",
        SignalField("epic_id"),
        SignalField("story_id"),
    ),
    _line("CHECKPOINT:MISSING", "Note that there is no checkpoint to resume from."),
    _line("HITL_REQUIRED", "Wait for a human answer: on the issue, or in the inbox.", *_ISSUE),
    _line("HITL_WAITING", "Note that a human answer is awaited.", *_ISSUE),
    _line("HITL_APPROVED", "Journal the claim; only the inbox or issue approves.", *_CLAIMED_ISSUE),
    _line("HITL_REVISE", "Journal the claim; only the inbox or issue decides.", *_CLAIMED_ISSUE),
    _line("HITL_DISCUSS", "Journal the claim; only the inbox or issue decides.", *_CLAIMED_ISSUE),
    _line("HITL_HALT", "Journal the claim; only the inbox or issue decides.", *_CLAIMED_ISSUE),
    _line(
        "HITL_TIMEOUT", "Journal the claim; only the coordinator's clock decides.", *_CLAIMED_ISSUE
    ),
    _line("EPIC_STARTED", "Note that the epic has started.", SignalField("epic_id")),
    _line(
        "EPIC_COMPLETE",
        "Stop; the epic succeeded only when the status is success.",
        SignalField("epic_id"),
        SignalField("status", "choice", ("success", "partial")),
        terminal=True,
        passing=True,
    ),
    _line("STORY_STARTED", "Note that the story has started.", SignalField("story_id")),
    _line(
        "STORY_COMPLETE",
        "Note that the story has finished.",
        SignalField("story_id"),
        SignalField("status", "text"),
    ),
    _line(
        "PHASE_TRANSITION",
        "Note the change of phase.",
        SignalField("from_phase"),
        SignalField("to_phase", "text"),
    ),
    _line("RECOVERY_STARTED", "Note that recovery has begun.", SignalField("reason", "text")),
    _line("RECOVERY_COMPLETE", "Note where recovery ended.", SignalField("commit_hash", "text")),
    _line("RECOVERY_FAILED", "Stop and show the error to a human.", SignalField("error", "text")),
    _line("FATAL_ERROR", "Stop, keep the state, do not restart.", *_ERROR, terminal=True),
    _line("RECOVERABLE_ERROR", "Retry within the limit.", *_ERROR),
)
