"""Notifications about a run, collected during a turn and sent once it is committed.

`EventCollector` joins gates and stuck cases of one family in a turn into one notification.
`Notifier` passes notifications to a command, at most once each, and to a webhook, with a few
retries. Neither delays the run; a delivery that fails is reported once.
"""

import asyncio
import hashlib
import hmac
import itertools
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.carriers.background import report_failure
from interlock.carriers.contract import Ask
from interlock.engine.case import Case
from interlock.journal.events import (
    Notification,
    NotificationKind,
    Tell,
    build_json,
    format_many,
    join_notifications,
)
from interlock.journal.journal import Inquiry, Pause
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.process_tree import kill_group
from interlock.system.retry import (
    RetrySchedule,
    TransientError,
    is_transient,
    read_retry_after,
)
from interlock.system.time import format_clock_time

if TYPE_CHECKING:
    import httpx

    from interlock.runtime.settings import Notify


DELIVERY_SECONDS = 10.0
"""Seconds that a command or a webhook has to take a notification."""
CLOSE_SECONDS = 5.0
"""Seconds for which the end of a run waits for open deliveries."""
RETRY = RetrySchedule((1.0, 5.0), longest=30.0)
"""Delays before a webhook is tried again."""
MAX_DELIVERIES = 100
"""The number of open deliveries beyond which more are dropped."""


class EventCollector:
    """Collect the events of a turn that people may want to hear of."""

    def __init__(self, run_id: int, tell: Tell) -> None:
        self._run_id = run_id
        self._tell = tell
        self._collected: dict[tuple[str, str], Notification] = {}

    def add_gate(self, ask: Ask) -> None:
        """Add a question to a person."""
        if ask.case is not None:
            self._add_for_case("gate", ask.case, ask.step, (ask.dispatch_id,))

    def add_stuck(self, case: Case) -> None:
        self._add_for_case("stuck", case, case.step, ())

    def add_rate_limit(self, pause: Pause) -> None:
        """Add an account that rests."""
        text = f"{pause.account}: rate-limited until {format_clock_time(pause.until, pause.at)}"
        self._add("rate-limit", text, pause.account, until=pause.until)

    def add_low_limits(self, warnings: Mapping[str, str]) -> None:
        """Add limits that are nearly spent: by the limit's word, the sentence about it."""
        for word, text in warnings.items():
            self._add("budget-low", text, word)

    def add_budget_question(self, inquiry: Inquiry) -> None:
        """Add the question to raise a spent budget."""
        self._add("budget", inquiry.about, "", questions=(inquiry.question_id,))

    def add_end(self, status: str, ends: Mapping[str, int]) -> None:
        """Add the end of the run, with the number of cases per end."""
        counts = "".join(f"; {count} {end}" for end, count in sorted(ends.items()))
        self._add("over", f"run {self._run_id}: {status}{counts}", status)

    def publish(self, at: float) -> None:
        """Pass the events on, now that they are committed."""
        if self._collected:
            collected, self._collected = self._collected, {}
            for event in collected.values():
                self._tell(msgspec.structs.replace(event, at=at))

    def _add_for_case(
        self, kind: NotificationKind, case: Case, step: str, questions: tuple[int, ...]
    ) -> None:
        family = case.input.get("family")
        about = f"{step}/{family if isinstance(family, str | int) else case.case_id}"
        cases = (case.case_id,)
        self._add(kind, format_many(kind, about, cases, questions), about, cases, questions)

    def _add(
        self,
        kind: NotificationKind,
        text: str,
        about: str,
        cases: tuple[str, ...] = (),
        questions: tuple[int, ...] = (),
        until: float = 0.0,
    ) -> None:
        event = Notification(kind, self._run_id, 0.0, text, about, cases, questions, until)
        before = self._collected.get((kind, about))
        self._collected[kind, about] = (
            event if before is None else join_notifications(before, event)
        )


class WebhookTarget(msgspec.Struct, frozen=True):
    """The URL that notifications are posted to; a secret signs their bodies."""

    url: str
    secret: bytes = b""


class Notifier:
    """Deliver notifications to people, inside a running event loop."""

    def __init__(
        self,
        clock: Clock,
        command: Sequence[str] = (),
        address: WebhookTarget | None = None,
        complain: Callable[[str], None] = lambda _problem: None,
    ) -> None:
        self._clock = clock
        self._command = tuple(command)
        self._address = address
        self._client = _build_client() if address is not None else None
        self._complain = complain
        self._complained: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    def notify(self, event: Notification) -> None:
        """Start the delivery and return at once."""
        body = msgspec.json.encode(build_json(event))
        if self._command:
            self._start(self._run_command(body))
        if self._address is not None and self._client is not None:
            self._start(self._post(self._client, self._address, body))

    async def close(self) -> None:
        """Wait for open deliveries, for a few seconds at most."""
        if self._tasks:
            under_way = list(self._tasks)
            done = asyncio.ensure_future(asyncio.wait(under_way))
            if not await self._is_done_within(done, CLOSE_SECONDS):
                self._over = True
                self._report("some notifications could not be delivered before the end")
                for task in under_way:
                    task.cancel()
                await asyncio.wait(under_way)
        if self._client is not None:
            await self._client.aclose()

    def _start(self, delivery: Coroutine[Any, Any, None]) -> None:
        if len(self._tasks) >= MAX_DELIVERIES:
            delivery.close()
            self._report(
                f"more than {MAX_DELIVERIES} notifications are under way; others are dropped"
            )
            return
        task = asyncio.create_task(delivery)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        """End a delivery. An error that was not handled where it arose is a bug: it is reported
        with its traceback and does not touch the run."""
        self._tasks.discard(task)
        report_failure(task)

    async def _run_command(self, body: bytes) -> None:
        """Run the command with the notification on stdin; its output is ignored."""
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
            self._report(f"notify command {self._command[0]!r}: {error.strerror}")
            return
        try:
            ended = asyncio.ensure_future(process.communicate(body))
            if not await self._is_done_within(ended, DELIVERY_SECONDS):
                self._report(
                    f"notify command {self._command[0]!r} took longer than {DELIVERY_SECONDS:.0f} s"
                )
            elif process.returncode:
                self._report(f"notify command {self._command[0]!r}: exit code {process.returncode}")
        finally:
            kill_group(process.pid)
            await process.wait()

    async def _post(self, client: "httpx.AsyncClient", address: WebhookTarget, body: bytes) -> None:
        for failures in itertools.count(1):
            post = asyncio.ensure_future(_post_once(client, address, body))
            try:
                if not await self._is_done_within(post, DELIVERY_SECONDS):
                    raise TransientError("it took too long")
                problem, wait = post.result(), None
            except TransientError as error:
                problem = error.reason
                wait = RETRY.find_wait(failures, error.wait_s)
            if not problem or self._over:
                return  # over: a cancelled request may come back as one that failed
            if wait is None:
                self._report(f"webhook: {problem}")
                return
            await self._sleep(wait)

    async def _is_done_within(self, work: "asyncio.Future[Any]", seconds: float) -> bool:
        """Return whether the work was done in time; otherwise cancel it."""
        late: list[bool] = []

        def give_up() -> None:
            late.append(work.cancel())

        cancel = self._clock.call_at(self._clock.now() + seconds, give_up)
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            cancel()
        if late:  # and whatever a cancelled request comes back with does not count
            return False
        await work
        return True

    async def _sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        self._clock.call_at(self._clock.now() + seconds, over.set)
        await over.wait()

    def _report(self, problem: str) -> None:
        if problem not in self._complained:
            self._complained.add(problem)
            self._complain(problem)


def _sign(address: WebhookTarget, body: bytes) -> dict[str, str]:
    """Return the header with the signature of a body; empty without a secret."""
    if not address.secret:
        return {}
    digest = hmac.new(address.secret, body, hashlib.sha256).hexdigest()
    return {"X-Interlock-Signature": f"sha256={digest}"}


def _build_client() -> "httpx.AsyncClient":
    """Build the client before the run starts: that takes a while, and must not delay a turn."""
    import httpx

    return httpx.AsyncClient(timeout=None)  # noqa: S113 - the clock is ours


async def _post_once(client: "httpx.AsyncClient", address: WebhookTarget, body: bytes) -> str:
    """Post a notification; return why the webhook refused it, or raise TransientError if it may
    take it later.

    The body of the response is not read.
    """
    import httpx

    headers = {"Content-Type": "application/json", **_sign(address, body)}
    try:
        async with client.stream("POST", address.url, content=body, headers=headers) as answer:
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise TransientError(f"{type(error).__name__}: {error}"[:200]) from None
    problem = f"the address answered {status}"
    if is_transient(status):
        raise TransientError(problem, status, read_retry_after(answer.headers))
    return "" if answer.is_success else problem


def build_notifier(
    notify: "Notify", clock: Clock, complain: Callable[[str], None]
) -> Notifier | None:
    """Build the notifier that the settings ask for; None if they name no command or webhook.

    A missing command stops no run: it is reported at the first delivery, and by doctor.
    """
    if not notify.command and not notify.webhook:
        return None
    address = None
    if notify.webhook:
        if not notify.webhook.startswith(("https://", "http://")):
            raise SourceError(
                "interlock.toml, [notify] webhook: give an http:// or https:// address"
            )
        address = WebhookTarget(notify.webhook, os.environ.get(notify.secret_env, "").encode())
    return Notifier(clock, notify.command, address, complain)
