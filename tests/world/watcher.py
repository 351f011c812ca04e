"""Agents on the other side of the files, written from the seeds alone: nothing of ours is imported.

`python watcher.py KIND ROOT`: polls for signals and answers them until it is ended. Kinds: single,
slow, partial, stale, erroring, dying (single signals), and batch, claimless (a parent agent).
An answer is `{"n": dispatch_id}`, so that a test can see whose it is.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def put(path: Path, value: object) -> None:
    fresh = path.with_name(f"tmp-{os.getpid()}")
    fresh.write_text(json.dumps(value, indent=2))
    fresh.rename(path)


def answer(signal: dict[str, Any], number: int | None = None) -> dict[str, Any]:
    Path(signal["prompt_path"]).read_text()
    dispatch_id = signal["dispatch_id"]
    return {"dispatch_id": dispatch_id if number is None else number, "data": {"n": dispatch_id}}


def single(_path: Path, signal: dict[str, Any]) -> None:
    put(Path(signal["artifact_path"]), answer(signal))


def slow(_path: Path, signal: dict[str, Any]) -> None:
    """Writes without a temporary file, a few bytes at a time."""
    with Path(signal["artifact_path"]).open("wb", buffering=0) as file:
        for byte in json.dumps(answer(signal), indent=1).encode():
            file.write(bytes([byte]))
            time.sleep(0.01)


def partial(_path: Path, signal: dict[str, Any]) -> None:
    """Half a file at first; the whole of it a moment later."""
    path = Path(signal["artifact_path"])
    text = json.dumps(answer(signal))
    path.write_text(text[:20])
    time.sleep(0.4)
    path.write_text(text)


def stale(_path: Path, signal: dict[str, Any]) -> None:
    """An answer of yesterday first, then the right one."""
    put(Path(signal["artifact_path"]), answer(signal, signal["dispatch_id"] + 1000))
    time.sleep(0.3)
    put(Path(signal["artifact_path"]), answer(signal))


def erroring(path: Path, signal: dict[str, Any]) -> None:
    """Gives up on every first asking."""
    if "loop" in signal["prompt_path"]:
        single(path, signal)
    else:
        put(path, signal | {"status": "error", "error": "out of quota"})


def dying(_path: Path, signal: dict[str, Any]) -> None:
    """Dies with half an answer in its place."""
    Path(signal["artifact_path"]).write_text(json.dumps(answer(signal))[:15])
    os.kill(os.getpid(), 9)


def watch_signals(root: Path, respond: Any) -> None:
    seen = set()
    while True:
        for path in root.glob("*/*/signal.json"):
            signal = read(path)
            if signal.get("status") == "waiting" and signal["dispatch_id"] not in seen:
                seen.add(signal["dispatch_id"])
                respond(path, signal)
        time.sleep(0.01)


def watch_manifest(root: Path, claims: bool) -> None:
    """A parent agent: claims, hands out, marks what is done; the odd case fails in every batch."""
    workspace = Path.cwd()
    while True:
        for path in root.glob("*/batch-manifest.json"):
            manifest = read(path)
            if manifest.get("status") == "pending":
                assert (workspace / manifest["briefing_path"]).read_text().startswith("# ")
                if claims:
                    put(path, manifest | {"status": "in_progress"})
                work_off(path, manifest, workspace, claims)
        time.sleep(0.01)


def work_off(path: Path, manifest: dict[str, Any], workspace: Path, claims: bool) -> None:
    for entry in manifest["signals"]:
        signal = read(workspace / entry["signal_path"])
        if signal["status"] != "waiting":
            continue
        if entry["case_id"] == "odd" and "loop" not in signal["prompt_path"]:
            broken = signal | {"status": "error", "error": "subagent failed"}
            put(workspace / entry["signal_path"], broken)
            entry["status"] = "error"
        else:
            single(path, signal)
            entry["status"] = "done"
        if claims:
            put(path, manifest | {"status": "in_progress"})


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if kind in ("batch", "claimless"):
        watch_manifest(folder, claims=kind == "batch")
    else:
        watch_signals(folder, globals()[kind])
