"""The targets, one row each, and the verdict on a set of results.

Knows what is wanted and of what it is the ratio. Knows nothing of running or of layout.
A target without numbers on both sides is `not measured`, never a pass.
"""

import operator
from collections.abc import Callable
from typing import Literal

import msgspec

from bench.results import Results, Series, Spread, ratio, spread

Verdict = Literal["pass", "miss", "not measured"]

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    ">": operator.gt,
    "≤": operator.le,
    "<": operator.lt,
}
LOWEST_PEER = "lowest peer"


class Target(msgspec.Struct, frozen=True):
    what: str
    measure: str
    metric: str
    comparison: str
    bound: float
    unit: str = "x"
    against: str | None = None  # a program, or LOWEST_PEER; the bound is then a ratio
    against_measure: str | None = None


SINGLE = "ceiling, single commits"
THREADS = "burr, threads"
RATE = "steps_per_s"
TARGETS = (
    Target("64 in flight: steps/s, of the ceiling", "many", RATE, "≥", 0.5, against="ceiling"),
    Target(
        "64 in flight: steps/s, of Burr's SQLitePersister", "many", RATE, "≥", 7, against=THREADS
    ),
    Target("64 in flight: steps/s, of LangGraph", "many", RATE, "≥", 30, against="langgraph"),
    Target("one at a time: steps/s, of the ceiling", "single", RATE, "≥", 0.7, against=SINGLE),
    Target("one at a time: steps/s, of Burr", "single", RATE, ">", 1, against="burr"),
    Target("CPU per step, of the best peer", "many", "cpu_ms", "<", 1, against=LOWEST_PEER),
    Target("bytes per step, of the best peer", "many", "bytes", "<", 1, against=LOWEST_PEER),
    Target("start and import", "many", "start_s", "≤", 0.3, "s"),
    Target("peak memory, 64 in flight", "many", "rss_mb", "<", 60, "MB"),
    Target("resume: to the first dispatch", "resume", "first_s", "<", 1, "s"),
    Target("resume: to all done", "resume", "done_s", "<", 2, "s"),
    Target("10,000 open cases: peak memory", "open-10000", "rss_mb", "<", 300, "MB"),
    Target(
        "10,000 open cases: CPU per step, of 100 open",
        measure="open-10000",
        metric="cpu_ms",
        comparison="≤",
        bound=1.25,
        against="interlock",
        against_measure="open-100",
    ),
    Target("artifact written to decision committed: p50", "file-inotify", "p50_ms", "<", 5, "ms"),
    Target("the same, polling: p95", "file-poll", "p95_ms", "≤", 250, "ms"),
    Target("1,000 waiting cases: idle CPU", "file-inotify", "cpu_percent", "<", 2, "%"),
    Target("the same, polling", "file-poll", "cpu_percent", "<", 2, "%"),
    Target("reading a message: clean text", "text", "clean_mb_s", "≥", 50, "MB/s"),
    Target("the slowest hostile text, of clean text", "text", "hostile_share", "≥", 0.5),
    Target("interlock --help", "help", "help_s", "<", 0.3, "s"),
    Target("import interlock", "import", "import_s", "≤", 0.15, "s"),
)


ANALYSIS_TARGETS = (
    Target("a JUnit report of 500 MB: peak memory", "junit", "rss_mb", "<", 200, "MB"),
    Target(
        "100,000 commits read: seconds, of git log itself",
        measure="history-first",
        metric="read_s",
        comparison="≤",
        bound=3,
        against="git",
    ),
    Target(
        "the same once more: seconds, of the first time",
        measure="history-again",
        metric="read_s",
        comparison="≤",
        bound=0.05,
        against="interlock",
        against_measure="history-first",
    ),
    Target("the same: peak memory", "history-first", "rss_mb", "<", 200, "MB"),
    Target("recall among 1,000,000 symptoms: exact, p95", "recall", "exact_p95_ms", "<", 1, "ms"),
    Target("the same, fuzzy: p95", "recall", "fuzzy_p95_ms", "<", 20, "ms"),
    Target("10,000 failing tests analysed", "analysis", "seconds", "<", 300, "s"),
    Target("the same: peak memory", "analysis", "rss_mb", "<", 1_000, "MB"),
    Target("families of 10,000 failures", "recall", "cluster_s", "<", 60, "s"),
    Target("100,000 failing tests analysed: CPU", "red-night", "cpu_s", "<", 300, "s"),
    Target("the same: peak memory", "red-night", "rss_mb", "<", 1_000, "MB"),
    Target("the same: the page that opens first", "red-night", "page_mb", "<", 2, "MB"),
    Target("60,000 commits: CPU, the first time", "long-repository", "first_s", "<", 10, "s"),
    Target("the same once more: CPU", "long-repository", "again_s", "<", 2, "s"),
    Target("100 agents, a line a second each: CPU", "supervision", "cpu_percent", "<", 10, "%"),
    Target("the same, each asked how it stands", "supervision", "asked_percent", "<", 10, "%"),
    Target("the stream of an agent, in memory", "supervision", "parse_mb_s", "≥", 100, "MB/s"),
    Target("the same, through its pipe", "supervision", "pipe_mb_s", "≥", 100, "MB/s"),
)
"""What analysing and supervising may cost: measured apart, no peer is needed."""

POSTGRES_TARGETS = (
    Target("64 in flight: steps/s, of plain psycopg", "pg-many", RATE, "≥", 0.5, against="plain"),
    Target("64 in flight: steps/s, of DBOS", "pg-many", RATE, "≥", 5, against="dbos"),
    Target("dispatches answered by workers", "pg-workers", "dispatches_per_s", "≥", 100, "/s"),
    Target("from offer to worker: p50", "pg-latency", "pick_up_p50_ms", "<", 100, "ms"),
    Target("from reply to decision: p50", "pg-latency", "decide_p50_ms", "<", 20, "ms"),
    Target("take-over after SIGKILL", "pg-take-over", "take_over_s", "<", 10, "s"),
    Target("1 to 4 workers, agents of 0.5 s", "pg-scaling", "speed_up", "≥", 3.6),
    Target("5,000 waiting agents: CPU, of one core", "pg-waiting", "cpu_percent", "<", 25, "%"),
    Target("the same: memory of the coordinator", "pg-waiting", "rss_mb", "<", 300, "MB"),
)
"""What many machines may cost."""


def measured(target: Target, results: Results) -> Spread | None:
    return spread(_series(target, results))


def verdict(target: Target, found: Spread | None) -> Verdict:
    if found is None:
        return "not measured"
    return "pass" if COMPARISONS[target.comparison](found.median, target.bound) else "miss"


def _series(target: Target, results: Results) -> Series:
    ours = results.series("interlock", target.measure, target.metric)
    against = target.against
    if against is None:
        return ours
    if against == LOWEST_PEER:
        against = results.lowest_peer(target.measure, target.metric)
    if against is None:
        return {}
    other_measure = target.against_measure or target.measure
    return ratio(ours, results.series(against, other_measure, target.metric))
