"""Whereabouts: a failure's frames and its words, wherever its report put them.

Some tools write message and trace as one text; some give a message that names only the test, and
say in the trace what went wrong. Knows where to look, not whose a frame is or what words mean.
"""

import re

from interlock.rca.analyst.frames import Frame, read_frame, read_frames
from interlock.rca.failure import Failure

_LOOKED_AT = 20_000
_MOST_LINES = 40
_LEAST = 4
"""A shorter line is no line of its own wherever it occurs."""
_SHOUTED = re.compile(r"^E {2,}")
_CODE = re.compile(r"^\s*(?:>?\s*\d+ ?\||>  |\||\^|~+\s*$)|Traceback \(|^_{3,}|^[-=*]{3,}")
"""Source that is shown around a place, and rulers."""
_CAUSED = re.compile(r"^\s*(?:Caused by|---> |\[cause\])")


def frames_of(failure: Failure) -> tuple[Frame, ...]:
    """The frames of its stack; where there are none, those of its message."""
    return read_frames(failure.stack) or read_frames(failure.message[:_LOOKED_AT])


def words_of(failure: Failure) -> str:
    """Its message, and what its stack says beyond that."""
    message = failure.message[:_LOOKED_AT]
    said = [line.strip() for line in message.split("\n")]
    more: list[str] = []
    for spoken in _spoken(failure.stack[:_LOOKED_AT]):
        line = spoken.removeprefix(failure.type).lstrip(": ")
        if line and not any(_within(line, other) for other in (*said, *more)):
            more.append(line)
    return "\n".join([message, *more] if message else more)


def _within(line: str, other: str) -> bool:
    return line in other or (len(other) >= _LEAST and other in line)


def _spoken(stack: str) -> list[str]:
    """Lines of a stack that are no frames: those marked as the error's own, or else those above
    the first frame and the causes."""
    lines = stack.split("\n")
    shouted = [_SHOUTED.sub("", line).strip() for line in lines if _SHOUTED.match(line)]
    if shouted:
        return [line for line in shouted if line][:_MOST_LINES]
    found: list[str] = []
    above = True
    for line in lines:
        if read_frame(line) is not None and not _says(line):
            above = False
        elif line.strip() and (above or _CAUSED.match(line)) and not _CODE.search(line):
            found.append(line.strip())
    return found[:_MOST_LINES]


def _says(line: str) -> bool:
    """A place with a message behind it, as Go and compilers print it."""
    return bool(re.match(r"^\s*[\w./\\-]+:\d+(?::\d+)?: \S", line)) and ": in " not in line
