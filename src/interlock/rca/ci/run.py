"""The results of one CI run: read, remembered, analysed and compared, whatever of that works.

A reporter must never lose what it has been given because a part of it fails: without a memory the
results are still shown, without an analysis the words still are.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from interlock.api.project import Project
from interlock.rca import analyze as analysis
from interlock.rca.config import change_config
from interlock.rca.history.identity import CiRun
from interlock.rca.history.ingest import ingest_results, read_results
from interlock.rca.history.segment import Segment, make_segment
from interlock.rca.history.settings import HistorySettings
from interlock.rca.history.store import FolderStore, HistoryStore, merge_stores
from interlock.rca.last_green import resolve_last_green
from interlock.rca.records import Findings
from interlock.system.errors import InterlockError, StoreError
from interlock.system.text import format_line

Say = Callable[[str], None]


@contextmanager
def open_memory(store: HistoryStore, warn: Say) -> Iterator[HistoryStore]:
    """The store, if it can be read; else an empty one for the time being."""
    try:
        store.list_segments()
    except StoreError as error:
        warn(f"nothing is remembered, and nothing was: {error}")
    else:
        yield store
        return
    with tempfile.TemporaryDirectory() as folder:
        yield FolderStore(Path(folder))


def take_results(
    results: Sequence[str],
    legs: Iterable[Path],
    run: CiRun,
    store: HistoryStore,
    now: float,
    warn: Say,
) -> list[Segment]:
    """Every segment of this run: of its own results, and of what other jobs of it remembered. The
    newest attempt of a job counts."""
    taken: list[Segment] = []
    if results:
        try:
            taken.append(ingest_results(results, run, store, now).segment)
        except StoreError as error:
            warn(f"the results are not remembered: {error}")
            read = read_results(results)
            taken.append(make_segment(run, read.statuses, read.failures, read.notes))
    for leg in legs:
        merged = merge_stores(FolderStore(leg, is_new_ok=False), store, _judge_leg(run))
        for reason in merged.refused:
            warn(f"left out of {leg}: {reason}")
    found = {segment.id: segment for segment in taken}
    for segment_id in store.list_segments():
        packed = store.read(segment_id)
        if packed is not None and is_same_run(packed.run, run):
            names = store.read_names(packed.table)
            if names is not None:
                found[segment_id] = packed.unpack(names)
    newest: dict[tuple[str, str], Segment] = {}
    for segment in sorted(found.values(), key=lambda each: each.run.attempt):
        newest[segment.run.label, segment.run.shard] = segment
    return list(newest.values())


def is_same_run(one: CiRun, other: CiRun) -> bool:
    fields = ("provider", "project", "run")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def _judge_leg(run: CiRun) -> Callable[[CiRun], str]:
    """Other jobs hand in what they like: only results of this very run and source are taken."""

    def judge(other: CiRun) -> str:
        if not is_same_run(other, run):
            return f"results of run {other.run} of {other.project or 'no project'}"
        if (other.scope, other.pr) != (run.scope, run.pr):
            return f"results that claim to be of another branch ({other.scope})"
        return ""

    return judge


def find_causes(
    project: Project,
    results: Sequence[str],
    name: str,
    *,
    repos: Sequence[str],
    last_green: Sequence[str],
    store: HistoryStore,
    settings: HistorySettings,
    environ: Mapping[str, str],
    note: Say,
    warn: Say,
) -> Findings | None:
    """What the built-in analyst makes of the failures; None if nothing failed or it could not, or
    if there are no reports to read (other jobs hand on their results without them)."""
    if not results:
        return None
    try:
        intakes = analysis.read_launches(results, name, None, note)
        if not any(intake.failures for intake in intakes):
            return None
        with project.write() as connection:
            found = analysis.find_matching_suite(connection, name, intakes)
            circuit, changes = project.prepare_circuit(analysis.CIRCUIT, {}, None)
            before = analysis.find_config(project, connection, found, changes, {})
            config = change_config(
                analysis.read_config(before), list(repos) or None, None, list(last_green)
            )
            config = resolve_last_green(config, intakes, store, settings, environ, note)
            options = analysis.assign_reviewer(before, config)
            pool = project.build_pool(circuit.source.circuit, options)
            suite, _ = analysis.add_launches(connection, found, name, circuit, intakes, options)
            analysis.work_on_suite(
                project, connection, suite, pool, wait_for_humans=False, wait_for_limits=False
            )
            return analysis.collect_findings(connection, suite)
    except InterlockError as error:
        warn(f"no causes were looked for: {format_line(str(error), 300)}")
        return None
