"""Deliveries for reports: a small one, a hostile one, a large one."""

from typing import Any

from interlock_delivery.checks.claims import AgentClaim, ClaimComparison
from interlock_delivery.report.records import (
    AgentStatement,
    CheckEvidence,
    DeliveryReport,
    Move,
    NeedsHuman,
    TaskReport,
)

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> [a](javascript:b) | \x1b[2J"
    "\u202e`x` ``` ~~~ # @all {{ 7*7 }} {% raw %} \ud800"
)


def move(step: str = "CHECK", **more: Any) -> Move:
    facts = {
        "at": 100.0,
        "seconds": 2.0,
        "step": step,
        "attempt": 1,
        "role": "checks",
        "agent": "interlock",
        "signal": "artifact",
        "rule": "failing",
        "to": "IMPLEMENT",
    }
    return Move(**{**facts, **more})


def proof(stage: str, *, passed: bool = True, **more: Any) -> CheckEvidence:
    facts = {"attempt": 1, "check": "Tests", "environment": "native", "exit_code": int(not passed)}
    return CheckEvidence(stage=stage, passed=passed, **{**facts, **more})


def make_statement(found: Any, check: str = "Tests") -> AgentStatement:
    claim = AgentClaim(check, "native", "pass", found, "it said pass")
    return AgentStatement(agent="claude", role="developer", step="CHECK", attempt=1, claim=claim)


def make_report(word: str = "complete", text: str = "", **more: Any) -> TaskReport:
    """A task with all there is, and with that text everywhere a text can stand."""
    facts: dict[str, Any] = {
        "task_id": f"1-1{text}",
        "title": f"Add it{text}",
        "phase": f"1{text}",
        "word": word,
        "end": {"complete": "COMPLETE", "failed": "FAILED"}.get(word, ""),
        "step": "CHECK",
        "why": f"so it is{text}",
        "attempts": 2,
        "checks": 2,
        "passed": 1,
        "question": f"Which{text}?" * (word == "asks"),
        "question_id": 7 * (word == "asks"),
        "author": f"claude{text}",
        "summary": f"Wrote it{text}",
        "changed": (f"a.py{text}",),
        "commit": "a" * 40 if word == "complete" else "",
        "tree": f"/home/x{text}",
        "moves": (move(), move(said=f"bad{text}", why=f"why{text}", refused=(f"Stale{text}",))),
        "proofs": (
            proof("baseline", check=f"Tests{text}"),
            proof("check", passed=False, output=f"boom{text}", check=f"Tests{text}", tests=3),
        ),
        "claims": (
            make_statement("verified"),
            make_statement("refuted", f"Lint{text}"),
            make_statement("unchecked"),
        ),
        "weakened_tests": (f"a.py:1: a print{text}",),
        "violations": (f"moved main{text}",),
        "tokens": 1200,
        "money": 0.5,
        "seconds": 75.0,
    }
    return TaskReport(**{**facts, **more})


def delivered(*tasks: TaskReport, text: str = "", **more: Any) -> DeliveryReport:
    facts: dict[str, Any] = {
        "run_id": 3,
        "title": f"Calculator{text}",
        "outcome": "PARTIAL",
        "plan": f"/p/plan.md{text}",
        "source": f"/p{text}",
        "branch": "interlock/plan",
        "base": "b" * 40,
        "home": f"/p/.interlock/delivery/plan{text}",
        "made_at": 1_700_000_000.0,
        "began": 1_699_999_000.0,
        "dispatches": 12,
        "tokens": 5000,
        "money": 1.5,
        "seconds": 3700.0,
        "tasks": tasks,
        "accounts": (ClaimComparison(f"claude{text}", "developer", 4, 2, 1, 1),),
        "needs": (
            NeedsHuman(task_id=f"1-1{text}", sentence=f"why{text}", commands=("interlock inbox",)),
        ),
        "notes": (f"a note{text}",),
    }
    return DeliveryReport(**{**facts, **more})


def example() -> DeliveryReport:
    words = ("complete", "failed", "asks", "blocked", "at work", "waits")
    tasks = [make_report(word, task_id=f"t-{at}") for at, word in enumerate(words)]
    return delivered(*tasks)


def hostile() -> DeliveryReport:
    return delivered(make_report("failed", HOSTILE), make_report("asks", HOSTILE), text=HOSTILE)


def many(number: int) -> DeliveryReport:
    return delivered(*(make_report(task_id=f"t{at}") for at in range(number)))
