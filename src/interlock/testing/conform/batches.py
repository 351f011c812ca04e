"""Scenarios of batches: a manifest, a briefing and a budget beside the signals.

Knows what is asked of every watcher (answer the signals) and what only of a parent that works by
the manifest. Refuses to know processes, polling and the table.
"""

from collections.abc import Sequence

from interlock.signals.batch import BatchManifest
from interlock.testing.conform.stage import Stage
from interlock.testing.conform.verdict import FailedError, SkippedError
from interlock.testing.conform.workspace import StagedDispatch, peek

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
    if any(peek(each.artifact_path) != each.before for each in dispatches):
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
