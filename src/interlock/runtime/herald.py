"""The herald: carries notices to a command and to a web address, never in the way of the run.

Notices about the same that come close together travel as one. Each is sent at most once to the
command, and to the address until it is taken, a few times at most. What cannot be delivered is said
once; a run neither waits for it nor fails because of it.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.agents.carrier import Clock
from interlock.journal.events import Notification, as_json, joined
from interlock.system.process_tree import kill_group

if TYPE_CHECKING:
    import httpx

TOGETHER = 2.0
"""Seconds for which gates and stuck cases are gathered, so that a family is one notice."""
PATIENCE = 10.0
"""Seconds that a command or an address has to take a notice."""
LAST_CHANCE = 5.0
"""Seconds for which the end of a run waits for notices that are under way."""
RETRIES = (1.0, 5.0)
"""Seconds before an address is tried again."""
MOST_WAITING = 100
_GATHERED = ("gate", "stuck")
_FINE, _BUSY = 300, 500


class WebhookTarget(msgspec.Struct, frozen=True):
    """Where notices are posted. With a secret the body is signed, so that others cannot forge."""

    url: str
    secret: bytes = b""


class Notifier:
    """Tells notices to others. Belongs inside a running event loop."""

    def __init__(
        self,
        clock: Clock,
        command: Sequence[str] = (),
        address: WebhookTarget | None = None,
        complain: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._clock = clock
        self._command = tuple(command)
        self._address = address
        self._client = _client() if address is not None else None
        self._complain = complain
        self._complained: set[str] = set()
        self._gathered: dict[tuple[int, str, str], Notification] = {}
        self._timers: dict[tuple[int, str, str], Callable[[], None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    def tell(self, notice: Notification) -> None:
        """Have it carried; returns at once."""
        if notice.event not in _GATHERED:
            self._carry(notice)
            return
        key = (notice.run_id, notice.event, notice.about)
        before = self._gathered.get(key)
        self._gathered[key] = notice if before is None else joined(before, notice)
        if before is None:
            when = self._clock.now() + TOGETHER
            self._timers[key] = self._clock.call_at(when, lambda: self._let_go(key))

    async def close(self) -> None:
        """Send what is gathered, and give what is under way a last chance."""
        for key in list(self._gathered):
            self._let_go(key)
        if self._tasks:
            under_way = list(self._tasks)
            done = asyncio.ensure_future(asyncio.wait(under_way))
            if not await self._within(done, LAST_CHANCE):
                self._over = True
                self._say("some notices could not be delivered before the end")
                for task in under_way:
                    task.cancel()
                await asyncio.wait(under_way)
        if self._client is not None:
            await self._client.aclose()

    def _let_go(self, key: tuple[int, str, str]) -> None:
        self._timers.pop(key)()
        self._carry(self._gathered.pop(key))

    def _carry(self, notice: Notification) -> None:
        body = msgspec.json.encode(as_json(notice))
        if self._command:
            self._begin(self._run(body))
        if self._address is not None and self._client is not None:
            self._begin(self._post(self._client, self._address, body))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if len(self._tasks) >= MOST_WAITING:
            work.close()
            self._say(f"more than {MOST_WAITING} notices are under way; others are dropped")
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, body: bytes) -> None:
        """The command gets the notice on its stdin; what it prints is nobody's business."""
        none = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=none,
                stderr=none,
                start_new_session=True,
            )
        except OSError as error:
            self._say(f"notify command {self._command[0]!r}: {error.strerror}")
            return
        try:
            talk = asyncio.ensure_future(process.communicate(body))
            if not await self._within(talk, PATIENCE):
                self._say(f"notify command {self._command[0]!r} took longer than {PATIENCE:.0f} s")
            elif process.returncode:
                self._say(f"notify command {self._command[0]!r}: exit code {process.returncode}")
        finally:
            kill_group(process.pid)
            await process.wait()

    async def _post(self, client: "httpx.AsyncClient", address: WebhookTarget, body: bytes) -> None:
        for delay in (*RETRIES, None):
            post = asyncio.ensure_future(_posted(client, address, body))
            in_time = await self._within(post, PATIENCE)
            problem, again = post.result() if in_time else ("it took too long", True)
            if not problem or self._over:
                return  # over: a cancelled request may come back as one that failed
            if delay is None or not again:
                self._say(f"webhook: {problem}")
                return
            await self._after(delay)

    async def _within(self, work: "asyncio.Future[Any]", seconds: float) -> bool:
        """Whether the work was done in time; else it is given up."""
        late: list[bool] = []

        def give_up() -> None:
            late.append(work.cancel())

        cancel = self._clock.call_at(self._clock.now() + seconds, give_up)
        try:
            await work
        except asyncio.CancelledError:
            if not late:
                work.cancel()
                raise
        finally:
            cancel()
        return not late

    async def _after(self, seconds: float) -> None:
        over = asyncio.Event()
        self._clock.call_at(self._clock.now() + seconds, over.set)
        await over.wait()

    def _say(self, problem: str) -> None:
        if problem not in self._complained:
            self._complained.add(problem)
            self._complain(problem)


def signed(address: WebhookTarget, body: bytes) -> dict[str, str]:
    """The header that proves who sent a body: whoever knows the secret can make it anew."""
    if not address.secret:
        return {}
    mark = hmac.new(address.secret, body, hashlib.sha256).hexdigest()
    return {"X-Interlock-Signature": f"sha256={mark}"}


def _client() -> "httpx.AsyncClient":
    """Made before the run: it takes a while, and must not hold anything up."""
    import httpx

    return httpx.AsyncClient(timeout=None)  # noqa: S113 - the clock is ours


async def _posted(
    client: "httpx.AsyncClient", address: WebhookTarget, body: bytes
) -> tuple[str, bool]:
    """Why the address did not take it, and whether it may yet; nothing if it did. The answer's own
    body is not read."""
    import httpx

    headers = {"Content-Type": "application/json", **signed(address, body)}
    try:
        async with client.stream("POST", address.url, content=body, headers=headers) as answer:
            code = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:200], True
    return ("" if code < _FINE else f"the address answered {code}"), code >= _BUSY
