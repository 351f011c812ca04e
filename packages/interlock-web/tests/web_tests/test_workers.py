"""Whole runs worked over HTTP: two revisions, sessions and none, who dies, who comes back."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from tests.soak import again
from tests.world import triage
from tests.world.command_line import LIMIT, World, ended
from tests.world.pulling import (
    BEFORE,
    NOW,
    RUN,
    SURE,
    refusals,
    start,
    submit,
    take,
    use,
    work_off,
    worker,
)
from tests.world.serving import TOKEN, Served, killed_at_work, remote, served


@pytest.fixture
def world(tmp_path: Path) -> World:
    return triage.lay_out(World(tmp_path))


@pytest.mark.parametrize(
    "modes", [again((BEFORE, BEFORE)), again((NOW, NOW)), (BEFORE, NOW)], ids="-".join
)
async def test_two_workers_work_a_run_off(world: World, modes: tuple[str, str]) -> None:
    world.cases(*(f"A{number}" for number in range(20)))
    with served(world) as server:
        run = start(world)
        async with remote(server, modes[0]) as one, remote(server, modes[1]) as two:
            work = [work_off(each, lambda _work: SURE) for each in (one, two)]
            done = await asyncio.gather(*work)
    result = ended(run)
    assert (result.code, result.json["ends"]) == (0, {"kept": 20})
    asked = [each["dispatch_id"] for many in done for each in many]
    assert len(asked) == len(set(asked)) == 20


@pytest.mark.parametrize("mode", [again(BEFORE), NOW])
async def test_a_dead_workers_dispatch_goes_to_another_under_a_new_fence(
    world: World, mode: str
) -> None:
    """Its lease ends, because nothing is heard of it."""
    world.cases("A")
    with served(world) as server:
        run = start(world)
        lost = await asyncio.to_thread(killed_at_work, server, mode, 2.0)
        async with remote(server, mode) as two:
            work = await take(two, wait=30)
            assert work["dispatch_id"] == lost["dispatch_id"]
            assert (lost["fence"], work["fence"]) == (1, 2)
            late = await submit(two, lost, SURE)
            assert (late["accepted"], late["refusal"], late["open"]) == (False, "Stale", False)
            assert (await submit(two, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}
    assert refusals(world) == {"Stale": 1}


def call_without_cookies(server: Served, tool: str, **arguments: object) -> dict[str, Any]:
    """A client of the newest revision that keeps neither cookies nor connections."""
    version = {"io.modelcontextprotocol/protocolVersion": NOW}
    meta = {
        **version,
        "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "8"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": f"interlock_{tool}", "arguments": arguments, "_meta": meta},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": NOW,
        "Mcp-Method": "tools/call",
        "Mcp-Name": f"interlock_{tool}",
        "Connection": "close",
    }
    result = httpx.post(server.mcp, json=body, headers=headers, timeout=LIMIT)
    text = result.text.partition("data: ")[2] or result.text
    found = json.loads(text)["result"]["structuredContent"]
    assert isinstance(found, dict)
    return found


async def test_a_client_that_keeps_nothing_is_known_by_its_lease(world: World) -> None:
    world.cases("A", "B")
    with served(world) as server:
        run = start(world)
        first = call_without_cookies(server, "next", ttl=1)
        second = call_without_cookies(server, "next")
        async with remote(server, NOW) as two:
            again = await take(two, wait=30)
            assert (again["dispatch_id"], again["fence"]) == (first["dispatch_id"], 2)
            answer = call_without_cookies(server, "submit", **_held(first), answer=SURE)
            assert (answer["accepted"], answer["refusal"]) == (False, "Stale")
            assert (await submit(two, again, SURE))["accepted"]
        stands = call_without_cookies(server, "status", lease=second["lease"])
        assert [each["case_id"] for each in stands["yours"]] == [second["case_id"]]
        assert call_without_cookies(server, "submit", **_held(second), answer=SURE)["accepted"]
    assert ended(run).json["ends"] == {"kept": 2}
    assert refusals(world) == {"Stale": 1}


@pytest.mark.parametrize("mode", [BEFORE, NOW])
async def test_a_worker_is_known_by_its_session_or_its_lease(world: World, mode: str) -> None:
    world.cases("A", "B")
    with served(world) as server:
        run = start(world)
        async with remote(server, mode) as one, remote(server, mode) as two:
            mine, other = await take(one, ttl=60), await take(two, ttl=60)
            assert {mine["case_id"], other["case_id"]} == {"A", "B"}
            wrong = await submit(two, {**mine, "lease": other["lease"]}, SURE)
            assert (wrong["accepted"], wrong["refusal"]) == (False, "WrongTask")
            forged = await submit(one, {**mine, "lease": f"{mine['lease'][:-1]}x"}, SURE)
            assert (forged["accepted"], forged["refusal"]) == (False, "WrongTask")
            stands = await use(one, "status", lease=mine["lease"])
            assert [each["case_id"] for each in stands["yours"]] == [mine["case_id"]]
            assert stands["leased"] == 2
            prompt = await one.read_resource(f"run://1/dispatches/{other['dispatch_id']}/prompt")
            assert getattr(prompt.contents[0], "text", "") == other["prompt"]
            held = {"dispatch_id": mine["dispatch_id"], "lease": mine["lease"]}
            asked = await use(one, "ask", **held, question="Which door?")
            assert asked["asked"]
            assert world.say("answer", asked["question_id"], "left").code == 0
            polled = await use(one, "ask", question_id=asked["question_id"])
            assert polled["decision"] == "left"
            refused = await submit(one, mine, {})
            assert (refused["accepted"], refused["open"]) == (False, True)
            assert (await submit(one, mine, SURE))["accepted"]
            assert (await submit(one, mine, SURE))["refusal"] == "Stale"
            released = await use(two, "signal", **_held(other), signal="release")
            assert released["accepted"]
            again = await take(one)
            assert (again["dispatch_id"], again["fence"]) == (other["dispatch_id"], 2)
            assert (await submit(one, again, SURE))["accepted"]
            assert (await use(two, "next"))["done"]
    assert ended(run).json["ends"] == {"kept": 2}


async def test_a_session_that_lost_its_work_gets_it_again(world: World) -> None:
    world.cases("A")
    with served(world) as server:
        run = start(world)
        async with remote(server, BEFORE) as one, remote(server, BEFORE) as two:
            work = await take(one)
            assert not (await use(two, "next", wait=0))["available"]
            assert await take(one, wait=0) == work
            assert (await submit(one, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}


def _held(work: dict[str, object]) -> dict[str, object]:
    return {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}


@pytest.mark.parametrize("mode", [again(BEFORE), NOW])
async def test_a_coordinator_that_was_killed_comes_back_to_its_workers(
    world: World, mode: str
) -> None:
    world.cases("A")
    with served(world) as server:
        run = start(world)
        async with remote(server, mode) as one:
            work = await take(one)
            run.send_signal(signal.SIGKILL)
            run.communicate(timeout=LIMIT)
            lost = await submit(one, work, SURE)
            assert (lost["refusal"], lost["open"]) == ("Unsettled", True)
            run = start(world, "resume", "--json")
            assert (await submit(one, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}


@pytest.mark.soak
@pytest.mark.parametrize("mode", [BEFORE, NOW])
async def test_a_session_that_ends_gives_back_what_it_held(world: World, mode: str) -> None:
    world.cases("A")
    with served(world) as server:
        run = start(world)
        async with remote(server, mode) as one:
            work = await take(one, ttl=3 if mode == NOW else 900)
        async with remote(server, mode) as two:
            again = await take(two)
            assert (again["dispatch_id"], again["fence"]) == (work["dispatch_id"], 2)
            assert (await submit(two, again, SURE))["accepted"]
    assert ended(run).code == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
async def test_a_server_that_ends_loses_nothing(
    world: World, number: signal.Signals, code: int
) -> None:
    """Its clients keep their leases, and go on over another server."""
    world.cases("A", "B")
    run = start(world)
    with served(world) as server:
        async with remote(server, NOW) as one:
            work = await take(one)
            server.process.send_signal(number)
            await asyncio.to_thread(server.process.communicate, timeout=LIMIT)
            assert server.process.returncode == code
    with served(world) as server:
        async with remote(server, NOW) as one, worker(world) as two:
            assert (await submit(one, work, SURE))["accepted"]
            assert (await submit(two, await take(two), SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 2}


@pytest.mark.parametrize("mode", [again(BEFORE), NOW])
async def test_a_signal_ends_it_while_a_call_waits(world: World, mode: str) -> None:
    run = start(world, "run", "triage", "--cases", "cases.jsonl", "--dispatch", "mcp")
    with served(world) as server:
        async with remote(server, mode) as one:
            for _ in range(4):
                await take(one)
            waiting = asyncio.create_task(use(one, "next", wait=30))
            async with worker(world) as near:
                while (await use(near, "status"))["leased"] < 4:
                    pass
            server.process.send_signal(signal.SIGTERM)
            out, err = await asyncio.to_thread(server.process.communicate, timeout=LIMIT)
            assert (server.process.returncode, out, err) == (143, "", "")
            with pytest.raises((MCPError, AssertionError)):
                await waiting
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=LIMIT)


async def test_without_a_coordinator_it_says_so(world: World) -> None:
    with served(world) as server:
        async with remote(server, NOW) as one:
            none = await use(one, "next", wait=0)
            assert none["reason"].startswith("no run yet")


def test_health(world: World) -> None:
    with served(world) as server:
        health = httpx.get(f"{server.url}/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        assert httpx.post(f"{server.url}/healthz").status_code == 405
        assert httpx.get(f"{server.url}/nothing").status_code == 404


async def test_beyond_this_machine_a_token_is_needed(world: World) -> None:
    world.cases("A")
    bare = world.say("serve", "--host", "0.0.0.0")
    assert (bare.code, bare.out) == (2, "")
    assert "give a token with --token-file or INTERLOCK_TOKEN" in bare.err
    with served(world, "--host", "0.0.0.0", env={"INTERLOCK_TOKEN": TOKEN}) as server:
        run = start(world, *RUN)
        with pytest.raises(BaseExceptionGroup):
            async with remote(server, BEFORE):
                pass
        async with remote(server, BEFORE, {"Authorization": f"Bearer {TOKEN}"}) as one:
            assert (await submit(one, await take(one), SURE))["accepted"]
    assert ended(run).code == 0


def test_a_token_is_a_secret(world: World) -> None:
    path = world.write("token", TOKEN)
    path.chmod(0o644)
    output = world.say("serve", "--token-file", "token", "--port", "0")
    assert (output.code, "chmod 600 token" in output.err) == (2, True)
    path.chmod(0o600)
    path.write_text("short\n")
    assert "at least 16" in world.say("serve", "--token-file", "token").err
    path.write_text("\n")
    assert "is empty" in world.say("serve", "--token-file", "token").err
    assert "cannot be read" in world.say("serve", "--token-file", "none").err


def test_a_place_that_is_taken(world: World) -> None:
    with served(world) as server:
        port = server.url.rpartition(":")[2]
        output = world.say("serve", "--port", port)
    assert output.code == 2
    assert "Address already in use; choose another address with --host and --port" in output.err
