"""Telemetry of a worker: counts of its work, and a span for each agent that it has run.

A worker reads nothing of the journal. The run of a dispatch tells it the ids of the trace and of
the span above its own.
"""

from collections.abc import Callable, Mapping
from typing import Any

from interlock.carriers.contract import Reply
from interlock.journal.events import Report
from interlock.runtime.telemetry import Telemetry, start_telemetry
from interlock.runtime.tracing import AgentOfRole, Span, SpanIds, Tracer, describe_answer
from interlock_cluster.worker.host import EndedWork


class WorkerObserver:
    """Counts what a worker reports, and sends the spans of its agents. It only reports if telemetry
    is off."""

    def __init__(self, report: Report, agents: Mapping[str, str], name: str, slots: int) -> None:
        """`agents` has the words that name the agent of each role."""
        self._report = report
        self._agents = agents
        self._name = name
        self._telemetry = start_telemetry(complain=report)
        if self._telemetry is not None:
            self._telemetry.add("interlock.worker.slots", slots)

    def report(self, text: str, **fields: Any) -> None:
        self._report(text, **fields)
        if self._telemetry is not None and "role" in fields:
            self._guard(self._count, self._telemetry, fields)

    def end(self, work: EndedWork) -> None:
        """Send the span of an agent that has answered, or will not."""
        if self._telemetry is not None and self._telemetry.tracer is not None:
            self._guard(self._send, self._telemetry.tracer, work)

    def _guard(self, act: Callable[..., None], *given: Any) -> None:
        try:
            act(*given)
        except Exception as error:  # whatever it is, the worker goes on
            assert self._telemetry is not None  # noqa: S101 - the callers have looked
            self._telemetry.complain_about(error)

    def _count(self, telemetry: Telemetry, fields: Mapping[str, Any]) -> None:
        role, event = fields["role"], fields["event"]
        telemetry.add("interlock.worker.dispatches", 1, role=role, event=event)
        telemetry.add("interlock.worker.busy", fields["busy"])
        if event == "accepted":
            telemetry.add("interlock.worker.duration", fields["seconds"], role=role)

    def _send(self, tracer: Tracer, work: EndedWork) -> None:
        """Send a span for each time that a worker had the dispatch; its id is made of the fence."""
        ask, reply = work.ask, work.reply or Reply(work.ask.dispatch_id)
        agent = AgentOfRole(ask.role, self._agents[ask.role])
        ids = SpanIds.of_run(ask.run_id, ask.run_at)
        failure = reply.failure or ("" if work.outcome == "accepted" else work.outcome)
        tracer.send(
            ids,
            Span(
                agent.span_name,
                ids.find(f"agent under fence {work.fence}", ask.dispatch_id),
                ids.find("dispatch", ask.dispatch_id),
                work.times,
                {
                    **agent.describe(ask.run_id, ask.case_no),
                    **describe_answer(failure, reply.usage, reply.call),
                    "interlock.worker": self._name,
                    "interlock.fence": work.fence,
                    "interlock.outcome": work.outcome,
                },
                error=failure,
                client=True,
            ),
        )
