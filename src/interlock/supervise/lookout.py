"""One look at all processes for everyone who asks in the same moment.

A look takes milliseconds, and a hundred agents may end at once. Whoever asks gets a census that was
begun after the question, so that it can prove that something is gone.
"""

import asyncio

from interlock.supervise.census import Census, census


class Lookout:
    def __init__(self) -> None:
        self._next: asyncio.Future[Census] | None = None

    async def look(self) -> Census:
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            loop.call_soon(self._tell)
        return await asyncio.shield(self._next)

    def _tell(self) -> None:
        waiting, self._next = self._next, None
        if waiting is not None:
            waiting.set_result(census())
