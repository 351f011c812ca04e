"""The scenarios: name, what is checked, why it matters, and the play of coordinator and watcher.

Single signals come first, then batches, where a watcher of single signals must do less than a
parent that works by the manifest. The how-to shows `SCENARIOS` as a table.
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


def play_one_step(stage: Stage) -> str:
    """Let the signal wait before the watcher starts."""
    dispatch = stage.ask(1)
    stage.start()
    stage.await_answer(dispatch)
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id}"


def play_several_steps(stage: Stage) -> str:
    stage.start()
    steps = ("F0_RECALL", "F1_TRIAGE", "F2_RESOLVE", "F3_INVESTIGATE")
    ids = [_play_step(stage, 1, step).dispatch_id for step in steps]
    return f"answered {', '.join(map(str, ids))}"


def play_two_cases(stage: Stage) -> str:
    stage.start()
    dispatches = [stage.workspace.prepare(case) for case in (1, 2)]
    stage.publish(dispatches)
    for dispatch in dispatches:
        stage.await_answer(dispatch)
    for dispatch in dispatches:
        stage.take(dispatch)
    return f"answered {dispatches[0].dispatch_id} and {dispatches[1].dispatch_id}"


def play_stale_artifact(stage: Stage) -> str:
    """Come back to a step where the earlier answer still lies."""
    stage.start()
    fresh = stage.workspace.prepare(1, "F3_INVESTIGATE")
    stale = encode_artifact(Artifact(fresh.dispatch_id - 1, {"ok": True, "echo": "stale"}))
    fresh.artifact_path.write_bytes(stale)
    dispatch = stage.workspace.prepare(1, "F3_INVESTIGATE")
    stage.publish([dispatch])
    stage.await_answer(dispatch)
    stage.take(dispatch)
    return f"replaced by {dispatch.dispatch_id}"


def play_partial_signal(stage: Stage) -> str:
    """Show a working watcher an empty file, then half a signal, then the whole one."""
    stage.start()
    _play_step(stage, 1, "F0_RECALL")
    dispatch = stage.workspace.prepare(1, "F1_TRIAGE")
    whole = encode_signal(dispatch.signal)
    for part in (b"", whole[: len(whole) // 2]):
        stage.write_raw(dispatch, part)
        stage.await_reader(dispatch)
        stage.hold()
    stage.publish([dispatch])
    stage.await_answer(dispatch)
    stage.take(dispatch)
    return f"survived, then answered {dispatch.dispatch_id}"


def play_coordinator_restart(stage: Stage) -> str:
    """Write the signal again under its id, while the watcher works and after its answer."""
    stage.start()
    dispatch = stage.ask(1)
    stage.await_reader(dispatch)
    stage.write(dispatch, dispatch.signal)
    first = stage.await_answer(dispatch)
    stage.let_settle()
    stage.write(dispatch, dispatch.signal)
    stage.hold(stage.settle, lambda: _check_same_answer(dispatch, first))
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id} once"


def play_timeout(stage: Stage) -> str:
    """Give up while the watcher works, and ask anew."""
    stage.start()
    late = stage.ask(1)
    stage.await_reader(late)
    stage.write(late, move_signal(late.signal, "error", _TIMED_OUT))
    stage.hold()
    dispatch = stage.ask(1)
    right = stage.await_answer(dispatch, patient=True)
    stage.hold(stage.settle, lambda: _check_same_answer(dispatch, right))
    stage.take(dispatch)
    return f"answered {dispatch.dispatch_id} after {late.dispatch_id} was given up"


def play_prompt_missing(stage: Stage) -> str:
    """Ask without a prompt file: the watcher may report it or stay silent, but must not answer or
    die."""
    stage.start()
    dispatch = stage.ask(1, prompt=False)
    stage.await_reader(dispatch)
    reported = stage.wait_until(lambda: _is_reported(stage, dispatch), stage.settle)
    if not reported:
        stage.note("a missing prompt was not reported: the coordinator waits for its timeout")
        stage.write(dispatch, move_signal(dispatch.signal, "error", _TIMED_OUT))
    _play_step(stage, 1, "F0_RECALL")
    return "reported it, then went on" if reported else "stayed silent, then went on"


def _play_step(stage: Stage, case: int, step: str) -> StagedDispatch:
    dispatch = stage.ask(case, step)
    stage.await_answer(dispatch)
    stage.take(dispatch)
    return dispatch


def _is_reported(stage: Stage, dispatch: StagedDispatch) -> bool:
    if peek(dispatch.artifact_path) != dispatch.before:
        expected = "no artifact for a prompt that cannot be read"
        raise FailedError(expected, "an artifact was written")
    return dispatch.dispatch_id in stage.invariants.errors


def _check_same_answer(dispatch: StagedDispatch, first: Artifact) -> None:
    """Check that the answer stays the same; a file that is being rewritten may look odd for a
    moment."""
    found = read_artifact(peek(dispatch.artifact_path) or b"")
    if not isinstance(found, Artifact) or found == first:
        return
    expected = f"the answer to {dispatch.dispatch_id} stays as it is"
    other = found.dispatch_id != first.dispatch_id
    seen = f"one for {found.dispatch_id} replaced it" if other else "another one replaced it"
    raise FailedError(expected, seen)


_PARENT_ONLY = "it works by single signals; a budget binds only parents of batches"


def play_batch(stage: Stage) -> str:
    stage.start()
    dispatches = stage.publish_batch((1, 2, 3, 4), stage.workspace.write_briefing(4))
    _await_answers(stage, dispatches)
    settled = stage.wait_until(
        lambda: _is_all_done(stage.invariants.written_manifest), stage.settle
    )
    for sentence in _list_missing_courtesies(stage.invariants.written_manifest, settled=settled):
        stage.note(sentence)
    return f"answered all {len(dispatches)}"


def play_briefing_missing(stage: Stage) -> str:
    stage.start()
    absent = stage.workspace.make_relative(stage.workspace.suite / "briefing.md")
    dispatches = stage.publish_batch((1, 2), absent)
    _await_answers(stage, dispatches)
    return f"answered all {len(dispatches)}"


def play_budget_spent(stage: Stage) -> str:
    """Play a batch within the budget, which shows who works by the manifest, and one beyond it."""
    stage.workspace.write_budget(1000, 500)
    stage.start()
    briefing_path = stage.workspace.write_briefing(2)
    first = stage.publish_batch((1, 2), briefing_path)
    _await_answers(stage, first)
    stage.wait_until(lambda: _is_all_done(stage.invariants.written_manifest), stage.settle)
    parent = stage.invariants.written_manifest
    stage.workspace.write_budget(1000, 1000)
    stage.close_batch(first)
    stage.may_end = True
    taken = _play_second_batch(stage, briefing_path)
    if taken and parent is None and stage.invariants.written_manifest is None:
        raise SkippedError(_PARENT_ONLY)
    if taken:
        raise FailedError("nothing is taken once remaining is 0", taken)
    return "took nothing more"


def _play_second_batch(stage: Stage, briefing_path: str) -> str:
    """Play a second batch and return what was taken.

    Its manifest comes a moment before its signals: otherwise a parent that just looked for a
    manifest would rightly take them for single ones.
    """
    dispatches = [stage.workspace.prepare(case) for case in (1, 2)]
    stage.publish([], stage.build_manifest(2, dispatches, briefing_path))
    stage.hold(stage.settle)
    stage.publish(dispatches)
    stage.wait_until(lambda: _find_taken(stage, dispatches), stage.settle)
    return _find_taken(stage, dispatches)


def _await_answers(stage: Stage, dispatches: Sequence[StagedDispatch]) -> None:
    for dispatch in dispatches:
        stage.await_answer(dispatch)


def _find_taken(stage: Stage, dispatches: Sequence[StagedDispatch]) -> str:
    if any(peek(dispatch.artifact_path) != dispatch.before for dispatch in dispatches):
        return "a signal was answered"
    noted = stage.invariants.written_manifest.signals if stage.invariants.written_manifest else ()
    return next((f"{one.case_id} was {one.status}" for one in noted if one.status != "pending"), "")


def _is_all_done(manifest: BatchManifest | None) -> bool:
    return manifest is not None and all(one.status == "done" for one in manifest.signals)


def _list_missing_courtesies(noted: BatchManifest | None, *, settled: bool) -> list[str]:
    """Return what is good to have but not required of a watcher."""
    if noted is None:
        return ["the manifest was not touched: the signals were answered as single ones"]
    missing = []
    if noted.status == "pending":
        missing.append("the batch was not set to in_progress")
    if not settled:
        missing.append("not every entry of the manifest was set to done")
    return missing


class ConformScenario(msgspec.Struct, frozen=True):
    """A scenario; its play returns what was seen when all went well."""

    name: str
    checks: str
    why: str
    play: Callable[[Stage], str]


SCENARIOS: Final = (
    ConformScenario(
        "one-step",
        "a waiting signal gets a wrapped artifact with its dispatch_id",
        "everything else builds on it",
        play_one_step,
    ),
    ConformScenario(
        "several-steps",
        "each step of a case is answered under its own, new dispatch_id",
        "an id that is remembered or counted instead of read makes the answer stale",
        play_several_steps,
    ),
    ConformScenario(
        "two-cases",
        "two signals waiting at once are both answered, each with its own",
        "a run has many cases open; none may starve or get another's answer",
        play_two_cases,
    ),
    ConformScenario(
        "batch",
        "all signals of a manifest are answered; the manifest stays true",
        "an entry that is done without an artifact misleads readers of the manifest",
        play_batch,
    ),
    ConformScenario(
        "stale-artifact",
        "an artifact with an old id is replaced by the right one",
        "loops come back to the same file; what lies there is not an answer",
        play_stale_artifact,
    ),
    ConformScenario(
        "partial-signal",
        "an empty and a half-written signal.json do no harm",
        "not every coordinator renames; a reader can always come too early",
        play_partial_signal,
    ),
    ConformScenario(
        "coordinator-restart",
        "a signal written again under its id gets no second, different answer",
        "after a crash open dispatches are written again; an answer must not change meanwhile",
        play_coordinator_restart,
    ),
    ConformScenario(
        "timeout",
        "after a timeout the next dispatch is answered, and stays answered",
        "a late answer must not push out the one that counts",
        play_timeout,
    ),
    ConformScenario(
        "prompt-missing",
        "a prompt that cannot be read is reported or left alone, never answered",
        "an answer to nothing would be taken for real; a dead watcher stops the run",
        play_prompt_missing,
    ),
    ConformScenario(
        "briefing-missing",
        "a batch without its briefing is answered all the same",
        "the briefing is help, not a condition",
        play_briefing_missing,
    ),
    ConformScenario(
        "budget-spent",
        "a parent of batches takes nothing more once remaining is 0",
        "a watcher that goes on spends money",
        play_budget_spent,
    ),
)
