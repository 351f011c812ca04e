"""Reads all commits of a repository through Interlock and says how long that took.

`on_history.py REPOSITORY CACHE SINCE` prints one JSON object.
"""

import json
import resource
import sys
import time
from pathlib import Path

from interlock_rca.records import Repo
from interlock_rca.sources.git.repository import Repository


def main() -> None:
    folder, cache, since = sys.argv[1:]
    started = time.monotonic()
    repository = Repository(Repo(name="long", path=folder), cache=Path(cache))
    commits = repository.list_commits_since(since, most=10**6)
    took = time.monotonic() - started
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"read_s": took, "rss_mb": rss, "commits": len(commits)}))


if __name__ == "__main__":
    main()
