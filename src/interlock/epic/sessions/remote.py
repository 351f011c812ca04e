"""Sessions on other hosts, as the coordinator of an epic sees them.

It hands out the project's files as a commit, and the checkpoint beside them. What comes back is
looked at as a whole before anything changes here: then the work tree follows, then the checkpoint.
A session whose work or checkpoint is refused counts for nothing, and says why; the next one begins
where the last accepted one ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.agents.carrier import Ask, Checkout, Reply
from interlock.agents.cli.work_folder import make_work_folder
from interlock.agents.worker.carrier import WorkerCarrier
from interlock.agents.worker.exchange import ExchangeCarrier, name_refs
from interlock.engine.circuit import UNREADABLE
from interlock.epic.checkpoints.record import Checkpoint, encode_checkpoint
from interlock.epic.checkpoints.store import Checkpoints
from interlock.epic.progress import CheckpointUpdater, build_mark
from interlock.epic.recovery.git_state import OURS, read_git_work
from interlock.epic.sessions.carrier import back_off
from interlock.epic.sessions.transfer import (
    SessionLimits,
    SessionParcel,
    SessionReport,
    check_attempt,
    check_checkpoint,
    merge_checkpoint,
)
from interlock.epic.sessions.user_tree import TakenWork, TreeState, record_tree
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.files import UnreadableFile, read_file, write_file
from interlock.system.git_remote import check_remote, delete_remote_refs, push_new_ref
from interlock.system.time import format_timestamp

_LARGEST_NOTE = 4_000_000


class HandedOut(msgspec.Struct, frozen=True):
    """What the session of a dispatch was given, kept until that is decided."""

    tree: TreeState
    checkpoint: Checkpoint
    is_coming_back: bool = False
    """Whether its work is being taken: then it is what was handed out, whatever lies here."""


class SessionExchange:
    """Hands the project out to sessions, and takes what they made of it."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        updater: CheckpointUpdater,
        *,
        application: str,
        epic_id: str,
        remote: str,
        setup: tuple[str, ...],
        workspace: str,
        notes: Path,
        limits: SessionLimits,
        bare: bool,
        clock: Clock,
    ) -> None:
        """`application` makes the carrier on the other host; `notes` is the folder for what was
        handed out; `bare` and `limits` are for the session."""
        self._checkpoints = checkpoints
        self._place = checkpoints.place
        self._updater = updater
        self._application = application
        self._epic_id = epic_id
        self._remote = check_remote(remote)
        self._setup = setup
        self._workspace = workspace
        self._notes = notes
        self._limits = limits
        self._bare = bare
        self._clock = clock

    def name_place(self, ask: Ask) -> str:
        return str(self._place.root)

    def send(self, ask: Ask) -> Ask:
        handed = self._hand_out(ask)
        tree, refs = handed.tree, name_refs(self._workspace, ask)
        ref = f"{refs}-base-{tree.commit[:12]}"
        push_new_ref(self._find_git_dir(), self._remote, tree.commit, ref)
        checkout = Checkout(
            remote=self._remote,
            commit=tree.commit,
            head=tree.head,
            ref=ref,
            folder=str(self._place.root),
            branch=tree.branch,
            setup=self._setup,
            push=refs,
            apart=OURS,
        )
        parcel = SessionParcel(
            checkpoint=encode_checkpoint(handed.checkpoint),
            limits=self._limits,
            bare=self._bare,
            base=tree.commit,
        )
        context = msgspec.structs.replace(
            ask.execution,
            application=self._application,
            parcel=msgspec.json.encode(parcel),
            checkouts=(checkout,),
        )
        return msgspec.structs.replace(ask, execution=context)

    def take(self, ask: Ask, reply: Reply) -> Reply:
        kept = ""
        try:
            handed, taken = self._fetch(ask, reply)
            kept = f"; what it made is kept as {taken.made.commit}"
            report, found = self._check(handed, taken, reply.content)
            self._note_return(ask, handed)
            taken.apply()
        except SourceError as error:
            reason = f"refused: {error}{kept}"
            return msgspec.structs.replace(reply, failure=UNREADABLE, reason=reason)
        self._store(handed.checkpoint, found, report)
        before = build_mark(handed.checkpoint)
        attempt = msgspec.structs.replace(report.attempt, before=before)
        artifact = self._updater.apply(ask, attempt)
        return msgspec.structs.replace(reply, content=msgspec.json.encode(artifact))

    def clean_up(self, ask: Ask) -> None:
        self._find_note(ask).unlink(missing_ok=True)
        pattern = f"{name_refs(self._workspace, ask)}-*"
        delete_remote_refs(self._find_git_dir(), self._remote, pattern)

    def _hand_out(self, ask: Ask) -> HandedOut:
        """The project as it is now; as it was handed out before, if nothing has changed since."""
        before = self._read_note(ask)
        if before is not None and before.is_coming_back:
            return before
        checkpoint = self._updater.read()
        if checkpoint is None:
            raise SourceError(f"there is no sound checkpoint of {self._epic_id} to hand out")
        stashes = [each.stash for each in checkpoint.recoveries if each.state == "stashed"]
        handed = HandedOut(record_tree(self._place, stashes), checkpoint)
        if handed != before:
            write_file(self._find_note(ask), msgspec.json.encode(handed))
        return handed

    def _fetch(self, ask: Ask, reply: Reply) -> tuple[HandedOut, TakenWork]:
        """What was handed out, and the work that came back."""
        handed, work = self._read_note(ask), reply.pushed
        if handed is None or work is None:
            raise SourceError("nothing is known here of a session that was handed out")
        if not work.ref.startswith(f"{name_refs(self._workspace, ask)}-"):
            raise SourceError(f"the worker names {work.ref[:100]!r}, which is not its to make")
        return handed, TakenWork(self._place, self._remote, handed.tree, work)

    def _check(
        self, handed: HandedOut, taken: TakenWork, content: bytes
    ) -> tuple[SessionReport, Checkpoint]:
        """What came back, if a session may have made it of what was handed out."""
        report = _decode_report(content)
        if report.base != handed.tree.commit:
            raise SourceError("it began from files that were replaced since it was asked")
        check_attempt(report.attempt, self._epic_id)
        if report.problem:
            raise SourceError(report.problem)
        found = check_checkpoint(handed.checkpoint, report.checkpoint)
        taken.check()
        _check_commit(taken, handed, found)
        return report, found

    def _note_return(self, ask: Ask, handed: HandedOut) -> None:
        """From now on the project here may be what the session made of it."""
        if not handed.is_coming_back:
            coming = msgspec.structs.replace(handed, is_coming_back=True)
            write_file(self._find_note(ask), msgspec.json.encode(coming))

    def _store(self, handed: Checkpoint, found: Checkpoint, report: SessionReport) -> None:
        """Take over what the session has written into its checkpoint, if anything."""
        if found.git == report.work and found.git.dirt:
            # What was not committed there is not committed here, but has another digest.
            found = msgspec.structs.replace(found, git=read_git_work(self._place.root))

        def change(before: Checkpoint | None) -> Checkpoint:
            return merge_checkpoint(before or handed, handed, found)

        at = format_timestamp(self._clock.now())
        self._checkpoints.update(self._epic_id, change, at, if_changed=True)

    def _find_note(self, ask: Ask) -> Path:
        folder = make_work_folder(self._notes, ask, "worker").folder
        return folder / f"handed-out-{ask.dispatch_id}.json"

    def _read_note(self, ask: Ask) -> HandedOut | None:
        path = self._find_note(ask)
        raw = read_file(path, _LARGEST_NOTE)
        if isinstance(raw, UnreadableFile):
            if raw.kind == "gone":
                return None
            raise SourceError(f"{path} cannot be read: {raw.reason}")
        return msgspec.json.decode(raw, type=HandedOut)

    def _find_git_dir(self) -> Path:
        if self._place.git_dir is None:
            raise SourceError(f"{self._place.root} is no git repository, which workers need")
        return self._place.git_dir


class RemoteSessionCarrier(ExchangeCarrier):
    """A carrier before that of workers, whose sessions run on their hosts. After crashes in a row
    it pauses before it asks again."""

    def __init__(
        self,
        inner: WorkerCarrier,
        exchange: SessionExchange,
        backoff: float,
        clock: Clock,
        prepare: Callable[[], Awaitable[object]],
    ) -> None:
        """`prepare` is done before the first session goes out."""
        super().__init__(inner, exchange)
        self._backoff = backoff
        self._clock = clock
        self._prepare = prepare
        self._prepared: asyncio.Future[object] | None = None
        self._pauses: dict[int, asyncio.Future[None]] = {}

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._end_pause(dispatch_id)
        super().settle(dispatch_id, error)

    async def close(self) -> None:
        for dispatch_id in list(self._pauses):
            self._end_pause(dispatch_id)
        await super().close()

    async def _send(self, ask: Ask) -> None:
        if self._prepared is None:
            self._prepared = asyncio.ensure_future(self._prepare())
        await asyncio.shield(self._prepared)
        pause = asyncio.ensure_future(back_off(ask, self._backoff, self._clock))
        self._pauses[ask.dispatch_id] = pause
        with suppress(asyncio.CancelledError):
            await pause
        if self._pauses.pop(ask.dispatch_id, None) is pause and self.is_open(ask):
            await super()._send(ask)

    def _end_pause(self, dispatch_id: int) -> None:
        pause = self._pauses.pop(dispatch_id, None)
        if pause is not None:
            pause.cancel()


def _check_commit(taken: TakenWork, handed: HandedOut, found: Checkpoint) -> None:
    """SourceError if the checkpoint stands on a commit that is not in the work."""
    commit = found.git.commit
    if found.git == handed.checkpoint.git:
        return
    if not (
        commit
        and taken.has_ancestor(handed.tree.head, commit)
        and taken.has_ancestor(commit, taken.made.head)
    ):
        raise SourceError(
            f"the checkpoint stands on {commit[:12] or 'no commit'}, which is not in the work that "
            "came with it"
        )


def _decode_report(content: bytes) -> SessionReport:
    try:
        return msgspec.json.decode(content, type=SessionReport)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SourceError(
            f"what the worker says of it cannot be read ({error}): use the same version of "
            "Interlock on both hosts"
        ) from None
