"""Developers, critics and auditors for `exec`: what they do follows from role and task alone.

A task called `lies` gets a test that fails, `asks` first asks a human, `halts` is blocked for good,
`waits` is begun when a file `go` lies beside the plan. All others are well made.
"""

import os
import sys
import time
from pathlib import Path

TASK = os.environ["INTERLOCK_CASE_ID"]
GO = Path(__file__).resolve().with_name("go")
QUESTION = f"""SEEKING_DIVINE_CLARIFICATION

Task: {TASK}
Agent: developer
Question: Which sign <b>shall</b> it have?
"""
READY = f"""READY_FOR_REVIEW: {TASK}

Files Modified:
- {TASK}.py: a function
- other.py: a thing

Verification Results (self-verified):
- Unit Tests: PASS (native)

Summary: Wrote {TASK} <script>alert(1)</script> and its test
"""
REVIEWED = f"REVIEW_PASSED: {TASK}\n\nFiles Reviewed:\n- {TASK}.py\n\nSummary: well made\n"
AUDITED = f"""AUDIT_PASSED: {TASK}

Verification Results:
- it works: VERIFIED - a test shows it

Commands Executed:
- Unit Tests (native): PASS

Summary: all of it
"""


def develop(prompt: str) -> str:
    if TASK == "asks" and "a plus it is" not in prompt:
        return QUESTION
    while TASK == "waits" and not GO.exists():
        time.sleep(0.01)
    expected = 3 if TASK == "lies" else 2
    Path(f"{TASK}.py").write_text(f"def {TASK}(a, b):\n    return a - b\n", encoding="utf-8")
    Path(f"test_{TASK}.py").write_text(
        f"import unittest\n\nfrom {TASK} import {TASK}\n\n\nclass Of(unittest.TestCase):\n"
        f"    def test_it(self):\n        self.assertEqual({TASK}(3, 1), {expected})\n",
        encoding="utf-8",
    )
    return READY


def main() -> None:
    prompt = sys.stdin.read()
    role = os.environ["INTERLOCK_ROLE"]
    result = develop(prompt) if role == "developer" else AUDITED if role == "auditor" else REVIEWED
    sys.stdout.write(result)


if __name__ == "__main__":
    main()
