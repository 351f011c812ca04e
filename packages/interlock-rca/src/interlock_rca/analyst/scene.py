"""The scene of a failure: what it says of the code, read once for all commits held against it.

Files of the stack; the failing test's own source, and the code that came with it; the words of the
message; the dependencies it speaks of.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import takewhile

from interlock.system.file_kinds import is_document
from interlock.system.text import plural
from interlock_rca.analyst.change_words import (
    list_words,
    split_into_stems,
    stem_words,
)
from interlock_rca.analyst.commit_profile import (
    BroughtCode,
    CommitProfile,
    SubmoduleMove,
    read_brought_code,
)
from interlock_rca.analyst.manifests import collect_dependency_mentions
from interlock_rca.analyst.mentions import Mentions
from interlock_rca.analyst.names import FOLDERS_OWN, detect_language, find_subject, split_camel_case
from interlock_rca.analyst.stack import (
    Frame,
    extract_message,
    is_library,
    is_test_name,
    locate_frames,
)
from interlock_rca.analyst.suspects import rank_candidates
from interlock_rca.analyst.test_source import TestSource, find_test_source
from interlock_rca.analyst.triage import is_failed_check
from interlock_rca.records import Failure
from interlock_rca.sources.git.repository import Repository

_MOST_FRAMES = 4
_COMPOUND = re.compile(r"[^\W_][_-][^\W_]|[a-z][A-Z]")
_MARK = re.compile(r"[._-](?:tests?|specs?|e2e|cy)$", re.IGNORECASE)
_MOST_WRITERS = 2
_MOST_SAID = 20_000
_SHORTEST_NAME = 5
_MOST_BEHIND = 2_000
_CLEARLY_NAMED = 0.5


class FailureScene:
    """Of one failure."""

    def __init__(
        self, failure: Failure, mentions: Mentions, repository: Repository, rev: str
    ) -> None:
        self._mentions = mentions
        self._repository = repository
        self._rev = rev
        self.is_check = is_failed_check(failure)
        """Whether a test's own check failed, and nothing broke by itself."""
        self.locations = locate_frames(failure, repository, rev)[:_MOST_FRAMES]
        self.places = {spot.path for spot in self.locations}
        self.test = find_test_source(failure, repository, rev, self.locations) or TestSource("")
        self.message = extract_message(failure)
        self._said = f"{self.message}\n{failure.stack[-_MOST_SAID:]}\n{failure.log[-_MOST_SAID:]}"
        self.test_name_parts = split_into_stems(
            re.findall(r"[^\W\d]\w*", _drop_folders(mentions.test_name).partition("[")[0])
        )
        """The parts of its name."""
        frames = (*mentions.frames, *mentions.other_frames)
        self.dependencies = collect_dependency_mentions(
            (self.message, failure.stack, failure.log[-20_000:]),
            self._find_inner_libraries(),
            list_words(self.message),
        )
        self.languages = {detect_language(frame.file) for frame in frames} - {""}
        if not self.languages and self.test.path:
            self.languages = {detect_language(self.test.path)} - {""}

    def _find_inner_libraries(self) -> list[Frame]:
        """Frames of libraries in which it broke: those inside of our own. The runner and the
        assertions of a test are in every stack, and say nothing."""
        if self.is_check:
            return []
        is_foreign = partial(is_library, class_name=self._mentions.class_name)
        return list(takewhile(is_foreign, self._mentions.frames))

    def read_foreign_test(self, test: TestSource) -> None:
        """The failing test is in another repository: its words count here, too, its place doesn't.
        In which language that is written says nothing about this one."""
        self.test = TestSource("", body=test.body, focus=test.focus)
        if not self.locations:
            self.languages = set()

    # The failing test, and what it is about

    @cached_property
    def part_spellings(self) -> dict[str, str]:
        """The same for the parts of the test's name."""
        parts = split_camel_case(_drop_folders(self._mentions.test_name))
        return {stem: part.lower() for part in reversed(parts) for stem in stem_words([part])}

    @cached_property
    def brought(self) -> BroughtCode:
        """The product's code that came with the failing test: what the test was written for.
        Whoever changes that later is near to it."""
        test = self.test
        if not test.path or not test.first:
            return BroughtCode()
        first, last = test.rows if test.rows[0] else (test.first, test.last)
        writers = self._repository.find_line_origins(test.path, first, last, self._rev)
        hunks = [
            hunk
            for writer in writers[:_MOST_WRITERS]
            for hunk in self._repository.read_brought(writer, self._rev)
        ]
        return read_brought_code(hunks)

    @property
    def _paths_by_stem(self) -> Mapping[str, Sequence[str]]:
        return self._repository.keep("stems", self._rev, _list_by_stem)

    def is_own_name(self, name: str) -> bool:
        """Whether code of this repository is called so: a file, or the folder of a package."""
        return any(map(detect_language, self._paths_by_stem.get(name.casefold(), ())))

    @cached_property
    def _subject(self) -> str:
        """What the test's file is named after, in small letters."""
        stem = self.test.path.rpartition("/")[2].rpartition(".")[0]
        subject = find_subject(_MARK.sub("", stem)).casefold()
        return "" if subject == stem.casefold() else subject

    @cached_property
    def subjects(self) -> frozenset[str]:
        """Files of the product that the test's file is named after, by their names alone: those
        beside it, or else all."""
        folder = self.test.path.rpartition("/")[0]
        found = [
            path
            for path in (self._paths_by_stem.get(self._subject, ()) if self._subject else ())
            if detect_language(path) == detect_language(self.test.path) and not is_test_name(path)
        ]
        beside = [path for path in found if path.rpartition("/")[0] == folder]
        return frozenset(beside or found)

    def is_subject(self, path: str) -> bool:
        """Whether the test's file is named after that one, also if it is not there any more."""
        if path in self.subjects or self.subjects or not self._subject:
            return path in self.subjects
        stem = path.rpartition("/")[2].rpartition(".")[0].casefold()
        return stem == self._subject and detect_language(path) == detect_language(self.test.path)

    def names_file(self, path: str) -> bool:
        """Whether the failure names a file that is no source, by its whole name: a makefile, a
        schema, a table of settings; or without its ending, if that is no plain word."""
        name = path.rpartition("/")[2]
        if detect_language(path) or len(name) < _SHORTEST_NAME or is_document(path):
            return False
        stem = name.partition(".")[0]
        names = [name, stem] if _COMPOUND.search(stem) else [name]
        said = "|".join(map(re.escape, names))
        return re.search(rf"(?<![\w.-])(?:{said})(?![\w-])", self._said) is not None

    @cached_property
    def traits(self) -> dict[str, float]:
        """What the failure is about: parts of names of its test and its message, with weights."""
        sources = (
            (1.0, self.test.body),
            (1.5, self.test.focus),
            (1.5, _drop_folders(self._mentions.test_name)),
            (1.0, self.message[:2_000]),
        )
        found: dict[str, float] = {}
        for weight, text in sources:
            for part in split_into_stems(list_words(text)):
                found[part] = max(found.get(part, 0.0), weight)
        return found

    def measure_likeness(self, changed: CommitProfile, rare: Callable[[str], float]) -> float:
        """Return how alike the failure and a change are: the cosine of their weighted names."""
        own, other = (
            {part: weight * rare(part) for part, weight in traits.items()}
            for traits in (self.traits, changed.traits)
        )
        dot = sum(own[part] * other[part] for part in own.keys() & other.keys())
        return dot / (math.hypot(*own.values()) * math.hypot(*other.values())) if dot else 0.0

    def judge_submodule(self, move: SubmoduleMove) -> tuple[float, str]:
        """How strongly the failure points into a submodule that was moved, and in which words."""
        behind = self._repository.list_submodule_commits(move.path, move.old, move.new)
        told = f"it moved the submodule {move.path} from {move.old[:10]} to {move.new[:10]}"
        if behind:
            told += f" ({plural(len(behind), 'commit')}, the newest {behind[0].subject!r})"
        frames = (*self._mentions.frames, *self._mentions.other_frames)
        if any(f"/{move.path}/" in f"/{frame.file}" for frame in frames):
            return 1.0, f"{told}, and the stack leads into it"
        files = [change.path for commit in behind for change in commit.files]
        best = next(iter(rank_candidates(self._mentions, files[:_MOST_BEHIND])), None)
        if best and best.score >= _CLEARLY_NAMED:
            return 0.8, f"{told}, which changed {best.candidate}, and that the failure points at"
        name = move.path.rpartition("/")[2]
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._said):
            return 0.6, f"{told}, which the failure names"
        return 0.1, told

    def changes_test(self, changed: CommitProfile) -> bool:
        """Whether it changed the failing test itself."""
        test = self.test
        return bool(test.path and test.first) and changed.changes_lines(
            test.path, test.first, test.last
        )


def _list_by_stem(repository: Repository, rev: str) -> Mapping[str, Sequence[str]]:
    """Return the files of each name, without its ending and its case; a file that stands for its
    folder is called like that."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(repository.list_files(rev).paths):
        folder, _, name = path.rpartition("/")
        stem = name.partition(".")[0].casefold()
        found[folder.rpartition("/")[2].casefold() if stem in FOLDERS_OWN else stem].append(path)
    return found


def _drop_folders(test_name: str) -> str:
    """Some runners name a test by the place of its file: where that was checked out means
    nothing."""
    is_path = "/" in test_name and " " not in test_name and detect_language(test_name)
    return test_name.rpartition("/")[2] if is_path else test_name


def count_spread(bags: list[frozenset[str]]) -> Counter[str]:
    """In how many of the bags each word is."""
    found: Counter[str] = Counter()
    for bag in bags:
        found.update(bag)
    return found
