"""Masking: a text with what changes from run to run replaced by short tokens such as `<num>`.

Two runs of one failure read alike after it, and two different failures still do not: codes that
name a fault (a status, an exit code, an error number) stay. Every pattern is linear in the text,
and none crosses a line end. A failure's fingerprint is made of masked text: 16 hex digits, the
same whenever and wherever it fails alike.
"""

import hashlib
import posixpath
import re
from functools import lru_cache

from interlock.system.text import strip_colours
from interlock_rca.analyst.stack import filter_own_frames, read_frames
from interlock_rca.records import Failure

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:[ ]?[AaPp][Mm]\b)?"
_ZONE = r"(?:[ ]?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?"
_DAY = r"\d{4}([-/.])\d{1,2}\1\d{1,2}"
_TIME = re.compile(
    rf"(?<!\d)(?:{_DAY}(?:[T ,_-]{{1,2}}{_CLOCK}{_ZONE})?(?!\d)"
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},?[ ])?"
    rf"(?:{_MONTH}[ ]{{1,2}}\d{{1,2}}|\d{{1,2}}[ /-]{_MONTH})\b"
    rf"(?:,?[ /-]\d{{4}})?(?:[ ,:]{{1,2}}(?:at[ ])?{_CLOCK}{_ZONE})?(?:[ ]\d{{4}}\b)?"
    rf"|\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d{{1,9}})?(?:[ ]?[AaPp][Mm]\b)?{_ZONE}(?!\d))"
)
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+-]{1,15}://[^\s\"'<>()\[\]{}|`]+")
_UUID = re.compile(r"\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b")
_ADDRESS = re.compile(
    r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)(?::\d{1,5}\b)?"
    r"|(?<![\w:-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:-])"
    r"|(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){4,7}[0-9A-Fa-f]{0,4}(?![\w:])"
)
_PATH = re.compile(
    r"(?<![\w.>/\\)-])(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\]{1,2}[^\s/\\:*?\"'<>|,;()\[\]{}=`$]+){2,}[/\\]?"
)
_SCRATCH = re.compile(r"[/\\](?:te?mp|folders|scratch|pytest-of-[^/\\]+)[/\\]", re.IGNORECASE)
_SCRATCH_NAME = re.compile(
    r"\b(?:tmp|temp|junit|pytest)[-_]?(?=[a-z_]*\d)[a-z0-9_]{6,}", re.IGNORECASE
)
_HEX = re.compile(
    r"\b0[xX][0-9A-Fa-f]+\b"
    r"|(?<=@)[0-9a-f]{4,16}\b"
    r"|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])(?:[0-9a-f]{6,}|[0-9A-F]{8,})\b"
)
_JUMBLE = re.compile(r"\b(?=\w{8})(?:[A-Za-z]{1,4}\d{1,4}){3,}[A-Za-z]{0,4}\b")
"""A drawn name: letters and digits that take turns."""

_LEADING_WORDS = r"(?:(?:code|status|with|is|was|of|number|value|returned)\b[^\w\n]{0,4}){0,3}"
_CODE = (
    r"(?P<code>(?i:status|code|errno|exit(?:ed)?|signal|https?(?:/\d(?:\.\d)?)?|response|error)"
    rf"[^\w\n]{{0,4}}(?i:{_LEADING_WORDS})-?\d{{1,3}}(?![\d\w]|[.:,]\d)"
    r"|(?<![\w.])[1-5]\d\d(?=[ ](?:Bad|Unauthori|Forbidden|Not[ ]|Method|Conflict|Gone|Too[ ]"
    r"|Internal|Service|Gateway|OK\b|Created|Accepted|No[ ]Content|Moved|Found|Unprocess"
    r"|Request|Payment))"
    r"|(?:(?i:expected|got|was|returned|received|actual|assert)\b[^\w\n]{0,4}|[=!]=[ ]?)"
    r"[1-5]\d\d(?![\d\w]|[.:,]\d)"
    r"|\b[A-Z]{1,6}-?\d{3,5}\b(?!-))"
)
_NUMBER = re.compile(
    rf"{_CODE}|(?<![A-Za-z0-9_])[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?"
    r"(?:[smhdKMGT][A-Za-z]{0,2}\b|%)?"
    r"|(?<=[A-Za-z_])\d{4,}"
)
_DIGIT = re.compile(r"\d")


@lru_cache(maxsize=32)
def mask_text(text: str) -> str:
    """`text` with all that is volatile replaced; the same number of lines. A failure's message is
    asked for several times in a row."""
    return _mask(text)


def _mask(text: str) -> str:
    text = strip_colours(text)
    if "/" in text or "\\" in text:
        if "://" in text:
            text = _URL.sub("<url>", text)
        text = _PATH.sub(_mask_path, text)
    if not _DIGIT.search(text):
        return text
    text = _UUID.sub("<uuid>", text)
    text = _ADDRESS.sub("<ip>", text)
    text = _TIME.sub("<time>", text)
    text = _SCRATCH_NAME.sub("<tmp>", text)
    text = _HEX.sub("<id>", text)
    text = _JUMBLE.sub("<id>", text)
    return _NUMBER.sub(lambda found: found["code"] or "<num>", text)


def mask_line(line: str) -> str:
    """One line masked, without the blanks around it."""
    return _mask(line).strip()


def _mask_path(found: re.Match[str]) -> str:
    """Where a file lies differs from machine to machine; its name does not, except in scratch."""
    path = found[0]
    parts = path.replace("\\", "/").rstrip("/").rsplit("/", 1)
    if _SCRATCH.search(path):
        dot = parts[1].rfind(".")
        return "<tmp>" + (parts[1][dot:] if dot > 0 and len(parts[1]) - dot <= 8 else "")
    return f"<path>/{parts[1]}"


_MOST_FRAMES = 12
_MESSAGE_LIMIT = 20_000
"""Of a longer message the beginning decides."""

_BLANKS = re.compile(r"\s+")
_DRAWN = re.compile(r"\$\$?[\w$]*\d[\w$]*|\d+")
"""What compilers draw anew: lambda and proxy numbers."""


def compute_fingerprint(failure: Failure) -> str:
    """Equal for two runs of one failure, other ids, times, pointers, paths and lines or not."""
    parts = [
        _normalize(failure.class_name),
        _normalize(failure.test_name),
        failure.type.strip(),
        _normalize(failure.message[:_MESSAGE_LIMIT]),
        *_format_frames(failure.stack),
    ]
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.hexdigest()


def _normalize(text: str) -> str:
    return _BLANKS.sub(" ", mask_text(text)).strip()


def _format_frames(stack: str) -> list[str]:
    words = []
    for frame in filter_own_frames(read_frames(stack))[:_MOST_FRAMES]:
        file = posixpath.basename(frame.file)
        scope = _DRAWN.sub("", frame.scope)
        words.append(f"{scope}.{_DRAWN.sub('', frame.function)}@{_DRAWN.sub('', file)}")
    return words
