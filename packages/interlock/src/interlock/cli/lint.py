"""The verb lint: check prompts and skills that teach signals, transcripts that use them, and
comments.

A prompt has findings. A transcript has a verdict: the signals accepted and refused, with reasons. A
person's comment has a decision.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import open_input
from interlock.cli.output import Json, echo, echo_json
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.testing.lint import LintReport


class LintKind(StrEnum):
    """The kinds of files."""

    PROMPT = "prompt"
    TRANSCRIPT = "transcript"
    COMMENT = "comment"


class Format(StrEnum):
    """The formats of recorded transcripts."""

    TEXT = "text"
    CLAUDE = "claude-stream-json"
    CODEX = "codex-jsonl"
    LINES = "lines"


Files = Annotated[
    list[str] | None, typer.Argument(help="Prompts, skills, transcripts, comments; - is stdin.")
]
As = Annotated[LintKind | None, typer.Option("--as", help="Treat the files as this kind.")]
Role = Annotated[str | None, typer.Option(help="The role that speaks, or is taught.")]
Task = Annotated[str | None, typer.Option(help="The task that was dispatched.")]
Recorded = Annotated[Format | None, typer.Option("--format", help="The transcripts' format.")]
Strict = Annotated[bool, typer.Option("--strict-signals", help="Require the dispatch's nonce.")]
Nonce = Annotated[str | None, typer.Option(help="The dispatch's nonce.")]
Jsonl = Annotated[
    list[str] | None,
    typer.Option(
        help="Many transcripts: {id, role, task_id, text} or {id, format, stream} a line."
    ),
]


@app.command()
def lint(
    files: Files = None,
    as_: As = None,
    role: Role = None,
    task: Task = None,
    recorded: Recorded = None,
    strict_signals: Strict = False,
    nonce: Nonce = None,
    jsonl: Jsonl = None,
    json: Json = False,
) -> None:
    """Check prompts, transcripts and human comments. Exit 6 on findings, or a refusal."""
    from interlock.testing.lint import LintReport
    from interlock.testing.transcript import Record

    if not files and not jsonl:
        raise SourceError("name a file to check, or many transcripts with --jsonl FILE")
    if strict_signals and not nonce:
        raise SourceError("--strict-signals needs the dispatch's nonce: --nonce NONCE")
    base = Record(
        id="",
        role=role,
        task_id=task,
        nonce=nonce,
        strict=strict_signals,
        format=recorded.value if recorded else None,
    )
    report = LintReport(base)
    for name in files or ():
        with open_input(name, "prompt, skill, transcript or comment") as file:
            report.add_file(name, file.read(), kind=as_.value if as_ else None)
    for name in jsonl or ():
        with open_input(name, "file of transcripts") as lines:
            report.add_records(name, lines)
    _echo_report(report, json)
    if report.findings or report.refused:
        raise typer.Exit(ExitCode.FINDINGS)


def _echo_report(report: "LintReport", json: bool) -> None:
    if json:
        echo_json({"findings": report.findings, "records": report.records})
        return
    for one in report.findings:
        echo(f"{one['file']}:{one['line']}: {one['id']}: {one['message']}")
        echo(f"    fix: {one['fix']}")
    for record in report.records:
        if "decision" in record:
            echo(f"{record['id']}: {record['decision']}, {record['why']}")
            continue
        for verdict in _list_verdicts(record):
            echo(f"{record['id']}{_format_verdict(verdict)}")
    if not report.findings and not report.records:
        echo("no findings")


def _list_verdicts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the verdicts of a record that a person wants to see: its lines, or else its last
    message."""
    if record.get("lines"):
        return list(record["lines"])
    silent = {"accepted": None, "refused": None, "sentence": "no line signals", "where": None}
    return [record if "accepted" in record else silent]


def _format_verdict(verdict: dict[str, Any]) -> str:
    where = f":{verdict['where']}" if verdict["where"] else ""
    if verdict["refused"]:
        return f"{where}: refused {verdict['refused']}: {verdict['sentence']}"
    note = f" ({verdict['sentence']})" if verdict["sentence"] else ""
    if not verdict["accepted"]:
        return f"{where}:{note.strip('()') and ' ' + note.strip(' ()')}"
    subject = verdict["accepted"]["subject"]
    return (
        f"{where}: accepted {verdict['accepted']['signal']}{f' {subject}' if subject else ''}{note}"
    )
