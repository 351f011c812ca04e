"""Run the user's command once in a work tree, and judge its outcome.

A failure counts only if the command reached the test, which is judged by the runs at the failing
and the passing commit. Anything else (exit code 125, a missing command, a broken set-up, another
error) skips the commit.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from math import inf
from pathlib import Path

import msgspec

from interlock.carriers.cli.process import (
    AgentProcess,
    OutputLimits,
    ProcessEnd,
    ProcessSpec,
    describe_exit,
)
from interlock.carriers.cli.timeouts import Timeouts
from interlock.system.clock import SystemClock
from interlock.system.process_tree import OutputLine
from interlock.system.test_output.counts import CountReader, strip_console
from interlock.system.test_output.failures import read_log
from interlock.system.text import strip_colours
from interlock_rca.records import CommandRun, PrintedFailure
from interlock_rca.reproduce.search import Outcome

MAX_OUTPUT = 64 * 1024 * 1024
_KEPT = 256 * 1024
_SHOWN_LINES, _SHOWN = 20, 4_000
_LONGEST_LINE = 64 * 1024
_MOST_FAILED = 200
_CANNOT_RUN = (126, 127)
"""Shells' exit codes for a command that cannot be run or is missing."""
SKIP_CODE = 125
"""As for `git bisect run`: this commit cannot be tested."""


def run_command(
    script: str,
    folder: Path,
    environ: Mapping[str, str],
    tag: str,
    *,
    commit: str,
    command: str,
    timeout: float,
) -> CommandRun:
    """Run a shell script in a folder, and end everything that it started. `command` is shown for
    it."""
    output = _Output()
    clock = SystemClock()
    limits = Timeouts(
        first_byte=inf, silence=inf, after_result=inf, tool=inf, wall=timeout, grace=5.0
    )
    # Both streams share one file, so their output keeps its order.
    argv = ("/bin/sh", "-c", f"exec 2>&1\n{script}")
    process = AgentProcess(
        ProcessSpec(argv, b"", folder, {**environ, "PWD": str(folder)}, tag),
        limits,
        output.take,
        clock,
        limits=OutputLimits(line=_LONGEST_LINE, total=MAX_OUTPUT),
    )
    ended = asyncio.run(_run_until_stopped(process))
    stopped = {
        "wall": f"it was stopped after {timeout:g} s",
        "us": f"it was stopped after printing more than {MAX_OUTPUT:,} bytes",
    }.get(ended.by, "")
    return output.summarize(
        CommandRun(
            commit=commit,
            command=command,
            at=ended.started_at,
            seconds=round(ended.ended_at - ended.started_at, 3),
            exit_code=None if stopped else ended.exit_code,
            stopped=stopped,
            timed_out=ended.by == "wall",
        )
    )


async def _run_until_stopped(process: AgentProcess) -> ProcessEnd:
    """Run the process; if we are told to stop, end it first with everything it started."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    told: list[int] = []

    def stop() -> None:
        told.append(signal.SIGTERM)
        if task is not None:
            task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await process.run()
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise


class _Output:
    """The end of a command's output, and the counts of its test runner."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._counts = CountReader()

    def take(self, line: OutputLine) -> tuple[()]:
        if not line.late:
            if len(line.text) <= 1_000:
                self._counts.add_line(strip_console(line.text.decode("utf-8", "replace")))
            self._kept += line.text + b"\n"
            if len(self._kept) > 2 * _KEPT:
                del self._kept[:-_KEPT]
        return ()

    def summarize(self, run: CommandRun) -> CommandRun:
        text = strip_colours(self._kept[-_KEPT:].decode("utf-8", "replace").replace("\r\n", "\n"))
        total = self._counts.compute_total()
        counted = bool(total.tests or total.failed or total.skipped)
        failed = dict.fromkeys(
            PrintedFailure(each.test_name, each.type.rpartition(".")[2])
            for each in read_log(text.split("\n")).failures
            if each.test_name
        )
        lines = [line.rstrip() for line in text.strip().split("\n")][-_SHOWN_LINES:]
        return msgspec.structs.replace(
            run,
            tests=max(0, total.tests - total.skipped) if counted else None,
            failed=tuple(failed)[:_MOST_FAILED],
            tail="\n".join(lines)[-_SHOWN:],
        )


class RunJudge:
    """Judges runs by the first ones at the failing and at the passing commit."""

    def __init__(self, test_name: str) -> None:
        self._test = test_name
        self._failing: CommandRun | None = None
        self._passing: CommandRun | None = None

    def judge(self, run: CommandRun) -> tuple[Outcome, str]:
        """Return pass, fail or skip, and why it is skipped."""
        if run.stopped:
            return self._judge_stopped(run)
        if run.exit_code == 0:
            self._passing = self._passing or run
            return self._judge_passed(run)
        if run.exit_code == SKIP_CODE:
            return "skip", f"the command says so (exit code {SKIP_CODE})"
        if run.exit_code is None or run.exit_code in _CANNOT_RUN:
            return "skip", f"the command could not be run ({describe_exit(run.exit_code)})"
        self._failing = self._failing or run
        return self._judge_failed(run, self._failing)

    def _judge_stopped(self, run: CommandRun) -> tuple[Outcome, str]:
        """A test that hangs at the failing commit fails by hanging; otherwise it is another
        failure."""
        if run.timed_out:
            self._failing = self._failing or run
            if self._failing.timed_out:
                return "fail", ""
        return "skip", run.stopped

    def _judge_passed(self, run: CommandRun) -> tuple[Outcome, str]:
        likely = (self._failing, self._passing)
        if any(each is not None and each.tests for each in likely) and run.tests == 0:
            return "skip", "no test ran"
        return "pass", ""

    def _judge_failed(self, run: CommandRun, first: CommandRun) -> tuple[Outcome, str]:
        if first.timed_out:
            return "skip", f"it did not hang, but failed ({describe_exit(run.exit_code)})"
        if first.tests and not run.tests:
            return "skip", f"no test ran ({describe_exit(run.exit_code)})"
        own, now = self._find_own(first), self._find_own(run)
        if own is not None and now is None:
            return "skip", "other tests failed, and not this one"
        if own is not None and now is not None and own.type and now.type and own.type != now.type:
            return "skip", f"it failed with {now.type}, not with {own.type}"
        return "fail", ""

    def _find_own(self, run: CommandRun) -> PrintedFailure | None:
        """Return the failure of the test itself, or the only one."""
        named = [each for each in run.failed if self._is_own(each.name)]
        return next(iter(named), run.failed[0] if len(run.failed) == 1 else None)

    def _is_own(self, name: str) -> bool:
        return bool(self._test) and (name == self._test or name.endswith((f".{self._test}",)))


def build_environment(environ: Mapping[str, str], top: str, tree: Path) -> dict[str, str]:
    """Return the user's environment without variables that would lead git or Python back to the
    user's tree."""
    found = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    if top and (paths := found.get("PYTHONPATH")):
        moved = [_move_path(each, top, tree) for each in paths.split(os.pathsep)]
        found["PYTHONPATH"] = os.pathsep.join(moved)
    # Python compares compiled files by time and size alone, which two commits may share.
    return {**found, "PYTHONDONTWRITEBYTECODE": "1"}


def _move_path(path: str, top: str, tree: Path) -> str:
    inside = path == top or path.startswith(f"{top}/")
    return str(tree) + path[len(top) :] if inside else path
