"""What a commit changed, as words and places that a failure may speak of.

Only hunks that can alter behaviour count. Changes of tests and changes of the product are told
apart: a test speaks of what it tests, and its neighbours in the same file do too.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from interlock.rca.analyst.culprit_words import parts, stems
from interlock.rca.analyst.ownership import looks_tested
from interlock.rca.sources.git.change import BEHAVIOUR, Hunk, Nature
from interlock.rca.sources.git.git_log import Commit
from interlock.rca.sources.git.repository import Repository

_MOST_TEXT = 100_000
_LONGEST, _LONGEST_HEADING = 1_000, 200
_PIECE, _SAME = 5, 0.8
"""So many lines are a piece, and moved if so much of it is the same."""
_ASIDE = re.compile(r"(?:^|/)(?:examples?|benchmarks?|docs?|scripts|website|\.github)/")
"""Folders whose code no test of the product runs."""
_FUNCTION = re.compile(
    r"^(?!(?:[a-z]+ )*class\b)(?:.*\b(?:def|func|function|fn|fun)[ *]+(?:\([^)]*\) *)?)?"
    r"(?:[\w$.<>\[\], ]+[ .&*])?(\w+)\s*(?:\(|=(?!=))"
)
"""The name in the heading of a function."""
_SHARED = re.compile(r"(?:(?:export )?(?:const|let|var|static|final) )?\w+(?:: ?[\w\[\], ]+)? = ")
"""A value that is given a name outside of everything."""
_HEADING = re.compile(
    r"\s*(?:@\w|(?:export |default |public |private |protected |static |async |pub )*"
    r"(?:def|class|func|function|fn|fun|interface|struct|enum|impl)\b"
    r"|(?:export )?(?:const|let|var) \w+ = (?:async )?(?:function|\())"
)


def is_aside(path: str) -> bool:
    return bool(_ASIDE.search(path))


class Changed:
    """One commit, read once."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        self.hash = commit.hash
        change = repository.change_of(commit)
        self.nature = change.nature
        self.whole = change.whole
        gone = {line.strip() for hunk in change.hunks for line in hunk.removed}
        hunks = [
            hunk for hunk in change.hunks if hunk.nature == BEHAVIOUR and not _moved(hunk, gone)
        ]
        ours = [hunk for hunk in hunks if not is_aside(hunk.path)]
        product = [hunk for hunk in ours if not looks_tested(hunk.path)]
        self.paths = frozenset(hunk.path for hunk in hunks)
        """Files that it changed in more than words and spaces."""
        self.product_paths = frozenset(hunk.path for hunk in product)
        self.only_tests = bool(ours) and not product
        self._hunks = hunks
        brought = _brought(product or hunks)
        self.words = stems(brought) | stems(re.findall(r"\w+", commit.subject))
        self.product_words = stems(_brought(product)) | stems(_around(product))
        self.line_words = stems(_words(_lines(product)))
        functions = frozenset(name for hunk in product for name in _functions(hunk))
        self.functions = stems(functions)
        """Functions of the product in which lines were changed."""
        self.parts = parts(_words(_lines(product)) | functions)
        self._text = "\n".join(_lines(product))[:_MOST_TEXT]
        if self.nature.behavioural and _only_follows(commit, _brought(hunks)):
            self.nature = Nature("moved", "it only follows a file to its new name")

    def touches(self, path: str) -> bool:
        """Whether it altered the file, as far as it is told; lines may have come from another."""
        return path in self.paths or not self.whole

    def on_top(self, path: str) -> bool:
        """Whether something changed there that all of the file shares: what stands in nothing."""
        lines = (
            line
            for hunk in self._hunks
            if hunk.path == path
            for line in (*hunk.removed, *hunk.added)
        )
        return any(_SHARED.match(line) for line in lines)

    def inside(self, path: str, function: str) -> bool:
        """Whether something changed in that function."""
        name = function.rpartition(".")[2]
        return bool(name) and any(
            hunk.path == path and name in _functions(hunk) for hunk in self._hunks
        )

    def within(self, path: str, first: int, last: int) -> bool:
        """Whether something changed in these lines."""
        return any(
            hunk.path == path and hunk.first <= last and first <= hunk.last for hunk in self._hunks
        )

    def drops(self, name: str) -> bool:
        """Whether it took a name away more often than it put it in."""
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        gone = sum(len(pattern.findall(line)) for hunk in self._hunks for line in hunk.removed)
        return gone > sum(len(pattern.findall(line)) for hunk in self._hunks for line in hunk.added)

    def holds(self, text: str) -> bool:
        """Whether it put that text in, or took it away."""
        return text in self._text


def _moved(hunk: Hunk, gone: Collection[str]) -> bool:
    """Whether it only puts in, in one piece, lines that the commit took away elsewhere."""
    added = [line.strip() for line in hunk.added if line.strip()]
    known = sum(line in gone for line in added)
    return not hunk.removed and len(added) >= _PIECE and known >= _SAME * len(added)


def _lines(hunks: Iterable[Hunk]) -> Iterator[str]:
    for hunk in hunks:
        yield from _written((*hunk.removed, *hunk.added))


def _written(lines: Iterable[str]) -> Iterator[str]:
    """Without lines that no one writes: they are generated, and would speak of anything."""
    return (line for line in lines if len(line) <= _LONGEST)


def _brought(hunks: Iterable[Hunk]) -> frozenset[str]:
    """Words that came or went; one of a line that only moved did neither."""
    found = list(hunks)
    came = _words(_written(line for hunk in found for line in hunk.added))
    return came ^ _words(_written(line for hunk in found for line in hunk.removed))


def _around(hunks: Iterable[Hunk]) -> frozenset[str]:
    """Words of the changed lines and of the functions they are in, whether new or not."""
    found = list(hunks)
    return _words(hunk.inside for hunk in found) | _words(_lines(found))


def _functions(hunk: Hunk) -> Iterator[str]:
    """The functions that were changed: the one it is in, unless something else begins there, and
    those whose heading it changed or took away. Classes hold too much to tell anything."""
    lines = [line for line in (*hunk.removed, *hunk.added) if line.strip()]
    begins = bool(lines) and _HEADING.match(lines[0])
    headings = [line for line in hunk.removed if _HEADING.match(line)]
    for heading in (*headings, *(() if begins else (hunk.inside,))):
        if found := _FUNCTION.search(heading.strip()[:_LONGEST_HEADING]):
            yield found[1]


def _words(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)[:_MOST_TEXT]))


def _only_follows(commit: Commit, brought: frozenset[str]) -> bool:
    renamed = {
        name.rpartition("/")[2].partition(".")[0]
        for each in commit.files
        if each.old
        for name in (each.path, each.old)
    }
    return bool(renamed) and brought <= renamed
