"""Errands: a task for each dispatch under way, begun once, cancelled when nobody needs it any more.

Knows tasks and the numbers they are for. Refuses to know what is done in them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from interlock.agents.carrier import Ask


class TaskSet:
    """What is under way, by the dispatch it is for."""

    def __init__(self, run: Callable[[Ask], Awaitable[None]]) -> None:
        self._run = run
        self._tasks: dict[int, asyncio.Future[None]] = {}

    def begin(self, asks: Iterable[Ask]) -> None:
        """Run what is not under way already."""
        for ask in asks:
            if ask.dispatch_id not in self._tasks:
                self._tasks[ask.dispatch_id] = asyncio.ensure_future(self._run(ask))

    def drop(self, dispatch_id: int) -> None:
        task = self._tasks.pop(dispatch_id, None)
        if task is not None:
            task.cancel()

    async def end(self, *others: Awaitable[Any]) -> None:
        """Cancel all of them, and wait until they and the `others` are over."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*others, *tasks, return_exceptions=True)
