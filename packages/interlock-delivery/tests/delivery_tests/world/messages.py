"""What agents of a delivery say: one function for each signal that tests need, whole and legal.

Knows the words alone. What an agent does before it speaks is a test's own affair.
"""


def question(task: str, text: str = "Which one?") -> str:
    return f"SEEKING_DIVINE_CLARIFICATION\n\nTask: {task}\n\nQuestion: {text}\n"


def incomplete(task: str, category: str = "") -> str:
    named = f"Category: {category}\n" if category else ""
    return f"TASK_INCOMPLETE: {task}\n\nBlocker: it cannot go on\n{named}"


def blocked(task: str) -> str:
    return f"INFRA_BLOCKED: {task}\n\nIssue: the tools are broken\nCommand: tool\nOutput: no\n"


def audit_blocked(task: str) -> str:
    return f"AUDIT_BLOCKED: {task}\n\nPre-existing Failures:\n- the tools are broken\n"


def review_failed(task: str, issue: str) -> str:
    return (
        f"REVIEW_FAILED: {task}\n\nFiles Reviewed:\n- calc.py\n\nIssues Found:\n- {issue}\n\n"
        f"Required Fixes:\n- mend {issue}\n"
    )


def audit_failed(task: str, issue: str) -> str:
    return f"AUDIT_FAILED: {task}\n\nFailed Criteria:\n- {issue}: FAILED - not there\n"


def repaired(matrix: str = "- Unit Tests: PASS") -> str:
    return (
        "REMEDIATION_COMPLETE\n\nIssues Fixed:\n- tools: mended\n\n"
        f"Verification Results:\n{matrix}\n"
    )


def healthy() -> str:
    return (
        "HEALTH_AUDIT: HEALTHY\n\nVerification Results:\n- Unit Tests (native): PASS\n\n"
        "All checks pass in all environments.\n"
    )


def unhealthy() -> str:
    return "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- Unit Tests (native): FAIL\n"


def expanded(task: str, confidence: str = "HIGH") -> str:
    return (
        f"EXPANDED_TASK_SPECIFICATION: {task}\nConfidence: {confidence}\n\n"
        "Expanded Specification:\nA function of two numbers in calc.py.\n\n"
        "Acceptance Criteria:\n- [ ] calc has it\n"
    )


def expert_request(name: str, prompt: str = "How shall it be done?") -> str:
    return (
        f"EXPERT_REQUEST\nTarget Agent: {name}\nRequest Type: decision\n\n"
        f"---DELEGATION PROMPT START---\n{prompt}\n---DELEGATION PROMPT END---\n"
    )


def advice(request: str, text: str = "Subtract the second from the first.") -> str:
    return f"EXPERT_ADVICE: {request}\n\nRecommendation:\n{text}\n"


def no_advice(request: str) -> str:
    return f"EXPERT_UNSUCCESSFUL: {request}\n\nReason: nobody knows\n"


def created(name: str, file: str) -> str:
    return f"EXPERT_CREATED: {name}\n\nGap Filled: numbers\nFile: {file}\n"


def conflict(path: str, can_wait: str = "YES", holder: str = "UNKNOWN") -> str:
    return (
        f"FILE CONFLICT: {path}\n\nAssigned To: {holder}\nI Need To: change it\n"
        f"Can Wait: {can_wait}\n"
    )


def progress(task: str) -> str:
    return f"CHECKPOINT: {task}\n\nProgress: half\n"
