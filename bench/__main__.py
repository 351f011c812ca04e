"""The door: `python -m bench` measures everything and rewrites docs/benchmarks.{md,svg}.

Knows the arguments and the order of the whole; each part of the work has its own file.
Exit 0: all counted. Exit 1: a result was rejected, or the peers could not be installed.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from bench import postgres
from bench.contest import Contest
from bench.environment import ROOT, SetupError, machine, peers_python
from bench.plot import draw
from bench.report import Report, analysis_page, postgres_page, write
from bench.results import Results
from bench.roster import FULL, PROGRAMS, QUICK, Program, Scale, one_round, warm_up

WORKDIR = ROOT / "build" / "bench"  # beside the code: a temporary directory may be in memory


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of a minute")
    parser.add_argument(
        "--analysis",
        action="store_true",
        help="only analysis and supervision, on a page of its own",
    )
    parser.add_argument(
        "--postgres", action="store_true", help="only PostgreSQL, coordinators and workers"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these programs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw results")
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="write the report there; default docs/, or nowhere with --quick or --only",
    )
    return parser.parse_args()


def chosen(only: list[str] | None) -> tuple[tuple[Program, ...], list[str]]:
    """The programs to run, and the names of those whose file does not exist."""
    wanted = [program for program in PROGRAMS if only is None or program.name in only]
    missing = [program.name for program in wanted if not program.path.exists()]
    return tuple(program for program in wanted if program.path.exists()), missing


def measure(programs: tuple[Program, ...], scale: Scale) -> Contest:
    contest = Contest(WORKDIR, say)
    if any(program.is_peer for program in programs):
        say("preparing .bench-venv")
        peers_python()
    for task in warm_up(programs):
        contest.run(task)
    for number in range(1, scale.rounds + 1):
        contest.measure_limits(number, scale.limit_s)
        for task in one_round(programs, number, scale):
            contest.run(task)
    contest.measure_start_up(times=10)
    contest.measure_reading(times=scale.rounds)
    contest.measure_files(times=scale.file_rounds, idle_s=scale.idle_s)
    shutil.rmtree(WORKDIR, ignore_errors=True)
    return contest


def measure_analysis() -> int:
    """What analysing and supervising cost; no peer is needed for it."""
    contest = Contest(WORKDIR, say)
    contest.measure_junit(times=1)
    contest.measure_history(times=1)
    contest.measure_recall(times=1)
    contest.measure_supervision(times=1, seconds=10)
    contest.measure_analysis(times=1)
    contest.measure_reach()
    shutil.rmtree(WORKDIR, ignore_errors=True)
    text = analysis_page(Results(contest.samples), machine(ROOT))
    print(text)
    (ROOT / "docs" / "benchmarks-analysis.md").write_text(text)
    for rejection in contest.rejections:
        say(f"REJECTED: {rejection}")
    return 1 if contest.rejections else 0


def measure_postgres(rounds: int) -> int:
    """What many machines cost, on one."""
    shutil.rmtree(WORKDIR, ignore_errors=True)
    WORKDIR.mkdir(parents=True)
    load = os.getloadavg()[0]
    try:
        samples = postgres.measure_all(WORKDIR, rounds, say)
    except (ValueError, OSError, SetupError, subprocess.SubprocessError) as error:
        say(f"REJECTED: {error}")
        return 1
    finally:
        shutil.rmtree(WORKDIR, ignore_errors=True)
    about = machine(ROOT) | {
        "server": f"{postgres.describe_server()}, on the same machine, with fsync",
        "load": f"{load:.1f} when this began, {os.getloadavg()[0]:.1f} when it ended",
    }
    text = postgres_page(Results(samples), about, rounds)
    print(text)
    (ROOT / "docs" / "benchmarks-postgres.md").write_text(text)
    return 0


def main() -> int:
    arguments = parse()
    if arguments.postgres:
        return measure_postgres(1 if arguments.quick else 2)
    if arguments.analysis:
        return measure_analysis()
    programs, missing = chosen(arguments.only)
    for name in missing:
        say(f"{name}: program missing")
    scale = QUICK if arguments.quick else FULL
    try:
        contest = measure(programs, scale)
    except SetupError as error:
        say(str(error))
        return 1
    report = Report(
        scale=scale,
        machine=machine(ROOT),
        versions=contest.versions,
        styles=contest.styles,
        results=Results(contest.samples),
        missing=missing,
        rejections=contest.rejections,
    )
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    is_partial = arguments.quick or arguments.only
    docs: Path | None = arguments.docs or (None if is_partial else ROOT / "docs")
    text = write(report)
    print(text)
    if docs:
        docs.mkdir(parents=True, exist_ok=True)
        (docs / "benchmarks.md").write_text(text)
        (docs / "benchmarks.svg").write_text(draw(report.results))
    if contest.rejections:
        say(f"{len(contest.rejections)} RESULTS REJECTED, see above")
    return 1 if contest.rejections else 0


if __name__ == "__main__":
    sys.exit(main())
