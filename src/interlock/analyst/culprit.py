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
from interlock.analyst.testimony import Testimony, hear
from interlock.apps.rca.failure import Failure
from interlock.sources.git_change import Nature
from interlock.sources.git_log import Commit
from interlock.sources.repository import Repository

CLOSE_LOOK = 8
"""How many commits are looked into."""
_MOST_PATHS = 20_000
_BLAMED_FRAMES = 4
_MOST_FILES = 4
_FURTHER = 0.4
"""What a commit's further files count, of their own score."""
_WROTE, _BESIDE, _NEAR = 0.25, 0.3, 8
_SPOKEN, _MOST_SPOKEN = 0.35, 0.6
_ACCUSED, _MOST_ACCUSED = 0.45, 0.7
_LINES = (
    re.compile(r"^\+(?!\+\+ ).*$", re.MULTILINE),
    re.compile(r"^-(?!-- ).*$", re.MULTILINE),
)
_HUNK = re.compile(
    r"^(?:\+\+\+ b/(?P<path>.+)|@@ -\S+ \+(?P<first>\d+)(?:,(?P<count>\d+))? @@.*)$", re.MULTILINE
)
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
    depth: int = 0
    """How many frames of the stack are further inside."""
    shared: int = 1
    """How many names of the path agree: the more, the surer it is this file."""


def spots(failure: Failure, repository: Repository, rev: str = "") -> list[Spot]:
    """The places of the stack in that repository, the product's before the tests', innermost
    first."""
    if not repository.readable:
        return []
    found: dict[tuple[str, int], Spot] = {}
    for depth, frame in enumerate(_own(failure)):
        word = frame.file if "/" in frame.file else frame.scope or frame.file
        for match in repository.files_named(word, rev)[:1]:
            spot = Spot(
                *(match.path, frame.line, frame.function, is_test(frame), depth, match.shared)
            )
            found.setdefault((spot.path, spot.line), spot)
    return sorted(found.values(), key=lambda spot: spot.is_test)


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
    said = hear(failure)
    paths = dict.fromkeys(change.path for commit in commits for change in commit.files)
    ranked = {each.candidate: each for each in rank(said, list(paths)[:_MOST_PATHS])}
    touched = [lead for commit in commits if (lead := _by_files(repository, commit, ranked))]
    touched.sort(key=lambda lead: -lead.score)
    near = touched[:CLOSE_LOOK]
    changes = {lead.commit.hash: _Changes(repository, lead.commit) for lead in near}
    places = spots(failure, repository, rev)[:_BLAMED_FRAMES]
    look = _Look(said, changes, places, _blamed(places, repository, rev), accused)
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
        came, went = (frozenset(_WORD.findall(" ".join(sign.findall(diff)))) for sign in _LINES)
        brought = came ^ went  # a word of a line that only moved is in both
        self.words = brought | name_words(commit.subject)
        renamed = {
            _stem(name) for each in commit.files if each.old for name in (each.path, each.old)
        }
        if self.nature.behavioural and renamed and brought <= renamed:
            self.nature = Nature("moved", "it only follows a file to its new name")
        self._places = list(_places(diff))

    def beside(self, spot: Spot) -> bool:
        """Whether something changed a few lines from there."""
        return any(
            path == spot.path and first - _NEAR <= spot.line <= last + _NEAR
            for path, first, last in self._places
        )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _places(diff: str) -> Iterator[tuple[str, int, int]]:
    """Of each hunk the file and its lines, as they are after the change."""
    path = ""
    for found in _HUNK.finditer(diff):
        if found["path"]:
            path = found["path"]
        elif path:
            first, count = int(found["first"]), int(found["count"] or 1)
            yield path, first, first + max(0, count - 1)


class _Look:
    """A close look at the few likeliest commits, side by side."""

    def __init__(
        self,
        said: Testimony,
        changes: Mapping[str, _Changes],
        spots: Sequence[Spot],
        blamed: Mapping[str, Spot],
        accused: Mapping[str, int],
    ) -> None:
        self._changes = changes
        self._blamed = blamed
        self._accused = accused
        self._spots = spots
        self._words = (_told(said) | _functions(said)) - COMMON_WORDS
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
        for depth, near in enumerate(self._spots, 1):
            if changes.beside(near):
                place = f"{near.path}:{near.line}"
                yield _BESIDE / depth, f"it changed lines beside {place}, which is in the stack"
                break
        # A word that every change uses tells nothing; one that only this uses tells much.
        shared = {word: _SPOKEN / self._spread[word] ** 2 for word in self._words & changes.words}
        if shared:
            named = sorted(shared, key=lambda word: (-shared[word], word))[:4]
            yield min(_MOST_SPOKEN, sum(shared.values())), f"it speaks of {', '.join(named)}"
        if count := self._accused.get(commit, 0):
            yield min(_MOST_ACCUSED, _ACCUSED * count), f"{count} other findings suspect it too"


def _more(score: float, sign: float) -> float:
    return 1 - (1 - score) * (1 - sign)


def _blamed(places: Sequence[Spot], repository: Repository, rev: str) -> dict[str, Spot]:
    """Commits that wrote a line of the stack, each with the innermost such line."""
    found: dict[str, Spot] = {}
    for spot in places:
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
