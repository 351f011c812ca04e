"""Run verification commands: every cell of the matrix as a supervised process.

The room hides starting, timing and ending process trees, endless or undecodable output, and the
counts that test runners print. A check that cannot run is distinguished from one that failed. No
shell is used, and a check's writes are not confined.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path

import msgspec

from interlock.carriers.cli.ownership import TAGS, ProcessTag
from interlock.carriers.cli.process import AgentProcess, OutputLimits, ProcessEnd, ProcessSpec
from interlock.carriers.cli.timeouts import Timeouts
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.process_table import ProcessSnapshot
from interlock.system.process_tree import OutputLine
from interlock.system.test_output.counts import CountReader, strip_console
from interlock.system.test_output.failures import read_log
from interlock.system.text import strip_colours
from interlock_delivery.checks.records import CheckCell, CheckResult, Environment

HEAD = 8 * 1024
TAIL = 32 * 1024
LONGEST_LINE = 64 * 1024
_MOST_NAMES = 200
_SHORTEST_SUMMARY = 6
_SKIPPED_APART = ("pytest", "rust", "mocha", "playwright")
"""Runners whose count of tests leaves out the skipped ones."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class CheckOutput(msgspec.Struct, frozen=True):
    """The kept part of a check's output, as text without colours."""

    head: str
    tail: str
    left_out: int
    test_count: int | None
    failed_count: int | None
    failed_tests: tuple[str, ...]


class OutputTail:
    """Keeps the beginning and the end of an output, however long it is."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most_head, self._most_tail = head, tail
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._counting = CountReader()

    def take(self, line: OutputLine) -> tuple[()]:
        """Take a line, unless it came after our own stop signal."""
        if not line.late:
            self._count(line.text)
            self._append(line.text if line.half else line.text + b"\n")
        return ()

    def finish(self, stderr: bytes) -> CheckOutput:
        """Return the kept output, with the end of `stderr` after what was printed."""
        for line in stderr.split(b"\n"):
            self._count(line)
        self._trim()
        kept = self._head + self._tail
        ends = bytes(self._tail) if self._dropped else bytes(kept)
        gap = b"\n" if ends and stderr and not ends.endswith(b"\n") else b""
        head, tail = _decode_output(bytes(self._head)), _decode_output(ends + gap + stderr)
        names = _find_failed_tests(head if self._dropped else "", tail)
        return CheckOutput(
            head=head if self._dropped else "",
            tail=tail,
            left_out=self._dropped,
            test_count=self._count_tests(),
            failed_count=self._counting.compute_total().failed
            if self._count_tests() is not None
            else None,
            failed_tests=names,
        )

    def _count(self, text: bytes) -> None:
        if _SHORTEST_SUMMARY <= len(text) <= 1_000:
            self._counting.add_line(strip_console(text.decode("utf-8", "replace")))

    def _append(self, text: bytes) -> None:
        room = self._most_head - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 2 * self._most_tail:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._most_tail
        if over > 0:
            self._dropped += over
            del self._tail[:over]

    def _count_tests(self) -> int | None:
        total = self._counting.compute_total()
        if not total.tests and not total.failed and not total.skipped:
            return None
        apart = any(self._counting.has_counts(tool) for tool in _SKIPPED_APART)
        return max(0, total.tests - (0 if apart else total.skipped))


def _decode_output(content: bytes) -> str:
    text = strip_colours(content.decode("utf-8", "replace").replace("\r\n", "\n"))
    return _CONTROL.sub("\ufffd", text)


def _find_failed_tests(head: str, tail: str) -> tuple[str, ...]:
    failures = read_log((f"{head}\n{tail}" if head else tail).split("\n")).failures
    names = {
        " ".join(part for part in (each.file, each.class_name, each.test_name) if part)
        for each in failures
    }
    return tuple(sorted(names))[:_MOST_NAMES]


OnResult = Callable[[CheckCell, CheckResult], None]
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""The exit codes of shells and containers for a command that is not executable or not found."""


class CheckEnvironment(msgspec.Struct, frozen=True):
    """Where checks run.

    `environ` is everything they see of the environment, beside the tag. The tag must be unique to
    this round: every process that carries it is ended with the check.
    """

    folder: Path
    environ: Mapping[str, str]
    tag: ProcessTag


class CheckLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a round. Checks run one at a time by default, since they share caches and ports."""

    at_once: int = 1
    most_output: int = 64 * 1024 * 1024
    """The bytes on stdout after which a check is ended."""
    grace: float = 5.0
    probe: float = 60.0
    """The seconds an environment has to show that it is available."""


async def run_checks(
    cells: Sequence[CheckCell],
    place: CheckEnvironment,
    clock: Clock,
    *,
    limits: CheckLimits | None = None,
    on_result: OnResult | None = None,
) -> tuple[CheckResult, ...]:
    """Run all cells and return their results in order, reporting each result at once."""
    if not place.folder.is_dir():
        raise SourceError(f"checks cannot run: the folder {str(place.folder)!r} does not exist")
    round_ = _CheckRun(
        place, clock, limits or CheckLimits(), on_result or (lambda _cell, _result: None)
    )
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(round_.run(cell)) for cell in cells]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tuple(task.result() for task in tasks)


class _CheckRun:
    def __init__(
        self, place: CheckEnvironment, clock: Clock, limits: CheckLimits, on_result: OnResult
    ) -> None:
        if limits.at_once < 1:
            raise SourceError(f"{limits.at_once} checks at once: write 1 or more")
        self._place = place
        self._clock = clock
        self._limits = limits
        self._on_result = on_result
        self._slots = asyncio.Semaphore(limits.at_once)
        self._processes = ProcessSnapshot(TAGS)
        self._started = 0
        self._answers: dict[str, bool] = {}
        self._asking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, cell: CheckCell) -> CheckResult:
        async with self._slots:
            result = await self._run_check(cell)
        self._on_result(cell, result)
        return result

    async def _run_check(self, cell: CheckCell) -> CheckResult:
        output = OutputTail()
        try:
            ended = await self._run_process(cell.argv, cell.check.timeout, output)
        except SourceError as error:
            if not isinstance(error.__cause__, OSError) or not self._place.folder.is_dir():
                raise
            return _build_unstarted_result(cell, self._place.folder, str(error), error.__cause__)
        result = _build_result(cell, ended, output.finish(ended.stderr), self._limits)
        return result if result.passed else await self._explain_failure(cell, result)

    async def _run_process(
        self, argv: tuple[str, ...], seconds: float, output: OutputTail
    ) -> ProcessEnd:
        self._started += 1
        tag = msgspec.structs.replace(
            self._place.tag, nonce=f"{self._place.tag.nonce}.{self._started}"
        )
        environ = {**self._place.environ, "PWD": str(self._place.folder)}
        clocks = Timeouts(
            first_byte=inf,
            silence=inf,
            after_result=inf,
            tool=inf,
            wall=seconds,
            grace=self._limits.grace,
        )
        return await AgentProcess(
            ProcessSpec(argv, b"", self._place.folder, environ, str(tag)),
            clocks,
            output.take,
            self._clock,
            limits=OutputLimits(line=LONGEST_LINE, total=self._limits.most_output),
            snapshot=self._processes,
        ).run()

    async def _explain_failure(self, cell: CheckCell, result: CheckResult) -> CheckResult:
        """Mark a failure as unavailable if only the command or its environment is missing."""
        if result.exit_code in (NOT_EXECUTABLE, NOT_FOUND) and not result.timed_out:
            missing = _find_missing_file(cell, self._place.folder)
            note = (
                f"{missing} is missing from the work"
                if missing
                else "a command in it was not found"
            )
            return msgspec.structs.replace(result, unavailable=not missing, note=note)
        if cell.environment.prefix and not await self._is_available(cell.environment):
            note = f"the environment {cell.environment.name} does not respond"
            return msgspec.structs.replace(result, unavailable=True, note=note)
        return result

    async def _is_available(self, place: Environment) -> bool:
        """Return True if the environment can run `true`, or look for it; asked once per round."""
        async with self._asking[place.name]:
            if place.name not in self._answers:
                self._answers[place.name] = await self._probe_environment(place)
        return self._answers[place.name]

    async def _probe_environment(self, place: Environment) -> bool:
        try:
            ended = await self._run_process(
                (*place.prefix, "true"), self._limits.probe, OutputTail()
            )
        except SourceError:
            return False
        there = (0, NOT_EXECUTABLE, NOT_FOUND)
        return ended.by == "itself" and ended.exit_code in there


def _build_result(
    cell: CheckCell, ended: ProcessEnd, printed: CheckOutput, limits: CheckLimits
) -> CheckResult:
    itself = ended.by == "itself"
    return CheckResult(
        check=cell.check.name,
        environment=cell.environment.name,
        exit_code=ended.exit_code,
        expected=cell.check.exit_code,
        passed=itself and ended.exit_code == cell.check.exit_code,
        timed_out=ended.by == "wall",
        seconds=round(ended.ended_at - ended.started_at, 3),
        output_head=printed.head,
        output_tail=printed.tail,
        left_out=printed.left_out,
        test_count=printed.test_count,
        failed_count=printed.failed_count,
        failed_tests=printed.failed_tests,
        note=_describe_end(cell, ended, limits),
    )


def _describe_end(cell: CheckCell, ended: ProcessEnd, limits: CheckLimits) -> str:
    if ended.by == "wall":
        return f"it was stopped after {cell.check.timeout:g} s"
    if ended.by == "us":
        return f"it was stopped after printing more than {limits.most_output:,} bytes"
    if ended.left:
        return f"it left {len(ended.left)} running, stopped with it: {ended.left[0].name}"
    return ""


def _build_unstarted_result(
    cell: CheckCell, folder: Path, sentence: str, error: OSError
) -> CheckResult:
    """Return the result of a check that did not start; a missing script is the work's fault."""
    first = cell.argv[0]
    ours = "/" in first and not first.startswith("/") and not cell.environment.prefix
    fault = ours and (isinstance(error, PermissionError) or not (folder / first).exists())
    code = NOT_EXECUTABLE if isinstance(error, PermissionError) else NOT_FOUND
    return CheckResult(
        check=cell.check.name,
        environment=cell.environment.name,
        exit_code=code if fault else None,
        expected=cell.check.exit_code,
        passed=False,
        unavailable=not fault,
        note=sentence,
    )


def _find_missing_file(cell: CheckCell, folder: Path) -> str:
    """Return the first word of the command that names a file missing from the work, or ""."""
    for word in cell.check.command[:3]:
        inside = "/" in word or word.endswith((".sh", ".py", ".js", ".pl", ".rb"))
        odd = word.startswith(("/", "-")) or "://" in word or " " in word
        if inside and not odd and not (folder / word).exists():
            return word
    return ""
