"""The agent `exec`: any command. The prompt goes to its stdin, its stdout is the answer.

Each ask is one supervised process, ended with everything it started; what an earlier Interlock left
when it was killed is ended first. What the exit code and the output mean is told as a reply; the
command learns its ids from INTERLOCK_* variables. The step's timeout is its only clock.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path

from interlock.agents.carrier import MAX_ANSWER, Ask, Deliver, Reply, TaskSet
from interlock.agents.cli.orphans import NO_WORKSPACE, WorkspaceOwner
from interlock.agents.cli.process import AgentProcess, ProcessEnd, ProcessSpec
from interlock.agents.cli.timeouts import StreamSign, Timeouts
from interlock.agents.function import unwrap_fence
from interlock.engine.circuit import CRASH, UNREADABLE
from interlock.system.process_tree import OutputLine

_MAX_STDERR = 2_000
_TIMEOUTS = Timeouts(first_byte=inf, silence=inf, after_result=inf, tool=inf, wall=inf, grace=2.0)


class CommandAgent:
    """A carrier that starts one process for each ask."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        ours: WorkspaceOwner = NO_WORKSPACE,
    ) -> None:
        self._argv = tuple(argv)
        self._environment = dict(environment)
        self._owner = ours
        self._running: dict[int, _RunningCommand] = {}
        self._tasks = TaskSet(self._run_dispatch, self._stop)

    def start(self, deliver: Deliver) -> None:
        self._tasks.start(deliver, self._owner.cleanup_orphans(LoopClock(), _TIMEOUTS.grace))

    def send(self, asks: Sequence[Ask]) -> None:
        self._tasks.begin(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._tasks.drop(dispatch_id)

    async def close(self) -> None:
        await self._tasks.close()

    async def _run_dispatch(self, ask: Ask) -> Reply:
        talk = self._running[ask.dispatch_id] = _RunningCommand(self._build_spec(ask))
        try:
            return talk.build_reply(ask, await talk.process.run())
        finally:
            if self._running.get(ask.dispatch_id) is talk:
                del self._running[ask.dispatch_id]

    def _stop(self, dispatch_id: int) -> bool:
        talk = self._running.pop(dispatch_id, None)
        if talk is not None:
            talk.process.stop()
        return talk is not None

    def _build_spec(self, ask: Ask) -> ProcessSpec:
        tag = self._owner.make_tag(ask.run_id, ask.dispatch_id, os.urandom(8).hex())
        environment = {**self._environment, **build_variables(ask)}
        folder = Path(ask.execution.folder)
        return ProcessSpec(self._argv, ask.prompt.encode(), folder, environment, tag)


class _RunningCommand:
    """One process and what it says. Over when it exits, says too much, or is not needed any
    more."""

    def __init__(self, start: ProcessSpec) -> None:
        self._output = bytearray()
        self.process = AgentProcess(
            start,
            _TIMEOUTS,
            self._on_line,
            LoopClock(),
            longest_line=MAX_ANSWER + 1,
            most_stdout=MAX_ANSWER,
        )

    def build_reply(self, ask: Ask, ended: ProcessEnd) -> Reply:
        dispatch_id = ask.dispatch_id
        if len(self._output) > MAX_ANSWER:
            reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
            return Reply(dispatch_id, failure=UNREADABLE, reason=reason)
        if ended.exit_code != 0:
            words = ended.stderr[-_MAX_STDERR:].decode(errors="replace").strip()
            told = f": {words}" if words else ""
            return Reply(
                dispatch_id, failure=CRASH, reason=f"{_describe_exit(ended.exit_code)}{told}"
            )
        return Reply(dispatch_id, unwrap_fence(bytes(self._output), ask.language))

    def _on_line(self, line: OutputLine) -> Iterable[StreamSign]:
        """Half a line counts too, also when what the command left behind was ended after it."""
        if (not line.late or line.half) and len(self._output) <= MAX_ANSWER:
            self._output += line.text if line.half else line.text + b"\n"
        return ()


class LoopClock:
    """The time of the running event loop, for those who were given no other."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_at(when, callback).cancel


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "it cannot be waited for"
    return f"exit code {code}" if code > 0 else f"killed by signal {-code}"


def build_variables(ask: Ask) -> dict[str, str]:
    """What a process is told of its ask."""
    return {
        "INTERLOCK_DISPATCH_ID": str(ask.dispatch_id),
        "INTERLOCK_RUN_ID": str(ask.run_id),
        "INTERLOCK_CASE_ID": ask.case_id,
        "INTERLOCK_STEP": ask.step,
        "INTERLOCK_ATTEMPT": str(ask.attempt),
        "INTERLOCK_ROLE": ask.role,
        **ask.execution.variables,
    }
