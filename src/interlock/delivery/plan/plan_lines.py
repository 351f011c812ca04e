"""A plan's text line by line: which lines are alive, which are headings, which open a field.

Knows fences, comments, headings of any level, rules and field labels, bold or not. Lines inside a
fence or a comment are text and never more. Refuses to know what the fields of a task mean.
"""

import re
from typing import Final, NamedTuple

from interlock.delivery.plan.plan import PlanFinding
from interlock.delivery.plan.plan_words import lines_of, one_line

_FENCE: Final = re.compile(
    r"[ \t]*+(?:(?:[-*+]|\d{1,4}[.)])[ \t]++)*+(`{3,}+|~{3,}+)(.*)", re.DOTALL
)
_BOLD: Final = re.compile(
    r" {0,3}([-*+][ \t]++)?+(\*{1,3}+|_{1,3}+)[ \t]*+([A-Za-z][A-Za-z \t/-]{0,39}+)(:?)[ \t]*+\2"
    r"[ \t]*+(:?)[ \t]*+(.*)",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"([A-Za-z][A-Za-z \t]{0,39}+):(?:[ \t]++(.*))?+$", re.DOTALL)
_DEEPEST: Final = 6
_DEEP: Final = ("    ", "\t", " \t", "  \t", "   \t")

FIELDS: Final = {
    "work": "work",
    "description": "work",
    "acceptance criteria": "criteria",
    "acceptance criterion": "criteria",
    "criteria": "criteria",
    "blocked by": "blocked_by",
    "depends on": "blocked_by",
    "dependencies": "blocked_by",
    "required reading": "reading",
    "reading": "reading",
    "environment": "environment",
    "target files": "target_files",
    "target file": "target_files",
    "files": "target_files",
}
"""What a label of a task may be called, and the field it opens."""


class PlanLine(NamedTuple):
    """One line. `live` is false inside fences; lines of comments are empty."""

    number: int
    text: str
    live: bool = True


class Heading(NamedTuple):
    """A heading: how deep it is, and its words."""

    level: int
    words: str


class Label(NamedTuple):
    """The beginning of a field: its name here, empty if unknown, and what follows on the line."""

    field: str
    bold: bool
    rest: str


def scan(text: str) -> tuple[list[PlanLine], list[PlanFinding]]:
    """All lines, and what is wrong with their fences and comments.

    A fence that stands deep, inside a point of a list, ends with that point at the latest.
    """
    found: list[PlanLine] = []
    fence, deep, comment, opened = "", False, False, 0
    for number, raw in enumerate(lines_of(text), 1):
        line = raw.rstrip()
        if fence and deep and line and not line.startswith(_DEEP):
            fence = ""
        if fence:
            found.append(PlanLine(number, line, live=False))
            fence = "" if _closes(line, fence) else fence
        elif comment or _opens_comment(line):
            opened = opened if comment else number
            comment = "-->" not in (line if comment else line.lstrip()[4:])
            found.append(PlanLine(number, ""))
        else:
            fence = _opened(line)
            opened, deep = (number, line.startswith(_DEEP)) if fence else (opened, deep)
            found.append(PlanLine(number, line, live=not fence))
    if comment or (fence and not deep):
        return found, [_unclosed("comment" if comment else "fence", opened)]
    return found, []


def _opened(line: str) -> str:
    """The marks of the fence that this line opens, if it does."""
    found = _FENCE.match(line)
    if not found or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _opens_comment(line: str) -> bool:
    return line.startswith(("<!--", " <!--", "  <!--", "   <!--"))


def _unclosed(what: str, line: int) -> PlanFinding:
    return PlanFinding(
        "error",
        f"text.unclosed-{what}",
        f"the {what} opened in line {line} is never closed, so all that follows belongs to it; "
        f"close it with {'the same marks' if what == 'fence' else '-->'}",
        line=line,
    )


def heading_of(line: PlanLine) -> Heading | None:
    """The heading on a line. `#Word` is a tag, `##Word` a heading whose blank was forgotten."""
    text = line.text
    if not line.live or "#" not in text[:4] or text[:4].lstrip(" ")[:1] != "#":
        return None
    text = text.lstrip(" ")
    words = text.lstrip("#")
    level = len(text) - len(words)
    joined = words and not words[0].isspace()
    if not 1 <= level <= _DEEPEST or (joined and (level == 1 or not words[0].isalpha())):
        return None
    return Heading(level, words.strip())


def is_rule(line: PlanLine) -> bool:
    """Whether the line is a separator such as ---."""
    marks = "" if line.text.startswith(_DEEP) else line.text.replace(" ", "")
    return line.live and len(marks) >= 3 and marks[0] in "-*_" and not marks.strip(marks[0])


def label_of(line: PlanLine) -> Label | None:
    """The label at the start of a line: any bold one with a colon, or a known one without."""
    if not line.live:
        return None
    bold = _BOLD.match(line.text)
    if bold:
        point, _, name, inner, outer, rest = bold.groups()
        field = FIELDS.get(one_line(name).casefold(), "")
        opens = field and (inner or outer or not rest)
        return Label(field, True, rest) if opens or ((inner or outer) and not point) else None
    plain = _PLAIN.match(line.text)
    field = FIELDS.get(one_line(plain[1]).casefold(), "") if plain else ""
    return Label(field, False, plain[2] or "") if plain and field else None


def quiet(text: str) -> bool:
    """Whether a text, put into a plan as it is, stays nothing but text."""
    lines, problems = scan(text)
    return not problems and not any(_loud(line) for line in lines) and _shown(lines) == text


def _loud(line: PlanLine) -> bool:
    return bool(heading_of(line) or label_of(line) or is_rule(line))


def _shown(lines: list[PlanLine]) -> str:
    return "\n".join(line.text for line in lines)
