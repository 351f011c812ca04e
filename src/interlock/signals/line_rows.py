"""The line signals: seed 004's twenty rows.

Knows types, payload fields and what each asks. Refuses to know any code.
A field is `required` where a line without it is refused; the last field takes the rest of the line.
"""

from typing import Final

from interlock.signals.columns import COORDINATOR, SESSION, Field, Row

PREFIX: Final = "SAGE_SIGNAL:"
_ISSUE: Final = (Field("issue", "number"),)
_CLAIMED_ISSUE: Final = (Field("issue", "number", required=True),)
_ERROR: Final = (
    Field(
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
    Field("message", "text"),
)


def _line(name: str, asks: str, *payload: Field, **columns: bool) -> Row:
    shown = "".join(
        f":issue:{{{f.name}_number}}" if f.kind == "number" else f":{{{f.name}}}" for f in payload
    )
    return Row(
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
        Field("epic_id", required=True),
        Field("story_id", required=True),
        Field("phase", required=True),
        Field("task", "text", required=True),
        terminal=True,
    ),
    _line(
        "CHECKPOINT:LOADED",
        "Note that the checkpoint was loaded.",
        Field("epic_id"),
        Field("story_id"),
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
    _line("EPIC_STARTED", "Note that the epic has started.", Field("epic_id")),
    _line(
        "EPIC_COMPLETE",
        "Stop; the epic succeeded only when the status is success.",
        Field("epic_id"),
        Field("status", "choice", ("success", "partial")),
        terminal=True,
        passing=True,
    ),
    _line("STORY_STARTED", "Note that the story has started.", Field("story_id")),
    _line(
        "STORY_COMPLETE",
        "Note that the story has finished.",
        Field("story_id"),
        Field("status", "text"),
    ),
    _line(
        "PHASE_TRANSITION",
        "Note the change of phase.",
        Field("from_phase"),
        Field("to_phase", "text"),
    ),
    _line("RECOVERY_STARTED", "Note that recovery has begun.", Field("reason", "text")),
    _line("RECOVERY_COMPLETE", "Note where recovery ended.", Field("commit_hash", "text")),
    _line("RECOVERY_FAILED", "Stop and show the error to a human.", Field("error", "text")),
    _line("FATAL_ERROR", "Stop, keep the state, do not restart.", *_ERROR, terminal=True),
    _line("RECOVERABLE_ERROR", "Retry within the limit.", *_ERROR),
)
