"""From an artifact file's bytes to a reply: whose it is, and whether it can be an answer at all.

Knows the wrapper of the file protocol and what a token is taken to be. Refuses to know files,
time and the step's shape.
"""

import codecs
from typing import Any

import msgspec

from interlock.agents.carrier import MAX_ANSWER, Ask, Reply
from interlock.engine.case import Usage
from interlock.signals.signal_file import read_artifact
from interlock.system.strict_json import Problem, decode_object

LARGEST = MAX_ANSWER + 4096
"""Bytes of an artifact file: an answer and its wrapper."""
_BYTES_PER_TOKEN = 4
_NAMED = ("missing-data", "null-data", "data-not-an-object")


class Doubt(msgspec.Struct, frozen=True):
    """It is no answer as it stands, but its writer may not be done."""

    reason: str


class Foreign(msgspec.Struct, frozen=True):
    """It is not for this dispatch, and is ignored. The sentence is for whoever wrote it."""

    sentence: str


class _Wrapper(msgspec.Struct):
    data: msgspec.Raw


def judge(raw: bytes, ask: Ask) -> Reply | Foreign | Doubt:
    """The answer; or that it is none, because it is somebody else's or not valid.

    A wrong, missing or badly typed dispatch_id makes it somebody else's.
    """
    found = read_artifact(raw)
    if isinstance(found, Problem):
        return _without_answer(found, raw, ask)
    if found.dispatch_id != ask.dispatch_id:
        return _foreign(f"the artifact belongs to dispatch {found.dispatch_id}", ask)
    try:
        content = _data(raw)
    except ValueError as error:
        return Doubt(f"the data is no strict JSON: {error}")
    return Reply(ask.dispatch_id, content, usage=reckoned(ask, content))


def _without_answer(problem: Problem, raw: bytes, ask: Ask) -> Foreign | Doubt:
    if problem.is_stale:
        return _foreign(problem.sentence, ask)
    if problem.kind in _NAMED and (named := _named(raw)) != ask.dispatch_id:
        return _foreign(f"the artifact belongs to dispatch {named}", ask)
    return Doubt(problem.sentence)


def _foreign(sentence: str, ask: Ask) -> Foreign:
    return Foreign(f'{sentence}; write "dispatch_id": {ask.dispatch_id}')


def _named(raw: bytes) -> Any:
    wrapper = decode_object(raw)
    return None if isinstance(wrapper, Problem) else wrapper["dispatch_id"]


def _data(raw: bytes) -> bytes:
    """The data as it was written, byte for byte: nothing is rounded on the way."""
    return bytes(msgspec.json.decode(raw.removeprefix(codecs.BOM_UTF8), type=_Wrapper).data)


def reckoned(ask: Ask, content: bytes) -> Usage:
    """Files and workers bring no bill: tokens are bytes over four, prompt and answer apart."""
    asked = len(ask.prompt.encode()) // _BYTES_PER_TOKEN
    return Usage(tokens=asked + len(content) // _BYTES_PER_TOKEN)
