"""The written report: docs/benchmarks.md from a set of results.

Knows which columns a table has and how a number is shown. Does no measuring and no arithmetic
of its own beyond rounding; ratios and verdicts come from `results` and `targets`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from bench.console import SHAPES
from bench.files import MODES
from bench.history import AGAIN, FIRST
from bench.results import Results, Spread, ratio, spread
from bench.roster import OPEN_SIZES, PROGRAMS, Scale
from bench.targets import (
    ANALYSIS_TARGETS,
    POSTGRES_TARGETS,
    TARGETS,
    Target,
    measured,
    verdict,
)

PAGE = Path(__file__).with_name("page.md")
ANALYSIS_PAGE = Path(__file__).with_name("analysis_page.md")
POSTGRES_PAGE = Path(__file__).with_name("postgres_page.md")
MISSING = "-"
NAMES = {
    "ceiling": "ceiling: plain Python + sqlite3, commits of 64",
    "ceiling, single commits": "ceiling: the same, a commit for each step",
    "interlock": "**Interlock**",
    "burr": "Burr",
    "burr, threads": "Burr, `SQLitePersister` in threads",
    "langgraph": "LangGraph",
    "dbos": "DBOS",
}


class Report(msgspec.Struct, frozen=True):
    scale: Scale
    machine: dict[str, str]
    versions: dict[str, str]
    styles: dict[str, dict[str, str]]
    results: Results
    missing: list[str]
    rejections: list[str]


def number(value: float) -> str:
    """Three digits that count: 0.0123, 1.23, 12.3, 123, 12,300."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 1000:
        digits = len(str(int(magnitude))) - 3
        return f"{round(value, -digits):,.0f}"
    if magnitude >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}"


READ = {
    "clean": "8 MB of prose, a signal at the end",
    "fences": "8 MB of signals inside fences, a live one at the end",
    "open_fences": "8 MB of fences that are opened and never closed",
    "near_signals": "1,000,000 lines that are nearly signals",
    "one_line": "one line of 100 MB",
}


def cell(found: Spread | None, unit: str = "") -> str:
    """The median, and the range behind it when there is one."""
    if found is None:
        return MISSING
    text = number(found.median) + unit
    if found.low == found.high:
        return text
    return f"{text} ({number(found.low)} to {number(found.high)})"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def throughput_table(results: Results, measure: str, ceiling: str) -> str:
    header = ["", "steps/s", "of the ceiling", "Interlock / it"]
    header += ["CPU ms/step", "bytes/step", "peak MB", "start s"]
    top, ours = (results.series(name, measure, "steps_per_s") for name in (ceiling, "interlock"))
    rows = []
    for program in PROGRAMS:
        series = results.series(program.name, measure, "steps_per_s")
        if not series:
            continue
        shares = [spread(series), spread(ratio(series, top)), spread(ratio(ours, series))]
        metrics = ("cpu_ms", "bytes", "rss_mb", "start_s")
        others = [results.spread(program.name, measure, metric) for metric in metrics]
        medians = [number(found.median) if found else MISSING for found in others]
        rows.append([NAMES[program.name], *map(cell, shares), *medians])
    return table(header, rows)


def resume_table(results: Results) -> str:
    rows = []
    for program in PROGRAMS:
        found = [results.spread(program.name, "resume", m) for m in ("first_s", "done_s", "rss_mb")]
        if any(found):
            rows.append([NAMES[program.name], *map(cell, found)])
    return table(["", "s to the first new step", "s to all done", "peak MB"], rows)


def open_table(results: Results) -> str:
    rows = []
    for program in PROGRAMS:
        for size in OPEN_SIZES:
            metrics = ("steps_per_s", "cpu_ms", "rss_mb")
            found = [results.spread(program.name, f"open-{size}", metric) for metric in metrics]
            if any(found):
                rows.append([f"{NAMES[program.name]}, {size:,} open", *map(cell, found)])
    return table(["", "steps/s", "CPU ms/step", "peak MB"], rows)


def file_table(results: Results) -> str:
    rows = []
    for mode in MODES:
        metrics = ("p50_ms", "p95_ms", "cpu_percent")
        found = [results.spread("interlock", f"file-{mode}", metric) for metric in metrics]
        if any(found):
            rows.append([mode, *map(cell, found)])
    return table(["", "p50 ms", "p95 ms", "idle CPU %"], rows)


def history_table(results: Results) -> str:
    rows = []
    for program, measure, words in (
        ("git", FIRST, "git log itself"),
        ("interlock", FIRST, "Interlock, the first time"),
        ("interlock", AGAIN, "Interlock, once more"),
    ):
        found = [results.spread(program, measure, metric) for metric in ("read_s", "rss_mb")]
        if any(found):
            rows.append([words, *map(cell, found)])
    return table(["", "s", "peak MB"], rows)


def reading_table(results: Results) -> str:
    rows = [
        [words, cell(results.spread("interlock", "text", f"{name}_mb_s"))]
        for name, words in READ.items()
    ]
    return table(["message", "MB/s"], rows)


def target_table(results: Results, targets: Sequence[Target] = TARGETS) -> str:
    rows = []
    for target in targets:
        found = measured(target, results)
        unit = f" {target.unit}"
        wanted = f"{target.comparison} {target.bound:g}{unit}"
        rows.append([target.what, wanted, cell(found, unit), verdict(target, found)])
    return table(["target", "wanted", "measured", "verdict"], rows)


def limits_line(results: Results) -> str:
    fsyncs = results.spread("disk", "limits", "fsyncs_per_s")
    commits = results.spread("disk", "limits", "commits_per_s")
    return (
        f"Appends of 4 KiB with fsync: {cell(fsyncs)} a second. "
        f"Bare commits of one row (WAL, FULL): {cell(commits)} a second."
    )


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def notes(report: Report) -> str:
    styles = [
        f"{NAMES[name]}: " + "; ".join(dict.fromkeys(by_measure.values()))
        for name, by_measure in report.styles.items()
    ]
    return bullets(styles)


def write(report: Report) -> str:
    results = report.results
    versions = ", ".join(f"{name} {found}" for name, found in sorted(report.versions.items()))
    problems = [f"{name}: program missing, not measured." for name in report.missing]
    problems += [f"REJECTED, not counted: {rejection}" for rejection in report.rejections]
    parts = {
        "machine": bullets(f"{name}: {fact}" for name, fact in report.machine.items()),
        "versions": versions,
        "problems": f"**Incomplete:**\n\n{bullets(problems)}\n\n" if problems else "",
        "limits": limits_line(results),
        "targets": target_table(results),
        "many": throughput_table(results, "many", "ceiling"),
        "single": throughput_table(results, "single", "ceiling, single commits"),
        "resume": resume_table(results),
        "open": open_table(results),
        "files": file_table(results),
        "reading": reading_table(results),
        "styles": notes(report),
    }
    return PAGE.read_text().format(
        **parts,
        rounds=report.scale.rounds,
        resume_rounds=report.scale.resume_rounds,
        resume_cases=report.scale.resume_cases,
    )


CLUSTER = {
    ("pg-workers", "dispatches_per_s"): ("answered by two workers and decided, all here", "/s"),
    ("pg-workers", "coordinator_ms"): ("the same: CPU of the coordinator, for each", " ms"),
    ("pg-workers", "worker_ms"): ("the same: CPU of the workers, for each", " ms"),
    ("pg-waiting", "offered_per_s"): ("offered to workers by one coordinator", "/s"),
    ("pg-waiting", "taken_per_s"): ("taken by one worker", "/s"),
    ("pg-latency", "pick_up_p50_ms"): ("from offer to worker: p50", " ms"),
    ("pg-latency", "pick_up_p95_ms"): ("the same: p95", " ms"),
    ("pg-latency", "decide_p50_ms"): ("from reply to decision: p50", " ms"),
    ("pg-latency", "decide_p95_ms"): ("the same: p95", " ms"),
    ("pg-take-over", "take_over_s"): ("take-over after SIGKILL", " s"),
    ("pg-scaling", "one_s"): ("120 dispatches of 0.5 s, one worker with two slots", " s"),
    ("pg-scaling", "four_s"): ("the same, four workers", " s"),
    ("pg-waiting", "cpu_percent"): ("5,000 waiting agents: CPU of the coordinator", " %"),
    ("pg-waiting", "rss_mb"): ("the same: its memory", " MB"),
}


def steps_table(results: Results) -> str:
    names = {"plain": "plain psycopg, the same rows", "interlock": "**Interlock**", "dbos": "DBOS"}
    ours = results.series("interlock", "pg-many", "steps_per_s")
    rows = []
    for program, words in names.items():
        series = results.series(program, "pg-many", "steps_per_s")
        shares = (spread(series), spread(ratio(ours, series)))
        cpu = results.spread(program, "pg-many", "cpu_ms")
        rows.append([words, *map(cell, shares), cell(cpu)])
    return table(["", "steps/s", "Interlock / it", "CPU ms/step"], rows)


def postgres_page(results: Results, about: dict[str, str], rounds: int) -> str:
    """docs/benchmarks-postgres.md from a set of results."""
    rows = [
        [words, cell(results.spread("interlock", measure, metric), unit)]
        for (measure, metric), (words, unit) in CLUSTER.items()
    ]
    return POSTGRES_PAGE.read_text().format(
        machine=bullets(f"{name}: {fact}" for name, fact in about.items()),
        targets=target_table(results, POSTGRES_TARGETS),
        steps=steps_table(results),
        cluster=table(["", "measured"], rows),
        rounds=rounds,
        step_rounds=3 * rounds,
    )


def analysis_page(results: Results, about: dict[str, str]) -> str:
    """docs/benchmarks-analysis.md from a set of results."""
    return ANALYSIS_PAGE.read_text().format(
        machine=bullets(f"{name}: {fact}" for name, fact in about.items()),
        targets=target_table(results, ANALYSIS_TARGETS),
        history=history_table(results),
        consoles=table(
            ["console log", "MB for each second of CPU"],
            [[name, cell(results.spread("interlock", "console", name))] for name in SHAPES],
        ),
    )
