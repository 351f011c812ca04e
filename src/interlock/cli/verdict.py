"""Saying what was found about a circuit: for people, and as the reason not to run it.

Beside what verify proves, the prompts are looked at: a template that can never be filled is found
before the first case meets it.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
import typer

from interlock.cli.door import ExitCode
from interlock.cli.show import say, tell
from interlock.engine.circuit import Circuit
from interlock.engine.notation import CircuitSource
from interlock.engine.verify import verify
from interlock.engine.verify.finding import Finding, VerifyReport

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
    from interlock.runtime.prompt import FACTS, unfillable

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
