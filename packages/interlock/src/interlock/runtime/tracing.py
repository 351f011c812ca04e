"""Spans with computed ids, sent to an OpenTelemetry collector when they are over.

The ids of a trace and its spans are hashes of the run and of numbers in its journal, so they need
not be stored or passed along. The process that runs an agent sends its span: the coordinator or,
where a role is left to workers, the worker. Both use OpenTelemetry's words for generative AI.
"""

import threading
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from interlock.engine.case import ModelCall, Usage
from interlock.version import __version__

WORKER = "worker"
"""The agent word for workers on other hosts, which send the spans of their own agents."""
_PROVIDERS = {
    "anthropic": "anthropic",
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "gcp.gemini",
    "openai": "openai",
}
"""OpenTelemetry's name for the provider of each agent's models."""
_MODEL_ENDPOINTS = ("anthropic", "openai")
"""The agents whose words name a model behind the colon."""


class SpanIds(NamedTuple):
    """The ids of a run's trace and of its spans."""

    trace: int

    @classmethod
    def of_run(cls, run_id: int, created_at: float) -> "SpanIds":
        return cls(_number(16, "run", run_id, created_at))

    def find(self, kind: str, number: int) -> int:
        return _number(8, kind, number, self.trace)


def _number(size: int, *parts: object) -> int:
    digest = blake2b("\0".join(map(repr, parts)).encode(), digest_size=size)
    return int.from_bytes(digest.digest()) or 1  # an id is never zero


class Span(msgspec.Struct, frozen=True):
    """A span of time; one without a `parent` is the trace's root."""

    name: str
    number: int
    parent: int
    times: tuple[float, float]
    attributes: Mapping[str, Any]
    error: str = ""
    client: bool = False
    events: "Sequence[SpanEvent]" = ()


class Tracer:
    """Send finished spans with given ids."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import IdGenerator

        class GivenIds(IdGenerator):
            """Hand out the ids that were set before."""

            trace = span = 0

            def generate_trace_id(self) -> int:
                return self.trace

            def generate_span_id(self) -> int:
                return self.span

        self._ids = GivenIds()
        self._lock = threading.Lock()
        self._provider = TracerProvider(
            id_generator=self._ids, resource=build_resource(), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("interlock", __version__)

    def send(self, ids: SpanIds, span: "Span") -> None:
        """Send a span of that trace."""
        from opentelemetry import trace
        from opentelemetry.context import Context

        begun, over = span.times
        context = Context()
        if span.parent:
            above = trace.SpanContext(ids.trace, span.parent, True, trace.TraceFlags(1))
            context = trace.set_span_in_context(trace.NonRecordingSpan(above), context)
        with self._lock:
            self._ids.trace, self._ids.span = ids.trace, span.number
            made = self._tracer.start_span(
                span.name,
                context,
                kind=trace.SpanKind.CLIENT if span.client else trace.SpanKind.INTERNAL,
                attributes={key: value for key, value in span.attributes.items() if value != ""},
                start_time=_nanoseconds(begun),
            )
        for each in span.events:
            made.add_event(each.name, each.attributes, _nanoseconds(each.at))
        if span.error:
            made.set_status(trace.StatusCode.ERROR, span.error)
        made.end(_nanoseconds(max(begun, over)))

    def flush(self) -> None:
        self._provider.force_flush()


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def build_resource() -> Any:
    """Return who we are, for the receiver of spans and metrics; OTEL_* variables override it."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = Resource.create({"service.name": "interlock", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


class SpanEvent(msgspec.Struct, frozen=True):
    """An event of a dispatch while it was open."""

    name: str
    at: float
    attributes: dict[str, Any] = {}


class AgentOfRole(msgspec.Struct, frozen=True):
    """The agent that plays a role, by the words that name it."""

    role: str
    words: str

    @property
    def kind(self) -> str:
        return self.words.partition(":")[0]

    @property
    def span_name(self) -> str:
        return f"invoke_agent {self.role}"

    def describe(self, run_id: int, case_no: int) -> dict[str, Any]:
        """Return the attributes that are known before the agent answers."""
        model = self.words.partition(":")[2] if self.kind in _MODEL_ENDPOINTS else ""
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self.role,
            "gen_ai.provider.name": _PROVIDERS.get(self.kind, ""),
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": f"{run_id}/{case_no}",
            "interlock.agent": self.kind,
        }


def describe_answer(failure: str, usage: Usage, call: ModelCall | None) -> dict[str, Any]:
    """Return the attributes of an answer.

    Usage from a model endpoint is given in OpenTelemetry's words, where input includes what came
    from the cache.
    """
    found: dict[str, Any] = {
        "error.type": failure,
        "interlock.usage.tokens": usage.tokens or "",
        "interlock.usage.money": usage.money or "",
    }
    if call is not None:
        found |= {
            "gen_ai.response.model": call.model,
            "gen_ai.response.id": call.request_id,
            "gen_ai.usage.input_tokens": call.input + call.cached + call.cache_write,
            "gen_ai.usage.output_tokens": call.output,
            "gen_ai.usage.cache_read.input_tokens": call.cached,
            "gen_ai.usage.cache_creation.input_tokens": call.cache_write,
        }
    return found
