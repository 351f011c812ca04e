"""The scene of a failure: what it says of the code, read once for all commits held against it.

Places of the stack with who wrote their lines; the failing test's own source; the files that test
uses, and the functions that it calls, one and two steps on; the words of the message; the
dependencies it speaks of.
"""

import math
import re
from collections import Counter
from functools import cached_property, partial
from itertools import takewhile

from interlock.system.file_kinds import is_document
from interlock.system.text import plural
from interlock_rca.analyst.change_words import (
    SourceExcerpt,
    extract_message_words,
    find_excerpt,
    find_missing_names,
    find_quotes,
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
from interlock_rca.analyst.definitions import CodeBodies
from interlock_rca.analyst.imports import ImportGraph
from interlock_rca.analyst.line_kinds import find_complaints
from interlock_rca.analyst.manifests import collect_dependency_mentions
from interlock_rca.analyst.mentions import Mentions
from interlock_rca.analyst.names import detect_language, find_subject, split_camel_case
from interlock_rca.analyst.stack import (
    Frame,
    StackLocation,
    extract_message,
    is_library,
    is_test_frame,
    is_test_name,
    locate_frames,
)
from interlock_rca.analyst.suspects import rank_candidates
from interlock_rca.analyst.test_source import TestSource, find_test_source
from interlock_rca.analyst.triage import is_failed_check
from interlock_rca.records import Failure
from interlock_rca.sources.git.repository import Repository

_BLAMED_FRAMES = 4
_MOST_REACHED = 4
"""So many stretches of lines are asked about who wrote them."""
_NEAR = 10
"""So many lines from a place of the stack are beside it."""
_CALL = re.compile(r"([^\W\d][\w$]*)\s*\(")
_COMPOUND = re.compile(r"[^\W_][_-][^\W_]|[a-z][A-Z]")
_MARK = re.compile(r"[._-](?:tests?|specs?|e2e|cy)$", re.IGNORECASE)
_MOST_WRITERS = 2
_MOST_CALLED = 400
CALL_STEPS = 8
_MOST_COMPLAINTS = 12
_MOST_SAID = 20_000
_SHORTEST_NAME = 5
_MOST_BEHIND = 2_000
_CLEARLY_NAMED = 0.5
_FEW_USES = 5
"""A test that uses more files by itself is not explained by what these use."""


class FailureScene:
    """Of one failure."""

    def __init__(
        self, failure: Failure, mentions: Mentions, repository: Repository, rev: str
    ) -> None:
        self._failure = failure
        self._mentions = mentions
        self._repository = repository
        self._rev = rev
        self.is_check = is_failed_check(failure)
        """Whether a test's own check failed, and nothing broke by itself."""
        self.locations = locate_frames(failure, repository, rev)[:_BLAMED_FRAMES]
        self.places = {spot.path for spot in self.locations}
        self._tests = [spot for spot in self.locations if spot.is_test]
        self.test = find_test_source(failure, repository, rev, self.locations) or TestSource("")
        outermost = max(self._tests, key=lambda spot: spot.depth).path if self._tests else ""
        self.helpers = {spot.path for spot in self._tests} - {outermost}
        """Files of tests that the failing one only uses."""
        self.message = extract_message(failure)
        self._said = f"{self.message}\n{failure.stack[-_MOST_SAID:]}\n{failure.log[-_MOST_SAID:]}"
        self._product_functions = _find_product_functions(mentions)
        self.words = extract_message_words(self.message) | stem_words(self._product_functions)
        complaints = "\n".join(find_complaints(failure.log)[-_MOST_COMPLAINTS:])
        self.log_words = extract_message_words(complaints) - self.words
        """Of what the log of the test complains about."""
        self.quotes = find_quotes(self.message)
        self.missing_names = find_missing_names(self.message)
        """Names that the message says are not there."""
        self._nearby_lines = {spot: self._find_nearby_lines(spot) for spot in self.locations}
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

    # The failing test, and what it uses

    @cached_property
    def test_words(self) -> frozenset[str]:
        """What the failing test is about."""
        named = re.findall(r"\w+", _drop_folders(self._mentions.test_name))
        return stem_words(named) | stem_words(list_words(self.test.body))

    @cached_property
    def spellings(self) -> dict[str, str]:
        """How the failure and its test write the words that are compared by their stems."""
        found: dict[str, str] = {}
        for text in (self.test.body, self._mentions.test_name, self._said):
            counts = Counter(re.findall(r"[^\W\d]\w*", text))
            for word in sorted(counts, key=lambda word: (-counts[word], word)):
                found.update({stem: word for stem in stem_words([word]) if stem not in found})
        return found

    @cached_property
    def part_spellings(self) -> dict[str, str]:
        """The same for the parts of the test's name."""
        parts = split_camel_case(_drop_folders(self._mentions.test_name))
        return {stem: part.lower() for part in reversed(parts) for stem in stem_words([part])}

    @cached_property
    def _graph(self) -> ImportGraph:
        return self._repository.keep("imports", self._rev, ImportGraph)

    @cached_property
    def reach(self) -> dict[str, int]:
        """Files that the failing test uses, by the steps that takes; itself at 0."""
        start = dict.fromkeys([self.test.path, *(spot.path for spot in self._tests)])
        return self._graph.find_reach([path for path in start if path])

    def is_own_name(self, name: str) -> bool:
        """Whether code of this repository is called so: a file, or the folder of a package."""
        return any(detect_language(path) for path in self._graph.find_by_stem(name.casefold()))

    def find_use_between(self, path: str) -> str:
        """The file through which the failing test comes to use one that is two steps away; empty
        if it is further, or if the test uses too much for that to say anything."""
        if self.reach.get(path) != 2 or self.direct_uses > _FEW_USES:
            return ""
        return next(
            (
                each
                for each, step in self.reach.items()
                if step == 1 and path in self._graph.list_imports(each)
            ),
            "",
        )

    @cached_property
    def direct_uses(self) -> int:
        """How many files of the product the test uses by itself."""
        return sum(step == 1 and not is_test_name(path) for path, step in self.reach.items())

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

    @cached_property
    def _bodies(self) -> CodeBodies:
        return CodeBodies(self._graph.read_texts(list(self.reach)))

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
            for path in (self._graph.find_by_stem(self._subject) if self._subject else ())
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
        """What the failure is about: parts of names of its test and its message, each with a
        weight; rare ones in the code weigh more."""
        bags = [split_into_stems(names) for names in self._bodies.list_bodies()]
        known = count_spread(bags)
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
        self.rarity = {
            part: math.log((2 + len(bags)) / (1 + known[part])) for part in known | found
        }
        return found

    def measure_likeness(self, changed: CommitProfile) -> float:
        """How alike the failure and what was changed are: the cosine of their weighted names."""
        own = self.traits
        common = own.keys() & changed.traits.keys()
        if not common:
            return 0.0
        usual = math.log(2 + len(self._bodies.list_bodies()))
        rare = self.rarity
        dot = sum(own[part] * changed.traits[part] * rare.get(part, usual) ** 2 for part in common)
        one = math.sqrt(sum((own[part] * rare.get(part, usual)) ** 2 for part in own))
        other = math.sqrt(
            sum((weight * rare.get(part, usual)) ** 2 for part, weight in changed.traits.items())
        )
        return dot / (one * other) if one and other else 0.0

    @cached_property
    def calls(self) -> dict[str, int]:
        """Functions that the failure or its test names, or that these call, by steps; 0 are those
        in the stack or named in a plain assertion."""
        bodies = self._bodies
        named = {*self._product_functions, *_CALL.findall(self.message)}
        found = dict.fromkeys(bodies.keep_defined(named), 0)
        latest = bodies.keep_defined(self.test.names) - found.keys()
        for step in range(1, CALL_STEPS + 1):
            found.update(dict.fromkeys(sorted(latest)[:_MOST_CALLED], step))
            start = [name for name, at in found.items() if at in (step, 0)]
            latest = bodies.expand(start) - found.keys()
        return found

    def is_ambiguous(self, function: str) -> bool:
        """Whether several files that the test uses have a function of that name."""
        return self._bodies.is_ambiguous(function)

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

    # Places of the stack

    def _find_nearby_lines(self, spot: StackLocation) -> list[tuple[int, int]]:
        """The lines that count as beside a place: of a test, those of itself and its values."""
        if not spot.is_test:
            return [(max(1, spot.line - _NEAR), spot.line + _NEAR)]
        body = self._read_source(spot)
        return [(body.first, body.last), *((row, row) for row in body.rows)]

    def _read_source(self, spot: StackLocation) -> SourceExcerpt:
        entry = self._repository.read_entry(spot.path, self._rev)
        return find_excerpt(entry.content if entry else None, spot.line, self._mentions.test_name)

    def find_changed_location(self, changed: CommitProfile) -> StackLocation | None:
        """The first place of the stack at which something was changed. Who changes the product
        too has seen the tests that go with it pass: their checks are not held against it."""
        for spot, reach in self._nearby_lines.items():
            if spot.is_test and changed.product_paths:
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
        return None if spot.is_test and changed.product_paths else spot

    def is_break(self, spot: StackLocation) -> bool:
        """Whether it broke there, and is not only on the way."""
        return not self.is_check and spot.depth == min(
            location.depth for location in self.locations
        )

    def changes_test(self, changed: CommitProfile) -> bool:
        """Whether it changed the failing test itself."""
        test = self.test
        return bool(test.path and test.first) and changed.changes_lines(
            test.path, test.first, test.last
        )

    def find_common_words(self, changed: CommitProfile) -> frozenset[str]:
        """What the failure and the code that was changed are both about."""
        return (self.test_words & changed.product_words) | (self.words & changed.line_words)


def _drop_folders(test_name: str) -> str:
    """Some runners name a test by the place of its file: where that was checked out means
    nothing."""
    is_path = "/" in test_name and " " not in test_name and detect_language(test_name)
    return test_name.rpartition("/")[2] if is_path else test_name


def _find_product_functions(mentions: Mentions) -> frozenset[str]:
    """Functions of the product that are in the stack."""
    own = [frame for frame in mentions.frames if not is_library(frame, mentions.class_name)]
    names = {frame.function.rpartition(".")[2] for frame in own if not is_test_frame(frame)}
    return frozenset(name for name in names if len(name) > 2)


def count_spread(bags: list[frozenset[str]]) -> Counter[str]:
    """In how many of the bags each word is."""
    found: Counter[str] = Counter()
    for bag in bags:
        found.update(bag)
    return found
