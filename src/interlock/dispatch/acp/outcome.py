"""What the end of a turn means: a table from the agent's stop reason to a reply.

Knows the protocol's stop reasons and errors. Refuses to guess: only a turn that ended by itself
has an answer, and the answer is the agent's final message as it stands.
"""

import re
from collections.abc import Mapping

from acp import RequestError

from interlock.core.case import Usage
from interlock.core.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.dispatch.carrier import Reply

STOPS: Mapping[str, tuple[str, str]] = {
    "end_turn": ("", ""),
    "max_tokens": (UNREADABLE, "the answer was cut off at the agent's token limit; be brief"),
    "max_turn_requests": (CRASH, "the agent used up the model requests of one turn"),
    "refusal": (CRASH, "the agent refused to answer"),
    "cancelled": (CRASH, "the agent says the turn was cancelled, but nobody cancelled it"),
}
"""The protocol's stop reasons: the failure each is, and why. `end_turn` is none."""

_AUTH_REQUIRED = -32000
_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|usage limit|quota", re.IGNORECASE)
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.DOTALL)
_LONGEST = 2_000


def ended(dispatch_id: int, stop: str, message: str, usage: Usage) -> Reply:
    """The reply of a turn that came to an end."""
    failure, reason = STOPS[stop]
    if failure:
        return Reply(dispatch_id, failure=failure, reason=reason, usage=usage)
    return Reply(dispatch_id, bare(message).encode(errors="replace"), usage=usage)


def errored(dispatch_id: int, error: RequestError, request: str) -> Reply:
    """The reply when the agent answered one of our requests with an error."""
    told = _told(error)
    if error.code == _AUTH_REQUIRED:
        reason = f"the agent wants a login: start it by hand once and log in ({told})"
        return Reply(dispatch_id, failure=CRASH, reason=reason)
    failure = RATE_LIMIT if error.code == 429 or _LIMITED.search(told) else CRASH
    return Reply(dispatch_id, failure=failure, reason=f"the agent failed at {request}: {told}")


def bare(message: str) -> str:
    """The message without the fence around all of it, if there is one."""
    text = message.strip()
    found = _FENCED.fullmatch(text)
    return found[1] if found and "```" not in found[1] else text


def _told(error: RequestError) -> str:
    words = f"{error} ({error.data})" if getattr(error, "data", None) else f"{error}"
    return " ".join(words.split())[:_LONGEST]
