"""Run an analysis: read its sources, find or begin the suite, work on it, and write its report."""

import asyncio
import gc
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.circuits import Circuit
from interlock.api.project import Project
from interlock.api.work import RunResult, load_circuit, work_on_run
from interlock.carriers.registry import workspace_owner
from interlock.engine.circuit import HUMAN
from interlock.journal.address import beside
from interlock.journal.connection import Connection
from interlock.journal.runs import find_run, set_options
from interlock.runtime.agent_pool import AgentPool
from interlock.runtime.application import RunSetup
from interlock.runtime.session import RunSession
from interlock.runtime.settings import RunConfig
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError, StateError, StoreError, UsageError
from interlock.system.files import remove_staged, write_file
from interlock.system.time import format_timestamp, parse_timestamp
from interlock_rca.application import BASIC, BuiltinAnalystRole
from interlock_rca.config import AUTO, RcaConfig, change_config
from interlock_rca.findings import read_findings
from interlock_rca.hooks import RcaHooks
from interlock_rca.intake import KnownFailures, count_cases, hash_failure, make_arrivals
from interlock_rca.knowledge.causes import sweep_dormant
from interlock_rca.knowledge.intake import NewSuite, begin_suite, extend_suite
from interlock_rca.knowledge.suites import Suite, find_suite, iterate_case_views
from interlock_rca.records import Failure, Findings, Launch
from interlock_rca.report.document import render_documents
from interlock_rca.report.page import PARTS_FOLDER
from interlock_rca.reproduce.prove import prove_suite
from interlock_rca.sources.read import SourceLaunch, read_sources
from interlock_rca.sources.reportportal.client import parse_launch_word
from interlock_rca.steps import CALIBRATE_FOLDER, INVESTIGATIONS_FOLDER

CIRCUIT = "rca"


class AnalysisRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The sources to analyse, the terms of a suite, and the functions that follow its progress."""

    sources: Sequence[str]
    name: str = ""
    """The suite's name; by default that of the first source."""
    is_new: bool = False
    """Begin another suite even if one of that name is open."""
    needs_failures: bool = False
    """Do nothing without failures, even if a suite of that name is open."""
    job_exit: int | None = None
    rp_key: Path | None = None
    mask: Callable[[Failure], Failure] | None = None
    """Remove secrets from a failure before it is stored."""
    thresholds: Mapping[str, Any] = {}
    prompt_dir: Path | None = None
    files: Mapping[str, str | int] = {}
    changes: Mapping[str, Any] = {}
    """Arguments of `change_config`."""
    change_options: Callable[[RunConfig, Suite | None], RunConfig] = lambda options, _suite: options
    """Change the options of a suite; None is passed for a new one."""
    store: str | None = None
    """The memory of results that `auto` asks."""
    find_ranges: Callable[[RcaConfig, Sequence[SourceLaunch]], RcaConfig] | None = None
    """Replaces the port `interlock.ranges`."""
    wait_for_humans: bool = False
    wait_for_limits: bool = False
    note: Callable[[str], None] = lambda _text: None
    named: Callable[[str], object] = lambda _name: None
    """Called with the suite's name before anything is written."""
    begun: Callable[[Suite, int, bool], None] = lambda _suite, _count, _is_new: None
    """Called when the failures are stored, with the number of new ones."""
    started: Callable[[RunSession], None] = lambda _session: None
    """Called each time work on the run starts."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an analysis."""

    name: str
    launches: tuple[Launch, ...]
    suite: Suite | None = None
    """None if nothing failed."""
    result: RunResult | None = None
    findings: Findings | None = None


def analyze(project: Project, request: AnalysisRequest) -> Analysis:
    """Read the sources, and work on their suite until it ends or must wait."""
    intakes = read_intakes(request)
    name = request.name or name_suite(request.sources, intakes)
    request.named(name)
    analysis = Analysis(name=name, launches=tuple(intake.launch for intake in intakes))
    if request.needs_failures and not any(intake.failures for intake in intakes):
        return analysis
    with project.write() as connection:
        begun = begin_analysis(project, connection, request, name, intakes)
        if begun is None:
            return analysis
        del intakes  # they are stored now, and large while a very red night is worked on
        suite, pool = begun
        result = work_on_suite(
            project,
            connection,
            suite,
            pool,
            wait_for_humans=request.wait_for_humans,
            wait_for_limits=request.wait_for_limits,
            started=request.started,
        )
        findings = collect_findings(connection, suite)
    return msgspec.structs.replace(analysis, suite=suite, result=result, findings=findings)


def read_intakes(request: AnalysisRequest) -> list[SourceLaunch]:
    """Return the launches of the sources; note everything that could not be read."""
    intakes = read_sources(
        request.sources,
        name=request.name,
        job_exit=request.job_exit,
        environ=os.environ,
        key_file=request.rp_key,
    )
    for intake in intakes:
        for text in intake.notes:
            request.note(f"note: {text}")
    if request.mask is None:
        return intakes
    return [
        msgspec.structs.replace(intake, failures=[*map(request.mask, intake.failures)])
        for intake in intakes
    ]


def begin_analysis(
    project: Project,
    connection: Connection,
    request: AnalysisRequest,
    name: str,
    intakes: Sequence[SourceLaunch],
) -> tuple[Suite, AgentPool] | None:
    """Store what is new in the intakes; return the suite and its agents, or None if nothing failed
    and no suite of that name is open."""
    found = None if request.is_new else find_matching_suite(connection, name, intakes)
    if found is None and not any(intake.failures for intake in intakes):
        return None
    circuit, limits = project.prepare_circuit(CIRCUIT, dict(request.thresholds), request.prompt_dir)
    before = find_config(project, connection, found, limits, request.files)
    config = change_config(read_config(before), **request.changes)
    if request.find_ranges:
        config = request.find_ranges(config, intakes)
    else:
        config = compare_with_history(config, intakes, request.store, request.note)
    options = assign_reviewer(request.change_options(before, found), config)
    pool = project.build_pool(circuit.source.circuit, options)
    suite, count = add_launches(connection, found, name, circuit, intakes, options)
    request.begun(suite, count, found is None)
    return suite, pool


def find_config(
    project: Project,
    connection: Connection,
    suite: Suite | None,
    changes: Mapping[str, Any],
    files: Mapping[str, str | int],
) -> RunConfig:
    """Return the options that a suite began with; for a new one, the project's settings and our
    defaults."""
    if suite is not None:
        run = find_run(connection, suite.run_id)
        own = load_circuit(run).thresholds
        if any(own.get(name) != value for name, value in changes.items()):
            project.display.note(
                "note: a suite keeps the thresholds it began with; --new begins another"
            )
        return msgspec.convert(run.options, RunConfig)
    usual = project.new_config(CIRCUIT, dict(changes))
    by_hand = files.get("dispatch") == "manual"
    config = msgspec.structs.replace(
        read_config(usual), recall_first=True, review="dispatch" if by_hand else "human"
    )
    return msgspec.structs.replace(
        usual,
        files={"root": INVESTIGATIONS_FOLDER if by_hand else CALIBRATE_FOLDER},
        application_config=msgspec.to_builtins(config),
    )


def compare_with_history(
    config: RcaConfig,
    intakes: Sequence[SourceLaunch],
    store: str | None,
    note: Callable[[str], None],
) -> RcaConfig:
    """Return the configuration with a range per failing test, if `auto` asks for one."""
    if AUTO not in config.last_green.values():
        return config
    for entry in metadata.entry_points(group=RANGES):
        found: RcaConfig = entry.load()(config, intakes, store, note)
        return found
    raise SourceError(
        "--last-green auto needs the memory of results: pip install interlock-history"
    )


def assign_reviewer(options: RunConfig, config: RcaConfig) -> RunConfig:
    """Give every role an agent; the built-in analyst is the default. A review dispatched like the
    other steps returns to humans when they, or a rule, are chosen to give it."""
    agents, dispatch = dict(options.agents), str(options.files.get("dispatch", ""))
    if not dispatch and "" not in agents:
        agents[""] = BASIC
    if config.review == "dispatch":
        agents.setdefault(HUMAN, agents.get("") or dispatch)
    elif options.application_config.get("review") == "dispatch":
        agents.pop(HUMAN, None)
    return msgspec.structs.replace(
        options, agents=agents, application_config=msgspec.to_builtins(config)
    )


RANGES = "interlock.ranges"
"""The port for the commits between which each failing test broke; history implements it."""
OUT = Path("interlock-report")
_DRAFTS = "jira-drafts"
_MARK = "report.json"
_SHOWN = ("report.html", "report.md", _MARK, "regression-report.md")
"""The order in which documents are listed."""
_PATTERN = "*?["


def name_suite(sources: Sequence[str], intakes: Sequence[SourceLaunch]) -> str:
    """Return the default name of a suite: that of its first source, or of a pattern's folder. A
    launch on a server has one name, in whatever form it was given."""
    word = sources[0]
    if parse_launch_word(word):
        return f"rp:{intakes[0].launch.launch_id}"
    path = Path(word)
    while path.name and any(sign in path.name for sign in _PATTERN) and not path.exists():
        path = path.parent
    path = path.resolve()
    return (path.name if path.is_dir() else path.stem) or word


def find_matching_suite(
    connection: Connection, name: str, intakes: Sequence[SourceLaunch]
) -> Suite | None:
    """Return the suite of that name if it is open or contains one of these failures."""
    suite = find_suite(connection, name=name)
    if suite is None or suite.status == "open":
        return suite
    known = {view.input.get("content") for view in iterate_case_views(connection, suite.suite_id)}
    failures = (failure for intake in intakes for failure in intake.failures)
    return suite if any(hash_failure(failure) in known for failure in failures) else None


def get_suite(connection: Connection, suite_id: int | None) -> Suite:
    """Return that suite, or the newest. Raise StoreError if there is none."""
    suite = find_suite(connection, suite_id=suite_id)
    if suite is None:
        what = "there are no suites yet" if suite_id is None else f"there is no suite {suite_id}"
        raise StoreError(f"{what}; 'interlock analyze SOURCE' makes one")
    return suite


def add_launches(
    connection: Connection,
    suite: Suite | None,
    name: str,
    circuit: Circuit,
    intakes: Sequence[SourceLaunch],
    options: RunConfig,
) -> tuple[Suite, int]:
    """Store what is new in the intakes; return the suite and the number of new cases."""
    at = time.time()
    sweep_dormant(connection, _find_launch_time(intakes, at))
    if suite is None:
        new = make_arrivals(intakes)
        text = circuit.bundle.encode()
        mark = hashlib.sha256(f"{name} {at}".encode()).hexdigest()
        opened = begin_suite(
            connection,
            NewSuite(
                circuit=circuit.source.circuit,
                text=text,
                name=name,
                source=name,
                fingerprint=mark,
                options=msgspec.to_builtins(options),
            ),
            new,
            at,
        )
        return get_suite(connection, opened.suite_id), count_cases(new)
    known = [
        KnownFailures(str(view.input["content"]), view.features, str(view.input["family"]))
        for view in iterate_case_views(connection, suite.suite_id)
        if "content" in view.input
    ]
    new = make_arrivals(intakes, known)
    own = load_circuit(find_run(connection, suite.run_id))
    numbers = extend_suite(connection, own, suite.suite_id, new, at)
    set_options(connection, suite.run_id, msgspec.to_builtins(options))
    return get_suite(connection, suite.suite_id), len(numbers)


def _find_launch_time(intakes: Sequence[SourceLaunch], now: float) -> float:
    """Return the earliest launch time: symptoms unseen for long before it are dormant."""
    start_times = [parse_timestamp(intake.launch.started_at) for intake in intakes]
    return min((at for at in start_times if at is not None), default=now)


_AT_ONCE = 64


def _take_many_at_once(pool: AgentPool, options: RunConfig) -> AgentPool:
    """Let the built-in analyst answer many cases in one transaction, unless the user set a
    limit."""
    agents = [carrier for role, carrier in pool.carriers.items() if role != HUMAN]
    if options.parallel or not all(isinstance(each, BuiltinAnalystRole) for each in agents):
        return pool
    return msgspec.structs.replace(pool, parallel=_AT_ONCE)


def work_on_suite(
    project: Project,
    connection: Connection,
    suite: Suite,
    pool: AgentPool,
    *,
    wait_for_humans: bool,
    wait_for_limits: bool,
    started: Callable[[RunSession], None] = lambda _session: None,
) -> RunResult:
    """Work on the suite's run until it ends or must wait. Failing tests that can be run are run
    when all findings are made, before any review."""
    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    config = read_config(options)
    pool = _take_many_at_once(pool, options)
    if config.reproduce.command:
        result = work_on_run(
            connection,
            run,
            pool,
            display=project.display,
            wait_for_limits=wait_for_limits,
            change_setup=_hold_unproven,
            started=started,
        )
        if result.stopped_by is not None or result.status in ("budget", "rate-limited"):
            return result
        _prove_suite(project, connection, suite, config)
        pool = _take_many_at_once(project.build_pool(load_circuit(run), options), options)
    result = work_on_run(
        connection,
        find_run(connection, suite.run_id),
        pool,
        display=project.display,
        wait_for_humans=wait_for_humans,
        wait_for_limits=wait_for_limits,
        started=started,
    )
    for note in result.notes:
        project.display.note(f"note: {note}")
    gc.collect()  # the finished run holds reference cycles that are large beside a report
    return result


def _hold_unproven(setup: RunSetup) -> RunSetup:
    if isinstance(setup.hooks, RcaHooks):
        setup.hooks.hold_unproven()
    return setup


def _prove_suite(project: Project, connection: Connection, suite: Suite, config: RcaConfig) -> None:
    """Run the failing tests, after ending processes that an earlier one left behind."""
    owner = workspace_owner(project.db)
    asyncio.run(owner.cleanup_orphans(SystemClock(), grace=5.0))
    prove_suite(
        connection,
        suite,
        collect_findings(connection, suite),
        config,
        folder=beside(project.db, "reproduce").resolve(),
        make_tag=lambda nonce: owner.make_tag(suite.run_id, 0, nonce),
        note=project.display.note,
    )


def read_status(connection: Connection, suite: Suite) -> str:
    """Return the status of the suite's run."""
    return find_run(connection, suite.run_id).status


def collect_findings(connection: Connection, suite: Suite) -> Findings:
    """Return the current findings of a suite."""
    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    return read_findings(
        connection,
        suite,
        load_circuit(run),
        read_config(options),
        at=time.time(),
        agent=_format_agents(options),
    )


def build_empty_findings(name: str, launches: Sequence[Launch]) -> Findings:
    """Return findings without failures, for launches that are no suite."""
    made_at = format_timestamp(time.time())
    return Findings(suite_id=0, name=name, made_at=made_at, launches=tuple(launches))


def read_config(options: RunConfig) -> RcaConfig:
    return msgspec.convert(options.application_config, RcaConfig)


def _format_agents(options: RunConfig) -> str:
    named = [f"{role}={spec}" if role else spec for role, spec in options.agents.items()]
    dispatch = str(options.files.get("dispatch", ""))
    return ", ".join([*named, *([dispatch] if dispatch else [])])


def choose_report_folder(name: str, out: Path | None) -> Path:
    """Return the folder of a suite's report. Raise StateError if other files are in it."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:80] or "suite"
    folder = out or OUT / slug
    check_report_folder(folder)
    return folder


def write_report(findings: Findings, folder: Path) -> list[Path]:
    """Write all documents, and remove obsolete drafts. If this is interrupted, the folder stays
    empty or recognizable as a report."""
    names = []
    _remove_drafts(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, raw in render_documents(findings):
            (folder / name).parent.mkdir(exist_ok=True)
            write_file(folder / name, raw, sync=False, mode=0o666)
            names.append(name)
    except OSError as error:
        raise SourceError(f"the report cannot be written to {folder}: {error.strerror}") from None
    documents = sorted((name for name in names if "/" not in name), key=_SHOWN.index)
    drafts = any(name.startswith(f"{_DRAFTS}/") for name in names)
    return [folder / name for name in documents] + ([folder / _DRAFTS] if drafts else [])


def check_report_folder(folder: Path) -> None:
    """Raise an error unless the folder is empty, new, or a report."""
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--out {folder} is a file; name a folder")
        remove_staged(folder)
        if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).is_file():
            raise StateError(f"{folder} holds other things; name an empty folder with --out")
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be used: {error.strerror}") from None


def _remove_drafts(folder: Path) -> None:
    check_report_folder(folder)
    for name in (_DRAFTS, PARTS_FOLDER):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            shutil.rmtree(folder / name)
