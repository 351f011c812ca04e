"""Write the journal: everything that one turn of a run writes is one transaction.

An answer enters the journal once: a second one for the same dispatch violates a unique key and
fails the transaction, so the caller must have refused it before. An effect is an application's
change along with a decision, made in the same transaction.

Prompts, answers and other texts are blobs, kept once per content. Rows refer to a blob by its
number: numbers rise, so a commit appends a few full pages instead of touching one page per hash.
The hash stands beside the text; the audit compares the two.
"""

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from interlock.engine.case import Case, Decision, ModelCall, Usage
from interlock.journal.connection import (
    Connection,
    NumberSource,
    RawConnection,
    begin,
    mark_all,
    write_many,
)
from interlock.journal.ownership import Ownership
from interlock.system.errors import StoreError

_PACK_FROM = 512
_MAX_REMEMBERED = 4096
_MAX_REFUSED = 64 * 1024
_encode = msgspec.json.Encoder().encode

_BLOB = "insert into blobs values (?, ?, ?, ?)"
_DISPATCH = "insert into dispatches values (?, ?, ?, ?, ?, ?, ?)"
_JOURNAL = (
    "insert into journal (case_no, dispatch_id, at, answer, tokens, money, decision, epoch)"
    " values (?, ?, ?, ?, ?, ?, ?, ?)"
)
_CASE = "update cases set status = ?, step = ?, dispatch_id = ?, state = ? where case_no = ?"
_REFUSAL = (
    "insert into refusals (run_id, case_no, dispatch_id, at, reason, sentence, content,"
    " content_hash) values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing"
)
_ASKED = "insert into questions (question_id, case_no) values (?, ?)"
_ANSWERED = "update questions set answered_at = ?, answered_by = ? where question_id = ?"
_RUN = (
    "update runs set seconds = seconds + ?, changed_at = ?, status = coalesce(?, status)"
    " where run_id = ?"
)
_PAUSE = (
    "insert into pauses (run_id, dispatch_id, account, at, until, guesses, tokens, money, reason)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CALL = (
    "insert into calls (run_id, dispatch_id, at, model, request_id, input, cached, cache_write,"
    " output, money, is_estimate) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INQUIRY = (
    "insert into inquiries (question_id, run_id, kind, about, asked_at) values (?, ?, ?, ?, ?)"
)
_INQUIRY_ANSWERED = (
    "update inquiries set answered_at = ?, answered_by = ?, answer = ? where question_id = ?"
    " and answered_at is null"
)
_WORKED = (
    "insert into worked (day, run_id, role, seconds) values (?, ?, ?, ?)"
    " on conflict (day, run_id, role) do update set seconds = worked.seconds + excluded.seconds"
)
BlobRow = tuple[int, bytes, int, bytes]


def hash_blob(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class BlobWriter:
    """Number each content, and collect the rows that are not yet in the database."""

    def __init__(self, raw: RawConnection) -> None:
        self._numbers = NumberSource(raw, "blob")
        self._known: dict[bytes, int] = {}
        self.rows: list[BlobRow] = []

    def put(self, data: bytes) -> int:
        digest = hash_blob(data)
        number = self._known.get(digest)
        if number is not None:
            return number
        number = self._numbers.take()
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[digest] = number
        packed = zlib.compress(data, 1) if len(data) >= _PACK_FROM else data
        smaller = len(packed) < len(data)
        self.rows.append((number, digest, int(smaller), packed if smaller else data))
        return number

    def flush(self, raw: RawConnection) -> None:
        """Write the collected rows, in the transaction that refers to them."""
        write_many(raw, self.take_rows())

    def take_rows(self) -> list[tuple[str, list[BlobRow]]]:
        """Return the statement that writes the collected rows, to be run with others."""
        rows, self.rows = self.rows, []
        return [(_BLOB, rows)] if rows else []


def read_blob(raw: RawConnection, number: int) -> bytes:
    return read_blobs(raw, [number])[number]


def read_blobs(raw: RawConnection, numbers: Collection[int]) -> dict[int, bytes]:
    """Return several texts with one statement."""
    if not numbers:
        return {}
    query = f"select blob_id, packed, data from blobs where blob_id in ({mark_all(numbers)})"  # noqa: S608
    rows = raw.execute(query, tuple(numbers)).fetchall()
    found = {number: unpack_blob(number, packed, data) for number, packed, data in rows}
    for number in numbers:
        if number not in found:
            raise StoreError(f"blob {number} is missing: the database is damaged, restore a copy")
    return found


def unpack_blob(number: int, packed: int, data: bytes) -> bytes:
    """Return the text of a row of `blobs`."""
    try:
        return zlib.decompress(data) if packed else bytes(data)
    except (zlib.error, TypeError):
        raise StoreError(f"blob {number} is damaged: restore a copy of the database") from None


Effect = Callable[[RawConnection, float], None]
"""An application's change to its own tables because of a decision. It does not commit."""


class NewDispatch(msgspec.Struct, frozen=True, gc=False):
    """One dispatch for a case, a step and an attempt, with the prompt exactly as sent."""

    dispatch_id: int
    case_no: int
    step: str
    attempt: int
    role: str
    prompt: str
    human: bool = False


class JournalEntry(msgspec.Struct, frozen=True, gc=False):
    """An accepted answer and the decision on it."""

    case_no: int
    dispatch_id: int
    decision: Decision
    answer: bytes
    usage: Usage = Usage()
    answered_by: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """An answer that changed nothing, and the reason."""

    case_no: int | None
    dispatch_id: int | None
    reason: str
    sentence: str
    content: bytes


class Pause(msgspec.Struct, frozen=True):
    """A dispatch that met a rate limit: its account, the limit's end, and the cost so far.

    `guesses` counts how often in a row the end was unknown; 0 if it is known.
    """

    dispatch_id: int
    account: str
    until: float
    guesses: int
    reason: str
    usage: Usage = Usage()
    at: float = 0.0


class Inquiry(msgspec.Struct, frozen=True):
    """A question that Interlock has about the run itself."""

    question_id: int
    kind: str
    about: str


class InquiryAnswered(msgspec.Struct, frozen=True):
    """The answer to such a question, and its changes to the run's options."""

    question_id: int
    by: str
    answer: bytes
    new_options: dict[str, Any] = {}


class WorkTime(NamedTuple):
    """Seconds of a day in which agents of a role were out; under '' the run's own time."""

    day: str
    role: str
    seconds: float


class CaseRow(msgspec.Struct, frozen=True, gc=False):
    """A case after the batch, and its open dispatch, if any."""

    case_no: int
    case: Case
    dispatch_id: int | None


class State(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The part of a case that is kept in its row: all but its input and its answers."""

    moves: int = 0
    end: str = ""
    reason: str = ""
    loops: Mapping[str, int] = {}
    visits: Mapping[str, int] = {}
    stack: tuple[str, ...] = ()
    context: Mapping[str, Any] = {}


decode_decision = msgspec.json.Decoder(Decision).decode
decode_state = msgspec.json.Decoder(State).decode


class TurnWrites(msgspec.Struct):
    """The rows of one transaction, besides the effects that ran before."""

    at: float
    entries: list[JournalEntry] = []
    dispatches: list[NewDispatch] = []
    cases: dict[int, CaseRow] = {}
    refusals: list[Refusal] = []
    pauses: list[Pause] = []
    calls: list[tuple[int, ModelCall]] = []
    """Requests to model endpoints, each with its dispatch."""
    inquiries: list[Inquiry] = []
    inquiry_answers: list[InquiryAnswered] = []
    worked: list[WorkTime] = []
    seconds: float = 0.0
    status: str | None = None
    cases_changed: bool = False
    """True if an effect added or changed cases of the run."""

    def __bool__(self) -> bool:
        some = self.entries or self.dispatches or self.refusals or self.status or self.cases_changed
        return bool(some or self.pauses or self.inquiries or self.inquiry_answers)


class Journal:
    """Write the journal of one run, under the epoch in which its writer owns the run."""

    def __init__(
        self,
        connection: Connection,
        run_id: int,
        after: int = 0,
        ownership: Ownership | None = None,
        committed: "Callable[[TurnWrites], None] | None" = None,
    ) -> None:
        """Open the journal; `committed` is called with every committed batch, and must not
        raise."""
        self.run_id = run_id
        self._committed = committed
        self._ownership = ownership
        self._epoch = ownership.epoch if ownership else 0
        self._raw = raw = connection.raw
        self.blobs = BlobWriter(raw)
        """The one source of numbers for texts while the journal is open."""
        self._numbers = NumberSource(raw, "dispatch", after)

    @property
    def may_start(self) -> bool:
        """True if new work may begin, because the run is certainly ours."""
        return self._ownership is None or self._ownership.is_sure

    def check_owned(self) -> None:
        """Raise StaleEpochError if another process is known to have taken the run."""
        if self._ownership is not None:
            self._ownership.raise_if_lost()

    def take_dispatch_id(self) -> int:
        """Return a dispatch id, unique and rising over the whole workspace."""
        return self._numbers.take()

    def apply_effect(self, effect: Effect, at: float) -> None:
        """Write an effect of the coming batch, which can be read at once over the same connection.

        It is kept with that batch or not at all.
        """
        try:
            self._begin()
            effect(self._raw, at)
        except BaseException:
            self._raw.rollback()
            raise

    def commit(self, batch: TurnWrites) -> None:
        """Write the whole batch, or nothing."""
        raw = self._raw
        try:
            rows = self._build_rows(batch)
            self._begin()
            write_many(raw, [*self.blobs.take_rows(), *rows])
            for answered in batch.inquiry_answers:
                if answered.new_options:
                    _merge_options(raw, self.run_id, answered.new_options)
            raw.commit()
        except BaseException:
            raw.rollback()
            self.blobs = BlobWriter(raw)
            raise
        if self._committed is not None:
            self._committed(batch)

    def _begin(self) -> None:
        """Begin the batch's transaction, unless an effect did; fail if the run is not ours."""
        if not self._raw.in_transaction:
            begin(self._raw)
            if self._ownership is not None:
                self._ownership.check(self._raw)

    def _build_rows(self, batch: TurnWrites) -> list[tuple[str, list[Any]]]:
        """Return the statements of a batch, in the order in which they refer to each other."""
        put = self.blobs.put
        at = batch.at
        rows: list[tuple[str, list[Any]]] = []
        if batch.dispatches:
            rows.append((_DISPATCH, [_build_dispatch(d, put, at) for d in batch.dispatches]))
            if asked := [(d.dispatch_id, d.case_no) for d in batch.dispatches if d.human]:
                rows.append((_ASKED, asked))
        if batch.entries:
            rows.append((_JOURNAL, [_build_entry(e, put, at, self._epoch) for e in batch.entries]))
            if named := [
                (at, e.answered_by, e.dispatch_id) for e in batch.entries if e.answered_by
            ]:
                rows.append((_ANSWERED, named))
        if batch.cases:
            rows.append((_CASE, [_build_case(s) for s in batch.cases.values()]))
        if batch.refusals:
            rows.append(
                (_REFUSAL, [self._build_refusal(refusal, at) for refusal in batch.refusals])
            )
        if batch.status is not None or batch.seconds:
            rows.append((_RUN, [(batch.seconds, at, batch.status, self.run_id)]))
        return rows + self._build_rare_rows(batch)

    def _build_rare_rows(self, batch: TurnWrites) -> list[tuple[str, list[Any]]]:
        """Return the statements for rows that most batches do not have."""
        run_id, at = self.run_id, batch.at
        rows: list[tuple[str, list[Any]]] = []
        if batch.pauses:
            rows.append((_PAUSE, [_build_pause(run_id, each, at) for each in batch.pauses]))
        if batch.calls:
            rows.append((_CALL, [_build_call(run_id, *each, at) for each in batch.calls]))
        if batch.inquiries:
            asked = [(i.question_id, run_id, i.kind, i.about, at) for i in batch.inquiries]
            rows.append((_INQUIRY, asked))
        if answers := batch.inquiry_answers:
            answered = [(at, each.by, each.answer.decode(), each.question_id) for each in answers]
            rows.append((_INQUIRY_ANSWERED, answered))
        if batch.worked:
            rows.append((_WORKED, [(w.day, run_id, w.role, w.seconds) for w in batch.worked]))
        return rows

    def _build_refusal(self, refusal: Refusal, at: float) -> Sequence[Any]:
        content = refusal.content[:_MAX_REFUSED]
        return (
            self.run_id,
            refusal.case_no,
            refusal.dispatch_id,
            at,
            refusal.reason,
            refusal.sentence,
            self.blobs.put(content),
            hash_blob(content),
        )


def _merge_options(raw: RawConnection, run_id: int, new: Mapping[str, Any]) -> None:
    """Change the run's options by a JSON merge patch (RFC 7396)."""
    query = "select options from runs where run_id = ?"
    before = msgspec.json.decode(raw.execute(query, (run_id,)).fetchone()[0])
    after = _encode(_apply_merge_patch(before, new)).decode()
    raw.execute("update runs set options = ? where run_id = ?", (after, run_id))


def _apply_merge_patch(before: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(before) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _apply_merge_patch(merged.get(name), value)
    return merged


def _build_dispatch(new: NewDispatch, put: Callable[[bytes], int], at: float) -> tuple[Any, ...]:
    prompt = put(new.prompt.encode())
    return (new.dispatch_id, new.case_no, new.step, new.attempt, new.role, prompt, at)


def _build_entry(
    entry: JournalEntry, put: Callable[[bytes], int], at: float, epoch: int
) -> tuple[Any, ...]:
    usage, decision = entry.usage, _encode(entry.decision).decode()
    answer = put(entry.answer)
    tokens, money = usage.tokens, usage.money
    return (entry.case_no, entry.dispatch_id, at, answer, tokens, money, decision, epoch)


def _build_pause(run_id: int, pause: Pause, at: float) -> tuple[Any, ...]:
    usage = pause.usage
    return (
        run_id,
        pause.dispatch_id,
        pause.account,
        at,
        pause.until,
        pause.guesses,
        usage.tokens,
        usage.money,
        pause.reason,
    )


def _build_call(run_id: int, dispatch_id: int, call: ModelCall, at: float) -> tuple[Any, ...]:
    tokens = (call.input, call.cached, call.cache_write, call.output)
    price = (call.money, int(call.is_estimate))
    return (run_id, dispatch_id, at, call.model, call.request_id, *tokens, *price)


def _build_case(standing: CaseRow) -> tuple[Any, ...]:
    case = standing.case
    state = _encode(build_state(case)).decode()
    return (case.status, case.step, standing.dispatch_id, state, standing.case_no)


def build_state(case: Case) -> State:
    return State(
        moves=case.moves,
        end=case.end,
        reason=case.reason,
        loops=case.loops,
        visits=case.visits,
        stack=case.stack,
        context=case.context,
    )
