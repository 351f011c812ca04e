"""`[history]` in interlock.toml: where results are kept, and the thresholds for judging them.

Every threshold states its reason. The defaults come from the practice of others and are not
calibrated on your project.
"""

import tomllib
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError
from interlock.system.files import read_text


class HistorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the memory of test results."""

    store: str = ".interlock/history"
    """A folder or https://SERVER/. `--store` and `INTERLOCK_STORE` override it."""
    default_branch: str = ""
    """The branch whose history counts. If empty: what the CI system or git says, else `main` or
    `master`."""
    aliases: dict[str, str] = {}
    """Renamed tests: old id to new id. Nothing else is joined."""
    quarantine: str = "interlock-quarantine.toml"
    """The file with the quarantined tests; it belongs in the repository."""
    window_days: int = 14
    """The days in which flips count. Two weeks see a test some dozens of times and forget what was
    fixed last month."""
    window_verdicts: int = 100
    """The least number of verdicts in the window: below 100, a rate of 1 % cannot be told from
    0."""
    flaky_flips: int = 2
    """The number of sources on which a flaky test flips. One flip may have been the machine."""
    flaky_rate: float = 0.01
    """The least share of flips of a flaky test: rarer flips cost less than fixing them."""
    least_verdicts: int = 10
    """A test with fewer verdicts is new, and is not called flaky."""
    broken_after: int = 3
    """The number of failures in a row, without a flip, of a broken test. A test that fails half the
    time fails three times in a row once in eight."""
    infrastructure_share: float = 0.8
    """A job in which a larger share of tests fails says nothing about single tests."""
    infrastructure_least: int = 5
    """In a job with fewer tests, shares mean nothing and every result counts."""
    slower: float = 1.25
    """The ratio of medians at which a test is slower (or, inverted, faster). Durations are kept to
    3.5 %, and shared machines vary by more than that."""
    accuse_verdicts: int = 10
    """A flip within this many verdicts before the first failure means that no commit is accused."""
    accuse_hours: int = 48
    """A flip within this many hours before the first failure means the same, where verdicts are
    frequent."""
    quarantine_days: int = 30
    """The longest quarantine before somebody must decide again."""
    healed_passes: int = 5
    """The passes in a row that heal a quarantined test."""
    healed_days: int = 3
    """The days over which those passes must spread: five within an hour share one good machine."""


class HistoryTables(msgspec.Struct, frozen=True):
    """The tables of interlock.toml that history reads."""

    history: HistorySettings = HistorySettings()


def read_history_settings(folder: Path = Path()) -> HistorySettings:
    """Read `[history]` of the project in a folder. Other tables are left to the verbs that load the
    database."""
    path = folder / "interlock.toml"
    if not path.exists():
        return HistorySettings()
    try:
        table = tomllib.loads(read_text(path, 1_000_000)).get("history", {})
        return check_settings(msgspec.convert(table, HistorySettings))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SourceError(f"{path}: {error}") from None


def check_settings(settings: HistorySettings) -> HistorySettings:
    """Return the settings. Raise SourceError if a number makes no sense."""
    shares = ("flaky_rate", "infrastructure_share")
    for field in msgspec.structs.fields(settings):
        value = getattr(settings, field.name)
        if field.name in shares and not 0 < value <= 1:
            raise SourceError(f"history.{field.name} must be above 0 and at most 1, not {value}")
        if isinstance(value, int) and value < 1:
            raise SourceError(f"history.{field.name} must be at least 1, not {value}")
    if settings.slower <= 1:
        raise SourceError(f"history.slower must be above 1, not {settings.slower}")
    return settings
