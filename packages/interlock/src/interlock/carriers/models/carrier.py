"""Model endpoints as agents: one HTTP request per attempt, and no retries of our own.

`openai:MODEL`, `anthropic:MODEL`, and any server that speaks one of these dialects: a table
`[agent.NAME]` with a `dialect` makes an agent of that name. A busy endpoint pauses its account,
which costs no attempt; one that refuses the key, the model or the request stops the run and says
what to change; an answer that was cut off or declined is recorded and not used. The key is sent to
the endpoint and nowhere else.
"""

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from interlock.carriers.background import TaskCarrier
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_reply
from interlock.carriers.models.dialects import (
    DIALECTS,
    NO_CREDIT,
    Completion,
    Dialect,
    ModelRequest,
    Structured,
    find_unusable,
    read_error,
)
from interlock.engine.case import ModelCall
from interlock.engine.circuit import ARTIFACT, CRASH, RATE_LIMIT, UNREADABLE, Step
from interlock.engine.shape import ANYTHING, build_schema
from interlock.system.errors import SourceError, UsageError
from interlock.system.retry import read_retry_after
from interlock.system.text import shorten
from interlock.system.time import parse_duration

if TYPE_CHECKING:
    import httpx

DialectName = Literal["openai", "anthropic"]
_BUSY = (429, 503, 529)
"""The statuses of a busy endpoint; everything that shares its key rests."""
_WRONG = (400, 401, 402, 403, 404, 405, 422)
"""The statuses that last until somebody changes something."""
_VERSION = "/v1"
_CONNECT_SECONDS = 15.0
_MAX_BODY = 16 * 1024 * 1024
_MAX_REASON = 300
_OWN_FIELDS = {"messages", "model", "stream", "system", "tools", "tool_choice"}


class ModelPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Tokens read from the endpoint's cache; as `input` if absent."""
    cache_write: float | None = None
    """Tokens written to the endpoint's cache; as `input` if absent."""

    def price(self, done: Completion) -> float:
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        parts = (
            (done.input, self.input),
            (done.cached, cached),
            (done.cache_write, written),
            (done.output, self.output),
        )
        return sum(tokens * each for tokens, each in parts) / 1_000_000


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model endpoint. `[agent.openai]` and `[agent.anthropic]` always exist; a table of another
    name needs a `dialect`."""

    dialect: DialectName | None = None
    """The dialect of the endpoint: `openai` (chat completions) or `anthropic` (messages)."""
    base_url: str = ""
    """The endpoint's address, with its `/v1`; by default `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL`
    from the environment, or the dialect's own service."""
    model: str = ""
    """The model, if the agent is named without one."""
    key_env: str = ""
    """The environment variable that holds the key: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY` for the
    dialects' own services; none for an address that is set here."""
    structured: Structured | None = None
    """How the endpoint learns the shape of an answer: `native`, `tool` or `text`. Answers are
    checked in any case."""
    max_tokens: int | None = None
    """The longest answer, in tokens."""
    timeout: str = "10m"
    """How long one answer may take; the step's timeout overrides it."""
    prices: ModelPrices | None = None
    """The price of a million tokens; without it, approximate prices come from genai-prices."""
    options: dict[str, Any] = {}
    """Further fields of every request, such as `temperature`."""


class Endpoint(msgspec.Struct, frozen=True):
    """The address of a model, and the key for it."""

    name: str
    """The agent, as users name it."""
    dialect: Dialect
    base_url: str
    key_variable: str
    """The variable that holds the key; empty if none is needed."""
    key: str
    settings: ModelSettings

    def __repr__(self) -> str:
        """Return the fields without the key."""
        return f"Endpoint({self.name!r}, {self.base_url!r})"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc


def find_endpoint(
    name: str, table: Mapping[str, Any], environ: Mapping[str, str], key: str = ""
) -> Endpoint:
    """Return the endpoint of that name, from its table and the environment; SourceError if they do
    not fit.

    A missing key is not an error yet.
    """
    place = f"[agent.{name}]"
    try:
        settings = msgspec.convert(table, ModelSettings)
        parse_duration(settings.timeout)
    except (msgspec.ValidationError, UsageError) as error:
        raise SourceError(f"{place}: {error}") from None
    dialect = DIALECTS.get(settings.dialect or name)
    if dialect is None:
        raise SourceError(f"{place}: name its dialect: dialect = {' or '.join(DIALECTS)}")
    if taken := sorted(_OWN_FIELDS & settings.options.keys()):
        raise SourceError(f"{place}: options.{taken[0]} is set by Interlock; remove it")
    if settings.max_tokens is not None and settings.max_tokens < 1:
        raise SourceError(f"{place}: max_tokens must be at least 1")
    base_url = settings.base_url or environ.get(dialect.base_variable, "") or dialect.base_url
    variable = settings.key_env or ("" if settings.base_url else dialect.key_variable)
    key = key or environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SourceError(f"{variable}: the key has odd characters in it: copy it again")
    address = _check_address(base_url, place, dialect)
    return Endpoint(name, dialect, address, variable, key, settings)


def _check_address(base_url: str, place: str, dialect: Dialect) -> str:
    """Return an address to which the dialect's paths can be added."""
    found = urlsplit(base_url)
    if found.scheme not in ("http", "https") or not found.hostname:
        raise SourceError(f"{place}: base_url must begin with http:// or https:// and name a host")
    if found.username or found.password or found.query:
        raise SourceError(
            f"{place}: base_url must be an address without a key; key_env names its variable"
        )
    base_url = base_url.rstrip("/")
    whole = found.path.endswith(_VERSION) if dialect.name == "anthropic" else found.path.strip("/")
    return base_url if whole else f"{base_url}{_VERSION}"


class Model(TaskCarrier):
    """A model behind an HTTP endpoint, as an agent: `interlock.Model("anthropic:MODEL")`.

    The name is that of a dialect, `openai` or `anthropic`, and the model's. `base_url` names
    another server that speaks the dialect; `key` comes from the environment by default; `settings`
    are the fields of a table `[agent.NAME]` in interlock.toml. With an `endpoint`, the name only
    says which model.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        key: str = "",
        endpoint: Endpoint | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        kind, _, model = name.partition(":")
        table = {**settings, **({"base_url": base_url} if base_url else {})}
        self.endpoint = found = endpoint or find_endpoint(kind, table, os.environ, key)
        self.model = model or found.settings.model
        if not self.model:
            raise SourceError(f"{name} names no model; say {kind}:MODEL")
        if found.key_variable and not found.key:
            raise SourceError(
                f"{name}: there is no key for {found.host}; set the environment variable "
                f"{found.key_variable}"
            )
        self._timeout_s = parse_duration(found.settings.timeout)
        self._client: httpx.AsyncClient | None = None
        self._has_answered = False

    def __str__(self) -> str:
        return f"{self.endpoint.name}:{self.model}"

    def account_of(self, role: str) -> str:
        """Return the server and a digest of the key: all who share them share their limits."""
        digest = blake2b(self.endpoint.key.encode(), digest_size=6).hexdigest()
        return f"{self.endpoint.host}:{digest}" if self.endpoint.key else self.endpoint.host

    async def prepare(self) -> None:
        import httpx

        try:
            self._client = httpx.AsyncClient(
                headers=self.endpoint.dialect.build_headers(self.endpoint.key),
                timeout=httpx.Timeout(self._timeout_s, connect=_CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=None),
            )
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
            raise SourceError(
                f"{self}: the connection to {self.endpoint.host} cannot be set up "
                f"({self._clean(str(error))}): check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, "
                "SSL_CERT_FILE and SSL_CERT_DIR"
            ) from None

    async def close(self) -> None:
        await super().close()
        if self._client is not None:
            await self._client.aclose()

    async def answer(self, ask: Ask) -> Reply:
        import httpx

        step = self.session.steps.get(ask.step)
        body = self.endpoint.dialect.build_body(self.build_request(ask, step))
        try:
            response, raw = await self._post(body)
        except httpx.TimeoutException:
            waited = f"{self.endpoint.host} did not answer within {self.endpoint.settings.timeout}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=waited)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            reason = (
                f"{self.endpoint.host} cannot be reached: {self._clean(str(error) or repr(error))}"
            )
            if self._has_answered:
                return Reply(ask.dispatch_id, failure=CRASH, reason=reason)
            return self._stop(ask, f"{reason}; check its address ({self.endpoint.base_url})")
        if response.status_code == httpx.codes.OK:
            self._has_answered = True
            return self._judge(ask, step, response.headers, raw)
        return self._refuse(ask, response.status_code, response.headers, raw)

    def build_request(self, ask: Ask, step: Step | None) -> ModelRequest:
        """Build the request to the model. A step that may be answered by several signals, or by any
        object, has no schema."""
        settings = self.endpoint.settings
        wants_json = ask.language == "json"
        is_plain = step is not None and step.signals == (ARTIFACT,) and step.shape != ANYTHING
        stable = _find_stable(step.prompt if step else "", ask.prompt)
        return ModelRequest(
            self.model,
            stable,
            ask.prompt.removeprefix(stable),
            schema=build_schema(step.shape) if step and wants_json and is_plain else None,
            structured=settings.structured or self.endpoint.dialect.structured,
            wants_json=wants_json,
            max_tokens=settings.max_tokens,
            is_own_service=self.endpoint.base_url == self.endpoint.dialect.base_url,
            options=settings.options,
        )

    async def _post(self, body: dict[str, Any]) -> "tuple[httpx.Response, bytes]":
        """Send one request; when its task is cancelled, its connection is closed."""
        url = f"{self.endpoint.base_url}{self.endpoint.dialect.path}"
        content, raw = msgspec.json.encode(body), bytearray()
        headers = {"Content-Type": "application/json"}
        assert self._client is not None  # noqa: S101 - it is made before the first ask
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            async for part in response.aiter_bytes():
                raw += part
                if len(raw) > _MAX_BODY:
                    raise ValueError(f"its answer has more than {_MAX_BODY:,} bytes")
        return response, bytes(raw)

    def _judge(self, ask: Ask, step: Step | None, headers: Mapping[str, str], raw: bytes) -> Reply:
        """Build the reply for an answer, usable or not, with its cost."""
        try:
            done = self.endpoint.dialect.read_completion(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            dialect = self.endpoint.dialect.name
            reason = f"{self.endpoint.host} does not speak the dialect {dialect}: {error}"
            return Reply(ask.dispatch_id, failure=CRASH, reason=self._clean(reason))
        request_id = headers.get("request-id") or headers.get("x-request-id") or done.request_id
        call = self._build_call(done, request_id)
        content = (done.text or msgspec.json.encode(done.data or {}).decode()).encode()
        if done.unusable:
            reason = self._clean(done.unusable)
            reply = Reply(ask.dispatch_id, content, failure=UNREADABLE, reason=reason)
        else:
            reply = build_reply(ask, done.text if done.data is None else done.data, step)
        return msgspec.structs.replace(reply, usage=call.usage, call=call)

    def _build_call(self, done: Completion, request_id: str) -> ModelCall:
        prices = self.endpoint.settings.prices
        model = done.model or self.model
        money = (
            estimate_price(done, model, self.endpoint.base_url)
            if prices is None
            else prices.price(done)
        )
        return ModelCall(
            model=shorten(model, 100),
            request_id=shorten(request_id, 100),
            input=done.input,
            cached=done.cached,
            cache_write=done.cache_write,
            output=done.output,
            money=money,
            is_estimate=prices is None and money > 0,
        )

    def _refuse(self, ask: Ask, status: int, headers: Mapping[str, str], raw: bytes) -> Reply:
        """Build the reply for an endpoint that did not answer: it rests, is set up wrongly, or
        failed."""
        code, message = read_error(raw)
        said = self._clean(message or code)
        reason = f"HTTP {status} from {self.endpoint.host}" + (f": {said}" if said else "")
        if status in _BUSY and code != NO_CREDIT:
            wait = read_retry_after(headers)
            until = 0.0 if wait is None else self.session.clock.now() + wait
            return Reply(ask.dispatch_id, failure=RATE_LIMIT, reason=reason, until=until)
        if unusable := find_unusable(status, code, message):
            content = said.encode() or b"-"
            return Reply(
                ask.dispatch_id, content, failure=UNREADABLE, reason=f"{unusable} ({reason})"
            )
        if status in _WRONG or code == NO_CREDIT:
            return self._stop(ask, f"{reason}; {self._advise(status, code)}")
        return Reply(ask.dispatch_id, failure=CRASH, reason=reason)

    def _advise(self, status: int, code: str) -> str:
        found = self.endpoint
        if code == NO_CREDIT or status == 402:
            return "add credit to the account"
        if status in (401, 403):
            key = found.key_variable or f"key_env in [agent.{found.name}]"
            return f"check the key ({key})"
        if status == 404:
            return f"'interlock agents probe {found.name}' lists the models of {found.base_url}"
        return f"check the model's name and [agent.{found.name}] in interlock.toml"

    def _stop(self, ask: Ask, reason: str) -> Reply:
        reason = f"{self}: {reason}, then 'interlock resume {ask.run_id}'"
        return Reply(ask.dispatch_id, refused="Endpoint", reason=reason, stops_run=True)

    def _clean(self, text: str) -> str:
        """Return the text as one short line without the key, in case the endpoint repeats it."""
        key = self.endpoint.key
        return shorten(" ".join((text.replace(key, "***") if key else text).split()), _MAX_REASON)


def _find_stable(template: str, prompt: str) -> str:
    """Return the beginning of a prompt that is the same for every case."""
    places = [at for mark in ("{{", "{%", "{#") if (at := template.find(mark)) >= 0]
    stable = template[: min(places)] if places else template
    return stable if prompt.startswith(stable) else ""


def estimate_price(done: Completion, model: str, base_url: str) -> float:
    """Return the cost of a request by a public price list; 0 if the model or the extra `models` is
    missing."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return 0.0
    usage = Usage(
        input_tokens=done.input + done.cached + done.cache_write,
        cache_read_tokens=done.cached,
        cache_write_tokens=done.cache_write,
        output_tokens=done.output,
    )
    try:
        return float(calc_price(usage, model, provider_api_url=base_url).total_price)
    except (LookupError, ValueError):
        return 0.0


def list_models(endpoint: Endpoint) -> list[str]:
    """Return the models that an endpoint offers; SourceError if it does not list them."""
    import httpx

    url = f"{endpoint.base_url}/models"
    headers = endpoint.dialect.build_headers(endpoint.key)
    try:
        response = httpx.get(url, headers=headers, timeout=_CONNECT_SECONDS)
        _, message = read_error(response.content)
        if response.status_code != httpx.codes.OK:
            said = message.replace(endpoint.key, "***") if endpoint.key else message
            raise SourceError(f"HTTP {response.status_code}: {shorten(said, _MAX_REASON)}")
        found = response.json()["data"]
        return sorted(str(each["id"]) for each in found)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceError(f"it cannot be reached: {error}") from None
    except (ValueError, TypeError, LookupError, RecursionError):
        raise SourceError("it has no list of models") from None
