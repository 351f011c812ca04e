"""What the file protocol costs: from an artifact written to its decision committed, and waiting.

Starts a coordinator and, for the latency, another process that answers. Both read the machine's
one monotonic clock. Knows nothing of the report.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median, quantiles

from bench.roster import PROGRAMS_DIR

MODES = ("inotify", "poll")
ANSWERED = 200
WAITING = 1_000
TIMEOUT_S = 300.0


def latency(workdir: Path, mode: str, cases: int = ANSWERED) -> dict[str, float]:
    """Milliseconds between the rename of an artifact and the commit of the decision on it."""
    coordinator = _start("on_files.py", "latency", workdir, "--watch", mode, "--cases", cases)
    try:
        written = _json(_start("answerer.py", workdir / "runs", cases))
        committed = _json(coordinator)
    finally:
        coordinator.kill()
    waits = [(committed[dispatch] - at) * 1000 for dispatch, at in written.items()]
    if len(waits) != cases or min(waits) <= 0:
        raise ValueError(f"{len(waits)} of {cases} artifacts were decided, the first too early")
    return {"p50_ms": median(waits), "p95_ms": quantiles(waits, n=20)[-1]}


def idle(workdir: Path, mode: str, seconds: float, cases: int = WAITING) -> dict[str, float]:
    """CPU, in per cent of one core, while that many cases wait for their artifacts."""
    words = ("idle", workdir, "--watch", mode, "--cases", cases, "--seconds", seconds)
    return _json(_start("on_files.py", *words))


def _start(program: str, *words: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(PROGRAMS_DIR / program), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _json(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    out, _ = process.communicate(timeout=TIMEOUT_S)
    if process.returncode:
        raise subprocess.SubprocessError(f"exit code {process.returncode}")
    found: dict[str, float] = json.loads(out)
    return found
