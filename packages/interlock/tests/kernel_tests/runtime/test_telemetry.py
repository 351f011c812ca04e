"""Traces, metrics and structured lines: a real collector reads the first, a real scrape the second.

Runs are real processes, as users start them: telemetry belongs to a process.
"""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from interlock.journal.address import PostgresAddress
from interlock.runtime.meters import METRICS, parse_place
from interlock.system.errors import UsageError
from tests.world.command_line import World
from tests.world.note import NOTE

SCRIPT = """
"*":
  write: [{answer: {}}, {answer: {text: Rain.}, usage: {tokens: 70, money: 0.25}}]
  judge: {answer: {score: 0.9}}
  send: {answer: {}}
"""


class Collector:
    """What an OpenTelemetry collector was sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.services: set[str] = set()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                names = {a.key: a.value.string_value for a in each.resource.attributes}
                self.services.add(names["service.name"])
                self.spans += [span for scope in each.scope_spans for span in scope.spans]
        else:
            for each in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in each.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in scope.metrics}

    def describe(self, span: Any) -> str:
        """A span by its name, below the names of those above it."""
        above = [each for each in self.spans if each.span_id == span.parent_span_id]
        return f"{self.describe(above[0])} > {span.name}" if above else span.name


@contextmanager
def collector() -> Iterator[tuple[Collector, str]]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            made.take(self.path, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield made, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def read_attributes(span: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write("circuits/note.yaml", NOTE.replace("on: crash", "on: unreadable"))
    made.write("crew.yaml", SCRIPT)
    made.cases("C1")
    return made


RUN = ("run", "note", "--cases", "cases.jsonl", "--agent", "script:crew.yaml")


def test_a_run_that_goes_on_in_another_process_continues_its_trace(world: World) -> None:
    with collector() as (seen, address):
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "night"}
        said = world.type(*RUN, env=env)
        assert (said.code, said.err) == (4, "")
        assert world.say("answer", "4", "approve", "--by", "ann").code == 0
        assert world.type("resume", "1", env=env).code == 0
    assert seen.services == {"night"}
    assert len({span.trace_id for span in seen.spans}) == 1
    assert len({span.span_id for span in seen.spans}) == len(seen.spans)
    run, case = "invoke_workflow note", "invoke_workflow note > case note"
    assert sorted(map(seen.describe, seen.spans)) == [
        run,
        case,
        f"{case} > dispatch allow",
        f"{case} > dispatch judge",
        f"{case} > dispatch judge > invoke_agent critic",
        f"{case} > dispatch send",
        f"{case} > dispatch send > invoke_agent mailer",
        f"{case} > dispatch write",
        f"{case} > dispatch write",
        f"{case} > dispatch write > invoke_agent author",
        f"{case} > dispatch write > invoke_agent author",
    ]
    agents = [each for each in seen.spans if each.name == "invoke_agent author"]
    failed, good = sorted(map(read_attributes, agents), key=lambda found: "error.type" not in found)
    assert failed["error.type"] == "unreadable"
    assert good == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "author",
        "gen_ai.conversation.id": "1/1",
        "gen_ai.workflow.name": "note",
        "interlock.agent": "script",
        "interlock.usage.tokens": 70,
        "interlock.usage.money": 0.25,
    }
    (refused,) = [each for span in seen.spans for each in span.events]
    assert refused.name == "refused"
    (whole,) = [each for each in seen.spans if each.name == run]
    assert all(whole.start_time_unix_nano <= each.start_time_unix_nano for each in seen.spans)
    assert all(whole.end_time_unix_nano >= each.end_time_unix_nano for each in seen.spans)
    tokens = seen.metrics["interlock.tokens"].sum.data_points
    assert [point.as_double or point.as_int for point in tokens] == [70]
    assert set(seen.metrics) <= set(METRICS)


def test_a_collector_that_is_gone_hurts_no_run(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": dead, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        said = world.type(*RUN, env=env)
    assert said.code == 4
    assert said.out.startswith("run 1: waiting; 1 open; 3 dispatches\na human is asked: "), said
    assert all(line.startswith("telemetry: ") for line in said.err.splitlines()), said.err
    assert len(said.err.splitlines()) == len(set(said.err.splitlines())) <= 4


def test_a_variable_that_is_nonsense_hurts_no_run(world: World) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "no address", "OTEL_METRIC_EXPORT_INTERVAL": "soon"}
    said = world.type(*RUN, env={**env, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    assert said.code == 4, said
    assert "Traceback" not in said.err
    assert all(line.startswith("telemetry: ") for line in said.err.splitlines()), said.err
    said = world.type(*RUN, "--new", env={**env, "OTEL_SDK_DISABLED": "true"})
    assert (said.code, said.err) == (4, "")


class Daemon:
    """A coordinator or a worker that serves metrics and writes objects."""

    def __init__(self, world: World, *words: str) -> None:
        flags = ("--name", "one", "--metrics", "0", "--log", "json")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "interlock", *words, *flags],
            cwd=world.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def hear(self, event: str) -> dict[str, Any]:
        """The next line about such an event."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("event") == event:
                return self.lines[-1]
        raise AssertionError(f"it never said {event!r}: {self.lines}")

    def scrape(self, address: str) -> dict[tuple[str, ...], float]:
        """Every sample by its name and its labels, in order."""
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address, timeout=30) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {
                (each.name, *sorted(each.labels.values())): each.value
                for family in families
                for each in family.samples
            }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=60)


def test_coordinator_and_worker_serve_metrics_and_log_objects(
    world: World, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    assert world.say(*RUN, "--agent", "critic=worker", "--detach").code == 0
    role = ("--role", "critic=script:crew.yaml", "--slots", "3")
    with Daemon(world, "coordinator") as one, Daemon(world, "worker", *role) as other:
        address, place = one.hear("metrics")["address"], other.hear("metrics")["address"]
        accepted = other.hear("accepted")
        while "trace_id" in one.hear("waiting"):
            pass  # the run says so first, then the coordinator
        samples, working = one.scrape(address), other.scrape(place)
    (decided,) = [each for each in one.lines if each.get("to") == "allow"]
    assert decided["message"] == "C1: judge #1 artifact -> allow"
    assert (decided["run_id"], decided["case_id"], decided["role"]) == (1, "C1", "critic")
    assert len({each["trace_id"] for each in one.lines if "trace_id" in each}) == 1
    assert {"taken", "refused", "gate", "waiting"} <= {each.get("event") for each in one.lines}
    (taken,) = [each for each in one.lines if each.get("event") == "taken"]
    assert (taken["run_id"], taken["epoch"], taken["level"]) == (1, 1, "info")
    assert samples["interlock_dispatches_total", "author", "note", "write"] == 2
    assert samples["interlock_refusals_total", "Malformed", "note"] == 1
    assert samples["interlock_tokens_total", "author", "note"] == 70
    assert samples["interlock_dispatch_duration_seconds_count", "critic", "judge", "note"] == 1
    assert samples["interlock_runs_active", "note"] == 0
    assert (accepted["case_id"], accepted["step"], accepted["fence"]) == ("C1", "judge", 1)
    assert working["interlock_worker_dispatches_total", "accepted", "critic"] == 1
    assert working["interlock_worker_duration_seconds_count", "critic"] == 1
    assert working["interlock_worker_slots",] == 3


def test_a_worker_sends_the_spans_of_the_agents_that_it_runs(
    world: World, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)
    world.write("crew.yaml", SCRIPT.replace("judge: {", "judge: {usage: {tokens: 9}, "))
    with collector() as (seen, address):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with Daemon(world, "worker", "--role", "critic=script:crew.yaml") as one:
            assert world.type(*RUN, "--agent", "critic=worker").code == 4
            one.hear("accepted")
    # One process sent the spans of dispatches, the other one that of its agent.
    assert sorted(map(seen.describe, seen.spans)) == [
        "dispatch judge",
        "dispatch judge > invoke_agent critic",
        "dispatch write",
        "dispatch write",
        "dispatch write > invoke_agent author",
        "dispatch write > invoke_agent author",
    ]
    assert len({span.trace_id for span in seen.spans}) == 1
    (judge,) = [each for each in seen.spans if each.name == "dispatch judge"]
    (agent,) = [each for each in seen.spans if each.name == "invoke_agent critic"]
    assert judge.start_time_unix_nano < agent.start_time_unix_nano
    assert agent.end_time_unix_nano < judge.end_time_unix_nano
    assert read_attributes(agent) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "critic",
        "gen_ai.conversation.id": "1/1",
        "interlock.agent": "script",
        "interlock.usage.tokens": 9,
        "interlock.worker": "one",
        "interlock.fence": 1,
        "interlock.outcome": "accepted",
    }
    assert {"interlock.worker.busy", "interlock.worker.slots"} <= set(seen.metrics)


@pytest.mark.parametrize("place", ["", "x", ":", "9:x", "70000", "-1", "[::1]", "1.2.3.4", "²"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match=r"give PORT, HOST:PORT or \[ADDRESS\]:PORT"):
        parse_place(place)


def test_places_are_on_this_machine_unless_they_say_otherwise(world: World) -> None:
    assert parse_place("9464") == ("127.0.0.1", 9464)
    assert parse_place("0.0.0.0:0") == ("0.0.0.0", 0)
    assert parse_place("[::1]:80") == ("::1", 80)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = world.type(*RUN, "--metrics", str(taken.getsockname()[1]))
    assert said.code == 2
    assert "Address already in use; name another port, or 0 for any free one" in said.err
    assert not (world.folder / ".interlock").exists()
    assert os.environ.get("OTEL_SDK_DISABLED") is None
