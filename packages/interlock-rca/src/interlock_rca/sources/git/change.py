"""Classify a commit: a change of behaviour, or only a move, a reformat, or words.

Judges a diff by its text, hunk by hunk, without understanding the language: in doubt a change is
behaviour. Pure. Code moved between files counts as behaviour.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from interlock.system.file_kinds import (
    has_known_comments,
    is_comment,
    is_document,
    is_indent_significant,
)
from interlock_rca.sources.git.history import Commit

BEHAVIOUR = "behaviour"
UNKNOWN = "unknown"
_HEADING = re.compile(r"@@ -\S+ \+(\d+)\S* @@(.*)")
_STATEMENT = re.compile(
    r"\s*(?:(?:async )?def |class |return\b|@\w|raise |import |from \w|pass\s*$"
    r"|[\w.\[\]]+ ?[-+*/]?= |[\w.]+\()"
)
_DOCSTRING = re.compile(r"""r?(\"{3}|'{3})""")
_PIECES = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|\w+|\s+|.""")


class ChangeNature(msgspec.Struct, frozen=True):
    """The class of a change, and why: behaviour, moved, annotations, comments, whitespace,
    documents, merge, empty, or unknown."""

    kind: str
    why: str

    @property
    def is_behavioural(self) -> bool:
        """Return True if it may alter the program's behaviour. Unknown counts as yes."""
        return self.kind in (BEHAVIOUR, UNKNOWN)


class Hunk(msgspec.Struct, frozen=True):
    """Lines of a file that changed together; `first` and `last` are new line numbers."""

    path: str
    first: int
    last: int
    inside: str
    """The surrounding context by git, mostly a function's heading."""
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def nature(self) -> str:
        return _judge_hunk(self.path, self.removed, self.added)


class ContentChange(msgspec.Struct, frozen=True):
    """The contents of a commit. `is_whole` is False if hunks are missing."""

    nature: ChangeNature
    hunks: tuple[Hunk, ...] = ()
    whole: bool = False


def judge_by_files(commit: Commit) -> ChangeNature | None:
    """Classify a commit by its list of files alone; return None if that is not enough."""
    if not commit.files:
        if commit.parents > 1:
            return ChangeNature("merge", "a merge without changes of its own")
        if commit.parents:
            return ChangeNature("empty", "no file was changed")
        return ChangeNature(UNKNOWN, "history ends here: what it changed is not known")
    if commit.more:
        return ChangeNature(BEHAVIOUR, f"it changes {len(commit.files) + commit.more:,} files")
    if all(change.kind == "R" and change.same == 100 for change in commit.files):
        return ChangeNature("moved", "files were renamed or moved, their content is the same")
    if all(is_document(change.path) for change in commit.files):
        return ChangeNature("documents", "only documents were changed")
    return None


def judge_merge(diff: str) -> ChangeNature:
    """Classify a merge by its combined diff, which has hunks only where neither side was simply
    taken."""
    if "\n@@@" in diff:
        return ChangeNature(BEHAVIOUR, "a merge that changed lines on its own")
    return ChangeNature("merge", "a merge without changes of its own")


def judge_hunks(hunks: Iterable[Hunk]) -> ChangeNature:
    """Classify a commit by all of its hunks."""
    kinds = set()
    for hunk in hunks:
        kind = hunk.nature
        if kind == BEHAVIOUR:
            return ChangeNature(
                BEHAVIOUR, f"{hunk.path} was changed in more than spaces and comments"
            )
        kinds.add(kind)
    if "annotations" in kinds:
        return ChangeNature("annotations", "only types that are named for readers were changed")
    if "comments" in kinds:
        return ChangeNature("comments", "only comments and spaces were changed")
    if "whitespace" in kinds:
        return ChangeNature("whitespace", "only spaces and line breaks were changed")
    if "documents" in kinds:
        return ChangeNature("documents", "only documents were changed")
    return ChangeNature(UNKNOWN, "its diff shows no lines: modes, binary files or links")


def count_changed_lines(hunks: Sequence[Hunk]) -> tuple[int, int]:
    """Return the numbers of added and removed lines."""
    return sum(len(hunk.added) for hunk in hunks), sum(len(hunk.removed) for hunk in hunks)


def read_hunks(diff: str) -> Iterator[Hunk]:
    """Yield the hunks of a diff without context lines."""
    path, heading, removed, added = "", "", list[str](), list[str]()
    left = 0  # lines of the hunk still to come: a line of content may look like a heading
    for line in diff.split("\n"):
        if left > 0 and line.startswith(("+", "-")):
            (added if line[0] == "+" else removed).append(line[1:])
            left -= 1
        elif line.startswith("@@ "):
            if removed or added:
                yield _make_hunk(path, heading, removed, added)
            heading, removed, added, left = line, [], [], _count_hunk_lines(line)
        elif line.startswith("Binary files "):
            name = line[13:].partition(" and ")[2].removesuffix(" differ")[2:] or path
            yield _make_hunk(name, "", ["\0"], [])
        elif left <= 0 and line.startswith(("+++ ", "--- ")) and line[4:] != "/dev/null":
            if removed or added:
                yield _make_hunk(path, heading, removed, added)
                removed, added = [], []
            path = line[4:].strip('"').partition("/")[2].removesuffix("\t")
    if removed or added:
        yield _make_hunk(path, heading, removed, added)


def _make_hunk(path: str, heading: str, removed: list[str], added: list[str]) -> Hunk:
    found = _HEADING.match(heading)
    first, inside = (int(found[1][:9]), found[2]) if found else (0, "")
    last = first + max(0, len(added) - 1)
    return Hunk(path, first, last, inside.strip(), tuple(removed), tuple(added))


def _count_hunk_lines(heading: str) -> int:
    """Return the lines that a hunk removes and adds, by its heading `@@ -a,b +c,d @@`."""
    total = 0
    for word in heading.split(" ")[1:3]:
        _, comma, count = word.partition(",")
        total += int(count) if comma and count.isdigit() else 1
    return total


def _judge_hunk(path: str, removed: Sequence[str], added: Sequence[str]) -> str:
    if is_document(path):
        return "documents"
    before, after = _extract_essence(removed, path), _extract_essence(added, path)
    if before != after:
        if path.endswith(".py"):
            return _judge_python(before, after)
        return BEHAVIOUR
    lines = (*removed, *added)
    comments = any(is_comment(line, path) for line in lines) or _strip_docstrings(lines, path) != [
        *lines
    ]
    return "comments" if comments else "whitespace"


def _judge_python(before: Sequence[str], after: Sequence[str]) -> str:
    """Classify Python lines that may differ only in wrapping, quotes or type names."""
    if _moves_lines(before, after):
        return BEHAVIOUR
    if before and after and _list_tokens(before) == _list_tokens(after):
        return "whitespace"
    if _list_tokens(_strip_annotations(before)) == _list_tokens(_strip_annotations(after)):
        return "annotations"
    return BEHAVIOUR


def _moves_lines(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return True if a line changed only its indentation, which changes its meaning."""
    indents = {line.strip(): len(line) - len(line.lstrip()) for line in before}
    return any(
        len(line) - len(line.lstrip()) != indents[line.strip()]
        for line in after
        if line.strip() in indents
    )


def _list_tokens(lines: Sequence[str]) -> list[str]:
    """Return the tokens of lines, ignoring line breaks, the kind of quotes, and trailing commas."""
    text = _LAST_COMMA.sub(r"\1", " ".join(line.strip() for line in lines))
    tokens = [token for token in _PIECES.findall(text) if not token.isspace()]
    return [f'"{token[1:-1]}"' if _PLAIN_TEXT.fullmatch(token) else token for token in tokens]


def _strip_annotations(lines: Sequence[str]) -> list[str]:
    """Remove types of parameters, results and variables, and imports of types."""
    text = _TYPING.sub("", "\n".join(lines))
    text = _RESULT.sub(":", text)
    if "def " in text:
        text = _PARAMETER.sub(r"\1\2", text)
    return _VARIABLE.sub(r"\1 =", text).split("\n")


_LAST_COMMA = re.compile(r",\s+([\])}])")
_PLAIN_TEXT = re.compile(r"'[^'\"\\\\]*'")
_TYPE_NAME = r"[\w.]+(?:\[[^\n=]*\])?(?:\s*\|\s*[\w.]+(?:\[[^\n=]*\])?)*|[\"'][^\"'\n]+[\"']"
_TYPING = re.compile(
    r"^\s*(?:from (?:typing|typing_extensions|collections\.abc|__future__) import [^\n]*"
    r"|import typing\b[^\n]*|if (?:typing\.|t\.)?TYPE_CHECKING:)$",
    re.MULTILINE,
)
_RESULT = re.compile(rf"\s*->\s*(?:{_TYPE_NAME})\s*:")
_PARAMETER = re.compile(
    rf"([(,]\s*\*{{0,2}}\w+|^\s*\*{{0,2}}\w+):\s*(?:{_TYPE_NAME})\s*(?=[,=)]|$)()", re.MULTILINE
)
_VARIABLE = re.compile(rf"^(\s*(?:self\.)?\w+):\s*(?:{_TYPE_NAME})\s*=", re.MULTILINE)


def _extract_essence(lines: Sequence[str], path: str) -> list[str]:
    """Return the meaningful text of lines: no comments, no meaningless spaces."""
    kept = [
        line.rstrip()
        for line in _strip_docstrings(lines, path)
        if line.strip() and not is_comment(line, path)
    ]
    if is_indent_significant(path) or not has_known_comments(path):
        return kept
    code = " ".join(line.strip() for line in kept)
    return ["\0".join(token for token in _PIECES.findall(code) if not token.isspace())]


def _strip_docstrings(lines: Sequence[str], path: str) -> list[str]:
    """Remove standalone Python strings, whose quotes begin and end lines."""
    if not path.endswith(".py"):
        return [*lines]
    kept, held, quote = list[str](), list[str](), ""
    for line in lines:
        plain = line.strip()
        opening = _DOCSTRING.match(plain) if not quote else None
        if opening and opening.end() == len(plain) and any(map(_STATEMENT.match, lines)):
            opening = None  # it may as well be where one ends
        held = [*held, line] if quote or opening else []
        if opening:
            quote = opening[1]
            plain = plain[opening.end() :]
        if not quote:
            kept.append(line)
        elif plain.endswith(quote):
            held, quote = [], ""
    return [*kept, *held]
