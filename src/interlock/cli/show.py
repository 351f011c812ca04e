"""How the verbs show things: one JSON document for machines, aligned text for people."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

SCHEMA_VERSION = 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Db = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="The database; default .interlock/interlock.db."),
]
RunId = Annotated[
    int | None, typer.Argument(metavar="RUN", help="The run's number; default the newest.")
]
CircuitName = Annotated[
    str, typer.Argument(metavar="CIRCUIT", help="A circuit's name, or a path ending in .yaml.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Another threshold; may be repeated."),
]


def document(fields: Any) -> None:
    """The one JSON object a verb prints with --json."""
    body = fields if isinstance(fields, dict) else msgspec.to_builtins(fields)
    text = msgspec.json.encode({"schema_version": SCHEMA_VERSION, **body})
    sys.stdout.write(harmless(msgspec.json.format(text, indent=2).decode()) + "\n")


def say(text: str = "") -> None:
    """A line for people, the result of the verb."""
    sys.stdout.write(printable(text) + "\n")


def tell(text: str) -> None:
    """A line for people beside the result: notices, progress."""
    sys.stderr.write(printable(text) + "\n")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns; nothing for no rows."""
    for line in aligned(head, rows):
        say(line)


def aligned(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Columns as wide as they must be, under their heads; no line for no rows."""
    lines = [[str(cell) for cell in row] for row in rows]
    if not lines:
        return []
    lines.insert(0, list(head))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def printable(text: str) -> str:
    """Text from outside cannot move the cursor, ring the bell or rewrite the screen."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else f"\\x{ord(each):02x}" for each in text
    )


def harmless(text: str) -> str:
    """The same JSON, with characters that a terminal could obey written as escapes."""
    return text if text.isascii() and "\x7f" not in text else "".join(map(_escaped, text))


def _escaped(sign: str) -> str:
    if sign.isprintable() or sign == "\n":
        return sign
    units = sign.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def clock_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
