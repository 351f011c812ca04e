"""Split a Markdown plan into lines and say what each is: text, code, a heading, a rule, a label.

markdown-it-py finds the blocks. A plan is read as a flat sequence of them, because its fields are
kept word for word: lists and quotes stay text, and `fields.parse_items` reads their points. Two
block rules are our own, `_read_fence` and `_read_comment`. Labels are found line by line, since to
Markdown they are ordinary text.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock

from interlock_delivery.plan.fields import join_lines, split_lines
from interlock_delivery.plan.plan import PlanFinding

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
"""The field that each label of a task opens."""

_FENCE: Final = re.compile(
    r" {0,3}(?:(?:[-*+]|\d{1,4}[.)])[ \t]++)*+(`{3,}+|~{3,}+)(.*)", re.DOTALL
)
_FORGOTTEN_BLANK: Final = re.compile(r"^( {0,3}#{2,6})(?=[^\W\d_])", re.MULTILINE)
_BOLD: Final = re.compile(
    r" {0,3}([-*+][ \t]++)?+(\*{1,3}+|_{1,3}+)[ \t]*+([A-Za-z][A-Za-z \t/-]{0,39}+)(:?)[ \t]*+\2"
    r"[ \t]*+(:?)[ \t]*+(.*)",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"([A-Za-z][A-Za-z \t]{0,39}+):(?:[ \t]++(.*))?+$", re.DOTALL)


class Heading(NamedTuple):
    """A heading's level and text."""

    level: int
    text: str


class PlanLine(NamedTuple):
    """One line of a plan. A line in a fence is only code; a line in a comment is empty."""

    number: int
    text: str
    is_code: bool = False
    heading: Heading | None = None
    is_rule: bool = False


class Label(NamedTuple):
    """The start of a field: its name, "" if unknown, and the rest of the line."""

    field: str
    is_bold: bool
    rest: str


def read_lines(text: str) -> tuple[list[PlanLine], list[PlanFinding]]:
    """Return all lines, and an error for each fence or comment that is never closed."""
    lines = [PlanLine(number, line.rstrip()) for number, line in enumerate(split_lines(text), 1)]
    problems: list[PlanFinding] = []
    # `##Task` is a heading that lacks its blank, while `#word` is a tag. Only the parser gets the
    # blank, which moves no line; the lines themselves stay as written.
    source = _FORGOTTEN_BLANK.sub(r"\1 ", "\n".join(line.text for line in lines))
    tokens = _build_parser().parse(source)
    for token, content in zip(tokens, tokens[1:] + tokens[:1], strict=True):
        if token.map is None:
            continue
        first, end = token.map
        if token.type == "heading_open":
            heading = Heading(len(token.markup), content.content)
            lines[first] = lines[first]._replace(heading=heading)
        elif token.type == "hr":
            lines[first] = lines[first]._replace(is_rule=True)
        elif token.type in ("fence", "comment"):
            is_code = token.type == "fence"
            for at in range(first, end):
                lines[at] = PlanLine(at + 1, lines[at].text if is_code else "", is_code=is_code)
            if not token.meta["is_closed"]:
                problems.append(_describe_unclosed(token.type, first + 1))
    return lines, problems


def find_label(line: PlanLine) -> Label | None:
    """Return the label at the start of a line: any bold one with a colon, or a known plain one."""
    if line.is_code:
        return None
    bold = _BOLD.match(line.text)
    if bold:
        point, _, name, inner, outer, rest = bold.groups()
        field = FIELDS.get(join_lines(name).casefold(), "")
        opens = field and (inner or outer or not rest)
        return Label(field, True, rest) if opens or ((inner or outer) and not point) else None
    plain = _PLAIN.match(line.text)
    field = FIELDS.get(join_lines(plain[1]).casefold(), "") if plain else ""
    return Label(field, False, plain[2] or "") if plain and field else None


def _describe_unclosed(what: str, line: int) -> PlanFinding:
    return PlanFinding(
        "error",
        f"text.unclosed-{what}",
        f"the {what} opened in line {line} is never closed, so everything after it belongs to it; "
        f"close it with {'the same marks' if what == 'fence' else '-->'}",
        line=line,
    )


def _read_fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read fenced code as people and agents write it in plans.

    After a bullet, the library's own rule ends a fence at the first line that is not indented, and
    it ignores closing marks indented by four blanks or more. Both are common in plans, and a quoted
    task heading would become a task.
    """
    opening = _FENCE.match(_line(state, start)) if not state.is_code_block(start) else None
    if not opening or (opening[1][0] == "`" and "`" in opening[2]):
        return False
    if silent:
        return True
    closing = next((at for at in range(start + 1, end) if _closes(_line(state, at), opening[1])), 0)
    _push(state, "fence", start, closing + 1 if closing else end, is_closed=bool(closing))
    return True


def _read_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a comment that begins its line. Other HTML is text: a heading after `<div>` is a
    heading.
    """
    position = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not state.src.startswith("<!--", position):
        return False
    if silent:
        return True
    closing = state.src.find("-->", position + 4)
    last = start + state.src.count("\n", position, closing) + 1 if closing >= 0 else end
    _push(state, "comment", start, last, is_closed=closing >= 0)
    return True


def _push(state: StateBlock, kind: str, start: int, end: int, *, is_closed: bool) -> None:
    token = state.push(kind, "", 0)
    token.map = [start, end]
    token.meta["is_closed"] = is_closed
    state.line = end


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] : state.eMarks[number]]


def _closes(line: str, marks: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(marks) and not bare.strip(marks[0])


@cache
def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("zero").enable(["code", "heading", "hr"])
    parser.core.ruler.enableOnly(["block"])  # text within a block is read here
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.at("fence", _read_fence, interrupts)
    parser.block.ruler.enable("fence")
    parser.block.ruler.before("fence", "comment", _read_comment, interrupts)
    return parser
