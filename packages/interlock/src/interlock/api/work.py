"""Work on a run that is open: set it up, work until it ends or waits, return the result."""

import asyncio
import signal
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.carriers.background import CrashReporter
from interlock.carriers.contract import Carrier
from interlock.carriers.registry import FileOptions
from interlock.engine.circuit import HUMAN, Circuit
from interlock.engine.schedule import NO_LIMITS, Spent
from interlock.journal.connection import Connection
from interlock.journal.events import Notification
from interlock.journal.history import count_ends, list_cases
from interlock.journal.journal import Journal
from interlock.journal.ownership import Ownership, own_run
from interlock.journal.runs import Run, RunStatus
from interlock.journal.usage import (
    find_last_inquiry,
    list_newest_pauses,
    sum_day_usage,
    sum_role_usage,
)
from interlock.runtime.agent_pool import (
    AgentPool,
    roles_answered_later,
    roles_written_out,
)
from interlock.runtime.application import CaseHooks, RunSetup, find_application
from interlock.runtime.budget import (
    BUDGET_INQUIRY,
    BudgetLimits,
    BudgetQuestion,
    BudgetUsage,
    RunBudget,
)
from interlock.runtime.circuits import Bundle
from interlock.runtime.loop import RunLoop
from interlock.runtime.session import OneRound, RunSession
from interlock.runtime.settings import RunConfig
from interlock.runtime.telemetry import RunObserver, observe_run
from interlock.runtime.terms import RunCounts, RunTerms
from interlock.system.time import find_local_day

Progress = Callable[[RunCounts, Spent], None]
"""Called after every turn with the state of the run."""


class Display(Protocol):
    """The view of the person who started the work."""

    def note(self, text: str) -> None:
        """Show a line beside the result."""

    def notify(self, notification: Notification) -> None:
        """Show an event that a person may want to act on."""

    def show_progress(self) -> AbstractContextManager[Progress]:
        """Show progress as long as the work lasts."""


class NoDisplay:
    """A display that shows nothing."""

    def note(self, text: str) -> None:
        pass

    def notify(self, notification: Notification) -> None:
        pass

    @contextmanager
    def show_progress(self) -> Iterator[Progress]:
        yield lambda _counts, _spent: None


class SessionTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of one session: what it waits for, which cases it works on, who follows it."""

    wait_for_humans: bool = False
    wait_for_limits: bool = True
    only: Collection[int] | None = None
    """The numbers of the cases to work on; None for all of them."""
    once: bool = False
    """Give each case one agent's turn and then let it rest."""
    change_setup: Callable[[RunSetup], RunSetup] = lambda setup: setup
    started: Callable[[RunSession], None] = lambda _session: None
    """Called with the session before it begins."""
    changed: Callable[[], None] = lambda: None
    """Called after every turn."""


PATIENT = SessionTerms()
"""The usual terms: wait for rate limits, not for people."""


class RunResult(msgspec.Struct, frozen=True):
    """The state of a run when the work on it has ended."""

    run_id: int
    status: RunStatus
    """`done`, `unhealthy`, `waiting`, `budget`, `rate-limited` or `stopped`."""
    counts: RunCounts
    spent: Spent
    circuit: Circuit
    ends: dict[str, int] = {}
    """The number of cases by their end, or by their status while they are open."""
    stopped_by: signal.Signals | None = None
    written_out: tuple[str, ...] = ()
    """Steps that wait for an answer by hand, a line each."""
    notes: tuple[str, ...] = ()
    """The notes of the application for the user."""
    hooks: CaseHooks | None = None
    """The application's hooks, as they were at the end."""


def load_circuit(run: Run) -> Circuit:
    """Return the circuit a run was begun with, thresholds and prompts included.

    It is cached, because reading one takes longer than everything else.
    """
    return _open_circuit(run.text, msgspec.json.encode(run.options.get("thresholds", {})))


@lru_cache(maxsize=32)
def _open_circuit(text: str, thresholds: bytes) -> Circuit:
    bundle = msgspec.json.decode(text, type=Bundle)
    return bundle.open().circuit.with_thresholds(msgspec.json.decode(thresholds))


def work_on_run(
    connection: Connection,
    run: Run,
    pool: AgentPool,
    terms: SessionTerms = PATIENT,
    *,
    display: Display,
    ownership: Ownership | None = None,
) -> RunResult:
    """Work on a run until it ends or must wait; StoreError if another process works on it.

    The session owns the run, unless the caller brings the `ownership`.
    """
    circuit = load_circuit(run)
    config = msgspec.convert(run.options, RunConfig)
    with ExitStack() as held:
        ownership = ownership or held.enter_context(own_run(connection, run.run_id))
        progress = held.enter_context(display.show_progress())
        observer = held.enter_context(_observe(connection, run, display))
        setup = find_application(run.circuit).set_up_run(
            connection,
            run,
            circuit,
            pool.carriers,
            config.application_config,
            clock=pool.clock,
            only=terms.only,
        )
        setup = terms.change_setup(setup)
        for hint in sorted({each.traits.hint for each in pool.carriers.values()} - {""}):
            display.note(hint)
        run_terms = RunTerms(
            circuit=setup.circuit,
            roles=pool.roles,
            parallel=pool.parallel,
            by_hand=roles_answered_later(pool.carriers),
            unplaced=setup.unplaced,
            budget=open_budget(connection, run, pool),
            hooks=setup.hooks,
            pace=OneRound(circuit, {HUMAN, *setup.unplaced}) if terms.once else setup.pace,
            pauses=list_newest_pauses(connection),
            run_at=run.created_at,
            enrich=setup.enrich,
            wait_for_humans=terms.wait_for_humans,
            wait_for_limits=terms.wait_for_limits,
            tell=_build_notifier(display, pool, observer),
            watch=partial(_watch, progress, terms.changed, observer),
        )
        journal = Journal(
            connection, run.run_id, config.after, ownership, observer.record if observer else None
        )
        session = RunSession(
            RunLoop(journal, run_terms, setup.carriers, pool.clock),
            connection,
            ownership,
            draining=lambda out: display.note(_describe_draining(out)),
            crashes=CrashReporter(pool.crash_folder, display.note),
        )
        terms.started(session)
        status = asyncio.run(_run_session(session, pool))
    return RunResult(
        run.run_id,
        status,
        session.counts,
        session.spent,
        setup.circuit,
        ends=dict(count_ends(connection, run.run_id)),
        stopped_by=session.stopped_by,
        written_out=tuple(list_written_out(connection, run, setup.circuit, pool.carriers)),
        notes=tuple(dict.fromkeys(setup.hooks.notes())),
        hooks=setup.hooks,
    )


@contextmanager
def _observe(connection: Connection, run: Run, display: Display) -> Iterator[RunObserver | None]:
    """Yield the observer for telemetry, if it is on, and close it."""
    observer = observe_run(connection, run, display.note)
    try:
        yield observer
    finally:
        if observer is not None:
            observer.close()


def _watch(
    progress: Progress,
    changed: Callable[[], None],
    observer: RunObserver | None,
    counts: RunCounts,
    spent: Spent,
) -> None:
    progress(counts, spent)
    if observer is not None:
        observer.show(counts, spent)
    changed()


async def _run_session(session: RunSession, pool: AgentPool) -> RunStatus:
    """Run the session, and give open notifications a last chance."""
    try:
        return await session.run()
    finally:
        if pool.notifier is not None:
            await pool.notifier.close()


def _build_notifier(
    display: Display, pool: AgentPool, observer: RunObserver | None
) -> Callable[[Notification], None]:
    def tell(notification: Notification) -> None:
        display.notify(notification)
        if observer is not None:
            observer.notify(notification)
        if pool.notifier is not None:
            pool.notifier.notify(notification)

    return tell


def _describe_draining(out: int) -> str:
    answers = "1 answer that is" if out == 1 else f"{out:,} answers that are"
    return f"stopping: waiting for {answers} out; ask again to end at once, nothing is lost"


def list_written_out(
    connection: Connection, run: Run, circuit: Circuit, carriers: Mapping[str, Carrier]
) -> Iterator[str]:
    """Yield a line for each step that waits for an answer by hand, with what to do."""
    roles = roles_written_out(carriers)
    root = Path(msgspec.convert(run.options.get("files", {}), FileOptions).root)
    names = find_application(circuit.name).file_names(root)
    for case in list_cases(connection, run.run_id):
        step = circuit.steps.get(case.step)
        if case.dispatch_id is None or step is None or step.role not in roles:
            continue
        prompt = names(step.name, case.state.visits.get(step.name, 1)).prompt
        path = root / f"{case.run_id}" / f"{case.case_no}" / prompt
        verbs = f"'interlock save {case.case_id} -f FILE' and 'interlock resume {case.run_id}'"
        yield f"case {case.case_id} waits for an answer to {path}: {verbs}"


def open_budget(connection: Connection, run: Run, pool: AgentPool) -> BudgetQuestion:
    """Return the budget of a run, with the usage of the run, its roles and this day."""
    now = pool.clock.now()
    used = measure_usage(connection, run, pool.limits, now)
    budget = RunBudget(pool.limits, used, now, find_local_day)
    return BudgetQuestion(
        budget, pool.words, pool.inbox, find_last_inquiry(connection, run.run_id, BUDGET_INQUIRY)
    )


def measure_usage(connection: Connection, run: Run, limits: BudgetLimits, at: float) -> BudgetUsage:
    """Measure the usage of these limits; usage without a limit is not added up."""
    roles = sum_role_usage(connection, run.run_id) if limits.roles else {}
    today = sum_day_usage(connection, *find_local_day(at)) if limits.day != NO_LIMITS else Spent()
    return BudgetUsage(run.spent, roles, today)


def describe_run(connection: Connection, run: Run) -> RunResult:
    """Return the state of a run that this process does not work on."""
    cases, circuit = list_cases(connection, run.run_id), load_circuit(run)
    ended = [each for each in cases if each.status == "ended"]
    counts = RunCounts(
        cases=len(cases),
        ended=len(ended),
        unhealthy=sum(not circuit.ends.get(each.state.end) for each in ended),
        stuck=sum(each.status == "stuck" for each in cases),
    )
    ends = dict(count_ends(connection, run.run_id))
    return RunResult(run.run_id, run.status, counts, run.spent, circuit, ends)
