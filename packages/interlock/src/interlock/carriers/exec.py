"""The agent `exec`: any command, with the prompt on stdin and the answer on stdout.

Each ask is one supervised process, ended with everything it started; what an earlier Interlock left
when it was killed is ended first. The command gets its ids as INTERLOCK_* variables. The step's
timeout is its only clock. Exit code 75 (EX_TEMPFAIL), or an error that names a rate limit, is a
rate limit.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path

from interlock.carriers.background import TaskCarrier
from interlock.carriers.cli.outcome import (
    PLAIN_LIMIT_TEXT,
    describe_left,
    find_time_zone,
    parse_reset_time,
)
from interlock.carriers.cli.ownership import NO_WORKSPACE, WorkspaceOwner
from interlock.carriers.cli.process import (
    AgentProcess,
    OutputLimits,
    ProcessEnd,
    ProcessSpec,
    describe_exit,
)
from interlock.carriers.cli.timeouts import StreamSign, Timeouts
from interlock.carriers.cli.work_folder import write_attempt_notes
from interlock.carriers.contract import MAX_ANSWER, Ask, Reply
from interlock.carriers.function import unwrap_fence
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.system.clock import SystemClock
from interlock.system.process_tree import OutputLine
from interlock.system.text import strip_colours

_NAME = "exec"
_MAX_STDERR = 1_000
_MAX_LINES = 8
"""Lines of stderr that are shown: the cause stands last."""
_TIMEOUTS = Timeouts(first_byte=inf, silence=inf, after_result=inf, tool=inf, wall=inf, grace=2.0)


class CommandAgent(TaskCarrier):
    """Start one process for each ask."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        owner: WorkspaceOwner = NO_WORKSPACE,
        root: Path | None = None,
    ) -> None:
        """Prepare to run the command; notes about its attempts go below `root`."""
        super().__init__()
        self._argv = tuple(argv)
        self._environment = dict(environment)
        self._owner = owner
        self._root = root

    async def prepare(self) -> None:
        await self._owner.cleanup_orphans(SystemClock(), _TIMEOUTS.grace)

    async def answer(self, ask: Ask) -> Reply:
        output = bytearray()

        def read_line(line: OutputLine) -> Iterable[StreamSign]:
            """Collect output; half a line counts too, even after what the command left behind was
            ended."""
            if (not line.late or line.half) and len(output) <= MAX_ANSWER:
                output.extend(line.text if line.half else line.text + b"\n")
            return ()

        process = AgentProcess(
            self._build_spec(ask),
            _TIMEOUTS,
            read_line,
            SystemClock(),
            limits=OutputLimits(line=MAX_ANSWER + 1, total=MAX_ANSWER),
        )
        with self.stoppable(ask, process):
            ended = await process.run()
        if ended.left and self._root is not None:
            write_attempt_notes(self._root, ask, _NAME, [describe_left(len(ended.left))])
        return _build_reply(ask, bytes(output), ended)

    def _build_spec(self, ask: Ask) -> ProcessSpec:
        tag = self._owner.make_tag(ask.run_id, ask.dispatch_id, os.urandom(8).hex())
        environment = {**self._environment, **build_variables(ask)}
        folder = Path(ask.execution.folder)
        return ProcessSpec(self._argv, ask.prompt.encode(), folder, environment, tag)


def _build_reply(ask: Ask, output: bytes, ended: ProcessEnd) -> Reply:
    if len(output) > MAX_ANSWER:
        reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
        return Reply(ask.dispatch_id, failure=UNREADABLE, reason=reason)
    if ended.exit_code != 0:
        stderr = _read_plain(ended.stderr).strip()
        lines = "\n".join(stderr.splitlines()[-_MAX_LINES:])[-_MAX_STDERR:]
        reason = ": ".join(part for part in (describe_exit(ended.exit_code), lines) if part)
        if ended.exit_code != os.EX_TEMPFAIL and not PLAIN_LIMIT_TEXT.search(lines):
            return Reply(ask.dispatch_id, failure=CRASH, reason=reason)
        until = parse_reset_time(lines, time.time(), find_time_zone) or 0
        return Reply(ask.dispatch_id, failure=RATE_LIMIT, reason=reason, until=until)
    text = _read_plain(output).encode()
    return Reply(ask.dispatch_id, unwrap_fence(text, ask.language))


def _read_plain(output: bytes) -> str:
    """Return the output without colour codes, with a mark in place of bytes that are not UTF-8."""
    return strip_colours(output.decode("utf-8", "replace"))


def build_variables(ask: Ask) -> dict[str, str]:
    """Return the variables that tell a process about its ask."""
    return {
        "INTERLOCK_DISPATCH_ID": str(ask.dispatch_id),
        "INTERLOCK_RUN_ID": str(ask.run_id),
        "INTERLOCK_CASE_ID": ask.case_id,
        "INTERLOCK_STEP": ask.step,
        "INTERLOCK_ATTEMPT": str(ask.attempt),
        "INTERLOCK_ROLE": ask.role,
        **ask.execution.variables,
    }
