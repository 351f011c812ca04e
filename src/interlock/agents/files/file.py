"""The carrier `file`: a signal in the case's folder asks, an artifact beside it answers (seed 000).

Knows which dispatches are open and when to look at their folders. An artifact written while nobody
looked is found when its dispatch is sent again after a restart. Refuses to know what a file means.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from interlock.agents.carrier import Ask, Clock, Deliver, Reply
from interlock.agents.files.case_folder import SIGNAL, Names, case_folder, plain_names, run_folder
from interlock.agents.files.signal_paper import bury
from interlock.agents.files.waiting import PendingFile
from interlock.engine.circuit import CRASH
from interlock.system.errors import SourceError
from interlock.system.watch import FolderWatch, Mode

PATIENCE = 600.0
"""Seconds a step may take when its circuit does not say."""
_CLOSE_LOOK = 1.0
"""Seconds between looks that see also the signal, and read again what seems unchanged."""
_FULL_LOOK = 10.0
"""Seconds between looks at everything, also where nothing seems to stir."""


class FileCarrier:
    """A carrier whose asks and answers are files below one folder."""

    tells = True
    """Whether the file of a prompt says where its answer is to be written."""

    def __init__(
        self, root: Path, clock: Clock, *, names: Names = plain_names, mode: Mode = "auto"
    ) -> None:
        self.root = root.absolute()
        self.watch = FolderWatch(mode)
        self.at_ticks: list[Callable[[], None]] = []
        self._clock = clock
        self._names = names
        self._open: dict[int, PendingFile] = {}
        self._ticks = 0
        self._buried = False
        self._cancel: Callable[[], None] | None = None
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(f"the folder {self.root} cannot be made: {error.strerror}") from None
        self.root = self.root.resolve()
        self.watch.start(self.root)

    def keeps(self) -> bool:
        """Answers are files: they are there when the run goes on."""
        return True

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._open:
                self._put_out(ask)
        if asks and not self._buried:
            self._buried = True
            self._bury(asks[0].run_id)
        if self._cancel is None and self._open:
            self._set_timer()

    def settled(self, dispatch_id: int, error: str = "") -> None:
        waiting = self._open.pop(dispatch_id, None)
        if waiting is not None:
            self.watch.drop(waiting.place.folder)
            waiting.settle(error)

    async def close(self) -> None:
        self.watch.close()
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        for waiting in self._open.values():
            waiting.leave()
        self._open.clear()

    def waiting(self, dispatch_id: int) -> PendingFile | None:
        """That dispatch, if it is open here."""
        return self._open.get(dispatch_id)

    def _put_out(self, ask: Ask) -> None:
        papers = self._names(ask.step, ask.attempt)
        try:
            place = case_folder(self.root, ask.run_id, ask.case_no, papers)
            waiting = PendingFile(ask, place, self._clock, self._deliver, tells=self.tells)
            waiting.lay_out()
        except (OSError, SourceError) as error:
            reason = f"the ask cannot be written: {error}"
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=reason))
            return
        self._open[ask.dispatch_id] = waiting
        self.watch.add(place.folder, waiting.look)
        waiting.look()

    def _bury(self, run_id: int) -> None:
        """A signal that looks alive although its dispatch is over would be answered for ever."""
        with suppress(OSError, SourceError):
            for path in run_folder(self.root, run_id).glob(f"*/{SIGNAL}"):
                bury(path, self._open.__contains__)

    def _tick(self) -> None:
        self._ticks += 1
        closely, always = self._every(_CLOSE_LOOK), self._every(_FULL_LOOK)
        for waiting in list(self._open.values()):
            if always or waiting.stirs(signal_too=closely):
                waiting.look(closely=closely)
        if closely:
            for look in self.at_ticks:
                look()
        self._cancel = None
        if self._open:
            self._set_timer()

    def _every(self, seconds: float) -> bool:
        return self._ticks % max(1, round(seconds / self.watch.interval)) == 0

    def _set_timer(self) -> None:
        when = self._clock.now() + self.watch.interval
        self._cancel = self._clock.call_at(when, self._tick)
