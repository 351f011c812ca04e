"""What a commit changed, as words and places that a failure may mention.

Only hunks that can alter behaviour count. Changes of tests and of the product are kept apart: a
test mentions what it tests, and so do its neighbours in the same file. Words that every failure
uses (the vocabulary of assertions) are left out.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from interlock.rca.analyst.names import COMMON_WORDS
from interlock.rca.analyst.stack import is_test_name
from interlock.rca.sources.git.change import BEHAVIOUR, ChangeNature, Hunk
from interlock.rca.sources.git.history import Commit
from interlock.rca.sources.git.repository import Repository

_NOISE_TEXT = """assert asserts assertion assertions assertionerror equal equals strictly strict
deep deeply expect expects expected received actual got tobe toequal object objects true false none
null undefined nan function func self this return returns value values type types typeerror
valueerror keyerror runtimeerror attributeerror error errors throw throws raise raises raised called
call instance string str int bool list dict array length more than with that from into have been
must when then where what which will would could only same differ differs different contains include
import describe test tests await async const class void public static final
skipping identical leading trailing characters diff show full
"""
_NOISE = frozenset(_NOISE_TEXT.split()) | COMMON_WORDS
_WORD = re.compile(r"[A-Za-z_]\w*")
_WORD_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_QUOTED = re.compile(r"'([^'\n]{6,80})'|\"([^\"\n]{6,80})\"|`([^`\n]{6,80})`")
_MISSED = re.compile(
    r"name '(\w+)' is not defined|has no (?:attribute|member) '(\w+)'|cannot import name '(\w+)'"
    r"|unexpected keyword argument '(\w+)'|(\w+) is not (?:defined|a function)\b"
    r"|undefined (?:method|local variable or method) [`'](\w+)'|undefined: (\w+)"
)
_BEGINS = re.compile(
    r"\s*(?:(?:async )?def test|(?:it|test|specify|scenario)(?:\.\w+)*\s*\(|fn \w|func Test|@Test\b"
    r"|(?:public |private )?(?:static )?void \w+\(|fun `?\w|(?:it|test|specify) ['\"])"
)
_DEFINITION = re.compile(r"\s*(?:async )?def \w|\s*(?:export )?(?:async )?function\b")
_MOST_LINES = 60
_STATEMENT = 3
"""A trace names the first line of a statement; so many more may belong to it, or all that its
brackets hold."""
_MOST_ROWS = 200
_NAMED_ROW = re.compile(r"\[(.+)\]$", re.DOTALL)
_COUNTED = re.compile(r"[A-Za-z_]+\d+|None|True|False|")
"""What stands in a test's name for a value that has no short form."""


def stem_words(words: Iterable[str]) -> frozenset[str]:
    """The words that mean something, whatever their case and number."""
    plain = (word.lower().strip("_") for word in words)
    return frozenset(
        word.removesuffix("s") for word in plain if len(word) > 3 and word not in _NOISE
    )


def split_into_stems(words: Iterable[str]) -> frozenset[str]:
    """What names are made of, as stems."""
    return stem_words(piece for word in words for piece in _WORD_PART.findall(word))


def extract_message_words(text: str) -> frozenset[str]:
    """The words of a message."""
    return stem_words(_WORD.findall(text[:4_000]))


def find_quotes(text: str) -> list[str]:
    """What a message quotes, the longest first: values that were met or missed."""
    found = {next(filter(None, groups)) for groups in _QUOTED.findall(text[:4_000])}
    telling = {quote for quote in found if re.search(r"[A-Za-z]{3}", quote)}
    return sorted(telling, key=lambda quote: (-len(quote), quote))[:10]


def find_missing_names(text: str) -> list[str]:
    """The names that a message says are not there."""
    found = [next(filter(None, groups)) for groups in _MISSED.findall(text[:4_000])]
    return list(dict.fromkeys(found))[:10]


class SourceExcerpt(msgspec.Struct, frozen=True):
    """The part of a test's source that was reached: its lines, and the words in them. `rows` are
    lines above it that hold the values it was run with."""

    first: int
    last: int
    words: frozenset[str]
    rows: tuple[int, ...] = ()


def find_excerpt(source: bytes | None, line: int, test_name: str = "") -> SourceExcerpt:
    """The test or function whose source holds that line, from where it begins to there."""
    lines = (source or b"").decode("utf-8", "replace").split("\n")
    if not 0 < line <= len(lines):
        return SourceExcerpt(line, line, frozenset())
    first, last = _find_start(lines, line - 1), _find_end(lines, line)
    text = "\n".join(row[:500] for row in lines[first:last])
    return SourceExcerpt(
        first + 1, last, stem_words(_WORD.findall(text)), _find_value_rows(lines, first, test_name)
    )


def _find_start(lines: Sequence[str], at: int) -> int:
    """Where the test begins, or the function that the line is in."""
    first = at
    while first > max(0, at + 1 - _MOST_LINES) and not _BEGINS.match(lines[first]):
        if _DEFINITION.match(lines[first]) and _measure_indent(lines[first]) < _measure_indent(
            lines[at]
        ):
            break
        first -= 1
    return first


def _find_end(lines: Sequence[str], line: int) -> int:
    last, left = line, _count_open_brackets(lines[line - 1])
    while last < min(len(lines), line + _MOST_LINES) and (
        left > 0 or (last < line + _STATEMENT and lines[last].strip())
    ):
        left += _count_open_brackets(lines[last])
        last += 1
    return last


def _find_value_rows(lines: Sequence[str], first: int, test_name: str) -> tuple[int, ...]:
    """Lines of the decorators above a test that hold all values in its name."""
    named = _NAMED_ROW.search(test_name)
    values = (
        [value for value in named[1].split("-") if not _COUNTED.fullmatch(value)] if named else []
    )
    found: list[int] = []
    for at in range(first - 1, max(-1, first - 1 - _MOST_ROWS), -1):
        if not lines[at].strip() or not values:
            break
        if all(value in lines[at] for value in values):
            found.append(at + 1)
    return tuple(found)


def _count_open_brackets(line: str) -> int:
    """How many brackets it opens and leaves open."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_MOST_TEXT = 100_000
_LONGEST, _LONGEST_HEADING = 1_000, 200
_MOVED_LINES, _SAME = 5, 0.8
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


def is_auxiliary(path: str) -> bool:
    return bool(_ASIDE.search(path))


class CommitProfile:
    """One commit, read once."""

    def __init__(self, repository: Repository, commit: Commit) -> None:
        self.hash = commit.hash
        change = repository.read_change(commit)
        self.nature = change.nature
        self.is_whole = change.whole
        gone = {line.strip() for hunk in change.hunks for line in hunk.removed}
        hunks = [
            hunk for hunk in change.hunks if hunk.nature == BEHAVIOUR and not _is_moved(hunk, gone)
        ]
        ours = [hunk for hunk in hunks if not is_auxiliary(hunk.path)]
        product = [hunk for hunk in ours if not is_test_name(hunk.path)]
        self.paths = frozenset(hunk.path for hunk in hunks)
        """Files that it changed in more than words and spaces."""
        self.product_paths = frozenset(hunk.path for hunk in product)
        self.only_tests = bool(ours) and not product
        self._hunks = hunks
        brought = _find_changed_words(product or hunks)
        self.words = stem_words(brought) | stem_words(re.findall(r"\w+", commit.subject))
        self.product_words = stem_words(_find_changed_words(product)) | stem_words(
            _find_surrounding_words(product)
        )
        self.line_words = stem_words(_find_words(_list_lines(product)))
        functions = frozenset(name for hunk in product for name in _find_functions(hunk))
        self.functions = stem_words(functions)
        """Functions of the product in which lines were changed."""
        self.parts = split_into_stems(_find_words(_list_lines(product)) | functions)
        self._text = "\n".join(_list_lines(product))[:_MOST_TEXT]
        if self.nature.is_behavioural and _is_only_rename(commit, _find_changed_words(hunks)):
            self.nature = ChangeNature("moved", "it only follows a file to its new name")

    def touches_file(self, path: str) -> bool:
        """Whether it altered the file, as far as it is known; lines may have come from another."""
        return path in self.paths or not self.is_whole

    def changes_top_level(self, path: str) -> bool:
        """Whether something changed there that all of the file shares: what stands in nothing."""
        lines = (
            line
            for hunk in self._hunks
            if hunk.path == path
            for line in (*hunk.removed, *hunk.added)
        )
        return any(_SHARED.match(line) for line in lines)

    def changes_function(self, path: str, function: str) -> bool:
        """Whether something changed in that function."""
        name = function.rpartition(".")[2]
        return bool(name) and any(
            hunk.path == path and name in _find_functions(hunk) for hunk in self._hunks
        )

    def changes_lines(self, path: str, first: int, last: int) -> bool:
        """Whether something changed in these lines."""
        return any(
            hunk.path == path and hunk.first <= last and first <= hunk.last for hunk in self._hunks
        )

    def removes_name(self, name: str) -> bool:
        """Whether it took a name away more often than it put it in."""
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        gone = sum(len(pattern.findall(line)) for hunk in self._hunks for line in hunk.removed)
        return gone > sum(len(pattern.findall(line)) for hunk in self._hunks for line in hunk.added)

    def contains_text(self, text: str) -> bool:
        """Whether it put that text in, or took it away."""
        return text in self._text


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
    return frozenset(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)[:_MOST_TEXT]))


def _is_only_rename(commit: Commit, brought: frozenset[str]) -> bool:
    renamed = {
        name.rpartition("/")[2].partition(".")[0]
        for change in commit.files
        if change.old
        for name in (change.path, change.old)
    }
    return bool(renamed) and brought <= renamed
