"""The carrier `batch-file`: many signals at once, listed in a manifest for a parent agent.

One batch is out at a time. It takes what is ready when the one before is over, at most its size,
and never waits for more; over 80 % of the token budget its size is one. All signals are written
first, then the briefing and the budget, then the manifest. Each signal is the carrier `file`'s
business; a failed one comes again only if its circuit asks again, in a later batch.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from interlock.agents.carrier import Ask, Clock, Deliver
from interlock.agents.files.briefer import Briefer, ProgressGauge
from interlock.agents.files.case_folder import SIGNAL, run_folder
from interlock.agents.files.file import FileCarrier
from interlock.agents.files.manifest import BRIEFING, ManifestFile
from interlock.agents.files.signal_paper import timestamp
from interlock.signals.batch import (
    BatchBudget,
    Phase,
    allowed_size,
    budget_of,
    encode_budget,
    new_manifest,
)
from interlock.signals.briefing import render_briefing
from interlock.system.errors import SourceError
from interlock.system.safe_file import write_whole

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
        text = render_briefing(self._brief(run_id, batch_id, phase, len(asks)))
        with suppress(OSError):
            write_whole(folder / BRIEFING, text.encode())
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
                write_whole(folder / BUDGET, encode_budget(self._budget()))

    def _shown(self, path: Path) -> str:
        """Relative to the workspace; a root elsewhere is shown whole."""
        inside = path.is_relative_to(self._workspace)
        return str(path.relative_to(self._workspace) if inside else path)

    def _now(self) -> str:
        return timestamp(self._clock.now())
