"""Find the one JSON object in an agent's final message.

The message is the object, or its only fence holds the object. Anything else is refused with a
sentence for the agent; nothing is picked out of prose.
"""

import re

import msgspec

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]*)[^`\n]*")
_JSON = ("json", "jsonc", "json5")


class NoObject(msgspec.Struct, frozen=True):
    """The reason the message holds no object."""

    sentence: str


class CodeFence(msgspec.Struct, frozen=True):
    language: str
    body: str


def find_answer_object(text: str, limit: int) -> bytes | NoObject:
    """Return the object as written, at most `limit` bytes; its reader checks the JSON itself."""
    message = text.removeprefix("\ufeff").strip()
    if len(message) > limit:
        return NoObject(f"the final message is longer than {limit:,} bytes; answer in fewer")
    if not message:
        return NoObject("the final message is empty; answer with one JSON object")
    if message.startswith("{"):
        return _check_size(message, limit)
    found = _list_fences(message)
    named = [fence for fence in found if fence.language in _JSON]
    candidates = named or [fence for fence in found if not fence.language]
    if len(candidates) == 1 and (named or len(found) == 1):
        return _check_size(candidates[0].body.strip(), limit)
    if candidates:
        return NoObject("the final message has several fences; give one JSON object, once")
    return NoObject(
        "the final message has no JSON object; end with one JSON object and nothing else"
    )


def _check_size(text: str, limit: int) -> bytes | NoObject:
    content = text.encode(errors="surrogatepass")
    if len(content) > limit:
        return NoObject(f"the answer is longer than {limit:,} bytes; answer in fewer")
    return content


def _list_fences(text: str) -> list[CodeFence]:
    """Return the closed fenced blocks in order. A fence in a quote does not count."""
    found: list[CodeFence] = []
    mark, language = "", ""
    body: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line.rstrip("\r"))
        if not mark:
            if fence:
                mark, language, body = fence[1], fence[2].lower(), []
        elif fence and fence[1].startswith(mark) and line.strip() == fence[1]:
            found.append(CodeFence(language, "\n".join(body)))
            mark = ""
        else:
            body.append(line)
    return found
