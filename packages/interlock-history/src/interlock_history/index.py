"""The index: the statuses of every test on every source, as columns of bytes.

A lane is the history of one job and variant on one line of development. A column of it is one
source tree: a byte per test, which unites the statuses of all tries, attempts and runs on that
tree. So ingesting twice, or in another order, gives the same column. The index is derived from the
segments, kept beside them, updated with new ones, and rebuilt when lost.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final

import msgspec

from interlock.system.errors import SourceError
from interlock_history.segment import FAIL, PASS, SKIP, PackedSegment
from interlock_history.settings import HistorySettings
from interlock_history.store import HistoryStore
from interlock_rca.ci_run import CiRun, Scope, name_attempt

_FORM: Final = 1
_HEADS: Final = "lanes"


class Lane(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Results that can be compared with each other."""

    project: str
    scope: Scope
    branch: str
    """The branch, if the scope is a branch other than the default one."""
    label: str
    """The job and its variant."""

    @property
    def name(self) -> str:
        return hashlib.blake2b(msgspec.msgpack.encode(self), digest_size=12).hexdigest()


class Column(msgspec.Struct, frozen=True, array_like=True):
    """One source in a lane."""

    source: str
    at: float
    """The time when its newest commit was first tested."""
    commits: tuple[str, ...] = ()
    """The commits with this tree: more than one where a change was reverted."""
    pr: str = ""
    runs: tuple[str, ...] = ()
    """The attempts that tested it, as RUN#ATTEMPT."""
    ignored: tuple[str, ...] = ()
    """The attempts to ignore because nearly everything failed."""
    is_whole: bool = True
    """True if every shard is there."""
    segments: tuple[str, ...] = ()


class LaneIndex(msgspec.Struct):
    """A lane with its columns. The `rows` of a column hold one byte per test, without trailing
    zeros."""

    lane: Lane
    columns: list[Column]
    tests: list[str]
    rows: list[bytes]

    def read_rows(self, chosen: Sequence[int]) -> list[bytes]:
        """Return, for each test, its statuses in the chosen columns."""
        count = len(self.tests)
        if not count or not chosen:
            return [b""] * count
        joined = b"".join(self.rows[at].ljust(count, b"\0") for at in chosen)
        # In the concatenated columns, every count-th byte belongs to one test.
        return [joined[at::count] for at in range(count)]


class _Head(msgspec.Struct, array_like=True):
    lane: Lane
    columns: list[Column]


class _Heads(msgspec.Struct, array_like=True):
    form: int
    signature: str
    heads: list[_Head]


class _Matrix(msgspec.Struct, array_like=True):
    sources: list[str]
    tests: list[str]
    rows: list[bytes]


_encode = msgspec.msgpack.Encoder().encode


class HistoryIndex:
    """The index of one store, updated when it is opened."""

    def __init__(self, store: HistoryStore, settings: HistorySettings) -> None:
        self._store = store
        self._settings = settings
        share, least = settings.infrastructure_share, settings.infrastructure_least
        self._signature = f"{_FORM} {share} {least}"
        self._heads = self._load_heads()
        self._loaded: dict[Lane, LaneIndex] = {}
        self._refresh()

    def list_lanes(self) -> list[Lane]:
        return sorted(self._heads)

    def list_columns(self, lane: Lane) -> list[Column]:
        return self._heads[lane]

    def load_lane(self, lane: Lane) -> LaneIndex:
        """Return a lane with its rows, with columns in time order."""
        found = self._loaded.get(lane) or self._load_matrix(lane)
        if found is None:
            found = LaneIndex(lane, [], [], [])
            self._compute(found, self._heads[lane], self._heads[lane])
            self._keep_lane(found)
        self._loaded[lane] = found
        return found

    def _load_heads(self) -> dict[Lane, list[Column]]:
        raw = self._store.read_derived(_HEADS)
        try:
            found = msgspec.msgpack.decode(raw, type=_Heads) if raw else None
        except msgspec.MsgspecError:
            found = None
        if found is None or found.signature != self._signature:
            return {}
        return {head.lane: head.columns for head in found.heads}

    def _refresh(self) -> None:
        """Add new segments, and drop those that are gone."""
        present = set(self._store.list_segments())
        known = {
            each: (lane, column.source)
            for lane, columns in self._heads.items()
            for column in columns
            for each in column.segments
        }
        touched: dict[Lane, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each in known.keys() - present:
            lane, source = known[each]
            touched[lane][source].add(each)
        for each in sorted(present - known.keys()):
            packed = self._store.read(each)
            if packed is not None:
                touched[find_lane(packed.run)][packed.run.source].add(each)
        for lane, sources in touched.items():
            self._update_lane(lane, sources, present)
        if touched:
            heads = [_Head(lane, columns) for lane, columns in sorted(self._heads.items())]
            self._store.keep_derived(_HEADS, _encode(_Heads(_FORM, self._signature, heads)))

    def _update_lane(self, lane: Lane, sources: dict[str, set[str]], present: set[str]) -> None:
        old = self._heads.get(lane, [])
        index = (self._load_matrix(lane) if old else None) or LaneIndex(lane, [], [], [])
        kept = {column.source: column for column in old}
        wanted: list[Column] = []
        for source, changed in sources.items():
            before = kept.pop(source, None)
            ids = (set(before.segments if before else ()) | changed) & present
            if ids:
                wanted.append(Column(source, 0.0, segments=tuple(sorted(ids))))
        fresh = wanted if index.columns else [*wanted, *kept.values()]
        self._compute(index, [*kept.values(), *wanted], fresh)
        if index.columns:
            self._heads[lane] = index.columns
        else:
            self._heads.pop(lane, None)
        self._loaded[lane] = index
        self._keep_lane(index)

    def _compute(self, index: LaneIndex, wanted: Sequence[Column], fresh: Sequence[Column]) -> None:
        """Set the columns of the index; compute those in `fresh` from their segments."""
        rows = dict(zip((c.source for c in index.columns), index.rows, strict=True))
        again = {column.source for column in fresh}
        builder = _ColumnBuilder(self._store, index.tests, self._settings)
        found: list[tuple[Column, bytes]] = []
        for column in wanted:
            if column.source in again:
                made = builder.build(column)
                found += [made] if made else []
            else:
                found.append((column, rows[column.source]))
        found.sort(key=lambda pair: (pair[0].at, pair[0].source))
        index.columns[:] = [column for column, _ in found]
        index.rows[:] = [row for _, row in found]

    def _load_matrix(self, lane: Lane) -> LaneIndex | None:
        """Return the stored lane; None if it is missing or describes other columns."""
        raw = self._store.read_derived(lane.name)
        try:
            matrix = msgspec.msgpack.decode(raw, type=_Matrix) if raw else None
        except msgspec.MsgspecError:
            matrix = None
        columns = self._heads.get(lane, [])
        if matrix is None or matrix.sources != [_mark(column) for column in columns]:
            return None
        return LaneIndex(lane, list(columns), matrix.tests, matrix.rows)

    def _keep_lane(self, index: LaneIndex) -> None:
        sources = [_mark(column) for column in index.columns]
        matrix = _Matrix(sources, index.tests, index.rows)
        self._store.keep_derived(index.lane.name, _encode(matrix))


def _mark(column: Column) -> str:
    """Return a mark that changes when a column is computed from other segments."""
    text = "".join((column.source, *column.segments))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def find_lane(run: CiRun) -> Lane:
    return Lane(run.project, run.scope, run.branch if run.scope == "branch" else "", run.label)


class _ColumnBuilder:
    def __init__(self, store: HistoryStore, tests: list[str], settings: HistorySettings) -> None:
        self._store = store
        self._settings = settings
        self._tests = tests
        self._places = {test: at for at, test in enumerate(tests)}
        self._tables: dict[str, list[int]] = {}

    def build(self, column: Column) -> tuple[Column, bytes] | None:
        """Compute the column from its segments; return None if none is readable."""
        found: list[tuple[PackedSegment, list[int]]] = []
        for each in column.segments:
            packed = self._store.read(each)
            places = self._find_places(packed) if packed else None
            if packed and places is not None:
                found.append((packed, places))
        if not found:
            return None
        groups: dict[str, list[tuple[PackedSegment, list[int]]]] = defaultdict(list)
        for packed, places in found:
            groups[name_attempt(packed.run)].append((packed, places))
        row = bytearray(len(self._tests))
        ignored = []
        attempts = {name: _unite(group, len(self._tests)) for name, group in groups.items()}
        most = max(map(_count_ran, attempts.values()))
        for name, statuses in attempts.items():
            # An attempt that repeats only failures is expected to fail.
            is_repeat = 2 * _count_ran(statuses) < most
            if not is_repeat and is_infrastructure(statuses, self._settings):
                ignored.append(name)
            else:
                _or_into(row, statuses)
        runs = [packed.run for packed, _ in found]
        made = Column(
            column.source,
            _find_time(runs),
            tuple(sorted({run.commit for run in runs if run.commit})),
            max((run.pr for run in runs), default=""),
            tuple(sorted(groups)),
            tuple(sorted(ignored)),
            _has_all_shards(runs),
            column.segments,
        )
        return made, bytes(row).rstrip(b"\0")

    def _find_places(self, packed: PackedSegment) -> list[int] | None:
        """Return the place of each test in the lane, adding new tests to it."""
        names = self._store.read_names(packed.table)
        if names is None:
            return None
        try:
            marks = packed.read_marks(len(names))
        except SourceError as error:
            self._store.problems.append(f"results {packed.id} are left out: {error}")
            return None
        if packed.table not in self._tables:
            self._tables[packed.table] = [self._find_place(name) for name in names]
        known = self._tables[packed.table]
        own = list(compress(known, marks))
        return own + [self._find_place(name) for name in packed.added]

    def _find_place(self, test: str) -> int:
        place = self._places.setdefault(test, len(self._tests))
        if place == len(self._tests):
            self._tests.append(test)
        return place


def _unite(group: Iterable[tuple[PackedSegment, list[int]]], count: int) -> bytearray:
    row = bytearray(count)
    for packed, places in group:
        for place, bits in zip(places, packed.bits, strict=True):
            row[place] |= bits
    return row


def _or_into(row: bytearray, other: bytearray) -> None:
    row.extend(bytes(len(other) - len(row)))
    united = int.from_bytes(row, "little") | int.from_bytes(other, "little")
    row[:] = united.to_bytes(len(row), "little")


def is_infrastructure(statuses: bytes | bytearray, settings: HistorySettings) -> bool:
    """Return True if too much failed to blame any single test."""
    failed = sum(statuses.count(bits) for bits in range(8) if bits & FAIL and not bits & PASS)
    ran = _count_ran(statuses)
    return ran >= settings.infrastructure_least and failed > settings.infrastructure_share * ran


def _count_ran(statuses: bytes | bytearray) -> int:
    return len(statuses) - sum(statuses.count(bits) for bits in (0, SKIP))


def _find_time(runs: Sequence[CiRun]) -> float:
    """Return when the newest of its commits was first tested. Rerunning an old commit changes
    nothing; a revert does."""
    first: dict[str, float] = {}
    for run in runs:
        first[run.commit] = min(run.at, first.get(run.commit, run.at))
    return max(first.values())


def _has_all_shards(runs: Sequence[CiRun]) -> bool:
    """Return True if one attempt has every shard that it declares."""
    seen: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        seen[f"{run.provider} {run.run}"].add(run.shard)
    for shards in seen.values():
        totals = {int(shard.partition("/")[2] or 0) for shard in shards if shard}
        if not totals or "" in shards:
            return True
        if len(shards) >= max(totals):
            return True
    return False
