"""What reviewers said about failures, and which of it counts now.

A statement is about failures, known by their fingerprints and by hashes of the tests' ids: no text
of a test is in it, so it can stand in a comment. Statements are only added. The newest about a
failure counts, and `undo` takes back those before it. None of them changes a verdict: they are
shown as what a person said.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

import msgspec

from interlock.rca.history import segment
from interlock.system.errors import SourceError

Action = Literal["not-this", "flaky", "cause", "undo"]
_FIRST_NUMBER: Final = 10_000
_NUMBERS: Final = 90_000


def number_failure(fingerprint: str) -> int:
    """What people call a failure: five digits that are the same in every run. Smaller numbers are
    those of root causes in a project's database."""
    return _FIRST_NUMBER + int(fingerprint, 16) % _NUMBERS


def is_failure_number(number: int) -> bool:
    return _FIRST_NUMBER <= number < _FIRST_NUMBER + _NUMBERS


def hash_test_id(test: str) -> str:
    return hashlib.blake2b(test.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one person said about one failure."""

    action: Action
    by: str
    at: float
    comment: str
    """The comment's id: what it says counts once."""
    fingerprints: tuple[str, ...]
    """Of the failures that it is about."""
    tests: tuple[str, ...] = ()
    """Hashes of the ids of the tests that failed so."""
    project: str = ""
    pr: str = ""
    commit: str = ""
    """The suspect that is refused."""
    number: int = 0
    """The cause that it is joined to, and its title."""
    title: str = ""
    joined: tuple[str, ...] = ()
    """Fingerprints of that cause, where the memory knows it."""

    @property
    def key(self) -> str:
        """The same for the same words of the same comment, however often it is read."""
        words = (self.project, self.pr, self.comment, self.action, *self.fingerprints)
        return hashlib.blake2b("\0".join(words).encode(), digest_size=16).hexdigest()

    def describe(self) -> str:
        """For people."""
        where = f" in pull request {self.pr}" if self.pr else ""
        match self.action:
            case "flaky":
                return f"{self.by} says that it is flaky{where}"
            case "cause":
                title = f" ({self.title})" if self.title else ""
                return f"{self.by} says that it is cause {self.number}{title}{where}"
            case "not-this":
                what = f" {self.commit[:10]}" if self.commit else " the cause it was joined to"
                return f"{self.by} refused{what}{where}"
        return f"{self.by} took back what was said{where}"


class Statements(msgspec.Struct, frozen=True):
    """All statements, the oldest first."""

    every: tuple[Statement, ...] = ()

    def find(
        self, fingerprints: Collection[str], tests: Collection[str] = ()
    ) -> tuple[Statement, ...]:
        """What counts of a failure, the newest last. That a test is flaky is said of the test,
        however it fails; everything else of one failure."""
        found: list[Statement] = []
        for each in self.every:
            is_about = not set(fingerprints).isdisjoint(each.fingerprints)
            if not is_about and not (each.action == "flaky" and set(tests) & set(each.tests)):
                continue
            if each.action == "undo":
                found.clear()
            elif each.action == "not-this" and not each.commit:
                found = [other for other in found if other.action != "cause"]
            elif each.action == "cause":
                found = [other for other in found if other.action != "cause"]
                found.append(each)
            else:
                found.append(each)
        return tuple(found)

    def list_refused(self, fingerprints: Collection[str]) -> dict[str, Statement]:
        """The commits that are not to be shown as suspects of a failure again."""
        return {each.commit: each for each in self.find(fingerprints) if each.action == "not-this"}


def unite_statements(*parts: Iterable[Statement]) -> Statements:
    """Each once, in the order of time."""
    found = {each.key: each for part in parts for each in part}
    return Statements(tuple(sorted(found.values(), key=lambda each: (each.at, each.key))))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Statement).decode


def write_statement(statement: Statement) -> bytes:
    return segment.write_frame(b"W", _encode(statement))


def read_statement(raw: bytes, name: str) -> Statement:
    """SourceError names the file and says what is wrong with it."""
    try:
        found = _decode(segment.read_frame(raw, b"W", name))
    except msgspec.MsgspecError as error:
        raise SourceError(f"{name} is damaged: {error}") from None
    check_hashes(found.fingerprints, name)
    check_hashes(found.joined, name)
    return found


def check_hashes(words: Sequence[str], name: str) -> None:
    """SourceError if one is no fingerprint."""
    if any(len(word) != 16 or set(word) - set("0123456789abcdef") for word in words):
        raise SourceError(f"{name} holds something that is no fingerprint")
