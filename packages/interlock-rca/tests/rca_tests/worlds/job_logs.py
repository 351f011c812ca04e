"""Logs of jobs in the formats of many tools, and how each job ended: see `job_logs.txt`."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from interlock_rca.sources.job_log import JobReader, JobVerdict

CORPUS = Path(__file__).with_name("job_logs.txt")


def read_corpus() -> tuple[dict[str, str], list[tuple[str, str, str, str]]]:
    """The green outputs of test runners by name; and of each job its name, how it ended, what kind
    of failure it is, and its log."""
    green: dict[str, str] = {}
    jobs = []
    for part in CORPUS.read_text(encoding="ascii").split("\n@@ ")[1:]:
        head, _, body = part.partition("\n")
        log = body.encode().decode("unicode_escape") + "\n"
        if head.startswith("<"):
            green[head] = log
            continue
        for name, output in green.items():
            log = log.replace(f"{name}\n", output)
        name, status, kind = (*map(str.strip, head.split("|")), "")[:3]
        jobs.append((name, status, kind, log))
    return green, jobs


GREEN_TESTS, JOBS = read_corpus()


def judge_job(lines: Iterable[str]) -> JobVerdict:
    """Return how the job with this log ended."""
    reader = JobReader()
    for line in lines:
        reader.add_line(line)
    return reader.finish()


class FailedBuild(NamedTuple):
    """The log of a build that failed, and the numbers of the lines that say why."""

    name: str
    lines: list[str]
    evidence: set[int]


def read_failed_builds() -> list[FailedBuild]:
    """Of many tools: see `failed_builds.txt`, in which a mark begins each line of evidence."""
    builds = []
    text = CORPUS.with_name("failed_builds.txt").read_text(encoding="utf-8")
    for part in f"\n{text}".split("\n@@ ")[1:]:
        name, *lines = part.rstrip("\n").split("\n")
        marked = {at for at, line in enumerate(lines, 1) if line.startswith("\u00bb")}
        builds.append(FailedBuild(name, [line.removeprefix("\u00bb") for line in lines], marked))
    return builds
