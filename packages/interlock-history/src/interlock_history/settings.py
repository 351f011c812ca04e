"""`[history]` in interlock.toml: where results are remembered, and from when on they mean
something.

Every threshold has its reason beside it. They are starting points from the practice of others, not
yet calibrated on a project of yours.
"""

import tomllib
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError
from interlock.system.files import read_text


class HistorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory of test results."""

    store: str = ".interlock/history"
    """The memory: a folder or https://SERVER/. `--store` and
    `INTERLOCK_STORE` go before it."""
    default_branch: str = ""
    """The branch whose history counts; what the CI system or git says if empty, else `main` or
    `master`."""
    aliases: dict[str, str] = {}
    """Renamed tests: the old id and the new one. Nothing is joined without being named here."""
    quarantine: str = "interlock-quarantine.toml"
    """The file with the quarantined tests; it belongs into the repository."""
    window_days: int = 14
    """How far back flips count. Two weeks see a test some dozens of times and forget what was
    mended last month."""
    window_verdicts: int = 100
    """Where fewer verdicts than this fall into the window, it is as long as these: below 100, a
    rate of 1 % cannot be told from 0."""
    flaky_flips: int = 2
    """How many sources a test must flip on to be flaky. One flip may have been the machine."""
    flaky_rate: float = 0.01
    """The share of flips from which on a test is flaky: rarer ones cost less than the work on
    them."""
    least_verdicts: int = 10
    """Below so many verdicts a test is new, and is not called flaky."""
    broken_after: int = 3
    """How many sources in a row must fail, without a flip, for a test to be broken. A test that
    fails half the time fails three times in a row once in eight."""
    infrastructure_share: float = 0.8
    """A job in which a larger share of the tests fails teaches nothing about single tests."""
    infrastructure_least: int = 5
    """In a job with fewer tests, a share says nothing, and every result counts."""
    slower: float = 1.25
    """The ratio of medians from which on a test is slower (or, turned round, faster). Durations are
    kept to 3.5 %, and shared machines vary by more than that."""
    accuse_verdicts: int = 10
    """A flip among so many verdicts before a test began to fail means that no commit is accused."""
    accuse_hours: int = 48
    """A flip within so many hours before a test began to fail means the same, where verdicts are
    frequent."""
    quarantine_days: int = 30
    """The longest that a test may be quarantined without somebody deciding again."""
    healed_passes: int = 5
    """How many passes in a row heal a quarantined test."""
    healed_days: int = 3
    """Over how many days these passes must spread: five in one hour share one good machine."""


class HistoryTables(msgspec.Struct, frozen=True):
    """The table of interlock.toml about the memory of results."""

    history: HistorySettings = HistorySettings()


def read_history_settings(folder: Path = Path()) -> HistorySettings:
    """`[history]` of the project in a folder. Only that table is looked at: the rest of the file is
    for verbs that load the database."""
    path = folder / "interlock.toml"
    if not path.exists():
        return HistorySettings()
    try:
        table = tomllib.loads(read_text(path, 1_000_000)).get("history", {})
        return check_settings(msgspec.convert(table, HistorySettings))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SourceError(f"{path}: {error}") from None


def check_settings(settings: HistorySettings) -> HistorySettings:
    """SourceError if a number makes no sense."""
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
