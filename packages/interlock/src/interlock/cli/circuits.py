"""Verbs about circuits: circuit list, show, draw, verify and schema."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import read_thresholds
from interlock.cli.output import CircuitName, Json, Sets, echo, echo_json, echo_table
from interlock.system.errors import CircuitError, SourceError

if TYPE_CHECKING:
    from interlock.api.circuits import UnsoundError
    from interlock.engine.circuit_file import CircuitSource
    from interlock.engine.verify.finding import Finding, VerifyReport


circuit = typer.Typer(help="Circuits: list, show, draw and verify them.", no_args_is_help=True)
app.add_typer(circuit, name="circuit")


@circuit.command("list")
def list_circuits(json: Json = False) -> None:
    """List the circuits of this project and the built-in ones."""

    from interlock.api import circuits
    from interlock.runtime.circuits import load_bundle

    rows: list[dict[str, Any]] = []
    for each in circuits.list_circuits(Path()):
        row: dict[str, Any] = {"name": each.name, "where": each.where, "file": str(each.file)}
        try:
            found = load_bundle(each.file).open().circuit
            row |= {"version": found.version, "steps": len(found.steps), "problem": ""}
        except (CircuitError, SourceError) as error:
            row |= {"version": 0, "steps": 0, "problem": str(error)}
        rows.append(row)
    if json:
        echo_json({"circuits": rows})
        return
    echo_table(
        ("CIRCUIT", "VERSION", "STEPS", "WHERE", ""),
        ((r["name"], r["version"], r["steps"], r["where"], r["problem"]) for r in rows),
    )


@circuit.command()
def show(name: CircuitName, json: Json = False) -> None:
    """Show a circuit: its steps and rules, in order."""
    from interlock.engine.draw import draw_text

    written = _load_circuit(name)
    if json:
        echo_json({"file": written.file, "circuit": written.document.value})
    else:
        echo(draw_text(written.circuit).rstrip())


@circuit.command()
def draw(name: CircuitName, json: Json = False) -> None:
    """Draw a circuit as a Mermaid flowchart."""
    from interlock.engine.draw import draw as draw_mermaid

    picture = draw_mermaid(_load_circuit(name).circuit)
    if json:
        echo_json({"mermaid": picture})
    else:
        echo(picture.rstrip())


@circuit.command("verify")
def verify_circuit(
    name: CircuitName,
    sets: Sets = None,
    notes: Annotated[
        bool, typer.Option("--notes", help="Also list rules that hold for the same answers.")
    ] = False,
    json: Json = False,
) -> None:
    """Prove a circuit sound, or show what is wrong. Exit 6 on errors and warnings."""
    from interlock.api.circuits import verify_source
    from interlock.engine.verify.finding import Finding, VerifyReport, WorstCase

    try:
        written = _load_circuit(name)
        report = verify_source(_apply_thresholds(written, sets))
    except CircuitError as error:
        unreadable = Finding(
            "circuit.unreadable", "error", error.problem, "", file=error.file, line=error.line
        )
        report = VerifyReport(name, 0, (unreadable,), WorstCase(0, False))
    if json:
        echo_json({**msgspec.to_builtins(report), "sound": report.sound})
    else:
        _echo_report(report, notes)
    if any(finding.level != "note" for finding in report.findings):
        raise typer.Exit(ExitCode.FINDINGS)


@circuit.command()
def schema(json: Json = False) -> None:
    """Print the JSON Schema of a circuit file."""
    from interlock.engine.circuit_file import build_circuit_schema

    if json:
        echo_json({"schema": build_circuit_schema()})
    else:
        echo(msgspec.json.format(msgspec.json.encode(build_circuit_schema()), indent=2).decode())


def _load_circuit(name: str) -> "CircuitSource":
    from interlock.runtime.circuits import find_circuit

    return find_circuit(name, Path()).open()


def _apply_thresholds(written: "CircuitSource", sets: list[str] | None) -> "CircuitSource":
    """Return the circuit with the user's thresholds."""
    from interlock.api.circuits import check_thresholds

    changes = check_thresholds(written.circuit, read_thresholds(sets or ()))
    changed = written.circuit.with_thresholds(changes)
    return msgspec.structs.replace(written, circuit=changed)


_OVERLAP = "circuit.overlap"
"""Findings of this kind are only counted by default: tables whose first matching row wins have
many."""


def format_unsound(error: "UnsoundError") -> str:
    """Return all findings that keep a circuit from being run."""
    head = f"circuit {error.circuit} is not sound, so nothing was started:"
    return "\n".join([head, *map(format_finding, error.findings)])


def _echo_report(report: "VerifyReport", notes: bool) -> None:
    overlaps = sum(finding.id == _OVERLAP for finding in report.findings)
    for finding in report.findings:
        if finding.id != _OVERLAP:
            echo(format_finding(finding))
        elif notes:
            echo(_format_headline(finding))
    if not report.version:
        return
    worst = report.worst_case
    echo(f"{report.circuit} v{report.version}: at most {worst.dispatches} dispatches per case")
    if worst.reason:
        echo(f"  {worst.reason}")
    if overlaps:
        many = f"{overlaps} pairs of rules hold" if overlaps > 1 else "2 rules hold"
        listed = "" if notes else "; --notes lists them"
        echo(f"{many} for the same answers, and the first wins{listed}")
    if report.sound:
        echo("sound, with the remarks above" if len(report.findings) > overlaps else "sound")
    else:
        levels = Counter(finding.level for finding in report.findings)
        words = (f"{count} {level}{'s' * (count > 1)}" for level, count in levels.items())
        echo(f"not sound: {', '.join(words)}")


def _format_headline(finding: "Finding") -> str:
    line = f"{finding.line}:" if finding.line else ""
    place = f"{finding.file}:{line} " if finding.file else ""
    return f"{place}{finding.level} {finding.id}: {finding.message}"


def format_finding(finding: "Finding") -> str:
    lines = [_format_headline(finding)]
    if finding.counter_example is not None:
        shown = msgspec.json.encode(finding.counter_example).decode()
        lines.append(f"    for example: {shown}")
    if finding.fix:
        lines.append(f"    fix: {finding.fix}")
    return "\n".join(lines)
