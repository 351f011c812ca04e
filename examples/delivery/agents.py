"""Agents without a model: they play every role of a delivery, with real edits and real mistakes.

Interlock starts this in the tree of a task, with the prompt on stdin and who it is in the
environment. It decides from what it sees there alone: started again, it does the same.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TASK = os.environ.get("INTERLOCK_CASE_ID", "")
ROLE = os.environ.get("INTERLOCK_ROLE", "")

FUNCTIONS = {
    "discount": '''def discount(cents, percent):
    """That many percent less, rounded down to whole cents."""
    return cents * (100 - percent) // 100
''',
    "tax": '''def tax(cents, percent):
    """The tax on an amount, rounded down to whole cents."""
    return cents * percent // 100
''',
}
MODULES = {
    "change": '''"""What a customer gets back."""


def change(paid, due):
    """How much is given back; ValueError for who pays too little."""
    if paid < due:
        raise ValueError(f"{due - paid} cents are missing")
    return paid - due
''',
    "receipt": '''"""Receipts."""

from till import prices as till


def money(cents):
    return f"{cents // 100}.{cents % 100:02}"


def receipt(prices, percent):
    """A line for each price, one for the tax, one for the sum."""
    tax = till.tax(till.total(prices), percent)
    lines = [f"item {money(each)}" for each in prices]
    return "\\n".join([*lines, f"tax {money(tax)}", f"sum {money(till.total(prices) + tax)}"])
''',
    "report": '''"""The day in one line."""

from till.receipt import money


def report(receipts):
    """How many receipts, and what they come to."""
    return f"{len(receipts)} receipts, {money(sum(receipts))}"
''',
}
SHOWN = {
    "discount": ("prices", "discount(1000, 10), 900", "discount(999, 50), 499"),
    "tax": ("prices", "tax(1000, 20), 200", "tax(99, 7), 6"),
    "change": ("change", "change(1000, 750), 250"),
    "receipt": ("receipt", 'receipt([1000], 20).split("\\n")[-1], "sum 12.00"'),
    "report": ("report", 'report([1200, 300]), "2 receipts, 15.00"'),
}


def test_of(task: str) -> str:
    module, *facts = SHOWN[task]
    asserts = "".join(f"        self.assertEqual({module}.{fact})\n" for fact in facts)
    return (
        f'"""{task}."""\n\nimport unittest\n\nfrom till import {module}\n\n\n'
        f"class {task.title()}(unittest.TestCase):\n    def test_{task}(self):\n{asserts}"
    )


def runs(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def developer(prompt: str) -> str:
    if TASK == "change" and not runs(sys.executable, "tools/style.py"):
        return (
            f"INFRA_BLOCKED: {TASK}\n\nIssue: the style check cannot even start\n"
            "Command: python3 tools/style.py\nOutput: FileNotFoundError: tools/limit.txt\n"
        )
    if TASK in FUNCTIONS:
        write_function()
    elif TASK in MODULES:
        Path(f"till/{TASK}.py").write_text(MODULES[TASK])
    else:
        names = [name for name in ("total", *SHOWN) if name != "readme"]
        Path("README.md").write_text("# Till\n\n" + "".join(f"- `{each}`\n" for each in names))
    if TASK in SHOWN:
        place, test = Path(f"tests/test_{TASK}.py"), test_of(TASK)
        if TASK == "tax" and not place.exists():
            test = test.replace("200)", "201)")  # it fails, and it is said to pass
        if TASK == "receipt" and "say what it shows" in prompt:
            test = test.replace('"""receipt."""', '"""Receipts end with their sum."""')
        place.write_text(test)
    return (
        f"READY_FOR_REVIEW: {TASK}\n\nFiles Modified:\n{changed_files()}\n\n"
        "Verification Results (self-verified):\n- Tests: PASS (native)\n- Style: PASS (native)\n\n"
        "Summary: it is there, and a test shows it\n"
    )


def write_function() -> None:
    """Into the module that several write to; where it clashes, theirs stays and ours is added."""
    place = Path("till/prices.py")
    if "<<<<<<<" in place.read_text():
        subprocess.run(["git", "checkout", "--quiet", "--", str(place)], check=True)
    head, *functions = place.read_text().split("\n\n\n")
    ours = FUNCTIONS[TASK].rstrip("\n")
    others = [each.rstrip("\n") for each in functions if each.rstrip("\n") != ours]
    place.write_text("\n\n\n".join([head, *sorted([*others, ours])]) + "\n")


def changed_files() -> str:
    said = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return "\n".join(f"- {line[3:]}: for {TASK}" for line in said.splitlines()) or "- none"


def critic(prompt: str) -> str:
    if TASK == "receipt" and '"""receipt."""' in Path("tests/test_receipt.py").read_text():
        return (
            f"REVIEW_FAILED: {TASK}\n\nFiles Reviewed:\n- tests/test_receipt.py\n\n"
            "Issues Found:\n- tests/test_receipt.py:1: the docstring repeats the name\n\n"
            "Required Fixes:\n- say what it shows\n\nPriority: LOW\n"
        )
    return f"REVIEW_PASSED: {TASK}\n\nFiles Reviewed:\n- all that changed\n\nSummary: clear\n"


def auditor(prompt: str) -> str:
    passed = runs(sys.executable, "-m", "unittest")
    if not passed:
        return f"AUDIT_FAILED: {TASK}\n\nFailed Criteria:\n- tests: FAILED - they do not pass\n"
    return (
        f"AUDIT_PASSED: {TASK}\n\nVerification Results:\n- criteria: VERIFIED - tests show them\n\n"
        "Commands Executed:\n- Tests (native): PASS\n\nSummary: as asked for\n"
    )


def analyst(prompt: str) -> str:
    return (
        f"EXPANDED_TASK_SPECIFICATION: {TASK}\nConfidence: HIGH\n\n"
        "Expanded Specification:\nREADME.md has a title and a list with one line for each function "
        "of the package till.\n\nAcceptance Criteria:\n- [ ] README.md names `receipt`\n"
    )


def remediation(prompt: str) -> str:
    Path("tools/limit.txt").write_text("100\n")
    return (
        "REMEDIATION_COMPLETE\n\nIssues Fixed:\n- style check: its limit was never committed\n\n"
        "Verification Results:\n- Style: PASS\n\nAll infrastructure issues resolved.\n"
    )


def health_auditor(prompt: str) -> str:
    if not runs(sys.executable, "tools/style.py"):
        return "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- Style (native): FAIL\n"
    return (
        "HEALTH_AUDIT: HEALTHY\n\nVerification Results:\n- Style (native): PASS\n\n"
        "All checks pass in all environments.\n"
    )


ROLES: dict[str, Callable[[str], str]] = {
    "developer": developer,
    "critic": critic,
    "auditor": auditor,
    "business-analyst": analyst,
    "remediation": remediation,
    "health-auditor": health_auditor,
}


if __name__ == "__main__":
    if ROLE not in ROLES:
        sys.exit(f"nobody here plays {ROLE or 'a role'}: interlock starts this")
    sys.stdout.write(ROLES[ROLE](sys.stdin.read()))
