"""The verbs about human answers on issues: what a recorded comment would be taken for, and why.

Reads lines of JSON and changes nothing. A line that is no record is
told as an error beside the others.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from interlock.cli.door import ExitCode, app
from interlock.cli.show import Json, counted, document, say

if TYPE_CHECKING:
    from interlock.epic.approval.comment_thread import May

hitl = typer.Typer(help="Human answers on issues: how comments are read.", no_args_is_help=True)
app.add_typer(hitl, name="hitl")


@hitl.callback()
def _group() -> None:
    pass


@hitl.command("read")
def read(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Comments as JSONL; - is stdin.")],
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="LOGIN", help="Only these may answer; may be repeated."),
    ] = None,
    request_id: Annotated[str, typer.Option(metavar="ID", help="The request that was asked.")] = "",
    own: Annotated[
        str, typer.Option(metavar="LOGIN", help="The account that Interlock uses itself.")
    ] = "",
    json: Json = False,
) -> None:
    """What each recorded comment would be taken for, and why."""
    from interlock.cli.analyst import opened
    from interlock.epic.approval.comment_thread import may_answer

    may = may_answer(allow or ())
    with opened(file, "file of comments") as source:
        rows = [
            _row(number, line.removeprefix(b"\xef\xbb\xbf"), request_id, own, may)
            for number, line in enumerate(source, 1)
            if line.strip()
        ]
    if json:
        document({"comments": rows})
    else:
        _show(rows)
    if any("error" in row for row in rows):
        raise typer.Exit(ExitCode.FINDINGS)


def _row(number: int, line: bytes, request_id: str, own: str, may: "May") -> dict[str, Any]:
    from interlock.epic.approval.comment_record import read_record, verdict_of

    record = read_record(line)
    if isinstance(record, str):
        fix = (
            "Write {id, author: {login, association, bot}, comment, created_after_request, labels}"
        )
        return {"line": number, "error": f"{record}. {fix} on one line."}
    verdict = verdict_of(record, request_id, own, may)
    return {
        "line": number,
        "id": record.id,
        "author": record.author.login,
        "outcome": verdict.outcome.value,
        "why": verdict.why,
        "notes": verdict.notes,
        "evidence": [
            {
                "start": span.start,
                "end": span.end,
                "kind": span.kind,
                "text": record.comment[span.start : span.end],
            }
            for span in verdict.evidence
        ],
    }


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if "error" in row:
            say(f"line {row['line']}: {row['error']}")
        else:
            say(f"{row['id']}  {row['author']}: {row['outcome']}, {row['why']}")
    if not rows:
        say("no comments")
    errors = sum("error" in row for row in rows)
    if errors:
        say(f"{counted(errors, 'line is', 'lines are')} no comment")
