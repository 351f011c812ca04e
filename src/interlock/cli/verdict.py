"""Saying what was found about a circuit: for people, and as the reason not to run it.

Beside what verify proves, the prompts are looked at: a template that can never be filled is found
before the first case meets it.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
import typer

from interlock.cli.door import Exit
from interlock.cli.show import say, tell
from interlock.core.notation import Written
from interlock.core.verify import Finding, Report, verify


def judged(written: Written) -> Report:
    """All findings about a circuit and its prompts."""
    report = verify(written)
    return msgspec.structs.replace(report, findings=(*_prompts(written), *report.findings))


def refuse_unsound(written: Written) -> None:
    """A circuit with errors is not run: its findings are shown instead."""
    errors = [finding for finding in judged(written).findings if finding.level == "error"]
    if errors:
        tell(f"circuit {written.circuit.name} is not sound, so nothing was started:")
        for finding in errors:
            tell(describe(finding))
        raise typer.Exit(Exit.FINDINGS)


def say_report(report: Report) -> None:
    for finding in report.findings:
        say(describe(finding))
    if not report.version:
        return
    worst = report.worst_case
    say(f"{report.circuit} v{report.version}: at most {worst.dispatches} dispatches per case")
    if worst.reason:
        say(f"  {worst.reason}")
    if report.sound:
        say("sound" if not report.findings else "sound, with the remarks above")
    else:
        levels = Counter(finding.level for finding in report.findings)
        words = (f"{count} {level}{'s' * (count > 1)}" for level, count in levels.items())
        say(f"not sound: {', '.join(words)}")


def describe(finding: Finding) -> str:
    line = f"{finding.line}:" if finding.line else ""
    place = f"{finding.file}:{line} " if finding.file else ""
    lines = [f"{place}{finding.level} {finding.id}: {finding.message}"]
    if finding.counter_example is not None:
        shown = msgspec.json.encode(finding.counter_example).decode()
        lines.append(f"    for example: {shown}")
    if finding.fix:
        lines.append(f"    fix: {finding.fix}")
    return "\n".join(lines)


def _prompts(written: Written) -> Iterator[Finding]:
    from interlock.runner.prompt import FACTS, unfillable
    from interlock.wiring.apps import prompt_names

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
