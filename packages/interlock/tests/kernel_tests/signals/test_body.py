"""Sections as data, in the layouts agents use."""

from typing import Any

import msgspec
import pytest

from interlock.signals.reading import Accepted
from interlock.signals.text import read_message

FIELDS = [
    (
        "developer",
        (
            "READY_FOR_REVIEW: t1\n\nFiles Modified:\n- src/a.py: new check\n"
            "- `src/b.py` - renamed\n"
            "  over two lines\n\nTests Written:\n* tests/test_a.py: the check\n\n"
            "Verification Results (self-verified):\n- pytest: PASS (ci)\n- ruff (local): PASS\n\n"
            "Summary: all of it\n"
        ),
        {
            "files_modified": [
                {"file": "src/a.py", "note": "new check"},
                {"file": "src/b.py", "note": "renamed over two lines"},
            ],
            "tests_written": [{"file": "tests/test_a.py", "note": "the check"}],
            "verification_results": [
                {"name": "pytest", "status": "PASS", "environment": "ci", "detail": ""},
                {"name": "ruff", "status": "PASS", "environment": "local", "detail": ""},
            ],
            "summary": "all of it",
        },
    ),
    (
        "developer",
        (
            "READY_FOR_REVIEW: t1\n\nVerification Results:\n"
            "| Check | Environment | Exit Code | Result |\n|---|:-:|--:|---|\n"
            "| type check | ci | 0 | PASS |\n| unit tests | mac | -1 | **FAIL** |\n"
        ),
        {
            "verification_results": [
                {"name": "type check", "status": "PASS", "environment": "ci", "detail": "0"},
                {"name": "unit tests", "status": "FAIL", "environment": "mac", "detail": "-1"},
            ]
        },
    ),
    (
        "auditor",
        (
            "AUDIT_FAILED: t1\n\nFailed Criteria:\n- c1: FAILED - no test\n\nIssues Found:\n"
            "- src/a.py:12: bad\n- `src/b.py:7`: worse\n- src/c.py:3:14: column\n- no place\n\n"
            "Required Fixes:\n1. add a test\n2) rename\n\nPassing Criteria:\n- c2\n"
        ),
        {
            "failed_criteria": [
                {"name": "c1", "status": "FAILED", "environment": "", "detail": "no test"}
            ],
            "issues_found": [
                {"text": "bad", "file": "src/a.py", "line": 12},
                {"text": "worse", "file": "src/b.py", "line": 7},
                {"text": "column", "file": "src/c.py", "line": 3},
                {"text": "no place", "file": None, "line": None},
            ],
            "required_fixes": ["add a test", "rename"],
            "passing_criteria": ["c2"],
        },
    ),
    (
        "health-auditor",
        "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- pytest (ci): FAIL\n  Exit: 1\n  Output: x\n",
        {
            "failed_checks": [
                {
                    "name": "pytest",
                    "status": "FAIL",
                    "environment": "ci",
                    "detail": "Exit: 1 Output: x",
                }
            ]
        },
    ),
    (
        "business-analyst",
        (
            "EXPANDED_TASK_SPECIFICATION: t1\nConfidence: high\n\nExpanded Specification:\nDo x,\n"
            "then y.\n\nAcceptance Criteria:\n- [ ] x holds\n- [x] y holds\n\n"
            "Target Files:\n- a.py\n"
        ),
        {
            "confidence": "HIGH",
            "expanded_specification": "Do x,\nthen y.",
            "acceptance_criteria": [
                {"text": "x holds", "done": False},
                {"text": "y holds", "done": True},
            ],
            "target_files": ["a.py"],
        },
    ),
    (
        "developer",
        (
            "SEEKING_DIVINE_CLARIFICATION\n\nTask: t1\nAgent: developer\n\nQuestion: which?\n\n"
            "Context:\n\nTwo tables.\n\nOptions Considered:\n1. one: too slow\n2. two: too big\n"
        ),
        {
            "task": "t1",
            "agent": "developer",
            "question": "which?",
            "context": "Two tables.",
            "options_considered": [
                {"name": "one", "text": "too slow"},
                {"name": "two", "text": "too big"},
            ],
        },
    ),
    (
        "developer",
        "INFRA_BLOCKED: t1\n\nIssue: no disk\nCommand: `make`\nOutput:\n```\nNo space\nleft\n```\n",
        {"issue": "no disk", "command": "`make`", "output": "No space\nleft"},
    ),
    (
        "expert-creator",
        (
            "EXPERT_CREATED: crypto\n\nGap Filled: ciphers\nSupports: developer, auditor\n"
            "Tasks: t1, t2\nFile: `.claude/agents/experts/crypto.md`\n"
        ),
        {
            "gap_filled": "ciphers",
            "supports": ["developer", "auditor"],
            "tasks": ["t1", "t2"],
            "file": ".claude/agents/experts/crypto.md",
        },
    ),
    (
        "developer",
        "FILE CONFLICT: src/a.py\n\nAssigned To: dev-2\nI Need To: rename it\nCan Wait: yes\n",
        {"assigned_to": "dev-2", "i_need_to": "rename it", "can_wait": "YES"},
    ),
    (
        "developer",
        "CHECKPOINT: t1\n\nProgress: 60%\nFiles Modified: 3\nBlockers: a strange one\n",
        {"progress": "60%", "files_modified": "3", "blockers": "a strange one"},
    ),
    (
        "developer",
        "INFRA_BLOCKED: t1\n\nIssue: no disk\n  at all\n\nOutput:\n```\nNo space\nleft\n",
        {"issue": "no disk\nat all", "output": "No space\nleft"},
    ),
    (
        "developer",
        "READY_FOR_REVIEW: t1\n\nSummary: kept\n\nNot kept.\n\n- not kept either\n",
        {"summary": "kept"},
    ),
    (
        "developer",
        "READY_FOR_REVIEW: t1\n\nFiles Modified:\n- [file1]: [change description]\n\nSummary: x\n",
        {"summary": "x"},
    ),
]


@pytest.mark.parametrize(("role", "text", "fields"), FIELDS)
def test_sections_become_data(role: str, text: str, fields: dict[str, Any]) -> None:
    reading = read_message(text, role=role, task_id="t1")
    assert isinstance(reading, Accepted)
    assert msgspec.to_builtins(reading.fields) == fields
