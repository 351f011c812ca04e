"""Culprits: which commits since the last green run may have brought a failure, and why.

Commits are ranked by the files they touched, as the failure's stack, names and log point at them;
then the few likeliest are looked into: did one change the very line, is it about the same
things, can it alter behaviour at all? When two are alike, the newer is named first, no more.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlock.rca.analyst.change_words import (
    CommitProfile,
    SourceExcerpt,
    extract_message_words,
    find_excerpt,
    find_missing_names,
    find_quotes,
    is_auxiliary,
    split_into_stems,
    stem_words,
)
from interlock.rca.analyst.mentions import Mentions, collect_mentions
from interlock.rca.analyst.names import detect_language
from interlock.rca.analyst.stack import (
    StackLocation,
    is_library,
    is_test_frame,
    is_test_name,
    locate_frames,
)
from interlock.rca.analyst.suspects import RankedSuspect, rank_candidates
from interlock.rca.analyst.triage import is_failed_check
from interlock.rca.records import Failure
from interlock.rca.sources.git.history import Commit
from interlock.rca.sources.git.repository import Repository

_BLAMED_FRAMES = 4
_MOST_REACHED = 4
"""So many stretches of lines are asked about who wrote them."""
_NEAR = 10
"""So many lines from a place of the stack are beside it."""


class FailureScene:
    """Of one failure; read once, whatever commits are held against it."""

    def __init__(
        self, failure: Failure, mentions: Mentions, repository: Repository, rev: str
    ) -> None:
        self._repository = repository
        self._test_name = mentions.test_name
        self.is_check = is_failed_check(failure)
        """Whether a test's own check failed, and nothing broke by itself."""
        self.locations = locate_frames(failure, repository, rev)[:_BLAMED_FRAMES]
        self.places = {spot.path for spot in self.locations}
        self._tests = [spot for spot in self.locations if spot.is_test]
        outermost = max(self._tests, key=lambda spot: spot.depth).path if self._tests else ""
        self.helpers = {spot.path for spot in self._tests} - {outermost}
        """Files of tests that the failing one only uses."""
        self.words = extract_message_words(mentions.message) | stem_words(
            _find_product_functions(mentions)
        )
        self.quotes = find_quotes(mentions.message)
        self.missing_names = find_missing_names(mentions.message)
        """Names that the message says are not there."""
        self._nearby_lines = {spot: self._find_nearby_lines(spot, rev) for spot in self.locations}
        self._writers = {
            spot: repository.find_writers(spot.path, reach[:_MOST_REACHED], rev)
            if spot.line
            else {}
            for spot, reach in self._nearby_lines.items()
        }
        self._blamed: dict[str, StackLocation] = {}
        """Commits that wrote a line of the stack, each with the innermost of these lines."""
        for spot, writers in self._writers.items():
            if spot.line in writers:
                self._blamed.setdefault(writers[spot.line], spot)
        self.test_words = stem_words(re.findall(r"\w+", mentions.test_name))
        if self._tests:
            self.test_words |= self._read_source(self._tests[0], rev).words
        """What the failing test is about."""
        self.test_name_parts = split_into_stems(
            re.findall(r"[^\W\d]\w*", mentions.test_name.partition("[")[0])
        )
        """The parts of its name."""

    def _find_nearby_lines(self, spot: StackLocation, rev: str) -> list[tuple[int, int]]:
        """The lines that count as beside a place: of a test, those of itself and its values."""
        if not spot.is_test:
            return [(max(1, spot.line - _NEAR), spot.line + _NEAR)]
        body = self._read_source(spot, rev)
        return [(body.first, body.last), *((row, row) for row in body.rows)]

    def _read_source(self, spot: StackLocation, rev: str) -> SourceExcerpt:
        entry = self._repository.read_entry(spot.path, rev)
        return find_excerpt(entry.content if entry else None, spot.line, self._test_name)

    def find_changed_location(self, changed: CommitProfile) -> StackLocation | None:
        """The first place of the stack at which something was changed. Who changes the product
        too has seen the tests that go with it pass: their checks are not held against it."""
        for spot, reach in self._nearby_lines.items():
            if spot.is_test and self.is_check and changed.product_paths:
                continue
            if changed.hash in self._writers[spot].values() and changed.touches_file(spot.path):
                return spot
            if changed.changes_lines(spot.path, *reach[0]):
                return spot
            if not spot.is_test and changed.changes_function(spot.path, spot.function):
                return spot
        return None

    def find_written_location(self, commit: str, changed: CommitProfile) -> StackLocation | None:
        """The innermost line of the stack that it wrote."""
        spot = self._blamed.get(commit)
        if spot is None or not changed.touches_file(spot.path):
            return None
        return None if spot.is_test and self.is_check and changed.product_paths else spot

    def is_break(self, spot: StackLocation) -> bool:
        """Whether it broke there, and is not only on the way."""
        return not self.is_check and spot.depth == min(
            location.depth for location in self.locations
        )

    def find_common_words(self, changed: CommitProfile) -> frozenset[str]:
        """What the failure and the code that was changed are both about."""
        return (self.test_words & changed.product_words) | (self.words & changed.line_words)


def _find_product_functions(mentions: Mentions) -> frozenset[str]:
    """Functions of the product that are in the stack."""
    own = [frame for frame in mentions.frames if not is_library(frame, mentions.class_name)]
    names = {frame.function.rpartition(".")[2] for frame in own if not is_test_frame(frame)}
    return frozenset(name for name in names if len(name) > 2)


MAX_INSPECTED = 40
"""How many commits are looked into."""
_MOST_PATHS = 20_000
_MOST_FILES = 4
_FURTHER = 0.4
"""What a commit's further files count, of their own score."""
_WROTE, _WROTE_LAST, _BESIDE = 0.25, 0.6, 0.45
_ELSEWHERE = 0.6
"""What is left of a file's score if it is in the stack, but was changed somewhere else."""
_OTHER_TEST = 0.4
"""What is left of a change of tests that leaves the failing one alone."""
_INERT = 0.2
_CODE = 0.04
"""What a change of code counts that nothing but its words may connect to the failure."""
_SHARED_WORD, _MOST_SHARED_WORD = 0.35, 0.6
_TESTED, _MOST_TESTED = 0.3, 0.5
_CALLED, _MOST_CALLED = 0.5, 0.6
_FAR = 0.75
"""What is left of that where nothing else points at the change."""
_PART, _MOST_PART = 0.2, 0.35
_QUOTED, _QUOTED_LONG, _LONG = 0.4, 0.7, 12
"""A long text that a message quotes is hardly in a change by chance."""
_DROPPED = 0.7
_ACCUSED, _MOST_ACCUSED = 0.45, 0.7
_FAINT = 0.02
_BROAD = 20
"""A change of so many more files counts half as much by each: it would touch anything."""
_WORDY = 60
"""A change of so many words shares half as much by each: it would share with anything."""
_CLUE_TEXT = {
    "frame": "it is in the stack",
    "log frame": "it is in a stack of the log",
    "subject": "the test is named after it",
    "alike": "it is named like the test",
    "words": "it shares words with the test and the message",
    "mention": "the message names it",
    "package": "it lies beside the test",
}
"""The clues against a path, in words."""


class CulpritLead(msgspec.Struct, frozen=True):
    """A commit that may be the culprit; the score is from 0 to 1."""

    repo: str
    commit: Commit
    score: float
    why: tuple[str, ...]
    path: str
    """The file that incriminates it most."""
    is_placed: bool = False
    """Whether it changed a file of the stack, and not only what is named alike."""


def rank_commits(
    failure: Failure,
    repository: Repository,
    commits: Sequence[Commit],
    rev: str = "",
    accused: Mapping[str, int] = MappingProxyType({}),
) -> list[CulpritLead]:
    """The commits against which there is a clue, likeliest first. `accused` counts how many other
    failures of the same run surely come from a commit: one cause often shows in many ways."""
    if not commits:
        return []
    mentions = collect_mentions(failure)
    paths = dict.fromkeys(change.path for commit in commits for change in commit.files)
    ranked = {
        candidate.candidate: candidate
        for candidate in rank_candidates(mentions, list(paths)[:_MOST_PATHS])
    }
    touched = [lead for commit in commits if (lead := _score_by_files(repository, commit, ranked))]
    touched.sort(key=lambda lead: -lead.score)
    near = touched[:MAX_INSPECTED]
    near += _list_code_changes(
        repository, commits, {lead.commit.hash for lead in touched}, mentions
    )
    near = near[:MAX_INSPECTED]
    look = _CommitInspection(failure, mentions, repository, rev, ranked, accused)
    look.read_commits([lead.commit for lead in near])
    found = [lead for candidate in near if (lead := look.inspect(candidate)).score > _CODE]
    return sorted(found, key=lambda lead: -lead.score) + touched[MAX_INSPECTED:]


def _score_by_files(
    repository: Repository,
    commit: Commit,
    ranked: Mapping[str, RankedSuspect],
    among: Collection[str] | None = None,
) -> CulpritLead | None:
    """Each further file that the failure points at makes a commit a little likelier."""
    paths = [change.path for change in commit.files if among is None or change.path in among]
    hits = [ranked[path] for path in paths if path in ranked]
    if not hits:
        return None
    hits.sort(key=lambda hit: (-hit.score, hit.candidate))
    score = hits[0].score
    for hit in hits[1:_MOST_FILES]:
        score = _add_evidence(score, hit.score * _FURTHER)
    clues = ", ".join(_CLUE_TEXT.get(clue, clue) for clue in hits[0].why.split(", "))
    why = f"it changed {hits[0].candidate} ({clues})"
    return CulpritLead(repository.name, commit, round(score, 4), (why,), hits[0].candidate)


def _list_code_changes(
    repository: Repository, commits: Sequence[Commit], known: Collection[str], mentions: Mentions
) -> Iterator[CulpritLead]:
    """Changes of the product's code that no name or place points at; their words may."""
    languages = {
        detect_language(frame.file) for frame in (*mentions.frames, *mentions.other_frames)
    } - {""}
    for commit in commits:
        code = [
            change.path
            for change in commit.files
            if (language := detect_language(change.path))
            and (not languages or language in languages)
            and not is_test_name(change.path)
            and not is_auxiliary(change.path)
        ]
        if code and commit.hash not in known:
            yield CulpritLead(repository.name, commit, _CODE, (f"it changed {code[0]}",), code[0])


class _CommitInspection:
    """A close look at the few likeliest commits, side by side."""

    def __init__(
        self,
        failure: Failure,
        mentions: Mentions,
        repository: Repository,
        rev: str,
        ranked: Mapping[str, RankedSuspect],
        accused: Mapping[str, int],
    ) -> None:
        self._repository = repository
        self._ranked = ranked
        self._accused = accused
        self._scene = FailureScene(failure, mentions, repository, rev)
        self._changed: dict[str, CommitProfile] = {}
        self._spread: Counter[str] = Counter()

    def read_commits(self, commits: Sequence[Commit]) -> None:
        self._changed = {
            profile.hash: CommitProfile(self._repository, profile) for profile in commits
        }
        for profile in self._changed.values():
            self._spread.update(
                (self._scene.words & profile.words) | self._scene.find_common_words(profile)
            )
            self._spread.update(f"{name}()" for name in self._scene.test_words & profile.functions)
            self._spread.update(f"{part}-" for part in self._scene.test_name_parts & profile.parts)

    def inspect(self, lead: CulpritLead) -> CulpritLead:
        changed = self._changed[lead.commit.hash]
        if not changed.nature.is_behavioural:
            return _weaken(lead, _INERT, f"but it alters no behaviour: {changed.nature.why}")
        if changed.is_whole and lead.path not in changed.paths:
            found = _score_by_files(self._repository, lead.commit, self._ranked, changed.paths)
            if found is None:
                return _weaken(lead, _INERT, "but it alters no behaviour there")
            lead = found
        lead = self._adjust_for_place(lead, changed)
        score, why = lead.score, list(lead.why)
        is_near = lead.score > _CODE
        clues = [*self._find_clues(lead.commit.hash, changed, is_near)]
        # A few words in common are no reason to join what others say; nor is a name, where
        # something broke by itself and its stack shows where.
        if is_near and (self._scene.is_check or lead.path in self._scene.places):
            clues += self._find_accusations(lead.commit.hash)
        for clue, reason in clues:
            score = _add_evidence(score, clue)
            why.append(reason)
        is_placed = lead.path in self._scene.places
        return msgspec.structs.replace(
            lead, score=round(score, 4), why=tuple(why), is_placed=is_placed
        )

    def _adjust_for_place(self, lead: CulpritLead, changed: CommitProfile) -> CulpritLead:
        """Less where it changed the file, but not the place. A merge does not say where."""
        close = self._scene.find_written_location(
            lead.commit.hash, changed
        ) or self._scene.find_changed_location(changed)
        if close or not changed.is_whole:
            return lead
        if changed.only_tests and lead.path not in self._scene.helpers:
            return _weaken(lead, _OTHER_TEST, "but it leaves the failing test alone")
        if is_test_name(lead.path) and (product := changed.product_paths):
            found = _score_by_files(self._repository, lead.commit, self._ranked, product)
            path = min(product)
            lead = found or CulpritLead(
                lead.repo, lead.commit, _CODE, (f"it changed {path}",), path
            )
        if lead.path in self._scene.places and not changed.changes_top_level(lead.path):
            return _weaken(lead, _ELSEWHERE, "but elsewhere in the file")
        others = max(0, len(changed.product_paths) - 1)
        return msgspec.structs.replace(lead, score=lead.score * _BROAD / (_BROAD + others))

    def _find_clues(
        self, commit: str, changed: CommitProfile, is_near: bool
    ) -> Iterator[tuple[float, str]]:
        if spot := self._scene.find_written_location(commit, changed):
            last = self._scene.is_break(spot)
            which = "the line that failed" if last else "a line of the stack"
            yield (_WROTE_LAST if last else _WROTE), f"it wrote {which}, {spot.path}:{spot.line}"
        if near := self._scene.find_changed_location(changed):
            depth = self._scene.locations.index(near) + 1 if self._scene.is_check else 1
            place = f"{near.path}:{near.line}"
            yield _BESIDE / depth, f"it changed lines beside {place}, which is in the stack"
        # A word that every change uses means nothing; one that only this change uses means much.
        shared_words = self._scene.words & changed.words
        share = _WORDY / (_WORDY + len(changed.words))
        yield from self._score_shared_words(
            shared_words, "it speaks of", _SHARED_WORD * share, _MOST_SHARED_WORD
        )
        called = self._scene.test_words & changed.functions
        share = _BROAD / (_BROAD + len(changed.functions)) * (1.0 if is_near else _FAR)
        yield from self._score_shared_words(
            called, "the test names what it changed:", _CALLED * share, _MOST_CALLED, "()"
        )
        own = self._scene.find_common_words(changed) - shared_words - called
        share = _WORDY / (_WORDY + len(changed.product_words))
        yield from self._score_shared_words(
            own, "it changed code about", _TESTED * share, _MOST_TESTED
        )
        rest = (self._scene.test_name_parts & changed.parts) - shared_words - called - own
        yield from self._score_shared_words(
            rest, "it shares parts of names with the test:", _PART * share, _MOST_PART, "-"
        )
        if name := next(filter(changed.removes_name, self._scene.missing_names), ""):
            yield _DROPPED, f"it took away {name}, which is missed"
        elif text := next(filter(changed.contains_text, self._scene.quotes), ""):
            clue = _QUOTED_LONG if len(text) >= _LONG and " " in text else _QUOTED
            yield clue, f"it changed the text {text!r}"

    def _find_accusations(self, commit: str) -> Iterator[tuple[float, str]]:
        if count := self._accused.get(commit, 0):
            others = "another finding suspects" if count == 1 else f"{count} other findings suspect"
            yield min(_MOST_ACCUSED, _ACCUSED * count), f"{others} it too"

    def _score_shared_words(
        self, words: Iterable[str], what: str, weight: float, most: float, mark: str = ""
    ) -> Iterator[tuple[float, str]]:
        weights = {word: weight / self._spread[word + mark] ** 2 for word in words}
        if weights and (total := min(most, sum(weights.values()))) > _FAINT:
            named = sorted(weights, key=lambda word: (-weights[word], word))[:4]
            yield total, f"{what} {', '.join(named)}"


def _weaken(lead: CulpritLead, share: float, why: str) -> CulpritLead:
    return msgspec.structs.replace(lead, score=round(lead.score * share, 4), why=(*lead.why, why))


def _add_evidence(score: float, clue: float) -> float:
    return 1 - (1 - score) * (1 - clue)
