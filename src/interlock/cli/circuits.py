"""Verbs about circuits: circuit list, show, draw, verify, schema; and simulate.

Saying what was found about a circuit: for people, and as the reason not to run it.

Beside what verify proves, the prompts are looked at: a template that can never be filled is found
before the first case meets it.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.show import CircuitName, Json, Sets, document, say, table, tell
from interlock.engine.circuit import Circuit
from interlock.engine.circuit_file import CircuitSource
from interlock.engine.verify import verify
from interlock.engine.verify.finding import Finding, VerifyReport
from interlock.system.errors import CircuitError, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.engine.simulate import Simulation


circuit = typer.Typer(help="Circuits: list, show, draw and verify them.", no_args_is_help=True)
app.add_typer(circuit, name="circuit")

_SHOWN_PATHS = 10


@circuit.command("list")
def list_circuits(json: Json = False) -> None:
    """The circuits of this project and the built-in ones."""
    from interlock.runtime.circuits import bundle, shelves

    rows: list[dict[str, Any]] = []
    for shelf in shelves(Path()):
        for name, file in shelf.files().items():
            row: dict[str, Any] = {"name": name, "where": shelf.where, "file": str(file)}
            try:
                found = bundle(file).open().circuit
                row |= {"version": found.version, "steps": len(found.steps), "problem": ""}
            except (CircuitError, SourceError) as error:
                row |= {"version": 0, "steps": 0, "problem": str(error)}
            rows.append(row)
    if json:
        document({"circuits": rows})
        return
    table(
        ("CIRCUIT", "VERSION", "STEPS", "WHERE", ""),
        ((r["name"], r["version"], r["steps"], r["where"], r["problem"]) for r in rows),
    )


@circuit.command()
def show(name: CircuitName, json: Json = False) -> None:
    """The table of a circuit: steps and rules, in order."""
    from interlock.engine.draw import draw_text

    written = _open(name)
    if json:
        document({"file": written.file, "circuit": written.page.value})
    else:
        say(draw_text(written.circuit).rstrip())


@circuit.command()
def draw(name: CircuitName, json: Json = False) -> None:
    """The circuit as a Mermaid flowchart."""
    from interlock.engine.draw import draw as drawn

    picture = drawn(_open(name).circuit)
    if json:
        document({"mermaid": picture})
    else:
        say(picture.rstrip())


@circuit.command()
def verify_circuit(name: CircuitName, sets: Sets = None, json: Json = False) -> None:
    """Prove a circuit sound, or show what is wrong. Exit 6 on errors and warnings."""
    from interlock.engine.verify.finding import Finding, VerifyReport, WorstCase

    try:
        written = _open(name)
        report = judged(_changed(written, sets))
    except CircuitError as error:
        unreadable = Finding(
            "circuit.unreadable", "error", error.problem, "", file=error.file, line=error.line
        )
        report = VerifyReport(name, 0, (unreadable,), WorstCase(0, False))
    if json:
        document({**msgspec.to_builtins(report), "sound": report.sound})
    else:
        say_report(report)
    if any(finding.level != "note" for finding in report.findings):
        raise typer.Exit(ExitCode.FINDINGS)


@circuit.command()
def schema(json: Json = False) -> None:
    """The JSON Schema of a circuit file."""
    from interlock.engine.circuit_file import circuit_schema

    if json:
        document({"schema": circuit_schema()})
    else:
        say(msgspec.json.format(msgspec.json.encode(circuit_schema()), indent=2).decode())


@app.command()
def simulate(
    name: CircuitName,
    cases: Annotated[int, typer.Option("--cases", metavar="N", min=1, max=1_000_000)] = 1000,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="The same seed gives the same walks.")
    ] = 0,
    sets: Sets = None,
    json: Json = False,
) -> None:
    """Walk a circuit with random legal answers. Where do cases end, and at what cost?"""
    import random

    from interlock.engine.simulate import simulate as walked

    own = _open(name)
    written = _changed(own, sets)
    refuse_unsound(written, own.circuit)
    result = walked(written.circuit, cases, random.Random(seed))  # noqa: S311
    if json:
        document({"circuit": name, "seed": seed, **msgspec.to_builtins(result)})
    else:
        _say_simulation(result)


def _open(name: str) -> "CircuitSource":
    from interlock.runtime.circuits import find_circuit

    return find_circuit(name, Path()).open()


def _changed(written: "CircuitSource", sets: list[str] | None) -> "CircuitSource":
    """The circuit with the thresholds a user gave instead of its own."""
    from interlock.cli.options import thresholds

    changed = written.circuit.with_thresholds(thresholds(written.circuit, sets or ()))
    return msgspec.structs.replace(written, circuit=changed)


def _say_simulation(result: "Simulation") -> None:
    spread = result.dispatches
    say(f"{result.cases} cases with random legal answers")
    say(
        f"dispatches per case: {spread.least} at least, {spread.median} median, "
        f"{spread.p95} in 95 of 100, {spread.most} at most"
    )
    say()
    table(("END", "CASES", "PART"), _parts(result.ends, result.cases))
    table(("STUCK BECAUSE", "CASES", "PART"), _parts(result.stuck, result.cases))
    say()
    commonest = result.paths[:_SHOWN_PATHS]
    table(
        ("CASES", "PATH"),
        ((path.cases, " > ".join((*path.steps, path.end or "stuck"))) for path in commonest),
    )
    if len(result.paths) > len(commonest):
        say(f"… and {len(result.paths) - len(commonest)} rarer paths; --json lists all")
    if result.never:
        say()
        say(f"rules never taken: {', '.join(result.never)}")


def _parts(counts: "Mapping[str, int]", total: int) -> "Iterator[tuple[object, ...]]":
    for name, count in counts.items():
        yield name, count, f"{count / total:.1%}"


_UNREACHABLE = "circuit.unreachable"
_OVERLAP = "circuit.overlap"
"""Told in one line each: tables whose first fitting row goes first have many."""


def judged(written: CircuitSource) -> VerifyReport:
    """All findings about a circuit and its prompts."""
    report = verify(written)
    return msgspec.structs.replace(report, findings=(*_prompts(written), *report.findings))


def refuse_unsound(written: CircuitSource, own: Circuit) -> None:
    """A circuit with errors is not run: its findings are shown instead. `own` is it with its own
    thresholds: a rule that only a user's turn off is told, not refused."""
    errors = [finding for finding in judged(written).findings if finding.level == "error"]
    off = _turned_off(written, own, errors)
    for finding in off:
        tell(f"note: with these thresholds {finding.message}")
    if len(errors) > len(off):
        tell(f"circuit {written.circuit.name} is not sound, so nothing was started:")
        for finding in errors:
            tell(describe(finding))
        raise typer.Exit(ExitCode.FINDINGS)


def _turned_off(written: CircuitSource, own: Circuit, errors: list[Finding]) -> list[Finding]:
    found = [finding for finding in errors if finding.id == _UNREACHABLE]
    if not found or own == written.circuit:
        return []
    by_itself = verify(msgspec.structs.replace(written, circuit=own)).findings
    known = {finding.subject for finding in by_itself if finding.id == _UNREACHABLE}
    return [finding for finding in found if finding.subject not in known]


def say_report(report: VerifyReport) -> None:
    for finding in report.findings:
        say(_headline(finding) if finding.id == _OVERLAP else describe(finding))
    if not report.version:
        return
    worst = report.worst_case
    say(f"{report.circuit} v{report.version}: at most {worst.dispatches} dispatches per case")
    if worst.reason:
        say(f"  {worst.reason}")
    if report.sound:
        say("sound" if not report.findings else "sound, with the remarks above")
        if any(finding.id == _OVERLAP for finding in report.findings):
            say("where two rules hold, the first goes first: nothing to do, if that order is meant")
    else:
        levels = Counter(finding.level for finding in report.findings)
        words = (f"{count} {level}{'s' * (count > 1)}" for level, count in levels.items())
        say(f"not sound: {', '.join(words)}")


def _headline(finding: Finding) -> str:
    line = f"{finding.line}:" if finding.line else ""
    place = f"{finding.file}:{line} " if finding.file else ""
    return f"{place}{finding.level} {finding.id}: {finding.message}"


def describe(finding: Finding) -> str:
    lines = [_headline(finding)]
    if finding.counter_example is not None:
        shown = msgspec.json.encode(finding.counter_example).decode()
        lines.append(f"    for example: {shown}")
    if finding.fix:
        lines.append(f"    fix: {finding.fix}")
    return "\n".join(lines)


def _prompts(written: CircuitSource) -> Iterator[Finding]:
    from interlock.runtime.apps import prompt_names
    from interlock.runtime.prompts import FACTS, unfillable

    known = (*FACTS, *prompt_names(written.circuit.name))
    for step in written.circuit.steps.values():
        problem = unfillable(step.prompt, known)
        if problem:
            yield Finding(
                "circuit.prompt",
                "error",
                f"the prompt of step {step.name!r} can never be filled: {problem}",
                f"write {{{{ case.NAME }}}} for what a case brings; templates can read "
                f"{', '.join(known)}",
                file=written.file,
                line=written.line("steps", step.name, "prompt"),
                subject=step.name,
            )
