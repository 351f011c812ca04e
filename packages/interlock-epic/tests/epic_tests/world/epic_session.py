"""A session that follows a script: a JSON list of sessions, each a list of acts.

Which session it is, is counted in a file beside the script, as a real project would tell by its
state. Run as `python epic_session.py SCRIPT`; stands alone, so that it starts fast.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main(script: Path) -> int:
    prompt = sys.stdin.read()
    count = script.with_suffix(".count")
    number = int(count.read_text()) if count.exists() else 0
    count.write_text(str(number + 1))
    script.with_suffix(f".prompt-{number + 1}").write_text(prompt)
    sessions = json.loads(script.read_text())
    for act in sessions[number] if number < len(sessions) else [{"exit": 97}]:
        code = perform(act, script)
        if code is not None:
            return code
    return 0


def perform(act: object, script: Path) -> int | None:
    """Do one thing; a number ends the session."""
    if isinstance(act, str):
        sys.stdout.write(f"{act}\n")
        sys.stdout.flush()
        return None
    assert isinstance(act, dict)
    ((name, value),) = act.items()
    if name == "exit":
        return int(value)
    ACTS[name](value, script)
    return None


def _raw(value: str, _script: Path) -> None:
    sys.stdout.write(value)
    sys.stdout.flush()


def _hang(_value: object, script: Path) -> None:
    script.with_suffix(".hangs").write_text(str(os.getpid()))
    signal.pause()


def _wait(value: str, script: Path) -> None:
    while not script.with_name(value).exists():
        time.sleep(0.01)


def _run(value: list[str], _script: Path) -> None:
    subprocess.run(value, check=False, stdout=subprocess.DEVNULL)


def _write(value: list[str], _script: Path) -> None:
    Path(value[0]).write_text(value[1])


def _kill(value: int, _script: Path) -> None:
    os.kill(os.getpid(), value)


def _flood(value: int, _script: Path) -> None:
    flood(value)


def _tell(value: str, _script: Path) -> None:
    sys.stderr.write(value)


ACTS: dict[str, Any] = {
    "raw": _raw,
    "hang": _hang,
    "wait": _wait,
    "run": _run,
    "write": _write,
    "kill": _kill,
    "flood": _flood,
    "tell": _tell,
}


def flood(many: int) -> None:
    lines = (f"SAGE_SIGNAL:STORY_STARTED:s-{number}\n" for number in range(many))
    sys.stdout.writelines(lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
