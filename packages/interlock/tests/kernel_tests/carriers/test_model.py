"""Model endpoints as agents, against a real HTTP server that speaks both dialects."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.models.carrier import Model, estimate_price, find_endpoint, list_models
from interlock.carriers.models.dialects import DIALECTS, Completion
from interlock.carriers.registry import check_agent_tables
from interlock.engine.case import ModelCall, Usage
from interlock.engine.circuit import Step
from interlock.engine.shape import read_shape
from interlock.system.errors import SourceError
from interlock.testing.contracts import CarrierContract
from interlock.testing.kit import ManualClock
from tests.world.carrier_bench import Bench, ask
from tests.world.clock import FakeClock
from tests.world.model_server import KEY, MODEL, ModelServer, Said, model_server

SCORE = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "number", "minimum": 0}},
    "additionalProperties": False,
}
TEMPLATE = "You judge notes.\nThe note: {{ case.note }}"
PROMPT = "You judge notes.\nThe note: rain"
STEPS = {"work": Step("work", "worker", read_shape(SCORE), TEMPLATE)}
GOOD = Said('{"score": 0.5}')


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as made:
        yield made


@pytest.fixture(params=sorted(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make_model(server: ModelServer, dialect: str = "openai", **settings: Any) -> Model:
    return Model(f"{dialect}:{MODEL}", base_url=server.url, key=KEY, **settings)


def ask_once(model: Model, sent: Ask | None = None, steps: Mapping[str, Step] = STEPS) -> Reply:
    async def run() -> Reply:
        async with Bench(model, steps=steps) as bench:
            bench.carrier.send([sent or ask(1, PROMPT)])
            return (await bench.until(1))[0]

    return asyncio.run(run())


class TestModelContract(CarrierContract):
    @pytest.fixture(autouse=True)
    def _serve(self, server: ModelServer, dialect: str) -> None:
        self._server, self._dialect = server, dialect

    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        return make_model(self._server, self._dialect)


def test_an_answer_comes_with_the_model_the_request_and_the_tokens(
    server: ModelServer, dialect: str
) -> None:
    server.say(GOOD)
    prices = {"input": 2.0, "cached": 0.5, "output": 10.0}
    reply = ask_once(make_model(server, dialect, prices=prices))
    written = 5 if dialect == "anthropic" else 0
    plain = 15 if dialect == "anthropic" else 20
    money = ((plain + written) * 2.0 + 100 * 0.5 + 30 * 10.0) / 1_000_000
    assert json.loads(reply.content) == {"score": 0.5}
    assert reply.call == ModelCall(f"{MODEL}-2026", "req_1", plain, 100, written, 30, money)
    assert reply.usage == Usage(150, money)


def test_what_is_the_same_for_every_case_stands_first(server: ModelServer) -> None:
    server.say(GOOD, GOOD, GOOD)
    ask_once(make_model(server, "openai"))
    ask_once(make_model(server, "anthropic"))
    ask_once(make_model(server, "anthropic"), ask(1, "something else"))
    openai, anthropic, other = server.requests
    assert openai["messages"] == [{"role": "user", "content": PROMPT}]
    assert anthropic["messages"][0]["content"] == [
        {
            "type": "text",
            "text": "You judge notes.\nThe note: ",
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "text", "text": "rain"},
    ]
    assert other["messages"][0]["content"] == [{"type": "text", "text": "something else"}]
    assert other["tools"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("structured", ["native", "tool", "text"])
def test_the_shape_is_told_in_each_way_and_the_answer_is_the_same(
    server: ModelServer, dialect: str, structured: str
) -> None:
    server.say(GOOD)
    reply = ask_once(make_model(server, dialect, structured=structured, max_tokens=900))
    (body,) = server.requests
    assert json.loads(reply.content) == {"score": 0.5}
    assert body["max_tokens"] == 900
    field = {
        "native": "response_format" if dialect == "openai" else "output_config",
        "tool": "tool_choice",
        "text": "messages" if dialect == "openai" else "system",
    }[structured]
    assert '"minimum"' in json.dumps(body[field] if structured != "tool" else body["tools"]) or (
        '\\"minimum\\"' in json.dumps(body[field])
    )
    others = {"response_format", "output_config", "tool_choice", "system"} - {field}
    assert not others & body.keys()


def test_a_step_that_has_no_one_schema_is_only_told_to_answer_with_an_object(
    server: ModelServer,
) -> None:
    server.say(Said('{"signal": "pass", "data": {}}'), Said("All is well."))
    steps = {"work": msgspec.structs.replace(STEPS["work"], signals=("pass", "fail"))}
    assert json.loads(ask_once(make_model(server), steps=steps).content) == {
        "signal": "pass",
        "data": {},
    }
    text = msgspec.structs.replace(ask(1, PROMPT), language="text")
    assert ask_once(make_model(server), text).content == b"All is well."
    asked, plain = server.requests
    assert asked["messages"][0]["content"] == "Answer with one JSON object and nothing else."
    assert "response_format" not in asked
    assert len(plain["messages"]) == 1


@pytest.mark.parametrize(
    ("dialect", "said", "reason"),
    [
        ("openai", Said('{"score": 0.', stop="length"), "cut off"),
        ("openai", Said(stop="content_filter"), "content filter"),
        ("openai", Said(refusal="I would rather not."), "declined to answer: I would rather"),
        ("openai", Said(status=400, code="context_length_exceeded", message="no"), "longer than"),
        ("anthropic", Said('{"score": 0.5}', stop="max_tokens"), "cut off"),
        ("anthropic", Said("I cannot.", stop="refusal"), "declined"),
        ("anthropic", Said(status=400, message="prompt is too long: 9 > 8"), "longer than"),
        ("anthropic", Said(status=413, message="too large"), "longer than"),
    ],
)
def test_what_is_cut_off_declined_or_filtered_is_on_record_and_no_answer(
    server: ModelServer, dialect: str, said: Said, reason: str
) -> None:
    server.say(said)
    reply = ask_once(make_model(server, dialect))
    assert (reply.failure, bool(reply.content)) == ("unreadable", True)
    assert reason in reply.reason
    assert (reply.call is not None) == (said.status == 200)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_busy_endpoint_rests_until_it_says_and_is_asked_once(
    server: ModelServer, dialect: str, status: int
) -> None:
    server.say(Said(status=status, headers={"retry-after": "7"}), Said(status=status))
    model = make_model(server, dialect)
    reply = ask_once(model)
    assert (reply.failure, reply.until) == ("rate-limit", FakeClock().now() + 7)
    assert ask_once(model).until == 0
    assert len(server.requests) == 2
    assert model.account_of("worker") == make_model(server, dialect).account_of("critic")
    assert KEY not in model.account_of("worker")


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (Said(status=400, message="bad field"), "check the model's name and [agent.openai]"),
        (Said(status=403, message="no"), "check the key (key_env in [agent.openai])"),
        (Said(status=404, message="no such model"), "'interlock agents probe openai' lists"),
        (Said(status=429, code="insufficient_quota", message="no money"), "add credit"),
    ],
)
def test_what_only_a_person_can_change_stops_the_run(
    server: ModelServer, said: Said, advice: str
) -> None:
    server.say(said)
    reply = ask_once(make_model(server))
    assert (reply.refused, reply.stops_run) == ("Endpoint", True)
    assert said.message in reply.reason
    assert advice in reply.reason
    assert reply.reason.endswith("then 'interlock resume 1'")


def test_a_wrong_key_stops_the_run_and_is_in_no_message(server: ModelServer) -> None:
    wrong = Model(f"openai:{MODEL}", base_url=server.url, key="sk-secret-of-mine")
    reply = ask_once(wrong)
    assert reply.stops_run
    assert "wrong key: Bearer ***" in reply.reason
    assert "sk-secret" not in repr((reply, wrong, wrong.endpoint, str(wrong)))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(status=500, message="sorry"), "HTTP 500"),
        (Said(body=b"<html>"), "does not speak the dialect"),
        (Said(body=b'{"choices": [], "content": 5}'), "does not speak the dialect"),
        (Said(body=b'{"choices": 5, "content": {}}'), "does not speak the dialect"),
    ],
)
def test_an_endpoint_that_fails_costs_an_attempt(
    server: ModelServer, dialect: str, said: Said, reason: str
) -> None:
    server.say(said)
    reply = ask_once(make_model(server, dialect))
    assert reply.failure == "crash"
    assert reason in reply.reason


def test_an_endpoint_that_was_never_reached_stops_the_run_and_one_that_went_away_crashes() -> None:
    with model_server() as server:
        model = make_model(server)
        server.say(GOOD)
        ask_once(model)
    reply = ask_once(model)
    assert (reply.failure, reply.refused) == ("crash", "")
    reply = ask_once(Model(f"openai:{MODEL}", base_url=server.url))
    assert reply.stops_run
    assert f"check its address ({server.url})" in reply.reason


def test_a_dispatch_that_is_settled_hangs_up(server: ModelServer) -> None:
    server.say(Said(silent=True))

    async def run() -> list[Reply]:
        async with Bench(make_model(server)) as bench:
            bench.carrier.send([ask(1, PROMPT)])
            await asyncio.to_thread(server.asked.wait, 20)
            bench.carrier.settle(1, "no answer in time")
            await asyncio.to_thread(server.left.wait, 20)
            return bench.replies

    assert asyncio.run(run()) == []
    assert server.left.is_set()


def test_a_public_list_has_approximate_prices() -> None:
    pytest.importorskip("genai_prices")
    for model, dialect in (("gpt-4o-mini", "openai"), ("claude-3-5-haiku-latest", "anthropic")):
        base_url = DIALECTS[dialect].base_url
        cheap = estimate_price(Completion(input=10, cached=990, output=10), model, base_url)
        dear = estimate_price(Completion(input=1000, output=10), model, base_url)
        assert 0 < cheap < dear < 0.01
        assert estimate_price(Completion(input=10), model, "http://127.0.0.1:1/v1") == 0
    assert estimate_price(Completion(input=10), "nobody-s", DIALECTS["openai"].base_url) == 0


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"base_url": "localhost:11434"}, "base_url must begin with http"),
        ({"base_url": "https://me:secret@host/v1"}, "base_url must be an address without a key"),
        ({"key": "sk-1"}, "unknown field `key`"),
        ({"structured": "xml"}, "structured"),
        ({"timeout": "soon"}, "'soon' is not a duration"),
        ({"max_tokens": 0}, "at least 1"),
        ({"options": {"stream": True}}, "options.stream is set by Interlock"),
        ({"prices": {"input": 1}}, "missing required field `output`"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(SourceError, match=r"^\[agent\.openai\]") as caught:
        find_endpoint("openai", table, {})
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_key_goes_to_its_own_service_and_to_no_other_unless_it_is_named() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://proxy/v1", "MINE": "sk-mine"}
    local = {"base_url": "http://localhost:11434"}
    assert find_endpoint("openai", {}, environ).key == KEY
    assert find_endpoint("openai", local, environ).key == ""
    assert find_endpoint("openai", {**local, "key_env": "MINE"}, environ).key == "sk-mine"
    assert find_endpoint("openai", local, environ).base_url == "http://localhost:11434/v1"
    with pytest.raises(SourceError, match="odd characters") as caught:
        find_endpoint("openai", {}, {"OPENAI_API_KEY": "sk-1 sk-2"})
    assert "sk-1" not in str(caught.value)
    with pytest.raises(SourceError, match=r"set the environment variable ANTHROPIC_API_KEY"):
        Model("anthropic:m", endpoint=find_endpoint("anthropic", {}, {}))
    with pytest.raises(SourceError, match="openai names no model; say openai:MODEL"):
        Model("openai", endpoint=find_endpoint("openai", {}, environ))


def test_a_table_with_a_dialect_is_an_endpoint_of_its_own(server: ModelServer) -> None:
    table = {"dialect": "openai", "base_url": server.url, "key_env": "K", "model": MODEL}
    endpoint = find_endpoint("local", table, {"K": KEY})
    assert str(Model("local", endpoint=endpoint)) == f"local:{MODEL}"
    assert list_models(endpoint) == ["large-1", MODEL]
    check_agent_tables({"local": table, "openai": {}})
    with pytest.raises(SourceError, match=r"\[agent.local\] names no agent"):
        check_agent_tables({"local": {"base_url": "http://x"}})
    with pytest.raises(SourceError, match=r"\[agent.exec\]: there is an agent of that name"):
        check_agent_tables({"exec": table})
    with pytest.raises(SourceError, match="HTTP 401: wrong key: Bearer"):
        list_models(find_endpoint("local", table, {"K": "sk-other"}))
