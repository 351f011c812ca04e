"""How a CI job ended, by its console log: failed, succeeded, or unknown.

The tables in `job_log.toml` hold the fixed phrases of CI systems, build tools, compilers, linters
and packagers. What a line is worth depends on who says it:

- a CI system's word about a step or the job is believed; only its word about the whole job, as
  the last line of the log, overrules a failed step (a step may be allowed to fail, or be retried);
- a build tool's word about its own run holds until it runs again and succeeds; as the end of the
  log it is proof, else it only speaks for itself;
- a compiler, a linter or a shell may complain for reasons of its own, and a test may print
  anything: what stands before a green test run leaves open how the job ended.

Silence proves nothing. Green tests prove nothing about what ran after them.
"""

import re
from enum import IntEnum
from importlib import resources
from itertools import islice
from typing import BinaryIO

import msgspec

from interlock.system.test_output.counts import (
    MOST_SHAPES,
    compute_shape,
    read_lines,
    read_run,
    strip_console,
)
from interlock.system.text import strip_colours

FAILED, SUCCEEDED, UNKNOWN = "failed", "succeeded", "unknown"


class Weight(IntEnum):
    """The source of a complaint."""

    COMPLAINT = 1
    """A compiler, a linter, a shell: one command may have failed."""
    TOOL = 2
    """A build tool about its own run."""
    STEP = 3
    """The CI system about a step."""
    JOB = 4
    """The CI system about the whole job."""


class Statement(msgspec.Struct, frozen=True):
    """A line that says how something ended."""

    tool: str
    kind: str
    """build, compile, lint, test, coverage, install, deploy, timeout, cancelled or job."""
    weight: Weight
    text: str
    line: int
    is_count: bool = False
    """True if it only counts failed tests, naming neither tests nor reasons."""


class JobVerdict(msgspec.Struct, frozen=True):
    """How the job ended, and the lines that say so."""

    status: str
    """failed, succeeded or unknown."""
    decisive: Statement | None = None
    """The statement that decides."""
    cause: Statement | None = None
    """For a failed job, the most precise statement about what failed."""
    failed_step: Statement | None = None
    """For a failed job, the CI system's first statement about a failed step."""
    overruled: tuple[Statement, ...] = ()
    """Failures despite the job's success: allowed, or retried."""


class _Table:
    """Rows of tool, kind and pattern, as one pattern: of the rows that fit a line the first counts.
    `<code>` is an exit code other than 0."""

    def __init__(self, weight: Weight, rows: list[tuple[str, str, str]]) -> None:
        self.weight = weight
        self._labels = {f"row{at}": (tool, kind) for at, (tool, kind, _) in enumerate(rows)}
        parts = (f"(?P<row{at}>{pattern})" for at, (_, _, pattern) in enumerate(rows))
        self.pattern = re.compile("|".join(parts).replace("<code>", r"(?!0+\b)-?\d{1,10}\b"))

    def match(self, line: str, number: int) -> Statement | None:
        found = self.pattern.match(line)
        if found is None or found.lastgroup is None:
            return None
        tool, kind = self._labels[found.lastgroup]
        return Statement(tool, kind, self.weight, line.strip()[:_LONGEST_TEXT], number)


_LINE = 2_000
_LONGEST_TEXT = 500
_ROWS = msgspec.toml.decode(
    resources.files("interlock_rca.sources").joinpath("job_log.toml").read_bytes(),
    type=dict[str, list[tuple[str, str, str]]],
)
_JOB_FAILED = _Table(Weight.JOB, _ROWS["job_failed"])
_STEP_FAILED = _Table(Weight.STEP, _ROWS["step_failed"])
_TOOL_FAILED = _Table(Weight.TOOL, _ROWS["tool_failed"])
_COMPLAINED = _Table(Weight.COMPLAINT, _ROWS["complained"])
_LAST_WORDS = _Table(Weight.COMPLAINT, _ROWS["last_words"])
_JOB_SUCCEEDED = _Table(Weight.JOB, _ROWS["job_succeeded"])
_TOOL_SUCCEEDED = _Table(Weight.TOOL, _ROWS["tool_succeeded"])
_NEAR_END = 12
_LABELLED = re.compile(r"\s*[\w@+./:-]{1,60} \| ?")
"""The part of a build that a line comes from, before the line itself."""
_AFTERWORD = re.compile(
    r"\s*$|[-=~*\s]+$|\[(?:INFO|WARN\w*|info|warn|success)\]|INFO: |Total time|Finished at"
    r"|Final Memory"
    r"|Time Elapsed|\s+\d+ (?:Warning|Error)\(s\)|\d+ actionable tasks?|Configuration cache "
    r"|Publishing build scan|https?://\S+$|\s*\S+: (?:OK|SKIP)\b|Deprecated Gradle|See https"
    r"|You can use '--warning-mode|For more on this"
)
"""What a build tool still says after its verdict."""
_RUNNER_START = re.compile(r"(?:Current runner version|##\[section\]Starting: |Agent name: )")
_RUNNER_END = re.compile(
    r"(?:Cleaning up orphan processes|Terminate orphan process"
    r"|##\[section\]Finishing: )"
)
_RUNNER_MARK = re.compile(r"##\[(?!error\])\w+\]")
"""A runner of GitHub or Azure, which marks every failed step with `##[error]`. A browser shows
plain errors instead: only where other marks are does it mean something that this one is not."""
_GREEN = re.compile(
    r"=* ?\d+ passed\b(?!.*(?:failed|error)).* in [\d.]+ ?s|OK(?: \(.*\))?$"
    r"|Tests run: [1-9]\d*, +Failures: 0, Errors: 0(?!.*Time elapsed)|test result: ok\."
    r"|Tests: +\d+ passed(?!.*failed)|\s+\d+ passing \(|\d+ examples?, 0 failures"
    r"|Passed! +- Failed: +0|100% tests passed|\[ +PASSED +\] \d+ tests?|# fail +0$|Result: PASS$"
)
"""The end of a test run in which nothing failed."""
_STEMS = (
    *("abort", "bail", "because", "cancel", "could not", "couldn't", "denied", "diff in", "done"),
    *("elifecycle", "err", "exceed", "exit", "fail", "fatal", "finish", "go: ", "hook id", "issue"),
    *("kill", "ld: ", "line ", "no matching", "no output", "no solution", "non-zero", "not found"),
    *("not met", "not pass", "npm ", "offense", "panic", "problem", "reformat", "requirements"),
    *("run end", "segmentation", "state: ", "stop", "threshold", "too long", "unable", "unauthor"),
    *(
        "undefined",
        "unsatisf",
        "unstable",
        "unsuccess",
        "vet: ",
        "terminated",
        "hangup",
        "out of memory",
        "violation",
        "vulnerabil",
        "e: /",
        "e: file",
        "***",
        "\u2716",
    ),
)
"""A line without any of these, and without a place in a file, does not say that anything failed."""
_PLACE = re.compile(r"\S+?[:(]\d+")
_MOST_STATEMENTS = 500
_REACH = 400
"""The lines before the decisive statement in which the cause is searched."""
_BEFORE, _AFTER, _LAST = 30, 80, 40
"""Lines of evidence: before the cause, after it, and before the word that settles it."""


def select_evidence(log: BinaryIO, verdict: JobVerdict) -> list[str]:
    """Return the log's lines around the failure and before the decisive statement."""
    if verdict.cause is None or verdict.decisive is None:
        return []
    cause, last = verdict.cause.line, verdict.decisive.line
    start, until = min(cause - _BEFORE, last - _LAST), max(cause + _AFTER, last)
    start = max(1, start)
    lines = islice(read_lines(log, start=start - 1), until - start + 1)
    return [
        strip_console(line[:_LINE])[:_LONGEST_TEXT]
        for number, line in enumerate(lines, start)
        if cause - _BEFORE <= number <= cause + _AFTER or last - _LAST <= number <= last
    ]


_FAILED_TABLES = (_JOB_FAILED, _STEP_FAILED, _TOOL_FAILED, _COMPLAINED)


def _match_failure(line: str, number: int) -> Statement | None:
    return next((found for table in _FAILED_TABLES if (found := table.match(line, number))), None)


class JobReader:
    """Lines in, the verdict out. One pass, in memory that does not grow with the log."""

    def __init__(self) -> None:
        self._number = 0
        self._failed: list[Statement] = []
        """Statements of failure that no success has cancelled."""
        self._doubtful: list[Statement] = []
        """Those before a green test run: the job went on, or a test printed them."""
        self._succeeded: Statement | None = None
        """The last line of the log, blank lines and afterwords aside, if it states success."""
        self._last_words: Statement | None = None
        """The last complaint in the form that complaints have anywhere."""
        self._has_runner = False
        self._has_marks = False
        self._idle_shapes: set[bytes] = set()
        """Lines, whatever their numbers, that say nothing about how anything ended."""

    @property
    def is_listening(self) -> bool:
        """Return True if even a line without a statement may matter now."""
        return self._succeeded is not None

    def skip_lines(self, count: int) -> None:
        """Note that so many meaningless lines were skipped."""
        self._number += count

    def knows_idle(self, shape: bytes) -> bool:
        """Return whether lines of that shape say nothing about how anything ended."""
        return shape in self._idle_shapes

    def add_line(self, raw: str) -> Statement | None:
        """Return the line's statement of failure, if any."""
        self._number += 1
        shape = compute_shape(raw[:_LINE])
        if shape in self._idle_shapes:
            self._succeeded = None
            return None
        # Progress and fold marks end with a return; the line itself follows.
        raw = strip_colours(raw[:_LINE]).rstrip().rpartition("\r")[2]
        line = strip_console(raw)
        if not line.strip():
            return None
        is_worth_reading = any(map(line.lower().__contains__, _STEMS)) or _PLACE.match(line)
        if is_worth_reading and (failed := self._find_failure(line)):
            self._succeeded = None
            if len(self._failed) < _MOST_STATEMENTS or failed.weight >= Weight.STEP:
                self._failed.append(failed)
            return failed
        if is_worth_reading and (words := _LAST_WORDS.match(line, self._number)):
            self._last_words = words
        if not self._note_success(raw, line) and not is_worth_reading:
            if len(self._idle_shapes) >= MOST_SHAPES:
                self._idle_shapes.clear()
            self._idle_shapes.add(shape)
        return None

    def _note_success(self, raw: str, line: str) -> bool:
        """Return True if the line belongs to a success, or may: a runner's frame, a tool's last
        words."""
        is_start = bool(_RUNNER_START.match(line))
        self._has_runner = self._has_runner or is_start
        is_mark = bool(_RUNNER_MARK.match(line))
        self._has_marks = self._has_marks or is_mark
        before, self._succeeded = self._succeeded, None
        is_end = bool(_RUNNER_END.match(line))
        if success := _JOB_SUCCEEDED.match(line, self._number):
            self._succeeded = success
        elif success := _TOOL_SUCCEEDED.match(line, self._number):
            self._succeeded = success
            self._failed = [one for one in self._failed if not _is_repaired(one, success)]
            self._doubtful = [one for one in self._doubtful if not _is_repaired(one, success)]
        elif self._has_runner and is_end and (self._has_marks or self._last_words is None):
            self._succeeded = Statement("runner", "job", Weight.STEP, line, self._number)
        elif _GREEN.match(line):
            self._doubtful += [one for one in self._failed if one.weight <= Weight.TOOL]
            self._failed = [one for one in self._failed if one.weight > Weight.TOOL]
            self._last_words = None
        elif not _AFTERWORD.match(raw):
            return is_start or is_end or is_mark
        elif before and before.weight == Weight.TOOL:
            self._succeeded = before
        return True

    def _find_failure(self, line: str) -> Statement | None:
        found = _match_failure(line, self._number)
        if found is None and (label := _LABELLED.match(line)):
            found = _match_failure(line[label.end() :], self._number)
        return found or self._read_failed_run(line)

    def _read_failed_run(self, line: str) -> Statement | None:
        """Return a test runner's final count: it fails the job if nothing else is stated."""
        run = read_run(line)
        if run is None or not run[1].failed:
            return None
        text = line.strip()[:_LONGEST_TEXT]
        return Statement(run[0], "test", Weight.COMPLAINT, text, self._number, is_count=True)

    def finish(self) -> JobVerdict:
        gravest = max((one.weight for one in self._failed), default=0)
        open_statements = (*self._doubtful, *self._failed)
        # The system's word about the whole job overrules what its steps and tools say; a runner
        # that marks failed steps and marked none overrules the tools; a tool overrules nothing.
        # Tests that failed have failed, whatever the job makes of it, unless a green run follows.
        red_tests = [one for one in self._failed if _is_about_tests(one)]
        is_job_green = self._succeeded and self._succeeded.weight > max(gravest, Weight.TOOL)
        if is_job_green and not red_tests:
            return JobVerdict(SUCCEEDED, self._succeeded, overruled=open_statements)
        if gravest:
            grave = [one for one in self._failed if one.weight == gravest]
            decisive = (red_tests if is_job_green else grave)[0]
            ends = [one for one in self._failed if one.weight >= Weight.STEP]
            step = next((one for one in ends if not is_annotation(one)), ends[0] if ends else None)
            return JobVerdict(FAILED, decisive, self._find_cause(decisive), failed_step=step)
        if self._succeeded and not any(one.weight == Weight.TOOL for one in open_statements):
            return JobVerdict(SUCCEEDED, self._succeeded, overruled=open_statements)
        last = self._last_words
        if last and self._number - last.line <= _NEAR_END and not self._succeeded:
            return JobVerdict(FAILED, last, last)
        return JobVerdict(UNKNOWN, overruled=open_statements)

    def _find_cause(self, decisive: Statement) -> Statement:
        """Return the first complaint, else a tool's first statement, shortly before the first
        failed step; if none is near, the last one before it."""
        end = next((one for one in self._failed if one.weight == Weight.STEP), decisive)
        # A tool may give its reason after its statement.
        is_system = end.weight >= Weight.STEP
        before = [one for one in self._failed if one.line <= end.line or not is_system]
        counts = [one for one in before if one.is_count]
        telling = [one for one in before if one.kind != "job" and not one.is_count] or counts
        # Tests may be green and their tool not content all the same: too little was covered, say.
        if not telling:
            telling = [one for one in self._doubtful if one.weight == Weight.TOOL]
        near = [one for one in telling if end.line - one.line <= _REACH] or telling[-1:] or before
        return min(near, key=lambda one: (one.weight, one.kind == "build"))


def is_annotation(failed: Statement) -> bool:
    """Return True if a runner only repeats a tool's complaint, without ending the step."""
    return failed.text.startswith("##[error]") and "exit code" not in failed.text


def _is_about_tests(failed: Statement) -> bool:
    return failed.weight == Weight.TOOL and failed.kind == "test"


def _is_repaired(failed: Statement, success: Statement) -> bool:
    """Return True if a later run of the same tool succeeded; failed tests may just be ignored."""
    is_same = failed.weight == Weight.TOOL and failed.tool == success.tool
    return is_same and not _is_about_tests(failed)
