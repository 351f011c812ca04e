"""Can somebody tell whether an acceptance criterion is met? By its words, with rules.

A criterion is vague if it praises instead of saying what can be seen, or says almost nothing. One
that names a command, a number, a file, a value or a code is never called vague. Knows single
sentences. Refuses to know tasks.
"""

import re
from typing import Final

_SEEN: Final = re.compile(
    r"`[^`]+`"  # code
    r"|\"[^\"]+\"|“[^“”]+”|(?<!\w)'[^']+'(?!\w)"  # words to look for
    r"|\d"  # a number
    r"|(?<![\w./*-])[\w.-]++/[\w./*-]|(?<![\w.-])[\w-][\w.-]+\.[a-z]{1,4}\b"  # a path or a file
    r"|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[A-Za-z_]\w*(?:Error|Exception|\(\))"  # a name in code
    r"|(?<!\w)--?[a-z][\w-]+"  # an option
)
_PRAISE: Final = re.compile(
    r"\b(?:"
    r"appropriate(?:ly)?|proper(?:ly)?|adequate(?:ly)?|reasonabl[ey]|suitabl[ey]|sensibl[ey]"
    r"|clean(?:ly)?|nice(?:ly)?|good|great|elegant(?:ly)?|robust(?:ly)?|solid|high[- ]quality"
    r"|fast|quick(?:ly)?|performant|efficient(?:ly)?|scalable|responsive"
    r"|secure(?:ly)?|safe(?:ly)?|reliabl[ey]|stable|seamless(?:ly)?"
    r"|readable|maintainable|well[- ](?:written|designed|structured|tested|documented)"
    r"|user[- ]friendly|intuitive(?:ly)?|easy|simple|modern|production[- ]ready"
    r"|best practices?|as (?:expected|needed|required)|works? (?:well|fine)"
    r"|correctly|etc|and so on|where (?:possible|necessary)|if (?:possible|necessary|needed)"
    r")(?![\w-])",
    re.IGNORECASE,
)
_BUILT: Final = re.compile(
    r"^(?:the\s+)?(?:implement\w*|add|build|create|complete|finish|do)\b.*\b(?:feature|functionality|it)\W*$"
    r"|\b(?:feature|functionality|code|it|everything)\b.{0,20}\b"
    r"(?:implemented|done|complete|completed|finished|works?)\W*$",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(
    r"\W*(?:\[[^\]]*\]|<[^>]*>|\{[^}]*\}|\.\.\.|…|tb[dac]|todo|xxx|fixme)\W*", re.IGNORECASE
)
_FEWEST: Final = 3
_LONGEST: Final = 200
_LOOKED_AT: Final = 2_000


def is_placeholder(criterion: str) -> bool:
    """Whether somebody left the template's words, or a note to come back."""
    return len(criterion) < _LONGEST and _PLACEHOLDER.fullmatch(criterion) is not None


def vague(criterion: str) -> str:
    """What makes the criterion impossible to test, in a few words; empty if nothing does."""
    text = criterion[:_LOOKED_AT]
    if _SEEN.search(text):
        return ""
    praise = _PRAISE.search(text)
    if praise:
        return f"nobody can see whether {praise[0]!r} is true"
    if _BUILT.search(text):
        return "it only says that the task is done"
    if len(text.split()) < _FEWEST:
        return "it says too little"
    return ""
