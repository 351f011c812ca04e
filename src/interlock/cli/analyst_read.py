"""The verb `analyst read`: one report or log as failure records and a tally.

Decides by the content which reader it needs. Prints each failure as soon as it is read.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.analyst import analyst
from interlock.cli.show import harmless, tell
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.rca.failure import Failure
    from interlock.rca.launch import TestCounts
    from interlock.rca.sources.leaf import SourceEntry


@analyst.command("read")
def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JUnit XML, or a console log.")],
) -> None:
    """The failures of one report or log, and its number of tests."""
    from interlock.rca.sources.searching import leaves_of

    if file.is_dir():
        raise SourceError(f"{file} is a folder: give one file.")
    leaves, _ = leaves_of(str(file))
    if len(leaves) != 1:
        raise SourceError(f"{file} holds {len(leaves)} files: give one of them.")
    tally = None
    for each in _read(leaves[0]):
        if hasattr(each, "tests"):
            tally = each
        else:
            _print(each)
    _print({"summary": tally})


def _read(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    """The failures, then the tally."""
    kind = leaf.kind()
    if kind in ("junit", "xml"):
        yield from _report(leaf)
    elif kind == "binary":
        raise SourceError(f"{leaf.label} is neither a report nor a text.")
    else:
        yield from _log(leaf)


def _report(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.rca.sources.junit import read_junit

    with leaf.open() as stream:
        report = read_junit(stream, leaf.name)
        yield from report
    for note in report.notes:
        tell(note)
    yield report.tally


def _log(leaf: "SourceEntry") -> "Iterator[Failure | TestCounts]":
    from interlock.system.test_output.ci_lines import lines_of
    from interlock.system.test_output.ci_log import read_log

    with leaf.open() as stream:
        found = read_log(lines_of(stream))
    yield from found.failures
    yield found.tally


def _print(record: object) -> None:
    sys.stdout.write(harmless(msgspec.json.encode(record).decode()) + "\n")
