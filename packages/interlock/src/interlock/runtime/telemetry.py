"""Telemetry of this process: traces, metrics and log lines, made from committed turns.

A run's observer gets every turn once it is committed; the loop, the carriers and the journal know
nothing of telemetry. Ids of traces and spans are computed from the run and numbers in the journal,
so a run that continues elsewhere continues its trace. Spans of runs, cases, dispatches and agents
are sent when they are over.

Telemetry belongs to a process, not to a project: `OTEL_*` variables or `start_telemetry` switch it
on. While it is off, no library is loaded. It never hurts a run: errors are reported once, and what
cannot be sent is dropped.
"""

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from interlock.engine.case import OPEN, ModelCall
from interlock.engine.circuit import FAILURES, HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.connection import Connection
from interlock.journal.events import Notification
from interlock.journal.history import list_case_starts
from interlock.journal.journal import JournalEntry, TurnWrites
from interlock.journal.runs import FINISHED, Run, load_open_dispatches
from interlock.runtime.meters import Meters, PrometheusMeters, PushedMeters
from interlock.runtime.terms import RunCounts
from interlock.runtime.tracing import (
    WORKER,
    AgentOfRole,
    Span,
    SpanEvent,
    SpanIds,
    Tracer,
    build_resource,
    describe_answer,
)
from interlock.system.errors import UsageError

_SWITCHES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)
"""The variables that ask for traces or metrics by being set."""
_CLOSE_SECONDS = 5.0
"""Seconds for which the end of the process waits until everything is sent."""

Log = Callable[[str, Mapping[str, Any]], None]
"""Write one structured line: its text for people, and its fields."""
Complain = Callable[[str], None]


class _OpenDispatch(msgspec.Struct):
    """The parts of a dispatch's span that are known before it is answered."""

    step: str
    attempt: int
    role: str
    at: float
    events: list[SpanEvent] = []
    call: ModelCall | None = None


class Telemetry:
    """The exporters of spans, metrics and log lines of this process."""

    def __init__(
        self,
        tracer: Tracer | None,
        meters: list[Meters],
        log: Log | None,
        complain: "Complaints",
    ) -> None:
        self.tracer = tracer
        self.meters = meters
        self.log = log
        self._complain = complain
        self._counts: dict[int, tuple[str, RunCounts]] = {}
        self._closing = threading.Event()
        # Started now: at the very end of a process no thread can be started any more.
        self._flusher = threading.Thread(target=self._flush, name="telemetry-flush", daemon=True)
        self._flusher.start()
        atexit.register(self.close)

    @property
    def addresses(self) -> list[str]:
        """Return the addresses at which metrics are served."""
        return [each.address for each in self.meters if isinstance(each, PrometheusMeters)]

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self._closing.set()
        self._flusher.join(_CLOSE_SECONDS)

    def complain_about(self, error: Exception) -> None:
        """Report an error once; the run goes on."""
        self._complain(type(error).__name__, f"{type(error).__name__}: {error}")

    def add(self, name: str, value: float, **labels: str) -> None:
        """Record a value as the metric's kind demands."""
        for each in self.meters:
            each.record(name, value, labels)

    def show_counts(self, run_id: int, circuit: str, counts: RunCounts | None) -> None:
        """Show the counts of a run; None removes a run that nobody here works on any more."""
        if counts is None:
            self._counts.pop(run_id, None)
        else:
            self._counts[run_id] = (circuit, counts)
        own = [each for name, each in self._counts.values() if name == circuit]
        over = sum(each.ended + each.stuck for each in own)
        busy = sum(each.in_flight for each in own)
        asked = sum(each.questions for each in own)
        waiting = sum(each.cases for each in own) - over - busy - asked
        for name, value in (
            ("interlock.runs.active", len(own)),
            ("interlock.dispatches.open", busy),
            ("interlock.cases.waiting", max(0, waiting)),
            ("interlock.questions.open", asked),
            ("interlock.dispatches.paused", sum(each.limited for each in own)),
        ):
            self.add(name, value, circuit=circuit)

    def _flush(self) -> None:
        self._closing.wait()
        for each in self.meters:
            each.flush()
        if self.tracer is not None:
            self.tracer.flush()


class Complaints(logging.Handler):
    """Report problems to the user, each kind once.

    Exporters log their problems to the standard library; this handles them instead of a traceback
    on stderr.
    """

    def __init__(self, complain: Complain) -> None:
        super().__init__(logging.WARNING)
        self._tell = complain
        self._told: set[str] = set()
        told = logging.getLogger("opentelemetry")
        told.propagate = False
        told.handlers = [self]

    def __call__(self, kind: str, problem: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._tell(f"telemetry: {problem}"[:300])

    def emit(self, record: logging.LogRecord) -> None:
        # A message whose values differ each time is of one kind all the same.
        reason = f" ({record.exc_info[1]})" if record.exc_info and record.exc_info[1] else ""
        self(str(record.msg), f"{record.getMessage()}{reason}")


class RunObserver:
    """Turn the committed turns of one run into spans, metrics and log lines."""

    def __init__(self, telemetry: Telemetry, connection: Connection, run: Run) -> None:
        self._telemetry = telemetry
        self._run = run
        self._ids = SpanIds.of_run(run.run_id, run.created_at)
        self._root = self._ids.find("run", run.run_id)
        self._agents: dict[str, str] = run.options.get("agents", {})
        self._open = {
            each.dispatch_id: _OpenDispatch(each.step, each.attempt, each.role, each.at)
            for each in load_open_dispatches(connection, run.run_id)
        }
        self._case_starts = list_case_starts(connection, run.run_id)

    def record(self, writes: TurnWrites) -> None:
        """Record a committed turn."""
        self._guard(self._record, writes)

    def show(self, counts: RunCounts, _spent: Spent) -> None:
        """Show the counts of the run after a turn."""
        self._guard(self._telemetry.show_counts, self._run.run_id, self._run.circuit, counts)

    def notify(self, notification: Notification) -> None:
        """Log an event that a person may want to act on."""
        fields = {"about": notification.about, "questions": list(notification.questions[:10])}
        self._guard(partial(self._log, notification.text, notification.event, self._root, **fields))

    def close(self) -> None:
        """Stop showing the run, which nobody here works on any more."""
        self._guard(self._telemetry.show_counts, self._run.run_id, self._run.circuit, None)

    def _guard(self, act: Callable[..., None], *given: Any) -> None:
        try:
            act(*given)
        except Exception as error:  # whatever it is, the run goes on
            self._telemetry.complain_about(error)

    def _record(self, writes: TurnWrites) -> None:
        circuit, at = self._run.circuit, writes.at
        add = partial(self._telemetry.add, circuit=circuit)
        for new in writes.dispatches:
            self._open[new.dispatch_id] = _OpenDispatch(new.step, new.attempt, new.role, at)
            self._case_starts.setdefault(new.case_no, at)
            add("interlock.dispatches", 1, step=new.step, role=new.role)
        self._record_refusals(writes)
        for pause in writes.pauses:
            add("interlock.rate_limits", 1, account=pause.account)
            self._add_event(pause.dispatch_id, "rate-limited", at, {"account": pause.account})
            self._spend(pause.usage.tokens, pause.usage.money, pause.dispatch_id)
        for dispatch_id, call in writes.calls:
            if dispatch_id in self._open:
                self._open[dispatch_id].call = call
        for entry in writes.entries:
            self._settle(entry, writes)
        for number, row in writes.cases.items():
            if row.case.status != OPEN and number in self._case_starts:
                self._end_case(number, row.case.case_id, row.case.end or row.case.status, at)
        if writes.status is not None:
            self._log(f"run {self._run.run_id}: {writes.status}", writes.status, self._root)
        if writes.status in FINISHED:
            self._send_run(writes.status, at)

    def _record_refusals(self, writes: TurnWrites) -> None:
        for refusal in writes.refusals:
            number, reason = refusal.dispatch_id, refusal.reason
            self._telemetry.add("interlock.refusals", 1, circuit=self._run.circuit, reason=reason)
            self._add_event(number, "refused", writes.at, {"reason": reason})
            span = self._find_dispatch_span(number)
            self._log(refusal.sentence, "refused", span, reason=reason, dispatch_id=number)

    def _settle(self, entry: JournalEntry, writes: TurnWrites) -> None:
        """Send the spans of a dispatch that was decided, and of its agent."""
        dispatch = self._open.get(entry.dispatch_id)
        if dispatch is None:
            return
        self._spend(entry.usage.tokens, entry.usage.money, entry.dispatch_id)
        del self._open[entry.dispatch_id]
        decision, circuit = entry.decision, self._run.circuit
        times, took = (dispatch.at, writes.at), max(0.0, writes.at - dispatch.at)
        labels = {"circuit": circuit, "step": dispatch.step, "role": dispatch.role}
        self._telemetry.add("interlock.decisions", 1, **labels, signal=decision.signal)
        self._telemetry.add("interlock.dispatch.duration", took, **labels)
        case_id = writes.cases[entry.case_no].case.case_id
        above = self._ids.find("case", entry.case_no)
        span = self._ids.find("dispatch", entry.dispatch_id)
        failure = decision.signal if decision.signal in FAILURES else ""
        target = decision.to or f"{decision.status}: {decision.reason}"
        fields = {
            "case_id": case_id,
            "dispatch_id": entry.dispatch_id,
            "step": decision.step,
            "attempt": decision.attempt,
            "role": dispatch.role,
            "signal": decision.signal,
            "rule": decision.rule,
            "to": decision.to,
        }
        text = f"{case_id}: {decision.step} #{decision.attempt} {decision.signal} -> {target}"
        self._log(text, "decision", span, **fields)
        if self._telemetry.tracer is None:
            return
        attributes = {f"interlock.{name}": value for name, value in fields.items()}
        self._telemetry.tracer.send(
            self._ids,
            Span(
                f"dispatch {decision.step}",
                span,
                above,
                times,
                attributes,
                error=failure,
                events=dispatch.events,
            ),
        )
        if dispatch.role != HUMAN:
            self._send_agent(entry, dispatch, span, times, failure)

    def _send_agent(
        self,
        entry: JournalEntry,
        dispatch: _OpenDispatch,
        above: int,
        times: tuple[float, float],
        failure: str,
    ) -> None:
        """Send the span of the agent, unless a worker sends it."""
        assert self._telemetry.tracer is not None  # noqa: S101 - the caller has looked
        words = self._agents.get(dispatch.role) or self._agents.get("", "")
        agent = AgentOfRole(dispatch.role, words)
        if agent.kind == WORKER:
            return
        self._telemetry.tracer.send(
            self._ids,
            Span(
                agent.span_name,
                self._ids.find("agent", entry.dispatch_id),
                above,
                times,
                {
                    **agent.describe(self._run.run_id, entry.case_no),
                    **describe_answer(failure, entry.usage, dispatch.call),
                    "gen_ai.workflow.name": self._run.circuit,
                },
                error=failure,
                client=True,
            ),
        )

    def _end_case(self, number: int, case_id: str, end: str, at: float) -> None:
        begun = self._case_starts.pop(number)
        self._telemetry.add("interlock.cases", 1, circuit=self._run.circuit, end=end)
        self._telemetry.add("interlock.case.duration", at - begun, circuit=self._run.circuit)
        if self._telemetry.tracer is not None:
            self._telemetry.tracer.send(
                self._ids,
                Span(
                    f"case {self._run.circuit}",
                    self._ids.find("case", number),
                    self._root,
                    (begun, at),
                    {"interlock.case_id": case_id, "interlock.end": end},
                    error=end if end == "stuck" else "",
                ),
            )

    def _send_run(self, status: str, at: float) -> None:
        if self._telemetry.tracer is not None:
            self._telemetry.tracer.send(
                self._ids,
                Span(
                    f"invoke_workflow {self._run.circuit}",
                    self._root,
                    0,
                    (self._run.created_at, at),
                    {
                        "gen_ai.operation.name": "invoke_workflow",
                        "gen_ai.workflow.name": self._run.circuit,
                        "interlock.run_id": self._run.run_id,
                        "interlock.status": status,
                    },
                ),
            )

    def _spend(self, tokens: int, money: float, dispatch_id: int) -> None:
        dispatch = self._open.get(dispatch_id)
        labels = {"circuit": self._run.circuit, "role": dispatch.role if dispatch else ""}
        if tokens:
            self._telemetry.add("interlock.tokens", tokens, **labels)
        if money:
            self._telemetry.add("interlock.money", money, **labels)

    def _add_event(
        self, dispatch_id: int | None, name: str, at: float, attributes: dict[str, Any]
    ) -> None:
        dispatch = self._open.get(dispatch_id or 0)
        if dispatch is not None:
            dispatch.events.append(SpanEvent(name, at, attributes))

    def _find_dispatch_span(self, dispatch_id: int | None) -> int:
        return self._ids.find("dispatch", dispatch_id) if dispatch_id else self._root

    def _log(self, text: str, event: str, span: int, **fields: Any) -> None:
        if self._telemetry.log is not None:
            ids = {"trace_id": f"{self._ids.trace:032x}", "span_id": f"{span:016x}"}
            self._telemetry.log(text, {"event": event, "run_id": self._run.run_id, **fields, **ids})


_current: Telemetry | None = None
_starting = threading.Lock()


def start_telemetry(
    *, metrics: str = "", log: Log | None = None, complain: Complain = lambda _problem: None
) -> Telemetry | None:
    """Start telemetry for this process; None if neither the environment nor the arguments ask for
    it, UsageError if it cannot be started.

    `metrics` is where to serve metrics ([HOST:]PORT); `log` takes structured lines.
    """
    global _current  # noqa: PLW0603 - it belongs to the process
    with _starting:
        if _current is None and (metrics or log or is_wanted(os.environ)):
            _current = _build(metrics, log, complain)
        return _current


def observe_run(connection: Connection, run: Run, complain: Complain) -> RunObserver | None:
    """Return the observer of a run; None if telemetry is off."""
    if _current is None and not is_wanted(os.environ):
        return None
    try:
        telemetry = start_telemetry(complain=complain)
        return None if telemetry is None else RunObserver(telemetry, connection, run)
    except UsageError as error:
        complain(str(error))
        return None


_known_queues: set[tuple[str, str]] = set()


def show_queue(read: Callable[[], Mapping[tuple[str, str], int]]) -> None:
    """Show how many dispatches wait for workers or are with them, by queue and state; `read` is
    called only if telemetry is on."""
    if _current is None or not _current.meters:
        return
    counts = read()
    _known_queues.update(counts)
    for name, state in _known_queues:
        _current.add(
            "interlock.queue.offers", counts.get((name, state), 0), queue=name, state=state
        )


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables ask for traces or metrics."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(environment.get(name) not in (None, "", "none") for name in _SWITCHES)


def _build(metrics: str, log: Log | None, complain: Complain) -> Telemetry:
    """Build the exporters; UsageError if their library is not installed."""
    complaints = Complaints(complain)
    tracer: Tracer | None = None
    meters: list[Meters] = []
    try:
        if metrics:
            meters.append(PrometheusMeters(metrics))
        if is_wanted(os.environ):
            if os.environ.get("OTEL_TRACES_EXPORTER") != "none":
                tracer = Tracer()
            if os.environ.get("OTEL_METRICS_EXPORTER") != "none":
                meters.append(PushedMeters(build_resource()))
    except ImportError as error:
        raise UsageError(
            f"telemetry needs more packages: pip install 'interlock[otel]' ({error})"
        ) from None
    return Telemetry(tracer, meters, log, complaints)


def format_log_line(text: str, fields: Mapping[str, Any]) -> bytes:
    """Return a structured line as one JSON object."""
    now = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
    return msgspec.json.encode({"time": moment, "level": "info", "message": text, **fields})
