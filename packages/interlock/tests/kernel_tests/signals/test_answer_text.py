"""The object in a final message: given whole or in one fence, never picked out of prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.answer_text import NoObject, find_answer_object

LIMIT = 1 << 20

FOUND = {
    "alone": ('{"n": 1}', b'{"n": 1}'),
    "with blanks around": ('\n  {"n": 1}\n\n', b'{"n": 1}'),
    "after a byte order mark": ('\ufeff{"n": 1}', b'{"n": 1}'),
    "in a json fence": ('```json\n{"n": 1}\n```', b'{"n": 1}'),
    "in a fence with prose around": (
        'Here it is:\n\n```json\n{"n": 1}\n```\nDone.',
        b'{"n": 1}',
    ),
    "in a fence without a name": ('```\n{"n": 1}\n```', b'{"n": 1}'),
    "in a fence of tildes": ('~~~json\n{"n": 1}\n~~~', b'{"n": 1}'),
    "in a longer fence that holds a fence": (
        '````json\n{"n": "```"}\n````',
        b'{"n": "```"}',
    ),
    "beside a fence of another language": (
        '```python\nprint({})\n```\n```json\n{"n": 1}\n```',
        b'{"n": 1}',
    ),
    "with a carriage return": ('```json\r\n{"n": 1}\r\n```', b'{"n": 1}'),
    "a fence in a string": ('{"n": "```json\\n{}\\n```"}', b'{"n": "```json\\n{}\\n```"}'),
    "not JSON at all, for others to refuse": ("{oh no}", b"{oh no}"),
}

REFUSED = {
    "nothing": ("", "empty"),
    "blanks": (" \n ", "empty"),
    "prose": ("I am done.", "no JSON object"),
    "prose before it": ('Here: {"n": 1}', "no JSON object"),
    "a list": ("[1]", "no JSON object"),
    "two fences": ('```json\n{"n": 1}\n```\n```json\n{"n": 2}\n```', "several fences"),
    "two nameless fences": ("```\n{}\n```\n```\n{}\n```", "several fences"),
    "a fence that never ends": ('```json\n{"n": 1}', "no JSON object"),
    "a fence in a quote": ('> ```json\n> {"n": 1}\n> ```', "no JSON object"),
    "only another language": ('```python\n{"n": 1}\n```', "no JSON object"),
    "a nameless one beside another": (
        '```\n{"n": 1}\n```\n```sh\nls\n```',
        "several fences",
    ),
    "too long": ("{" + "x" * LIMIT, "longer than"),
    "too long in bytes": ("{" + "ü" * (LIMIT - 10), "longer than"),
}


@pytest.mark.parametrize(("text", "content"), FOUND.values(), ids=FOUND)
def test_what_is_found(text: str, content: bytes) -> None:
    assert find_answer_object(text, LIMIT) == content


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(text: str, words: str) -> None:
    found = find_answer_object(text, LIMIT)
    assert isinstance(found, NoObject)
    assert words in found.sentence


@given(st.text(alphabet='`~{}"json \n\r>ü\ud800', max_size=80))
def test_it_never_fails_and_never_invents(text: str) -> None:
    found = find_answer_object(text, LIMIT)
    if isinstance(found, bytes):
        result = found.decode(errors="surrogatepass")
        assert result in text.replace("\r\n", "\n") or result in text
