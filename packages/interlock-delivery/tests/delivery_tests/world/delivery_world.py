"""A yard: a real repository, a plan, and agents that are functions working in real trees."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.function import AsyncHandler, AsyncHandlerFunction
from interlock.carriers.human import HumanAnswer, HumanCarrier, write_answer
from interlock.engine.circuit import HUMAN, Circuit
from interlock.journal.connection import Connection
from interlock.journal.database import open_reader, open_writer
from interlock.journal.history import list_cases as case_lines
from interlock.journal.history import list_lines
from interlock.journal.journal import Journal
from interlock.journal.mailbox import Mailbox
from interlock.journal.runs import (
    NewRun,
    RunStatus,
    begin_run,
    find_run,
    load_decisions,
    load_open_dispatches,
)
from interlock.runtime.circuits import find_circuit
from interlock.runtime.loop import RunLoop
from interlock.runtime.session import RunSession
from interlock.runtime.terms import RunCounts, RunTerms
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock_delivery.application import Delivery
from interlock_delivery.config import DeliveryConfig, DeliverySettings
from interlock_delivery.hooks import DeliveryHooks
from interlock_delivery.plan.watch import build_cases, load_usable_plan
from interlock_delivery.steps import PROGRAMS
from tests.world.git_repo import git

Agent = Callable[[Ask, Path], str]
"""What an agent says, after what it did in its folder."""

CALC = "def add(a, b):\n    return a + b\n"
TEST = """\
import unittest

import calc


class Calc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)
"""
RUNNER = '''\
"""Runs tests as unittest does and says so in its words; unittest itself takes longer to load."""

import sys
import time
import traceback
from types import ModuleType


class TestCase:
    def assertEqual(self, found, wanted):
        if found != wanted:
            raise AssertionError(f"{found!r} != {wanted!r}")

    def assertTrue(self, found):
        self.assertEqual(bool(found), True)


def run(name, module, kind, test):
    label = f"{test} ({name}.{kind.__name__}.{test})"
    try:
        getattr(kind(), test)()
    except Exception as error:
        word = "FAIL" if isinstance(error, AssertionError) else "ERROR"
        print(f"{label} ... {word}", file=sys.stderr)
        return f"{'=' * 70}\\n{word}: {label}\\n{'-' * 70}\\n{traceback.format_exc()}"
    print(f"{label} ... ok", file=sys.stderr)
    return ""


def main():
    import os

    sys.path.insert(0, ".")
    sys.modules["unittest"] = unittest = ModuleType("unittest")
    unittest.TestCase = TestCase
    started, ran, problems = time.monotonic(), 0, []
    for file in sorted(os.listdir()):
        if not (file.startswith("test") and file.endswith(".py")):
            continue
        name = file[:-3]
        try:
            module = __import__(name)
        except Exception:
            label = f"{name} (unittest.loader._FailedTest.{name})"
            problems.append(f"{'=' * 70}\\nERROR: {label}\\n{traceback.format_exc()}")
            ran += 1
            continue
        kinds = [each for each in vars(module).values() if isinstance(each, type)]
        for kind in kinds:
            for test in sorted(each for each in dir(kind) if each.startswith("test")):
                ran += 1
                problems += filter(None, [run(name, module, kind, test)])
    print("\\n".join(["", *problems]), file=sys.stderr)
    tests = "1 test" if ran == 1 else f"{ran} tests"
    print(f"{'-' * 70}\\nRan {tests} in {time.monotonic() - started:.3f}s\\n", file=sys.stderr)
    errors = sum("\\nERROR: " in each for each in problems)
    counts = {"failures": len(problems) - errors, "errors": errors}
    named = ", ".join(f"{name}={count}" for name, count in counts.items() if count)
    print(f"FAILED ({named})" if problems else "OK" if ran else "NO TESTS RAN", file=sys.stderr)
    sys.exit(1 if problems else 0 if ran else 5)


main()
'''
RUN_TESTS = "python3 -SB run_tests.py"
"""The check of most plans: a seventh of what `python3 -m unittest` takes."""


def task(name: str, after: str = "none", files: str = "", criteria: str = "") -> str:
    declared = f"**Target Files**:\n- {files}\n\n" if files else ""
    points = criteria or f"`calc.{name}(3, 1)` returns `2`"
    return f"""#### Task {name}: Add {name}

**Work**: Add a function called {name} to the calculator in calc.py, and a test that shows it works.

**Acceptance Criteria**:
- [ ] {points}

**Blocked By**: {after}

{declared}**Required Reading**: calc.py

"""


def plan(*tasks: str, command: str = RUN_TESTS, more: str = "") -> str:
    """The plan of these tasks. `more` are further rows of checks, or what comes after them."""
    table = (
        "## Verification Commands\n\n| Check | Environment | Command | Exit Code | Purpose |\n"
        f"|---|---|---|---|---|\n| Unit Tests | ALL | `{command}` | 0 | tests |\n{more}\n"
    )
    return f"# Calculator\n\n{table}### Phase 1: All\n\n" + "".join(tasks)


def ready(case_id: str, matrix: str = "- Unit Tests: PASS (native)") -> str:
    return (
        f"READY_FOR_REVIEW: {case_id}\n\nFiles Modified:\n- calc.py: a function\n\n"
        f"Verification Results (self-verified):\n{matrix}\n\nSummary: done\n"
    )


def develop(ask: Ask, folder: Path) -> str:
    """A good developer: a function and its test, both real. In a conflict theirs is taken first."""
    name = ask.case_id
    source, test = folder / "calc.py", folder / f"test_{name}.py"
    if "<<<<<<<" in source.read_text():
        git(folder, "checkout", "-q", "--", "calc.py")
    if f"def {name}(" not in source.read_text():
        source.write_text(f"{source.read_text()}\n\ndef {name}(a, b):\n    return a - b\n")
    test.write_text(
        f"import unittest\n\nimport calc\n\n\nclass Of(unittest.TestCase):\n"
        f"    def test_{name}(self):\n        self.assertEqual(calc.{name}(3, 1), 2)\n"
    )
    return ready(name)


def review(ask: Ask, _folder: Path) -> str:
    return f"REVIEW_PASSED: {ask.case_id}\n\nFiles Reviewed:\n- calc.py\n\nSummary: well made\n"


def audit(ask: Ask, _folder: Path) -> str:
    return (
        f"AUDIT_PASSED: {ask.case_id}\n\nVerification Results:\n"
        f"- it works: VERIFIED - a test shows it\n\nCommands Executed:\n"
        f"- Unit Tests (native): PASS\n\nSummary: all of it; {ask.case_id}.py belongs to it\n"
    )


def _two_times(handler: AsyncHandlerFunction) -> AsyncHandlerFunction:
    async def done_again(ask: Ask) -> Reply:
        await handler(ask)
        return await handler(ask)

    return done_again


GOOD: Mapping[str, Agent] = {"developer": develop, "critic": review, "auditor": audit}


class Hasty(SystemClock):
    """Real time, but for what a test has put it ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class DeliveryWorld:
    """One repository, one plan, one database; sittings one after the other."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        self.repo = folder / "repo"
        self.plan = folder / "plan.md"
        self.db = folder / "interlock.db"
        self.answers = Mailbox(self.db, "answers")
        self.asked: list[Ask] = []
        self.tally = RunCounts()
        self.clock = Hasty()
        self.notes: list[str] = []
        self.repo.mkdir(parents=True)
        (self.repo / "calc.py").write_text(CALC)
        (self.repo / "test_calc.py").write_text(TEST)
        (self.repo / "run_tests.py").write_text(RUNNER)
        git(self.repo, "init", "-q", "-b", "main")
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", "first")
        self.plan.write_text(text)

    def commit(self, subject: str) -> None:
        """All that is in the user's folder, on their branch."""
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", subject)

    def read_published(self, path: str) -> str:
        """A file as it is on the published branch."""
        return git(self.repo, "show", f"interlock/calc:{path}")

    def terms(self, work: DeliverySettings, **more: Any) -> DeliveryConfig:
        usual: dict[str, Any] = {
            "plan": str(self.plan),
            "source": str(self.repo),
            "home": str(self.folder / "home"),
            "slug": "calc",
            "secret": "5ec2e7",
            "workspace": hashlib.sha256(bytes(self.folder)).hexdigest()[:16],
            "work": work,
        }
        return DeliveryConfig(**(usual | more))

    def begin(self, work: DeliverySettings | None = None, **more: Any) -> int:
        bundle = find_circuit("delivery", self.folder)
        terms = self.terms(work or DeliverySettings(), **more)
        with open_writer(self.db) as connection:
            new = NewRun(
                circuit=bundle.open().circuit,
                text=bundle.encode(),
                source=str(self.plan),
                fingerprint="mark",
                options={"terms": msgspec.to_builtins(terms)},
                at=1.0,
            )
            return begin_run(connection, new, build_cases(load_usable_plan(terms)))

    def work(
        self,
        script: Mapping[str, Agent] | None = None,
        *,
        thresholds: Mapping[str, Any] | None = None,
        parallel: int = 4,
        twice: bool = False,
    ) -> RunStatus:
        """One sitting, with good agents where no others are named. With `twice` our programs do
        everything two times, as if each had been killed just before its answer was written."""
        circuit = find_circuit("delivery", self.folder).open().circuit
        if thresholds:
            circuit = circuit.with_thresholds(thresholds)
        agents: Mapping[str, Agent] = {**GOOD, **(script or {})}
        with open_writer(self.db) as connection:
            return asyncio.run(self._run_session(connection, circuit, agents, parallel, twice))

    async def _run_session(
        self,
        connection: Connection,
        circuit: Circuit,
        agents: Mapping[str, Agent],
        parallel: int,
        twice: bool,
    ) -> RunStatus:
        async def answer(ask: Ask) -> Reply:
            self.asked.append(ask)
            if ask.role not in agents:
                raise SourceError(f"nobody plays {ask.role}")
            folder = Path(ask.execution.folder)
            result = await asyncio.to_thread(agents[ask.role], ask, folder)
            return Reply(ask.dispatch_id, result.encode())

        bench = AsyncHandler(answer)
        carriers: dict[str, Carrier] = dict.fromkeys(circuit.roles, bench)
        carriers[HUMAN] = HumanCarrier(self.answers, SystemClock())
        run = find_run(connection)
        terms = run.options["terms"]
        ours = Delivery("delivery").set_up_run(
            connection, run, circuit, carriers, terms, clock=self.clock
        )
        delivery_hooks = ours.hooks
        assert isinstance(delivery_hooks, DeliveryHooks)
        again = AsyncHandler(
            _two_times(delivery_hooks.handlers), delivery_hooks.environment.workspace.close
        )
        programs = dict.fromkeys(PROGRAMS, again) if twice else {}
        run_session = RunSession(
            RunLoop(
                Journal(connection, run.run_id),
                RunTerms(
                    circuit=ours.circuit,
                    parallel=parallel,
                    hooks=ours.hooks,
                    unplaced=ours.unplaced,
                ),
                {**ours.carriers, **programs},
                SystemClock(),
            ),
            connection,
        )
        status = await run_session.run()
        self.tally = run_session.counts
        self.notes = [*delivery_hooks.notes()]
        return status

    def question(self) -> int:
        """The number of the oldest open question to a human."""
        with open_reader(self.db) as connection:
            out = load_open_dispatches(connection, find_run(connection).run_id)
            return min(each.dispatch_id for each in out if each.role == HUMAN)

    def findings(self, case_id: str, step: str) -> list[dict[str, Any]]:
        """What was answered at a step of a task, oldest first."""
        with open_reader(self.db) as connection:
            run_id = find_run(connection).run_id
            numbers = {line.case_id: line.case_no for line in case_lines(connection, run_id)}
            found = [*load_decisions(connection, numbers[case_id])]
        return [dict(answer) for decision, answer in found if decision.step == step]

    def answer(self, question_id: int = 0, decision: str = "answer", text: str = "") -> None:
        """To that question; without a number to the oldest one that is open."""
        question_id = question_id or self.question()
        data = {"decision": decision, "text": text}
        write_answer(self.answers, HumanAnswer(question_id, "ann", data))

    def story(self, case_id: str) -> list[str]:
        """`STEP signal rule` of every decision about a task."""
        with open_reader(self.db) as connection:
            return [
                f"{line.decision.step} {line.decision.signal} {line.decision.rule}"
                for line in list_lines(connection, find_run(connection).run_id, 0)
                if line.case_id == case_id
            ]

    def rules(self, case_id: str) -> list[str]:
        return [line.split()[-1] for line in self.story(case_id)]

    def ends(self) -> dict[str, str]:
        with open_reader(self.db) as connection:
            run_id = find_run(connection).run_id
            return {
                line.case_id: line.state.end or line.status
                for line in case_lines(connection, run_id)
            }

    def merged(self) -> list[str]:
        """The titles of the commits on the published branch, oldest first, without the base."""
        return git(
            self.repo, "log", "--reverse", "--format=%s", "main..interlock/calc"
        ).splitlines()

    def prompts(self, case_id: str, step: str) -> list[str]:
        return [ask.prompt for ask in self.asked if (ask.case_id, ask.step) == (case_id, step)]
