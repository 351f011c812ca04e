"""Explain a run: why a case is where it is, why it waits, what other thresholds would change.

Only committed rows are read, and nobody is disturbed.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.circuits import check_thresholds
from interlock.api.work import load_circuit, measure_usage
from interlock.api.workers import list_worker_agents
from interlock.carriers.cli.work_folder import list_work_files
from interlock.carriers.registry import agents_folder
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.engine.advance import open_case
from interlock.engine.case import ModelCall
from interlock.engine.circuit import FAILURES, Circuit
from interlock.engine.replay import ReplayedCase, describe_position, replay
from interlock.journal.address import DatabaseAddress
from interlock.journal.browse import count_places
from interlock.journal.connection import Connection
from interlock.journal.database import find_writers, open_reader
from interlock.journal.history import (
    CaseSummary,
    DispatchRecord,
    JournalLine,
    RefusalRecord,
    compute_digest,
    count_ends,
    count_ends_of_runs,
    find_case,
    list_cases,
    list_dispatches,
    list_lines,
    list_refusals,
)
from interlock.journal.journal import Pause
from interlock.journal.ownership import Writer
from interlock.journal.runs import (
    LoadedCase,
    Run,
    find_run,
    list_runs,
    load_cases,
    load_decisions,
)
from interlock.journal.usage import list_newest_pauses, list_pauses
from interlock.runtime.application import find_application
from interlock.runtime.budget import (
    LOW_SHARE,
    compute_limit_shares,
    describe_low_limit,
    read_limits,
)
from interlock.runtime.settings import RunConfig
from interlock.system.text import shorten_counted
from interlock.system.time import format_clock_time, format_time

_LONGEST_VALUE = 300


class CaseLife(msgspec.Struct, frozen=True):
    """The life of a case: each dispatch, what came back for it, what was decided and why."""

    case: CaseSummary
    circuit: Circuit
    dispatches: tuple[DispatchRecord, ...]
    notes: Mapping[int, tuple[str, ...]] = {}
    """Notes about the agents, by dispatch."""
    known: tuple[str, ...] = ()
    """Lines of the application about the case, beyond its decisions."""

    def __str__(self) -> str:
        return "\n".join(self.format())

    def format(self, *, prompts: bool = False) -> Iterator[str]:
        """Yield the life as lines of text; with `prompts`, the prompts too."""
        case = self.case
        yield (
            f"case {case.case_id} of run {case.run_id}, "
            f"circuit {self.circuit.name} v{self.circuit.version}"
        )
        for dispatch in self.dispatches:
            yield from _format_dispatch(dispatch, self.circuit, prompts=prompts)
            for note in self.notes.get(dispatch.dispatch_id, ()):
                yield f"    note: {note}"
        if self.known:
            yield ""
            yield from self.known
        ended = f"ended: {case.state.end}" if case.state.end else f"{case.status} at {case.step}"
        yield f"{ended}{f' ({case.state.reason})' if case.state.reason else ''}"


def explain_case(connection: Connection, case_id: str, run_id: int | None = None) -> CaseLife:
    """Return the life of a case, by default in the newest run that has it."""
    case = find_case(connection, case_id, run_id)
    circuit = load_circuit(find_run(connection, case.run_id))
    application = find_application(circuit.name)
    return CaseLife(
        case,
        circuit,
        tuple(list_dispatches(connection, case_no=case.case_no, texts=True)),
        known=tuple(application.describe_case(connection, case.case_no)),
    )


def _format_dispatch(dispatch: DispatchRecord, circuit: Circuit, *, prompts: bool) -> Iterator[str]:
    yield ""
    yield (
        f"{dispatch.step}, attempt {dispatch.attempt}: dispatch {dispatch.dispatch_id} to "
        f"{dispatch.role} at {format_time(dispatch.sent_at)}"
    )
    if prompts:
        yield "  prompt:"
        yield "\n".join(f"  | {line}" for line in dispatch.prompt.splitlines())
    yield from _format_attempts(dispatch)
    decision = dispatch.decision
    if decision is None:
        yield "  no answer yet"
        return
    answer = msgspec.json.encode(dispatch.answer).decode()
    by = f" by {dispatch.answered_by}" if dispatch.answered_by else ""
    yield f"  came back{by}: {decision.signal} {shorten_counted(answer, _LONGEST_VALUE)}"
    for name, value in decision.read.items():
        yield f"  read {name} = {msgspec.json.encode(value).decode()}"
    for passed in decision.passed:
        yield f"  passed over {passed.rule}: {explain_passed(circuit, passed.rule, passed.why)}"
    for noted in decision.noted:
        yield f"  noted by {noted}"
    for name, value in decision.adds.items():
        text = msgspec.json.encode(value).decode()
        yield f"  added {name} = {shorten_counted(text, _LONGEST_VALUE)}"
    if decision.reason:
        yield f"  stuck: {decision.reason}"
        return
    yield f"  rule {decision.rule} -> {decision.to}{_explain_rule(circuit, decision.rule)}"


def _format_attempts(dispatch: DispatchRecord) -> Iterator[str]:
    """Yield the refusals, pauses and calls before the answer that was decided on."""
    for refused in dispatch.refused:
        yield f"  refused ({refused.reason}): {refused.sentence}"
    for pause in dispatch.pauses:
        until = format_clock_time(pause.until, pause.at)
        yield f"  rate-limited at {format_time(pause.at)} until {until}: {pause.reason}"
    for call in dispatch.calls:
        yield f"  {_format_call(call)}"


def _format_call(call: ModelCall) -> str:
    cache = f" ({call.cached:,} from the cache)" if call.cached else ""
    cache += f" ({call.cache_write:,} written to it)" if call.cache_write else ""
    tokens = (
        f"{call.input + call.cached + call.cache_write:,} tokens in{cache}, {call.output:,} out"
    )
    about = "about " if call.is_estimate else ""
    price = f", {about}{call.money:.4f} money" if call.money else ""
    return f"{call.model} answered request {call.request_id or '-'}: {tokens}{price}"


def explain_passed(circuit: Circuit, rule_id: str, why: str) -> str:
    """Return why a rule before the one taken was passed over."""
    rule = circuit.find_rule(rule_id)
    if why == "spent" and rule is not None:
        return f"loop {rule.loop} is spent ({circuit.loops[str(rule.loop)].max})"
    guard = rule.guard.text if rule is not None and rule.guard is not None else rule_id
    return f"not ({guard})" if " and " in guard or " or " in guard else f"not {guard}"


def _explain_rule(circuit: Circuit, rule_id: str) -> str:
    rule = circuit.otherwise if rule_id == "otherwise" else circuit.find_rule(rule_id)
    if rule is None:
        return ""
    guard = f" when {rule.guard.text}" if rule.guard is not None else ""
    return f"{guard}{f' ({rule.why})' if rule.why else ''}"


def list_case_files(db: DatabaseAddress, run_id: int, case_no: int) -> dict[str, Path]:
    """Return the files that a case's agents left on this machine, by their place below its
    folder."""
    root = agents_folder(db)
    folder = root / f"{run_id}" / f"{case_no}"
    paths = list_work_files(root, run_id, case_no)
    return {path.relative_to(folder).as_posix(): path for path in paths}


class RunOverview(msgspec.Struct, frozen=True):
    """A run as a list of runs shows it."""

    run: Run
    status: str
    """The run's status, or `interrupted` if the process that worked on it has died."""
    ends: Counter[str]
    """The number of cases by their end, or by their status while they are open."""


class RunStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Show the state of a run, and which of its cases need attention."""

    run: Run
    status: str
    ends: Counter[str]
    writer: Writer | None
    """The process that works on the database now."""
    cases: list[CaseSummary]
    notable: list[CaseSummary]
    """The cases that are open, stuck or ended badly."""
    reasons: list[str]
    """The reasons of the first of the notable cases."""
    refused: Counter[str]
    """The number of refused answers by reason."""
    low_limits: list[str]
    rate_limits: dict[str, float]
    """The accounts that rest because of a rate limit, each with its end."""
    agents: list[AgentStatus]
    """The agents at work on it, as their carriers last saw them."""
    digest: str


def _list_agents(db: DatabaseAddress) -> list[AgentStatus]:
    """Return the agents at work, on this host and with workers on others."""
    found = read_agent_status(agents_folder(db))
    own = {each.dispatch_id for each in found}
    found += [each for each in list_worker_agents(db) if each.dispatch_id not in own]
    return found


def list_overviews(db: DatabaseAddress) -> list[RunOverview]:
    """Return all runs of a database, oldest first."""
    writers = find_writers(db)
    with open_reader(db) as connection:
        runs = list_runs(connection)
        ends = count_ends_of_runs(connection, [run.run_id for run in runs])
        return [
            RunOverview(run, writers.find_status(run.run_id, run.status), ends[run.run_id])
            for run in runs
        ]


def read_standing(
    db: DatabaseAddress, run_id: int | None, explained: int, at: float
) -> RunStanding:
    """Return the state of a run, by default the newest, with up to `explained` notable cases
    explained."""
    with open_reader(db) as connection:
        run = find_run(connection, run_id)
        circuit, cases = load_circuit(run), list_cases(connection, run.run_id)
        notable = [case for case in cases if not circuit.ends.get(case.end)]
        writers = find_writers(db)
        status = writers.find_status(run.run_id, run.status)
        agents = _list_agents(db) if status == "running" else []
        return RunStanding(
            run=run,
            status=status,
            ends=count_ends(connection, run.run_id),
            writer=writers.find(run.run_id),
            cases=cases,
            notable=notable,
            reasons=list(explain_standing(connection, circuit, run.run_id, notable[:explained])),
            refused=Counter(each.reason for each in list_refusals(connection, run.run_id)),
            low_limits=list_low_limits(connection, run, at),
            rate_limits=list_rate_limits(connection, run.run_id, at),
            agents=[each for each in agents if each.run_id == run.run_id],
            digest=compute_digest(connection, run.run_id),
        )


def read_digest(db: DatabaseAddress, run_id: int) -> str:
    """Return one hash over all decisions and answers of a run; runs that decided alike have the
    same."""
    with open_reader(db) as connection:
        return compute_digest(connection, run_id)


class JournalReader:
    """Read the journal of a run, or of one of its cases."""

    def __init__(self, db: DatabaseAddress, run_id: int | None = None, case_id: str = "") -> None:
        self._db = db
        self._case_id = case_id
        self._seq = self._refusal_id = 0
        with open_reader(db) as connection:
            self.run_id = find_run(connection, run_id).run_id
            if case_id:
                find_case(connection, case_id, self.run_id)

    def read_status(self) -> str:
        """Return the status of the run now."""
        with open_reader(self._db) as connection:
            run = find_run(connection, self.run_id, brief=True)
            return find_writers(self._db).find_status(run.run_id, run.status)

    def read(self) -> list[JournalLine | RefusalRecord]:
        """Return what was written since the last call, at first everything, in the order of time:
        decisions and refused answers."""
        with open_reader(self._db) as connection:
            lines = list_lines(connection, self.run_id, self._seq, self._case_id)
            refused = list_refusals(connection, self.run_id, self._refusal_id)
        self._seq = lines[-1].seq if lines else self._seq
        self._refusal_id = refused[-1].refusal_id if refused else self._refusal_id
        mine = [each for each in refused if self._case_id in ("", each.case_id)]
        found: list[JournalLine | RefusalRecord] = [*lines, *mine]
        return sorted(found, key=lambda each: each.at)

    def follow(self, wait: Callable[[], None]) -> Iterator[JournalLine | RefusalRecord]:
        """Yield what was written so far and what is to come, to the end; `wait` is called in
        between."""
        growing = True
        while growing:
            # Asked before reading: a writer that ends in between has left its lines behind.
            growing = self.read_status() == "running"
            yield from self.read()
            if growing:
                wait()


def replay_run(
    connection: Connection,
    run_id: int | None,
    thresholds: Mapping[str, Any],
    case_id: str = "",
) -> list[ReplayedCase]:
    """Decide a recorded run again with other thresholds, or only one of its cases."""
    run = find_run(connection, run_id)
    only = find_case(connection, case_id, run.run_id).case_no if case_id else None
    return [again for _, again in _iterate_replay(connection, run, thresholds, only)]


def _iterate_replay(
    connection: Connection, run: Run, thresholds: Mapping[str, Any], only: int | None = None
) -> Iterator[tuple[int, ReplayedCase]]:
    before = load_circuit(run)
    after = before.with_thresholds(check_thresholds(before, thresholds))
    for loaded in load_cases(connection, before, run.run_id, whole=True):
        if only is None or loaded.case_no == only:
            yield (
                loaded.case_no,
                replay(
                    after,
                    open_case(after, loaded.case.case_id, loaded.case.input),
                    list(load_decisions(connection, loaded.case_no)),
                    describe_position(loaded.case),
                ),
            )


class ReplaySample(msgspec.Struct, frozen=True):
    """The effect of other thresholds on the cases that were replayed in time."""

    changed: tuple[tuple[int, ReplayedCase], ...]
    """The cases that would go another way, each with its number."""
    looked_at: int
    cases: int
    dispatches_before: int
    dispatches_after: int


def replay_some(
    connection: Connection, run_id: int, thresholds: Mapping[str, Any], *, seconds: float
) -> ReplaySample:
    """Decide a recorded run again with other thresholds, for at most `seconds`."""
    run = find_run(connection, run_id)
    cases = sum(each.cases for each in count_places(connection, run_id))
    changed: list[tuple[int, ReplayedCase]] = []
    looked_at = before = after = 0
    give_up = time.monotonic() + seconds
    for case_no, again in _iterate_replay(connection, run, thresholds):
        looked_at += 1
        before += again.dispatches_before
        after += again.dispatches_after
        if again.turn is not None:
            changed.append((case_no, again))
        if time.monotonic() > give_up:
            break
    return ReplaySample(tuple(changed), looked_at, cases, before, after)


def report_run(connection: Connection, run: Run) -> str:
    """Return what the run's application found, as Markdown; of any other run, its cases."""
    found = find_application(run.circuit).report(connection, run)
    if found:
        return found
    lines = [f"# Run {run.run_id}: {run.circuit}", "", f"{run.status}", ""]
    cases = list_cases(connection, run.run_id)
    return "\n".join([*lines, *(f"- {c.case_id}: {c.state.end or c.step}" for c in cases), ""])


def explain_standing(
    connection: Connection, circuit: Circuit, run_id: int, lines: Sequence[CaseSummary]
) -> Iterator[str]:
    """Yield a reason for each of these cases of a run."""
    resting = list_paused_dispatches(connection, run_id, time.time())
    unsent = any(line.status == "open" and line.dispatch_id is None for line in lines)
    loaded = load_cases(connection, circuit, run_id) if unsent else ()
    cases = {each.case.case_id: each for each in loaded}
    for line in lines:
        if line.status != "open":
            yield line.state.reason or _explain_end(connection, circuit, line)
        elif line.dispatch_id is None:
            yield _explain_turn(circuit, cases[line.case_id], cases)
        elif line.dispatch_id in resting:
            until = format_clock_time(resting[line.dispatch_id].until, time.time())
            yield f"rate-limited until {until} (dispatch {line.dispatch_id})"
        else:
            role = circuit.steps[line.step].role
            yield f"waits for the {role} (dispatch {line.dispatch_id})"


def _explain_turn(circuit: Circuit, waiting: LoadedCase, cases: dict[str, LoadedCase]) -> str:
    """Return why a case has not been asked yet: it comes after another case, or places are few."""
    for name in waiting.needs:
        before = cases[name].case
        if before.status == "open":
            return f"comes after {name}"
        if not circuit.ends.get(before.end):
            return f"comes after {name}, which did not end well ({before.end or before.status})"
    return "waits for its turn"


def _explain_end(connection: Connection, circuit: Circuit, line: CaseSummary) -> str:
    """Return the reason of the rule that ended the case, and of the failure before it."""
    last = list_dispatches(connection, case_no=line.case_no)[-1]
    if last.decision is None:
        return ""
    rule = circuit.find_rule(last.decision.rule) or circuit.otherwise
    why = rule.why if rule else ""
    if last.decision.signal in FAILURES:
        why += f" ({last.decision.signal}: {last.answer.get('reason')})"
    return why.strip()


def list_paused_dispatches(connection: Connection, run_id: int, at: float) -> dict[int, Pause]:
    """Return the dispatches of a run whose rate limit is not over, by their last pause, even if
    answered meanwhile."""
    return {each.dispatch_id: each for each in list_pauses(connection, run_id) if each.until > at}


def list_low_limits(connection: Connection, run: Run, at: float) -> list[str]:
    """Return a line for each limit of a run that is nearly or wholly spent."""
    limits = read_limits(msgspec.convert(run.options, RunConfig).budget)
    found = compute_limit_shares(limits, measure_usage(connection, run, limits, at))
    return [describe_low_limit(word, part) for word, part in found.items() if part >= LOW_SHARE]


def list_rate_limits(connection: Connection, run_id: int, at: float) -> dict[str, float]:
    """Return the accounts that rest because of a rate limit met in this run, each with its end."""
    mine = {each.account for each in list_paused_dispatches(connection, run_id, at).values()}
    found = {each.account: each.until for each in list_newest_pauses(connection)}
    return {name: found[name] for name in sorted(mine) if found[name] > at}
