"""What every carrier does: take asks and hand back replies. The loop knows carriers only by this.

A carrier never decides whether a reply is good, late or forged; it hands over what came, with the
dispatch id it came for. Sending the same ask twice must be harmless: after a crash it happens.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import msgspec

from interlock.engine.case import Case, ModelCall, RefusedAnswer, Usage
from interlock.engine.circuit import Language, Step
from interlock.system.clock import Clock

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


class Carrier(Protocol):
    """Carries asks of one or more roles."""

    def start(self, deliver: Deliver) -> None:
        """Called before the first ask, inside the running event loop; after `close`, again when
        the same program goes on with the run."""

    def send(self, asks: Sequence[Ask]) -> None:
        """Carry these out; returns at once, replies come through `deliver`."""

    def settle(self, dispatch_id: int, error: str = "") -> None:
        """The dispatch is decided, by its answer or, as `error` says, without one: stop what still
        runs for it."""

    async def close(self) -> None:
        """Stop everything that still runs and let go of what is held."""


@runtime_checkable
class HasCapacity(Protocol):
    """A carrier that takes asks only now and then, and then only so many."""

    def free_capacity(self) -> int:
        """How many it takes at this moment. Room opens when one of its dispatches is settled."""


@runtime_checkable
class HasRoleCapacity(Protocol):
    """The same for each role of its own. When room opens by itself, it calls `wake_up`, which is
    set before it starts."""

    wake_up: Callable[[], None]

    def free_capacity_of(self, role: str) -> int:
        """How many dispatches of the role it takes at this moment."""


@runtime_checkable
class KeepsTime(Protocol):
    """A carrier whose asks are fetched: it counts a step's time itself, from when one is taken."""

    counts_from_taking: bool


@runtime_checkable
class SharesAccount(Protocol):
    """A carrier whose asks share a limit with others: a login, a key, a subscription."""

    def account_of(self, role: str) -> str:
        """The name of what the role's asks are charged to; empty if it has none of its own. The
        same name in another run or another process is the same account."""


@runtime_checkable
class KeepsAnswers(Protocol):
    """A carrier whose answers may lie where they are until somebody comes for them."""

    def keeps_answers(self) -> bool:
        """Whether nothing is lost if nobody waits for what is out."""


@runtime_checkable
class ForgetsPrompts(Protocol):
    """A carrier that needs no prompts, because whoever answers reads them in the journal."""

    def forgets_prompts(self) -> bool:
        """Whether nobody needs to keep the prompts of what is out."""


@runtime_checkable
class HoldsTime(Protocol):
    """A clock of tests: its time does not pass while somebody works."""

    def hold(self) -> AbstractContextManager[None]:
        """Until it is left, time stands."""


@runtime_checkable
class TakesClock(Protocol):
    """A carrier that a program makes before the run's clock is known, and that is given it."""

    clock: Clock | None


@runtime_checkable
class KnowsSteps(Protocol):
    """A carrier that is given the circuit's steps before it starts: what an answer must look like,
    and how long it may take."""

    steps: Mapping[str, Step]


JudgeAnswer = Callable[[Ask, Reply], RefusedAnswer | None]
WriteBriefing = Callable[[int, Sequence[Ask]], str]


@runtime_checkable
class JudgesAnswers(KnowsSteps, Protocol):
    """A carrier whose workers learn at once why an answer is refused, and are told about the run;
    it is given both before it starts."""

    judge_answer: JudgeAnswer
    write_briefing: WriteBriefing


@runtime_checkable
class LimitsTime(Protocol):
    """A carrier that cannot see whether anybody is there to answer: a step that its circuit gives
    no time has this many seconds, or none if it is None."""

    default_timeout: float | None


@runtime_checkable
class AnsweredLater(Protocol):
    """A carrier whose answers are given by a later command, so that nobody waits for them."""

    is_written_out: bool
    """Whether its prompts are written to files; else they are asked at the inbox."""
