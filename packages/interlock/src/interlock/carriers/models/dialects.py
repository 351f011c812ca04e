"""The two dialects of model endpoints: their requests and their responses.

Pure: a request in, its body out; a body in, a completion out. `openai` is the dialect of chat
completions, which most local servers speak too; `anthropic` is that of messages. Text that is the
same for every case of a step stands first, so that an endpoint can cache it. An answer that was cut
off, declined or filtered is never passed on: `Completion.unusable` says why.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

Structured = Literal["native", "tool", "text"]
"""How an endpoint learns the shape of an answer: in a field of its own, as the input of a tool that
it must call, or in the text."""
_TOOL = "answer"
_DEFAULT_MAX_TOKENS = 8_192
_CUT_OFF = "the answer was cut off at the model's token limit; be brief, or raise max_tokens"
_FILTERED = "the answer was held back by the endpoint's content filter"
_DECLINED = "the model declined to answer"
_TOO_LONG = "the prompt is longer than the model can read"


class ModelRequest(msgspec.Struct, frozen=True):
    """A request to a model."""

    model: str
    stable: str
    """The beginning of the prompt that is the same for every case of the step."""
    rest: str
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, if the endpoint is to know it."""
    structured: Structured = "text"
    wants_json: bool = True
    max_tokens: int | None = None
    is_own_service: bool = True
    """True if the request goes to the dialect's makers; other servers lag behind."""
    options: Mapping[str, Any] = {}
    """Further fields of the body, as the user wrote them."""

    @property
    def instructions(self) -> str:
        """Return what the prompt leaves out: that the answer is an object, and its shape."""
        if not self.wants_json or (self.schema is not None and self.structured != "text"):
            return ""
        if self.schema is None:
            return "Answer with one JSON object and nothing else."
        schema = msgspec.json.encode(self.schema).decode()
        return f"Answer with one JSON object that fits this JSON Schema, and nothing else: {schema}"


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a model: a text or, by a tool, an object."""

    text: str = ""
    data: dict[str, Any] | None = None
    unusable: str = ""
    """Why this is no answer; empty if it may be one."""
    model: str = ""
    request_id: str = ""
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0


class Dialect(msgspec.Struct, frozen=True):
    """How endpoints of one kind are addressed."""

    name: str
    base_url: str
    base_variable: str
    """The environment variable that names another address."""
    key_variable: str
    path: str
    structured: Structured
    build_headers: Callable[[str], dict[str, str]]
    build_body: Callable[[ModelRequest], dict[str, Any]]
    read_completion: Callable[[bytes], Completion]
    """Read a completion; msgspec.DecodeError if it is none."""


# openai


class _CachedDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _OpenAiUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedDetails | None = None


class _Function(msgspec.Struct):
    arguments: str = ""


class _ToolCall(msgspec.Struct):
    function: _Function = msgspec.field(default_factory=_Function)


class _OpenAiMessage(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _OpenAiMessage
    finish_reason: str | None = None


class _OpenAiBody(msgspec.Struct):
    choices: list[_Choice]
    id: str | None = None
    model: str | None = None
    usage: _OpenAiUsage | None = None


def _build_openai_body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model}
    if request.schema is not None and request.structured == "native":
        wanted = {"name": _TOOL, "schema": request.schema, "strict": _is_strict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    if request.schema is not None and request.structured == "tool":
        function = {"name": _TOOL, "parameters": request.schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": _TOOL}}
    if request.max_tokens is not None:
        name = "max_completion_tokens" if request.is_own_service else "max_tokens"
        body[name] = request.max_tokens
    system = request.instructions
    messages = [{"role": "system", "content": system}] if system else []
    user = {"role": "user", "content": request.stable + request.rest}
    return {**body, **request.options, "messages": [*messages, user]}


def _is_strict(schema: Mapping[str, Any]) -> bool:
    """Return whether the endpoint can promise this schema: every object is closed, and all its
    fields are required.

    Other schemas are taken as far as the endpoint can; our own check has the last word.
    """
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    if "items" in schema:
        inner.append(schema["items"])
    is_object = "properties" in schema or schema.get("type") == "object"
    closed = schema.get("additionalProperties") is False
    complete = set(schema.get("properties", {})) == set(schema.get("required", []))
    return (not is_object or (closed and complete)) and all(map(_is_strict, inner))


def _read_openai_completion(raw: bytes) -> Completion:
    body = msgspec.json.decode(raw, type=_OpenAiBody)
    if not body.choices:
        raise msgspec.ValidationError("it has no choices")
    choice = body.choices[0]
    message, usage = choice.message, body.usage or _OpenAiUsage()
    unusable = {"length": _CUT_OFF, "content_filter": _FILTERED}.get(choice.finish_reason or "", "")
    if message.refusal:
        unusable = f"{_DECLINED}: {message.refusal}"
    called = message.tool_calls[0].function.arguments if message.tool_calls else ""
    details = usage.prompt_tokens_details or _CachedDetails()
    cached = details.cached_tokens or 0
    return Completion(
        text=called or message.content or message.refusal or "",
        unusable=unusable,
        model=body.model or "",
        request_id=body.id or "",
        input=max(0, (usage.prompt_tokens or 0) - cached),
        cached=cached,
        output=usage.completion_tokens or 0,
    )


# anthropic


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    name: str = ""
    input: dict[str, Any] | None = None


class _AnthropicBody(msgspec.Struct):
    content: list[_Block]
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


_UNUSABLE_STOPS = {
    "max_tokens": _CUT_OFF,
    "model_context_window_exceeded": _TOO_LONG,
    "refusal": _DECLINED,
    "pause_turn": "the endpoint paused in the middle of the answer",
}
_CACHED = {"cache_control": {"type": "ephemeral"}}


def _build_anthropic_body(request: ModelRequest) -> dict[str, Any]:
    """Build the body, with the last block that is the same for every case marked for the cache."""
    body: dict[str, Any] = {"model": request.model}
    body["max_tokens"] = request.max_tokens or _DEFAULT_MAX_TOKENS
    shared: list[dict[str, Any]] = []
    if request.schema is not None and request.structured == "native":
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    if request.schema is not None and request.structured == "tool":
        shared.append({"name": _TOOL, "input_schema": request.schema})
        body["tools"] = [shared[-1]]
        body["tool_choice"] = {"type": "tool", "name": _TOOL}
    if request.instructions:
        shared.append({"type": "text", "text": request.instructions})
        body["system"] = [shared[-1]]
    # An empty block is refused.
    stable, rest = request.stable, request.rest
    content = [{"type": "text", "text": text} for text in (stable, rest) if text.strip()]
    if stable.strip():
        shared.append(content[0])
    if shared:
        shared[-1].update(_CACHED)
    return {**body, **request.options, "messages": [{"role": "user", "content": content}]}


def _read_anthropic_completion(raw: bytes) -> Completion:
    body = msgspec.json.decode(raw, type=_AnthropicBody)
    usage = body.usage or _AnthropicUsage()
    called = next((each.input for each in body.content if each.type == "tool_use"), None)
    return Completion(
        text="".join(each.text for each in body.content if each.type == "text"),
        data=called,
        unusable=_UNUSABLE_STOPS.get(body.stop_reason or "", ""),
        model=body.model,
        request_id=body.id,
        input=usage.input_tokens or 0,
        cached=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
        output=usage.output_tokens or 0,
    )


DIALECTS = {
    "openai": Dialect(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "/chat/completions",
        "native",
        lambda key: {"Authorization": f"Bearer {key}"} if key else {},
        _build_openai_body,
        _read_openai_completion,
    ),
    "anthropic": Dialect(
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        "/messages",
        # Its native mode knows no limits of numbers and texts, which our shapes have.
        "tool",
        lambda key: {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})},
        _build_anthropic_body,
        _read_anthropic_completion,
    ),
}

# Errors, which both dialects and most local servers say in nearly the same way.

_UNUSABLE_CODES = {
    "context_length_exceeded": _TOO_LONG,
    "content_filter": "the prompt was held back by the endpoint's content filter",
    "content_policy_violation": "the prompt was held back by the endpoint's content filter",
}
NO_CREDIT = "insufficient_quota"


def read_error(raw: bytes) -> tuple[str, str]:
    """Return the code and the sentence of a refusal; empty where it has none."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return "", ""
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else ""
    code, message = error.get("code") or error.get("type"), error.get("message")
    return str(code or ""), message if isinstance(message, str) else ""


def find_unusable(status: int, code: str, message: str) -> str:
    """Return why an endpoint refused this one prompt; empty if it refused for another reason."""
    if status == 413 or message.startswith("prompt is too long"):
        return _TOO_LONG
    return _UNUSABLE_CODES.get(code, "")
