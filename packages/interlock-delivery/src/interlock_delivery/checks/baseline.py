"""Keep the results of checks before the work began, one file per commit.

A row counts only for the exact command that produced it. A baseline that a crash cut short is
completed later.
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
    """One result, and a key for the command that produced it."""

    key: str
    result: CheckResult


class Baseline(msgspec.Struct, frozen=True):
    """The known results at one commit."""

    schema_version: int
    commit: str
    rows: tuple[StoredBaseline, ...] = ()

    def results_of(self, cells: Sequence[CheckCell]) -> tuple[CheckResult, ...]:
        """Return the known results of exactly these commands."""
        known = {each.key: each.result for each in self.rows}
        return tuple(known[key] for key in map(build_key, cells) if key in known)

    def find_missing(self, cells: Sequence[CheckCell]) -> tuple[CheckCell, ...]:
        known = {each.key for each in self.rows}
        return tuple(cell for cell in cells if build_key(cell) not in known)

    def with_result(self, cell: CheckCell, result: CheckResult) -> "Baseline":
        """Return the baseline with a result; one that could not run is left out."""
        if result.unavailable:
            return self
        key = build_key(cell)
        rows = (*(each for each in self.rows if each.key != key), StoredBaseline(key, result))
        ordered = tuple(sorted(rows, key=lambda each: each.key))
        return msgspec.structs.replace(self, rows=ordered)


def build_key(cell: CheckCell) -> str:
    """Return a digest of everything a result depends on except the commit."""
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
    """Return the results of all cells at a commit, running those that are not stored.

    `place.folder` must hold that commit unchanged. Each result is stored as soon as it is known.
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
    """Return the stored baseline of a commit; empty if the file cannot be understood."""
    path, empty = _baseline_path(home, commit), Baseline(SCHEMA_VERSION, commit)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return empty
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (msgspec.DecodeError, RecursionError):
        return empty
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}; make it readable") from error
    known = found.schema_version == SCHEMA_VERSION and found.commit == commit
    return found if known else empty


def write_baseline(home: Path, baseline: Baseline) -> Path:
    """Write a baseline atomically and durably."""
    path = _baseline_path(home, baseline.commit)
    content = msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"
    try:
        home.mkdir(parents=True, exist_ok=True)
        write_file(path, content, mode=0o666)
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written: {error.strerror}; free space or grant access"
        ) from error
    return path


def _baseline_path(home: Path, commit: str) -> Path:
    if not commit.isalnum() or not commit.isascii() or len(commit) > 64:
        raise SourceError(f"{commit!r} is not a commit; give its full hash")
    return home / f"baseline-{commit}.json"
