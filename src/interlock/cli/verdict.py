"""Saying what verify found: for people, for machines, and as the reason not to run a circuit."""

import msgspec
import typer

from interlock.cli.door import Exit
from interlock.cli.show import say, tell
from interlock.core.notation import Written
from interlock.core.verify import Finding, Report, verify


def refuse_unsound(written: Written) -> None:
    """A circuit with errors is not run: its findings are shown instead."""
    report = verify(written)
    errors = [finding for finding in report.findings if finding.level == "error"]
    if errors:
        tell(f"circuit {written.circuit.name} is not sound, so nothing was started:")
        for finding in errors:
            tell(describe(finding))
        raise typer.Exit(Exit.FINDINGS)


def say_report(report: Report) -> None:
    for finding in report.findings:
        say(describe(finding))
    worst = report.worst_case
    say(f"{report.circuit} v{report.version}: at most {worst.dispatches} dispatches per case")
    if worst.reason:
        say(f"  {worst.reason}")
    if report.sound:
        say("sound" if not report.findings else "sound, with the remarks above")


def describe(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}: " if finding.file else ""
    lines = [f"{place}{finding.level} {finding.id}: {finding.message}"]
    if finding.counter_example is not None:
        shown = msgspec.json.encode(finding.counter_example).decode()
        lines.append(f"    for example: {shown}")
    if finding.fix:
        lines.append(f"    fix: {finding.fix}")
    return "\n".join(lines)
