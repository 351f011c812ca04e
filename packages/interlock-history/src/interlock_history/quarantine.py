"""Quarantine: a file in the repository lists tests whose failures do not count for a while.

Every entry names an owner, a reason and the day it ends. Quarantined tests keep running, and
nothing is quarantined automatically. Expired entries do not count. People edit the file too: the
text around entries stays.
"""

import tomllib
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from interlock.system.errors import SourceError, UsageError
from interlock.system.files import read_text, save_file
from interlock.system.text import plural
from interlock_history.settings import HistorySettings

if TYPE_CHECKING:
    from interlock_history.memory import History
    from interlock_history.verdicts import Verdict

_LARGEST: Final = 4_000_000
_DAY: Final = 86_400.0
Finding = Literal["expired", "healed", "unknown", "too-long"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A quarantined test, or all tests that match a pattern."""

    test: str
    """The id of a test; `*` matches anything."""
    owner: str
    reason: str
    added: date
    expires: date
    """The last day on which the entry counts."""
    job: str = ""
    """The only job and variant in which the entry counts; empty for all."""

    def covers(self, test: str, label: str | None = None) -> bool:
        fits = test == self.test or fnmatchcase(test, self.test.replace("[", "[[]"))
        return fits and (not self.job or label is None or label == self.job)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    test: list[Entry] = []


class Quarantine(msgspec.Struct, frozen=True):
    """All entries of a project."""

    entries: tuple[Entry, ...] = ()

    def find(self, test: str, today: date, label: str | None = None) -> Entry | None:
        """Return the entry that excuses a test today, or None."""
        return next(
            (each for each in self.entries if each.expires >= today and each.covers(test, label)),
            None,
        )


def read_quarantine(path: Path) -> Quarantine:
    """Return the entries of a file, or none if it does not exist. Raise SourceError if it is
    invalid."""
    if not path.exists():
        return Quarantine()
    try:
        found = msgspec.convert(tomllib.loads(read_text(path, _LARGEST)), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise SourceError(f"{path}: {error}") from None
    for number, each in enumerate(found.test, 1):
        if not (each.test.strip() and each.owner.strip() and each.reason.strip()):
            raise SourceError(
                f"{path}: entry {number} ({each.test!r}) must name a test, an owner and a reason"
            )
    return Quarantine(tuple(found.test))


def make_entry(
    test: str,
    owner: str,
    reason: str,
    today: date,
    days: int,
    settings: HistorySettings,
    job: str = "",
) -> Entry:
    """Return a new entry. Raise UsageError if it says too little or lasts too long."""
    words = (" ".join(text.split()) for text in (test, owner, reason))
    test, owner, reason = words
    if not (test and owner and reason):
        raise UsageError("a quarantine needs a test, an owner and a reason")
    if not test.strip("*?"):
        raise UsageError(f"{test!r} would quarantine every test: name some")
    if not 1 <= days <= settings.quarantine_days:
        raise UsageError(
            f"a quarantine lasts 1 to {settings.quarantine_days} days, not {days}; somebody "
            "decides again after that (history.quarantine_days changes the limit)"
        )
    return Entry(
        test=test,
        owner=owner,
        reason=reason,
        added=today,
        expires=today + timedelta(days=days),
        job=job,
    )


def add_entry(path: Path, entry: Entry) -> None:
    """Append an entry to the file. Raise UsageError if the test has one already."""
    import tomlkit

    known = read_quarantine(path).entries
    if any((each.test, each.job) == (entry.test, entry.job) for each in known):
        raise UsageError(f"{entry.test} is quarantined already: remove it first, then add it anew")
    document = tomlkit.parse(read_text(path, _LARGEST) if path.exists() else "")
    rows = document.get("test")
    if rows is None:
        rows = tomlkit.aot()
        document.append("test", rows)
    fields = {name: value for name, value in msgspec.structs.asdict(entry).items() if value}
    rows.append(tomlkit.item(fields))
    save_file(path, tomlkit.dumps(document).encode())


def remove_entries(path: Path, test: str) -> int:
    """Remove the entries for exactly that test or pattern; return their number."""
    import tomlkit

    entries = read_quarantine(path).entries
    gone = [number for number, each in enumerate(entries) if each.test == test]
    if gone:
        document = tomlkit.parse(read_text(path, _LARGEST))
        rows = document["test"]
        for number in reversed(gone):
            del rows[number]
        if len(gone) == len(entries):
            del document["test"]
        save_file(path, tomlkit.dumps(document).encode())
    return len(gone)


class CheckedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, its problem if any, and the current state of its tests."""

    entry: Entry
    findings: tuple[Finding, ...]
    text: str
    tests: int


def check_quarantine(
    quarantine: Quarantine, memory: "History", project: str, today: date
) -> list[CheckedEntry]:
    """Return every entry with its state: expired, no longer needed, or fine."""
    lanes = memory.list_lanes(project)
    known = {lane: [test for test, _ in memory.iterate_rows(lane)] for lane in lanes}
    checked = []
    for entry in quarantine.entries:
        covered = [
            (lane, test)
            for lane, tests in known.items()
            for test in tests
            if entry.covers(test, lane.label)
        ]
        histories = [memory.list_verdicts(lane, test) for lane, test in covered]
        checked.append(_check_entry(entry, histories, memory.settings, today))
    return checked


def _check_entry(
    entry: Entry, histories: Sequence[Sequence["Verdict"]], settings: HistorySettings, today: date
) -> CheckedEntry:
    findings: list[Finding] = []
    words = []
    if entry.expires < today:
        findings.append("expired")
        words.append(f"expired {plural((today - entry.expires).days, 'day')} ago: decide again")
    else:
        words.append(f"{plural((entry.expires - today).days, 'day')} left")
    if (entry.expires - entry.added).days > settings.quarantine_days:
        findings.append("too-long")
        words.append(f"lasts longer than {settings.quarantine_days} days")
    if not histories:
        findings.append("unknown")
        words.append("no test that is remembered matches it")
    elif all(is_healed(each, settings) for each in histories):
        findings.append("healed")
        least = min(map(_count_passes, histories))
        words.append(f"healed: passed {least} times in a row; remove it")
    else:
        sick = [each for each in histories if not is_healed(each, settings)]
        words.append(f"{plural(len(sick), 'test')} not healed yet")
    return CheckedEntry(
        entry=entry, findings=tuple(findings), text="; ".join(words), tests=len(histories)
    )


def is_healed(verdicts: Iterable["Verdict"], settings: HistorySettings) -> bool:
    """Return True if a test passed often enough, over enough days, without failing in between."""
    counted = [each for each in verdicts if each.status != "skip"]
    number = _count_passes(counted)
    if number < settings.healed_passes:
        return False
    return counted[-1].column.at - counted[-number].column.at >= settings.healed_days * _DAY


def _count_passes(verdicts: Iterable["Verdict"]) -> int:
    counted = [each.status for each in verdicts if each.status != "skip"]
    number = 0
    while number < len(counted) and counted[-1 - number] == "pass":
        number += 1
    return number
