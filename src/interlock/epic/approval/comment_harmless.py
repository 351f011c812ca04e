"""Whether a clause beside an approval is harmless: praise, thanks, a name, what the reader did.

Knows the closed frames of such clauses. Refuses to know approvals and what speaks against them.
"""

# ruff: noqa: RUF001 -- dashes as people type them

import re
from typing import Final

from interlock.epic.approval import comment_past as past
from interlock.epic.approval import comment_words as table
from interlock.epic.approval.comment_approval import LONGEST_CLAUSE, is_beside
from interlock.epic.approval.comment_text import LINK, QUOTED, SMILE

_SIGN_OFF: Final = re.compile(
    r"(?:thanks?(?: you| again| a lot)?|thx|cheers|best|regards|best regards|kind regards"
    r"|sincerely|yours|br)[,!. ]*|[-—–]+ ?"
)
_NAME: Final = re.compile(r"[A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,2}|@[\w-]+")
_THANKS: Final = re.compile(r"(?i:thanks|thank you|nice one|cheers|thx),? [A-Z][\w'.-]*")
_GREETING: Final = re.compile(
    r"(?i:hi|hello|hey|dear|good (?:morning|afternoon|evening))(?:,? (?:[A-Z][\w'.-]*"
    r"|@[\w-]+)(?: and [A-Z][\w'.-]*)?)?"
)
_NO_NAME: Final = re.compile(
    r"\b(?:un|in|im|mis|dis|non)\w{4,}|\w{3,}(?:ly|ed|ing|able|ible|ion|less|ful|ness)\b|^sorry"
    r"|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|staging|production|prod|dev|main|(?:back"
    r"|front)end|api|ui|draft|phase|story|stories|part|step|option|version|plan|docs?|tests?|code"
    r"|beta|alpha|q[1-4]|none|nobody|later|soon|maybe|internal|legal|security|qa|design|schema|pr"
    r"|ci)\b"
)
_PLAIN: Final = re.compile(rf"[a-z0-9 ,.!'\"@+{SMILE}{LINK}{QUOTED}\t/_%$&=<>#*~|()\[\]{{}}-]*")


def is_harmless(clause: str, comment: str, start: int, end: int) -> bool:
    """Praise, thanks, what the reader did, a name: nothing that could be meant against it."""
    if table.NEUTRAL.fullmatch(clause) or not clause.strip(QUOTED + LINK + " "):
        return QUOTED not in clause
    said = comment[start:end].strip(" \t\r\n.,!;:()—–-*_")
    if (
        _NAME.fullmatch(said)
        and not _NO_NAME.search(said.lower())
        and _signs(comment[max(0, start - 200) : start])
    ):
        return True
    if greets(said):
        return True
    if is_beside(clause) or past.SETTLED.search(clause):
        return True
    return (
        len(clause) <= LONGEST_CLAUSE
        and _PLAIN.fullmatch(clause) is not None
        and (is_deed(clause) or _praises(clause))
    )


def greets(said: str) -> bool:
    """Whether words as they were typed greet or thank somebody by name."""
    met = _THANKS.fullmatch(said) or _GREETING.fullmatch(said)
    return met is not None and not _NO_NAME.search(said.lower())


def is_deed(clause: str) -> bool:
    """Whether a clause only tells what the reader did."""
    return table.DEEDS.fullmatch(clause) is not None and not table.TELLS.search(clause)


def _praises(clause: str) -> bool:
    if not table.GOOD.search(clause) or table.TELLS.search(clause):
        return False
    return table.FRAMES.fullmatch(clause) is not None or _only_plain_words(clause)


def _only_plain_words(clause: str) -> bool:
    """Praise among words that cannot turn it: the closed list keeps irony and scope out."""
    if table.SCOPE.match(clause):
        return False
    rest = table.GOOD.sub(" ", clause)
    return all(table.PLAIN_WORDS.fullmatch(word) for word in re.findall(r"[^\s,.!]+", rest))


def _signs(before: str) -> bool:
    """Whether a name may follow: after thanks, a greeting or a dash, or within a sentence."""
    line = before.rstrip(" \t").rpartition("\n")[2].lower().strip()
    if line.endswith((",", "—", "–", "-")):
        return True
    above = before.rstrip().rpartition("\n")[2].lower().strip()
    return not line and _SIGN_OFF.fullmatch(above) is not None
