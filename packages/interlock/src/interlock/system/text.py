"""Prepare text from outside for display: harmless, bounded, and on one line where needed.

Escapes terminal codes and invisible characters, measures columns, escapes Markdown (a forge, a
chat, a plain reader), and cuts long text to its head and tail.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_ANSI = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]*+(?:\x07|\x1b\\)?|[@-Z\\^_=>])")
"""Colours, cursor moves and titles of a terminal."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_BLANKS = re.compile(r"\s+")


def strip_colours(text: str) -> str:
    """Return the text without terminal codes."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def clean_text(text: str) -> str:
    """Return the text without colours, and with misleading invisible characters escaped."""
    return _UNSEEN.sub(_escape, strip_colours(text).replace("\r\n", "\n").replace("\r", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def format_line(text: str, limit: int = 200) -> str:
    """Return the text clean and on one line, with an ellipsis where it was cut."""
    line = _BLANKS.sub(" ", clean_text(text[: limit * 4])).strip()
    return shorten(line, limit)


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters, with an ellipsis where the text was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def shorten_counted(text: str, limit: int) -> str:
    """Return about `limit` characters; a cut text ends with its full length."""
    return text if len(text) <= limit else f"{text[: limit - 20]}… ({len(text)} characters)"


def find_first_line(text: str, limit: int = 200) -> str:
    """Return the first line that is not blank."""
    lines = (format_line(line, limit) for line in text[:20_000].splitlines())
    return next(filter(None, lines), "")


def clip_block(text: str, limit: int) -> tuple[str, int]:
    """Return clean lines from the start, and the number of characters left out."""
    return clean_text(text[:limit]).strip("\n"), max(0, len(text) - limit)


def replace_unencodable(text: str) -> str:
    """Replace the characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


_SPELLED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ẞ": "SS"}
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "þ": "th", "Þ": "Th", "ð": "d", "Ð": "D"}
)


def transliterate(text: str) -> str:
    """Replace accented letters with plain ones and spell out umlauts; keep other scripts."""
    spelled = unicodedata.normalize("NFC", text).translate(_SPELLED)
    parts = unicodedata.normalize("NFKD", spelled)
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


def plural(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def count_columns(text: str) -> int:
    """Return the columns that the text takes in a terminal."""
    return sum(_count_columns(each) for each in text)


def _count_columns(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def fit_columns(text: str, width: int) -> str:
    """Return at most `width` columns, with an ellipsis where the text was cut."""
    if count_columns(text) <= width:
        return text
    taken, room = "", max(0, width - 1)
    for sign in text:
        room -= _count_columns(sign)
        if room < 0:
            break
        taken += sign
    return (taken.rstrip() + "…") if width > 0 else ""


_MARKS = re.compile(r"([\\`*_\[\]|~$^])")
_OPENERS = re.compile(r"^([-+=#>!]|\d{1,9}[.)])")
_CALLS = re.compile(r"(?<![^\W_])([@#])(?=\w)|\b(GH)-(?=\d)")
BAR = r"\|"
_HOST = re.compile(r"[A-Za-z0-9\[\]:._-]+")
_LONGEST_LINK = 2000
_APART = "\u200b"
"""Stands between a sign and a name, so that a test's name mentions nobody."""


def escape_markdown(text: str, limit: int = 2000) -> str:
    """Return one line of plain words: no markup, HTML, mention or link."""
    clean = format_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    clean = _MARKS.sub(r"\\\1", clean)
    clean = clean.replace("://", r":\//").replace("www.", r"www\.").replace("WWW.", r"WWW\.")
    clean = _OPENERS.sub(_escape_opener, clean)
    return _CALLS.sub(lambda found: f"{found[1] or 'GH-'}{_APART}", clean)


def _escape_opener(found: re.Match[str]) -> str:
    """Escape what would open a list, a heading or a quote."""
    mark = found[1]
    return f"{mark[:-1]}\\{mark[-1]}"


def format_code(text: str, limit: int = 300) -> str:
    """Return a code span; with a bar, as HTML, because table readers disagree on bars."""
    clean = format_line(text, limit)
    if "|" in clean:
        return f"<code>{escape_markdown(clean, limit).replace(BAR, '&#124;')}</code>"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", clean)), default=0))
    inner = f" {clean} " if clean.startswith("`") or clean.endswith("`") else clean
    return f"{ticks}{inner}{ticks}" if clean else ""


def format_code_list(texts: Iterable[str], limit: int = 12) -> str:
    all_ = list(texts)
    clean = ", ".join(format_code(text) for text in all_[:limit])
    return f"{clean} and {len(all_) - limit:,} more" if len(all_) > limit else clean


def safe_link(url: str) -> str:
    """Return the link without credentials; empty if it is not a plain web address."""
    url = url.strip()
    if (
        not url
        or len(url) > _LONGEST_LINK
        or not url.isprintable()
        or re.search(r"[\s\\\"'<>`]", url)
    ):
        return ""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https") or not _HOST.fullmatch(host):
        return ""
    return urlunsplit((parts.scheme.lower(), host, parts.path, parts.query, parts.fragment))


def format_link(clean: str, url: str) -> str:
    """Return a link that cannot end early, even in a table; only its text if the URL is unsafe."""
    address = safe_link(url).replace("|", "%7C")
    return f"[{clean}](<{address}>)" if address and clean else clean


def format_fence(text: str) -> str:
    """Return a code block that its content cannot close."""
    clean = clean_text(text).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", clean)), default=0))
    return f"{ticks}text\n{clean}\n{ticks}"


LOG_BOUND: Final = 256 * 1024
"""Characters of one failure's log that are kept."""


class ClippedText:
    """Collect text in pieces, holding about `bound` characters at most."""

    __slots__ = ("_bound", "_head", "_head_size", "_tail", "_tail_size", "total")

    def __init__(self, bound: int = LOG_BOUND) -> None:
        self.total = 0
        self._bound = bound
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0

    def add(self, piece: str) -> None:
        self.total += len(piece)
        room = self._bound // 2 - self._head_size
        if room > 0:
            taken, piece = piece[:room], piece[room:]
            self._head.append(taken)
            self._head_size += len(taken)
        if piece:
            self._add_to_tail(piece)

    def _add_to_tail(self, piece: str) -> None:
        keep = self._bound - self._bound // 2
        piece = piece[-keep:]
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= keep:
            self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        return self.total > self._bound

    def text(self) -> str:
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.truncated:
            return head + tail
        tail = tail[-(self._bound - self._bound // 2) :]
        cut = self.total - len(head) - len(tail)
        return f"{head}\n[{cut:,} characters cut]\n{tail}"


def clip_text(text: str, bound: int = LOG_BOUND) -> tuple[str, bool]:
    """Return the text within the bound, and True if it was cut."""
    if len(text) <= bound:
        return text, False
    kept = ClippedText(bound)
    kept.add(text)
    return kept.text(), True


def align_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the rows as aligned columns under their heads; empty if there are no rows."""
    lines = [[str(cell) for cell in row] for row in rows]
    if not lines:
        return []
    lines.insert(0, list(head))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
