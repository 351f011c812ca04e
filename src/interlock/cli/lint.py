"""The verb lint: prompts and skills that teach signals, and transcripts that say them.

A prompt has findings. A transcript has a verdict: what would be accepted, what refused, and why.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.options import open_input
from interlock.cli.output import Json, echo, echo_json
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.testing.transcript import Record


class LintKind(StrEnum):
    """What a file is."""

    PROMPT = "prompt"
    TRANSCRIPT = "transcript"


class Format(StrEnum):
    """How a transcript was recorded."""

    TEXT = "text"
    CLAUDE = "claude-stream-json"
    CODEX = "codex-jsonl"
    LINES = "lines"


class LintReport:
    """Findings and verdicts, as they come."""

    def __init__(self) -> None:
        self.findings: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.refused = False

    def find(self, name: str, file: str, line: int, message: str, fix: str) -> None:
        self.findings.append(
            {"id": name, "file": file, "line": line, "message": message, "fix": fix}
        )


Files = Annotated[
    list[str] | None, typer.Argument(help="Prompts, skills, transcripts; - is stdin.")
]
As = Annotated[
    LintKind | None, typer.Option("--as", help="Treat the files as this, whatever they contain.")
]
Role = Annotated[str | None, typer.Option(help="Who speaks in the transcript, or is taught.")]
Task = Annotated[str | None, typer.Option(help="The task that was dispatched.")]
Recorded = Annotated[Format | None, typer.Option("--format", help="How it was recorded.")]
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
    """Check prompts and transcripts. Exit 6 on findings or, for one transcript, a refusal."""
    from interlock.testing.transcript import Record

    if not files and not jsonl:
        raise SourceError("lint what? Name a file, or many transcripts with --jsonl FILE")
    if strict_signals and not nonce:
        raise SourceError("--strict-signals needs the dispatch's mark: --nonce NONCE")
    base = Record(
        id="",
        role=role,
        task_id=task,
        nonce=nonce,
        strict=strict_signals,
        format=recorded.value if recorded else None,
    )
    report = LintReport()
    for name in files or ():
        _lint_file(name, as_, base, report)
    for name in jsonl or ():
        _lint_records(name, base, report)
    _echo_report(report, json)
    if report.findings or report.refused:
        raise typer.Exit(ExitCode.FINDINGS)


def _lint_file(name: str, kind: LintKind | None, base: "Record", report: LintReport) -> None:
    from interlock.testing.lint import is_prompt, lint_prompt
    from interlock.testing.transcript import check_transcript, detect_format

    text = _read_text(name, report)
    form = base.format or detect_format(text)
    asked = base.role is not None or base.format is not None or form != "text"
    prompt = kind == LintKind.PROMPT if kind else not asked and is_prompt(text)
    if prompt:
        for one in lint_prompt(text, base.role):
            report.find(one.id, name, one.line, one.message, one.fix)
        return
    record = msgspec.structs.replace(base, id=name, format=form, stream=text)
    judged = check_transcript(record)
    report.refused |= judged.is_refused
    report.records.append(judged.to_plain())


def _lint_records(name: str, base: "Record", report: LintReport) -> None:
    from interlock.testing.transcript import check_transcript, read_record

    with open_input(name, "file of transcripts") as lines:
        for number, raw in enumerate(lines, 1):
            if not raw.strip():
                continue
            record = read_record(raw.removeprefix(b"\xef\xbb\xbf"), base)
            if isinstance(record, str):
                fix = "Write {id, role, task_id, text} or {id, format, stream} on one line."
                report.find("record.unreadable", name, number, record, fix)
            else:
                report.records.append(check_transcript(record).to_plain())


def _read_text(name: str, report: LintReport) -> str:
    with open_input(name, "prompt, skill or transcript") as file:
        raw = file.read()
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"Byte {error.start + 1} is not UTF-8; read as an unknown character."
        report.find("file.not-utf8", name, line, message, "Save the file as UTF-8.")
        return raw.decode(errors="replace")


def _echo_report(report: LintReport, json: bool) -> None:
    if json:
        echo_json({"findings": report.findings, "records": report.records})
        return
    for one in report.findings:
        echo(f"{one['file']}:{one['line']}: {one['id']}: {one['message']}")
        echo(f"    fix: {one['fix']}")
    for record in report.records:
        for verdict in _list_verdicts(record):
            echo(f"{record['id']}{_format_verdict(verdict)}")
    if not report.findings and not report.records:
        echo("nothing to find fault with")


def _list_verdicts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What a person wants to see of a record: its lines, or else its last message."""
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
