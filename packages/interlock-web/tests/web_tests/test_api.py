"""The HTTP API of a real server: answers and by whom, an agent's work, limits, and bad input."""

import signal
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from interlock.journal.schema import MOVED, MOVING
from tests.world import triage
from tests.world.change import CHANGE
from tests.world.command_line import APPROVED, LIMIT, World, ended
from tests.world.pulling import SURE, start
from tests.world.serving import Served, served
from web_tests.test_tokens import make_token

SCRIPT = "<script>alert(1)</script> \u202e\ud7ff'; drop table runs; --"


@pytest.fixture
def asked(tmp_path: Path) -> World:
    """Two cases wait at the gate, with questions 5 and 6."""
    world = World(tmp_path)
    world.write("crew.yaml", APPROVED)
    world.cases("one", "two")
    run = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    assert world.say(*run).code == 4
    return world


def call(server: Served, path: str, body: object = None, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{server.url.replace('0.0.0.0', '127.0.0.1')}/api/v1{path}"
    if body is None:
        return httpx.get(url, headers=given, timeout=LIMIT)
    return httpx.post(url, json=body, headers=given, timeout=LIMIT)


def test_an_answer_is_given_in_the_name_of_the_token(asked: World) -> None:
    ada = make_token(asked, "ada", "read,answer")
    with served(asked, "--host", "0.0.0.0") as server:
        five, six = call(server, "/inbox", **ada).json()["questions"]
        asking = five["question"]
        assert (asking["question_id"], asking["options"]) == (5, ["approve", "revise", "reject"])
        answer = {"decision": "approve", "version": five["version"], "note": SCRIPT, "by": "eve"}
        saved = call(server, "/inbox/5/answer", answer, **ada)
        assert (saved.status_code, saved.json()["question_id"]) == (201, 5)
        again = call(server, "/inbox/5/answer", answer, **ada)
        assert again.status_code == 409
        assert again.json()["error"].startswith("question 5 is answered already by ada;")
        stale = call(server, "/inbox/6/answer", answer, **ada)
        assert (stale.status_code, "is not the one you saw" in stale.json()["error"]) == (409, True)
        wrong = call(server, "/inbox/6/answer", {"decision": "x", "version": six["version"]}, **ada)
        assert (wrong.status_code, "nothing was saved" in wrong.json()["error"]) == (409, True)
        none = call(server, "/inbox/99/answer", answer, **ada)
        assert (none.status_code, "is not open" in none.json()["error"]) == (404, True)
    assert asked.say("answer", "6", "reject").code == 0
    assert asked.say("resume", "1").code in (0, 3)
    life = asked.say("explain", "one").out
    assert "came back by ada: artifact" in life
    assert "drop table" in life


@pytest.mark.parametrize(
    ("scopes", "path", "body", "needs"),
    [
        ("upload", "/inbox", None, "read"),
        ("read", "/inbox/5/answer", {"decision": "approve", "version": ""}, "answer"),
        ("read,answer,upload", "/worker/next", {"wait": 0}, "work"),
    ],
)
def test_a_token_without_the_scope(
    tmp_path: Path, scopes: str, path: str, body: object, needs: str
) -> None:
    world = World(tmp_path)
    eve = make_token(world, "eve", scopes)
    with served(world) as server:
        refused = call(server, path, body, **eve)
        had = ", ".join(scopes.split(","))
        sentence = f"this needs a token with the scope {needs}; eve has {had}"
        assert (refused.status_code, refused.json()) == (403, {"error": sentence})
        assert call(server, "/me", **eve).json()["name"] == "eve"


def test_a_worker_over_plain_http(tmp_path: Path) -> None:
    world = triage.lay_out(World(tmp_path))
    world.cases("A", "B")
    with served(world) as server:
        nobody = call(server, "/worker/next", {"wait": 0}).json()
        assert (nobody["available"], nobody["reason"].partition(":")[0]) == (False, "no run yet")
        run = start(world)
        first = call(server, "/worker/next", {"wait": 5}).json()
        assert (first["available"], first["role"]) == (True, "scout")
        held = {"dispatch_id": first["dispatch_id"], "lease": first["lease"]}
        alive = call(server, "/worker/heartbeat", {"lease": first["lease"]}).json()
        assert [each["dispatch_id"] for each in alive["yours"]] == [first["dispatch_id"]]
        bad = call(server, "/worker/submit", {**held, "answer": {}}).json()
        assert (bad["accepted"], bad["open"]) == (False, True)
        assert call(server, "/worker/submit", {**held, "answer": SURE}).json()["accepted"]
        late = call(server, "/worker/submit", {**held, "answer": SURE}).json()
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        forged = call(server, "/worker/submit", {**held, "lease": "x", "answer": SURE}).json()
        assert not forged["accepted"]
        other = call(server, "/worker/next", {"wait": 5}).json()
        held = {"dispatch_id": other["dispatch_id"], "lease": other["lease"]}
        assert call(server, "/worker/signal", {**held, "signal": "release"}).json()["accepted"]
        other = call(server, "/worker/next", {"wait": 5}).json()
        held = {"dispatch_id": other["dispatch_id"], "lease": other["lease"]}
        assert call(server, "/worker/submit", {**held, "answer": SURE}).json()["accepted"]
        assert call(server, "/worker/next", {"wait": 5}).json()["done"]
    assert ended(run).json["ends"] == {"kept": 2}


def test_a_worker_that_hangs_up_while_it_waits_is_given_nothing(tmp_path: Path) -> None:
    world = triage.lay_out(World(tmp_path))
    world.cases("A")
    with served(world) as server:
        run = start(world)
        first = call(server, "/worker/next", {"wait": 5, "ttl": 600}).json()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{server.url}/api/v1/worker/next", json={"wait": 5, "ttl": 600}, timeout=0.5
            )
        held = {"dispatch_id": first["dispatch_id"], "lease": first["lease"]}
        assert call(server, "/worker/signal", {**held, "signal": "release"}).json()["accepted"]
        again = call(server, "/worker/next", {"wait": 5}).json()
        assert again["dispatch_id"] == first["dispatch_id"]
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=LIMIT)


def test_too_many_requests(tmp_path: Path) -> None:
    """Wrong tokens count, too; health does not."""
    world = World(tmp_path)
    with served(world, "--rate", "3") as server:
        wrong = {"Authorization": "Bearer x"}
        codes = [call(server, "/me", **wrong).status_code for _ in range(3)]
        refused = call(server, "/me")
        assert (codes, refused.status_code) == ([401] * 3, 429)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert list(refused.json()) == ["error"]
        assert httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with served(World(tmp_path_factory.mktemp("near"))) as server:
        yield server


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"decision": "\xff", "version": ""}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"decision": 1, "version": ""}', "application/json", 400),
        (b'{"decision": "approve"}', "application/json", 400),
        (b'{"decision": "approve", "version": ""}', "text/plain", 415),
        (b"decision=approve&version=", "application/x-www-form-urlencoded", 415),
        (b'{"decision": "approve", "version": ""}', "", 415),
    ],
)
def test_bodies_that_are_no_answers(near: Served, body: bytes, kind: str, status: int) -> None:
    headers = {"content-type": kind} if kind else {}
    found = httpx.post(f"{near.url}/api/v1/inbox/5/answer", content=body, headers=headers)
    assert (found.status_code, list(found.json())) == (status, ["error"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": "Bearer interlock_000000000000_" + "0" * 64}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
    ],
)
def test_forged_requests(near: Served, headers: dict[str, str], status: int) -> None:
    found = httpx.post(f"{near.url}/api/v1/worker/next", json={"wait": 0}, headers=headers)
    assert (found.status_code, list(found.json())) == (status, ["error"])


@pytest.mark.parametrize("path", ["/", "/nothing", "/..%2f..%2fetc", "/inbox/%00", "/inbox/a/b"])
def test_paths_that_lead_nowhere(near: Served, path: str) -> None:
    found = call(near, path)
    assert (found.status_code, list(found.json())) == (404, ["error"])


def test_connections_that_send_nothing_keep_nobody_out(near: Served) -> None:
    port = urlsplit(near.url).port
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(500)]
    try:
        assert call(near, "/me").status_code == 200
    finally:
        for each in silent:
            each.close()


def test_everything_that_pages_show(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert triage.done(world).code == 3
    with served(world) as server:
        runs = call(server, "/runs").json()
        assert [each["run_id"] for each in runs["runs"]] == [1]
        assert (runs["runs"][0]["status"], runs["next_before"]) == ("unhealthy", 0)
        run = call(server, "/runs/1").json()
        assert (run["run"]["ends"], run["run"]["cost"]["tokens"]) == ({"kept": 2, "dropped": 2}, 10)
        assert [*run["roles"]] == ["scout"]
        cases = call(server, "/runs/1/cases?sort=name&descending=true&limit=3").json()
        assert ([each["row"]["case_id"] for each in cases["cases"]], cases["total"]) == (
            ["D", "C", "B"],
            4,
        )
        kept = call(server, "/runs/1/cases?place=kept&q=a").json()["cases"]
        assert [each["row"]["case_id"] for each in kept] == ["A"]
        number = cases["cases"][1]["row"]["case_no"]
        life = call(server, f"/runs/1/cases/{number}").json()
        decisions = [each["decision"] for each in life["dispatches"]]
        assert [each["rule"] for each in decisions] == ["look-again", "unsure"]
        assert decisions[0]["passed"] == [["sure", "false"]]
        changed = call(server, "/runs/1/replay", {"set": {"sure": 0.55}}).json()["cases"]
        assert {each["case_id"]: each["end_after"] for each in changed} == {
            "B": "kept",
            "C": "kept",
        }
        odd = call(server, "/runs/1/replay", {"set": {"nothing": 1}})
        assert (odd.status_code, "has no threshold" in odd.json()["error"]) == (409, True)
        assert call(server, "/costs/today").json()["tokens"] == 10
        circuit = call(server, "/circuits/triage").json()
        assert (circuit["sound"], circuit["report"]["worst_case"]["dispatches"]) == (True, 2)
        agents = call(server, "/agents").json()
        assert [each["agent"] for each in agents["records"]] == ["script:scout.yaml"]
        assert agents["asked"] == []
        assert call(server, "/workers").json() == {"workers": []}
        for path in (
            "/runs/9",
            "/deliveries/1",
            "/runs/1/cases/99",
            "/circuits/..%2fpasswd.yaml",
            "/circuits/x",
        ):
            assert call(server, path).status_code == 404, path


def test_events_tell_of_a_run_that_begins(tmp_path: Path) -> None:
    world = triage.lay_out(World(tmp_path))
    assert world.say("init-db").code == 0
    with (
        served(world) as server,
        httpx.stream("GET", f"{server.url}/api/v1/events", timeout=LIMIT) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        # Where the journal stands is told first; what is written after that is told as a change.
        assert find_line(lines, '"fresh":true')
        assert world.say(*triage.RUN).code == 3
        assert find_line(lines, '"runs":{"1":"triage"}')


def find_line(lines: Iterator[str], part: str) -> str:
    """The next line with that part; a stream without news only says that it is still there."""
    for line in lines:
        if part in line:
            return line
        assert "still here" not in line, f"no line with {part} came"
    raise AssertionError("the stream ended")


def test_a_store_that_is_moved_or_upgraded_meanwhile(tmp_path: Path) -> None:
    """Nothing breaks: the server says what is the matter, and goes on when it is over."""
    world = World(tmp_path)
    triage.done(world)
    ada = make_token(world, "ada", "read")
    with served(world) as server:
        assert call(server, "/runs", **ada).status_code == 200
        raw = sqlite3.connect(world.db)
        for stands in (MOVED, MOVING, 9, 1):
            status = 200 if stands == 1 else 503
            raw.execute("update schema_versions set version = ? where part = 'journal'", (stands,))
            raw.commit()
            found = call(server, "/runs")
            assert found.status_code == status, found.text
            assert call(server, "/runs", **ada).status_code == status
            assert ("retry-after" in found.headers) == (status == 503)
        raw.close()
        world.db.rename(tmp_path / "away.db")
        assert call(server, "/runs").json() == {"runs": [], "next_before": 0}
        assert call(server, "/runs", **ada).status_code == 401
