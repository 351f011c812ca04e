"""Send notifications about a run to people, once the turn that caused them is committed.

`EventCollector` collects the events of a turn and joins gates and stuck cases of one family; a
later session does not repeat them. `Notifier` delivers to a command and to a web address, and never
delays the run: the command gets each notification at most once, the address until it accepts one,
within a few tries. Each problem is reported once.
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
from interlock.journal.events import Notification, NotificationKind, Tell, build_json
from interlock.journal.journal import Inquiry, Pause
from interlock.system.clock import Clock, pause
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
"""Seconds that a command or an address has to take a notification."""
CLOSE_SECONDS = 5.0
"""Seconds for which the end of a run waits for deliveries under way."""
RETRY = RetrySchedule((1.0, 5.0), longest=30.0)
"""The schedule of further tries at an address."""
MAX_DELIVERIES = 100
"""Deliveries that may be under way; more are dropped."""


class EventCollector:
    """Collect the events of a turn that people may want to know about."""

    def __init__(self, run_id: int, tell: Tell) -> None:
        self._run_id = run_id
        self._tell = tell
        self._collected: dict[tuple[str, str], Notification] = {}

    def add_gate(self, ask: Ask) -> None:
        if ask.case is not None:
            self._add_for_case("gate", ask.case, ask.step, ask.dispatch_id)

    def add_stuck(self, case: Case) -> None:
        self._add_for_case("stuck", case, case.step)

    def add_rate_limit(self, pause: Pause) -> None:
        text = f"{pause.account}: rate-limited until {format_clock_time(pause.until, pause.at)}"
        self._add("rate-limit", text, pause.account, until=pause.until)

    def add_low_limits(self, warnings: Mapping[str, str]) -> None:
        """Add a warning for each limit that is nearly spent, by the limit's name."""
        for name, text in warnings.items():
            self._add("budget-low", text, name)

    def add_budget_question(self, inquiry: Inquiry) -> None:
        self._add("budget", inquiry.about, "", questions=(inquiry.question_id,))

    def add_end(self, status: str, ends: Mapping[str, int]) -> None:
        """Add the end of the run, with the number of cases at each of their ends."""
        counts = "".join(f"; {count} {end}" for end, count in sorted(ends.items()))
        self._add("over", f"run {self._run_id}: {status}{counts}", status)

    def publish(self, at: float) -> None:
        """Pass on what was collected, because it is now committed."""
        collected, self._collected = self._collected, {}
        for event in collected.values():
            self._tell(msgspec.structs.replace(event, at=at))

    def _add_for_case(
        self, kind: NotificationKind, case: Case, step: str, *questions: int | str
    ) -> None:
        family = case.input.get("family")
        about = f"{step}/{family if isinstance(family, str | int) else case.case_id}"
        cases: tuple[str, ...] = (case.case_id,)
        if before := self._collected.get((kind, about)):
            cases, questions = before.cases + cases, before.questions + questions
        named = cases[0] if len(cases) == 1 else f"{cases[0]} and {len(cases) - 1} more"
        if kind == "gate":
            text = f"{named} at {step}: 'interlock answer {questions[0]} DECISION'"
        else:
            text = f"{named} stuck at {step}: 'interlock explain {cases[0]}'"
        self._add(kind, text, about, cases, questions)

    def _add(
        self,
        kind: NotificationKind,
        text: str,
        about: str,
        cases: tuple[str, ...] = (),
        questions: tuple[int | str, ...] = (),
        until: float = 0.0,
    ) -> None:
        event = Notification(kind, self._run_id, 0.0, text, about, cases, questions, until)
        self._collected[kind, about] = event


class WebhookTarget(msgspec.Struct, frozen=True):
    """The address notifications are posted to; with a secret, each body is signed."""

    url: str
    secret: bytes = b""


class Notifier:
    """Deliver notifications; needs a running event loop."""

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
        """Wait a few seconds for deliveries under way, then cancel them."""
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
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report_failure)

    async def _run_command(self, body: bytes) -> None:
        """Pass the notification to the command's stdin, and ignore its output."""
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
                return  # at the end, a cancelled request may look like one that failed
            if wait is None:
                self._report(f"webhook: {problem}")
                return
            await pause(self._clock, wait)

    async def _is_done_within(self, work: "asyncio.Future[Any]", seconds: float) -> bool:
        """Return True if the work was done in time; otherwise cancel it."""
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
        if late:  # the result of a cancelled request does not count
            return False
        await work
        return True

    def _report(self, problem: str) -> None:
        if problem not in self._complained:
            self._complained.add(problem)
            self._complain(problem)


def _build_client() -> "httpx.AsyncClient":
    import httpx  # it loads slowly, so it is loaded before the run

    return httpx.AsyncClient(timeout=None)  # noqa: S113 - the clock is ours


async def _post_once(client: "httpx.AsyncClient", address: WebhookTarget, body: bytes) -> str:
    """Post a body, and return why the address refused it; empty if it did not.

    Raise TransientError if the address may accept it later. The answer's body is not read.
    """
    import httpx

    headers = {"Content-Type": "application/json"}
    if address.secret:
        digest = hmac.new(address.secret, body, hashlib.sha256).hexdigest()
        headers["X-Interlock-Signature"] = f"sha256={digest}"
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
    """Return the notifier that the settings ask for; None if there is none.

    A missing command stops no run: it is reported with the first notification, and by doctor.
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
