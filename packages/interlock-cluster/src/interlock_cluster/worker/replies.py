"""Hands the replies of a worker in: those that come while some are written go out together."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice

from interlock.carriers.background import report_failure
from interlock.system.errors import InterlockError
from interlock_cluster.queue_worker import WrittenReply, write_replies
from interlock_cluster.worker.database import DatabaseThreads

_RETRY = 1.0
_MOST = 50
_MOST_BYTES = 4_000_000


class ReplyWriter:
    """Writes replies, however long that takes to succeed. What fails together is tried one by one:
    a reply that the database does not take holds up no other."""

    def __init__(
        self, database: DatabaseThreads, worker_id: str, report: Callable[[str], None]
    ) -> None:
        """`report` is told why nothing can be written, or '' when it can."""
        self._database = database
        self._worker_id = worker_id
        self._report = report
        self._waiting: deque[tuple[WrittenReply, asyncio.Future[str]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def write(self, reply: WrittenReply) -> str:
        """Hand one in: 'accepted', or why not."""
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((reply, said))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_on())
            self._task.add_done_callback(report_failure)
        return await said

    async def _write_on(self) -> None:
        most = _MOST
        while batch := self._take_batch(most):
            write = partial(
                write_replies,
                worker_id=self._worker_id,
                replies=[reply for reply, _ in batch],
            )
            try:
                found = await self._database.call(write)
            except InterlockError as error:
                self._report(str(error))
                self._waiting.extend(batch)
                most = 1
                await asyncio.sleep(_RETRY)
            else:
                self._report("")
                most = _MOST
                for (_, said), word in zip(batch, found, strict=True):
                    if not said.done():
                        said.set_result(word)

    def _take_batch(self, most: int) -> list[tuple[WrittenReply, "asyncio.Future[str]"]]:
        """The next ones that are still wanted, in the order in which their rows are locked."""
        self._waiting = deque(each for each in self._waiting if not each[1].done())
        count = size = 0
        for reply, _ in islice(self._waiting, most):
            size += len(reply.body)
            if count and size > _MOST_BYTES:
                break
            count += 1
        batch = [self._waiting.popleft() for _ in range(count)]
        return sorted(batch, key=lambda each: each[0].dispatch_id)
