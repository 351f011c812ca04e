"""The telling line of a failed test: some tools say only which test failed, or that it did.

Knows how such a message looks. Where the body below it says more, its first line that does is it.
"""

import re

_BARE = re.compile(
    r"(?:the )?(?:test |collection )?(?:has )?(?:failed|failure|error)[.!]?", re.IGNORECASE
)
_SHOUTED = re.compile(r"^E {3,}(\w[\w.]*(?:Error|Exception|Warning|Exit)\b.*)", re.MULTILINE)
"""The line of a trace that is the error itself, as pytest marks it; the last is what was raised."""
_NO_NEWS = re.compile(r"^\W*(?:$|(?:RUN|FAIL|PAUSE|CONT)\b|Traceback \()")
_MOST_LINES = 40
_LONGEST = 1000
_PLACE = re.compile(r"\[[\w -]{1,30}\]|\S*[.:/\\#]\S*|[^\w\s]+")
"""What stands beside a test's name where nothing but the test is named: a file, a browser."""


def telling(message: str, body: str, test_name: str) -> str:
    """`message`, or where it tells nothing, the first line of `body` that tells something."""
    if message and not _is_bare(message, test_name):
        return message
    if shouted := _SHOUTED.findall(body):
        return str(shouted[-1]).strip()[:_LONGEST]
    lines = [line.strip() for line in body.split("\n", _MOST_LINES)[:_MOST_LINES]]
    news = (line for line in lines if not _NO_NEWS.match(line) and not _is_bare(line, test_name))
    return (next(news, "") or message or lines[0])[:_LONGEST]


def _is_bare(said: str, test_name: str) -> bool:
    if _BARE.fullmatch(said.strip()):
        return True
    if not test_name or test_name not in said:
        return False
    return all(map(_PLACE.fullmatch, said.replace(test_name, " ", 1).split()))
