"""Scenarios of single signals: each a short play of coordinator and watcher.

Knows the stories and what must come of each. Refuses to know processes, polling and the table.
"""

from interlock.signals.signal_file import (
    Artifact,
    encode_artifact,
    encode_signal,
    move_signal,
    read_artifact,
)
from interlock.testing.conform.stage import Stage
from interlock.testing.conform.verdict import FailedError
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
    return "reported, then lived on" if reported else "kept silent, then lived on"


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
