"""A crew of one program: writes a module and its test for each task, passes all, and keeps a log.

Started by `interlock deliver` as a process. The log, named by its only word, says who was asked
what: a line for each process.
"""

import os
import sys
from pathlib import Path


def main(log: str) -> str:
    role, task = os.environ["INTERLOCK_ROLE"], os.environ["INTERLOCK_CASE_ID"]
    dispatch, step = os.environ["INTERLOCK_DISPATCH_ID"], os.environ["INTERLOCK_STEP"]
    with Path(log).open("a") as file:
        file.write(f"{dispatch} {task} {step}\n")
    sys.stdin.read()
    match role:
        case "developer":
            Path(f"{task}.py").write_text(f"def {task}():\n    return 1\n")
            Path(f"test_{task}.py").write_text(
                f"import unittest\n\nimport {task}\n\n\nclass It(unittest.TestCase):\n"
                f"    def test_it(self):\n        self.assertEqual({task}.{task}(), 1)\n"
            )
            return f"READY_FOR_REVIEW: {task}\n\nFiles Modified:\n- {task}.py: new\n"
        case "critic":
            return f"REVIEW_PASSED: {task}\n\nFiles Reviewed:\n- {task}.py\n"
        case _:
            return f"AUDIT_PASSED: {task}\n\nVerification Results:\n- all: VERIFIED - test\n"


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
