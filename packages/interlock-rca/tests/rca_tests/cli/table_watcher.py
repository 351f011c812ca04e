"""An agent on the other side of the files that answers by a table, written from the seeds alone.

`python table_watcher.py ROOT TABLE LOG [batch]`: TABLE is {case or *: {step: [answer, …]}}; the
first time a step is asked it gives the first answer, the last one repeats. An answer with `signal`
goes out as it is, a step without any stays unanswered. LOG gets a JSON line per answer; with
`batch` also one per manifest, with the briefing as it was then. Runs until it is ended.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT, TABLE, LOG = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3])
BATCH = sys.argv[4:] == ["batch"]
ASKED: dict[tuple[str, str], int] = {}
DONE: set[int] = set()
SEEN: set[int] = set()


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def put(path: Path, value: object) -> None:
    fresh = path.with_name(f"tmp-{os.getpid()}")
    fresh.write_text(json.dumps(value))
    fresh.rename(path)


def note(line: dict[str, Any]) -> None:
    with LOG.open("a") as log:
        log.write(json.dumps(line) + "\n")


def answer(signal: dict[str, Any]) -> None:
    dispatch_id, case, step = signal["dispatch_id"], signal["case_id"], signal["step"]
    answers = (TABLE.get(case) or {}).get(step) or TABLE["*"].get(step)
    if signal.get("status") != "waiting" or dispatch_id in DONE or not answers:
        return
    DONE.add(dispatch_id)
    turn = ASKED[case, step] = ASKED.get((case, step), 0) + 1
    data = answers[min(turn, len(answers)) - 1]
    prompt, artifact = Path(signal["prompt_path"]), Path(signal["artifact_path"])
    where = {"folder": str(artifact.parent), "prompt": prompt.name, "artifact": artifact.name}
    note({"case": case, "step": step, "id": dispatch_id, "data": data, **where})
    prompt.read_text()
    put(artifact, {"dispatch_id": dispatch_id, "data": data})


def look_at(manifest: dict[str, Any]) -> None:
    number = manifest.get("batch_id", 0)
    if manifest.get("status") not in ("pending", "in_progress"):
        return
    if number not in SEEN:
        SEEN.add(number)
        briefing = Path(manifest["briefing_path"]).read_text()
        cases = [each["case_id"] for each in manifest["signals"]]
        note({"batch": number, "phase": manifest["phase"], "cases": cases, "briefing": briefing})
    for each in manifest["signals"]:
        if signal := read(Path(each["signal_path"])):
            answer(signal)


while True:
    if BATCH:
        for path in ROOT.glob("*/batch-manifest.json"):
            look_at(read(path))
    else:
        for path in sorted(ROOT.glob("*/*/signal.json")):
            if signal := read(path):
                answer(signal)
    time.sleep(0.005)
