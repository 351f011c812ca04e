"""Read a console log once for its tests and the end of its job.

Logs repeat themselves: lines that differ only in digits, and mean nothing to either reader, are
skipped while no reader needs them.
"""

from typing import BinaryIO

import msgspec

from interlock.system.test_output.counts import MOST_SHAPES, compute_shape, read_lines
from interlock.system.test_output.failures import TestLog, TestLogReader
from interlock_rca.sources.job_log import JobReader, JobVerdict


class LogScan(msgspec.Struct, frozen=True):
    """Everything that a console log says."""

    tests: TestLog
    verdict: JobVerdict


def scan_log(stream: BinaryIO) -> LogScan:
    """Return what the log says; one pass, in memory that does not grow with it."""
    tests, job = TestLogReader(), JobReader()
    idle: set[bytes] = set()
    skipped = 0
    for line in read_lines(stream):
        shape = compute_shape(line)
        is_heard = tests.is_listening or job.is_listening or (tests.failures and " PASSED" in line)
        if shape in idle and not is_heard:
            skipped += 1
            continue
        if skipped:
            tests.skip_lines()
            job.skip_lines(skipped)
            skipped = 0
        tests.add_line(line)
        job.add_line(line)
        if tests.knows_idle(shape) and job.knows_idle(shape):
            if len(idle) >= MOST_SHAPES:
                idle.clear()
            idle.add(shape)
    job.skip_lines(skipped)
    return LogScan(tests.finish(), job.finish())
