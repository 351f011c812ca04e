"""The scenarios: name, what is checked, why it matters, and the play of coordinator and watcher.

Single signals first, then batches, where less is asked of a watcher that works by single signals
than of a parent that works by the manifest. The how-to shows `SCENARIOS` as a table.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from interlock.signals.batch import BatchManifest
from interlock.signals.signal_file import (
    Artifact,
    encode_artifact,
    encode_signal,
    move_signal,
    read_artifact,
)
from interlock.testing.conform.stage import FailedError, SkippedError, Stage
from interlock.testing.conform.workspace import StagedDispatch, peek

_TIMED_OUT = "timeout waiting for artifact"


def one_step(stage: Stage) -> str:
    """The signal waits before the watcher starts."""
    dispatch = stage.ask(1)
    stage.start()
    stage.answered(dispatch)
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id}"


def several_steps(stage: Stage) -> str:
    stage.start()
    steps = ("F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE")
    ids = [_step(stage, 1, step).dispatch_id for step in steps]
    return f"answered {', '.join(map(str, ids))}"


def two_cases(stage: Stage) -> str:
    stage.start()
    dispatches = [stage.workspace.prepare(case) for case in (1, 2)]
    stage.publish(dispatches)
    for dispatch in dispatches:
        stage.answered(dispatch)
    for dispatch in dispatches:
        stage.take(dispatch)
    return f"answered {dispatches[0].dispatch_id} and {dispatches[1].dispatch_id}"


def stale_artifact(stage: Stage) -> str:
    """A loop comes back to a step: the answer of the last time still lies there."""
    stage.start()
    fresh = stage.workspace.prepare(1, "F3_INVESTIGATE")
    stale = encode_artifact(Artifact(fresh.dispatch_id - 1, {"ok": True, "echo": "stale"}))
    fresh.artifact_path.write_bytes(stale)
    dispatch = stage.workspace.prepare(1, "F3_INVESTIGATE")
    stage.publish([dispatch])
    stage.answered(dispatch)
    stage.take(dispatch)
    return f"replaced by {dispatch.dispatch_id}"


def partial_signal(stage: Stage) -> str:
    """Once at work, the watcher meets an empty file, then half a signal, then the whole."""
    stage.start()
    _step(stage, 1, "F0_RECALL")
    dispatch = stage.workspace.prepare(1, "F1_TRIAGE")
    whole = encode_signal(dispatch.signal)
    for part in (b"", whole[: len(whole) // 2]):
        stage.write_raw(dispatch, part)
        stage.seen(dispatch)
        stage.hold()
    stage.publish([dispatch])
    stage.answered(dispatch)
    stage.take(dispatch)
    return f"survived, then answered {dispatch.dispatch_id}"


def coordinator_restart(stage: Stage) -> str:
    """The signal is written again under its id: while the watcher works, and after its answer."""
    stage.start()
    dispatch = stage.ask(1)
    stage.seen(dispatch)
    stage.write(dispatch, dispatch.signal)
    first = stage.answered(dispatch)
    stage.calm_down()
    stage.write(dispatch, dispatch.signal)
    stage.hold(stage.settle, lambda: _same_answer(dispatch, first))
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id} once"


def timeout(stage: Stage) -> str:
    """The coordinator gives up while the watcher works, and asks anew."""
    stage.start()
    late = stage.ask(1)
    stage.seen(late)
    stage.write(late, move_signal(late.signal, "error", _TIMED_OUT))
    stage.hold()
    dispatch = stage.ask(1)
    right = stage.answered(dispatch, patient=True)
    stage.hold(stage.settle, lambda: _same_answer(dispatch, right))
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id} after {late.dispatch_id} was given up"


def prompt_missing(stage: Stage) -> str:
    """Nothing to read: report it or keep silent, but do not answer, and live on."""
    stage.start()
    dispatch = stage.ask(1, prompt=False)
    stage.seen(dispatch)
    reported = stage.until(lambda: _reported(stage, dispatch), stage.settle)
    if not reported:
        stage.note("a missing prompt was not reported: the coordinator waits for its timeout")
        stage.write(dispatch, move_signal(dispatch.signal, "error", _TIMED_OUT))
    _step(stage, 1, "F0_RECALL")
    return "reported it, then went on" if reported else "stayed silent, then went on"


def _step(stage: Stage, case: int, step: str) -> StagedDispatch:
    dispatch = stage.ask(case, step)
    stage.answered(dispatch)
    stage.take(dispatch)
    return dispatch


def _reported(stage: Stage, dispatch: StagedDispatch) -> bool:
    if peek(dispatch.artifact_path) != dispatch.before:
        expected = "no artifact for a prompt that cannot be read"
        raise FailedError(expected, "an artifact was written")
    return dispatch.dispatch_id in stage.guard.errors


def _same_answer(dispatch: StagedDispatch, first: Artifact) -> None:
    """A file that is just being rewritten may look odd for a moment; another answer may not."""
    found = read_artifact(peek(dispatch.artifact_path) or b"")
    if not isinstance(found, Artifact) or found == first:
        return
    expected = f"the answer to {dispatch.dispatch_id} stays as it is"
    other = found.dispatch_id != first.dispatch_id
    seen = f"one for {found.dispatch_id} replaced it" if other else "another one replaced it"
    raise FailedError(expected, seen)


_PARENT_ONLY = "it works by single signals; a budget binds only parents of batches"


def batch(stage: Stage) -> str:
    stage.start()
    dispatches = stage.batch((1, 2, 3, 4), stage.workspace.brief(4))
    _answer_all(stage, dispatches)
    settled = stage.until(lambda: _all_done(stage.guard.noted), stage.settle)
    for sentence in _courtesies(stage.guard.noted, settled=settled):
        stage.note(sentence)
    return f"answered all {len(dispatches)}"


def briefing_missing(stage: Stage) -> str:
    stage.start()
    absent = stage.workspace.relative(stage.workspace.suite / "briefing.md")
    dispatches = stage.batch((1, 2), absent)
    _answer_all(stage, dispatches)
    return f"answered all {len(dispatches)}"


def budget_spent(stage: Stage) -> str:
    """The first batch is within the budget and shows who works by the manifest; the second not."""
    stage.workspace.budget(1000, 500)
    stage.start()
    briefing_path = stage.workspace.brief(2)
    first = stage.batch((1, 2), briefing_path)
    _answer_all(stage, first)
    stage.until(lambda: _all_done(stage.guard.noted), stage.settle)
    parent = stage.guard.noted
    stage.workspace.budget(1000, 1000)
    stage.close_batch(first)
    stage.may_end = True
    taken = _second_batch(stage, briefing_path)
    if taken and parent is None and stage.guard.noted is None:
        raise SkippedError(_PARENT_ONLY)
    if taken:
        raise FailedError("nothing is taken once remaining is 0", taken)
    return "took nothing more"


def _second_batch(stage: Stage, briefing_path: str) -> str:
    """What of it was taken. Its manifest comes a moment before its signals wait: else a parent that
    just looked for a manifest in vain would rightly take them for single ones."""
    dispatches = [stage.workspace.prepare(case) for case in (1, 2)]
    stage.publish([], stage.manifest(2, dispatches, briefing_path))
    stage.hold(stage.settle)
    stage.publish(dispatches)
    stage.until(lambda: _taken(stage, dispatches), stage.settle)
    return _taken(stage, dispatches)


def _answer_all(stage: Stage, dispatches: Sequence[StagedDispatch]) -> None:
    for dispatch in dispatches:
        stage.answered(dispatch)


def _taken(stage: Stage, dispatches: Sequence[StagedDispatch]) -> str:
    if any(peek(dispatch.artifact_path) != dispatch.before for dispatch in dispatches):
        return "a signal was answered"
    noted = stage.guard.noted.signals if stage.guard.noted else ()
    return next((f"{one.case_id} was {one.status}" for one in noted if one.status != "pending"), "")


def _all_done(manifest: BatchManifest | None) -> bool:
    return manifest is not None and all(one.status == "done" for one in manifest.signals)


def _courtesies(noted: BatchManifest | None, *, settled: bool) -> list[str]:
    """What is not required of a watcher, but good to have."""
    if noted is None:
        return ["the manifest was not touched: the signals were answered as single ones"]
    missing = []
    if noted.status == "pending":
        missing.append("the batch was not set to in_progress")
    if not settled:
        missing.append("not every entry of the manifest was set to done")
    return missing


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
        one_step,
    ),
    ConformScenario(
        "several-steps",
        "each step of a case is answered under its own, new dispatch_id",
        "an id that is remembered or counted instead of read makes the answer stale",
        several_steps,
    ),
    ConformScenario(
        "two-cases",
        "two signals waiting at once are both answered, each with its own",
        "a run has many cases open; none may starve or get another's answer",
        two_cases,
    ),
    ConformScenario(
        "batch",
        "all signals of a manifest are answered; the manifest stays true",
        "an entry that is done without an artifact misleads whoever reads the manifest",
        batch,
    ),
    ConformScenario(
        "stale-artifact",
        "an artifact with an old id is replaced by the right one",
        "loops come back to the same file; what lies there is not an answer",
        stale_artifact,
    ),
    ConformScenario(
        "partial-signal",
        "an empty and a half-written signal.json do no harm",
        "not every coordinator renames; a reader can always come too early",
        partial_signal,
    ),
    ConformScenario(
        "coordinator-restart",
        "a signal written again under its id gets no second, different answer",
        "after a crash open dispatches are written again; an answer must not change meanwhile",
        coordinator_restart,
    ),
    ConformScenario(
        "timeout",
        "after a timeout the next dispatch is answered, and stays answered",
        "a late answer must not push out the one that counts",
        timeout,
    ),
    ConformScenario(
        "prompt-missing",
        "a prompt that cannot be read is reported or left alone, never answered",
        "an answer to nothing would be taken for real; a dead watcher stops the run",
        prompt_missing,
    ),
    ConformScenario(
        "briefing-missing",
        "a batch without its briefing is answered all the same",
        "the briefing is help, not a condition",
        briefing_missing,
    ),
    ConformScenario(
        "budget-spent",
        "a parent of batches takes nothing more once remaining is 0",
        "money is spent by whoever goes on",
        budget_spent,
    ),
)
