"""What the analysis of a very red night costs: 10,000 failing tests, from report to page.

Writes the report itself (failures of 120 kinds, each with a stack and a log of 50 lines) and runs
the real command on it, in a process of its own and an empty folder.
"""

import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FAILURES = 10_000
KINDS = 120
TIMEOUT_S = 900.0
_THINGS = (
    "order cart price stock user token session cache queue index page table field value record"
)
_WORDS = _THINGS.split()
_TYPES = ("AssertionError", "ValueError", "KeyError", "TimeoutError", "ConnectionRefusedError")


def write_report(path: Path, failures: int = FAILURES) -> None:
    chance = random.Random(4)
    kinds = [_kind(chance) for _ in range(KINDS)]
    with path.open("w", encoding="utf-8") as file:
        file.write("<testsuites>\n")
        for suite in range(100):
            file.write(f'<testsuite name="suite{suite}">\n')
            for test in range(failures // 100):
                file.write(_case(chance, kinds[(suite * 7 + test) % KINDS], suite, test))
            file.write("</testsuite>\n")
        file.write("</testsuites>\n")


def _kind(chance: random.Random) -> tuple[str, str, list[str]]:
    files = [f"{chance.choice(_WORDS)}/{chance.choice(_WORDS)}.py" for _ in range(4)]
    return chance.choice(_TYPES), " ".join(chance.choices(_WORDS, k=5)), files


def _case(chance: random.Random, kind: tuple[str, str, list[str]], suite: int, test: int) -> str:
    name, words, files = kind
    said = f"{words} {chance.randint(1, 99999)} at 0x{chance.getrandbits(40):x}"
    frames = "".join(
        f'  File "/build/{suite}/app/{file}", line {chance.randint(1, 400)}, in call\n    call()\n'
        for file in files
    )
    log = "\n".join(_line(chance, second) for second in range(49))
    stack = escape(f"Traceback (most recent call last):\n{frames}{name}: {said}")
    place = quoteattr(f"app.tests.test_{_WORDS[suite % len(_WORDS)]}.Case{suite}")
    return (
        f'<testcase classname={place} name="test_{test}" time="0.1">'
        f'<failure type="{name}" message={quoteattr(said)}>{stack}</failure>'
        f"<system-out>{escape(log)}\nERROR {escape(said)}</system-out></testcase>\n"
    )


def _line(chance: random.Random, second: int) -> str:
    what, who = chance.choice(_WORDS), chance.randint(1, 99)
    return (
        f"2026-11-15 10:00:{second:02d} INFO worker-{who} {what} took {chance.randint(1, 999)} ms"
    )


def analysed(workdir: Path, failures: int = FAILURES) -> dict[str, float]:
    """Seconds, peak memory and how many causes were found, by the built-in analyst."""
    report = workdir / "night.xml"
    write_report(report, failures)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "analyze", report.name, "--json"],
        cwd=workdir,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    found = json.loads(done.stdout or "{}").get("summary", {})
    if found.get("failures") != failures:
        raise ValueError(f"only {found.get('failures')} of {failures} failures were analysed")
    return {"seconds": seconds, "rss_mb": peak / 1e6, "causes": found["causes"]}


if __name__ == "__main__":
    many = int(re.sub(r"\D", "", sys.argv[2])) if len(sys.argv) > 2 else FAILURES
    print(json.dumps(analysed(Path(sys.argv[1]), many)))
