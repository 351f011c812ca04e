"""The text signals: seed 002's nineteen and `unknown`, one row each.

Knows names, bodies, roles and ranks. Refuses to know any parser. It is longer than other files
because the table stays in one piece: a template is the seed's own form, to the letter, and the
sections of a signal are the labels of its template.
"""

from typing import Any, Final

from interlock.signals.columns import (
    ANALYST,
    AUDITOR,
    BASELINE,
    CREATOR,
    CRITIC,
    DEVELOPER,
    EXPERT,
    HEALTH,
    REMEDIATION,
    WORKING,
    SignalRow,
)
from interlock.signals.template import sections_of


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


ROWS: Final = (
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
