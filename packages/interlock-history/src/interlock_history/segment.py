"""A segment: all results of one job of one run, packed in one immutable file.

A frame begins with its format, kind and length, ends with a hash of all of it, and is read whole or
not at all. Names of tests are in separate tables that segments share: a night that repeats the
tests of the night before adds a compressed byte of status and a byte of duration per test. Statuses
of a test are a set of bits and sets are united, so repeated results count once.
"""

import hashlib
import math
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, islice
from operator import ge
from typing import Final, Literal

import msgspec

from interlock.system.errors import SourceError
from interlock_rca.ci_run import CiRun

FORMAT: Final = 1
_MAGIC: Final = b"ILKH"
_HEAD: Final = struct.Struct(">4sBcQ")
_DIGEST: Final = 16
MOST_UNPACKED: Final = 1 << 28
_LEVEL: Final = 6

PASS, FAIL, SKIP = 1, 2, 4
FLIP: Final = PASS | FAIL
"""The test passed and failed on one source, in either order."""

FrameKind = Literal[b"N", b"S", b"I", b"W"]
_KIND_NAMES: Final = {b"N": "names", b"S": "results", b"I": "an index"}


class FailedTest(msgspec.Struct, frozen=True, array_like=True):
    """The stored facts about a test that failed at least once in a job."""

    test: str
    tries: str
    """The end of each try in order: P, F or S."""
    fingerprint: str = ""
    excerpt: str = ""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one job."""

    id: str
    run: CiRun
    tests: Sequence[str]
    """The ids of its tests, sorted and unique."""
    bits: bytes
    """For each test, the united statuses of its tries: PASS, FAIL, SKIP."""
    durations: bytes
    """For each test, its longest try as encoded by `encode_duration`."""
    failures: tuple[FailedTest, ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, status: int) -> int:
        return sum(self.bits.count(bytes([value])) for value in range(8) if value & status)


class PackedSegment(msgspec.Struct, frozen=True, array_like=True):
    """A segment as stored: its names are places in a table."""

    id: str
    run: CiRun
    table: str
    """The table of names that the segment refers to."""
    present: bytes
    """A compressed mask of the table's names that the segment has."""
    added: list[str]
    """Its tests that the table lacks; they come after the others."""
    bits: bytes
    durations: bytes
    failures: list[FailedTest]
    notes: list[str]

    def read_marks(self, count: int) -> bytes:
        """Return the mask of the table's names. Raise SourceError if the table has another size."""
        unpacking = zlib.decompressobj()
        try:
            marks = unpacking.decompress(self.present, count + 1)
        except zlib.error as error:
            raise SourceError(f"the list of tests of {self.id} is damaged: {error}") from None
        total = marks.count(1) + len(self.added)
        if len(marks) != count or {total} != {len(self.bits), len(self.durations)}:
            raise SourceError(f"the results {self.id} do not fit their table of names")
        return marks

    def find_test(self, names: Sequence[str], test: str) -> int | None:
        """Return the place of a test among the bits, or None. Names are sorted."""
        marks = self.read_marks(len(names))
        place = bisect_left(names, test)
        if place < len(names) and names[place] == test:
            return marks.count(1, 0, place) if marks[place] else None
        return marks.count(1) + self.added.index(test) if test in self.added else None

    def list_tests(self, names: Sequence[str]) -> list[str]:
        """Return its tests in the order of its bits. Raise SourceError if the table is the wrong
        one."""
        return [*compress(names, self.read_marks(len(names))), *self.added]

    def unpack(self, names: Sequence[str]) -> Segment:
        rows = sorted(zip(self.list_tests(names), self.bits, self.durations, strict=True))
        return Segment(
            id=self.id,
            run=self.run,
            tests=[row[0] for row in rows],
            bits=bytes(row[1] for row in rows),
            durations=bytes(row[2] for row in rows),
            failures=tuple(self.failures),
            notes=tuple(self.notes),
        )


_encode = msgspec.msgpack.Encoder().encode
_decode_segment = msgspec.msgpack.Decoder(PackedSegment).decode
_decode_names = msgspec.msgpack.Decoder(list[str]).decode


def make_segment(
    run: CiRun,
    results: Mapping[str, tuple[int, int]],
    failures: Iterable[FailedTest] = (),
    notes: Iterable[str] = (),
) -> Segment:
    """Return a segment of statuses and duration codes. Its id depends on run and results, not on
    when they were taken in."""
    tests = sorted(results)
    bits = bytes(results[test][0] for test in tests)
    durations = bytes(results[test][1] for test in tests)
    failed = tuple(sorted(failures, key=lambda each: each.test))
    timeless = msgspec.structs.replace(run, at=0.0)
    content = _encode((timeless, tests, bits, durations, failed))
    return Segment(
        id=hashlib.blake2b(content, digest_size=16).hexdigest(),
        run=run,
        tests=tests,
        bits=bits,
        durations=durations,
        failures=failed,
        notes=tuple(notes),
    )


def write_frame(kind: FrameKind, body: bytes, level: int = _LEVEL) -> bytes:
    packed = zlib.compress(body, level)
    head = _HEAD.pack(_MAGIC, FORMAT, kind, len(packed))
    return head + packed + hashlib.blake2b(head + packed, digest_size=_DIGEST).digest()


def read_frame(raw: bytes, kind: FrameKind, name: str) -> bytes:
    """Return the body of a frame. Raise SourceError, naming the file, if it is damaged."""
    if len(raw) < _HEAD.size or raw[:4] != _MAGIC:
        cut = raw and _MAGIC.startswith(raw[:4])
        what = "is cut short" if cut else "is empty" if not raw else "is no history of Interlock's"
        raise SourceError(f"{name} {what}")
    _, format_, found, length = _HEAD.unpack_from(raw)
    if format_ > FORMAT:
        raise SourceError(
            f"{name} was written by a newer Interlock (format {format_}, this one reads "
            f"{FORMAT}): upgrade to read it"
        )
    if len(raw) != _HEAD.size + length + _DIGEST:
        raise SourceError(f"{name} is cut short, or something was added to it")
    if hashlib.blake2b(raw[:-_DIGEST], digest_size=_DIGEST).digest() != raw[-_DIGEST:]:
        raise SourceError(f"{name} is damaged: its content is not what was written")
    if found != kind:
        raise SourceError(
            f"{name} holds {_KIND_NAMES.get(found, 'something else')}, not {_KIND_NAMES[kind]}"
        )
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(raw[_HEAD.size : -_DIGEST], MOST_UNPACKED)
    if not unpacking.eof:
        raise SourceError(f"{name} unpacks to more than {MOST_UNPACKED:,} bytes: refused")
    return body


def write_names(names: Sequence[str]) -> tuple[str, bytes]:
    """Return the digest and the file of a table of names."""
    body = _encode(list(names))
    return hashlib.blake2b(body, digest_size=16).hexdigest(), write_frame(b"N", body)


def read_names(raw: bytes, name: str) -> list[str]:
    try:
        found = _decode_names(read_frame(raw, b"N", name))
    except msgspec.MsgspecError as error:
        raise SourceError(f"{name} is damaged: {error}") from None
    if any(map(ge, found, islice(found, 1, None))):
        raise SourceError(f"{name} is damaged: its names are not in order, or not each once")
    return found


def write_segment(segment: Segment, table: str, names: Mapping[str, int]) -> bytes:
    """Return the file of a segment, written against a table that maps names to places."""
    marks = bytearray(len(names))
    order: list[int] = []
    added: list[int] = []
    for at, test in enumerate(segment.tests):
        place = names.get(test)
        if place is None:
            added.append(at)
        else:
            marks[place] = 1
            order.append(at)
    order.sort(key=lambda at: names[segment.tests[at]])
    order += added
    packed = PackedSegment(
        segment.id,
        segment.run,
        table,
        zlib.compress(bytes(marks), 9),
        [segment.tests[at] for at in added],
        bytes(map(segment.bits.__getitem__, order)),
        bytes(map(segment.durations.__getitem__, order)),
        list(segment.failures),
        list(segment.notes),
    )
    return write_frame(b"S", _encode(packed))


def read_segment(raw: bytes, name: str) -> PackedSegment:
    """Read a segment from its file. Anybody who can write a job's artifact can forge a frame, so
    contents that no job can report are refused."""
    try:
        found = _decode_segment(read_frame(raw, b"S", name))
    except msgspec.MsgspecError as error:
        raise SourceError(f"{name} is damaged: {error}") from None
    is_sound = 0 <= found.run.at < _LATEST and found.run.attempt >= 1
    if not is_sound or found.bits.translate(None, _KNOWN_BITS):
        raise SourceError(f"{name} holds a time, an attempt or a status that cannot be")
    return found


_LATEST: Final = 32_503_680_000.0
"""The year 3000; the comparison also refuses NaN."""
_KNOWN_BITS: Final = bytes(range(1, 8))


_STEPS: Final = 10
"""Codes per doubling: durations are kept to about 3.5 per cent."""


def encode_duration(seconds: float) -> int:
    """Encode a duration as one byte; 0 if it is unknown."""
    if not 0 <= seconds < 1e9:
        return 0
    return max(1, min(255, round(_STEPS * math.log2(seconds * 1000 + 1)) + 1))


def decode_duration(code: int) -> float | None:
    """Return the seconds of a code, or None if unknown."""
    return (2 ** ((code - 1) / _STEPS) - 1) / 1000 if code else None
