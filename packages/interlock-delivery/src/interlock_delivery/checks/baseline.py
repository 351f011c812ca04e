"""How the checks came out before the work began, stored in a file next to it.

One file for each commit; a row counts only for the exact command it was taken with. A baseline that
a crash cut short is completed.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock_delivery.checks.records import CheckCell, CheckResult
from interlock_delivery.checks.run import CheckEnvironment, CheckLimits, OnResult, run_checks

SCHEMA_VERSION = 1
_LARGEST = 256 * 1024 * 1024


class StoredBaseline(msgspec.Struct, frozen=True):
    """One result, and the command it is the result of."""

    key: str
    result: CheckResult


class Baseline(msgspec.Struct, frozen=True):
    """All that is known of one commit."""

    schema_version: int
    commit: str
    rows: tuple[StoredBaseline, ...] = ()

    def results_of(self, cells: Sequence[CheckCell]) -> tuple[CheckResult, ...]:
        """The results of these very commands, as far as they are known."""
        known = {each.key: each.result for each in self.rows}
        return tuple(known[key] for key in map(build_key, cells) if key in known)

    def find_missing(self, cells: Sequence[CheckCell]) -> tuple[CheckCell, ...]:
        known = {each.key for each in self.rows}
        return tuple(cell for cell in cells if build_key(cell) not in known)

    def with_result(self, cell: CheckCell, result: CheckResult) -> "Baseline":
        """One that could not run is not kept: it may be there next time."""
        if result.unavailable:
            return self
        key = build_key(cell)
        rows = (*(each for each in self.rows if each.key != key), StoredBaseline(key, result))
        ordered = tuple(sorted(rows, key=lambda each: each.key))
        return msgspec.structs.replace(self, rows=ordered)


def build_key(cell: CheckCell) -> str:
    """One word for all that the result depends on, beside the commit."""
    check = cell.check
    facts = (check.name, cell.environment.name, cell.argv, check.exit_code, check.timeout)
    return hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).hexdigest()


async def take_baseline(
    home: Path,
    commit: str,
    cells: Sequence[CheckCell],
    place: CheckEnvironment,
    clock: Clock,
    *,
    limits: CheckLimits | None = None,
    on_result: OnResult | None = None,
) -> tuple[CheckResult, ...]:
    """The results of all cells at that commit: those that are kept, and those that are run now.

    `place.folder` must hold that commit, untouched. Each result is safe as soon as it is there.
    """
    held = [read_baseline(home, commit)]
    fresh: list[CheckResult] = []

    def hold(cell: CheckCell, result: CheckResult) -> None:
        held[0] = held[0].with_result(cell, result)
        fresh.append(result)
        write_baseline(home, held[0])
        if on_result is not None:
            on_result(cell, result)

    await run_checks(held[0].find_missing(cells), place, clock, limits=limits, on_result=hold)
    by_pair = {each.pair: each for each in (*held[0].results_of(cells), *fresh)}
    return tuple(by_pair[cell.pair] for cell in cells)


def read_baseline(home: Path, commit: str) -> Baseline:
    """What is kept of that commit. A file that cannot be understood is taken for none."""
    path, empty = _baseline_path(home, commit), Baseline(SCHEMA_VERSION, commit)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return empty
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (msgspec.DecodeError, RecursionError):
        return empty
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}; let us read it") from error
    known = found.schema_version == SCHEMA_VERSION and found.commit == commit
    return found if known else empty


def write_baseline(home: Path, baseline: Baseline) -> Path:
    """Whole or not at all, also through a power cut."""
    path = _baseline_path(home, baseline.commit)
    content = msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"
    try:
        home.mkdir(parents=True, exist_ok=True)
        write_file(path, content, mode=0o666)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}; make room") from error
    return path


def _baseline_path(home: Path, commit: str) -> Path:
    if not commit.isalnum() or not commit.isascii() or len(commit) > 64:
        raise SourceError(f"{commit!r} is no commit: give the full hash of one")
    return home / f"baseline-{commit}.json"
