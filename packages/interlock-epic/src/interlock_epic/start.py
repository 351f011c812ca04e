"""Start or continue an epic: read its file, begin or find its run, and work on it."""

import hashlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.api.circuits import Circuit
from interlock.api.project import Project
from interlock.api.work import RunResult, SessionTerms, load_circuit, work_on_run
from interlock.journal.address import make_absolute
from interlock.journal.connection import Connection
from interlock.journal.runs import (
    NewCase,
    NewRun,
    Run,
    begin_run,
    find_newest_run,
    find_run,
    find_unfinished_run,
    set_options,
)
from interlock.runtime.application import RunSetup
from interlock.runtime.settings import RunConfig, Settings
from interlock.system.errors import SourceError, StoreError
from interlock.system.files import read_text
from interlock_epic.application import StepCarrier
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import check_epic_id
from interlock_epic.checkpoints.store import Checkpoints, LockedError, hold_epic_lock
from interlock_epic.config import EpicConfig, EpicSettings, EpicTables, check_settings
from interlock_epic.epic_file import EpicText, read_epic
from interlock_epic.hooks import EpicHooks
from interlock_epic.report import EpicReport, build_report

_SUFFIXES: Final = (".md", ".markdown", ".yaml", ".yml")
_FOLDERS: Final = ("docs/epics", "docs/sprint-artifacts/epics", "epics")
_LARGEST_FILE: Final = 4_000_000


class EpicOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options; None keeps the stored value."""

    agents: Mapping[str, str] = {}
    budget: Mapping[str, str] = {}
    max_cycles: int | None = None
    session_timeout: str | None = None
    idle_timeout: str | None = None
    hitl: str | None = None
    wait_for_humans: bool = False
    wait_for_limits: bool = True


def find_epic(word: str) -> tuple[EpicText | None, str]:
    """Return the named epic and its file: by path, or by an id in one of the usual folders."""
    if word.endswith(_SUFFIXES):
        return read_epic(read_text(Path(word), _LARGEST_FILE), Path(word).as_posix()), word
    check_epic_id(word)
    names = (*(f"{word}{suffix}" for suffix in _SUFFIXES), f"{word}/epic.md")
    paths = (Path(folder) / name for folder in _FOLDERS for name in names)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None, ""
    text = read_epic(read_text(path, _LARGEST_FILE), path.as_posix())
    return msgspec.structs.replace(text, id=word), str(path)


def work_on_epic(
    project: Project,
    epic_id: str,
    text: EpicText | None,
    file: str,
    options: EpicOptions,
    show_signal: Callable[[str], None] | None = None,
) -> tuple[RunResult, EpicReport]:
    """Work on an epic until it ends or waits; raise LockedError if another process does.

    `show_signal` gets our own line signals instead of stderr.
    """
    place = find_state_folder(Path())
    config = EpicConfig(
        epic_id=epic_id,
        root=str(place.root),
        host=socket.gethostname(),
        db=str(make_absolute(project.db)),
        fresh=text is not None,
        title=text.title if text else "",
        file=file,
        stories=text.stories if text else (),
        settings=_merge_settings(project.settings, options),
    )
    with ExitStack() as held:
        held.enter_context(hold_epic_lock(place, epic_id))
        connection = held.enter_context(_open_database(project))
        run, run_config = _begin_or_continue(project, connection, config, options)

        def change_setup(setup: RunSetup) -> RunSetup:
            for carrier in setup.carriers.values():
                if isinstance(carrier, StepCarrier):
                    carrier.is_locked = True
            if show_signal and isinstance(setup.hooks, EpicHooks):
                setup.hooks.signals.show = show_signal
            return setup

        result = work_on_run(
            connection,
            run,
            project.build_pool(load_circuit(run), run_config),
            SessionTerms(
                wait_for_humans=options.wait_for_humans,
                wait_for_limits=options.wait_for_limits,
                change_setup=change_setup,
            ),
            display=project.display,
        )
        return result, build_report(connection, result, epic_id, Checkpoints(place))


@contextmanager
def _open_database(project: Project) -> Iterator[Connection]:
    """Open the database; raise LockedError if another process writes to it."""
    with ExitStack() as held:
        try:
            connection = held.enter_context(project.write())
        except StoreError as error:
            if project.writer() is None:
                raise
            raise LockedError(str(error)) from None
        yield connection


def _merge_settings(settings: Settings, options: EpicOptions) -> EpicSettings:
    given = {
        "session_timeout": options.session_timeout,
        "idle_timeout": options.idle_timeout,
        "hitl": options.hitl,
    }
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    epic = settings.read_tables(EpicTables).epic
    return check_settings(msgspec.structs.replace(epic, **changed))


def _begin_or_continue(
    project: Project,
    connection: Connection,
    config: EpicConfig,
    options: EpicOptions,
) -> tuple[Run, RunConfig]:
    """Return the epic's unfinished run, or a new one that keeps the flags of the last."""
    fingerprint = hashlib.sha256(f"epic:{config.root}:{config.epic_id}".encode()).hexdigest()
    unfinished = find_unfinished_run(connection, fingerprint)
    newest = find_newest_run(connection, fingerprint)
    before = (
        msgspec.convert(find_run(connection, newest).options, RunConfig)
        if newest is not None
        else None
    )
    circuit, run_config = _build_run_config(project, options, before)
    if before and not config.fresh:
        kept = _read_stored_config(before)
        config = msgspec.structs.replace(
            config,
            title=kept.title,
            file=kept.file,
            stories=kept.stories,
            fresh=kept.fresh and unfinished is not None,
        )
    run_config = msgspec.structs.replace(run_config, application_config=msgspec.to_builtins(config))
    stored = msgspec.to_builtins(run_config)
    if unfinished is not None:
        set_options(connection, unfinished, stored)
        project.display.note(f"continuing run {unfinished} of {config.epic_id}")
        return find_run(connection, unfinished), run_config
    new = NewRun(
        circuit=circuit.source.circuit.with_thresholds(run_config.thresholds),
        text=circuit.bundle.encode(),
        source=config.file or config.epic_id,
        fingerprint=fingerprint,
        options=stored,
        at=time.time(),
    )
    case = NewCase(config.epic_id, {"id": config.epic_id, "title": config.title})
    return find_run(connection, begin_run(connection, new, [case])), run_config


def _build_run_config(
    project: Project, options: EpicOptions, before: RunConfig | None
) -> tuple[Circuit, RunConfig]:
    given = {} if options.max_cycles is None else {"max_cycles": options.max_cycles}
    circuit, changes = project.prepare_circuit("epic", given)
    config = before or project.new_config("epic", changes)
    return circuit, msgspec.structs.replace(
        config,
        thresholds=config.thresholds | changes,
        agents={**config.agents, **options.agents},
        budget={**config.budget, **options.budget},
    )


def _read_stored_config(before: RunConfig) -> EpicConfig:
    try:
        return msgspec.convert(before.application_config, EpicConfig)
    except msgspec.ValidationError as error:
        raise SourceError(f"the run's configuration cannot be read: {error}") from None
