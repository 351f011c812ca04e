"""Reads one JUnit report through and prints what that took, as JSON.

The failures are counted and let go: this is the reader's own memory.
"""

import json
import resource
import sys
import time
from pathlib import Path

from interlock_rca.sources.junit import JUnitReport

path = Path(sys.argv[1])
started = time.perf_counter()
with path.open("rb") as stream:
    report = JUnitReport(stream, path.name)
    failed = sum(1 for _ in report)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
megabytes = path.stat().st_size / 1e6
print(json.dumps({"failed": failed, "rss_mb": peak / 1e6, "mb_s": megabytes / seconds}))
