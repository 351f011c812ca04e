"""The table of scenarios: name, what is checked, why it matters, and the play itself.

The how-to's table is made from it. Refuses to know how a scenario is run.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from interlock.testing.conform import batches, single
from interlock.testing.conform.stage import Stage


class ConformScenario(msgspec.Struct, frozen=True):
    """One row. The play gives back what was seen when all went well."""

    name: str
    checks: str
    why: str
    play: Callable[[Stage], str]


SCENARIOS: Final = (
    ConformScenario(
        "one-step",
        "a waiting signal gets a wrapped artifact with its dispatch_id",
        "everything else builds on it",
        single.one_step,
    ),
    ConformScenario(
        "several-steps",
        "each step of a case is answered under its own, new dispatch_id",
        "an id that is remembered or counted instead of read makes the answer stale",
        single.several_steps,
    ),
    ConformScenario(
        "two-cases",
        "two signals waiting at once are both answered, each with its own",
        "a run has many cases open; none may starve or get another's answer",
        single.two_cases,
    ),
    ConformScenario(
        "batch",
        "all signals of a manifest are answered; the manifest stays true",
        "an entry that is done without an artifact misleads whoever reads the manifest",
        batches.batch,
    ),
    ConformScenario(
        "stale-artifact",
        "an artifact with an old id is replaced by the right one",
        "loops come back to the same file; what lies there is not an answer",
        single.stale_artifact,
    ),
    ConformScenario(
        "partial-signal",
        "an empty and a half-written signal.json are outlived",
        "not every coordinator renames; a reader can always come too early",
        single.partial_signal,
    ),
    ConformScenario(
        "coordinator-restart",
        "a signal written again under its id gets no second, different answer",
        "after a crash open dispatches are written again; an answer must not change meanwhile",
        single.coordinator_restart,
    ),
    ConformScenario(
        "timeout",
        "after a timeout the next dispatch is answered, and stays answered",
        "a late answer must not push out the one that counts",
        single.timeout,
    ),
    ConformScenario(
        "prompt-missing",
        "a prompt that cannot be read is reported or left alone, never answered",
        "an answer to nothing would be taken for real; a dead watcher stops the run",
        single.prompt_missing,
    ),
    ConformScenario(
        "briefing-missing",
        "a batch without its briefing is answered all the same",
        "the briefing is help, not a condition",
        batches.briefing_missing,
    ),
    ConformScenario(
        "budget-spent",
        "a parent of batches takes nothing more once remaining is 0",
        "money is spent by whoever goes on",
        batches.budget_spent,
    ),
)


def markdown() -> str:
    """The table as the how-to shows it."""
    rows = [f"| `{each.name}` | {each.checks} | {each.why} |" for each in SCENARIOS]
    return "\n".join(["| scenario | what must be seen | why |", "|---|---|---|", *rows])
