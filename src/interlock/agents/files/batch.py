"""The carrier `batch-file`: many signals at once, listed in a manifest for a parent agent.

One batch is out at a time. It takes what is ready when the one before is over, at most its size,
and never waits for more; over 80 % of the token budget its size is one. All signals are written
first, then the briefing and the budget, then the manifest. Each signal is the carrier `file`'s
business; a failed one comes again only if its circuit asks again, in a later batch. The manifest is
written by both sides: claims are theirs, how it ended is ours, and one that a dead process left is
archived, not obeyed. What a briefing says is a parameter.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from interlock.agents.carrier import Ask, Clock, Deliver
from interlock.agents.files.case_folder import SIGNAL, run_folder, timestamp
from interlock.agents.files.file import FileCarrier
from interlock.signals.batch import (
    LARGEST_BRIEFING,
    BatchBudget,
    BatchManifest,
    Briefing,
    Phase,
    allowed_size,
    budget_of,
    close_batch,
    encode_budget,
    encode_manifest,
    merge_claims,
    move_entry,
    new_manifest,
    read_manifest,
    render_briefing,
)
from interlock.system.errors import SourceError
from interlock.system.files import (
    FileStamp,
    UnreadableFile,
    move_aside,
    read_file,
    read_stamp,
    write_file,
)
from interlock.system.strict_json import Problem

MANIFEST = "batch-manifest.json"
BRIEFING = "briefing.md"
_ENDED = ("done", "error")
_LARGEST = 16 * 1024 * 1024
_NUMBERED = re.compile(r"batch-manifest\.stale-([0-9]{1,18})(?:-[0-9]+)?\.json", re.ASCII)
_TITLE = re.compile(rb"# [^\n]* Batch ([0-9]{1,18})\n")
"""A briefing is written before its manifest, so its title knows an id that a lost manifest had."""


class ManifestFile:
    """`batch-manifest.json` of one run. `ours` says only what we know; claims are merged in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / MANIFEST
        self._ours: BatchManifest | None = None
        self._seen: FileStamp | None = None
        self._last_id = self._archive()

    def next_id(self) -> int:
        """Batch ids rise within a run, also over its restarts."""
        self._last_id += 1
        return self._last_id

    def open(self, manifest: BatchManifest) -> None:
        self._ours = manifest
        self._write(manifest)

    def settle(self, case_id: str, *, failed: bool, at: str) -> None:
        """Note how a signal ended, and with the last one the batch."""
        if self._ours is None or self._ours.status in _ENDED:
            return
        moved = move_entry(self._ours, case_id, "error" if failed else "done", at)
        self._ours = close_batch(moved, at)
        theirs = self._read()
        merged = (
            merge_claims(self._ours, theirs) if isinstance(theirs, BatchManifest) else self._ours
        )
        self._write(merged)

    def changed(self) -> bool:
        return self._ours is not None and read_stamp(self._path) != self._seen

    def read_back(self) -> tuple[set[str], str]:
        """The cases the other side has given up, and what is wrong with the file, if anything.
        Where it goes behind what we know, it is written again."""
        assert self._ours is not None  # noqa: S101
        self._seen = read_stamp(self._path)
        theirs = self._read()
        if isinstance(theirs, Problem):
            self._write(self._ours)
            return set(), theirs.sentence
        merged = merge_claims(self._ours, theirs)
        if _behind(self._ours, theirs):
            self._write(merged)
        return {one.case_id for one in merged.signals if one.status == "error"}, ""

    def _read(self) -> BatchManifest | Problem:
        raw = read_file(self._path, _LARGEST)
        return (
            Problem("wrong-field", raw.reason)
            if isinstance(raw, UnreadableFile)
            else read_manifest(raw)
        )

    def _write(self, manifest: BatchManifest) -> None:
        with suppress(OSError):
            if self._path.is_dir() and not self._path.is_symlink():
                move_aside(self._path, "refused")
            self._seen = write_file(self._path, encode_manifest(manifest))

    def _archive(self) -> int:
        """Put away what a dead process left, and find the highest id that was ever given."""
        left = self._read()
        known = left.batch_id if isinstance(left, BatchManifest) else 0
        if isinstance(left, Problem) or left.status not in _ENDED:
            with suppress(OSError):
                move_aside(self._path, f"stale-{known}")
        names = (_NUMBERED.fullmatch(path.name) for path in self.folder.iterdir())
        told = read_file(self.folder / BRIEFING, LARGEST_BRIEFING)
        titled = _TITLE.match(told) if isinstance(told, bytes) else None
        return max([known, 0, *(int(found[1]) for found in (*names, titled) if found)])


def _behind(ours: BatchManifest, theirs: BatchManifest) -> bool:
    """Whether their copy lacks something that we have settled. That it says more is their right."""
    noted = {(one.case_id, one.signal_path): one.status for one in theirs.signals}
    shown = [(one.status, noted.get((one.case_id, one.signal_path))) for one in ours.signals]
    return (
        theirs.batch_id != ours.batch_id
        or (ours.status in _ENDED and theirs.status != ours.status)
        or any(their is None or (our in _ENDED and their != our) for our, their in shown)
    )


class Reading(msgspec.Struct, frozen=True):
    """How far a run has come: its cases, how many are over, and the tokens it has cost."""

    cases: int = 0
    over: int = 0
    tokens: int = 0


class ProgressGauge:
    """Carriers are made before the loop whose numbers they show; `read` is put in afterwards, and
    `enrich`, by which an application adds what it knows to a briefing."""

    def __init__(self) -> None:
        self.read: Callable[[], Reading] = Reading
        self.enrich: Callable[[Briefing], Briefing] = lambda briefing: briefing


class Briefer(Protocol):
    """Writes the briefing of a batch, anew for each."""

    def __call__(self, run_id: int, batch_id: int, phase: Phase, in_batch: int) -> str:
        """All that workers should know when this batch goes out. The batch's id stands in the
        title: it is how a lost manifest's id is found again."""


class PlainBriefer:
    """The run's context and its counts, and what the run's application adds."""

    def __init__(self, scenario: str, gauge: ProgressGauge) -> None:
        self._scenario = scenario
        self._gauge = gauge

    def __call__(self, run_id: int, batch_id: int, phase: Phase, in_batch: int) -> str:
        reading = self._gauge.read()
        plain = Briefing(
            batch_id=batch_id,
            scenario=self._scenario,
            suite_id=str(run_id),
            phase=phase,
            in_batch=in_batch,
            total=reading.cases,
            completed=reading.over,
        )
        return render_briefing(self._gauge.enrich(plain))


SIZE = 4
BUDGET = "budget-status.json"
_LATER = ("single", "triage", "investigation")


def single(_step: str) -> Phase:
    """The phase of steps that belong to none."""
    return "single"


class BatchCarrier:
    """A carrier that hands out asks in batches, on top of the carrier `file`."""

    def __init__(
        self,
        desk: FileCarrier,
        clock: Clock,
        brief: Briefer,
        gauge: ProgressGauge,
        *,
        workspace: Path,
        size: int = SIZE,
        tokens: int = 0,
        phase_of: Callable[[str], Phase] = single,
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._brief = brief
        self._gauge = gauge
        self._workspace = workspace.resolve()
        self._size = size
        self._tokens = tokens
        self._phase_of = phase_of
        self._asks: dict[int, Ask] = {}
        self._manifest: ManifestFile | None = None

    def start(self, deliver: Deliver) -> None:
        self._desk.start(deliver)
        self._desk.at_ticks.append(self._look)

    def room(self) -> int:
        return 0 if self._asks else allowed_size(self._size, self._budget())

    def keeps(self) -> bool:
        """Answers are files: they are there when the run goes on."""
        return True

    def send(self, asks: Sequence[Ask]) -> None:
        """The loop sends at most what there is room for. Only dispatches that were open when a
        process died come all at once, and make one batch of whatever size."""
        fresh = [ask for ask in asks if ask.dispatch_id not in self._asks]
        self._asks |= {ask.dispatch_id: ask for ask in fresh}
        self._desk.send(fresh)
        if fresh:
            self._announce(fresh[0].run_id)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._desk.settled(dispatch_id, error)
        ask = self._asks.pop(dispatch_id, None)
        if ask is not None and self._manifest is not None:
            self._manifest.settle(ask.case_id, failed=bool(error), at=self._now())
            if not self._asks:
                self._write_budget(self._manifest.folder)

    async def close(self) -> None:
        await self._desk.close()

    def _announce(self, run_id: int) -> None:
        try:
            folder = run_folder(self._desk.root, run_id)
        except SourceError:
            return  # its signals could not be written either, and each has said so
        if self._manifest is None:
            self._manifest = ManifestFile(folder)
            self._desk.watch.add(folder, self._look)
        asks = list(self._asks.values())
        batch_id = self._manifest.next_id()
        phase = max((self._phase_of(ask.step) for ask in asks), key=_LATER.index)
        text = self._brief(run_id, batch_id, phase, len(asks))
        with suppress(OSError):
            write_file(folder / BRIEFING, text.encode())
        self._write_budget(folder)
        signals = {ask.case_id: self._shown(folder / f"{ask.case_no}" / SIGNAL) for ask in asks}
        shown = self._shown(folder / BRIEFING)
        self._manifest.open(new_manifest(batch_id, phase, self._now(), shown, signals))

    def _look(self) -> None:
        """See what the parent agent has noted. What it gave up is not waited for."""
        if self._manifest is None or not self._manifest.changed():
            return
        given_up, problem = self._manifest.read_back()
        for ask in list(self._asks.values()):
            waiting = self._desk.waiting(ask.dispatch_id)
            if waiting is not None and problem:
                waiting.refuse("Malformed", f"the manifest is written again: {problem}")
            if waiting is not None and ask.case_id in given_up:
                waiting.give_up("the responder marked it as error in the manifest")

    def _budget(self) -> BatchBudget:
        return budget_of(self._tokens, self._gauge.read().tokens)

    def _write_budget(self, folder: Path) -> None:
        with suppress(OSError):
            if self._tokens:
                write_file(folder / BUDGET, encode_budget(self._budget()))

    def _shown(self, path: Path) -> str:
        """Relative to the workspace; a root elsewhere is shown whole."""
        inside = path.is_relative_to(self._workspace)
        return str(path.relative_to(self._workspace) if inside else path)

    def _now(self) -> str:
        return timestamp(self._clock.now())
