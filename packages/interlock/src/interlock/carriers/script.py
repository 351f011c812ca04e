"""The agent `script`: answers from a file, so that a circuit can be tried without any model.

It does what real agents do: answer well, answer nonsense, crash, stay silent, answer twice or too
late, meet a rate limit, or forge the answer to another dispatch. One behaviour is for one attempt.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT
from interlock.system.clock import Clock
from interlock.system.errors import SourceError, UsageError
from interlock.system.time import parse_duration
from interlock.system.yaml_text import read_yaml

ANY_CASE = "*"
_UNKNOWN_END = "unknown"
_MAX_USAGE = 1_000_000_000


class Behaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The behaviour of the agent in one attempt."""

    answer: Any = None
    signal: str = ""
    raw: str | None = None
    crash: str = ""
    silent: bool = False
    delay: str | float = 0
    twice: bool = False
    late: bool = False
    forges: int | None = None
    usage: Usage = Usage()
    limited: str | float = 0
    """A rate limit at the first asking, which lasts that long, or `unknown`."""


class Script(msgspec.Struct, frozen=True):
    """Behaviours by case, step and attempt; `*` stands for every case, and the last behaviour
    repeats."""

    cases: Mapping[str, Mapping[str, tuple[Behaviour, ...]]]

    def find_behaviour(self, case_id: str, step: str, attempt: int) -> Behaviour:
        for name in (case_id, ANY_CASE):
            behaviours = self.cases.get(name, {}).get(step)
            if behaviours:
                return behaviours[min(attempt, len(behaviours)) - 1]
        return Behaviour(crash=f"the script has no answer for case {case_id}, step {step}")


def read_script(text: str, file: str) -> Script:
    """Read `{case or *: {step: behaviour or [behaviour, ...]}}`, in YAML or JSON."""
    page = read_yaml(text, file)
    if not isinstance(page.value, dict):
        raise SourceError(f"{file}: a script is a table of cases; start with '*:' for every case")
    cases: dict[str, dict[str, tuple[Behaviour, ...]]] = {}
    for case_id, steps in page.value.items():
        if not isinstance(steps, dict):
            raise SourceError(f"{file}:{page.line(case_id)}: {case_id!r} needs 'STEP: behaviour'")
        cases[case_id] = {}
        for step, given in steps.items():
            try:
                many = given if isinstance(given, list) else [given]
                found = tuple(msgspec.convert(each, Behaviour) for each in many)
                for each in found:
                    _check_behaviour(each)
            except (msgspec.ValidationError, UsageError) as error:
                place = f"{file}:{page.line(case_id, step)}"
                raise SourceError(f"{place}: {step!r}: {error}") from None
            if not found:
                raise SourceError(f"{file}:{page.line(case_id, step)}: {step!r} has no behaviour")
            cases[case_id][step] = found
    return Script(cases)


def _check_behaviour(behaviour: Behaviour) -> None:
    parse_duration(behaviour.delay or "1s")
    if behaviour.limited != _UNKNOWN_END:
        parse_duration(behaviour.limited or "1s")
    usage = behaviour.usage
    if not (0 <= usage.tokens <= _MAX_USAGE and 0 <= usage.money <= _MAX_USAGE):
        raise UsageError(f"usage must be between 0 and {_MAX_USAGE:,}")


class ScriptAgent(Carrier):
    """Act a script out, in this process."""

    def __init__(self, script: Script, clock: Clock) -> None:
        self._script = script
        self._clock = clock
        self._late: dict[int, Reply] = {}
        self._limited: set[int] = set()
        self._delayed: dict[int, Callable[[], None]] = {}

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            behaviour = self._script.find_behaviour(ask.case_id, ask.step, ask.attempt)
            reply = _build_reply(behaviour, ask)
            if behaviour.limited and ask.dispatch_id not in self._limited:
                self._limited.add(ask.dispatch_id)
                self._deliver(self._build_limit_reply(behaviour, ask))
                continue
            if behaviour.silent:
                continue
            if behaviour.late:
                self._late[ask.dispatch_id] = reply
            elif behaviour.delay:
                self._deliver_later(behaviour, reply)
            else:
                self._deliver_reply(behaviour, reply)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        reply = self._late.pop(dispatch_id, None)
        if reply is not None:
            self._deliver(reply)

    async def close(self) -> None:
        self._late.clear()
        for cancel in self._delayed.values():
            cancel()
        self._delayed.clear()

    def _build_limit_reply(self, behaviour: Behaviour, ask: Ask) -> Reply:
        known = behaviour.limited != _UNKNOWN_END
        until = self._clock.now() + parse_duration(behaviour.limited) if known else 0.0
        reason = "the script says so"
        return Reply(
            ask.dispatch_id, failure=RATE_LIMIT, reason=reason, until=until, usage=behaviour.usage
        )

    def _deliver_later(self, behaviour: Behaviour, reply: Reply) -> None:
        def give() -> None:
            del self._delayed[reply.dispatch_id]
            self._deliver_reply(behaviour, reply)

        if reply.dispatch_id not in self._delayed:
            when = self._clock.now() + parse_duration(behaviour.delay)
            self._delayed[reply.dispatch_id] = self._clock.call_at(when, give)

    def _deliver_reply(self, behaviour: Behaviour, reply: Reply) -> None:
        if behaviour.forges is not None:
            self._deliver(msgspec.structs.replace(reply, dispatch_id=behaviour.forges))
        self._deliver(reply)
        if behaviour.twice:
            self._deliver(reply)


def _build_reply(behaviour: Behaviour, ask: Ask) -> Reply:
    if behaviour.crash:
        return Reply(ask.dispatch_id, failure=CRASH, reason=behaviour.crash)
    if behaviour.raw is not None:
        content = behaviour.raw.encode()
    elif behaviour.signal:
        named = {"signal": behaviour.signal, "data": behaviour.answer or {}}
        content = msgspec.json.encode(named)
    else:
        content = msgspec.json.encode({} if behaviour.answer is None else behaviour.answer)
    return Reply(ask.dispatch_id, content, usage=behaviour.usage)
