"""Name tests in the memory: one id that stays the same in every run.

An id is `suite::class::name`; parts that repeat the next one are dropped. Parameters that change in
every run (times, ids, addresses) are masked by a fixed rule, because a test whose name changes has
no history. Numbers stay: `case[3]` is a test of its own.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlencode

from interlock.system.secrets import mask_tokens
from interlock.system.text import clean_text
from interlock_rca.records import Failure

_LONGEST: Final = 500
_UNNAMED: Final = ("pytest", "AllTests", "Root Suite", "Mocha Tests", "jest tests")
"""Names that runners give to unnamed suites."""
_VOLATILE: Final = re.compile(
    r"(?P<uuid>\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d{2}-\d{2}[T _]\d{2}[:.-]?\d{2}(?:[:.-]?\d{2}(?:[.,]\d{1,9})?)?"
    r"(?:Z|[+-]\d{2}:?\d{2})?|(?<!\d)1[4-9]\d{8}(?:\d{3}|\d{6})?(?!\d))"
    r"|(?P<address>\b0x[0-9A-Fa-f]{6,16}\b)"
    r"|(?P<tmp>/tmp/[^\s\]\),;'\"]+|/var/folders/[^\s\]\),;'\"]+|pytest-of-[^\s\]\),;'\"]+)"
)
_NUMBER: Final = re.compile(r"\d+|\b[0-9a-f]{6,}\b")
_FEWEST_UNSTABLE: Final = 10


def make_test_id(suite: str, class_name: str, name: str) -> str:
    """Return the id of a test from its names in a report."""
    return mask_parameters(join_names(suite, class_name, name))


def name_failed_test(failure: Failure) -> str:
    """Return the id of the failed test."""
    return make_test_id(failure.job, failure.class_name, failure.test_name)


def join_names(suite: str, class_name: str, name: str) -> str:
    """Return the id with its parameters unmasked."""
    words = []
    if suite and suite not in _UNNAMED and not _says(class_name, suite):
        words.append(suite)
    if class_name and not _says(name, class_name):
        words.append(class_name)
    words.append(name)
    text = mask_tokens("::".join(filter(None, words))) or "(no name)"
    if not text.isascii() or not text.isprintable():
        text = clean_text(text)
    return text[:_LONGEST]


def _says(longer: str, shorter: str) -> bool:
    return longer.startswith(shorter) and (
        len(longer) == len(shorter) or not (longer[len(shorter)].isalnum())
    )


def mask_parameters(text: str) -> str:
    """Mask times, uuids, memory addresses and temporary paths in an id."""
    if text.isascii() and "-" not in text and "/" not in text and not _has_long_number(text):
        return text
    return _VOLATILE.sub(lambda found: f"<{found.lastgroup}>", text)


def _has_long_number(text: str) -> bool:
    return "0x" in text or bool(re.search(r"\d{10}", text))


def find_unstable_names(seen: Mapping[str, int], runs: int) -> list[tuple[str, int]]:
    """Return patterns of names that change in every run, largest first: many names, each seen in
    one run, that differ only in numbers. `seen` counts the sources of each test, out of `runs`."""
    if runs < 3:
        return []
    groups: dict[str, int] = defaultdict(int)
    lasting: set[str] = set()
    for name, count in seen.items():
        pattern = _NUMBER.sub("<num>", name)
        if pattern == name:
            continue
        if count == 1:
            groups[pattern] += 1
        else:
            lasting.add(pattern)
    found = [
        (pattern, count)
        for pattern, count in groups.items()
        if count >= _FEWEST_UNSTABLE and pattern not in lasting
    ]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def match_tests(names: Iterable[str], wanted: str) -> list[str]:
    """Return the tests that a word matches: exactly, else by their end after `::` or `.`, else by
    any part."""
    known = list(names)
    if wanted in known:
        return [wanted]
    ending = [name for name in known if name.endswith((f"::{wanted}", f".{wanted}"))]
    return sorted(ending or [name for name in known if wanted.lower() in name.lower()])


def link_history(test: str, project: str = "") -> str:
    """Return the address of the page that interlock-history has about a test."""
    named = {"project": project, "test": test} if project else {"test": test}
    return f"/tests/history?{urlencode(named)}"
