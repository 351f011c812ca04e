"""How fast an agent's message is read: ordinary text, and text made to be slow.

Runs in this process: reading is pure. Knows nothing of the report.
"""

import time
from collections.abc import Callable

from interlock.signals.text import read_message

SIGNAL = "READY_FOR_REVIEW: task-1\n\nFiles Modified:\n- src/a.py\n"
MB = 1_000_000
_PROSE = (
    "I looked at the failing test again and changed how the cache is filled on a cold start.\n"
    "The old code read the table twice, which is why the second run was faster than the first.\n\n"
)
INPUTS: dict[str, Callable[[], str]] = {
    "clean": lambda: _PROSE * (8 * MB // len(_PROSE)) + SIGNAL,
    "fences": lambda: "```text\nREADY_FOR_REVIEW: task-1\n```\n\n" * (8 * MB // 38) + SIGNAL,
    "open_fences": lambda: "```a\n~~~\n````b\n" * (8 * MB // 15) + SIGNAL,
    "near_signals": lambda: "READY_FOR_REVIEW: task 1 is near\n" * 1_000_000,
    "one_line": lambda: "x" * (100 * MB),
}


def speeds() -> dict[str, float]:
    """MB/s for each input, and the slowest of the hostile ones as a share of the clean one."""
    found = {f"{name}_mb_s": _speed(make()) for name, make in INPUTS.items()}
    hostile = min(speed for name, speed in found.items() if name != "clean_mb_s")
    return {**found, "hostile_share": hostile / found["clean_mb_s"]}


def _speed(text: str) -> float:
    started = time.perf_counter()
    read_message(text, role="developer", task_id="task-1")
    return len(text) / MB / (time.perf_counter() - started)
