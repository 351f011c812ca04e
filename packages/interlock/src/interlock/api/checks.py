"""Check that this machine is fit and a project's database sound, for `interlock doctor`."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.api.inbox import find_user
from interlock.api.project import Project
from interlock.api.work import load_circuit
from interlock.carriers.human import AnswerPolicy
from interlock.carriers.registry import explain_not_runnable, list_agents, list_endpoints
from interlock.journal.address import DatabaseAddress
from interlock.journal.audit import audit
from interlock.journal.database import (
    find_writers,
    has_database,
    open_reader,
)
from interlock.journal.runs import list_runs
from interlock.journal.schema import find_table_set, list_table_entries, read_versions
from interlock.runtime.application import find_application, list_applications
from interlock.runtime.settings import Notify, list_tables
from interlock.signals.skills import FOLDERS, SKILL_NAME, parse_version, read_version
from interlock.system.errors import InterlockError
from interlock.system.files import private_mode
from interlock.version import __version__

_WAL_RESET_FIXED = (3, 51, 3)
"""The first SQLite without the WAL-reset bug."""


class DoctorCheck(msgspec.Struct, frozen=True):
    """One check: `ok` false is a finding, a `note` is only worth knowing."""

    id: str
    ok: bool
    message: str
    note: bool = False


def check_project(project: Project, *, deep: bool) -> Iterator[DoctorCheck]:
    """Yield all checks; with `deep`, also recompute every case from its journal."""
    yield from _check_machine()
    yield from _check_packages()
    yield from _check_endpoints(project)
    yield from _check_notify(project.settings.notify)
    yield from _check_skills(project.path)
    yield from _check_database(project.db, deep=deep)
    yield from _check_sharing(project.db, project.settings.inbox)


def _check_machine() -> Iterator[DoctorCheck]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorCheck("machine.python", sys.version_info >= (3, 11), f"Python {version}")
    old = sqlite3.sqlite_version_info < _WAL_RESET_FIXED
    message = f"SQLite {sqlite3.sqlite_version}"
    if old:
        message += (
            " has the rare WAL-reset bug, fixed in 3.51.3: Interlock writes with one process only,"
            " which avoids it; do not write to the database with other tools while it runs"
        )
    yield DoctorCheck("machine.sqlite", True, message, note=old)


def _check_packages() -> Iterator[DoctorCheck]:
    """Check what installed packages bring: applications, agents, settings. A broken one stops no
    other check."""
    for name, where in list_applications().items():
        try:
            find_application(name)
        except InterlockError as error:
            yield DoctorCheck(f"application.{name}", False, f"{where}: {error}")
    for entry in list_table_entries():
        try:
            find_table_set(entry)
        except InterlockError as error:
            yield DoctorCheck(f"tables.{entry.name}", False, str(error))
    groups = [("agent", list_agents()), ("settings", list_tables())]
    for kind, entries in groups:
        for name, entry in sorted(entries.items()):
            try:
                entry.load()
            except Exception as error:  # whatever a foreign package raises while it is imported
                problem = f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
                yield DoctorCheck(f"{kind}.{name}", False, problem)


def _check_endpoints(project: Project) -> Iterator[DoctorCheck]:
    """Check that the model endpoints in interlock.toml can be asked."""
    from interlock.carriers.models.carrier import Model, find_endpoint

    settings = project.settings
    named = [*settings.agents.values(), *(role.agent for role in settings.roles.values())]
    for word in sorted({*named}):
        kind = word.partition(":")[0]
        if kind not in list_endpoints(settings.agent):
            continue
        try:
            endpoint = find_endpoint(kind, settings.agent.get(kind, {}), os.environ)
            Model(word, endpoint=endpoint)
            yield DoctorCheck(f"agent.{kind}", True, f"{word} at {endpoint.base_url}")
        except InterlockError as error:
            yield DoctorCheck(f"agent.{kind}", False, str(error))


def _check_notify(notify: Notify) -> Iterator[DoctorCheck]:
    """Check that notifications can be delivered; a run goes on without them."""
    if notify.command:
        program = notify.command[0]
        found = shutil.which(program) is not None
        message = program if found else f"{explain_not_runnable(program)}; nobody is notified"
        yield DoctorCheck("notify.command", found, message)


def _check_skills(project: Path) -> Iterator[DoctorCheck]:
    """Check that installed skills are those of this version: an older one may teach what no longer
    holds."""
    for agent, folder in FOLDERS.items():
        skill = project / folder / SKILL_NAME / "SKILL.md"
        if not skill.is_file():
            continue
        stamp = read_version(skill.read_bytes()[:10_000].decode(errors="replace"))
        old = stamp is None or stamp < parse_version(__version__)
        version = ".".join(map(str, stamp)) if stamp else "an unknown version"
        message = f"{skill} is from {version}"
        if old:
            message += f", Interlock is {__version__}: run interlock init --agent {agent} --force"
        yield DoctorCheck(f"skills.{agent}", True, message, note=old)


def _check_database(db: DatabaseAddress, *, deep: bool) -> Iterator[DoctorCheck]:
    try:
        if not has_database(db):
            yield DoctorCheck("store.file", True, f"no database at {db} yet", note=True)
            return
        if isinstance(db, Path):
            yield from _check_file(db)
        writers = list(find_writers(db).list_all())
        working = "; ".join(f"worked on by {each}" for each in writers)
        yield DoctorCheck("store.writer", True, working or "nobody writes to it")
        yield from _check_content(db, deep=deep)
    except (InterlockError, msgspec.MsgspecError) as error:
        yield DoctorCheck("store.unreadable", False, str(error))


def _check_file(path: Path) -> Iterator[DoctorCheck]:
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    size = f"{path}, {path.stat().st_size:,} bytes"
    advice = "; make the file and its folder writable, or use --db elsewhere"
    yield DoctorCheck("store.file", writable, size if writable else f"{size}, read-only{advice}")


def _check_sharing(path: DatabaseAddress, policy: AnswerPolicy) -> Iterator[DoctorCheck]:
    """Check that other users who may answer can reach the database."""
    names = {*policy.answerers, *(name for names in policy.step.values() for name in names)}
    others = sorted(names - {find_user()})
    if not others or not isinstance(path, Path) or not path.exists():
        return
    shared = private_mode(path.parent) == path.stat().st_mode & 0o777 != 0o600
    group = f"{path.parent} and {path.name} are for one user alone; if {', '.join(others)} shall "
    group += f"answer here: chgrp -R GROUP {path.parent} && chmod -R g+rwX {path.parent} && "
    group += f"chmod g+s {path.parent}"
    message = f"{path.parent} is shared with its group" if shared else group
    yield DoctorCheck("store.shared", True, message, note=not shared)


def _check_content(path: DatabaseAddress, *, deep: bool) -> Iterator[DoctorCheck]:
    with open_reader(path) as connection:
        number = len(list_runs(connection))
        found = sorted(read_versions(connection.raw).items())
        more = {name: find_application(name).audits for name in list_applications()} if deep else {}
        faults = audit(connection, load_circuit, more) if deep else []
    runs = "1 run" if number == 1 else f"{number} runs"
    versions = ", ".join(f"{part} {version}" for part, version in found)
    yield DoctorCheck("store.schema", True, f"{versions}, {runs}")
    for fault in faults:
        yield DoctorCheck(fault.id, False, f"{fault.subject}: {fault.message}")
    if deep and not faults:
        yield DoctorCheck("store.fold", True, f"{runs}: every case is the fold of its journal")
