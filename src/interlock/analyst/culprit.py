"""Culprits: which commits since the last green run may have brought a failure, and why.

Commits are ranked by the files they touched, as the failure's stack, names and log point at them;
then the few likeliest are looked into: did one change the very line, does it speak of the same
things, can it alter behaviour at all? When two are alike, the newer is named first, no more.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from interlock.analyst.frames import Frame, read_frames
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
_QUOTED = re.compile(r"['\"`]([A-Za-z_][\w.-]{2,60})['\"`]")
_CHANGED = re.compile(r"^[+-](?![+-]{2} ).*$", re.MULTILINE)


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
    failure: Failure, repository: Repository, commits: Sequence[Commit], rev: str = ""
) -> list[Lead]:
    """The commits something speaks against, likeliest first."""
    if not commits:
        return []
    said = testimony(failure)
    paths = dict.fromkeys(change.path for commit in commits for change in commit.files)
    ranked = {each.candidate: each for each in rank(said, list(paths)[:_MOST_PATHS])}
    touched = [lead for commit in commits if (lead := _by_files(repository, commit, ranked))]
    touched.sort(key=lambda lead: -lead.score)
    blamed = _blamed(failure, repository, rev)
    words = _words(said)
    near = [_looked_into(lead, repository, blamed, words) for lead in touched[:CLOSE_LOOK]]
    return sorted(near, key=lambda lead: -lead.score) + touched[CLOSE_LOOK:]


def _own(failure: Failure) -> Iterable[Frame]:
    frames = read_frames(failure.stack) or read_frames(failure.message) or read_frames(failure.log)
    return (frame for frame in frames if frame.file and not is_library(frame, failure.class_name))


def _by_files(repository: Repository, commit: Commit, ranked: dict[str, Ranked]) -> Lead | None:
    hits = [ranked[change.path] for change in commit.files if change.path in ranked]
    if not hits:
        return None
    best = max(hits, key=lambda hit: (hit.score, hit.candidate))
    why = f"it changed {best.candidate} ({best.why})"
    return Lead(repository.name, commit, best.score, (why,), best.candidate)


def _looked_into(
    lead: Lead, repository: Repository, blamed: dict[str, Spot], words: frozenset[str]
) -> Lead:
    nature = repository.behavioural(lead.commit)
    score, why = lead.score, list(lead.why)
    if not nature.behavioural:
        why.append(f"but it alters no behaviour: {nature.why}")
        return msgspec.structs.replace(lead, score=round(score * 0.3, 4), why=tuple(why))
    if spot := blamed.get(lead.commit.hash):
        score = _more(score, 0.6)
        why.append(f"it wrote the line that failed, {spot.path}:{spot.line}")
    changed = " ".join(_CHANGED.findall(repository.diff_of(lead.commit.hash, lead.path)))
    if shared := sorted(word for word in words if re.search(rf"\b{re.escape(word)}\b", changed)):
        score = _more(score, min(0.5, 0.2 * len(shared)))
        why.append(f"its change speaks of {', '.join(shared[:4])}")
    return msgspec.structs.replace(lead, score=round(score, 4), why=tuple(why))


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


def _words(said: Testimony) -> frozenset[str]:
    """Names a change would share with a failure it caused: functions of the stack, and what the
    message quotes."""
    own = [frame for frame in said.frames if not is_library(frame, said.class_name)]
    functions = {frame.function.rpartition(".")[2] for frame in own if not is_test(frame)}
    quoted = {word.rpartition(".")[2] for word in _QUOTED.findall(said.message[:4_000])}
    return frozenset(word for word in functions | quoted if len(word) > 2)
