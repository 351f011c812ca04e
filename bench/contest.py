"""Runs the plan: one program after the other, each in an empty directory.

Knows how a checked run becomes numbers, and keeps what was rejected and why. The empty database
of each program is measured first and taken off, so that tables and indexes do not count as steps.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import (
    analysis,
    console,
    files,
    history,
    junit,
    limits,
    long_repository,
    protocol,
    reading,
    recall,
    red_night,
    supervision,
)
from bench.environment import peers_python
from bench.results import Sample
from bench.roster import Program, Task

MEGABYTE = 1e6


class Contest:
    """Runs a plan and keeps what came out: samples, styles, versions, rejections."""

    def __init__(self, workdir: Path, say: Callable[[str], None]) -> None:
        self.samples: list[Sample] = []
        self.styles: dict[str, dict[str, str]] = {}
        self.versions: dict[str, str] = {}
        self.rejections: list[str] = []
        self._empty_bytes: dict[str, int] = {}
        self._workdir = workdir
        self._say = say

    def run(self, task: Task) -> None:
        workdir = self._fresh_workdir()
        request = protocol.Request(command(task.program), workdir, task.cases, task.inflight)
        job = protocol.resume_after_kill if task.measure == "resume" else protocol.throughput
        label = f"round {task.round}  {task.measure:<10}  {task.program.name:<24}"
        try:
            run = job(request)
        except protocol.RejectedError as reason:
            last_line = str(reason).strip().splitlines()[-1]
            self.rejections.append(f"{task.program.name}, {task.measure}: {last_line}")
            self._say(f"{label}  REJECTED: {reason}")
            return
        if task.measure == "empty":
            self._empty_bytes[task.program.name] = run.db_bytes
            self.versions.update(run.outcome.versions)
            return
        self._keep(task, run, label)

    def measure_limits(self, number: int, seconds: float) -> None:
        workdir = self._fresh_workdir()
        values = {
            "fsyncs_per_s": limits.fsyncs_per_s(workdir, seconds),
            "commits_per_s": limits.commits_per_s(workdir, seconds),
        }
        self.samples.append(Sample("disk", "limits", number, values))

    def measure_start_up(self, times: int) -> None:
        """How long a user waits before anything happens: at the shell, and in Python."""
        help_page: list[str | Path] = [Path(sys.executable).parent / "interlock", "--help"]
        self._time("help", "help_s", help_page, times)
        self._time("import", "import_s", [sys.executable, "-c", "import interlock"], times)

    def _time(self, measure: str, metric: str, words: Sequence[str | Path], times: int) -> None:
        for number in range(1, times + 1):
            started = time.monotonic()
            try:
                subprocess.run(words, check=True, capture_output=True, timeout=60)
            except (OSError, subprocess.SubprocessError) as error:
                self._say(f"{measure}: does not run ({error})")
                return
            values = {metric: time.monotonic() - started}
            self.samples.append(Sample("interlock", measure, number, values))

    def measure_reading(self, times: int) -> None:
        for number in range(1, times + 1):
            values = reading.speeds()
            self.samples.append(Sample("interlock", "text", number, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"round {number}  reading  {shown}")

    def measure_recall(self, times: int) -> None:
        for number in range(1, times + 1):
            try:
                values = recall.speeds(self._fresh_workdir())
            except ValueError as error:
                self.rejections.append(f"interlock, recall: {error}")
                return
            self.samples.append(Sample("interlock", "recall", number, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"round {number}  recall  {shown}")

    def measure_files(self, times: int, idle_s: float) -> None:
        """The carrier `file`, watched and polled: how fast an answer counts, what waiting costs."""
        for number in range(1, times + 1):
            for mode in files.MODES:
                try:
                    values = files.latency(self._fresh_workdir(), mode)
                    values |= files.idle(self._fresh_workdir(), mode, idle_s)
                except (OSError, ValueError, subprocess.SubprocessError) as error:
                    self.rejections.append(f"interlock, file-{mode}: {error}")
                    continue
                self.samples.append(Sample("interlock", f"file-{mode}", number, values))
                shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
                self._say(f"round {number}  file-{mode:<12}  {shown}")

    def measure_junit(self, times: int) -> None:
        """A JUnit report of 500 MB, read in a process of its own."""
        for number in range(1, times + 1):
            try:
                values = junit.streaming(self._fresh_workdir())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self.rejections.append(f"interlock, junit: {error}")
                continue
            self.samples.append(Sample("interlock", "junit", number, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"round {number}  junit  {shown}")

    def measure_analysis(self, times: int) -> None:
        """A very red night, analysed by the real command."""
        for number in range(1, times + 1):
            try:
                values = analysis.analysed(self._fresh_workdir())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self.rejections.append(f"interlock, analysis: {error}")
                continue
            self.samples.append(Sample("interlock", "analysis", number, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"round {number}  analysis  {shown}")

    def measure_reach(self) -> None:
        """What is large: console logs of every shape, a long history, a very red night."""
        measures: tuple[tuple[str, Callable[[Path], dict[str, float]]], ...] = (
            ("console", console.measure_speeds),
            ("long-repository", long_repository.measure),
            ("red-night", red_night.measure_apart),
        )
        for measure, run in measures:
            try:
                values = run(self._fresh_workdir())
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self.rejections.append(f"interlock, {measure}: {error}")
                continue
            self.samples.append(Sample("interlock", measure, 1, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"{measure}  {shown}")

    def measure_history(self, times: int) -> None:
        """A long history of git, read for the first time and again; beside git's own telling."""
        if not times:
            return
        try:
            repository = self._fresh_workdir() / "long.git"
            history.make(repository)
            for number in range(1, times + 1):
                for program, measure, values in history.one_round(repository, number):
                    self.samples.append(Sample(program, measure, number, values))
                    shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
                    self._say(f"round {number}  {measure:<14}  {program:<12}  {shown}")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self.rejections.append(f"interlock, history: {error}")

    def measure_supervision(self, times: int, seconds: float) -> None:
        """Many agents that speak now and then, and one that floods."""
        for number in range(1, times + 1):
            try:
                values = supervision.watching(self._fresh_workdir(), seconds)
                values |= supervision.parsing(self._fresh_workdir())
            except (OSError, ValueError) as error:
                self.rejections.append(f"interlock, supervision: {error}")
                continue
            self.samples.append(Sample("interlock", "supervision", number, values))
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
            self._say(f"round {number}  supervision  {shown}")

    def _keep(self, task: Task, run: protocol.Run, label: str) -> None:
        if task.measure == "resume":
            values = resume_values(run)
        else:
            values = throughput_values(run, self._empty_bytes.get(task.program.name, 0))
        self.styles.setdefault(task.program.name, {})[task.measure] = run.outcome.style
        self.samples.append(Sample(task.program.name, task.measure, task.round, values))
        shown = "  ".join(f"{name} {value:,.4g}" for name, value in values.items())
        self._say(f"{label}  {shown}")

    def _fresh_workdir(self) -> Path:
        shutil.rmtree(self._workdir, ignore_errors=True)
        self._workdir.mkdir(parents=True)
        return self._workdir


def command(program: Program) -> tuple[str, ...]:
    python = peers_python() if program.is_peer else sys.executable
    return (python, str(program.path), *program.arguments)


def throughput_values(run: protocol.Run, empty_bytes: int) -> dict[str, float]:
    outcome = run.outcome
    steps = outcome.cases * protocol.STEPS
    return {
        "steps_per_s": steps / outcome.wall_s,
        "cpu_ms": outcome.cpu_s / steps * 1000,
        "bytes": (run.db_bytes - empty_bytes) / steps,
        "rss_mb": outcome.peak_rss_bytes / MEGABYTE,
        "start_s": outcome.main_at - run.spawned_at,
    }


def resume_values(run: protocol.Run) -> dict[str, float]:
    outcome = run.outcome
    first = outcome.first_ask_at if outcome.first_ask_at is not None else outcome.done_at
    return {
        "first_s": first - run.spawned_at,
        "done_s": outcome.done_at - run.spawned_at,
        "rss_mb": outcome.peak_rss_bytes / MEGABYTE,
    }
