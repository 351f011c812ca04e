"""The contract between a run and its carriers, which take asks and hand back replies.

A carrier never decides whether a reply is good, late or forged; it hands over what came, with the
dispatch id. Sending the same ask twice must be harmless, because it happens after a crash.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from interlock.engine.case import Case, ModelCall, RefusedAnswer, Usage
from interlock.engine.circuit import Language, Step
from interlock.journal.events import Tell, ignore_notification
from interlock.signals.batch import Briefing, Phase, render_briefing
from interlock.system.clock import Clock, SystemClock

MAX_ANSWER = 1024 * 1024
"""The longest answer in bytes; a longer one is refused unread."""


class Checkout(msgspec.Struct, frozen=True, gc=False):
    """Files of a commit that an agent on another host needs."""

    remote: str
    """A git remote that both hosts reach."""
    commit: str
    ref: str = ""
    """The name of the commit there; empty if it is fetched by its hash."""
    folder: str = ""
    """The folder of the files on the coordinator's host. Prompts and variables that name it will
    name this checkout."""
    inside: str = ""
    """The folder inside the checkout in which the agent works."""
    branch: str = ""
    """The branch that is checked out; empty for files that are only read."""
    setup: tuple[str, ...] = ()
    """A command that prepares the files, run where the agent will work."""
    push: str = ""
    """The beginning of the ref for the agent's work, followed by the fence; empty if nothing is
    kept."""


class PushedWork(msgspec.Struct, frozen=True, gc=False):
    """The work of an agent on another host."""

    ref: str
    commit: str


class ExecutionContext(msgspec.Struct, frozen=True, gc=False):
    """The application's terms for an ask: the agent's folder, and what its answer must name."""

    folder: str = ""
    """The agent's working folder; empty for the carrier's own choice."""
    variables: Mapping[str, str] = {}
    nonce: str = ""
    """The nonce that a strict answer repeats, to show that it is for this dispatch."""
    strict: bool = False
    writes: bool = False
    """True if the agent is to change files in its folder; a CLI is then started so that it may."""
    request_id: str = ""
    """The request id that an expert's answer names."""
    folders: tuple[str, ...] = ()
    """Further folders that the agent may read."""
    checkouts: tuple[Checkout, ...] = ()
    """Checkouts for agents on other hosts; the agent works in the one with a branch."""


NO_CONTEXT = ExecutionContext()


class Ask(msgspec.Struct, frozen=True, gc=False):
    """A dispatch on its way out."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    case_no: int = 0
    """The case's number in the database; unlike its id, it is safe as a folder's name."""
    at: float = 0.0
    """The time at which the dispatch was opened; it stays the same after a restart."""
    case: Case | None = None
    """The case as it stood when it was asked about, for handlers of our own."""
    language: Language = "json"
    execution: ExecutionContext = NO_CONTEXT
    run_at: float = 0.0
    """The time at which the run was begun; with the run's number it names the run's trace."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """An answer's bytes, or the reason why there is no answer (a signal name and a sentence).

    `refused` means that the carrier itself saw that this cannot be an answer to the dispatch: the
    refusal is journaled, `reason` is the sentence for the sender, and the dispatch stays open. With
    `stops_run` nobody can be asked before a person changes something, such as a key: the run stops,
    and `reason` says what to do. The content of a failure is journaled as refused.

    `answered_by` names the person who answered, and is empty for an agent. `until` is the end of a
    rate limit in seconds since the epoch, or 0 if it is not known.
    """

    dispatch_id: int
    content: bytes = b""
    failure: str = ""
    reason: str = ""
    refused: str = ""
    usage: Usage = Usage()
    answered_by: str = ""
    until: float = 0
    stops_run: bool = False
    call: ModelCall | None = None
    """The model request that this came from, if an endpoint answered it."""
    pushed: PushedWork | None = None
    """The place of the agent's work, if it worked on another host."""


Deliver = Callable[[Reply], None]


JudgeAnswer = Callable[[Ask, Reply], RefusedAnswer | None]
"""Return why an answer would be refused, or None if it would be accepted."""


class RunProgress(msgspec.Struct, frozen=True):
    """The progress of a run: its cases, how many are over, and the tokens it has cost."""

    cases: int = 0
    over: int = 0
    tokens: int = 0


def _accept(_ask: Ask, _reply: Reply) -> None:
    return None


def _do_nothing() -> None:
    return None


def _keep_briefing(briefing: Briefing) -> Briefing:
    return briefing


def _always_triage(_step: str) -> Phase:
    return "triage"


class Session(msgspec.Struct, frozen=True):
    """Everything a run lends its carriers during a session."""

    deliver: Deliver
    clock: Clock = msgspec.field(default_factory=SystemClock)
    circuit: str = ""
    """The circuit's name."""
    steps: Mapping[str, Step] = {}
    """The circuit's steps, with the shape of their answers and their timeouts."""
    judge: JudgeAnswer = _accept
    wake_up: Callable[[], None] = _do_nothing
    """Make the run look for room that has opened by itself."""
    notify: Tell = ignore_notification
    read_progress: Callable[[], RunProgress] = RunProgress
    enrich: Callable[[Briefing], Briefing] = _keep_briefing
    """Add to a briefing what the application knows."""
    phase_of: Callable[[str], Phase] = _always_triage

    def write_briefing(self, run_id: int, asks: Sequence[Ask], batch_id: int = 1) -> str:
        """Return what workers should know of these asks.

        The title has the batch's id, so that the id of a lost manifest is found again.
        """
        progress = self.read_progress()
        investigates = any(self.phase_of(ask.step) == "investigation" for ask in asks)
        plain = Briefing(
            batch_id=batch_id,
            scenario=self.circuit,
            suite_id=str(run_id),
            phase="investigation" if investigates else "triage",
            in_batch=len(asks),
            total=progress.cases,
            completed=progress.over,
        )
        return render_briefing(self.enrich(plain))


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a carrier that never change. Most carriers have the defaults."""

    capacity: Literal["unlimited", "shared", "by role"] = "unlimited"
    """Whether `free_capacity` limits asks, for all roles together or for each apart."""
    default_timeout: float | None = None
    """Seconds for steps without a timeout, where nobody would miss a dead agent."""
    times_itself: bool = False
    """True if the carrier counts a step's time itself, from when the ask is taken."""
    answered: Literal["now", "inbox", "by hand"] = "now"
    """How answers come: while the run works, or by a later command, to a question at the inbox or
    to a prompt in a file."""
    elsewhere: bool = False
    """The agents work on other hosts: files of theirs travel with the dispatch."""
    forgets_prompts: bool = False
    """True if open dispatches need no prompts in memory; they are read from the journal."""
    hint: str = ""
    """A line for the user when work on a run begins."""


class Carrier(ABC):
    """Carry asks of one or more roles. A carrier of your own has `send`, and overrides what else it
    needs."""

    traits = Traits()

    def start(self, session: Session) -> None:
        """Begin to work for a run, inside the running event loop and before the first ask.

        Called again after `close` when the same program continues the run.
        """
        self._deliver = session.deliver

    @abstractmethod
    def send(self, asks: Sequence[Ask]) -> None:
        """Carry these asks out and return at once; replies come through `session.deliver`."""

    def settle(self, dispatch_id: int, error: str = "") -> None:  # noqa: B027 - few have to
        """Stop the work on a dispatch that was answered or, with an `error`, given up."""

    async def close(self) -> None:  # noqa: B027 - few have to
        """Stop everything and release what is held."""

    def free_capacity(self, role: str) -> int:
        """Return how many asks of the role can be taken now.

        Room opens when a dispatch is settled; where it opens by itself, the carrier calls
        `session.wake_up`.
        """
        return sys.maxsize

    def account_of(self, role: str) -> str:
        """Return the account that the role's asks are charged to, such as a login or a key; empty
        for an account of this run alone.

        The same name in another run is the same account.
        """
        return ""

    def keeps_answers(self) -> bool:
        """Return whether nothing is lost if nobody waits for open answers."""
        return False


class CarrierWrapper(Carrier):
    """A carrier in front of another one, which does everything that is not overridden."""

    def __init__(self, inner: Carrier) -> None:
        self.inner = inner
        self.traits = inner.traits

    def start(self, session: Session) -> None:
        super().start(session)
        self.inner.start(session)

    def send(self, asks: Sequence[Ask]) -> None:
        self.inner.send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self.inner.settle(dispatch_id, error)

    async def close(self) -> None:
        await self.inner.close()

    def free_capacity(self, role: str) -> int:
        return self.inner.free_capacity(role)

    def account_of(self, role: str) -> str:
        return self.inner.account_of(role)

    def keeps_answers(self) -> bool:
        return self.inner.keeps_answers()
