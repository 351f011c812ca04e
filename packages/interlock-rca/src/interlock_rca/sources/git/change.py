"""What kind of change a commit is: one that can alter behaviour, or a move, a reformat, words.

Judges a diff by its text, hunk by hunk, without understanding the language: in doubt a change is
behaviour. Pure. A refactoring that moves code between files is beyond it.
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
    """behaviour, moved, annotations, comments, whitespace, documents, merge, empty, or unknown; and
    why."""

    kind: str
    why: str

    @property
    def is_behavioural(self) -> bool:
        """Whether it may alter what the program does. Unknown counts as yes."""
        return self.kind in (BEHAVIOUR, UNKNOWN)


class Hunk(msgspec.Struct, frozen=True):
    """Lines of a file that were changed together; `first` and `last` as they are numbered after."""

    path: str
    first: int
    last: int
    inside: str
    """What git says it is in, a function's heading mostly."""
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def nature(self) -> str:
        return _judge_hunk(self.path, self.removed, self.added)


class ContentChange(msgspec.Struct, frozen=True):
    """What a commit changed. `is_whole` says whether all its hunks are there."""

    nature: ChangeNature
    hunks: tuple[Hunk, ...] = ()
    whole: bool = False


def judge_by_files(commit: Commit) -> ChangeNature | None:
    """The nature of a commit by its list of files alone, if that is enough."""
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
    """By the combined diff, which has hunks only where no side was just taken."""
    if "\n@@@" in diff:
        return ChangeNature(BEHAVIOUR, "a merge that changed lines on its own")
    return ChangeNature("merge", "a merge without changes of its own")


def judge_hunks(hunks: Iterable[Hunk]) -> ChangeNature:
    """The nature of a commit by all of its hunks."""
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
    """How many lines are put in, and how many are taken away."""
    return sum(len(hunk.added) for hunk in hunks), sum(len(hunk.removed) for hunk in hunks)


def read_hunks(diff: str) -> Iterator[Hunk]:
    """The hunks of a diff without context lines."""
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
    """How many lines a hunk takes away and puts in, by its heading `@@ -a,b +c,d @@`."""
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
    """Lines of Python that differ, but perhaps only in how they are wrapped and quoted, or in the
    types they name."""
    if _moves_lines(before, after):
        return BEHAVIOUR
    if before and after and _list_tokens(before) == _list_tokens(after):
        return "whitespace"
    if _list_tokens(_strip_annotations(before)) == _list_tokens(_strip_annotations(after)):
        return "annotations"
    return BEHAVIOUR


def _moves_lines(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether a line is there as before, but further in or out: then it means something else."""
    indents = {line.strip(): len(line) - len(line.lstrip()) for line in before}
    return any(
        len(line) - len(line.lstrip()) != indents[line.strip()]
        for line in after
        if line.strip() in indents
    )


def _list_tokens(lines: Sequence[str]) -> list[str]:
    """The tokens of some lines, whatever the breaks between them, the kind of quotes, and a comma
    before a bracket that closes."""
    text = _LAST_COMMA.sub(r"\1", " ".join(line.strip() for line in lines))
    tokens = [token for token in _PIECES.findall(text) if not token.isspace()]
    return [f'"{token[1:-1]}"' if _PLAIN_TEXT.fullmatch(token) else token for token in tokens]


def _strip_annotations(lines: Sequence[str]) -> list[str]:
    """Without the types of parameters, results and variables, and without imports of types."""
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
    """What counts in these lines: no comments, and no spaces where they mean nothing."""
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
    """Without texts of Python that stand for themselves: their quotes begin and end lines."""
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
