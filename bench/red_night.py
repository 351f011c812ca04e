"""What a night of 100,000 failures costs: `python -m bench.red_night DIR [FAILURES]`.

Writes the world itself: a repository of 4,000 commits, of which 200 came after the last green run,
and the reports of 40 suites whose tests fail for 60 causes. Each cause lies in files that one of
the new commits changed, is met through many tests, and is told with ever other numbers and names.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from bench.history import make

FAILURES = 100_000
SUITES = 40
CAUSES = 60
COMMITS = 4_000
NEW_COMMITS = 200
TIMEOUT_S = 3_600.0
_THINGS = (
    "order cart price stock user token session cache queue index page table field value record "
    "worker shard region bucket lease tenant invoice ledger batch window cursor socket reply"
)
_WORDS = _THINGS.split()
_TYPES = ("AssertionError", "ValueError", "KeyError", "TimeoutError", "ConnectionRefusedError")
_FIRST_LINE = "Traceback (most recent call last):"


class Cause(NamedTuple):
    type: str
    words: tuple[str, ...]
    frames: tuple[tuple[str, str, int], ...]
    """(path, function, line), the innermost last."""


def write_night(folder: Path, failures: int = FAILURES) -> None:
    """`long.git` and `results/suite-N.xml` below the folder."""
    repository = folder / "long.git"
    if not repository.exists():
        make(repository, COMMITS)
    chance = Random(5)
    causes = [_make_cause(chance, files) for files in _list_new_files(repository)]
    (folder / "results").mkdir(exist_ok=True)
    for suite in range(SUITES):
        count = failures * (suite + 1) // SUITES - failures * suite // SUITES
        with (folder / "results" / f"suite-{suite}.xml").open("w", encoding="utf-8") as file:
            file.write(f'<testsuites>\n<testsuite name="suite{suite}" tests="{count}">\n')
            for test in range(count):
                # A few causes take most of the failures.
                cause = causes[int(len(causes) * chance.random() ** 2)]
                file.write(_make_test(chance, cause, suite, test))
            file.write("</testsuite>\n</testsuites>\n")


def _list_new_files(repository: Path) -> list[tuple[str, ...]]:
    """What each of some new commits changed."""
    asked = ["log", "--name-only", "--no-renames", "--diff-filter=M", "--format=%x00"]
    words = ["git", "-C", str(repository), *asked, f"HEAD~{NEW_COMMITS - 1}..HEAD~20"]
    told = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()
    changed = [tuple(part.split()) for part in told.split("\0") if part.split()]
    return changed[:: len(changed) // CAUSES][:CAUSES]


def _make_cause(chance: Random, files: tuple[str, ...]) -> Cause:
    words = tuple(chance.choices(_WORDS, k=5))
    around = [f"src/part{chance.randrange(50)}/file{chance.randrange(2_000)}.py" for _ in "12"]
    places = [(path, "call") for path in around]
    places += [(path, f"{words[0]}_{words[1]}") for path in files]
    frames = tuple((path, function, chance.randint(1, 20)) for path, function in places)
    return Cause(chance.choice(_TYPES), words, frames)


def _make_test(chance: Random, cause: Cause, suite: int, test: int) -> str:
    name = f"{chance.choice(_WORDS)}_{chance.choice(_WORDS)}_{chance.randrange(999)}"
    told = f"{' '.join(cause.words)} of {name}: {chance.randint(1, 99999)}"
    said = f"{told} at 0x{chance.getrandbits(40):x}"
    group = test // 25
    place = f"tests/suite{suite}/test_{_WORDS[group % len(_WORDS)]}_{group}.py"
    frames = ((place, f"test_{test}", chance.randint(1, 400)), *cause.frames)
    stack = "".join(
        f'  File "/build/{suite}/{path}", line {line}, in {function}\n    {function}(value)\n'
        for path, function, line in frames
    )
    log = "\n".join(_make_line(chance, second) for second in range(19))
    whole = escape(f"{_FIRST_LINE}\n{stack}{cause.type}: {said}")
    module = place.removesuffix(".py").replace("/", ".")
    return (
        f'<testcase classname="{module}" name="test_{test}" time="0.1">'
        f'<failure type="{cause.type}" message={quoteattr(said)}>{whole}</failure>'
        f"<system-out>{escape(log)}\nERROR {escape(said)}</system-out></testcase>\n"
    )


def _make_line(chance: Random, second: int) -> str:
    what, who = chance.choice(_WORDS), chance.randint(1, 99)
    took = f"{what} took {chance.randint(1, 999)} ms"
    return f"2026-11-15 10:00:{second:02d} INFO worker-{who} {took}"


def measure(workdir: Path, failures: int = FAILURES) -> dict[str, float]:
    """CPU seconds and peak memory of `interlock analyze` with the git it starts, and the size of
    what a browser opens first."""
    write_night(workdir, failures)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    words = ["analyze", "results", "--json", "--repo", "long=long.git"]
    with (workdir / "out.json").open("wb") as out:
        subprocess.run(
            [sys.executable, "-m", "interlock", *words, "--last-green", f"HEAD~{NEW_COMMITS}"],
            cwd=workdir,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=out,
            timeout=TIMEOUT_S,
            check=False,
        )
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (workdir / "out.json").open("rb") as out:
        if f'"failures": {failures},'.encode() not in out.read(4_000):
            raise ValueError(f"not all of {failures:,} failures were analysed")
    told = workdir / "interlock-report" / "results" / "report.html"
    return {
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "seconds": seconds,
        "rss_mb": after.ru_maxrss * 1024 / 1e6,
        "page_mb": told.stat().st_size / 1e6,
    }


def measure_apart(workdir: Path) -> dict[str, float]:
    """The same in a process of its own: the peak is that of its children only."""
    words = [sys.executable, "-m", "bench.red_night", str(workdir)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    many = int(sys.argv[2]) if len(sys.argv) > 2 else FAILURES
    print(json.dumps(measure(Path(sys.argv[1]), many)))
