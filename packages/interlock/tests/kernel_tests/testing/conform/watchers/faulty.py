"""Bad watchers: each does one thing wrong, named by its first argument, and all else right."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Signal = dict[str, Any]
SEEN: list[Signal] = []


def data_of(signal: Signal) -> Any:
    prompt = Path(signal["prompt_path"]).read_text()
    found = re.search(r"^\{.*\}$", prompt, re.MULTILINE)
    return json.loads(found.group()) if found else {}


def put(path: str | Path, value: object) -> None:
    fresh = Path(f"{path}.{time.monotonic_ns()}")
    fresh.write_text(json.dumps(value))
    fresh.replace(path)


def answer(
    path: Path,
    signal: Signal,
    dispatch_id: object = None,
    data: object = None,
    wrap: Callable[[object, object], object] = lambda number, data: {
        "dispatch_id": number,
        "data": data,
    },
) -> None:
    try:
        data = data_of(signal) if data is None else data
    except OSError as error:
        put(path, {**signal, "status": "error", "error": str(error)})
        return
    chosen = signal["dispatch_id"] if dispatch_id is None else dispatch_id
    put(signal["artifact_path"], wrap(chosen, data))


def bare(path: Path, signal: Signal) -> None:
    answer(path, signal, wrap=lambda _, data: data)


def string_id(path: Path, signal: Signal) -> None:
    answer(path, signal, str(signal["dispatch_id"]))


def wrong_id(path: Path, signal: Signal) -> None:
    answer(path, signal, signal["dispatch_id"] + 1)


def list_data(path: Path, signal: Signal) -> None:
    answer(path, signal, wrap=lambda number, data: {"dispatch_id": number, "data": [data]})


def linked(path: Path, signal: Signal) -> None:
    real = path.with_name(f"answer-{signal['dispatch_id']}.json")
    artifact = Path(signal["artifact_path"])
    answer(path, {**signal, "artifact_path": str(real)})
    if real.exists():
        artifact.unlink(missing_ok=True)
        artifact.symlink_to(real)


def huge(path: Path, signal: Signal) -> None:
    padded = "x" * 20_000_000
    answer(
        path,
        signal,
        wrap=lambda number, data: {"dispatch_id": number, "data": data, "padding": padded},
    )


def hesitant(path: Path, signal: Signal) -> None:
    """Half an answer, and the whole of it only when the coordinator has given up on it."""
    if Path(signal["prompt_path"]).exists():
        Path(signal["artifact_path"]).write_text('{"dispatch_id": ')
        time.sleep(1.4)
    answer(path, signal)


def first_id(path: Path, signal: Signal) -> None:
    answer(path, signal, SEEN[0]["dispatch_id"])


def first_only(path: Path, signal: Signal) -> None:
    if len(SEEN) == 1:
        answer(path, signal)


def garbage(path: Path, signal: Signal) -> None:
    path.write_text("answered!\n")
    answer(path, signal)


def new_status(path: Path, signal: Signal) -> None:
    put(path, {**signal, "dispatch_id": signal["dispatch_id"] + 1})
    answer(path, signal)


def finisher(path: Path, signal: Signal) -> None:
    if Path(signal["prompt_path"]).exists():
        put(path, {**signal, "status": "done"})
    answer(path, signal)


def eager(path: Path, signal: Signal) -> None:
    put(path, {**signal, "status": "processing"})
    answer(path, signal)


def vandal(path: Path, signal: Signal) -> None:
    path.unlink()
    answer(path, signal)


ANSWERED = threading.Event()


def _after_the_second(path: Path, signal: Signal) -> None:
    time.sleep(1.0)
    if json.loads(path.read_text()) != signal:  # given up: the second asking comes, or is there
        ANSWERED.wait(60)
    answer(path, signal)


def late(path: Path, signal: Signal) -> None:
    """The first answer comes after that to the second asking, if the first was given up."""
    if len(SEEN) == 1 and Path(signal["prompt_path"]).exists():
        threading.Thread(target=_after_the_second, args=(path, signal)).start()
        return
    answer(path, signal)
    ANSWERED.set()


def slow(path: Path, signal: Signal) -> None:
    time.sleep(0.5)
    answer(path, signal)


def blind(path: Path, signal: Signal) -> None:
    there = Path(signal["prompt_path"]).exists()
    answer(path, signal, data=None if there else {"ok": False})


def mortal(path: Path, signal: Signal) -> None:
    answer(path, signal, data=data_of(signal))


def restless(path: Path, signal: Signal) -> None:
    answer(path, signal)
    if Path(signal["prompt_path"]).exists():
        again = {"again": time.monotonic_ns()}
        threading.Timer(0.3, answer, (path, signal, None, again)).start()


def content(path: Path, signal: Signal) -> None:
    time.sleep(0.3)
    if json.loads(path.read_text()) != signal or Path(signal["artifact_path"]).exists():
        return
    answer(path, signal)


def mixed_up(path: Path, signal: Signal) -> None:
    answer(path, signal, data=data_of(SEEN[0]) if Path(SEEN[0]["prompt_path"]).exists() else None)


def scribbler(path: Path, signal: Signal) -> None:
    Path("README.md").write_text("I was here.\n")
    answer(path, signal)


def brood(path: Path, signal: Signal) -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    path.with_name("brood").write_text(str(child.pid))
    answer(path, signal)


def fragile(path: Path, signal: Signal) -> None:
    answer(path, signal)


FAULTS: dict[str, Callable[[Path, Signal], None]] = {
    each.__name__: each
    for each in (
        *(bare, string_id, wrong_id, list_data, first_id, first_only, garbage, new_status),
        *(finisher, eager, vandal, slow, linked, huge, hesitant),
        *(late, blind, mortal, restless, content, mixed_up, scribbler, brood, fragile),
    )
}


def main(fault: str) -> None:
    while True:
        for path in sorted(Path(".asterisk/calibrate/1").glob("*/signal.json")):
            try:
                signal = json.loads(path.read_text())
            except ValueError:
                if fault == "fragile":
                    raise
                continue
            if signal["status"] == "waiting" and signal not in SEEN:
                SEEN.append(signal)
                FAULTS[fault](path, signal)
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
