"""Commands as a plan writes them, made into words: no shell ever sees them.

Knows quoting, what only a shell could do, and how an environment's prefix is described. What cannot
be run as it stands is refused with a sentence that says what to write. Refuses to run anything.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

from interlock.delivery.plan.plan_words import DASHES
from interlock.engine.format import seconds_of
from interlock.system.errors import CircuitError, SourceError

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


def code(text: str) -> str:
    """A cell's text without the backticks around it."""
    text = text.strip()
    inner, rest = _span(text)
    return inner.strip() if inner and not rest else text


def _span(text: str) -> tuple[str, str]:
    """The code at the start of a text and what follows it; no code if there is none."""
    bare = text.lstrip("`")
    marks = text[: len(text) - len(bare)]
    end = bare.find(marks) if marks else -1
    return (bare[:end], bare[end + len(marks) :]) if end > 0 else ("", text)


def words(command: str | Sequence[str]) -> tuple[str, ...]:
    """A command as the words that are run; given as words it is taken as it is."""
    if not isinstance(command, str):
        return _printable(tuple(command), " ".join(command))
    shown = repr(command[:_SHOWN])
    if len(command) > _LONGEST:
        raise SourceError(f"the command {shown} is too long; put it into a script and run that")
    operator = _shell_operator(command)
    if operator:
        raise SourceError(
            f"the command {shown} needs a shell for {operator!r}, and none is used; "
            "put it into a script, or write sh -c '…'"
        )
    try:
        found = tuple(shlex.split(command))
    except ValueError as error:
        problem = str(error)[:1].lower() + str(error)[1:]
        raise SourceError(f"the command {shown} cannot be split: {problem}; balance it") from None
    if found and _ASSIGNMENT.match(found[0]):
        raise SourceError(f"the command {shown} begins with a variable; write env {found[0]} …")
    return _printable(found, command)


def _printable(found: tuple[str, ...], command: str) -> tuple[str, ...]:
    if not found or not found[0].strip():
        raise SourceError("there is no command; write the program and its arguments")
    if any(sign < " " or sign == "\x7f" for word in found for sign in word):
        shown = repr(command[:_SHOWN])
        raise SourceError(f"the command {shown} holds control characters; put it into a script")
    return found


def _shell_operator(command: str) -> str:
    """The first sign outside quotes that means something to a shell only."""
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


def prefix(how: str) -> tuple[str, ...]:
    """The words before a command, from `How to Execute`: code, a bare command, or 'directly'.

    A last word that only stands for the command, such as <command>, is left out.
    """
    how = how.strip()
    quoted = _span(how[how.find("`") :])[0] if "`" in how else ""
    text = _PLACEHOLDER.sub("", (quoted or how[:_LONGEST]).strip()).strip()
    if not text.strip(DASHES) or (not quoted and _DIRECT.fullmatch(text)):
        return ()
    first = text.split()[0]
    if first.startswith("mcp__") or (not quoted and not _PROGRAM.fullmatch(first)):
        raise SourceError(
            f"{how[:_SHOWN]!r} does not say how commands are run there; write the words that go "
            "before a command in backticks, such as `docker compose exec app`, or 'directly'"
        )
    return words(text)


def exit_code(text: str | int) -> int:
    """The exit code that means success."""
    given = code(str(text))
    if not given:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= 3 and int(given) <= 255):
        raise SourceError(f"{given[:_SHOWN]!r} is no exit code; write a number from 0 to 255")
    return int(given)


def timeout(text: str | float, usual: float) -> float:
    """How many seconds a check may take."""
    given = code(str(text))
    if not given:
        return usual
    try:
        seconds = seconds_of(given)
    except CircuitError as error:
        raise SourceError(str(error)) from None
    if seconds > LONGEST_TIMEOUT:
        raise SourceError(f"{given[:_SHOWN]!r} is too long for one check; the most is 7d")
    return seconds
