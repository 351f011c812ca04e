"""Clean the small texts of a plan: titles, lists, ids, paths, commands, timeouts.

Cleaning twice changes nothing. Commands become words, since no shell ever sees them; one that
cannot run as written is refused with a sentence that says what to write.
"""

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from interlock.system.errors import SourceError, UsageError
from interlock.system.time import parse_duration

_BULLET: Final = re.compile(r"([ \t]*+)(?:[-*+•]|\d{1,4}[.)])(?:[ \t]++|$)(\[.?\](?:[ \t]++|$))?+")
_BARE_BOX: Final = re.compile(r"([ \t]*+)(\[[ xX]\])(?:[ \t]++|$)")
DASHES: Final = "-\u2013\u2014"
_NOTHING: Final = frozenset(("", "none", "n/a", "na", "nil", "nothing", *DASHES, "blank"))
_EVERYWHERE: Final = frozenset(("all", "any", "*", "every", "anywhere", "everywhere"))
_COMMENT: Final = re.compile(r"<!--[^>]*+(?:>|$)")
_NOTE: Final = re.compile(r"(?:[ \t]\(|[ \t][-\u2013\u2014][ \t])")
_LINK: Final = re.compile(r"\[([^\[\]]*+)\]\(([^()\s]++)\)")
_EMPHASIS: Final = ("*", "_")
_AND: Final = re.compile(r"[,;]|(?<=\s)(?:and|&)(?=\s)")
_LED: Final = re.compile(r"task\s++(?=\S)", re.IGNORECASE)


def split_lines(text: str) -> list[str]:
    """Split a text into lines, whatever ends them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def tidy_text(text: str) -> str:
    """Strip a text's margins, and the blanks at the ends of its lines."""
    lines = (line.rstrip() for line in split_lines(text))
    return textwrap.dedent("\n".join(lines)).strip()


def join_lines(text: str) -> str:
    return " ".join(text.split())


def clean_title(text: str) -> str:
    """Return a heading on one line, without emphasis around it or closing number signs."""
    text = _strip_closing_marks(text)
    if text[:1] in _EMPHASIS and text[-1:] in _EMPHASIS:
        text = _strip_closing_marks(text.strip("*_ "))
    return text


def _strip_closing_marks(text: str) -> str:
    words = text.split()
    while words and not words[-1].strip("#"):
        words.pop()
    return " ".join(words)


def means_nothing(text: str) -> bool:
    """Return True if the text says that there is none."""
    return text.strip().rstrip(".").strip("*_`()[] ").casefold() in _NOTHING


def parse_items(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the points of a list with bullets, numbers or boxes, or else its paragraphs.

    A nested point belongs to the one above, unless it has its own box. A sentence that introduces
    the list, ending in a colon, is not a point.
    """
    found: list[list[str]] = []
    after_blank, top, led = True, -1, False
    for line in lines:
        bullet = _BULLET.match(line) or _BARE_BOX.match(line)
        rest = line[bullet.end() :] if bullet else line
        if bullet:
            depth = len(bullet[1].expandtabs(4))
            top = depth if top < 0 else min(top, depth)
            inside = depth > top + 1 and not bullet[2]
            if inside and found:
                found[-1][-1] = f"{found[-1][-1].rstrip()};"
        else:
            inside = not after_blank or line[:1].isspace()
            led = led or bool(line.strip() and not found)
        after_blank = not line.strip()
        if inside and found:
            found[-1].append(rest)
        elif not after_blank:
            found.append([rest])
    points = [join_lines(" ".join(parts)) for parts in found]
    lead = led and top >= 0 and points[0].endswith(":")
    return drop_empty_points(points[1:] if lead else points)


def drop_empty_points(points: Iterable[str]) -> tuple[str, ...]:
    """Return the points that say something."""
    return tuple(point for point in map(join_lines, points) if not means_nothing(point))


def parse_paths(lines: Sequence[str]) -> tuple[str, ...]:
    """Return paths or documents from a list, or from one line with commas."""
    bullets = any(_BULLET.match(line) for line in lines)
    points = parse_items(lines)
    return (
        points
        if bullets
        else drop_empty_points(part for point in points for part in _split_at_commas(point))
    )


def clean_document(point: str) -> str:
    """Return a document without markup: the path, and a note in brackets if there is one."""
    point = join_lines(_LINK.sub(_format_link, point))
    if point.startswith("`") and "`" in point[1:]:
        point = join_lines(point.replace("`", "", 2))
    return point


def extract_path(point: str) -> str:
    """Return only the path of a document."""
    found = _NOTE.search(point)
    return point[: found.start()].strip() if found else point


def clean_file_path(point: str) -> str:
    """Return only the path of a file to work on."""
    return extract_path(clean_document(point)).strip("` ")


def _format_link(found: re.Match[str]) -> str:
    return f"{found[2]} ({found[1]})" if found[1].strip() not in ("", found[2]) else found[2]


def _split_at_commas(text: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    depth, start = 0, 0
    for at, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def parse_ids(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct ids in a list or on a line, however they are joined and decorated."""
    points = parse_items([_COMMENT.sub("", line) for line in lines])
    named = (_clean_id(part) for point in points for part in _AND.split(_LINK.sub(r"\1", point)))
    return tuple(dict.fromkeys(name for name in named if not means_nothing(name)))


def _clean_id(text: str) -> str:
    text = join_lines(text).strip("`* ")
    note = text.find(" (")
    text = (text[:note] if note > 0 else text).strip("`* ")
    return _LED.sub("", text, count=1).strip("`* ") if _LED.match(text) else text


def parse_environment(text: str) -> str:
    """Return the one environment that is named, or "" for all."""
    name = join_lines(_COMMENT.sub("", text)).strip("`* ")
    return "" if means_nothing(name) or name.casefold() in _EVERYWHERE else name


_LONGEST: Final = 20_000
LONGEST_TIMEOUT: Final = 7 * 24 * 3600.0
_OPERATORS: Final = frozenset("|&;<>`")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+=")
_PLACEHOLDER: Final = re.compile(
    r"(?:^|\s)(?:[<{\[(]{1,2}(?:command|cmd|args?)[>}\])]{1,2}|\.\.\.|…|\$@|\$CMD)$", re.IGNORECASE
)
_DIRECT: Final = re.compile(
    r"(?:(?:just|run|execute|use|commands?|it|them|are|the|all|on|in)\s+){0,5}"
    r"(?:direct(?:ly)?|native(?:ly)?|local(?:ly)?|as[ -]is|no prefix|host|none)"
    r"(?:\s+[\w-]+){0,6}\W*",
    re.IGNORECASE,
)
_PROGRAM: Final = re.compile(
    r"(?!(?:run|use|via|in|inside|through|execute|call|with)$)[a-z0-9_./~-]++"
)
_SHOWN: Final = 60


def strip_backticks(text: str) -> str:
    """Return a cell's text without surrounding backticks."""
    text = text.strip()
    inner, rest = _split_code_span(text)
    return inner.strip() if inner and not rest else text


def _split_code_span(text: str) -> tuple[str, str]:
    """Return the code at the start of a text and the rest; "" if there is no code."""
    bare = text.lstrip("`")
    marks = text[: len(text) - len(bare)]
    end = bare.find(marks) if marks else -1
    return (bare[:end], bare[end + len(marks) :]) if end > 0 else ("", text)


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """Split a command into words; a command given as words is only checked."""
    if not isinstance(command, str):
        return _check_words(tuple(command), " ".join(command))
    shown = repr(command[:_SHOWN])
    if len(command) > _LONGEST:
        raise SourceError(f"the command {shown} is too long; put it into a script and run that")
    operator = _find_shell_operator(command)
    if operator:
        raise SourceError(
            f"the command {shown} uses {operator!r}, which needs a shell, and commands run without "
            "one; put it into a script, or write sh -c '…'"
        )
    try:
        found = tuple(shlex.split(command))
    except ValueError as error:
        problem = str(error)[:1].lower() + str(error)[1:]
        raise SourceError(
            f"the command {shown} cannot be split into words: {problem}; fix the quotes"
        ) from None
    if found and _ASSIGNMENT.match(found[0]):
        raise SourceError(f"the command {shown} starts with a variable; write env {found[0]} …")
    return _check_words(found, command)


def _check_words(found: tuple[str, ...], command: str) -> tuple[str, ...]:
    if not found or not found[0].strip():
        raise SourceError("there is no command; write the program and its arguments")
    if any(sign < " " or sign == "\x7f" for word in found for sign in word):
        shown = repr(command[:_SHOWN])
        raise SourceError(f"the command {shown} contains control characters; put it into a script")
    return found


def _find_shell_operator(command: str) -> str:
    """Return the first sign outside quotes that only a shell understands."""
    quote, escaped = "", False
    for at, sign in enumerate(command):
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _OPERATORS or command.startswith("$(", at):
            return command[at : at + 2] if command[at : at + 2] in ("&&", "||", "$(") else sign
    return ""


def parse_prefix(how: str) -> tuple[str, ...]:
    """Return the words before a command, from `How to Execute`: code, a bare command, or
    'directly'.

    A last word that only stands for the command, such as <command>, is dropped.
    """
    how = how.strip()
    quoted = _split_code_span(how[how.find("`") :])[0] if "`" in how else ""
    text = _PLACEHOLDER.sub("", (quoted or how[:_LONGEST]).strip()).strip()
    if not text.strip(DASHES) or (not quoted and _DIRECT.fullmatch(text)):
        return ()
    first = text.split()[0]
    if first.startswith("mcp__") or (not quoted and not _PROGRAM.fullmatch(first)):
        raise SourceError(
            f"{how[:_SHOWN]!r} does not say how commands are run there; put the words that go "
            "before a command in backticks, such as `docker compose exec app`, or 'directly'"
        )
    return split_command(text)


def parse_exit_code(text: str | int) -> int:
    """Return the exit code that means success."""
    given = strip_backticks(str(text))
    if not given:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= 3 and int(given) <= 255):
        raise SourceError(f"{given[:_SHOWN]!r} is not an exit code; write a number from 0 to 255")
    return int(given)


def parse_timeout(text: str | float, usual: float) -> float:
    """Return how many seconds a check may take."""
    given = strip_backticks(str(text))
    if not given:
        return usual
    try:
        seconds = parse_duration(given)
    except UsageError as error:
        raise SourceError(str(error)) from None
    if seconds > LONGEST_TIMEOUT:
        raise SourceError(f"{given[:_SHOWN]!r} is too long for one check; the maximum is 7d")
    return seconds
