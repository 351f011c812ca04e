"""Metrics: one table of what is measured, and two ways to export it.

`PrometheusMeters` serves them over HTTP, `PushedMeters` sends them to an OpenTelemetry collector.
Circuits bound the labels: no run, case or dispatch is ever one.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from interlock.system.errors import UsageError

_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400)


class Metric(NamedTuple):
    """Something that is counted or measured."""

    kind: Literal["counter", "gauge", "histogram"]
    description: str
    labels: tuple[str, ...]
    unit: str = ""


METRICS: Mapping[str, Metric] = {
    "interlock.dispatches": Metric(
        "counter", "Dispatches that were opened.", ("circuit", "step", "role")
    ),
    "interlock.decisions": Metric(
        "counter", "Decisions, by what came back.", ("circuit", "step", "role", "signal")
    ),
    "interlock.refusals": Metric("counter", "Answers that were refused.", ("circuit", "reason")),
    "interlock.rate_limits": Metric(
        "counter", "Dispatches that met a rate limit.", ("circuit", "account")
    ),
    "interlock.cases": Metric("counter", "Cases that came to an end.", ("circuit", "end")),
    "interlock.tokens": Metric("counter", "Tokens that agents spent.", ("circuit", "role")),
    "interlock.money": Metric("counter", "Money that agents spent.", ("circuit", "role")),
    "interlock.dispatch.duration": Metric(
        "histogram",
        "From the opening of a dispatch to its decision.",
        ("circuit", "step", "role"),
        "s",
    ),
    "interlock.case.duration": Metric(
        "histogram", "From a case's first dispatch to its end.", ("circuit",), "s"
    ),
    "interlock.runs.active": Metric("gauge", "Runs that this process works on.", ("circuit",)),
    "interlock.dispatches.open": Metric("gauge", "Dispatches that are out.", ("circuit",)),
    "interlock.dispatches.paused": Metric(
        "gauge", "Dispatches that wait for the end of a rate limit.", ("circuit",)
    ),
    "interlock.cases.waiting": Metric(
        "gauge", "The queue: cases that wait for their next dispatch.", ("circuit",)
    ),
    "interlock.queue.offers": Metric(
        "gauge", "Dispatches that wait for a worker, or are with one.", ("queue", "state")
    ),
    "interlock.worker.dispatches": Metric(
        "counter", "What became of dispatches on this worker.", ("role", "event")
    ),
    "interlock.worker.duration": Metric(
        "histogram", "From taking a dispatch to the end of its reply.", ("role",), "s"
    ),
    "interlock.worker.busy": Metric("gauge", "Dispatches under way on this worker.", ()),
    "interlock.worker.slots": Metric("gauge", "Dispatches that this worker takes at once.", ()),
    "interlock.questions.open": Metric("gauge", "Questions that wait for people.", ("circuit",)),
}
"""All metrics by their OpenTelemetry names; Prometheus has `_` for `.`, and the unit and `_total`
at the end."""


class Meters(Protocol):
    """One way to export metrics."""

    def record(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Add to a counter, set a gauge, or put a value into a histogram."""

    def flush(self) -> None:
        """Send what is left."""


class PrometheusMeters:
    """Metrics that Prometheus fetches over HTTP at /metrics."""

    def __init__(self, place: str) -> None:
        import prometheus_client

        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        kinds: dict[str, Any] = {
            "counter": prometheus_client.Counter,
            "gauge": prometheus_client.Gauge,
            "histogram": prometheus_client.Histogram,
        }
        self._metrics = {
            name: kinds[metric.kind](
                name.replace(".", "_"),
                metric.description,
                metric.labels,
                unit="seconds" if metric.unit == "s" else "",
                registry=self._registry,
                **({"buckets": _SECONDS} if metric.kind == "histogram" else {}),
            )
            for name, metric in METRICS.items()
        }
        host, port = parse_place(place)
        try:
            self.server, _ = prometheus_client.start_http_server(port, host, self._registry)
        except OSError as error:
            raise UsageError(
                f"--metrics {place}: {error.strerror}; name another port, or 0 for any free one"
            ) from None
        self.address = f"http://{_bracket(host)}:{self.server.server_port}/metrics"

    def record(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        found = self._metrics[name]
        found = found.labels(**labels) if labels else found
        kind = METRICS[name].kind
        if kind == "counter":
            found.inc(value)
        elif kind == "gauge":
            found.set(value)
        else:
            found.observe(value)

    def flush(self) -> None:
        pass


class PushedMeters:
    """Metrics that are pushed to a collector; OTEL_* variables say where and how often."""

    def __init__(self, resource: Any) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        self._provider = MeterProvider(
            [PeriodicExportingMetricReader(OTLPMetricExporter())], resource, shutdown_on_exit=False
        )
        meter = self._provider.get_meter("interlock")
        kinds: dict[str, Any] = {
            "counter": meter.create_counter,
            "gauge": meter.create_gauge,
            "histogram": meter.create_histogram,
        }
        self._metrics = {
            name: kinds[metric.kind](
                name,
                metric.unit,
                metric.description,
                **(
                    {"explicit_bucket_boundaries_advisory": _SECONDS}
                    if metric.kind == "histogram"
                    else {}
                ),
            )
            for name, metric in METRICS.items()
        }

    def record(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        found = self._metrics[name]
        kind = METRICS[name].kind
        if kind == "counter":
            found.add(value, labels)
        elif kind == "gauge":
            found.set(value, labels)
        else:
            found.record(value, labels)

    def flush(self) -> None:
        self._provider.force_flush()


def parse_place(place: str) -> tuple[str, int]:
    """Read [HOST:]PORT; without a host, only this machine is served."""
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise UsageError(f"--metrics {place}: give PORT, HOST:PORT or [ADDRESS]:PORT")
    return host or "127.0.0.1", int(port)


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
