"""A good parent of batches, written from seeds 000 and 001 alone: three workers at a time.

With the word `spendthrift` it does not look at the budget, with `liar` it marks entries done before
they are.
"""

import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SUITE = Path(".asterisk/calibrate/1")
FAULT = sys.argv[1] if len(sys.argv) > 1 else ""


def main() -> None:
    while True:
        signals = sorted(SUITE.glob("*/signal.json"))
        manifest = read(SUITE / "batch-manifest.json")
        if manifest.get("status") in ("pending", "in_progress"):
            if remaining() > 0 or FAULT == "spendthrift":
                work_through(manifest)
        else:
            for path in signals:
                work(path)
        time.sleep(0.02)


def remaining() -> float:
    budget = read(SUITE / "budget-status.json")
    return float(budget.get("remaining", 1))


def work_through(manifest: dict[str, Any]) -> None:
    pending = [one for one in manifest["signals"] if one["status"] == "pending"][:3]
    mark(manifest["batch_id"], pending, "done" if FAULT == "liar" else "claimed")
    time.sleep(0.3 if FAULT == "liar" else 0)
    with ThreadPoolExecutor(3) as pool:
        good = list(pool.map(lambda one: work(Path(one["signal_path"])), pending))
    for one, answered in zip(pending, good, strict=True):
        mark(manifest["batch_id"], [one], "done" if answered else "error")


def mark(batch_id: int, entries: list[dict[str, Any]], status: str) -> None:
    manifest = read(SUITE / "batch-manifest.json")
    if manifest.get("batch_id") != batch_id or not entries:
        return
    cases = {one["case_id"] for one in entries}
    for one in manifest["signals"]:
        if one["case_id"] in cases:
            one["status"] = status
    write(SUITE / "batch-manifest.json", {**manifest, "status": "in_progress"})


def work(path: Path) -> bool:
    signal = read(path)
    if signal.get("status") != "waiting":
        return False
    artifact = Path(signal["artifact_path"])
    if read(artifact).get("dispatch_id") == signal["dispatch_id"]:
        return True
    try:
        prompt = Path(signal["prompt_path"]).read_text()
    except OSError as error:
        write(path, {**signal, "status": "error", "error": str(error)})
        return False
    found = re.search(r"^\{.*\}$", prompt, re.MULTILINE)
    data = json.loads(found.group()) if found else {}
    write(artifact, {"dispatch_id": signal["dispatch_id"], "data": data})
    return True


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, value: object) -> None:
    fresh = path.with_suffix(f".{time.monotonic_ns()}")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


if __name__ == "__main__":
    main()
