"""Real processes in tests: what they say, and what must come true while they work."""

import subprocess
from collections.abc import Callable
from contextlib import suppress


def hear(process: "subprocess.Popen[str]", word: str) -> str:
    """The next line on stderr that has the word."""
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if word in line:
            return line.strip()
    raise AssertionError(f"it never said {word!r}, only {heard}")


def wait_for(holds: Callable[[], bool]) -> None:
    """Return when it holds; each look runs a process, which takes its time."""
    for _ in range(600):
        with suppress(OSError):
            if holds():
                return
        subprocess.run(["/bin/sleep", "0.05"], check=True)
    raise AssertionError("it never held")
