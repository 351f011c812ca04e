"""What the end of a turn means: a table from the agent's stop reason to a reply.

Knows the protocol's stop reasons and errors. Refuses to guess: only a turn that ended by itself
has an answer, and the answer is the one JSON object of the agent's final message.
"""

import re
from collections.abc import Mapping

from acp import RequestError

from interlock.agents.carrier import MAX_ANSWER, Reply
from interlock.agents.cli.carrier import zone_named
from interlock.agents.cli.outcome import reset_time
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.signals.answer_text import NoObject, object_in

STOPS: Mapping[str, tuple[str, str]] = {
    "end_turn": ("", ""),
    "max_tokens": (UNREADABLE, "the answer was cut off at the agent's token limit; be brief"),
    "max_turn_requests": (CRASH, "the agent used up the model requests of one turn"),
    "refusal": (CRASH, "the agent refused to answer"),
    "cancelled": (CRASH, "the agent says the turn was cancelled, but nobody cancelled it"),
}
"""The protocol's stop reasons: the failure each is, and why. `end_turn` is none."""

_AUTH_REQUIRED = -32000
_TOO_MANY = 429
_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|usage limit|quota", re.IGNORECASE)
_LONGEST = 2_000
_A_FEW = 200


def ended(dispatch_id: int, stop: str, message: str, usage: Usage) -> Reply:
    """The reply of a turn that came to an end."""
    failure, reason = STOPS[stop]
    if failure:
        return Reply(dispatch_id, failure=failure, reason=reason, usage=usage)
    found = object_in(message, MAX_ANSWER)
    if isinstance(found, NoObject):
        began = " ".join(message.split())[:_A_FEW]
        reason = f"{found.sentence} (it began: {began})" if began else found.sentence
        return Reply(dispatch_id, failure=UNREADABLE, reason=reason, usage=usage)
    return Reply(dispatch_id, found, usage=usage)


def errored(dispatch_id: int, error: RequestError, request: str, now: float) -> Reply:
    """The reply when the agent answered one of our requests with an error."""
    told = _told(error)
    if error.code == _AUTH_REQUIRED:
        reason = f"the agent wants a login: start it by hand once and log in ({told})"
        return Reply(dispatch_id, failure=CRASH, reason=reason)
    reason = f"the agent failed at {request}: {told}"
    if error.code == _TOO_MANY or _LIMITED.search(told):
        until = reset_time(told, now, zone_named) or 0
        return Reply(dispatch_id, failure=RATE_LIMIT, reason=reason, until=until)
    return Reply(dispatch_id, failure=CRASH, reason=reason)


def _told(error: RequestError) -> str:
    words = f"{error} ({error.data})" if error.data else f"{error}"
    return " ".join(words.split())[:_LONGEST]
