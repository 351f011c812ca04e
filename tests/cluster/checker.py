"""The laws of a cluster, checked on what is left when everything has healed.

The journal is the main witness. Triggers in the database are the second: they write down, within
the transaction that they watch, who owned a run when it was taken and when something was decided,
and which coordinators wrote to runs that were not theirs. They are ours, not the product's, so a
coordinator that trusts itself too much cannot hide it, not even where its transaction fails.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeVar

import msgspec

from interlock.api.work import load_circuit
from interlock.journal.audit import audit
from interlock.journal.connection import Connection
from interlock.journal.runs import FINISHED
from tests.cluster.workload import Way, read_ways

WITNESSES = """
create table if not exists witness_owners (
  place bigserial primary key, run_id bigint, epoch bigint, owner text, name text, at timestamptz
);
create or replace function witness_owner() returns trigger language plpgsql as $$
begin
  if new.epoch is distinct from old.epoch then
    insert into witness_owners (run_id, epoch, owner, name, at)
    values (new.run_id, new.epoch, new.owner, new.name, clock_timestamp());
  end if;
  return new;
end $$;
create or replace trigger witness_owner after update on owners
  for each row execute function witness_owner();

create table if not exists witness_decisions (
  place bigserial primary key, run_id bigint, dispatch_id bigint, epoch bigint, owned bigint
);
create or replace function witness_decision() returns trigger language plpgsql as $$
begin
  insert into witness_decisions (run_id, dispatch_id, epoch, owned)
  select c.run_id, new.dispatch_id, new.epoch, o.epoch
  from cases c join owners o on o.run_id = c.run_id where c.case_no = new.case_no;
  return new;
end $$;
create or replace trigger witness_decision after insert on journal
  for each row execute function witness_decision();

create table if not exists witness_strangers (
  place bigserial primary key, run_id bigint, epoch bigint, owner text, writer text, wrote_to text
);
create sequence if not exists witness_attempts;
create or replace function witness_stranger() returns trigger language plpgsql as $$
declare
  v_writer text := current_setting('application_name');
  v_run bigint;
  v_epoch bigint;
  v_owner text;
begin
  if v_writer like 'coordinator-%' then
    if tg_table_name = 'runs' then
      v_run := new.run_id;
    else
      select c.run_id into v_run from cases c where c.case_no = new.case_no;
    end if;
    select o.epoch, o.name into v_epoch, v_owner from owners o where o.run_id = v_run;
    if v_owner is distinct from v_writer then
      perform nextval('witness_attempts');
      insert into witness_strangers (run_id, epoch, owner, writer, wrote_to)
      values (v_run, v_epoch, v_owner, v_writer, tg_table_name);
    end if;
  end if;
  return new;
end $$;
create or replace trigger witness_stranger before insert on journal
  for each row execute function witness_stranger();
create or replace trigger witness_stranger before insert on dispatches
  for each row execute function witness_stranger();
create or replace trigger witness_stranger before update on cases
  for each row execute function witness_stranger();
create or replace trigger witness_stranger before update on runs
  for each row execute function witness_stranger();

create or replace function witness_stall() returns trigger language plpgsql as $$
begin
  if current_setting('application_name') like 'coordinator-%' then
    perform pg_advisory_xact_lock_shared(hashtextextended(current_setting('application_name'), 1));
  end if;
  return null;
end $$;
create or replace trigger witness_stall before insert on journal
  for each statement execute function witness_stall();

create table if not exists witness_offers (
  place bigserial primary key, dispatch_id bigint, fence bigint
);
create or replace function witness_offer() returns trigger language plpgsql as $$
begin
  if new.fence is distinct from old.fence then
    insert into public.witness_offers (dispatch_id, fence) values (new.dispatch_id, new.fence);
  end if;
  return new;
end $$;
create or replace trigger witness_offer after update on interlock_queue.offers
  for each row execute function witness_offer();

create table if not exists witness_replies (
  place bigserial primary key, dispatch_id bigint, fence bigint, problem text, held bigint
);
create or replace function witness_reply() returns trigger language plpgsql as $$
begin
  insert into public.witness_replies (dispatch_id, fence, problem, held)
  select new.dispatch_id, new.fence, new.problem, o.fence
  from interlock_queue.offers o where o.dispatch_id = new.dispatch_id;
  return new;
end $$;
create or replace trigger witness_reply after insert on interlock_queue.replies
  for each row execute function witness_reply();
"""
"""Statements that let the database write down what nobody can take back. A coordinator is known by
the name that its sessions bear; the number of attempts is a sequence, which no rollback takes back.
`witness_stall` is the nemesis's: while it holds that lock, a coordinator stands still in the middle
of a turn."""


_NO_EFFECT, _NO_ATTEMPT = "no effect of a stale epoch", "no attempt under a stale epoch"
OF_EPOCHS = (_NO_EFFECT, _NO_ATTEMPT)
"""The laws that only the check of epochs keeps."""


class Decided(NamedTuple):
    """An answer that was accepted, in the order of the journal."""

    run_id: int
    dispatch_id: int
    epoch: int


class Taken(NamedTuple):
    """A run that was taken by somebody, in order."""

    run_id: int
    epoch: int
    owner: str


class Witnessed(NamedTuple):
    """What the database saw when something was decided: the epoch that its writer believed in, and
    the one that was true."""

    run_id: int
    dispatch_id: int
    believed: int
    true: int


class Stranger(NamedTuple):
    """A row that a coordinator wrote to a run while that belonged to another."""

    run_id: int
    epoch: int
    owner: str
    writer: str
    wrote_to: str


class Offered(NamedTuple):
    """A dispatch that a worker has taken."""

    dispatch_id: int
    fence: int


class Replied(NamedTuple):
    """A worker's reply, under a fence, and the fence that held when it was taken."""

    dispatch_id: int
    fence: int
    true: int


class History(msgspec.Struct, frozen=True):
    """All that is left of a cluster's life."""

    decided: tuple[Decided, ...] = ()
    taken: tuple[Taken, ...] = ()
    witnessed: tuple[Witnessed, ...] = ()
    strangers: tuple[Stranger, ...] = ()
    attempts: int = 0
    """Rows that strangers began to write, those of transactions that failed among them."""
    dispatched: frozenset[int] = frozenset()
    statuses: Mapping[int, str] = {}
    """The status of each run."""
    open_cases: tuple[str, ...] = ()
    ways: Mapping[tuple[int, str], Way] = {}
    """The way of each case, by its run and name."""
    faults: tuple[str, ...] = ()
    """What the audit of the database found: a row that is not the fold of the journal, mostly."""
    refusals: Mapping[str, int] = {}
    offered: tuple[Offered, ...] = ()
    """Each fence under which a worker has taken a dispatch, in order."""
    replied: tuple[Replied, ...] = ()
    """What workers handed in and was taken for a reply, in order."""
    late: int = 0
    """How many replies came too late."""


_Row = TypeVar("_Row", Decided, Taken)


class Violation(NamedTuple):
    """A law that was broken, and by what."""

    law: str
    what: str

    def __str__(self) -> str:
        return f"{self.law}: {self.what}"


def find_violations(history: History, expected: Mapping[str, Way]) -> list[Violation]:
    """Every law that does not hold."""
    return [
        *_check_accepted_once(history),
        *_check_nothing_lost(history),
        *_check_epochs(history),
        *_check_no_stale_effect(history),
        *_check_fences(history),
        *(Violation("fold equals state", fault) for fault in history.faults),
        *_check_ways(history, expected),
    ]


def _check_accepted_once(history: History) -> Iterator[Violation]:
    for dispatch_id, count in Counter(each.dispatch_id for each in history.decided).items():
        if count > 1:
            yield Violation("accepted at most once", f"dispatch {dispatch_id}: {count} times")


def _check_nothing_lost(history: History) -> Iterator[Violation]:
    law = "none lost"
    decided = {each.dispatch_id for each in history.decided}
    for dispatch_id in sorted(history.dispatched - decided):
        yield Violation(law, f"dispatch {dispatch_id} was never decided")
    for dispatch_id in sorted(decided - history.dispatched):
        yield Violation(law, f"dispatch {dispatch_id} was decided but never made")
    for run_id, status in history.statuses.items():
        if status not in FINISHED:
            yield Violation(law, f"run {run_id} is {status}")
    for case in history.open_cases:
        yield Violation(law, f"case {case} is still open")
    if len(history.witnessed) != len(history.decided):
        yield Violation(
            law, f"{len(history.witnessed)} decisions were seen, {len(history.decided)} are left"
        )


def _check_epochs(history: History) -> Iterator[Violation]:
    law = "epochs rise"
    for run_id, taken in _by_run(history.taken):
        for before, after in pairwise(taken):
            if after.epoch <= before.epoch:
                yield Violation(
                    law, f"run {run_id} was taken as {before.epoch}, then {after.epoch}"
                )
    owners = {(each.run_id, each.epoch): each.owner for each in history.taken}
    for run_id, decided in _by_run(history.decided):
        for one, other in pairwise(decided):
            if other.epoch < one.epoch:
                yield Violation(
                    law,
                    f"run {run_id}: dispatch {other.dispatch_id} was decided under {other.epoch},"
                    f" after {one.dispatch_id} under {one.epoch}",
                )
        for each in decided:
            if (run_id, each.epoch) not in owners:
                yield Violation(law, f"run {run_id}: nobody ever had epoch {each.epoch}")


def _check_no_stale_effect(history: History) -> Iterator[Violation]:
    for each in history.witnessed:
        if each.believed != each.true:
            yield Violation(
                _NO_EFFECT,
                f"run {each.run_id}: dispatch {each.dispatch_id} was decided under"
                f" {each.believed} while {each.true} held",
            )
    for stranger, count in Counter(history.strangers).items():
        yield Violation(
            _NO_EFFECT,
            f"run {stranger.run_id}: {stranger.writer} wrote {count} rows to {stranger.wrote_to}"
            f" while it was {stranger.owner or 'nobody'}'s, under {stranger.epoch}",
        )
    if failed := history.attempts - len(history.strangers):
        yield Violation(
            _NO_ATTEMPT,
            f"about {failed} rows were begun by coordinators that had lost a run, then rolled back",
        )


def _check_fences(history: History) -> Iterator[Violation]:
    last: dict[int, int] = {}
    for dispatch_id, fence in history.offered:
        if fence <= last.get(dispatch_id, 0):
            yield Violation(
                "fences rise", f"dispatch {dispatch_id}: {last[dispatch_id]}, then {fence}"
            )
        last[dispatch_id] = fence
    law = "no effect of a stale fence"
    for reply in history.replied:
        if reply.fence != reply.true:
            yield Violation(
                law, f"dispatch {reply.dispatch_id}: taken under {reply.fence}, not {reply.true}"
            )
    counts = Counter((each.dispatch_id, each.fence) for each in history.replied)
    for (dispatch_id, fence), count in counts.items():
        if count > 1:
            yield Violation(law, f"dispatch {dispatch_id}: {count} replies under {fence}")


def _check_ways(history: History, expected: Mapping[str, Way]) -> Iterator[Violation]:
    for (run_id, case_id), way in history.ways.items():
        if way != expected[case_id]:
            yield Violation(
                "decisions as undisturbed",
                f"run {run_id}, case {case_id}: {_first_difference(way, expected[case_id])}",
            )
    for run_id in history.statuses:
        missing = [case for case in expected if (run_id, case) not in history.ways]
        if missing:
            yield Violation("decisions as undisturbed", f"run {run_id} lacks {', '.join(missing)}")


def _first_difference(way: Way, expected: Way) -> str:
    for number, (one, other) in enumerate(zip(way, expected, strict=False)):
        if one != other:
            return f"decision {number} is {one}, not {other}"
    return f"{len(way)} decisions, not {len(expected)}"


def _by_run(rows: "Iterable[_Row]") -> "Iterator[tuple[int, list[_Row]]]":
    found: dict[int, list[_Row]] = {}
    for row in rows:
        found.setdefault(row.run_id, []).append(row)
    yield from found.items()


def read_history(connection: Connection) -> History:
    """Everything that the laws speak of, from the database."""
    raw = connection.raw
    decided = raw.execute(
        "select c.run_id, j.dispatch_id, j.epoch from journal j"
        " join cases c on c.case_no = j.case_no order by j.seq"
    )
    taken = raw.execute("select run_id, epoch, owner from witness_owners order by place")
    witnessed = raw.execute(
        "select run_id, dispatch_id, epoch, owned from witness_decisions order by place"
    )
    strangers = raw.execute(
        "select run_id, epoch, owner, writer, wrote_to from witness_strangers order by place"
    )
    attempts = "select case when is_called then last_value else 0 end from witness_attempts"
    offered = raw.execute("select dispatch_id, fence from witness_offers order by place")
    replied = raw.execute(
        "select dispatch_id, fence, held from witness_replies where problem = '' order by place"
    )
    late = "select count(*) from witness_replies where problem <> ''"
    statuses = dict(raw.execute("select run_id, status from runs").fetchall())
    return History(
        decided=tuple(Decided(*row) for row in decided),
        taken=tuple(Taken(*row) for row in taken),
        witnessed=tuple(Witnessed(*row) for row in witnessed),
        strangers=tuple(Stranger(*row) for row in strangers),
        attempts=raw.execute(attempts).fetchone()[0],
        dispatched=frozenset(each for (each,) in raw.execute("select dispatch_id from dispatches")),
        statuses=statuses,
        open_cases=tuple(
            f"{run_id}/{case_id}"
            for run_id, case_id in raw.execute(
                "select run_id, case_id from cases where status != 'ended'"
            )
        ),
        ways={
            (run_id, case_id): way
            for run_id in statuses
            for case_id, way in read_ways(connection, run_id)
        },
        faults=tuple(f"{each.subject}: {each.message}" for each in audit(connection, load_circuit)),
        offered=tuple(Offered(*row) for row in offered),
        replied=tuple(Replied(*row) for row in replied),
        late=raw.execute(late).fetchone()[0],
        refusals=dict(
            raw.execute("select reason, count(*) from refusals group by reason").fetchall()
        ),
    )
