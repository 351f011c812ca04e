"""The file protocol: every status of seeds 000 and 001, with the fields of its file.

Knows fields, statuses, who writes them and which may follow. Refuses to know any code.
"""

from typing import Final

from interlock.signals.columns import COORDINATOR, RESPONDER, SignalField, SignalRow

SIGNAL_STATUSES: Final = ("waiting", "processing", "done", "error")
BATCH_STATUSES: Final = ("pending", "in_progress", "done", "error")
ENTRY_STATUSES: Final = ("pending", "claimed", "done", "error")
PHASES: Final = ("triage", "investigation", "single")

SIGNAL_FIELDS: Final = (
    SignalField("status", "choice", SIGNAL_STATUSES, required=True),
    SignalField("dispatch_id", "int64", required=True),
    SignalField("case_id", "text", required=True),
    SignalField("step", "text", required=True),
    SignalField("prompt_path", "path", required=True),
    SignalField("artifact_path", "path", required=True),
    SignalField("timestamp", "timestamp", required=True),
    SignalField("error", "text", required=True),
)
BATCH_FIELDS: Final = (
    SignalField("batch_id", "int64", required=True),
    SignalField("status", "choice", BATCH_STATUSES, required=True),
    SignalField("phase", "choice", PHASES, required=True),
    SignalField("created_at", "timestamp", required=True),
    SignalField("updated_at", "timestamp", required=True),
    SignalField("total", "number", required=True),
    SignalField("briefing_path", "path", required=True),
    SignalField("signals", "text", required=True),
)
ENTRY_FIELDS: Final = (
    SignalField("case_id", "text", required=True),
    SignalField("signal_path", "path", required=True),
    SignalField("status", "choice", ENTRY_STATUSES, required=True),
)


def _status(
    file: str, status: str, roles: tuple[str, ...], then: tuple[str, ...], asks: str
) -> SignalRow:
    fields = {"signal": SIGNAL_FIELDS, "batch": BATCH_FIELDS, "entry": ENTRY_FIELDS}[file]
    return SignalRow(
        name=f"{file}:{status}",
        protocol="file",
        asks=asks,
        roles=roles,
        payload=fields,
        template=f'"status": "{status}"',
        terminal=status in ("done", "error"),
        passing=status == "done",
        then=then,
    )


ROWS: Final = (
    _status(
        "signal",
        "waiting",
        (COORDINATOR,),
        ("processing", "error", "waiting"),
        "Read the prompt, write the wrapped artifact with this dispatch_id.",
    ),
    _status(
        *("signal", "processing", (COORDINATOR,), ("done", "error")),
        "Nothing: the artifact was taken; `error` follows if it does not fit the step.",
    ),
    _status("signal", "done", (COORDINATOR,), ("waiting",), "Nothing: wait for the next signal."),
    _status(
        "signal",
        "error",
        (COORDINATOR, RESPONDER),
        ("waiting",),
        "Fail this dispatch at once with the message; a retry comes with a new dispatch_id.",
    ),
    _status(
        "batch",
        "pending",
        (COORDINATOR,),
        ("in_progress", "done", "error"),
        "Read the briefing and answer every pending signal of the list.",
    ),
    _status(
        "batch",
        "in_progress",
        (RESPONDER,),
        ("done", "error"),
        "Nothing: a responder is at work on the batch.",
    ),
    _status("batch", "done", (COORDINATOR,), (), "Nothing: every signal is settled."),
    _status(
        "batch", "error", (COORDINATOR,), (), "Nothing: all signals failed or the deadline passed."
    ),
    _status(
        "entry",
        "pending",
        (COORDINATOR,),
        ("claimed", "done", "error"),
        "Answer the signal at signal_path.",
    ),
    _status("entry", "claimed", (RESPONDER,), ("done", "error"), "Nothing: a worker has taken it."),
    _status("entry", "done", (COORDINATOR, RESPONDER), (), "Nothing: its artifact is there."),
    _status("entry", "error", (COORDINATOR, RESPONDER), (), "Put the case into a later batch."),
)
