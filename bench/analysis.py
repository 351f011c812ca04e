"""What the analysis of a very red night costs, from report to page: `bench.analysis DIR COUNT`.

Writes the report itself (failures of 120 kinds and one more per hundred, each with a stack of
Python, Java or JavaScript and a log of 50 lines) and runs the real command on it, in a process of
its own and an empty folder.
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
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

FAILURES = 10_000
KINDS = 120
TIMEOUT_S = 900.0
_THINGS = (
    "order cart price stock user token session cache queue index page table field value record"
)
_WORDS = _THINGS.split()
_LANGUAGES = (
    (
        "Traceback (most recent call last):",
        '  File "/build/{suite}/app/{file}.py", line {line}, in call\n    call()\n',
    ),
    ("", "\tat org.acme.{name}.call({name}.java:{line})\n"),
    ("", "    at call (/build/{suite}/app/{file}.js:{line}:7)\n"),
)
"""The first line of a stack, and what a frame looks like."""
_TYPES = ("AssertionError", "ValueError", "KeyError", "TimeoutError", "ConnectionRefusedError")


def write_report(path: Path, failures: int = FAILURES) -> None:
    chance = random.Random(4)
    kinds = [_kind(chance) for _ in range(KINDS + failures // 100)]
    with path.open("w", encoding="utf-8") as file:
        file.write("<testsuites>\n")
        for suite in range(100):
            file.write(f'<testsuite name="suite{suite}">\n')
            for test in range(failures // 100):
                file.write(_case(chance, kinds[(suite * 7 + test * 11) % len(kinds)], suite, test))
            file.write("</testsuite>\n")
        file.write("</testsuites>\n")


class _Kind(NamedTuple):
    type: str
    words: str
    files: list[str]
    frame: str
    head: str


def _kind(chance: random.Random) -> _Kind:
    files = [
        f"{chance.choice(_WORDS)}/{chance.choice(_WORDS)}" for _ in range(chance.randint(3, 9))
    ]
    head, frame = chance.choice(_LANGUAGES)
    return _Kind(chance.choice(_TYPES), " ".join(chance.choices(_WORDS, k=5)), files, frame, head)


def _case(chance: random.Random, kind: _Kind, suite: int, test: int) -> str:
    said = f"{kind.words} {chance.randint(1, 99999)} at 0x{chance.getrandbits(40):x}"
    frames = "".join(
        kind.frame.format(suite=suite, file=file, name=file.replace("/", "."), line=line)
        for file, line in ((file, chance.randint(1, 400)) for file in kind.files)
    )
    log = "\n".join(_line(chance, second) for second in range(49))
    last = f"{kind.type}: {said}"
    stack = f"{kind.head or last}\n{frames}{last if kind.head else ''}"
    place = quoteattr(f"app.tests.test_{_WORDS[suite % len(_WORDS)]}.Case{suite}")
    return (
        f'<testcase classname={place} name="test_{test}" time="0.1">'
        f'<failure type="{kind.type}" message={quoteattr(said)}>{escape(stack)}</failure>'
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
