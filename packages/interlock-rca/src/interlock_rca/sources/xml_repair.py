"""Repair broken XML: clean UTF-8 for the parser, and salvage results where it gives up.

Handles byte order marks, wrongly declared encodings and characters that XML forbids; a terminal's
escape character travels as a private one and is restored at the end. Salvaging looks at a bounded
number of tags, so hostile text costs no more than honest text.
"""

import codecs
import html
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final, NamedTuple

_CHUNK: Final = 1 << 16
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARATION: Final = re.compile(rb"<\?xml\b[^>]{0,500}\?>")
_ENCODING: Final = re.compile(rb"encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_AS_UTF8: Final = ("utf-8", "utf8", "us-ascii", "ascii")
_KNOWN: Final = re.compile(r"iso-|latin|windows-|cp|koi8|gb|big5|shift|sjis|euc|mac|tis")
"""Encodings that extend ASCII: a file with a readable declaration is in one of them."""
_REFERENCE: Final = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,9}));")
_STRAY: Final = re.compile("[\udc80-\udcff]")
_FORBIDDEN: Final = bytes(set(range(32)) - {9, 10, 13, 27})
_NONCHARACTERS: Final = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_STAND_IN: Final = "\ue01b"
"""The private character that stands for the escape character inside the parser."""
_STAND_IN_BYTES: Final = _STAND_IN.encode()


def restore_escapes(text: str) -> str:
    """Restore the escape characters of a text."""
    return text.replace(_STAND_IN, "\x1b") if _STAND_IN in text else text


class XmlText:
    """The cleaned chunks of one file. `notes` lists problems with its encoding."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.notes: list[str] = []
        self.is_empty = True
        self._stream = stream
        self._name = name

    def __iter__(self) -> Iterator[bytes]:
        head = self._stream.read(_CHUNK)
        encoding = self._detect_encoding(head)
        decoder = codecs.getincrementaldecoder(encoding)(
            "surrogateescape" if encoding.startswith("utf-8") else "replace"
        )
        chunk, held, first = head, b"", True
        while chunk:
            self.is_empty = self.is_empty and not chunk.strip()
            text = held + self._clean_text(decoder.decode(chunk))
            if first:
                text = _strip_declaration(text)
                first = not text
            text, held = _split_reference(text)
            if text:
                yield _drop_illegal_references(text)
            chunk = self._stream.read(_CHUNK)
        rest = _drop_illegal_references(held + self._clean_text(decoder.decode(b"", final=True)))
        if rest:
            yield rest

    def _detect_encoding(self, head: bytes) -> str:
        for mark, encoding in _BOMS:
            if head.startswith(mark):
                return encoding
        declaration = _DECLARATION.search(head[:2000])
        found = _ENCODING.search(declaration[0]) if declaration else None
        declared = found[1].decode().lower() if found else "utf-8"
        if declared in _AS_UTF8:
            return "utf-8"
        if _KNOWN.match(declared) and _encoding_exists(declared) and not _is_utf8(head):
            return declared
        self.notes.append(f"{self._name}: it is not in {declared} as declared; read as UTF-8")
        return "utf-8"

    def _clean_text(self, text: str) -> bytes:
        if not text.isascii() and _STRAY.search(text):
            note = f"{self._name}: some bytes are not UTF-8; they were read as Windows-1252"
            if note not in self.notes:
                self.notes.append(note)
            text = _STRAY.sub(_decode_windows, text)
        raw = text.encode("utf-8", "replace").translate(None, _FORBIDDEN)
        for character in _NONCHARACTERS:
            raw = raw.replace(character, b"")
        return raw.replace(b"\x1b", _STAND_IN_BYTES)


def _encoding_exists(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding) is not None
    except LookupError:
        return False


def _is_utf8(head: bytes) -> bool:
    """Return True if it can only be UTF-8: it has valid characters beyond ASCII."""
    try:
        return not codecs.getincrementaldecoder("utf-8")().decode(head).isascii()
    except UnicodeDecodeError:
        return False


def _decode_windows(stray: re.Match[str]) -> str:
    return bytes([ord(stray[0]) - 0xDC00]).decode("cp1252", "replace")


def _strip_declaration(text: bytes) -> bytes:
    """Drop everything before the first tag, the declaration included."""
    at = text.find(b"<")
    text = text[at:] if at >= 0 else b""
    return _DECLARATION.sub(b"", text, count=1) if text.startswith(b"<?xml") else text


def _split_reference(text: bytes) -> tuple[bytes, bytes]:
    """Split off a reference that may continue in the next chunk."""
    at = text.rfind(b"&", max(0, len(text) - 16))
    if at < 0 or b";" in text[at:]:
        return text, b""
    return text[:at], text[at:]


def _drop_illegal_references(text: bytes) -> bytes:
    return _REFERENCE.sub(_check_reference, text) if b"&#" in text else text


def _check_reference(found: re.Match[bytes]) -> bytes:
    number = int(found[1], 16) if found[1] else int(found[2])
    if number == 27:
        return _STAND_IN_BYTES
    control = number < 32 and number not in (9, 10, 13)
    wrong = 0xD800 <= number <= 0xDFFF or number in (0xFFFE, 0xFFFF) or number > 0x10FFFF
    return b"" if control or wrong else found[0]


_MOST_TAGS: Final = 20
_LONGEST_TAG: Final = 1 << 16
_LONGEST_TEXT: Final = 1 << 18
_TAG: Final = re.compile(rb"<(?:[\w.-]+:)?(failure|error|skipped)(?=[\s/>])")
_CASE: Final = re.compile(rb"<(?:[\w.-]+:)?testcase(?=[\s/>])")
_REST: Final = re.compile(rb"""(?:[^>"']|"[^"]*+"|'[^']*+')*+>""")
_NAME: Final = r"(?<![\w:.-])([\w:.-]{1,100}+)\s{0,20}+=\s{0,20}+"
_ATTRIBUTE: Final = re.compile(_NAME + r"""(?:"([^"]*+)"|'([^']*+)')""")
_OPEN_ATTRIBUTE: Final = re.compile(_NAME + r"""["']([^"']*+)\Z""")
_CLOSING: Final = re.compile(r"</(?:[\w.-]+:)?(?:failure|error|testcase)\b")
_CDATA: Final = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
NEXT_TAG: Final = re.compile(rb"<(/?)(?:[\w.-]+:)?(testcase|testsuites?)(?=[\s/>])")
"""A tag from which a lost reader can continue."""


class SalvagedResult(NamedTuple):
    """A tag that gives a test's result: failure, error or skipped."""

    kind: str
    attributes: Mapping[str, str]
    text: str


def salvage_case_attributes(raw: bytes) -> dict[str, str] | None:
    """Return the attributes of the first `testcase` tag in the text, or None."""
    tag = _CASE.search(raw)
    return None if tag is None else _read_tag(raw, tag.end())[0]


def salvage_results(raw: bytes) -> list[SalvagedResult]:
    """Return the results in the text, in order."""
    found: list[SalvagedResult] = []
    tag = _TAG.search(raw)
    while tag and len(found) < _MOST_TAGS:
        attributes, end = _read_tag(raw, tag.end())
        text = ""
        if not raw[max(0, end - 2) : end].startswith(b"/"):
            text = _read_text(raw[end : end + _LONGEST_TEXT])
        found.append(SalvagedResult(tag[1].decode(), attributes, text))
        tag = _TAG.search(raw, end)
    return found


def _read_tag(raw: bytes, at: int) -> tuple[dict[str, str], int]:
    """Return a tag's attributes and its end; quotes and the end may be missing."""
    window = raw[at : at + _LONGEST_TAG]
    complete = _REST.match(window)
    end = complete.end() if complete else window.find(b">") + 1 or len(window)
    text = window[:end].decode("utf-8", "replace")
    named = {
        attribute[1]: html.unescape(attribute[2] or attribute[3] or "")
        for attribute in _ATTRIBUTE.finditer(text)
    }
    if complete is None and (last := _OPEN_ATTRIBUTE.search(text)):
        named.setdefault(last[1], html.unescape(last[2]))
    return named, at + end


def _read_text(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    closing = _CLOSING.search(text)
    text = text[: closing.start()] if closing else text
    parts = _CDATA.split(text)  # every second part was inside CDATA, and is meant as it stands
    return "".join(
        part if number % 2 else html.unescape(part) for number, part in enumerate(parts)
    ).strip()
