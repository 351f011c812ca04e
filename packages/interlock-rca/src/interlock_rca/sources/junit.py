"""JUnit XML, read as it streams: failures come out as they end, whatever the file's size.

Where the text is broken or ends too early, reading goes on behind that place. Entities are refused:
no report needs them, and a few lines of them can fill a machine. What the elements mean is in
`junit_elements`.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final
from xml.parsers import expat

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock.system.text import LOG_BOUND
from interlock_rca.records import Failure, Job
from interlock_rca.sources import xml_repair
from interlock_rca.sources.junit_elements import JUnitElements, OnCase
from interlock_rca.sources.xml_repair import XmlText

_LONGEST_TAG: Final = 4 * 1024 * 1024
_MOST_RAW: Final = 1024 * 1024
_LOOK_BACK: Final = (b"<testcase", b"<failure", b"<error", b"<skipped")
_WRAPPER: Final = b"<again>"
"""Opened in front of what follows a broken place: then a parser takes it as one document."""


class JUnitReport:
    """One report. Iterate over its failures once; the rest is complete after the last one."""

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        log_bound: int = LOG_BOUND,
        on_case: OnCase | None = None,
    ) -> None:
        self.name = name
        self._text = XmlText(stream, name)
        self._elements = JUnitElements(name, log_bound, on_case)
        self._notes: list[str] = []
        self._breaks = 0
        self._raw = b""
        self._raw_at = 0
        """Where the kept bytes begin, counted from the beginning of the text."""
        self._reported_at = -1
        """Where the last tag began that the parser has reported, of those that matter."""
        self._base = 0
        self._parser = self._create_parser()

    @property
    def tally(self) -> TestCounts:
        return self._elements.tally

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(self._elements.jobs.values())

    @property
    def title(self) -> str:
        return self._elements.title

    @property
    def properties(self) -> dict[str, str]:
        return self._elements.properties

    @property
    def flipped(self) -> frozenset[str]:
        """Ids of failures whose test stands in the report once more, and passed."""
        return frozenset(self._elements.flipped)

    @property
    def attempts(self) -> dict[str, list[str]]:
        """Of a failure's id the ids under which the same test failed again."""
        return self._elements.attempts

    @property
    def repeats(self) -> dict[str, TestCounts]:
        """Of each job, how many of its results are further ones of tests that it counts already."""
        return self._elements.repeats

    @property
    def damage(self) -> list[str]:
        """Where the report is broken or cut, or counts failures that it does not show: what stood
        there is lost."""
        return [*self._notes, *(f"{self.name}: {note}" for note in self._elements.unshown)]

    @property
    def notes(self) -> list[str]:
        notes = [*self._notes, *(f"{self.name}: {note}" for note in self._elements.notes)]
        if self._breaks > 1:
            notes.append(f"{self.name}: broken in {self._breaks} places; the rest was read")
        return [*self._text.notes, *notes]

    def __iter__(self) -> Iterator[Failure]:
        chunks = iter(self._text)
        for chunk in chunks:
            self._feed(chunk, chunks)
            yield from self._take_ready()
        self._finish()
        yield from self._take_ready()
        if not self._elements.seen:
            if self._text.is_empty:
                raise SourceError(f"{self.name} is empty: there is no report in it.")
            raise SourceError(
                f"{self.name} is not JUnit XML: it has neither <testsuite> nor <testcase>; "
                "give the report that your test runner writes."
            )

    def _take_ready(self) -> list[Failure]:
        ready, self._elements.ready = self._elements.ready, []
        return ready

    def _create_parser(self) -> "expat.XMLParserType":
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._elements.end_element
        parser.CharacterDataHandler = self._elements.add_text
        parser.EntityDeclHandler = self._refuse_entity
        return parser

    def _start_element(self, tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith(("testcase", "failure", "error", "skipped")):
            self._reported_at = self._get_position()
        self._elements.start_element(tag, attributes)

    def _refuse_entity(self, *_: object) -> None:
        raise SourceError(
            f"{self.name} declares XML entities, which no JUnit report needs and which can be "
            "made to fill the memory: refused. Remove its <!DOCTYPE …> to have it read."
        )

    def _get_position(self) -> int:
        return self._base + max(0, self._parser.CurrentByteIndex)

    def _feed(self, chunk: bytes, more: Iterator[bytes]) -> None:
        keep = min(max(0, self._get_position() - self._raw_at), len(self._raw))
        self._raw, self._raw_at = self._raw[keep:] + chunk, self._raw_at + keep
        self._parse(chunk, more)

    def _parse(self, part: bytes, more: Iterator[bytes]) -> None:
        """Parse, and where the text is broken go on behind that place, until all is parsed."""
        left: bytes | None = part
        while left is not None:
            try:
                self._parser.Parse(left, False)
            except expat.ExpatError as error:
                left = self._recover(self._base + self._parser.ErrorByteIndex, str(error), more)
                continue
            left = None
            stuck = self._raw_at + len(self._raw) - self._get_position()
            if stuck > _LONGEST_TAG:
                left = self._recover(self._get_position(), "a tag has no end", more)

    def _recover(self, at: int, reason: str, more: Iterator[bytes]) -> bytes | None:
        """Take what stands in the broken case, find where the next begins; the bytes from there."""
        begin, start = self._find_unread_tag(at), self._to_local_offset(at)
        if self._raw[max(0, start - 2) : start] == b"</":
            start -= 2  # of a closing tag that closes nothing, the parser points at the name
        end = xml_repair.NEXT_TAG.search(self._raw, start)
        if end and end.start() == self._to_local_offset(begin) and not end[1]:
            end = xml_repair.NEXT_TAG.search(self._raw, end.end())
        kept = self._raw[self._to_local_offset(begin) : end.start() if end else len(self._raw)]
        while end is None:
            chunk = next(more, None)
            if chunk is None:
                break
            seam = self._raw[-64:]
            self._raw_at += len(self._raw) - len(seam)
            self._raw = seam + chunk
            end = xml_repair.NEXT_TAG.search(self._raw)
            if len(kept) < _MOST_RAW:
                kept += self._raw[len(seam) : end.start() if end else len(self._raw)]
        self._salvage(kept)
        closing_suite = bool(end and end[1] and end[2] != b"testcase")
        self._count_break(reason, is_known=closing_suite and self._base != 0)
        return self._restart_parser(end.start() if end else len(self._raw), end is not None)

    def _restart_parser(self, local: int, found: bool) -> bytes | None:
        """Begin again at that place with a new parser; a closing tag there is obeyed by hand."""
        self._elements.forget_position()
        tag = xml_repair.NEXT_TAG.match(self._raw, local) if found else None
        if tag and tag[1]:
            if tag[2] == b"testsuite":
                self._elements.end_suite()
                self._elements.forget_position()
            local = self._raw.find(b">", local) + 1 or len(self._raw)
        self._parser = self._create_parser()
        self._base = self._reported_at = self._raw_at + local
        self._base -= len(_WRAPPER)
        self._raw, self._raw_at = self._raw[local:], self._raw_at + local
        self._parser.StartElementHandler = None
        self._parser.Parse(_WRAPPER, False)
        self._parser.StartElementHandler = self._start_element
        return self._raw or None

    def _find_unread_tag(self, at: int) -> int:
        """Where the tag begins that the parser could not read to its end."""
        limit = self._to_local_offset(at) + 1
        places = (self._raw.rfind(tag, 0, limit) for tag in _LOOK_BACK)
        unread = [
            found for found in places if self._raw_at + found > self._reported_at and found >= 0
        ]
        return self._raw_at + min(unread) if unread else at

    def _to_local_offset(self, at: int) -> int:
        return min(max(0, at - self._raw_at), len(self._raw))

    def _salvage(self, raw: bytes) -> None:
        elements = self._elements
        attributes = xml_repair.salvage_case_attributes(raw)
        if attributes is not None:
            while elements.cases:
                elements.end_case()
            elements.forget_position()
            elements.start_element("testcase", attributes)
        if not elements.cases:
            return
        for found in xml_repair.salvage_results(raw):
            if found.kind == "skipped":
                elements.cases[-1].skipped = True
            else:
                elements.open_result(found.kind, dict(found.attributes)).add(found.text)
        while elements.cases:
            elements.end_case()

    def _count_break(self, reason: str, *, is_known: bool) -> None:
        if is_known:
            return  # the end of a suite that began before an earlier break
        self._breaks += 1
        if self._breaks == 1:
            self._notes.append(f"{self.name}: broken XML ({reason}); what surrounds it was read")

    def _finish(self) -> None:
        again = self._base != 0
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            if self._elements.cases or not again:
                self._end_early(str(error))
        self._elements.end_report()

    def _end_early(self, reason: str) -> None:
        begin = self._find_unread_tag(self._raw_at + len(self._raw))
        raw = self._raw[self._to_local_offset(begin) :]
        self._salvage(raw if xml_repair.salvage_results(raw) else b"")
        self._elements.cases.clear()
        self._notes.append(f"{self.name}: it ends too early ({reason}); what stood before was read")
