"""Text from outside, made fit to be shown: harmless, bounded, on one line where it must be.

Knows characters, lengths and dates. Refuses to know markup: each document escapes for itself.
"""

import re
import unicodedata
from datetime import UTC, datetime, timedelta

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """Without colours; what cannot be seen but could mislead is written as an escape."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _UNSEEN.sub(_escape, text.replace("\r\n", "\n").replace("\r", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def line(text: str, limit: int = 200) -> str:
    """Clean, on one line, with an ellipsis where it was cut."""
    whole = _BLANKS.sub(" ", clean(text[: limit * 4])).strip()
    return whole if len(whole) <= limit else whole[: limit - 1].rstrip() + "…"


def first_line(text: str, limit: int = 200) -> str:
    """The first line that says something."""
    for each in text[:20_000].splitlines():
        if said := line(each, limit):
            return said
    return ""


def block(text: str, limit: int) -> tuple[str, int]:
    """Clean lines from the start, and how many characters were left out."""
    whole = clean(text[:limit]).strip("\n")
    return whole, max(0, len(text) - limit)


def writable(text: str) -> str:
    """The same, with what UTF-8 cannot hold replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(at: str) -> datetime | None:
    """An RFC 3339 time; one without an offset is taken as UTC. None if it is none."""
    try:
        found = datetime.fromisoformat(at.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def when(at: str) -> str:
    """A time for people, in UTC; what cannot be read is shown as it came."""
    found = moment(at)
    return f"{found:%Y-%m-%d %H:%M} UTC" if found else line(at, 40)


def day(at: str) -> str:
    found = moment(at)
    return f"{found:%Y-%m-%d}" if found else line(at, 40)


def lasted(start: str, end: str) -> str:
    """How long something took, in its two largest units; empty if not known."""
    begun, ended = moment(start), moment(end)
    if begun is None or ended is None or ended < begun:
        return ""
    return span(ended - begun)


def span(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m")]
    said = [f"{number} {unit}" for number, unit in (*parts, (seconds % 60, "s")) if number]
    return " ".join(said[:2]) or "0 s"


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(_columns(each) for each in text)


def _columns(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def fitted(text: str, width: int) -> str:
    """At most so many columns, with an ellipsis where it was cut."""
    if columns(text) <= width:
        return text
    taken, room = "", max(0, width - 1)
    for sign in text:
        room -= _columns(sign)
        if room < 0:
            break
        taken += sign
    return (taken.rstrip() + "…") if width > 0 else ""
