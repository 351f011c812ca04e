"""Suites at the command line: which one a user means, what goes into it, and its report on disk."""

import hashlib
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.api.project import RunConfig, open_run
from interlock.system.errors import SourceError, StateError, StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.rca.config import RcaConfig
    from interlock.rca.knowledge.suites import Suite
    from interlock.rca.records import Findings
    from interlock.rca.sources.read import SourceLaunch
    from interlock.runtime.circuits import Bundle

OUT = Path("interlock-report")
_DRAFTS = "jira-drafts"
_MARK = "report.json"
_PATTERN = "*?["


def name_of(sources: Sequence[str], intakes: "Sequence[SourceLaunch]") -> str:
    """A suite's name by default: what its first source is called; for a pattern, its folder. A
    launch on a server has one name, in whatever form it was given."""
    from interlock.rca.sources.reportportal.client import launch_word

    word = sources[0]
    if launch_word(word):
        return f"rp:{intakes[0].launch.launch_id}"
    path = Path(word)
    while path.name and any(sign in path.name for sign in _PATTERN) and not path.exists():
        path = path.parent
    path = path.resolve()
    return (path.name if path.is_dir() else path.stem) or word


def find(connection: "Connection", name: str, intakes: "Sequence[SourceLaunch]") -> "Suite | None":
    """The suite of that name that these failures belong to: it is open, or has one of them."""
    from interlock.rca.intake import content_of
    from interlock.rca.knowledge.suites import find_suite, looks_of

    suite = find_suite(connection, name=name)
    if suite is None or suite.status == "open":
        return suite
    known = {look.input.get("content") for look in looks_of(connection, suite.suite_id)}
    news = (failure for intake in intakes for failure in intake.failures)
    return suite if any(content_of(failure) in known for failure in news) else None


def the_suite(connection: "Connection", suite_id: int | None) -> "Suite":
    """That suite, or the newest."""
    from interlock.rca.knowledge.suites import find_suite

    suite = find_suite(connection, suite_id=suite_id)
    if suite is None:
        what = "there are no suites yet" if suite_id is None else f"there is no suite {suite_id}"
        raise StoreError(f"{what}; 'interlock analyze SOURCE' makes one")
    return suite


def take_in(
    connection: "Connection",
    suite: "Suite | None",
    name: str,
    bundle: "Bundle",
    circuit: "Circuit",
    intakes: "Sequence[SourceLaunch]",
    options: RunConfig,
) -> "tuple[Suite, int]":
    """The suite with what is new in the intakes, and how much that is."""
    from interlock.journal.runs import find_run, set_options
    from interlock.rca.intake import KnownFailures, arrivals
    from interlock.rca.knowledge.causes import sweep_dormant
    from interlock.rca.knowledge.intake import begin_suite, extend_suite
    from interlock.rca.knowledge.suites import looks_of

    at = time.time()
    sweep_dormant(connection, _moment_of(intakes, at))
    if suite is None:
        new = arrivals(intakes)
        text = msgspec.json.encode(bundle).decode()
        mark = hashlib.sha256(f"{name} {at}".encode()).hexdigest()
        opened = begin_suite(
            *(connection, circuit, text, new),
            name=name,
            source=name,
            fingerprint=mark,
            options=msgspec.to_builtins(options),
            at=at,
        )
        return the_suite(connection, opened.suite_id), sum(len(list(each.cases)) for each in new)
    known = [
        KnownFailures(str(look.input["content"]), look.features, str(look.input["family"]))
        for look in looks_of(connection, suite.suite_id)
        if "content" in look.input
    ]
    new = arrivals(intakes, known)
    own = open_run(find_run(connection, suite.run_id))
    numbers = extend_suite(connection, own, suite.suite_id, new, at)
    set_options(connection, suite.run_id, msgspec.to_builtins(options))
    return the_suite(connection, suite.suite_id), len(numbers)


def _moment_of(intakes: "Sequence[SourceLaunch]", now: float) -> float:
    """When these launches ran: what had not been seen for long then is what sleeps."""
    from interlock.rca.knowledge.intake import seconds_of

    begun = [seconds_of(intake.launch.started_at) for intake in intakes]
    return min((at for at in begun if at is not None), default=now)


def findings_now(connection: "Connection", suite: "Suite") -> "Findings":
    """What is known about a suite at this moment."""
    from interlock.journal.runs import find_run
    from interlock.rca.findings import findings_of

    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    return findings_of(
        *(connection, suite, open_run(run), terms_in(options)),
        at=time.time(),
        agent=_agents(options),
    )


def terms_in(options: RunConfig) -> "RcaConfig":
    from interlock.rca.config import RcaConfig

    return msgspec.convert(options.terms, RcaConfig)


def _agents(options: RunConfig) -> str:
    named = [f"{role}={spec}" if role else spec for role, spec in options.agents.items()]
    dispatch = str(options.files.get("dispatch", ""))
    return ", ".join([*named, *([dispatch] if dispatch else [])])


def folder_of(name: str, out: Path | None) -> Path:
    """Where a suite's report goes."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:80] or "suite"
    return out or OUT / slug


def write_report(findings: "Findings", folder: Path) -> list[Path]:
    """Write all documents; drafts of an earlier report that are no more true are removed."""
    from interlock.rca.report.document import documents
    from interlock.system.files import write_file

    names = []
    _make_way(folder)
    try:
        (folder / _DRAFTS).mkdir(parents=True, exist_ok=True)
        for name, raw in documents(findings):
            write_file(folder / name, raw, sync=False, mode=0o666)
            names.append(name)
    except OSError as error:
        raise SourceError(f"the report cannot be written to {folder}: {error.strerror}") from None
    shown = [name for name in names if "/" not in name]
    drafts = len(names) > len(shown)
    return [folder / name for name in shown] + ([folder / _DRAFTS] if drafts else [])


def refuse_foreign(folder: Path) -> None:
    """Only a folder that is empty, new or a report of ours is written into."""
    try:
        if folder.exists() and not folder.is_dir():
            raise SourceError(f"--out {folder} is a file; name a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).is_file():
            raise StateError(f"{folder} holds other things; name an empty folder with --out")
    except OSError as error:
        raise SourceError(f"--out {folder} cannot be used: {error.strerror}") from None


def _make_way(folder: Path) -> None:
    refuse_foreign(folder)
    if (folder / _DRAFTS).is_dir() and not (folder / _DRAFTS).is_symlink():
        shutil.rmtree(folder / _DRAFTS)


def thresholds_of(circuit: "Circuit", usual: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The thresholds that the project and the command line ask for."""
    from interlock.cli.options import checked_thresholds, thresholds

    known = {name: value for name, value in usual.items() if name in circuit.thresholds}
    return checked_thresholds(circuit, known) | thresholds(circuit, words)
