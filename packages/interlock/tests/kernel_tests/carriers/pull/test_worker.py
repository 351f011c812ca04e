"""Whole runs, worked by clients over real processes: who dies, who comes back, who is late."""

import asyncio
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from interlock.carriers.pull.offers import list_sessions
from interlock.journal.address import PostgresAddress
from tests.soak import again
from tests.world import triage
from tests.world.command_line import LIMIT, World, ended, until
from tests.world.pulling import (
    BEFORE,
    NOW,
    RUN,
    SURE,
    kill_newest,
    refusals,
    start,
    submit,
    take,
    use,
    work_off,
    worker,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return triage.lay_out(World(tmp_path))


@pytest.mark.parametrize(
    "modes", [again((BEFORE, BEFORE)), again((NOW, NOW)), (BEFORE, NOW)], ids="-".join
)
async def test_two_workers_work_a_run_off(world: World, modes: tuple[str, str]) -> None:
    world.cases(*(f"A{number}" for number in range(20)))
    run = start(world)
    async with worker(world, modes[0]) as one, worker(world, modes[1]) as two:
        work = [work_off(each, lambda _work: SURE) for each in (one, two)]
        done = await asyncio.gather(*work)
    result = ended(run)
    assert (result.code, result.json["ends"]) == (0, {"kept": 20})
    asked = [each["dispatch_id"] for many in done for each in many]
    assert len(asked) == len(set(asked)) == 20


async def test_one_signal_ends_a_run_whose_work_nobody_holds(world: World) -> None:
    world.cases("A", "B")
    run = start(world)
    async with worker(world) as one:
        work = await take(one)
        run.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(0.5)
        held = {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}
        assert (await use(one, "signal", **held, signal="release"))["accepted"]
        assert ended(run).json["status"] == "stopped"
    run = start(world, "resume", "--json")
    run.send_signal(signal.SIGINT)
    assert ended(run).json["status"] == "stopped"


async def test_what_is_handed_out_tells_all(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one:
        work = await take(one, ttl=60)
        assert work["prompt"] == "Look at the A."
        assert work["answer_schema"]["required"] == ["confidence"]
        assert (work["case_id"], work["step"], work["attempt"]) == ("A", "look", 1)
        assert (work["role"], work["fence"], work["ttl"]) == ("scout", 1, 60)
        prompt = await one.read_resource(f"run://1/dispatches/{work['dispatch_id']}/prompt")
        assert getattr(prompt.contents[0], "text", "") == work["prompt"]
        listed = (await one.list_resources()).resources
        assert [str(each.uri) for each in listed] == ["run://1/briefing"]
        briefing = await one.read_resource("run://1/briefing")
        assert "Total cases in run: 1" in getattr(briefing.contents[0], "text", "")
        stands = await use(one, "status")
        assert (stands["coordinator"], stands["open"], stands["leased"]) == (True, 1, 1)
        assert [each["case_id"] for each in stands["yours"]] == ["A"]
        assert (await submit(one, work, SURE))["accepted"]
        over = await use(one, "next")
        assert (over["available"], over["done"]) == (False, True)
        output = await use(one, "report")
        assert (output["status"], output["ends"]) == ("done", {"kept": 1})
        assert not (await use(one, "status"))["coordinator"]
    assert ended(run).code == 0


async def test_a_dead_workers_dispatch_goes_to_another_under_a_new_fence(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as two:
        with suppress(Exception, BaseExceptionGroup):
            async with worker(world) as one:
                lost = await take(one, ttl=2)
                kill_newest(world)
                await use(one, "status")
        work = await take(two)
        assert work["dispatch_id"] == lost["dispatch_id"]
        assert (lost["fence"], work["fence"]) == (1, 2)
        late = await submit(two, {**lost}, SURE)
        assert (late["accepted"], late["refusal"], late["open"]) == (False, "Stale", False)
        assert (await submit(two, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}
    assert refusals(world) == {"Stale": 1}


async def test_a_lease_that_nobody_renews_runs_out(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one, worker(world) as two:
        slow = await take(one, ttl=1)
        work = await take(two, wait=30)
        assert (work["dispatch_id"], work["fence"]) == (slow["dispatch_id"], 2)
        late = await submit(one, slow, SURE)
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        assert "another worker has the dispatch now" in late["sentence"]
        forged = await submit(one, {**work, "lease": f"{work['lease'][:-1]}x"}, SURE)
        assert (forged["accepted"], forged["refusal"]) == (False, "WrongTask")
        assert (await submit(two, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}
    assert refusals(world) == {"Stale": 1, "WrongTask": 1}


async def test_a_client_that_hangs_up_gives_back_what_it_held(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as two:
        async with worker(world) as one:
            lost = await take(one)
        work = await take(two)
        assert (work["dispatch_id"], work["fence"]) == (lost["dispatch_id"], 2)
        assert (await submit(two, lost, SURE))["refusal"] == "Stale"
        assert (await submit(two, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}


async def test_a_refused_answer_can_be_mended_under_the_same_lease(world: World) -> None:
    world.cases("A", "B")
    run = start(world)
    async with worker(world) as one:
        work = await take(one)
        for answer, sentence in [
            ({}, "Answer lacks the field 'confidence'."),
            ({"confidence": 7}, "Answer.confidence must be at most 1, not 7."),
            ({"confidence": "x" * 2_000_000}, "Answer with at most 1,048,576 bytes."),
            ({"signal": "shout", "data": {}}, "Signal 'shout' is not one of"),
        ]:
            refused = await submit(one, work, answer)
            assert (refused["accepted"], refused["open"]) == (False, True)
            assert refused["sentence"].startswith(sentence)
        assert (await submit(one, work, SURE))["accepted"]
        twice = await submit(one, work, SURE)
        assert (twice["accepted"], twice["refusal"], twice["open"]) == (False, "Stale", False)
        forged = await submit(one, {"dispatch_id": 999, "lease": "999.1.ab"}, SURE)
        assert (forged["accepted"], forged["refusal"]) == (False, "Stale")
        giant = await submit(one, {"dispatch_id": 2**80, "lease": ""}, SURE)
        assert giant["accepted"] is False
        other = await take(one)
        wrong = await submit(one, {**other, "lease": work["lease"]}, SURE)
        assert (wrong["refusal"], wrong["open"]) == ("WrongTask", False)
        assert (await submit(one, other, SURE))["accepted"]
    result = ended(run)
    assert (result.code, result.json["ends"]) == (0, {"kept": 2})
    assert refusals(world) == {"Malformed": 3, "Unknown": 1, "Stale": 2, "WrongTask": 1}


@pytest.mark.soak
async def test_a_worker_that_answers_nonsense_for_ever_ends_the_attempt(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one:
        work = await take(one)
        answers = [await submit(one, work, {"confidence": -n}) for n in range(1, 11)]
        assert [each["open"] for each in answers] == [True] * 9 + [False]
        assert (await use(one, "next"))["done"]
    assert ended(run).json["ends"] == {"dropped": 1}


async def test_giving_up_and_giving_back(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one:
        work = await take(one)
        held = {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}
        assert (await use(one, "signal", **held, signal="release"))["accepted"]
        again = await take(one)
        assert (again["dispatch_id"], again["fence"]) == (work["dispatch_id"], 2)
        late = await use(one, "signal", **held, signal="crash", data={"reason": "no"})
        assert (late["accepted"], late["refusal"]) == (False, "Stale")
        held = {"dispatch_id": again["dispatch_id"], "lease": again["lease"]}
        gone = await use(one, "signal", **held, signal="crash", data={"reason": "no such log"})
        assert gone["accepted"]
    assert ended(run).json["ends"] == {"dropped": 1}
    assert "no such log" in world.say("explain", "A").out


async def test_a_coordinator_that_was_killed_comes_back_to_its_workers(world: World) -> None:
    world.cases("A", "B")
    run = start(world)
    async with worker(world) as one, worker(world) as two:
        mine, other = await take(one), await take(two)
        assert {mine["case_id"], other["case_id"]} == {"A", "B"}
        waiting = asyncio.create_task(use(one, "next", wait=1))
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=LIMIT)
        none = await waiting
        assert (none["available"], none["done"]) == (False, False)
        assert "no process works on run 1" in none["reason"]
        lost = await submit(one, mine, SURE)
        assert (lost["accepted"], lost["refusal"], lost["open"]) == (False, "Unsettled", True)
        run = start(world, "resume", "--json")
        assert (await submit(one, mine, SURE))["accepted"]
        held = {"dispatch_id": other["dispatch_id"], "lease": other["lease"]}
        assert (await use(two, "signal", **held, signal="release"))["accepted"]
        again = await take(one)
        assert (again["dispatch_id"], again["fence"]) == (other["dispatch_id"], 2)
        assert (await submit(two, other, SURE))["refusal"] == "Stale"
        assert (await submit(one, again, SURE))["accepted"]
    result = ended(run)
    assert (result.code, result.json["ends"]) == (0, {"kept": 2})
    assert world.say("doctor", "--deep").code == 0


@pytest.mark.soak
async def test_work_whose_worker_died_with_the_coordinator_is_handed_out_again(
    world: World,
) -> None:
    world.cases("A")
    run = start(world)
    with suppress(Exception, BaseExceptionGroup):
        async with worker(world) as one:
            lost = await take(one, ttl=2)
            run.send_signal(signal.SIGKILL)
            run.communicate(timeout=LIMIT)
            kill_newest(world)
            await use(one, "status")
    run = start(world, "resume", "--json")
    async with worker(world) as two:
        work = await take(two)
        assert (work["dispatch_id"], work["fence"]) == (lost["dispatch_id"], 2)
        assert (await submit(two, work, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}


@pytest.mark.soak
async def test_a_worker_of_one_role_gets_nothing_else(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world, BEFORE, "--role", "critic") as critic:
        none = await use(critic, "next", wait=0)
        assert none["reason"] == "what waits is for scout, not for critic"
        work = await take(critic, roles=["scout"])
        assert (await submit(critic, work, SURE))["accepted"]
    assert ended(run).code == 0


async def test_a_question_to_a_human(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one:
        work = await take(one)
        held = {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}
        asked = await use(one, "ask", **held, question="Which door?", options=["left", "right"])
        assert (asked["asked"], asked["answered"]) == (True, False)
        number = asked["question_id"]
        assert number == f"{work['dispatch_id']}.1"
        assert not (await use(one, "ask", question_id=number))["answered"]
        visible = world.say("inbox", "--json").json["questions"]
        asked_now = [(each["question_id"], each["prompt"]) for each in visible]
        assert asked_now == [(number, "Which door?")]
        assert "Which door? (left, right)" in world.say("inbox").out
        assert world.say("answer", number, "up").code == 2
        assert world.say("answer", number, "left", "-m", "it is open", "--by", "Ann").code == 0
        result = await use(one, "ask", question_id=number)
        assert (result["answered"], result["decision"], result["by"]) == (True, "left", "Ann")
        assert world.say("answer", number, "right").code == 1
        assert world.say("inbox").out == "nothing waits for a human\n"
        for wrong, sentence in [
            ({"question_id": "9.9"}, "There is no question 9.9."),
            ({"question_id": "../../etc"}, "There is no question ../../etc."),
            ({**held, "question": " "}, "Ask something: the question is empty."),
            (
                {**held, "lease": "x", "question": "?"},
                "This is not a lease of dispatch 1; use its own.",
            ),
            ({**held, "question": "?", "options": [""]}, "Give at most 12 options"),
        ]:
            refused = await use(one, "ask", **wrong)
            assert not refused["asked"]
            assert refused["sentence"].startswith(sentence)
        assert (await submit(one, work, SURE))["accepted"]
        assert (await use(one, "ask", question_id=number))["decision"] == "left"
    assert ended(run).code == 0


@pytest.mark.soak
async def test_who_comes_when_all_is_over_is_told(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one, worker(world) as two:
        assert (await submit(one, await take(one), SURE))["accepted"]
        assert ended(run).code == 0
        late = await asyncio.wait_for(use(two, "next", wait=30), 120)
        assert (late["available"], late["done"]) == (False, True)
    async with worker(world) as three:
        older = await use(three, "next", wait=0)
        assert older["reason"] == "run 1 is over (done) and no other is worked on"


async def test_who_stopped_waiting_gets_nothing(world: World) -> None:
    world.cases("A")
    run = start(world)
    async with worker(world) as one, worker(world) as two:
        work = await take(one)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(use(two, "next", wait=30), 1)
        # Its words come in their order: once this is answered, it is known that it stopped.
        assert not (await use(two, "next", wait=0))["available"]
        held = {"dispatch_id": work["dispatch_id"], "lease": work["lease"]}
        assert (await use(one, "signal", **held, signal="release"))["accepted"]
        again = await take(one, wait=30)
        assert (await submit(one, again, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 1}


@pytest.mark.soak
async def test_several_pieces_at_once_over_one_line(world: World) -> None:
    world.cases(*(f"A{number}" for number in range(8)))
    run = start(world)
    async with worker(world) as one:
        many = await asyncio.gather(*(take(one) for _ in range(8)))
        assert len({each["dispatch_id"] for each in many}) == 8
        taken = await asyncio.gather(*(submit(one, each, SURE) for each in many))
        assert all(each["accepted"] for each in taken)
    assert ended(run).json["ends"] == {"kept": 8}


async def test_a_run_in_a_postgresql_database(world: World, postgres: PostgresAddress) -> None:
    world.cases("A", "B")
    db = ("--db", str(postgres.url))
    run = world.start(*RUN, *db)
    until(lambda: list_sessions(postgres) or run.poll() is not None, "the run hands out work")
    async with worker(world, BEFORE, *db) as one, worker(world, NOW, *db) as two:
        first, second = await take(one), await take(two, ttl=1)
        assert {first["case_id"], second["case_id"]} == {"A", "B"}
        assert (await submit(one, first, {}))["open"]
        assert (await submit(one, first, SURE))["accepted"]
        again = await take(one, wait=30)
        assert (again["dispatch_id"], again["fence"]) == (second["dispatch_id"], 2)
        assert (await submit(two, second, SURE))["refusal"] == "Stale"
        assert (await submit(one, again, SURE))["accepted"]
    assert ended(run).json["ends"] == {"kept": 2}
