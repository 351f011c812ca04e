"""Build prompts of a task of an invented product, with full and with minimal facts."""

from typing import Any

from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.runtime import prompts
from interlock.runtime.circuits import list_installed_circuits, load_bundle
from interlock_delivery import parameters
from interlock_delivery.checks.records import Check, Environment
from interlock_delivery.plan.plan import Task
from interlock_delivery.task_context import Expert, Point, TaskContext

FENCE = "5e1fc0ffee42"
GATES = ("CLARIFY", "INFRA_GATE")


TASK = Task(
    id="1-2",
    title="Count berths",
    work="Count the free berths of a harbour.\nA berth without a mooring is not free.",
    criteria=("`pytest` exits 0", "`free([])` returns `0`"),
    blocked_by=("1-1",),
    reading=("docs/berths.md",),
    environment="Mac",
    target_files=("harbour/berths.py",),
)
RICH = TaskContext(
    task=TASK,
    fence=FENCE,
    plan="Phase 1: berths",
    commands=(
        Check("tests", ("pytest", "-q"), "Mac"),
        Check("lint", ("ruff", "check", ".")),
    ),
    places=(Environment("Mac", ("as", "it", "is"), "the laptop"),),
    experts=(Expert("tides", "tides and currents", "water moves"),),
    notices=("`berths.py` is free now: task `1-1` is COMPLETE.",),
    guidance=("count them all", "no, only the free ones"),
    feedback=(Point("critic", 1, "berths.py:3: name it"), Point("checks", 2, "tests fails")),
    changed=("harbour/berths.py", "tests/test_berths.py"),
    diff="+def free(berths):\n+    return 0",
    checks=("tests (Mac): passing",),
    weakened_tests=("tests/test_berths.py:2: test_berths is gone",),
    owed=("tests/test_berths.py: test_free is gone",),
    claims=("tests (Mac): said pass, verified",),
    expert="You know the tides.",
    expert_file="experts/tides.md",
    snapshot="The harbour has 12 berths.",
    request_id="r-7",
)
BARE = TaskContext(task=Task(id="1-2"), fence=FENCE)
ANSWERS: dict[str, Any] = {
    "PREPARE": {"ready": True},
    "EXPAND": {"text": "the expanded text", "confidence": "HIGH"},
    "IMPLEMENT": {"text": "the author's words", "target_agent": "tides", "prompt": "how deep?"},
    "CHECK": {"ok": True, "violations": [], "unavailable": ["tests (Mac)"]},
    "REMEDIATE": {"text": "the words of the repair"},
    "HEALTH_CHECK": {"ok": False, "new_failures": ["lint (Mac)"]},
}
CONTEXT: dict[str, Any] = {
    "specification": {"text": "the specification", "confidence": "HIGH"},
    "guidance": {"decision": "answer", "text": "the human's words"},
    "advice": {"text": "the expert's words"},
    "reason": "The agent has a question.",
    "override": True,
}


def delivery() -> Circuit:
    return load_bundle(list_installed_circuits()["delivery"]).open().circuit


CIRCUIT = delivery()
PROMPTED = [name for name, step in CIRCUIT.steps.items() if step.prompt]
SPOKEN = [name for name in PROMPTED if name not in GATES]


def case_at(step: str, **more: Any) -> Case:
    """Return a case that was led to the step from IMPLEMENT, with everything known by then."""
    given = {"answers": ANSWERS, "context": CONTEXT, "stack": ("IMPLEMENT",), "visits": {step: 2}}
    return Case(**{"case_id": "1-2", "step": step, **given, **more})


def made(case: Case, brief: TaskContext) -> dict[str, Any]:
    return parameters.build_parameters(case=case, role=CIRCUIT.steps[case.step].role, context=brief)


def filled(case: Case, brief: TaskContext) -> str:
    return prompts.render_prompt(CIRCUIT, case, made(case, brief))


def outside(text: str) -> str:
    """Return the text outside all fences."""
    result, inside = [], False
    for line in text.split("\n"):
        if line.startswith(f"--- data {FENCE}: "):
            inside = True
        if not inside:
            result.append(line)
        if line == f"--- end {FENCE} ---":
            inside = False
    return "\n".join(result)
