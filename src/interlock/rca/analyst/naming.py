"""Names taken apart: the words in class names, test names, paths and messages.

Knows camel case, snake case and dots. Refuses to know what the words mean.
"""

import re

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SEGMENT = re.compile(r"[A-Za-z0-9]{3,}")
_TESTED = re.compile(
    r"^(?:Abstract|Base)?(?:Test(?=[A-Z])|IT(?=[A-Z])|test_)"
    r"|(?:_?[Tt]ests?|TestCase|TestBase|ITCase|IT|_?[Ss]pecs?)$"
)
_COMMON_TEXT = """error errors warning fail fails failed failure exception java class classes
symbol location test tests run file files src main target expected version method variable package
goal compilation compile plugin project default found does not the for and with was but null common
commons core api util utils annotations runtime parent base org com net build abstract impl should
"""
COMMON_WORDS = frozenset(_COMMON_TEXT.split())
"""Words that any name or complaint may hold: sharing them tells nothing."""


def last_part(name: str) -> str:
    """`pkg.FooTest` is FooTest, `a/b.py::test_x[1]` is test_x."""
    plain = re.split(r"[\[(]", name, maxsplit=1)[0].rstrip(".:/\\# ")
    return re.split(r"[.:/\\#]", plain)[-1]


def name_words(name: str) -> set[str]:
    """The words of the last part of a name: `pkg.FooBarTest` is foo, bar, test."""
    return {word.lower() for word in _PART.findall(last_part(name))}


def text_words(text: str) -> set[str]:
    """The words of a text, and of the names in it, that are worth comparing."""
    found: set[str] = set()
    for segment in _SEGMENT.findall(text):
        found.add(segment.lower())
        found.update(word.lower() for word in _PART.findall(segment) if len(word) > 2)
    return found - COMMON_WORDS


def subject_of(name: str) -> str:
    """What a test is of: `FooTest`, `TestFoo`, `test_foo` and `foo_spec` are of foo."""
    return _TESTED.sub("", last_part(name).split("$")[0])
