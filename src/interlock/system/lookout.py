"""One look at all processes for everyone who asks in the same moment.

A look takes milliseconds, and a hundred agents may end at once. Whoever asks gets a census that was
begun after the question, so that it can prove that something is gone.
"""

import asyncio

from interlock.system.census import Census, OnSight, SeenProcess, census


class ProcessSnapshot:
    def __init__(self) -> None:
        self._next: asyncio.Future[Census] | None = None
        self._watchers: list[OnSight] = []

    async def look(self, on_sight: OnSight | None = None) -> Census:
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            loop.call_soon(self._tell, self._next)
        if on_sight is not None:
            self._watchers.append(on_sight)
        return await asyncio.shield(self._next)

    def _tell(self, waiting: "asyncio.Future[Census]") -> None:
        watchers, self._watchers, self._next = self._watchers, [], None

        def on_sight(seen: SeenProcess) -> None:
            for watcher in watchers:
                watcher(seen)

        try:
            waiting.set_result(census(on_sight))
        except OSError as error:
            waiting.set_exception(error)
