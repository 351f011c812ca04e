"""What a large JUnit report costs: peak memory and speed, read in a process of its own.

Writes the report itself: mostly passed tests with output, some failed ones with stack and log,
and one test whose log is a tenth of the file. Knows nothing of the report page.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from bench.roster import PROGRAMS_DIR

MB = 1_000_000
SIZE = 500 * MB
TIMEOUT_S = 900.0
_LINE = "10:15:{:02d} INFO worker {} took item {} from the queue and put it back\n"
_STACK = "".join(f"\tat org.example.app.Layer{n}.call(Layer{n}.java:{n * 7})\n" for n in range(30))


def write_report(path: Path, size: int = SIZE) -> int:
    """A report of about that many bytes; the number of failed tests in it."""
    failed = number = 0
    with path.open("w", encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n')
        file.write('<testsuite name="flood"><testcase name="talks" classname="org.example.Flood">')
        file.write('<failure message="too much" type="org.example.Flood">flood</failure>')
        file.write("<system-out>")
        while file.tell() < size // 10:
            file.write("".join(_LINE.format(n % 60, n, n) for n in range(1_000)))
        file.write("</system-out></testcase></testsuite>\n")
        while file.tell() < size:
            file.write(f'<testsuite name="org.example.Part{number}">\n')
            for each in range(200):
                failed += _write_case(file, number, each)
            file.write("</testsuite>\n")
            number += 1
        file.write("</testsuites>\n")
    return failed + 1


def _write_case(file: TextIO, number: int, each: int) -> int:
    is_failed = each % 50 == 7
    lines = "".join(_LINE.format(n, number, each) for n in range(50 if is_failed else 12))
    body = f"<system-out><![CDATA[{lines}]]></system-out>"
    if is_failed:
        body = f'<failure message="expected {each}" type="E"><![CDATA[{_STACK}]]></failure>{body}'
    tag = f'<testcase name="test_{each}" classname="org.example.Part{number}" time="0.012">'
    file.write(f"{tag}{body}</testcase>\n")
    return int(is_failed)


def streaming(workdir: Path, size: int = SIZE) -> dict[str, float]:
    """Peak memory in MB and MB/s of reading such a report through, every failure taken."""
    path = workdir / "report.xml"
    failed = write_report(path, size)
    command = [sys.executable, str(PROGRAMS_DIR / "on_junit.py"), str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=True)
    path.unlink()
    found: dict[str, float] = json.loads(done.stdout)
    if found.pop("failed") != failed:
        raise ValueError(f"not all of the {failed} failed tests were read")
    return found


if __name__ == "__main__":
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else SIZE // MB
    print(json.dumps(streaming(Path(sys.argv[1]), megabytes * MB)))
