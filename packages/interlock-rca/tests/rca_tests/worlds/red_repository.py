"""Red test results for the command line: JUnit as runners write it, and answers that fit a case."""

from typing import Any
from xml.sax.saxutils import quoteattr

F0, F1, F2, F3 = "F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE"
F4, F5, F6 = "F4_CORRELATE", "F5_REVIEW", "F6_REPORT"
MISS = {"match": False, "confidence": 0.1, "reasoning": "nothing like it"}
TRIAGE: dict[str, Any] = {
    "symptom_category": "product",
    "severity": "high",
    "defect_type_hypothesis": "pb001",
    "candidate_repos": [],
    "skip_investigation": False,
}
PLACE = {"selected_repos": [{"name": "app", "reason": "its stack"}]}
CAUSE: dict[str, Any] = {
    "rca_message": "Cart.total() in cart.py drops the last line of the basket",
    "defect_type": "pb001",
    "component": "cart",
    "convergence_score": 0.9,
    "evidence_refs": ["log:1"],
}
ALONE = {"is_duplicate": False, "confidence": 0.1}
APPROVE = {"decision": "approve"}
DRAFT = {"summary": "The basket loses its last line", "defect_type": "pb001"}
PLAIN = {F0: MISS, F1: TRIAGE, F2: PLACE, F3: CAUSE, F4: ALONE, F5: APPROVE, F6: DRAFT}


def red(name: str, message: str, place: str = "shop.Cart") -> str:
    """A failed test."""
    file = place.replace(".", "/")
    stack = f'Traceback:\n  File "{file}.py", line 7, in {name}\n{message}'
    result = f"<failure message={quoteattr(message)}>{stack}</failure>"
    return f"<testcase classname={quoteattr(place)} name={quoteattr(name)}>{result}</testcase>"


def junit(*cases: str, name: str = "nightly") -> str:
    """A report of these and one test that passed."""
    passed = '<testcase classname="shop.Menu" name="opens"/>'
    head = f'<testsuite name={quoteattr(name)} tests="{len(cases) + 1}" failures="{len(cases)}">'
    return f"{head}{''.join(cases)}{passed}</testsuite>"


KEY, KEY_TOO = red("one", "KeyError: no total"), red("two", "KeyError: no total")
TYPE = red("pays", "TypeError: a card is no number", "pay.Card")
DISK = red("boots", "OSError: disk of the node is full", "env.Node")
