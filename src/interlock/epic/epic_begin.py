"""What an epic is begun with: from the words of a command line to its terms and its run.

Knows where an epic's file may lie and when an earlier run is gone on with. Nothing here starts a
session.
"""

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.api.circuits import Circuit
    from interlock.api.project import Project
    from interlock.epic.checkpoints.place import StateFolder
    from interlock.epic.epic_file import EpicText
    from interlock.epic.terms import EpicConfig, EpicSettings
    from interlock.journal.runs import Run
    from interlock.runtime.settings import Settings

_ENDINGS = (".md", ".markdown", ".yaml", ".yml")
_FOLDERS = ("docs/epics", "docs/sprint-artifacts/epics", "epics")
_LARGEST = 4_000_000


class EpicOptions(msgspec.Struct, frozen=True):
    """What the user asked for."""

    agent: list[str] | None = None
    budget: list[str] | None = None
    max_cycles: int | None = None
    session_timeout: str | None = None
    idle_timeout: str | None = None
    hitl: str | None = None
    hook: str | None = None


def written_epic(word: str) -> "tuple[EpicText | None, str]":
    """The epic that a word names, and its file: a path, or an id whose file lies in its place."""
    from interlock.epic.checkpoints.record import check_epic_id
    from interlock.epic.epic_file import read_epic
    from interlock.system.files import read_text

    if word.endswith(_ENDINGS):
        return read_epic(read_text(Path(word), _LARGEST), Path(word).as_posix()), word
    path = _place_of(check_epic_id(word))
    if path is None:
        return None, ""
    found = read_epic(read_text(path, _LARGEST), path.as_posix())
    return msgspec.structs.replace(found, id=word), str(path)


def _place_of(epic_id: str) -> Path | None:
    """The file of an epic that is named by its id."""
    for folder in _FOLDERS:
        for name in (*(f"{epic_id}{each}" for each in _ENDINGS), f"{epic_id}/epic.md"):
            if (Path(folder) / name).is_file():
                return Path(folder) / name
    return None


def settings_for(usual: "Settings", wishes: EpicOptions) -> "EpicSettings":
    from interlock.epic.terms import EpicTables, check_settings

    given: dict[str, Any] = {
        "session_timeout": wishes.session_timeout,
        "idle_timeout": wishes.idle_timeout,
        "hitl": wishes.hitl,
    }
    told = {name: value for name, value in given.items() if value is not None}
    return check_settings(msgspec.structs.replace(usual.read_tables(EpicTables).epic, **told))


def config_for(
    project: "Project", wishes: EpicOptions, before: RunConfig | None
) -> "tuple[Circuit, RunConfig]":
    """The circuit and what a run of it is begun, or gone on, with. SourceError if it is unsound."""
    from interlock.api.circuits import Circuit, refuse_unsound
    from interlock.runtime.agent_pool import split_agent

    own = Circuit.load("epic", project.path)
    given = {} if wishes.max_cycles is None else {"max_cycles": wishes.max_cycles}
    changed, changes = own.with_thresholds(project.settings.thresholds, given)
    refuse_unsound(changed.source, own.source.circuit)
    config = before or project.new_config("epic", changes)
    agents = dict(split_agent(word) for word in wishes.agent or ())
    limits = dict(_limit(word) for word in wishes.budget or ())
    return own, msgspec.structs.replace(
        config,
        thresholds=config.thresholds | changes,
        agents=config.agents | agents,
        budget={**config.budget, **limits},
    )


def _limit(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"--budget {word!r}: write --budget name=value")
    return name.strip(), value.strip()


def agreed(
    epic_id: str,
    text: "EpicText | None",
    file: str,
    place: "StateFolder",
    path: Path,
    usual: "Settings",
    wishes: EpicOptions,
) -> "EpicConfig":
    from interlock.epic.terms import EpicConfig

    return EpicConfig(
        epic_id=epic_id,
        root=str(place.root),
        db=str(path.resolve()),
        fresh=text is not None,
        title=text.title if text else "",
        file=file,
        stories=text.stories if text else (),
        settings=settings_for(usual, wishes),
    )


def begun(
    project: "Project", connection: "Connection", terms: "EpicConfig", wishes: EpicOptions
) -> "tuple[Run, RunConfig]":
    """The run of the epic: the one that is unfinished, or a new one."""
    from interlock.journal.runs import (
        NewCase,
        begin_run,
        find_newest_run,
        find_run,
        find_unfinished_run,
        set_options,
    )

    mark = hashlib.sha256(f"epic:{terms.root}:{terms.epic_id}".encode()).hexdigest()
    run_id, last = find_unfinished_run(connection, mark), find_newest_run(connection, mark)
    found = find_run(connection, run_id) if run_id is not None else None
    before = msgspec.convert(find_run(connection, last).options, RunConfig) if last else None
    own, options = config_for(project, wishes, before)
    if before and not terms.fresh:
        kept = _kept(before)
        terms = msgspec.structs.replace(
            terms,
            title=kept.title,
            file=kept.file,
            stories=kept.stories,
            fresh=kept.fresh and found is not None,
        )
    options = msgspec.structs.replace(options, terms=msgspec.to_builtins(terms))
    if found is not None and run_id is not None:
        set_options(connection, run_id, msgspec.to_builtins(options))
        project.display.note(f"going on with run {run_id} of {terms.epic_id}")
        return find_run(connection, run_id), options
    circuit = own.source.circuit.with_thresholds(options.thresholds)
    run_id = begin_run(
        connection,
        circuit,
        own.bundle.encode(),
        [NewCase(terms.epic_id, {"id": terms.epic_id, "title": terms.title})],
        source=terms.file or terms.epic_id,
        fingerprint=mark,
        options=msgspec.to_builtins(options),
        at=time.time(),
    )
    return find_run(connection, run_id), options


def _kept(before: RunConfig) -> "EpicConfig":
    from interlock.epic.terms import EpicConfig

    try:
        return msgspec.convert(before.terms, EpicConfig)
    except msgspec.ValidationError as error:
        raise SourceError(f"the run's terms cannot be read: {error}") from None
