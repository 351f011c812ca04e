"""Commands in a human comment: a slash word at the start of a line, outside inert text.

Knows the five words and that a slash word that is none of them is a slip of the pen. Refuses to
know what the rest of the comment says.
"""

import re
from typing import Final

import msgspec

from interlock.epic.approval.comment_verdict import CAUTION, CommentDecision

COMMANDS: Final = {
    "approve": CommentDecision.APPROVE,
    "revise": CommentDecision.REVISE,
    "discuss": CommentDecision.DISCUSS,
    "halt": CommentDecision.HALT,
    "defer": CommentDecision.DEFER,
}
_LINE: Final = re.compile(r"^[ ]{0,3}/(?P<word>[a-z][\w-]*)(?P<rest>[^\n]*)$", re.MULTILINE)


class CommentCommand(msgspec.Struct, frozen=True):
    """One slash word: what it means, where it stands, and what else is on its line."""

    word: str
    rest: str
    start: int
    end: int
    stop: int
    """Where its line ends."""
    marked: bool = False
    """Whether it stands behind a list's mark or the like, and so not at its line's start."""

    @property
    def outcome(self) -> CommentDecision:
        return COMMANDS.get(self.word, CommentDecision.UNCLEAR)


def commands(text: str, comment: str) -> list[CommentCommand]:
    """The slash words of a comment's live text; paths are none."""
    found = []
    for hit in _LINE.finditer(text):
        if not re.match(r"[/.]\w", hit["rest"]):
            start = hit.start("word") - 1
            marked = bool(comment[hit.start() : start].strip(" "))
            found.append(
                CommentCommand(hit["word"], hit["rest"], start, hit.end("word"), hit.end(), marked)
            )
    return found


def leading(found: list[CommentCommand]) -> CommentCommand:
    """The one that counts: the most cautious one; a slip is no answer, but never an approval."""
    return min(found, key=lambda each: (CAUTION.index(each.outcome), each.start))
