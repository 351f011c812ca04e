"""A good watcher, written from seed 000 alone: single signals, one after another."""

import json
import re
import time
from pathlib import Path
from typing import Any


def main() -> None:
    answered: set[tuple[str, int]] = set()
    while True:
        for path in sorted(Path(".asterisk/calibrate").glob("*/*/signal.json")):
            signal = read(path)
            if signal.get("status") == "waiting":
                key = (str(path), signal["dispatch_id"])
                if key not in answered:
                    answered.add(key)
                    respond(path, signal)
        time.sleep(0.02)


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def respond(path: Path, signal: dict[str, Any]) -> None:
    try:
        prompt = Path(signal["prompt_path"]).read_text()
    except OSError as error:
        write(path, {**signal, "status": "error", "error": str(error)})
        return
    found = re.search(r"^\{.*\}$", prompt, re.MULTILINE)
    data = json.loads(found.group()) if found else {}
    write(Path(signal["artifact_path"]), {"dispatch_id": signal["dispatch_id"], "data": data})


def write(path: Path, value: object) -> None:
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


if __name__ == "__main__":
    main()
