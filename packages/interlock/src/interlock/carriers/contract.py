"""The contract between a run and its carriers, which take asks and hand back replies.

A carrier never decides whether a reply is good, late or forged; it hands over what came, with the
dispatch id it came for. Sending the same ask twice must be harmless: after a crash it happens.
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
"""Bytes of one answer. A longer one is refused without being read to its end."""


class Checkout(msgspec.Struct, frozen=True, gc=False):
    """Files of a commit that an agent needs where it works, if that is another host."""

    remote: str
    """A git remote that both hosts reach."""
    commit: str
    ref: str = ""
    """What names the commit there; empty if it is fetched by its own name."""
    folder: str = ""
    """Where the files lie on the coordinator's host; what names that folder, in the prompt and in
    variables, then names this one."""
    inside: str = ""
    """The folder in it where the agent works; for the one that it works in."""
    branch: str = ""
    """The branch that is checked out; empty for files that are only read."""
    setup: tuple[str, ...] = ()
    """A command that prepares the files, run where the agent will work."""
    push: str = ""
    """The beginning of the ref to which the agent's work goes, followed by the fence; empty if
    nothing is to be kept."""


class PushedWork(msgspec.Struct, frozen=True, gc=False):
    """The work of an agent on another host."""

    ref: str
    commit: str


class ExecutionContext(msgspec.Struct, frozen=True, gc=False):
    """Where the agent of an ask works, and what its answer must name, where an application says."""

    folder: str = ""
    """Its working folder; empty for the carrier's own choice."""
    variables: Mapping[str, str] = {}
    nonce: str = ""
    """What a strict answer repeats, to show that it is for this dispatch."""
    strict: bool = False
    writes: bool = False
    """Whether it is to change files in its folder: a CLI is then started so that it may."""
    request_id: str = ""
    """What an expert's answer names."""
    folders: tuple[str, ...] = ()
    """More folders that the agent may read."""
    checkouts: tuple[Checkout, ...] = ()
    """For agents on other hosts; the one with a branch is where the agent works."""


NO_CONTEXT = ExecutionContext()


class Ask(msgspec.Struct, frozen=True, gc=False):
    """One dispatch on its way out."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    case_no: int = 0
    """The case's number in the database, unlike its id safe as a folder's name."""
    at: float = 0.0
    """When the dispatch was opened; sent again after a restart, it keeps its time."""
    case: Case | None = None
    """The case as it stood when it was asked about, for handlers of our own."""
    language: Language = "json"
    execution: ExecutionContext = NO_CONTEXT
    run_at: float = 0.0
    """When its run was begun: with the run's number, that names the run's trace."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What came back: the answer's bytes, or why there are none (a signal name and a reason).

    With `refused` the carrier itself saw that it cannot be an answer to this dispatch: that is
    journaled, the reason being the sentence for whoever wrote it, and the dispatch stays open. If
    it also `stops_run`, nobody can be asked before a person has changed something, such as a key:
    the run stops, and the reason says what to do. A failure may have content, which is journaled
    as refused.
    `answered_by` names the human who gave it, and is empty for an agent. `until` goes with a rate
    limit: when it ends, in seconds since the epoch, or 0 where nobody says.
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
    """The request that this came from, if a model's endpoint has answered it."""
    pushed: PushedWork | None = None
    """Where the agent's work is, if it worked on another host."""


Deliver = Callable[[Reply], None]


JudgeAnswer = Callable[[Ask, Reply], RefusedAnswer | None]
"""Return why an answer would be refused, or None if it would be accepted."""


class RunProgress(msgspec.Struct, frozen=True):
    """How far a run has come: its cases, how many are over, and the tokens it has cost."""

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
    """Everything a run lends its carriers while it is worked on."""

    deliver: Deliver
    clock: Clock = msgspec.field(default_factory=SystemClock)
    circuit: str = ""
    """The circuit's name."""
    steps: Mapping[str, Step] = {}
    """The circuit's steps: what an answer must look like, and how long it may take."""
    judge: JudgeAnswer = _accept
    wake_up: Callable[[], None] = _do_nothing
    """Make the run look for room that has opened by itself."""
    notify: Tell = ignore_notification
    read_progress: Callable[[], RunProgress] = RunProgress
    enrich: Callable[[Briefing], Briefing] = _keep_briefing
    """Add to a briefing what the application knows."""
    phase_of: Callable[[str], Phase] = _always_triage

    def write_briefing(self, run_id: int, asks: Sequence[Ask], batch_id: int = 1) -> str:
        """Return what workers should know of these asks. The batch's id stands in the title, by
        which a lost manifest's id is found again."""
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
    """Whether `free_capacity` limits the asks: all together, or those of each role apart."""
    default_timeout: float | None = None
    """Seconds for steps without a timeout, where nobody would miss an agent that died."""
    times_itself: bool = False
    """The carrier counts a step's time itself, from when somebody takes the ask."""
    answered: Literal["now", "inbox", "by hand"] = "now"
    """How answers come: while the run works, or by a later command, to a question at the inbox or
    to a prompt in a file."""
    elsewhere: bool = False
    """The agents work on other hosts: files of theirs travel with the dispatch."""
    forgets_prompts: bool = False
    """Nobody needs the prompts of what is out: they are read in the journal."""
    hint: str = ""
    """A line for the user when work on a run begins."""


class Carrier(ABC):
    """Carries asks of one or more roles. A carrier of your own has `send`, and overrides what else
    it needs."""

    traits = Traits()

    def start(self, session: Session) -> None:
        """Begin to work for a run. Called before the first ask, inside the running event loop;
        after `close`, again when the same program goes on with the run."""
        self._deliver = session.deliver

    @abstractmethod
    def send(self, asks: Sequence[Ask]) -> None:
        """Carry these out; returns at once, replies come through `session.deliver`."""

    def settle(self, dispatch_id: int, error: str = "") -> None:  # noqa: B027 - few have to
        """Stop what still runs for a dispatch that is decided, by its answer or, as `error` says,
        without one."""

    async def close(self) -> None:  # noqa: B027 - few have to
        """Stop everything that still runs and let go of what is held."""

    def free_capacity(self, role: str) -> int:
        """Return how many asks of the role can be taken at this moment. Room opens when a dispatch
        is settled; where it opens by itself, the carrier calls `session.wake_up`."""
        return sys.maxsize

    def account_of(self, role: str) -> str:
        """Return the name of what the role's asks are charged to, such as a login or a key; empty
        for an account of this run alone. The same name in another run is the same account."""
        return ""

    def keeps_answers(self) -> bool:
        """Return whether nothing is lost if nobody waits for what is out."""
        return False


class CarrierWrapper(Carrier):
    """A carrier in front of another, which does all that is not overridden."""

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
