"""Text from outside inside Markdown: it stays text, in a forge, in a chat and in a plain reader.

Knows how markup, tables, mentions and bare links come about. Refuses to know documents.
"""

import re
from collections.abc import Iterable

from interlock.rca.report.links import safe_link
from interlock.system.text import clean, line

_MARKS = re.compile(r"([\\`*_\[\]|~$^])")
_OPENERS = re.compile(r"^([-+=#>!]|\d{1,9}[.)])")
_CALLS = re.compile(r"(?<![^\W_])([@#])(?=\w)|\b(GH)-(?=\d)")
BAR = r"\|"
_APART = "\u200b"
"""Between a sign and a name, so that nobody is called by a test's name."""


def prose(text: str, limit: int = 2000) -> str:
    """One line of words: no markup, no HTML, no mention, no link."""
    said = line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    said = _MARKS.sub(r"\\\1", said)
    said = said.replace("://", r":\//").replace("www.", r"www\.").replace("WWW.", r"WWW\.")
    said = _OPENERS.sub(_opener, said)
    return _CALLS.sub(lambda found: f"{found[1] or 'GH-'}{_APART}", said)


def _opener(found: re.Match[str]) -> str:
    """What would open a list, a heading or a quote."""
    mark = found[1]
    return f"{mark[:-1]}\\{mark[-1]}"


def code(text: str, limit: int = 300) -> str:
    """A code span. One with a bar is written as HTML: readers of tables do not agree on bars."""
    said = line(text, limit)
    if "|" in said:
        return f"<code>{prose(said, limit).replace(BAR, '&#124;')}</code>"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", said)), default=0))
    inner = f" {said} " if said.startswith("`") or said.endswith("`") else said
    return f"{ticks}{inner}{ticks}" if said else ""


def code_list(texts: Iterable[str], limit: int = 12) -> str:
    all_ = list(texts)
    said = ", ".join(code(text) for text in all_[:limit])
    return f"{said} and {len(all_) - limit:,} more" if len(all_) > limit else said


def link(said: str, url: str) -> str:
    """A link that cannot end early, also in a table; its text alone if the address is not safe."""
    address = safe_link(url).replace("|", "%7C")
    return f"[{said}](<{address}>)" if address and said else said


def fence(text: str) -> str:
    """A block that nothing inside can close."""
    said = clean(text).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", said)), default=0))
    return f"{ticks}text\n{said}\n{ticks}"
