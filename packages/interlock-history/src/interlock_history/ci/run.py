"""Read, remember, analyse and compare the results of one CI run.

A reporter must not lose results because one part fails: without a memory the results are still
shown, and without an analysis their words are.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from interlock.api.project import Project
from interlock.system.errors import InterlockError, SourceError, StoreError
from interlock.system.text import format_line
from interlock_history.ci.digest import Digest, ExpectedJobs, build_digest
from interlock_history.ingest import ingest_results, mask_failure, read_results
from interlock_history.last_green import resolve_last_green
from interlock_history.memory import History
from interlock_history.quarantine import Quarantine, read_quarantine
from interlock_history.segment import Segment, make_segment
from interlock_history.settings import HistorySettings
from interlock_history.store import FolderStore, HistoryStore, merge_stores
from interlock_rca.analyze import AnalysisRequest, analyze
from interlock_rca.ci_run import CiRun
from interlock_rca.config import RcaConfig
from interlock_rca.records import Findings
from interlock_rca.report.outline import build_outline
from interlock_rca.sources.read import SourceLaunch

Say = Callable[[str], None]


class ReportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The run to report on, and where to find its results."""

    run: CiRun
    results: tuple[str, ...]
    legs: tuple[Path, ...] = ()
    """Folders in which other jobs of the run stored their results."""
    evidence: tuple[str, ...] = ()
    """Reports of those jobs, read for causes only, so that nothing is counted twice."""
    repos: tuple[str, ...] = (".",)
    last_green: tuple[str, ...] = ("auto",)
    expected: ExpectedJobs = ExpectedJobs()


class Reporter:
    """Reads one run. A step that fails adds to `problems`, and the others continue without it."""

    def __init__(self, settings: HistorySettings, note: Say, problems: list[str]) -> None:
        self._settings = settings
        self._note = note
        self._problems = problems

    @contextmanager
    def open_memory(self, open_store: Callable[[], HistoryStore]) -> Iterator[HistoryStore]:
        """Yield the store if it can be read, else an empty temporary one."""
        try:
            store = open_store()
            store.list_segments()
        except StoreError as error:
            self._problems.append(f"nothing is remembered, and nothing was: {error}")
        else:
            yield store
            return
        with tempfile.TemporaryDirectory() as folder:
            yield FolderStore(Path(folder))

    def judge_run(
        self,
        request: ReportRequest,
        project: Project,
        store: HistoryStore,
    ) -> tuple[Digest | None, Findings | None]:
        """Return the digest of the run and the causes of its failures, or None for each without
        results."""
        segments = self._take_results(request, store)
        if not segments:
            return None, None
        findings = self._find_causes(request, project, store)
        digest = build_digest(
            segments,
            History(store, self._settings),
            self._settings,
            outline=build_outline(findings) if findings else None,
            excuse=self._read_excuses(),
            expected=request.expected,
        )
        if digest.failures and not request.results and not request.evidence:
            self._problems.append("no causes: name the reports of the other jobs with --evidence")
        return digest, findings

    def _take_results(self, request: ReportRequest, store: HistoryStore) -> list[Segment]:
        """Return the segments of this run, from its own results and those of other jobs. The newest
        attempt of a job counts."""
        found: dict[str, Segment] = {}
        own: Segment | None = None
        try:
            if request.results:
                own = self._take_own_results(request, store)
                found[own.id] = own
            for leg in request.legs:
                other = FolderStore(leg, is_new_ok=False)
                for reason in merge_stores(other, store, _judge_leg(request.run)).refused:
                    self._problems.append(f"left out of {leg}: {reason}")
        except SourceError as error:
            self._problems.append(str(error))
        for segment_id in store.list_segments() if request.run.run or request.legs else ():
            packed = store.read(segment_id)
            names = store.read_names(packed.table) if packed else None
            if packed and names is not None and is_same_run(packed.run, request.run):
                found.setdefault(segment_id, packed.unpack(names))
        mine = own.id if own else ""
        newest = {
            (segment.run.label, segment.run.shard): segment
            for segment in sorted(
                found.values(), key=lambda each: (each.run.attempt, each.id == mine)
            )
        }
        return list(newest.values())

    def _take_own_results(self, request: ReportRequest, store: HistoryStore) -> Segment:
        try:
            return ingest_results(request.results, request.run, store, time.time()).segment
        except StoreError as error:
            self._problems.append(f"the results are not remembered: {error}")
            read = read_results(request.results)
            return make_segment(request.run, read.statuses, read.failures, read.notes)

    def _read_excuses(self) -> Callable[[str, str], str]:
        """Return a function that says why a test is quarantined in a job, or ""."""
        today = datetime.fromtimestamp(time.time(), UTC).date()
        try:
            quarantine = read_quarantine(Path(self._settings.quarantine))
        except SourceError as error:
            self._problems.append(f"nothing counts as quarantined: {error}")
            quarantine = Quarantine()

        def excuse(test: str, label: str) -> str:
            entry = quarantine.find(test, today, label)
            return f"{entry.reason}, {entry.owner}, until {entry.expires}" if entry else ""

        return excuse

    def _find_causes(
        self, request: ReportRequest, project: Project, store: HistoryStore
    ) -> Findings | None:
        """Return the built-in analyst's findings; None if nothing failed, the analysis failed, or
        there are no reports to read."""
        run = request.run
        if not (reports := [*request.results, *request.evidence]):
            return None

        def find_ranges(config: RcaConfig, intakes: Sequence[SourceLaunch]) -> RcaConfig:
            return resolve_last_green(
                config, intakes, store, self._settings, os.environ, self._note, run
            )

        wanted = AnalysisRequest(
            sources=reports,
            name=f"ci {run.label or run.project or run.provider}",
            needs_failures=True,
            mask=mask_failure,
            changes={"repo": list(request.repos), "last_green": list(request.last_green)},
            find_ranges=find_ranges,
            note=self._note,
        )
        try:
            return analyze(project, wanted).findings
        except InterlockError as error:
            self._problems.append(f"no causes were looked for: {format_line(str(error), 300)}")
            return None


def is_same_run(one: CiRun, other: CiRun) -> bool:
    """Return True if two jobs belong to one run. CI systems reuse run numbers, so the commit must
    match too."""
    fields = ("provider", "project", "run")
    is_same_source = one.commit == other.commit or not (one.commit and other.commit)
    return is_same_source and all(getattr(one, name) == getattr(other, name) for name in fields)


def _judge_leg(run: CiRun) -> Callable[[CiRun], str]:
    """Return a function that says why a run is refused, or "". Other jobs may hand in anything:
    only results of this very run and source are taken."""

    def judge(other: CiRun) -> str:
        if not is_same_run(other, run):
            return f"results of run {other.run} of {other.project or 'no project'}"
        if (other.scope, other.pr) != (run.scope, run.pr):
            return f"results that claim to be of another branch ({other.scope})"
        return ""

    return judge
