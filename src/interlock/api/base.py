"""What a project is made of: its folder, its settings, its database, and how runs are begun in it.

For applications and doors, which have flags or tables of their own to reckon with. Programs use
`Project`, which is this and the use cases.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Unpack

import msgspec

from interlock.agents.carrier import Carrier
from interlock.agents.registry import build_agent
from interlock.api.circuits import Circuit, refuse_unsound
from interlock.api.work import (
    Display,
    NoDisplay,
    RunResult,
    WorkOptions,
    describe_run,
    load_circuit,
    work_on_run,
)
from interlock.engine.circuit import Circuit as CircuitTable
from interlock.journal.connection import Connection, transaction
from interlock.journal.database import find_writer, has_database, open_reader, open_writer
from interlock.journal.ownership import Ownership, Writer, check_free, leave_to_coordinators
from interlock.journal.runs import (
    FINISHED,
    NewCase,
    find_newest_run,
    find_run,
    find_unfinished_run,
    set_options,
)
from interlock.journal.runs import Run as RunRecord
from interlock.runtime.agent_pool import AgentPool, build_agent_context, build_agent_pool
from interlock.runtime.application import find_application
from interlock.runtime.circuits import Bundle, parse_cases
from interlock.runtime.settings import (
    RunConfig,
    Settings,
    default_config,
    find_database,
    read_settings,
)
from interlock.system.clock import Clock
from interlock.system.errors import StateError, UsageError


class ProjectBase:
    """A folder with an interlock.toml, or without one, and its database."""

    def __init__(
        self,
        path: str | Path = ".",
        *,
        db: str | Path | None = None,
        clock: Clock | None = None,
        display: Display | None = None,
    ) -> None:
        self.path = Path(path)
        self.db = find_database(self.path, db)
        self.clock = clock
        self.display = display or NoDisplay()

    @property
    def settings(self) -> Settings:
        """What interlock.toml and the environment say now."""
        return read_settings(self.path)

    def writer(self) -> Writer | None:
        """The process that works on the database now, if one does."""
        return find_writer(self.db)

    @property
    def has_database(self) -> bool:
        """Whether there is anything to read yet."""
        return has_database(self.db)

    def read(self) -> AbstractContextManager[Connection]:
        """The database, to be read."""
        return open_reader(self.db)

    def write(self) -> AbstractContextManager[Connection]:
        """The database, to be written; made if it is not there. StoreError if another writes."""
        return open_writer(self.db)

    def find_run(self, connection: Connection, run: int | str | None) -> RunRecord:
        """The record of a run by its number or id; the newest, if none is named."""
        if isinstance(run, str):
            number = find_newest_run(connection, _build_id_fingerprint(run))
            if number is None:
                raise StateError(f"there is no run {run!r}; 'interlock runs' lists them")
            run = number
        return find_run(connection, run)

    def new_config(self, circuit: str, thresholds: dict[str, Any]) -> RunConfig:
        """What a new run of a circuit is begun with, as the project's settings have it."""
        settings = self.settings
        own = find_application(circuit).default_config(settings, self.path)
        return msgspec.structs.replace(default_config(settings, thresholds), application_config=own)

    def build_pool(
        self,
        circuit: CircuitTable,
        config: RunConfig,
        given: Mapping[str, Carrier] | None = None,
    ) -> AgentPool:
        """Who answers a run; SourceError if somebody is missing."""
        return build_agent_pool(
            circuit,
            config,
            settings=self.settings,
            project=self.path,
            db=self.db,
            complain=lambda problem: self.display.note(f"note: {problem}"),
            given=given,
            clock=self.clock,
        )

    def check_agent(self, circuit: CircuitTable, words: str, role: str) -> None:
        """SourceError if these words name no agent that could play the role now."""
        context = build_agent_context(
            circuit, RunConfig(), self.settings, self.path, self.db, clock=self.clock
        )
        build_agent(words, msgspec.structs.replace(context, roles=(role,)))

    def run_cases(
        self,
        circuit: Circuit,
        content: bytes,
        *,
        source: str,
        thresholds: Mapping[str, Any],
        change: Callable[[RunConfig], RunConfig],
        new: bool = False,
        detach: bool = False,
        resumed: Callable[[RunRecord], None] = lambda _run: None,
        **work: Unpack[WorkOptions],
    ) -> RunResult:
        """Work on cases, one JSON object per line, in this thread: as a `new` run, or as the one
        that was begun with the same, of which `resumed` is told. `change` adds to its
        configuration what a user says now. To `detach` leaves the work to coordinators."""
        self._check_detach(detach=detach)
        changed, changes = circuit.with_thresholds(self.settings.thresholds, thresholds)
        cases = parse_cases(content, source)
        config = msgspec.structs.replace(
            self.new_config(changed.name, changes),
            input=build_digest(changed.name, changes, content),
        )
        config = change(config if new else self.recall_config(config))
        pool = self.build_pool(changed.source.circuit, config)
        with self.write() as connection:
            run, existed = self.begin_or_find(
                connection, circuit.bundle, cases, config, name=source, new=new
            )
            if existed:
                resumed(run)
                pool = self.build_pool(load_circuit(run), config)
            if detach:
                return self._detach(connection, run.run_id)
            return work_on_run(connection, run, pool, display=self.display, **work)

    def continue_run(
        self,
        run_id: int,
        change: Callable[[RunConfig], RunConfig],
        *,
        detach: bool = False,
        **work: Unpack[WorkOptions],
    ) -> RunResult:
        """Work on an unfinished run in this thread; or leave it to coordinators."""
        self._check_detach(detach=detach)
        with self.write() as connection:
            run, pool = self.reopen_run(connection, run_id, change)
            if detach:
                return self._detach(connection, run_id)
            return work_on_run(connection, run, pool, display=self.display, **work)

    def _check_detach(self, *, detach: bool) -> None:
        if detach and isinstance(self.db, Path):
            raise UsageError(
                f"--detach leaves a run to coordinators, which need PostgreSQL; {self.db} is a file"
            )

    def _detach(self, connection: Connection, run_id: int) -> RunResult:
        leave_to_coordinators(connection, run_id, self.clock.now() if self.clock else time.time())
        return describe_run(connection, find_run(connection, run_id))

    def reopen_run(
        self,
        connection: Connection,
        run_id: int,
        change: Callable[[RunConfig], RunConfig],
        claimed: Ownership | None = None,
    ) -> tuple[RunRecord, AgentPool]:
        """An unfinished run with its configuration changed, and who answers it now."""
        run = find_run(connection, run_id)
        check_free(connection, run_id, claimed)
        if run.status in FINISHED:
            raise StateError(f"run {run.run_id} is over ({run.status}); there is nothing to do")
        config = change(msgspec.convert(run.options, RunConfig))
        pool = self.build_pool(load_circuit(run), config)
        with transaction(connection) as raw:
            if claimed is not None:
                claimed.check(raw)  # by now another may have it, and its options may have changed
            set_options(connection, run_id, msgspec.to_builtins(config))
        return find_run(connection, run_id), pool

    def begin_or_find(
        self,
        connection: Connection,
        bundle: Bundle,
        cases: Sequence[NewCase],
        config: RunConfig,
        *,
        name: str,
        new: bool = False,
    ) -> tuple[RunRecord, bool]:
        """The run of these cases, and whether it had begun before. A run without an id is the same
        while it is unfinished; one with an id, for ever."""
        run = None if new else self.find_begun(connection, config)
        if run is not None:
            if run.status not in FINISHED:
                check_free(connection, run.run_id)
                kept = msgspec.convert(run.options, RunConfig).thresholds
                now = msgspec.structs.replace(config, thresholds=kept)
                set_options(connection, run.run_id, msgspec.to_builtins(now))
            return find_run(connection, run.run_id), True
        circuit = bundle.open().circuit.with_thresholds(config.thresholds)
        run_id = find_application(circuit.name).begin(
            connection,
            circuit,
            bundle.encode(),
            cases,
            source=name,
            fingerprint=_build_fingerprint(config),
            options=msgspec.to_builtins(config),
            at=self.clock.now() if self.clock else time.time(),
        )
        return find_run(connection, run_id), False

    def recall_config(self, config: RunConfig) -> RunConfig:
        """What the same run was begun with, if it is unfinished; else this configuration. A run
        keeps its agents, slots and limits until somebody changes them."""
        if not self.has_database:
            return config
        with self.read() as connection:
            run = self.find_begun(connection, config)
        if run is None or run.status in FINISHED:
            return config
        return msgspec.convert(run.options, RunConfig)

    def find_begun(self, connection: Connection, config: RunConfig) -> RunRecord | None:
        """The run that was begun with the same, if there is one; StateError if its id was used
        for something else."""
        mark = _build_fingerprint(config)
        found = (
            find_newest_run(connection, mark)
            if config.id
            else find_unfinished_run(connection, mark)
        )
        if found is None:
            return None
        run = find_run(connection, found)
        before = msgspec.convert(run.options, RunConfig)
        if config.id and before.input != config.input:
            raise StateError(
                f"run {config.id!r} was started with another circuit, other thresholds or "
                "cases; use another id for them"
            )
        return run

    def prepare_circuit(
        self, circuit: str | Circuit, thresholds: Mapping[str, Any], prompts: Path | None = None
    ) -> tuple[Circuit, dict[str, Any]]:
        """A circuit as the project's settings, these thresholds and a folder of prompts change it,
        and the thresholds that are not its own. UnsoundError if it cannot be run so; the display is
        told of rules that the thresholds turn off."""
        own = circuit if isinstance(circuit, Circuit) else Circuit.load(circuit, self.path)
        if prompts is not None:
            own = own.with_prompts(prompts, self.display.note)
        changed, changes = own.with_thresholds(self.settings.thresholds, thresholds)
        for finding in refuse_unsound(changed.source, own.source.circuit):
            self.display.note(f"note: with these thresholds {finding.message}")
        return changed, changes


def build_digest(circuit: str, thresholds: Mapping[str, Any], content: bytes) -> str:
    """What tells whether two runs were started with the same."""
    kind = msgspec.json.encode([circuit, thresholds], order="sorted")
    return hashlib.sha256(kind + content).hexdigest()


def _build_fingerprint(config: RunConfig) -> str:
    """What a run is found by: its id, else what it was started with."""
    return _build_id_fingerprint(config.id) if config.id else config.input


def _build_id_fingerprint(name: str) -> str:
    return hashlib.sha256(f"id\0{name}".encode()).hexdigest()
