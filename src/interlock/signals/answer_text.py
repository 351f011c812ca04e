"""The one JSON object in an agent's final message.

Knows two ways of giving it: the message is the object, or the object stands in the only fence.
Anything else is refused with a sentence for the agent; nothing is picked out of prose.
"""

import re

import msgspec

from interlock.agents.carrier import MAX_ANSWER

_OPENS = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]*)[^`\n]*")
_JSON = ("json", "jsonc", "json5")


class NoObject(msgspec.Struct, frozen=True):
    """Why there is none."""

    sentence: str


class CodeFence(msgspec.Struct, frozen=True):
    language: str
    body: str


def object_in(text: str) -> bytes | NoObject:
    """The object as it was written. Whether it is strict JSON is seen by whoever reads it."""
    whole = text.removeprefix("\ufeff").strip()
    if len(whole) > MAX_ANSWER:
        return NoObject(f"the final message is longer than {MAX_ANSWER:,} bytes; answer in fewer")
    if not whole:
        return NoObject("the final message is empty; answer with one JSON object")
    if whole.startswith("{"):
        return _sized(whole)
    found = fences(whole)
    named = [each for each in found if each.language in _JSON]
    meant = named or [each for each in found if not each.language]
    if len(meant) == 1 and (named or len(found) == 1):
        return _sized(meant[0].body.strip())
    if meant:
        return NoObject("the final message has several fences; give one JSON object, once")
    return NoObject(
        "the final message has no JSON object; end with one JSON object and nothing else"
    )


def _sized(text: str) -> bytes | NoObject:
    content = text.encode(errors="surrogatepass")
    if len(content) > MAX_ANSWER:
        return NoObject(f"the answer is longer than {MAX_ANSWER:,} bytes; answer in fewer")
    return content


def fences(text: str) -> list[CodeFence]:
    """The fenced blocks that are closed, in order. A fence in a quote is no fence."""
    found: list[CodeFence] = []
    mark, language = "", ""
    body: list[str] = []
    for line in text.split("\n"):
        opens = _OPENS.fullmatch(line.rstrip("\r"))
        if not mark:
            if opens:
                mark, language, body = opens[1], opens[2].lower(), []
        elif opens and opens[1].startswith(mark) and line.strip() == opens[1]:
            found.append(CodeFence(language, "\n".join(body)))
            mark = ""
        else:
            body.append(line)
    return found
