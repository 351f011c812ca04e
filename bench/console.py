"""How fast console logs are read: `python -m bench.console DIR [MEGABYTES]`.

Writes logs of many shapes, all of them failed jobs, and reads each as an analysis does: counts,
failed tests, and how the job ended. Beside it stands what merely counting the lines costs.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from interlock_rca.sources.log_scan import scan_log

MB = 1_000_000
_THINGS = (
    "order cart price stock user token session cache queue index page table field value record "
    "worker shard region bucket lease tenant invoice ledger batch window cursor socket reply"
)
_WORDS = _THINGS.split()
_CENTRAL = "from central: https://repo.example.org/maven2"
Lines = Iterator[str]


def _say(chance: random.Random, count: int = 6) -> str:
    return " ".join(chance.choices(_WORDS, k=count))


def _service(chance: random.Random) -> Lines:
    """The log of a service: a few kinds of lines with ever other numbers."""
    while True:
        number = chance.randint(1, 99_999)
        clock = f"2026-03-02 10:11:{number % 60:02d},{number % 1000:03d}"
        what = f"{_WORDS[number % 7]} took {number} ms for request {number * 7}"
        yield f"{clock} INFO [worker-{number % 31}] {what}"


def _github(chance: random.Random) -> Lines:
    """GitHub's clock before words that never repeat."""
    for at in iter(lambda: chance.randint(0, 9_999_999), -1):
        yield f"2026-03-02T10:{at % 60:02d}:12.{at:07d}Z   {_say(chance, 9)} {at:x}"


def _coloured(chance: random.Random) -> Lines:
    while True:
        clock = f"\x1b[32m[{chance.randint(0, 59):02d}:00]\x1b[0m"
        yield f"{clock} \x1b[1m{_say(chance, 3)}\x1b[22m {_say(chance, 5)}"


def _long(chance: random.Random) -> Lines:
    """Lines of 20 kB, as bundlers and curl print them."""
    while True:
        yield _say(chance, 3_000)


def _go(chance: random.Random) -> Lines:
    """`go test -v`: every line names a test."""
    for at in iter(lambda: chance.randint(0, 9_999_999), -1):
        name = f"Test{chance.choice(_WORDS).title()}{at}"
        yield f"=== RUN   {name}"
        yield f"    {chance.choice(_WORDS)}_test.go:{at % 400}: {_say(chance, 5)}"
        yield f"--- PASS: {name} (0.{at % 100:02d}s)"


def _maven(chance: random.Random) -> Lines:
    for at in iter(lambda: chance.randint(0, 9_999_999), -1):
        path = "/".join(chance.choices(_WORDS, k=4))
        yield f"[INFO] Downloading {_CENTRAL}/{path}/{at}/a-{at}.jar"
        yield f"[INFO] Downloaded {_CENTRAL}/{path}/{at}/a-{at}.jar (4.1 kB at 12 kB/s)"
        if not at % 9:
            counts = f"Tests run: {at % 30}, Failures: 0, Errors: 0, Skipped: 0"
            name = chance.choice(_WORDS).title()
            yield f"[INFO] {counts}, Time elapsed: 0.{at % 1000} s - in org.acme.{name}Test"


def _jest(chance: random.Random) -> Lines:
    for at in iter(lambda: chance.randint(0, 999), -1):
        yield f"PASS src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}.test.js ({at % 9}.{at} s)"
        for _ in range(8):
            yield f"    \u2713 {_say(chance, 5)} ({at % 50} ms)"


def _noisy(chance: random.Random) -> Lines:
    """Every third line complains, and nothing comes of it."""
    while True:
        yield f"WARN {_say(chance, 4)}: connection failed, retrying"
        name, line = chance.choice(_WORDS), chance.randint(1, 900)
        yield f"    at org.acme.{chance.choice(_WORDS)}.call({name}.java:{line})"
        yield f"DEBUG {_say(chance, 8)}"


SHAPES: dict[str, tuple[Callable[[random.Random], Lines], str]] = {
    "service": (
        _service,
        "FAILED tests/test_a.py::test_b - KeyError\n1 failed, 3 passed in 4.1s\nFinished: FAILURE",
    ),
    "github": (_github, "##[error]Process completed with exit code 1."),
    "coloured": (_coloured, "ERROR: Job failed: exit code 1"),
    "long lines": (_long, "make: *** [Makefile:3: all] Error 1"),
    "go test -v": (
        _go,
        "    a_test.go:7: got 1, want 2\n--- FAIL: TestLast (0.01s)\nFAIL\nFAIL\ta.b/c\t0.2s",
    ),
    "maven": (
        _maven,
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE",
    ),
    "jest": (
        _jest,
        "Tests:       1 failed, 7 passed, 8 total\nnpm ERR! Test failed.  See above.",
    ),
    "noisy": (_noisy, "Finished: FAILURE"),
}


def write_log(path: Path, shape: str, size: int) -> None:
    """A log of about that many bytes."""
    lines, end = SHAPES[shape]
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for line in lines(random.Random(4)):
            written += file.write(line + "\n")
            if written >= size:
                break
        file.write(end + "\n")


def read_speed(path: Path) -> dict[str, float]:
    """MB per second of CPU of reading a log, and of counting its lines line by line."""
    size = path.stat().st_size / MB
    started = time.process_time()
    with path.open("rb") as stream:
        found = scan_log(stream)
    seconds = time.process_time() - started
    if found.verdict.status != "failed":
        raise ValueError(f"{path} is the log of a failed job, and is called {found.verdict.status}")
    started = time.process_time()
    with path.open("rb") as stream:
        sum(1 for _ in stream)
    counted = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"mb_s": size / seconds, "line_mb_s": size / counted, "rss_mb": peak / MB}


def measure(workdir: Path, size: int) -> dict[str, dict[str, float]]:
    found = {}
    for shape in SHAPES:
        path = workdir / "console.log"
        write_log(path, shape, size)
        found[shape] = read_speed(path)
        path.unlink()
    return found


def measure_speeds(workdir: Path) -> dict[str, float]:
    """MB per second of CPU, by shape."""
    return {name: found["mb_s"] for name, found in measure(workdir, 100 * MB).items()}


if __name__ == "__main__":
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    for name, speeds in measure(Path(sys.argv[1]), megabytes * MB).items():
        print(
            json.dumps({"shape": name, **{key: round(value, 1) for key, value in speeds.items()}})
        )
