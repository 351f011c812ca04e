"""What becomes of a FILE CONFLICT, and which other task a developer waits for. Pure.

A conflict that can wait is queued until the holder is over. One that cannot is settled at once: the
file goes to whoever asks if its holder comes later anyway, otherwise both change it and the merge
brings their work together. A file that nobody holds is free.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.runtime.fence import clean_foreign_text

CONFLICT: Final = "FILE CONFLICT"
FREE, WAIT, MERGE, REASSIGN = "free", "wait", "merge", "reassign"
_MOST_PATH: Final = 200


def decide_handling(holder: str, can_wait: str, comes_later: bool) -> str:
    """`holder` is the open task that has the file, if any; `comes_later` says that it has not
    begun and will not before whoever reports the conflict is over."""
    if not holder:
        return FREE
    if can_wait.strip().upper().startswith("YES"):
        return WAIT
    return REASSIGN if comes_later else MERGE


def describe_handling(answer: Mapping[str, Any], ends: Mapping[str, str]) -> str:
    """What the one who reported the conflict is told; `ends` says how tasks ended."""
    path = clean_foreign_text(str(answer["path"])).replace("`", "")[:_MOST_PATH]
    holder = str(answer.get("holder", ""))
    both = (
        f"Task `{holder}` has `{path}` too. Change what you need and nothing else in it; "
        "the merge brings both together, and whoever comes second sees what does not fit."
    )
    match answer["handling"]:
        case "free":
            return f"No other task has `{path}`: go on and change it."
        case "reassign":
            return (
                f"`{path}` is yours now; task `{holder}`, which has not begun, waits for you. "
                "Go on and change it."
            )
        case "wait" if holder in ends:
            merged = "Its work is in your folder. " if ends[holder] == "COMPLETE" else ""
            return (
                f"`{path}` is free now: task `{holder}` is {ends[holder]}. "
                f"{merged}Go on and change it."
            )
        case "wait":
            return f"You cannot wait for `{path}`, since nobody can go on before you. {both}"
    return both


def find_named_task(text: str, names: Iterable[str]) -> str:
    """The task that a blocker says must come first: `a1 must be done first`, `needs task a1`."""
    for name in sorted(names, key=len, reverse=True):
        word = rf"(?<![\w/#.-])[`'\"]?{re.escape(name)}[`'\"]?(?![\w/#-]|\.\w)"
        precedes = rf"(?i:task|after|until|wait\w* for|depends on|blocked by)\s+{word}"
        follows = rf"{word}\s+(?i:must|has to|have to|needs to|should|is not|isn't|first|comes)\b"
        if re.search(f"{precedes}|{follows}", text):
            return name
    return ""
