"""Culprits: which commits since the last green run may have brought a failure, and why.

Commits are ranked by the files they touched, as the failure's stack, names and log point at them;
then the few likeliest are looked into: did one change the very line, does it speak of the same
things, can it alter behaviour at all? When two are alike, the newer is named first, no more.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlock.analyst.frames import Frame, read_frames
from interlock.analyst.naming import COMMON_WORDS, name_words
from interlock.analyst.ownership import is_library, is_test
from interlock.analyst.suspect import Ranked, rank
from interlock.analyst.testimony import Testimony, testimony
from interlock.apps.rca.failure import Failure
from interlock.sources.git_log import Commit
from interlock.sources.repository import Repository

CLOSE_LOOK = 8
"""How many commits are looked into."""
_MOST_PATHS = 20_000
_BLAMED_FRAMES = 4
_MOST_FILES = 4
_FURTHER = 0.4
"""What a commit's further files count, of their own score."""
_WROTE, _INSIDE = 0.3, 0.3
_SPOKEN, _MOST_SPOKEN = 0.25, 0.5
_ACCUSED, _MOST_ACCUSED = 0.3, 0.6
_CHANGED = re.compile(r"^[+-](?![+-]{2} ).*$", re.MULTILINE)
_HEADINGS = re.compile(r"^@@ [^@]* @@(.*)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SAID = {
    "frame": "it is in the stack",
    "log frame": "it is in a stack of the log",
    "subject": "the test is named after it",
    "alike": "it is named like the test",
    "words": "it shares words with the test and the message",
    "mention": "the message names it",
    "package": "it lies beside the test",
}
"""The signs of a suspect path, in words."""


class Lead(msgspec.Struct, frozen=True):
    """A commit that may be the culprit; the score is from 0 to 1."""

    repo: str
    commit: Commit
    score: float
    why: tuple[str, ...]
    path: str
    """The file that speaks loudest against it."""


class Spot(msgspec.Struct, frozen=True):
    """A place of a failure's stack that is there in a repository."""

    path: str
    line: int
    function: str
    is_test: bool


def spots(failure: Failure, repository: Repository, rev: str = "") -> list[Spot]:
    """The places of the stack in that repository, the product's before the tests', innermost
    first."""
    if not repository.readable:
        return []
    found: list[Spot] = []
    for frame in _own(failure):
        word = frame.file if "/" in frame.file else frame.scope or frame.file
        for match in repository.files_named(word, rev)[:1]:
            spot = Spot(match.path, frame.line, frame.function, is_test(frame))
            if spot not in found:
                found.append(spot)
    return sorted(found, key=lambda spot: spot.is_test)


def leads(
    failure: Failure,
    repository: Repository,
    commits: Sequence[Commit],
    rev: str = "",
    accused: Mapping[str, int] = MappingProxyType({}),
) -> list[Lead]:
    """The commits something speaks against, likeliest first. `accused` counts how many other
    failures of the same run surely come from a commit: one cause often shows in many ways."""
    if not commits:
        return []
    said = testimony(failure)
    paths = dict.fromkeys(change.path for commit in commits for change in commit.files)
    ranked = {each.candidate: each for each in rank(said, list(paths)[:_MOST_PATHS])}
    touched = [lead for commit in commits if (lead := _by_files(repository, commit, ranked))]
    touched.sort(key=lambda lead: -lead.score)
    near = touched[:CLOSE_LOOK]
    changes = {lead.commit.hash: _Changes(repository, lead.commit) for lead in near}
    look = _Look(said, changes, _blamed(failure, repository, rev), accused)
    return sorted(map(look.into, near), key=lambda lead: -lead.score) + touched[CLOSE_LOOK:]


def _own(failure: Failure) -> Iterable[Frame]:
    frames = read_frames(failure.stack) or read_frames(failure.message) or read_frames(failure.log)
    return (frame for frame in frames if frame.file and not is_library(frame, failure.class_name))


def _by_files(repository: Repository, commit: Commit, ranked: Mapping[str, Ranked]) -> Lead | None:
    """Each further file that the failure points at makes a commit a little likelier."""
    hits = [ranked[change.path] for change in commit.files if change.path in ranked]
    if not hits:
        return None
    hits.sort(key=lambda hit: (-hit.score, hit.candidate))
    score = hits[0].score
    for hit in hits[1:_MOST_FILES]:
        score = _more(score, hit.score * _FURTHER)
    signs = ", ".join(_SAID.get(sign, sign) for sign in hits[0].why.split(", "))
    why = f"it changed {hits[0].candidate} ({signs})"
    return Lead(repository.name, commit, round(score, 4), (why,), hits[0].candidate)


class _Changes:
    """What a commit changed, read once."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        self.nature = repository.behavioural(commit)
        diff = repository.diff_of(commit.hash) if self.nature.behavioural else ""
        lines = [line for line in _CHANGED.findall(diff) if not line[1:].lstrip().startswith("#")]
        self.words = frozenset(_WORD.findall(" ".join(lines))) | name_words(commit.subject)
        self.functions = frozenset(_WORD.findall(" ".join(_HEADINGS.findall(diff))))


class _Look:
    """A close look at the few likeliest commits, side by side."""

    def __init__(
        self,
        said: Testimony,
        changes: Mapping[str, _Changes],
        blamed: Mapping[str, Spot],
        accused: Mapping[str, int],
    ) -> None:
        self._changes = changes
        self._blamed = blamed
        self._accused = accused
        self._functions = _functions(said)
        self._words = (_told(said) | self._functions) - COMMON_WORDS
        self._spread = Counter(
            word for each in changes.values() for word in self._words & each.words
        )

    def into(self, lead: Lead) -> Lead:
        changes = self._changes[lead.commit.hash]
        why = list(lead.why)
        if not changes.nature.behavioural:
            why.append(f"but it alters no behaviour: {changes.nature.why}")
            return msgspec.structs.replace(lead, score=round(lead.score * 0.2, 4), why=tuple(why))
        score = lead.score
        for sign, reason in self._signs(lead.commit.hash, changes):
            score = _more(score, sign)
            why.append(reason)
        return msgspec.structs.replace(lead, score=round(score, 4), why=tuple(why))

    def _signs(self, commit: str, changes: _Changes) -> Iterator[tuple[float, str]]:
        if spot := self._blamed.get(commit):
            yield _WROTE, f"it wrote a line of the stack, {spot.path}:{spot.line}"
        if inside := sorted(self._functions & changes.functions):
            yield _INSIDE, f"it changed {', '.join(inside[:3])}, which is in the stack"
        # A word that every change uses tells nothing; one that only this uses tells much.
        shared = {word: _SPOKEN / self._spread[word] for word in self._words & changes.words}
        if shared:
            named = sorted(shared, key=lambda word: (-shared[word], word))[:4]
            yield min(_MOST_SPOKEN, sum(shared.values())), f"it speaks of {', '.join(named)}"
        if count := self._accused.get(commit, 0):
            yield min(_MOST_ACCUSED, _ACCUSED * count), f"{count} other findings suspect it too"


def _more(score: float, sign: float) -> float:
    return 1 - (1 - score) * (1 - sign)


def _blamed(failure: Failure, repository: Repository, rev: str) -> dict[str, Spot]:
    """Commits that wrote a line of the stack, each with the innermost such line."""
    found: dict[str, Spot] = {}
    for spot in spots(failure, repository, rev)[:_BLAMED_FRAMES]:
        blame = repository.blame_line(spot.path, spot.line, rev) if spot.line else None
        if blame is not None:
            found.setdefault(blame.commit, spot)
    return found


def _functions(said: Testimony) -> frozenset[str]:
    """Functions of the product that are in the stack."""
    own = [frame for frame in said.frames if not is_library(frame, said.class_name)]
    names = {frame.function.rpartition(".")[2] for frame in own if not is_test(frame)}
    return frozenset(name for name in names if len(name) > 2)


def _told(said: Testimony) -> frozenset[str]:
    """Names that the message uses."""
    return frozenset(word for word in _WORD.findall(said.message[:4_000]) if len(word) > 3)
