"""Write numbers, times, names and states for pages. Texts from outside stay texts."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from markupsafe import Markup, escape

from interlock.api.browse import CaseLine
from interlock.system.text import clean_text, plural, safe_link
from interlock.system.time import (
    format_age,
    format_clock_time,
    format_duration,
    format_time,
    format_timestamp,
)

_NOTHING: Final = Markup("&ndash;")
_LONGEST_NAME: Final = 120
_LONGEST_TEXT: Final = 200_000
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}[^\s<>\"'`\\.,;:!?)\]}]")
_TONES: Final = {
    "running": "active",
    "waiting": "wait",
    "budget": "wait",
    "rate-limited": "wait",
    "done": "good",
    "ended": "good",
    "unhealthy": "bad",
    "stuck": "bad",
    "interrupted": "bad",
    "stopped": "quiet",
    "open": "active",
    "error": "bad",
    "warning": "wait",
    "working": "active",
    "idle": "quiet",
    "dead": "bad",
    "silent": "bad",
    "waiting-for-permission": "wait",
    "found": "good",
    "missing": "bad",
    "proven": "bad",
    "cleared": "good",
    "suspect": "wait",
}
_CASE_TONES: Final = {**_TONES, "human": "wait", "asked": "active"}


def write_name(text: str, limit: int = _LONGEST_NAME) -> Markup:
    """Write a name from outside on one line, isolated from the direction of the text around it."""
    clean = " ".join(clean_text(text).split()) or "(no name)"
    if len(clean) <= limit:
        return Markup("<bdi>{}</bdi>").format(clean)
    # The tail tells similar names apart: parameters and methods stand there.
    head, tail = clean[: limit * 2 // 3], clean[-(limit // 3) :]
    return Markup('<bdi title="{}">{}…{}</bdi>').format(clean[:2000], head, tail)


def write_time(at: float | None) -> Markup:
    """Write a moment in the server's time, to the second."""
    if not at:
        return _NOTHING
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        format_timestamp(at), format_time(at), format_clock_time(at, time.time())
    )


def write_age(at: float | None, now: float) -> Markup:
    """Write how long ago a moment was; the script keeps it going."""
    if not at:
        return _NOTHING
    return Markup('<time datetime="{}" title="{}" data-age="{}">{}</time>').format(
        format_timestamp(at), format_time(at), round(at, 1), format_age(now - at)
    )


def format_money(amount: float) -> str:
    """Write dollars with cents, and smaller amounts with more digits."""
    if not amount:
        return "$0"
    return f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.4f}"


def format_count(number: int) -> str:
    """Write 12,345 up to a hundred thousand, and larger numbers as 1.2 M."""
    if number < 100_000:
        return f"{number:,}"
    return f"{number / 1e6:.1f} M" if number >= 1_000_000 else f"{number / 1e3:.0f} k"


def find_tone(word: str, default: str = "quiet") -> str:
    """Return the colour of a state. Its word always stands beside it."""
    return _TONES.get(word, default)


def find_case_tone(line: CaseLine) -> str:
    """Return the colour of a case's state."""
    if line.row.status == "stuck":
        return "bad"
    if line.row.status == "ended":
        return "good" if line.healthy else "bad"
    return _CASE_TONES.get(line.word, "quiet")


def write_badge(word: str, tone: str = "", label: str = "") -> Markup:
    return Markup('<span class="badge" data-tone="{}">{}</span>').format(
        tone or find_tone(word), label or word
    )


def find_address(url: str) -> str:
    """Return a link to the web or to one of our own pages; empty if it leads elsewhere."""
    is_own = url.startswith("/") and url[1:2] not in ("/", "\\") and url.isprintable()
    return url if is_own else safe_link(url)


def write_json(value: Any) -> str:
    """Write a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def write_text(text: str, limit: int = _LONGEST_TEXT) -> Markup:
    """Write text from outside line by line, and how much of it was left out. A web address becomes
    a link that shows where it leads."""
    clean, shown, end = clean_text(text[:limit]), Markup(""), 0
    for found in _ADDRESS.finditer(clean):
        if address := safe_link(found[0]):
            shown += escape(clean[end : found.start()])
            shown += Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, found[0])
            end = found.end()
    shown += escape(clean[end:])
    left = len(text) - limit
    if left <= 0:
        return shown
    return shown + Markup('\n<em class="cut">… {:,} more characters</em>').format(left)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "name": write_name,
    "at": write_time,
    "age": write_age,
    "money": format_money,
    "count": format_count,
    "badge": write_badge,
    "address": find_address,
    "case_tone": find_case_tone,
    "tone": find_tone,
    "pretty": write_json,
    "plain": write_text,
    "seconds": format_duration,
    "plural": plural,
}
