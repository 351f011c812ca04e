"""The report of a delivery as `report.html` and `report.md`, and writing both.

What needs a human comes first, then every task with its checks as a matrix. Bounded, since a run
may have thousands of tasks; no text from outside is ever taken for markup.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from interlock.delivery.report.records import CheckEvidence, Delivered, TaskReport
from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock.system.html import content_policy, source_in, templates_of
from interlock.system.text import block, code, counted, fence, prose, span, when, writable

WORDS: Final = ("failed", "asks", "blocked", "at work", "waits", "complete")
"""Where tasks stand, in the order in which a reader should meet them."""
_OUTCOMES: Final = {
    "COMPLETE": "Every task is written, reviewed, audited, proven and merged.",
    "PARTIAL": "Some of the work is merged; the rest needs a human.",
    "FAILED": "Nothing could be merged.",
    "HALTED": "A human stopped it.",
    "PAUSED": "It rests; run it again and it goes on where it was.",
    "RUNNING": "It is at work.",
    "REMEDIATING": "It is at work on what stops all tasks.",
}


class MatrixCell(msgspec.Struct, frozen=True):
    """One check at one look; without a proof it was not run then."""

    proof: CheckEvidence | None

    @property
    def word(self) -> str:
        return "" if self.proof is None else "passed" if self.proof.passed else "failed"

    @property
    def detail(self) -> str:
        if self.proof is None:
            return ""
        tests = "" if self.proof.tests is None else counted(self.proof.tests, "test")
        code = "" if self.proof.passed else f"exit {self.proof.exit_code}"
        return ", ".join(each for each in (code, tests) if each)


class Matrix(msgspec.Struct, frozen=True):
    """All checks of a task: a column for each look, a row for each check and environment."""

    looks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell, ...]], ...]
    last_failure: CheckEvidence | None


def verdict(report: Delivered) -> str:
    """One or two sentences: how it came out."""
    parts = [_OUTCOMES.get(report.outcome, "")]
    refuted = sum(each.refuted for each in report.accounts)
    if refuted:
        claimed = sum(each.claimed for each in report.accounts)
        parts.append(f"{refuted:,} of {counted(claimed, 'claim')} of agents were not true.")
    return " ".join(each for each in parts if each)


def ordered(report: Delivered) -> list[TaskReport]:
    """What needs a look first; otherwise as the plan has them."""
    return sorted(report.tasks, key=lambda each: WORDS.index(each.word))


def matrix(proofs: Sequence[CheckEvidence]) -> Matrix:
    looks = list(dict.fromkeys((each.stage, each.attempt) for each in proofs))
    cells = {(each.check, each.environment, each.stage, each.attempt): each for each in proofs}
    pairs = list(dict.fromkeys((each.check, each.environment) for each in proofs))
    last = next((each for each in reversed(proofs) if not each.passed), None)
    return Matrix(
        tuple(stage if attempt == 1 else f"{stage} {attempt}" for stage, attempt in looks),
        tuple(
            (
                f"{check} ({place})",
                tuple(MatrixCell(cells.get((check, place, *look))) for look in looks),
            )
            for check, place in pairs
        ),
        last,
    )


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def lasted(seconds: float) -> str:
    return span(timedelta(seconds=seconds)) if seconds >= 1 else f"{seconds:.1f} s"


def cost(tokens: int, money: float) -> str:
    said = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join(said + ([f"{money:.2f} spent"] if money else []))


ROOM = 60_000
"""Characters; a comment on a pull request holds 65,536."""
_NEEDS, _ROWS, _MOVES, _OUTPUT = 30, 100, 30, 1_500


def delivery_markdown(report: Delivered) -> str:
    """`report.md` of a run of deliver."""
    parts = [*_head(report), *_needs(report), *_claims(report), *_overview(report)]
    spent = sum(map(len, parts))
    tasks = ordered(report)
    for at, task in enumerate(tasks):
        section = "\n\n".join(_task(task))
        if spent + len(section) > ROOM:
            parts.append(f"*{counted(len(tasks) - at, 'more task')} in `report.html`.*")
            break
        parts.append(section)
        spent += len(section)
    return writable("\n\n".join(parts) + "\n")


def _head(report: Delivered) -> Iterator[str]:
    yield f"# {prose(report.title, 160)}: {report.outcome}"
    yield f"**{prose(verdict(report))}**"
    spending = cost(report.tokens, report.money)
    facts = [
        f"Run {report.run_id}",
        when(moment(report.made_at)),
        f"{lasted(report.seconds)} at work",
        counted(report.dispatches, "dispatch", "dispatches"),
        *([spending] if spending else []),
    ]
    yield f"{prose(', '.join(facts))}."
    if report.is_merged:
        merge = code(f"git merge {report.branch}", 200)
        yield f"Merged work is on branch {code(report.branch)}. Take it with {merge}."
    for note in report.notes[:10]:
        yield f"Note: {prose(note, 600)}"


def _needs(report: Delivered) -> Iterator[str]:
    if not report.needs:
        return
    yield "## Needs a human"
    rows = [
        f"- **{prose(need.task_id, 128)}** {prose(need.sentence, 600)}"
        + "".join(f"  \n  {code(command)}" for command in need.commands)
        for need in report.needs[:_NEEDS]
    ]
    if (more := len(report.needs) - _NEEDS) > 0:
        rows.append(f"- and {more:,} more")
    yield "\n".join(rows)


def _claims(report: Delivered) -> Iterator[str]:
    if not report.accounts:
        return
    yield "## Claims and evidence"
    head = "| agent | role | claimed | verified | refuted | unchecked |\n|---|---|--:|--:|--:|--:|"
    rows = [
        f"| {code(each.agent, 120)} | {prose(each.role, 60)} | {each.claimed:,} |"
        f" {each.verified:,} | {each.refuted:,} | {each.unchecked:,} |"
        for each in report.accounts[:_ROWS]
    ]
    yield "\n".join((head, *rows))


def _overview(report: Delivered) -> Iterator[str]:
    yield "## Tasks"
    head = "| task | | state | checks | commit | cost | time |\n|---|---|---|--:|---|--:|--:|"
    tasks = ordered(report)
    rows = [
        f"| {code(each.task_id, 128)} | {prose(each.title, 120)} | {_state(each)} |"
        f" {sum(p.passed for p in each.proofs)}/{len(each.proofs)} | {code(each.commit[:10])} |"
        f" {cost(each.tokens, each.money)} | {lasted(each.seconds)} |"
        for each in tasks[:_ROWS]
    ]
    if (more := len(tasks) - _ROWS) > 0:
        rows.append(f"| *{counted(more, 'more task')}* | | | | | | |")
    yield "\n".join((head, *rows))


def _task(task: TaskReport) -> Iterator[str]:
    yield f"### {prose(task.task_id, 128)}: {prose(task.title, 160)}"
    by = f", written by {code(task.author, 120)}" if task.author else ""
    merged = f", merged as {code(task.commit[:12])}" if task.commit else ""
    yield f"*{_state(task)}{merged}{by}, {counted(task.attempts, 'try', 'tries')}*"
    if task.summary:
        yield prose(task.summary, 1_500)
    if task.word != "complete":
        why = f"Question {task.question_id}: {task.question}" if task.question else task.why
        yield prose(why, 600)
    looks = matrix(task.proofs)
    if looks.rows:
        head = "| check | " + " | ".join(prose(each, 40) for each in looks.looks) + " |"
        rows = [
            f"| {prose(name, 120)} | "
            + " | ".join(prose(f"{cell.word} {cell.detail}".strip(), 80) for cell in cells)
            + " |"
            for name, cells in looks.rows[:_ROWS]
        ]
        yield "\n".join((head, "|---|" + "---|" * len(looks.looks), *rows))
    if task.word == "failed" and looks.last_failure and looks.last_failure.output:
        yield fence(looks.last_failure.output[-_OUTPUT:])
    for name, texts in (("Rules broken", task.violations), ("Tells", task.tells)):
        if texts:
            yield f"{name}:\n\n" + "\n".join(f"- {prose(each, 300)}" for each in texts[:20])
    if task.moves:
        yield _moves(task)


def _moves(task: TaskReport) -> str:
    head = "| step | signal | next | why | by |\n|---|---|---|---|---|"
    rows = [
        f"| {prose(f'{each.step} {each.attempt}', 60)} | {prose(each.signal, 60)} |"
        f" {prose(each.to, 40)} | {prose(each.why, 300)} | {prose(each.agent, 80)} |"
        for each in task.moves[:_MOVES]
    ]
    if (more := len(task.moves) - _MOVES) > 0:
        rows.append(f"| *{more:,} more* | | | | |")
    table = "\n".join((head, *rows))
    decisions = counted(len(task.moves), "decision")
    return f"<details><summary>{decisions}</summary>\n\n{table}\n\n</details>"


def _state(task: TaskReport) -> str:
    return prose(task.end or task.word.upper(), 20)


CARDS = 400
BUDGET = 12_000_000
"""Bytes for cards; what does not fit is only listed."""
ROWS = 6_000
_PAGE_OUTPUT = 4_000
_MESSAGE = 4_000


def delivery_page(report: Delivered) -> str:
    """`report.html` of a run of deliver."""
    tasks = ordered(report)
    cards = _cards(tasks)
    made = _environment()
    style = source_in(made, "page.css") + source_in(made, "delivery.css")
    script = source_in(made, "page.js")
    html = made.get_template("delivery.html.j2").render(
        report=report,
        verdict=verdict(report),
        cards=cards,
        tasks=tasks[:ROWS],
        number=len(cards),
        states=WORDS,
        format_moment=moment,
        format_duration=lasted,
        format_cost=cost,
        style=Markup(style),  # noqa: S704 -- our own files
        script=Markup(script),  # noqa: S704 -- our own file
        policy=content_policy(style, script),
    )
    return writable(html)


@cache
def _environment() -> Environment:
    made = templates_of("delivery/report")
    made.globals["message"] = lambda said: block(said, _MESSAGE)
    return made


def _cards(tasks: list[TaskReport]) -> list[Markup]:
    template = _environment().get_template("delivery-task.html.j2")
    found: list[Markup] = []
    spent = 0
    for number, task in enumerate(tasks[:CARDS], 1):
        looks = matrix(task.proofs)
        output = looks.last_failure.output if looks.last_failure else ""
        html = template.render(
            task=task,
            number=number,
            looks=looks,
            output=block(output, _PAGE_OUTPUT)[0],
            format_duration=lasted,
            format_cost=cost,
        )
        spent += len(html.encode("utf-8", "replace"))
        if spent > BUDGET:
            break
        found.append(Markup(html))  # noqa: S704 -- escaped by its template
    return found


HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    report: "Delivered", html: Path | None = None, markdown: Path | None = None
) -> list[str]:
    """The paths that were written; both in the run's own folder if none is named."""

    if html is None and markdown is None:
        html, markdown = Path(report.home) / HTML, Path(report.home) / MARKDOWN
    written: list[str] = []
    for path, made in ((html, delivery_page), (markdown, delivery_markdown)):
        if path is not None:
            _write(path, made(report))
            written.append(str(path))
    return written


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise SourceError(f"{path} is a folder; name a file for the report")
        write_file(path, text.encode(), mode=0o666)
    except OSError as error:
        raise SourceError(f"{path} cannot be written ({error}); name another file") from None
