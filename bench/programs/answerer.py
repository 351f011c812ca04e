"""The other side of the carrier `file`: answers one signal after the other, at odd moments.

Knows only the files. Each artifact is written to a temporary file and renamed; the clock is read
right before the rename. Prints that time by dispatch.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

GIVE_UP_S = 120.0
MOST_PAUSE_S = 0.2


def signal_at(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found


def until(path: Path, status: str) -> dict[str, Any]:
    give_up = time.monotonic() + GIVE_UP_S
    while (found := signal_at(path)).get("status") != status:
        if time.monotonic() > give_up:
            sys.exit(f"{path} never said {status}")
        time.sleep(0.001)
    return found


def answer(path: Path) -> tuple[int, float]:
    signal = until(path, "waiting")
    artifact = Path(signal["artifact_path"])
    fresh = artifact.with_suffix(".tmp")
    fresh.write_text(json.dumps({"dispatch_id": signal["dispatch_id"], "data": {"ok": True}}))
    written = time.monotonic()
    fresh.rename(artifact)
    until(path, "done")
    return signal["dispatch_id"], written


def main() -> None:
    runs, cases = Path(sys.argv[1]), int(sys.argv[2])
    chance = random.Random(7)
    written: dict[int, float] = {}
    until(runs / "1" / f"{cases}" / "signal.json", "waiting")
    for number in range(1, cases + 1):
        time.sleep(chance.uniform(0, MOST_PAUSE_S))
        dispatch_id, at = answer(runs / "1" / f"{number}" / "signal.json")
        written[dispatch_id] = at
    json.dump(written, sys.stdout)


if __name__ == "__main__":
    main()
