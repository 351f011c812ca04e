"""The one table of every signal, and the questions that are asked of it.

Knows how to find a row and what a role may say. Refuses to know how anything is parsed: parsers,
schemas, pages and prompts are made from here.

The columns of the signal catalogue, and the roles its rows name.

Knows what can be said of a signal. Refuses to know any signal: the rows stand in text_rows,
line_rows and file_rows.

From a signal's template to its sections.

Knows what the labels of seed 002 hold. Refuses to know messages: see body for those.

The text signals: seed 002's nineteen and `unknown`, one row each.

Knows names, bodies, roles and ranks. Refuses to know any parser. It is longer than other files
because the table stays in one piece: a template is the seed's own form, to the letter, and the
sections of a signal are the labels of its template.

The line signals: seed 004's twenty rows.

Knows types, payload fields and what each asks. Refuses to know any code.
A field is `required` where a line without it is refused; the last field takes the rest of the line.

The file protocol: every status of seeds 000 and 001, with the fields of its file.

Knows fields, statuses, who writes them and which may follow. Refuses to know any code.
"""

import re
from functools import cache
from typing import Any, Final, Literal

import msgspec

Protocol = Literal["text", "line", "file"]
Subject = Literal["task", "request", "expert", "path"]
SectionKind = Literal[
    "text", "list", "files", "issues", "checks", "criteria", "pairs", "names", "name", "choice"
]
FieldKind = Literal["id", "text", "number", "choice", "int64", "path", "timestamp"]

DEVELOPER: Final = "developer"
CRITIC: Final = "critic"
AUDITOR: Final = "auditor"
ANALYST: Final = "business-analyst"
REMEDIATION: Final = "remediation"
HEALTH: Final = "health-auditor"
EXPERT: Final = "expert"
CREATOR: Final = "expert-creator"
BASELINE: Final = (DEVELOPER, CRITIC, AUDITOR, ANALYST, REMEDIATION, HEALTH)
WORKING: Final = (*BASELINE, EXPERT, CREATOR)
COORDINATOR: Final = "coordinator"
RESPONDER: Final = "responder"
SESSION: Final = "session"


class Section(msgspec.Struct, frozen=True):
    """One labelled part of a text signal's body."""

    label: str
    kind: SectionKind = "text"
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.label.lower().replace(" ", "_").replace("-", "_")


class SignalField(msgspec.Struct, frozen=True):
    """One field of a line signal's payload or of a protocol file."""

    name: str
    kind: FieldKind = "id"
    choices: tuple[str, ...] = ()
    required: bool = False


class SignalRow(msgspec.Struct, frozen=True, kw_only=True):
    """One signal. `template` is the seed's own form of it, to the letter."""

    name: str
    protocol: Protocol
    asks: str
    roles: tuple[str, ...]
    key: str = ""
    handler: str = ""
    subject: Subject | None = None
    payload: tuple[SignalField, ...] = ()
    sections: tuple[Section, ...] = ()
    requires: tuple[tuple[str, ...], ...] = ()
    template: str = ""
    closing: str = ""
    level: int = 5
    terminal: bool = True
    passing: bool = False
    verdict: bool = False
    then: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What stands before the colon: HEALTH_AUDIT for both of its values."""
        return self.name.partition(":")[0]

    @property
    def grammar(self) -> str:
        """The first line in the seeds' notation."""
        return self.template.partition("\n")[0]


# What a label's list or line holds; a label that is not here is plain text.
_KINDS: Final[dict[str, SectionKind]] = {
    "Files Modified": "files",
    "Tests Written": "files",
    "Verification Results": "checks",
    "Commands Executed": "checks",
    "Quality Assessment": "checks",
    "Failed Criteria": "checks",
    "Failed Checks": "checks",
    "Passing Checks": "checks",
    "Issues Found": "issues",
    "Acceptance Criteria": "criteria",
    "Required Fixes": "list",
    "Passing Criteria": "list",
    "Pre-existing Failures": "list",
    "Files Reviewed": "list",
    "Target Files": "list",
    "Rationale": "list",
    "Pitfalls Avoided": "list",
    "Expertise Encoded": "list",
    "Issues Fixed": "pairs",
    "Options Considered": "pairs",
    "Attempts Made": "pairs",
    "Attempts": "pairs",
    "Delegation Triggers": "pairs",
    "Supports": "names",
    "Tasks": "names",
    "Task": "name",
    "Agent": "name",
    "Target Agent": "name",
    "Requesting Agent": "name",
    "Context Snapshot": "name",
    "Assigned To": "name",
    "File": "name",
}
_LABEL: Final = re.compile(r"(?m)^([A-Z][A-Za-z -]*)(?: \([^)]*\))?:(?: (.+))?$")
_CHOICE: Final = re.compile(r"\[([^|\]]+(?: \| [^|\]]+)+)\]$")


def sections_of(template: str, closing: str) -> tuple[Section, ...]:
    """The labelled sections of a signal, in the order of its template."""
    body = template.partition("\n")[2].replace(closing or "\0", "")
    found = [_section(label[1], label[2] or "") for label in _LABEL.finditer(body)]
    if "DELEGATION PROMPT" in template:
        found += [_section("Task", ""), _section("Prompt", "")]
    return tuple(found)


def _section(label: str, sample: str) -> Section:
    choice = _CHOICE.match(sample)
    options = tuple(choice[1].split(" | ")) if choice else ()
    if options and (all(map(str.isupper, options)) or all(map(str.islower, options))):
        return Section(label, "choice", options)
    # A number or a remark in place of the list that other signals have under this label.
    plain = sample == "[count]" or bool(options)
    return Section(label, "text" if plain else _KINDS.get(label, "text"))


def _row(
    name: str,
    key: str,
    handler: str,
    asks: str,
    roles: tuple[str, ...],
    **columns: Any,
) -> SignalRow:
    return SignalRow(
        name=name,
        protocol="text",
        key=key,
        handler=handler,
        asks=asks,
        roles=roles,
        sections=sections_of(columns.get("template", ""), columns.get("closing", "")),
        **columns,
    )


TEXT_ROWS: Final = (
    _row(
        "READY_FOR_REVIEW",
        "ready_for_review",
        "DISPATCH_CRITIC",
        "Check the work, then send it to a critic.",
        (DEVELOPER,),
        subject="task",
        passing=True,
        template="""\
READY_FOR_REVIEW: [task_id]

Files Modified:
- [file1]: [change description]
- [file2]: [change description]

Tests Written:
- [test_file]: [what it tests]

Verification Results (self-verified):
- [check]: PASS ([environment])

Summary: [brief description of implementation]
""",
    ),
    _row(
        "TASK_INCOMPLETE",
        "task_incomplete",
        "LOG_AND_FILL_SLOTS",
        "Log that the task cannot be finished as it stands and give its slot to other work.",
        (DEVELOPER,),
        subject="task",
        requires=(("Blocker",),),
        template="""\
TASK_INCOMPLETE: [task_id]

Blocker: [description of what's missing]
Attempted: [what was tried]
Needed: [what would unblock]
""",
    ),
    _row(
        "INFRA_BLOCKED",
        "infra_blocked",
        "ENTER_REMEDIATION",
        "Hold the suite and repair the infrastructure.",
        (DEVELOPER,),
        subject="task",
        level=1,
        template="""\
INFRA_BLOCKED: [task_id]

Issue: [specific infrastructure problem]
Command: [command that failed]
Output: [error output]
Environment: [which environment]
""",
    ),
    _row(
        "AUDIT_PASSED",
        "audit_passed",
        "MARK_COMPLETE",
        "Mark the task complete and unblock its dependents.",
        (AUDITOR,),
        subject="task",
        passing=True,
        verdict=True,
        requires=(("Verification Results",),),
        template="""\
AUDIT_PASSED: [task_id]

Verification Results:
- [criterion_1]: VERIFIED - [evidence]
- [criterion_2]: VERIFIED - [evidence]

Commands Executed:
- [check] ([env]): PASS
- [check] ([env]): PASS

Summary: [brief conclusion]
""",
    ),
    _row(
        "AUDIT_FAILED",
        "audit_failed",
        "DISPATCH_DEVELOPER_REWORK",
        "Send the issues back to the developer.",
        (AUDITOR,),
        subject="task",
        requires=(("Failed Criteria", "Issues Found", "Required Fixes"),),
        template="""\
AUDIT_FAILED: [task_id]

Failed Criteria:
- [criterion]: FAILED - [reason]

Issues Found:
- [file]:[line]: [issue description]

Required Fixes:
- [concrete action]

Passing Criteria:
- [what passed]
""",
    ),
    _row(
        "AUDIT_BLOCKED",
        "audit_blocked",
        "ENTER_REMEDIATION",
        "Hold the suite and repair what was broken before this task.",
        (AUDITOR,),
        subject="task",
        level=1,
        closing="Cannot proceed with audit until infrastructure is fixed.",
        template="""\
AUDIT_BLOCKED: [task_id]

Pre-existing Failures:
- [failure not caused by this task]

Cannot proceed with audit until infrastructure is fixed.
""",
    ),
    _row(
        "REVIEW_PASSED",
        "review_passed",
        "DISPATCH_AUDITOR",
        "Send the work to an auditor.",
        (CRITIC,),
        subject="task",
        passing=True,
        verdict=True,
        requires=(("Files Reviewed",),),
        template="""\
REVIEW_PASSED: [task_id]

Files Reviewed:
- [file1]
- [file2]

Quality Assessment:
- Code style: COMPLIANT
- Error handling: ADEQUATE
- Naming: CONSISTENT
- Architecture: ALIGNED

Summary: [brief assessment - what was done well]
""",
    ),
    _row(
        "REVIEW_FAILED",
        "review_failed",
        "DISPATCH_DEVELOPER_REWORK",
        "Send the issues back to the developer.",
        (CRITIC,),
        subject="task",
        requires=(("Issues Found", "Required Fixes"),),
        closing=(
            "Developer: Please address all issues above and signal READY_FOR_REVIEW when complete."
        ),
        template="""\
REVIEW_FAILED: [task_id]

Files Reviewed:
- [file1]
- [file2]

Issues Found:
- [file]:[line]: [issue description]
- [file]:[line]: [issue description]

Required Fixes:
- [concrete action]
- [concrete action]

Priority: [HIGH | MEDIUM | LOW]

Developer: Please address all issues above and signal READY_FOR_REVIEW when complete.
""",
    ),
    _row(
        "EXPANDED_TASK_SPECIFICATION",
        "expanded_spec",
        "PROCESS_EXPANSION",
        "Replace the underspecified task by this specification.",
        (ANALYST,),
        subject="task",
        requires=(("Expanded Specification",), ("Acceptance Criteria",)),
        template="""\
EXPANDED_TASK_SPECIFICATION: [task_id]
Confidence: [HIGH | MEDIUM | LOW]

Original: [original description]

Expanded Specification:
[detailed specification]

Acceptance Criteria:
- [ ] [criterion 1]
- [ ] [criterion 2]

Technical Approach:
[recommended approach]

Target Files:
- [file paths]
""",
    ),
    _row(
        "REMEDIATION_COMPLETE",
        "remediation_complete",
        "DISPATCH_HEALTH_AUDITOR",
        "Have a health auditor look at the repaired infrastructure.",
        (REMEDIATION,),
        passing=True,
        closing="All infrastructure issues resolved.",
        template="""\
REMEDIATION_COMPLETE

Issues Fixed:
- [issue]: [fix applied]

Verification Results:
- [check]: PASS

All infrastructure issues resolved.
""",
    ),
    _row(
        "HEALTH_AUDIT: HEALTHY",
        "health_healthy",
        "EXIT_REMEDIATION",
        "Leave remediation and let the suite go on.",
        (HEALTH,),
        passing=True,
        verdict=True,
        requires=(("Verification Results",),),
        closing="All checks pass in all environments.",
        template="""\
HEALTH_AUDIT: HEALTHY

Verification Results:
- [check] ([env]): PASS

All checks pass in all environments.
""",
    ),
    _row(
        "HEALTH_AUDIT: UNHEALTHY",
        "health_unhealthy",
        "RETRY_REMEDIATION",
        "Try remediation again, within its limit.",
        (HEALTH,),
        template="""\
HEALTH_AUDIT: UNHEALTHY

Failed Checks:
- [check] ([env]): FAIL
  Exit: [code]
  Output: [error]

Passing Checks:
- [check] ([env]): PASS
""",
    ),
    _row(
        "SEEKING_DIVINE_CLARIFICATION",
        "divine_clarification",
        "AWAIT_DIVINE_RESPONSE",
        "Put the question to a human and hold this task until it is answered.",
        BASELINE,
        level=2,
        requires=(("Question",),),
        template="""\
SEEKING_DIVINE_CLARIFICATION

Task: [task_id]
Agent: [agent_type]

Question: [specific question for human]

Context:
[relevant background]

Options Considered:
1. [option]: [why insufficient]
2. [option]: [why insufficient]

Attempts Made:
- Self-solve: [N] attempts
- Delegation: [N] attempts (if applicable)

What Would Help:
[specific guidance needed]
""",
    ),
    _row(
        "EXPERT_REQUEST",
        "expert_request",
        "DISPATCH_EXPERT",
        "Ask the named expert and bring the answer back.",
        BASELINE,
        level=3,
        requires=(("Target Agent",), ("Prompt",)),
        template="""\
EXPERT_REQUEST
Target Agent: [agent name]
Request Type: [decision | interpretation | ambiguity | options | validation]
Context Snapshot: [path to snapshot file]

---DELEGATION PROMPT START---
[Agent-generated prompt for expert]
---DELEGATION PROMPT END---
""",
    ),
    _row(
        "EXPERT_ADVICE",
        "expert_advice",
        "DELIVER_TO_REQUESTING_AGENT",
        "Hand the advice to the agent that asked.",
        (EXPERT,),
        subject="request",
        requires=(("Recommendation",),),
        template="""\
EXPERT_ADVICE: [request_id]

Requesting Agent: [who asked]
Task: [which task]
Question: [what was asked]

Recommendation:
[Clear guidance]

Rationale:
- [Why this is correct for this plan]

Pitfalls Avoided:
- [What this recommendation avoids]

Next Steps:
[What the default agent should do]
""",
    ),
    _row(
        "EXPERT_UNSUCCESSFUL",
        "expert_unsuccessful",
        "ESCALATE_TO_DIVINE",
        "Try another expert within the limit, then ask a human.",
        (EXPERT,),
        subject="request",
        template="""\
EXPERT_UNSUCCESSFUL: [request_id]

Requesting Agent: [who asked]
Question: [what was asked]

Attempts:
1. [approach]: [outcome]
2. [approach]: [outcome]
3. [approach]: [outcome]

Reason: [why unable to help]
Recommendation: [escalate to divine intervention]
""",
    ),
    _row(
        "EXPERT_CREATED",
        "expert_created",
        "REGISTER_EXPERT",
        "Register the new expert.",
        (CREATOR,),
        subject="expert",
        requires=(("File",),),
        template="""\
EXPERT_CREATED: [expert_name]

Gap Filled: [description]
Supports: [which default agents]
Tasks: [task IDs]
File: .claude/agents/experts/[expert_name].md

Expertise Encoded:
- [specific to this plan]

Delegation Triggers:
- Developer should ask when: [trigger]
- Auditor should ask when: [trigger]
""",
    ),
    _row(
        "FILE CONFLICT",
        "file_conflict",
        "QUEUE_OR_COORDINATE",
        "Queue the file until it is free, or coordinate a merge when it cannot wait.",
        (DEVELOPER, REMEDIATION),
        subject="path",
        level=4,
        template="""\
FILE CONFLICT: [file_path]

Assigned To: [other_agent_id or UNKNOWN]
I Need To: [description of needed change]
Reason: [why this file must be modified]
Can Wait: [YES | NO]
""",
    ),
    _row(
        "CHECKPOINT",
        "checkpoint",
        "PROCESS_CHECKPOINT",
        "Note the progress; it decides nothing.",
        WORKING,
        subject="task",
        level=6,
        terminal=False,
        template="""\
CHECKPOINT: [task_id]

Progress: [percentage or phase]
Current Activity: [what agent is doing]
Files Modified: [count]
Blockers: [NONE | description]
Estimated Remaining: [description, not time]
""",
    ),
    _row(
        "unknown",
        "unknown",
        "REQUEST_CLARIFICATION",
        "Ask the agent for a legal signal; the third refusal in a row ends the attempt.",
        (),
        level=7,
        terminal=False,
    ),
)


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


LINE_ROWS: Final = (
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


FILE_ROWS: Final = (
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


# Seed 002 and its prompts spell roles in more than one way; these are the same roles.
_ALIASES: Final = {
    "ba": ANALYST,
    "analyst": ANALYST,
    "remediator": REMEDIATION,
    "health": HEALTH,
    "creator": CREATOR,
    "prompt-creator": CREATOR,
    "expert-maker": CREATOR,
    "orchestrator": CREATOR,
    "coordinator": CREATOR,
}

# A transcript may be read without knowing who spoke: then authority is not checked.
ANYONE: Final = "anyone"


@cache
def rows(protocol: Protocol | None = None) -> tuple[SignalRow, ...]:
    table = (*TEXT_ROWS, *LINE_ROWS, *FILE_ROWS)
    return tuple(row for row in table if protocol in (None, row.protocol))


@cache
def _by_name(protocol: Protocol) -> dict[str, SignalRow]:
    return {row.name: row for row in rows(protocol)}


def row_of(protocol: Protocol, name: str) -> SignalRow | None:
    return _by_name(protocol).get(name)


def role_named(role: str) -> str:
    """The catalogue's spelling of a role; an unknown one stays as it is and may say nothing."""
    plain = role.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(plain, plain)


def may_say(role: str, row: SignalRow) -> bool:
    return role in row.roles or role == ANYONE


def legal_for(role: str, protocol: Protocol = "text") -> tuple[SignalRow, ...]:
    role = role_named(role)
    return tuple(row for row in rows(protocol) if row.roles and may_say(role, row))
