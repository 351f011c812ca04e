"""How a CI job ended, by its console log: failed, succeeded, or unknown.

The tables hold the fixed phrases of CI systems, build tools, compilers, linters and packagers; to
know one more is one more row. What a line is worth depends on who says it:

- a CI system's word about a step or the job is believed; only its word about the whole job, as
  the last line of the log, overrules a failed step (a step may be allowed to fail, or be retried);
- a build tool's word about its own run holds until it runs again and succeeds; as the end of the
  log it is proof, else it only speaks for itself;
- a compiler, a linter or a shell may complain for reasons of its own, and a test may print
  anything: what stands before a green test run leaves open how the job ended.

Silence proves nothing. Green tests prove nothing about what ran after them.
"""

import re
from collections.abc import Iterable
from enum import IntEnum
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
    """Who says that something went wrong."""

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
    """It only counts failed tests, and says neither which nor why."""


class JobVerdict(msgspec.Struct, frozen=True):
    """How the job ended, and who says so."""

    status: str
    """failed, succeeded or unknown."""
    decisive: Statement | None = None
    """The statement that settles it."""
    cause: Statement | None = None
    """Of a failed job: the most precise statement about what failed."""
    failed_step: Statement | None = None
    """Of a failed job: where the CI system says that a step failed, the first time."""
    overruled: tuple[Statement, ...] = ()
    """What failed although the job succeeded: it was allowed to, or was tried again."""


class _Table:
    """Rows of tool, kind and pattern (it may go on in an indented line), as one pattern: of the
    rows that fit a line the first counts. `<code>` is an exit code other than 0."""

    def __init__(self, weight: Weight, text: str) -> None:
        rows = [row.split(" ", 2) for row in text.strip().replace("\n    ", "").split("\n")]
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
_JOB_FAILED = _Table(
    Weight.JOB,
    r"""
travis job (?:Done\. )?Your build exited with <code>
travis cancelled (?:Done: )?(?:Job|Your build) (?:was |has been )?(?:cancell?ed|stopped)
travis timeout No output has been received in the last \d+m
travis timeout The job exceeded the maximum (?:time|log)
gitlab timeout (?:ERROR: )?Job failed: execution took longer than
gitlab job (?:ERROR|FATAL|WARNING): Job failed\b
jenkins cancelled Finished: (?:ABORTED|NOT_BUILT)$
jenkins test Finished: UNSTABLE$
jenkins job Finished: FAILURE$
taskcluster job \[?taskcluster.*Unsuccessful task run with exit code: <code>
cloudbuild job ERROR: build step \d+ ".*" failed
codebuild job (?:\[Container\] .* )?Phase complete: \w+ State: (?:FAILED|FAULT|TIMED_OUT)
semaphore job Job failed\.$
prow job .*\"component\":\"entrypoint\".*wrapped process failed
appveyor timeout Build execution time has reached the maximum allowed time
netlify job (?:.*: )?Build script returned non-zero exit code:\s
zuul job (?:.*\| )?(?:POST-|PRE-)?RUN END RESULT_(?!NORMAL)\w+
    """,
)
_STEP_FAILED = _Table(
    Weight.STEP,
    r"""
github cancelled ##\[error\]\s*The (?:operation|job|runner).{0,40}\b(?:cancell?ed|shutdown)
github timeout ##\[error\]\s*The (?:job|action).{0,80}(?:exceeded|timed out)
github job ##\[error\]\s*\S|Error: Process completed with exit code <code>
travis job The command ".*" (?:failed and )?exited with <code>
travis job The command ".*" failed \d+ times
jenkins job ERROR: script returned exit code <code>
jenkins job Build step '.*' (?:marked|changed) build.* (?:as|to) (?:failure|FAILURE)
circleci job Exited with code (?:exit status )?<code>
circleci timeout Too long with no output
circleci job (?:CircleCI )?received exit code <code>
buildkite job (?:\W{1,4})?Error: The command exited with (?:status|code) <code>
codebuild job .*COMMAND_EXECUTION_ERROR:\s
vercel job Error: Command ".*" exited with <code>
    """,
)
_TOOL_FAILED = _Table(
    Weight.TOOL,
    r"""
appveyor job Command exited with code <code>
teamcity job Process exited with code <code>
cirrus job Exit status: <code>
semaphore job exit code: <code>(?: duration:.*)?$
drone job (?:.*: )?exit code <code>$
make build g?make(?:\[\d+\])?: \*\*\* (?!.*\(ignored\))
make build (?:nmake|NMAKE) : fatal error\s
ninja build ninja: (?:build stopped|error|fatal)
ninja compile FAILED: (?!Build )\S
cmake build CMake Error|-- Configuring incomplete, errors occurred
ctest test Errors while running CTest
meson build (?:\S+:\d+:\d+: )?ERROR: (?:Dependency|Problem encountered|Unknown compiler)
configure build configure: error:\s
maven test There are test failures\.|Failed to execute goal .*(?:surefire|failsafe)
maven compile COMPILATION ERROR|Failed to execute goal .*:compile|.*Compilation failure
maven lint Failed to execute goal .*(?:checkstyle|pmd|spotbugs|findbugs|spotless|license|rat)
maven install Failed to execute goal .*(?:[Cc]ould not resolve dependencies)
maven deploy Failed to execute goal .*(?:deploy|nexus-staging|release)-?\w*-plugin
maven build BUILD FAILURE\b|Failed to execute goal\s
gradle lint Execution failed for task '.*(?:checkstyle|pmd|spotbugs|spotless|ktlint|detekt|lint)
gradle compile Execution failed for task '.*[cC]ompile
gradle test Execution failed for task '.*[tT]est\w*'|There were failing tests\b
gradle deploy Execution failed for task '.*[pP]ublish
gradle build BUILD FAILED\b|FAILURE: Build (?:failed|completed with \d+ failures)
    |Execution failed for
npm test npm (?:ERR!|error) Test failed
npm install npm (?:ERR!|error) code (?:E404|ERESOLVE|ETARGET|ENOTFOUND|EINTEGRITY|EUSAGE)
npm deploy npm (?:ERR!|error) (?:code E(?:401|403|NEEDAUTH)|.*\bpublish\b)
npm build npm (?:ERR!|error) (?:code |errno |Exit status|command failed|Lifecycle|[Mm]issing script)
yarn build error Command failed with exit code <code>|error Command .* not found
yarn install error (?:An unexpected error occurred|Couldn't find|Your lockfile needs)
pnpm build \s*(?:\u2009)?(?:ELIFECYCLE|ERR_PNPM_\w+)\b|\s*ERROR\s+Command failed with exit code
lerna build lerna ERR!\s
nx build \s*(?:[>\u2716]\s*)?NX\s+Ran target .* but |.*Failed tasks:$
turbo build \s*(?:ERROR\s+)?run failed: command\s+exited
cargo test error: (?:\d+ targets? failed|test failed|doctest failed)
cargo compile error: (?:could not compile|aborting due to|Could not compile)|error: build failed
cargo deploy error: failed to publish
cargo build error: (?:process didn't exit successfully|failed to (?:run|select|load|parse|get))
go compile FAIL\t\S+ \[(?:build|setup) failed\]
go test FAIL\t\S+(?:\t[\d.]+s)?$|FAIL$|panic: test timed out
go build go: (?!downloading|finding|extracting|added|upgraded|found|creating|to add|warning)\S.*:\s
bazel build (?:FAILED|ERROR): Build (?:did NOT complete|failed)|Build did NOT complete successfully
bazel test Executed \d+ out of \d+ tests?: .*\b[1-9]\d* fails?\s
msbuild build Build FAILED\.|MSBUILD : error\s
msbuild compile .*: error (?:CS|VB|FS|MSB|NETSDK|NU|C|LNK)\d{3,5}:
dotnet test Test Run Failed\.
tox build \s+\S+: (?:FAIL\b|exit -?\d|commands failed)|ERROR:\s+\S+: (?:commands|could not|parallel)
tox build \s*evaluation failed :\(
tox build ERROR: InvocationError for command .*\(exited with code <code>\)
nox build nox > (?:Session \S+ failed|Command .* failed with exit code|\* \S+: failed)
sbt test \(.*\) sbt\.TestsFailedException|.*: Tests unsuccessful$
sbt compile \(.*compile\w*\) Compilation failed
sbt build \(.* / .*\) (?:sbt|java|scala|xsbti)\.[\w.$]+(?:Exception|Error|Failed)\b
ant build BUILD FAILED$
rake build rake aborted!
bundler install (?:Bundler could not find|Could not find gem|An error occurred while installing)
mix compile == Compilation error in file|\*\* \((?:Mix|CompileError|SyntaxError)\)
lein test Tests failed\.$
xcode build \*\* (?:BUILD|ARCHIVE) FAILED \*\*|The following build commands failed:
xcode test \*\* TEST FAILED \*\*
swift compile error: fatalError$
flutter build (?:Gradle task \S+|Target \S+) failed
composer install \s*Your requirements could not be resolved to an installable set
composer build Script .* handling the .* event returned with error code
phpunit test (?:FAILURES|ERRORS)!$
pip install ERROR: (?:Could not (?:find|install|build)|No matching distribution|Failed building)
pip install (?:\s*(?:\u00d7|error:) )?(?:subprocess-exited-with-error|metadata-generation-failed)
pip build error: (?:command '.*' failed|Setup script exited|legacy-install-failure)
conda install (?:\w*PackagesNotFoundError|ResolvePackageNotFound|UnsatisfiableError|CondaHTTPError)
poetry install \s*Because .* version solving failed\.
uv install \s*\u00d7 (?:No solution found|Failed to (?:build|download|resolve))
apt install E: (?:Unable to locate|Failed to fetch|Unable to fetch|Sub-process|Package)
docker build (?:The command '.*' returned a non-zero code|(?:ERROR: )?failed to (?:solve|build):)
docker build (?:#\d+ )?(?:[\d.]+ )?(?:ERROR|executor failed running).*exit code: \d
docker deploy (?:denied: |unauthorized: |Error response from daemon: )
helm deploy Error: (?:UPGRADE|INSTALLATION|INSTALL) FAILED|Error: release .* failed
terraform deploy \u2502 Error: \S|Error: (?:Error |Invalid |Failed |Unsupported |Missing )
kubectl deploy error: (?:deployment|timed out waiting|unable to recognize|the server )
ansible deploy (?:fatal|failed): \[\S+\]: (?:FAILED|UNREACHABLE)!|\S+ +: ok=.*\bfailed=[1-9]
twine deploy (?:ERROR\s+)?HTTPError: [45]\d\d\s
pytest coverage (?:FAIL|ERROR:?) [Rr]equired test coverage of|Coverage failure:\s
pytest build .*INTERNALERROR>
nyc coverage ERROR: Coverage for \w+ \(.*\) does not meet
sonar lint (?:\[?ERROR\]?:? )?QUALITY GATE STATUS: FAILED
cocoapods install \[!\] (?:CocoaPods could not find|Unable to find|Error installing)
fastlane deploy fastlane finished with errors
stack compile \s+Process exited with code: ExitFailure <code>
r-check build Status: [1-9]\d* ERRORs?\b
jest coverage Jest: \".*\" coverage threshold|Jest: .* threshold for .* not met
prove test Result: FAIL$|Bail out!
karma test (?:.*: )?Executed \d+ of \d+ .*\b(?:DISCONNECTED|ERROR)\b
cypress test \s*\u2716\s+\d+ of \d+ failed
pre-commit lint \S.*\.{3,}(?:\(.*\))?Failed$|- hook id: \S
    """,
)
_COMPLAINED = _Table(
    Weight.COMPLAINT,
    r"""
mypy lint \S+\.pyi?(?::\d+){1,2}: error:\s
golangci lint \S+\.go:\d+:\d+: \S.* \([a-z]\w+\)$
compiler compile \S+?(?::\d+){1,2}: (?:fatal )?error\b:?\s
compiler compile \S+\(\d+(?:,\d+)?\)\s?: (?:fatal )?error [A-Z]+\d+
compiler compile error(?:\[E\d{4}\])?: (?!.*\b0\b errors?)\S.*|e: (?:file:)?/\S+
compiler compile \S+\.go:\d+:\d+: (?!warning)\S|vet: \S+:\d+
compiler compile collect2: error: |ld: (?!warning)\S|(?:.*: )?undefined reference to\s
tsc compile \S+:\d+:\d+ - error TS\d+
webpack build ERROR in |Module not found: Error|Failed to compile\.$
    |webpack .*compiled with [1-9]\d* error
vite build (?:\w+ )?error during build:|\[vite\].*error|RollupError
python build (?:SyntaxError|IndentationError|ModuleNotFoundError|ImportError):\s
mypy lint Found [1-9]\d* errors? in \d+ files?
flake8 lint [\w./\\-]+\.\w+:\d+:(?:\d+:)? [A-Z]{1,4}\d{2,4}\b
pylint lint [\w./\\-]+\.py:\d+:\d+: [CRWEF]\d{4}:\s
ruff lint Found [1-9]\d* errors?\b
black lint (?:Oh no! |[1-9]\d* files? would be reformatted|[Ww]ould reformat:? )
isort lint ERROR: \S+ Imports are incorrectly sorted
eslint lint \s*\u2716 [1-9]\d* problems? \([1-9]\d* errors?
eslint lint \s+\d+:\d+ +error +\S.* {2,}\S+$
stylelint lint \s*\u2716 [1-9]\d* (?:problems?|errors?)$
    |[1-9]\d* (?:source )?problems? \([1-9]\d* errors?
prettier lint (?:\[warn\] )?Code style issues (?:found|were found)
rubocop lint \d+ files? inspected, [1-9]\d* offenses? detected
golangci lint [1-9]\d* issues?:$|level=error\s
gofmt lint (?:The following files|Go files|These files).*(?:not (?:properly )?formatted|gofmt)
rustfmt lint Diff in \S+ at line \d+|Diff in \S+:\d+
shellcheck lint In \S+ line \d+:$
checkstyle lint \[ERROR\] \S+\.java:\d+|There (?:are|is) [1-9]\d* errors? reported by Checkstyle
phpcs lint FOUND [1-9]\d* ERRORS?\b
phpstan lint \s*\[ERROR\] Found [1-9]\d* errors?
clang-format lint .*error: code should be clang-formatted
sphinx build (?:Warning, treated as error:|build finished with problems)
curl install curl: \([1-9]\d*\)\s
rsync deploy rsync error:\s
shell build (?:\S+: )?(?:line \d+: )?\S+: (?:command not found|not found|Permission denied)$
shell build (?:\S+: )*(?:line \d+: +\d+ )?(?:Segmentation fault|Killed|Aborted(?! by)
    |Bus error)\b(?:.*core dumped.*)?
git install fatal: (?:unable to access|could not read|repository .* not found
    |Authentication failed)
shell job (?:Error: |ERROR: )?(?:.{0,80}\b(?:[Cc]ommand|[Pp]rocess|[Ss]cript|[Tt]ask|[Bb]uild
    |[Ss]tep|subprocess)\b.{0,120}\b(?:exit(?:ed)?|returned|failed)(?: with)?(?: (?:exit|error
    |non-zero))? ?(?:code|status)?:? '?<code>|.{0,200}\bnon-?zero exit (?:code|status))
tests test (?:\W{0,6})(?:Some tests|Tests?|Test run|Test suite)s? (?:have |has |did )?(?:FAILED
    |failed|not pass)\W{0,3}$
tests test \W{0,4}[1-9]\d* (?:tests?|specs?|scenarios?|examples?|checks?) (?:have )?fail(?:ed|ing
    |ures?)?\b
    """,
)
_LAST_WORDS = _Table(
    Weight.COMPLAINT,
    r"""
exception build (?:[\w$]+[.:]{1,2})*[A-Z]\w*(?:Error|Exception|Panic)(?:: \S.*)?$
tool build (?:[\w./-]+(?:\[\d+\])?: |\[[\w-]+\] |\W{1,4}){0,2}(?:[Ff]atal [Ee]rror|[Ee]rror|ERROR
    |[Ff]atal|FATAL|FAILED|Failed)\b ?[:!\]] ?\S.*
tool build .*\b(?:[Aa]n error occurred|[Ff]ailed (?:because|with (?:\w+ )?errors?))\b.*
tool build \W{0,6}(?!.*\b0 errors?\b)(?:[Ff]ound )?[1-9]\d* (?:errors?|problems?|failures?
    |violations?|vulnerabilit(?:y|ies))\b.*
tool build \W{1,16}[1-9]\d*/\d+ (?:failed|errored)\b.*
ended build (?:\S+: )?(?:Terminated|Hangup|Out of memory|Quit)(?: .*)?$
    """,
)
"""Complaints of any tool, by their form. They may stand in the middle of a log that ends well: only
the last lines of a log are believed, where nothing else says how it ended."""
_NEAR_END = 12
_LABELLED = re.compile(r"\s*[\w@+./:-]{1,60} \| ?")
"""The part of a build that a line comes from, before the line itself."""
_JOB_SUCCEEDED = _Table(
    Weight.JOB,
    r"""
travis job (?:Done\. )?Your build exited with 0\.?$
gitlab job Job succeeded$
jenkins job Finished: SUCCESS$
circleci job CircleCI received exit code 0$
taskcluster job \[?taskcluster.*(?:Successful task run with exit code: 0)
semaphore job Job passed\.$
appveyor job Build success$
    """,
)
_TOOL_SUCCEEDED = _Table(
    Weight.TOOL,
    r"""
maven build BUILD SUCCESS$
gradle build BUILD SUCCESSFUL(?: in .*)?$
ant build BUILD SUCCESSFUL$
msbuild build Build succeeded\.$
bazel build (?:INFO: )?Build completed successfully\b
sbt build \[success\] Total time: .* s\b.*, completed\s
tox test \s*congratulations :\)
xcode build \*\* (?:BUILD|TEST|ARCHIVE) SUCCEEDED \*\*
    """,
)
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
"""How many lines before the word that settles it the cause is looked for."""
_BEFORE, _AFTER, _LAST = 30, 80, 40
"""Lines of evidence: before the cause, after it, and before the word that settles it."""


def judge_job(lines: Iterable[str]) -> JobVerdict:
    """How the job ended whose console log this is."""
    reader = JobReader()
    for line in lines:
        reader.add_line(line)
    return reader.finish()


def select_evidence(log: BinaryIO, verdict: JobVerdict) -> list[str]:
    """The lines of the log around what failed and before what settles it."""
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
_BEGINNINGS = (_GREEN, _RUNNER_START, _RUNNER_END, _RUNNER_MARK)


def is_idle(raw: str) -> bool:
    """Whether a line means nothing where nobody is listening, by the tables themselves."""
    line = strip_console(strip_colours(raw[:_LINE]).rstrip().rpartition("\r")[2])
    if not line.strip() or _match_failure(line, 0) or read_run(line):
        return False
    label = _LABELLED.match(line)
    if label and _match_failure(line[label.end() :], 0):
        return False
    tables = (_LAST_WORDS, _JOB_SUCCEEDED, _TOOL_SUCCEEDED)
    patterns = (*(table.pattern for table in tables), *_BEGINNINGS)
    return not any(pattern.match(line) for pattern in patterns)


def list_patterns() -> list[str]:
    """All that `is_idle` goes by."""
    tables = (*_FAILED_TABLES, _LAST_WORDS, _JOB_SUCCEEDED, _TOOL_SUCCEEDED)
    return [*(table.pattern.pattern for table in tables), *(each.pattern for each in _BEGINNINGS)]


def _match_failure(line: str, number: int) -> Statement | None:
    return next((found for table in _FAILED_TABLES if (found := table.match(line, number))), None)


class JobReader:
    """Lines in, the verdict out. One pass, in memory that does not grow with the log."""

    def __init__(self) -> None:
        self._number = 0
        self._failed: list[Statement] = []
        """Statements of failure that nothing has taken back."""
        self._doubtful: list[Statement] = []
        """Those before a green test run: the job went on, or a test printed them."""
        self._succeeded: Statement | None = None
        """The last line of the log, blank lines and afterwords aside, if it says so."""
        self._last_words: Statement | None = None
        """The last complaint in the form that complaints have anywhere."""
        self._has_runner = False
        self._has_marks = False
        self._idle_shapes: set[bytes] = set()
        """Lines, whatever their numbers, that say nothing about how anything ended."""

    @property
    def is_listening(self) -> bool:
        """Whether also a line that says nothing about an end may mean something now."""
        return self._succeeded is not None

    def skip_lines(self, count: int) -> None:
        """So many lines went by that mean nothing."""
        self._number += count

    def add_line(self, raw: str) -> Statement | None:
        """What the line says about a failure, if it says anything."""
        self._number += 1
        shape = compute_shape(raw[:_LINE])
        if shape in self._idle_shapes:
            self._succeeded = None
            return None
        # Progress and fold marks end with a return; what follows is the line itself.
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
        """Whether the line belongs to a success, or may: a runner's frame, a tool's last words."""
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
        """What a test runner counts at its end: it fails the job if nothing else is said."""
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
        """The first complaint, else the first word of a tool, not long before the first step that
        failed; where none is near, the last one before it."""
        end = next((one for one in self._failed if one.weight == Weight.STEP), decisive)
        # A tool may say what failed after it has said that something did.
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
    """Whether a runner repeats a complaint of a tool, and does not say how the step ended."""
    return failed.text.startswith("##[error]") and "exit code" not in failed.text


def _is_about_tests(failed: Statement) -> bool:
    return failed.weight == Weight.TOOL and failed.kind == "test"


def _is_repaired(failed: Statement, success: Statement) -> bool:
    """Whether a later run of the same tool makes it good; failed tests may just be ignored."""
    is_same = failed.weight == Weight.TOOL and failed.tool == success.tool
    return is_same and not _is_about_tests(failed)
