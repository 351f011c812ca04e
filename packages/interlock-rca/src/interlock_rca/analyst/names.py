"""Names taken apart: the words in class names, test names and paths.

Splits camel case, snake case and dots, finds what a test is named after, and measures how rare a
word is among many candidates.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

_RUN = re.compile(r"[^\W\d_]+|\d+")
_LETTERS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SEGMENT = re.compile(r"[^\W_]{2,}")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
"""Letters of scripts that leave no space between words."""
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
"""Words that any name or complaint may hold: sharing them means nothing."""


def strip_qualifiers(name: str) -> str:
    """`pkg.FooTest` is FooTest, `a/b.py::test_x[1]` is test_x."""
    plain = re.split(r"[\[(]", name, maxsplit=1)[0].rstrip(".:/\\# ")
    return re.split(r"[.:/\\#]", plain)[-1]


def split_camel_case(name: str) -> list[str]:
    """The words a name is made of: camel case and snake case, of any alphabet; numbers, too."""
    found: list[str] = []
    for run in _RUN.findall(name):
        if run.isascii():
            found += _LETTERS.findall(run) or [run]
            continue
        start = 0
        for at in range(1, len(run)):
            rises = run[at].isupper() and not run[at - 1].isupper()
            ends = at + 1 < len(run) and run[at - 1 : at + 1].isupper() and run[at + 1].islower()
            if rises or ends:
                found.append(run[start:at])
                start = at
        found.append(run[start:])
    return found


def split_unspaced(word: str) -> list[str]:
    """Of scripts without spaces between words: all pairs of neighbours, as words are not known; of
    others the word itself."""
    if not _UNSPACED.fullmatch(word):
        return [word]
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def split_name(name: str) -> set[str]:
    """The words of the last part of a name: `pkg.FooBarTest` is foo, bar, test."""
    return {word.lower() for word in split_camel_case(strip_qualifiers(name))}


def extract_words(text: str) -> set[str]:
    """The words of a text, and of the names in it, that are worth comparing."""
    found: set[str] = set()
    for segment in _SEGMENT.findall(text):
        if segment.isascii():
            words = [segment, *split_camel_case(segment)]
            found.update(word.lower() for word in words if len(word) > 2)
        else:
            parts = [part for word in split_camel_case(segment) for part in split_unspaced(word)]
            found.update(word.lower() for word in (segment, *parts) if len(word) > 1)
    return found - COMMON_WORDS


def find_subject(name: str) -> str:
    """What a test is of: `FooTest`, `TestFoo`, `test_foo` and `foo_spec` are of foo."""
    return _TESTED.sub("", strip_qualifiers(name).split("$")[0])


Clue = tuple[str, str, float]
"""A clue against a candidate: its kind, the candidate's text, the share of the points."""


_LANGUAGES = {
    **dict.fromkeys(("java", "kt", "kts", "scala", "groovy", "clj"), "jvm"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "vue", "svelte"), "javascript"),
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "h", "hh", "hpp", "m", "mm"), "c"),
    **dict.fromkeys(("cs", "fs", "vb"), "dotnet"),
    **{suffix: suffix for suffix in ("py", "go", "rb", "rs", "php", "swift", "ex", "dart")},
}


FOLDERS_OWN = ("index", "__init__", "mod")
"""Files that stand for the folder they are in."""


class CulpritCandidate(msgspec.Struct, frozen=True):
    """A candidate taken apart."""

    text: str
    parts: tuple[str, ...]
    """What holds it: package or folders."""
    leaf: str
    title: str
    """What it is called: its last name, or of a file that stands for its folder that one's."""
    path: bool
    name: frozenset[str]


def detect_language(file: str) -> str:
    """What a source file is written in, by its name; empty for all other files."""
    return _LANGUAGES.get(file.rpartition(".")[2].lower(), "")


def parse_candidate(text: str) -> CulpritCandidate:
    """Return the parts of a candidate, by its shape."""
    path = "/" in text or "\\" in text
    plain = text.replace("\\", "/")
    parts = tuple(part for part in plain.split("/" if path else ".") if part)
    leaf, parts = (parts[-1], parts[:-1]) if parts else (text, ())
    leaf = leaf.rpartition(".")[0] or leaf if path else leaf
    title = parts[-1] if path and parts and leaf in FOLDERS_OWN else leaf
    return CulpritCandidate(text, parts, leaf, title, path, frozenset(split_name(title)))


def measure_rarity(bags: Iterable[frozenset[str]]) -> Callable[[str], float]:
    """How rare a word is among the candidates: 1 for one of many, 0 for one of all."""
    count: Counter[str] = Counter()
    total = 0
    for bag in bags:
        count.update(bag)
        total += 1

    def rare(word: str) -> float:
        if total < 2 or not count[word]:
            return 1.0
        return math.log((total + 1) / count[word]) / math.log(total + 1)

    return rare
