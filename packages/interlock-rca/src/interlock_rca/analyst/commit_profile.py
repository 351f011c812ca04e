"""What a commit changed, as words, functions and places that a failure may mention.

Only hunks that can alter behaviour count. Changes of tests and of the product are kept apart: a
test mentions what it tests, and so do its neighbours in the same file.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock_rca.analyst.change_words import list_words, split_into_stems, stem_words
from interlock_rca.analyst.definitions import find_definitions, find_enclosing
from interlock_rca.analyst.manifests import (
    DependencyChange,
    is_manifest,
    read_dependency_changes,
)
from interlock_rca.analyst.names import detect_language
from interlock_rca.analyst.stack import is_test_name
from interlock_rca.sources.git.change import BEHAVIOUR, ChangeNature, ContentChange, Hunk
from interlock_rca.sources.git.history import ChangedFile, Commit
from interlock_rca.sources.git.repository import Repository

_MOST_TEXT = 100_000
_LONGEST, _LONGEST_HEADING = 1_000, 200
_MOVED_LINES, _SAME = 5, 0.8
"""So many lines are a piece, and moved if so much of it is the same."""
_ASIDE = re.compile(r"(?:^|/)_?(?:examples?|benchmarks?|docs?|scripts|website|\.github)/")
"""Folders whose code no test of the product runs."""
_FUNCTION = re.compile(
    r"^(?!(?:[a-z]+ )*class\b)(?:.*\b(?:def|func|function|fn|fun)[ *]+(?:\([^)]*\) *)?)?"
    r"(?:[\w$.<>\[\], ]+[ .&*])?(\w+)\s*(?:\(|=(?!=))"
)
"""The name in the heading of a function."""
_SUBMODULE = re.compile(r"Subproject commit [0-9a-f]{40,64}(?:-dirty)?")
_HEADING = re.compile(
    r"\s*(?:@\w|(?:export |default |public |private |protected |static |async |pub )*"
    r"(?:def|class|func|function|fn|fun|interface|struct|enum|impl)\b"
    r"|(?:export )?(?:const|let|var) \w+ = (?:async )?(?:function|\())"
)


def is_auxiliary(path: str) -> bool:
    return bool(_ASIDE.search(path))


class BroughtCode(msgspec.Struct, frozen=True):
    """Lines of the product that came with the failing test."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()

    @property
    def closeness(self) -> float:
        """How much it says that a test came with them: the more files there are, the less."""
        return _FEW_FILES / (_FEW_FILES + max(0, len(self.paths) - 1))


_FEW_FILES = 3


def read_brought_code(hunks: Iterable[Hunk]) -> BroughtCode:
    """The product's part of what came with a test."""
    product = [
        hunk
        for hunk in hunks
        if detect_language(hunk.path)
        and not is_test_name(hunk.path)
        and not is_auxiliary(hunk.path)
        and hunk.nature == BEHAVIOUR
    ]
    return BroughtCode(
        frozenset(line.strip() for hunk in product for line in hunk.added if is_telling(line)),
        frozenset(line.strip() for hunk in product for line in hunk.removed if is_telling(line)),
        frozenset(hunk.path for hunk in product),
    )


def is_telling(line: str) -> bool:
    """Whether a line is more than brackets and keywords that stand everywhere."""
    return len(re.findall(r"\w+", line)) > 1 and len(line.strip()) > _SHORT_LINE


_SHORT_LINE = 8
Paths = Mapping[str, str]
"""Files that were renamed later, by the name they had then: what they are called now."""
_MOST_SOURCES = 12
"""So many files of one commit are read to see which functions it changed."""


def read_profiles(
    repository: Repository, commits: Sequence[Commit], renamed: Mapping[str, Paths]
) -> dict[str, "CommitProfile"]:
    """The commits, each read once; `renamed` has of each commit the files that were renamed after
    it."""
    changes = {commit.hash: repository.read_change(commit) for commit in commits}
    wanted = [
        (commit, path) for commit, change in changes.items() for path in _choose_sources(change)
    ]
    sources: dict[str, dict[str, str]] = {}
    for (commit, path), content in repository.read_versions(wanted).items():
        sources.setdefault(commit, {})[path] = content.decode("utf-8", "replace")
    return {
        commit.hash: CommitProfile(
            commit, changes[commit.hash], sources.get(commit.hash, {}), renamed.get(commit.hash, {})
        )
        for commit in commits
    }


def _choose_sources(change: ContentChange) -> list[str]:
    paths = dict.fromkeys(hunk.path for hunk in change.hunks)
    code = [path for path in paths if detect_language(path) and not is_test_name(path)]
    return code[:_MOST_SOURCES] + [path for path in paths if is_manifest(path)][:_MOST_SOURCES]


class CommitProfile:
    """One commit, read once. Paths are those that the files have now."""

    def __init__(
        self, commit: Commit, change: ContentChange, sources: Mapping[str, str], renamed: Paths
    ) -> None:
        self.hash = commit.hash
        self.nature = change.nature
        self.is_whole = change.whole
        self.breadth = len(commit.files) + commit.more
        """How many files it touched, tests and documents too."""
        self.dependencies: list[DependencyChange] = read_dependency_changes(
            _drop_foreign_manifests(change.hunks), sources
        )
        self.submodules = list(_read_submodules(change.hunks))
        gone = {line.strip() for hunk in change.hunks for line in hunk.removed}
        told = [
            hunk
            for hunk in change.hunks
            if hunk.nature == BEHAVIOUR and not _is_in_comment(hunk, sources.get(hunk.path, ""))
        ]
        self._functions_of = _find_changed_functions(told, sources)
        hunks = [_rename(hunk, renamed) for hunk in told if not _is_moved(hunk, gone)]
        ours = [hunk for hunk in hunks if not is_auxiliary(hunk.path)]
        product = [
            hunk for hunk in ours if not is_test_name(hunk.path) and not is_manifest(hunk.path)
        ]
        self.paths = frozenset(hunk.path for hunk in hunks)
        """Files that it changed in more than words and spaces."""
        self.product_paths = frozenset(hunk.path for hunk in product)
        self.code_paths = frozenset(filter(detect_language, self.product_paths))
        self.only_tests = bool(ours) and all(is_test_name(hunk.path) for hunk in ours)
        self.gone_paths = frozenset(
            change.old or change.path for change in commit.files if change.kind in "DR"
        )
        """Files that are not there any more under the name they had."""
        self._hunks = hunks
        self._read_words(product)
        self.functions = self._list_functions(product, renamed)
        """Functions of the product in which lines were changed."""
        self.parts = split_into_stems(_find_words(_list_lines(product)) | self.functions)
        self.traits = _collect_traits(product, self.functions)
        """What its changed lines are made of: parts of names, with how much each counts."""
        if self.nature.is_behavioural and _is_only_rename(commit, hunks):
            self.nature = ChangeNature("moved", "it only follows a file to its new name")

    def _read_words(self, product: Sequence[Hunk]) -> None:
        self.product_words = stem_words(_find_changed_words(product)) | stem_words(
            _find_surrounding_words(product)
        )

    def _list_functions(self, product: Sequence[Hunk], renamed: Paths) -> frozenset[str]:
        laid_out = {renamed.get(path, path) for path in self._functions_of}
        headings = frozenset(
            # git names the function above a change, whether or not that has ended before it.
            name
            for hunk in product
            if hunk.path not in laid_out
            for name in _find_functions(hunk)
        )
        return headings | frozenset(
            name
            for path, names in self._functions_of.items()
            if not is_test_name(path) and not is_auxiliary(path)
            for name in names
        )

    def changes_lines(self, path: str, first: int, last: int) -> bool:
        """Whether something changed in these lines."""
        return any(
            hunk.path == path and hunk.first <= last and first <= hunk.last for hunk in self._hunks
        )

    def count_taken_back(self, brought: "BroughtCode") -> tuple[int, int]:
        """How many lines it changed that had been brought so, of how many of the product."""
        taken = total = 0
        for hunk in self._hunks:
            if hunk.path not in self.product_paths:
                continue
            for lines, known in ((hunk.removed, brought.added), (hunk.added, brought.removed)):
                telling = [line.strip() for line in lines if is_telling(line)]
                taken += sum(line in known for line in telling)
                total += len(telling)
        return taken, total


def _drop_foreign_manifests(hunks: Iterable[Hunk]) -> list[Hunk]:
    """Without what examples and documents are built with: no test of the product runs on that."""
    return [hunk for hunk in hunks if not (is_manifest(hunk.path) and is_auxiliary(hunk.path))]


class SubmoduleMove(msgspec.Struct, frozen=True):
    """A submodule that was set to another commit."""

    path: str
    old: str
    new: str


def _read_submodules(hunks: Iterable[Hunk]) -> Iterator[SubmoduleMove]:
    for hunk in hunks:
        lines = [*hunk.removed, *hunk.added]
        if len(hunk.removed) == len(hunk.added) == 1 and all(map(_SUBMODULE.fullmatch, lines)):
            old, new = (line.split()[2] for line in lines)
            yield SubmoduleMove(hunk.path, old, new)


def _collect_traits(hunks: Iterable[Hunk], functions: Iterable[str]) -> dict[str, float]:
    """Parts of the names in the changed lines, and of the functions and files these are in."""
    found: dict[str, float] = {}
    for hunk in hunks:
        for part in split_into_stems(_find_words(_drop_generated((*hunk.removed, *hunk.added)))):
            found[part] = found.get(part, 0.0) + 1.0
    counted = {part: 1 + math.log(count) for part, count in found.items()}
    places = [hunk.path.rpartition("/")[2].partition(".")[0] for hunk in hunks]
    for part in split_into_stems([*functions, *places]):
        counted[part] = counted.get(part, 0.0) + 1.0
    return counted


def _rename(hunk: Hunk, renamed: Paths) -> Hunk:
    path = renamed.get(hunk.path, hunk.path)
    return hunk if path == hunk.path else msgspec.structs.replace(hunk, path=path)


def _find_changed_functions(
    hunks: Iterable[Hunk], sources: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    """Of each file, the functions that lines were changed in, by the layout of its source."""
    definitions = {path: find_definitions(source) for path, source in sources.items()}
    found: dict[str, set[str]] = {}
    for hunk in hunks:
        known = definitions.get(hunk.path)
        if known:
            last = max(hunk.last, hunk.first + 1) if not hunk.added else hunk.last
            names = {each.name for each in find_enclosing(known, hunk.first, last)}
            found.setdefault(hunk.path, set()).update(names)
        for line in hunk.removed:  # what is gone is not in the source any more
            if _HEADING.match(line) and (head := _FUNCTION.search(line.strip()[:_LONGEST_HEADING])):
                found.setdefault(hunk.path, set()).add(head[1])
    return {path: frozenset(names) for path, names in found.items()}


def find_later_names(commits: Sequence[Commit]) -> dict[str, Paths]:
    """Of each commit, the files that a later one renamed, with the names they have now. The commits
    come newest first."""
    names: dict[str, str] = {}
    found: dict[str, Paths] = {}
    for commit in commits:
        if names:
            found[commit.hash] = names
        renamed = [change for change in commit.files if change.kind == "R" and change.old]
        if renamed and len(names) < _MOST_RENAMED:
            # A dict of its own: older commits must not see what this one adds for itself.
            names = {**names, **{each.old: names.get(each.path, each.path) for each in renamed}}
    return found


def rename_files(commit: Commit, renamed: Paths) -> Commit:
    """The commit with the names that its files have now."""
    if not any(change.path in renamed for change in commit.files):
        return commit
    files = tuple(
        ChangedFile(renamed.get(change.path, change.path), change.kind, change.old, change.same)
        for change in commit.files
    )
    return msgspec.structs.replace(commit, files=files)


_MOST_RENAMED = 5_000


def _is_in_comment(hunk: Hunk, source: str) -> bool:
    """Whether it only changed words inside of a comment, or of the text that documents a function,
    that begins before it and ends after it, in the source as the commit left it."""
    marks = _DOCUMENTING if detect_language(hunk.path) == "py" else ("/*", "*/")
    if not source or any(mark in line for line in (*hunk.removed, *hunk.added) for mark in marks):
        return False
    above = source.split("\n", hunk.first)[: hunk.first - bool(hunk.added)]
    at = next((at for at in reversed(range(len(above))) if any(m in above[at] for m in marks)), -1)
    if at < 0 or "*/" in above[at]:
        return False
    if "/*" in marks:
        return above[at].lstrip().startswith("/*")
    begins = re.match(r"\s*[rRuU]?(\"{3}|'{3})", above[at])
    heading = next((line for line in reversed(above[:at]) if line.strip()), ":").rstrip()
    return bool(begins) and above[at].count(begins[1] if begins else "") == 1 and heading[-1] == ":"


_DOCUMENTING = ('"""', "'''")


def _is_moved(hunk: Hunk, gone: Collection[str]) -> bool:
    """Whether it only puts in, in one piece, lines that the commit took away elsewhere."""
    added = [line.strip() for line in hunk.added if line.strip()]
    known = sum(line in gone for line in added)
    return not hunk.removed and len(added) >= _MOVED_LINES and known >= _SAME * len(added)


def _list_lines(hunks: Iterable[Hunk]) -> Iterator[str]:
    for hunk in hunks:
        yield from _drop_generated((*hunk.removed, *hunk.added))


def _drop_generated(lines: Iterable[str]) -> Iterator[str]:
    """Without lines that no one writes: they are generated, and would mention anything."""
    return (line for line in lines if len(line) <= _LONGEST)


def _find_changed_words(hunks: Iterable[Hunk]) -> frozenset[str]:
    """Words that came or went; one of a line that only moved did neither."""
    found = list(hunks)
    came = _find_words(_drop_generated(line for hunk in found for line in hunk.added))
    return came ^ _find_words(_drop_generated(line for hunk in found for line in hunk.removed))


def _find_surrounding_words(hunks: Iterable[Hunk]) -> frozenset[str]:
    """Words of the changed lines and of the functions they are in, whether new or not."""
    found = list(hunks)
    return _find_words(hunk.inside for hunk in found) | _find_words(_list_lines(found))


def _find_functions(hunk: Hunk) -> Iterator[str]:
    """The functions that were changed: the one it is in, unless something else begins there, and
    those whose heading it changed or took away. Classes hold too much to mean anything."""
    lines = [line for line in (*hunk.removed, *hunk.added) if line.strip()]
    begins = bool(lines) and _HEADING.match(lines[0])
    headings = [line for line in hunk.removed if _HEADING.match(line)]
    for heading in (*headings, *(() if begins else (hunk.inside,))):
        if found := _FUNCTION.search(heading.strip()[:_LONGEST_HEADING]):
            yield found[1]


def _find_words(lines: Iterable[str]) -> frozenset[str]:
    return list_words("\n".join(lines)[:_MOST_TEXT])


def _is_only_rename(commit: Commit, hunks: Iterable[Hunk]) -> bool:
    """Whether the changed lines are as before, but for the names of the files it renamed."""
    names = {
        name.rpartition("/")[2].partition(".")[0]: ""
        for change in commit.files
        if change.old
        for name in (change.path, change.old)
    }
    if not names:
        return False
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))))
    return all(
        [pattern.sub("", line) for line in hunk.removed]
        == [pattern.sub("", line) for line in hunk.added]
        for hunk in hunks
    )
