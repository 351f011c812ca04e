"""Render the report of a delivery as `report.html` and `report.md`.

Questions for a human come first, then every task with its checks as a matrix. Both are bounded,
since a run may have thousands of tasks, and no text from outside is ever taken for markup.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock.system.html import build_content_policy, load_templates, read_source
from interlock.system.text import (
    clip_block,
    escape_markdown,
    format_code,
    format_fence,
    plural,
    replace_unencodable,
)
from interlock.system.time import format_duration, format_timestamp, format_utc_time
from interlock_delivery.report.records import CheckEvidence, DeliveryReport, TaskReport

TASK_STATES: Final = ("failed", "asks", "blocked", "at work", "waits", "skipped", "complete")
"""The states of tasks, those that need attention first."""
_OUTCOMES: Final = {
    "COMPLETE": "Every task is written, reviewed, audited, proven and merged.",
    "PARTIAL": "Some of the work is merged; the rest needs a human.",
    "FAILED": "Nothing could be merged.",
    "HALTED": "A human halted it; what is merged stays.",
    "PAUSED": "It is paused; run it again to continue where it stopped.",
    "RUNNING": "It is running.",
    "REMEDIATING": "It is repairing what stops all tasks.",
}


class MatrixCell(msgspec.Struct, frozen=True):
    """One check at one stage; without a proof it was not run there."""

    proof: CheckEvidence | None

    @property
    def word(self) -> str:
        return "" if self.proof is None else "passed" if self.proof.passed else "failed"

    @property
    def detail(self) -> str:
        if self.proof is None:
            return ""
        tests = "" if self.proof.tests is None else plural(self.proof.tests, "test")
        code = "" if self.proof.passed else f"exit {self.proof.exit_code}"
        return ", ".join(each for each in (code, tests) if each)


class Matrix(msgspec.Struct, frozen=True):
    """The checks of a task: a column for each stage, a row for each check and environment."""

    looks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell, ...]], ...]
    last_failure: CheckEvidence | None


def describe_outcome(report: DeliveryReport) -> str:
    """Return one or two sentences about the outcome."""
    parts = [_OUTCOMES.get(report.outcome, "")]
    refuted = sum(each.refuted for each in report.accounts)
    if refuted:
        claimed = sum(each.claimed for each in report.accounts)
        parts.append(f"{refuted:,} of {plural(claimed, 'claim')} of agents were refuted.")
    return " ".join(each for each in parts if each)


def sort_tasks(report: DeliveryReport) -> list[TaskReport]:
    """Return the tasks that need attention first, otherwise in the plan's order."""
    return sorted(report.tasks, key=lambda each: TASK_STATES.index(each.word))


def build_matrix(proofs: Sequence[CheckEvidence]) -> Matrix:
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


def format_cost(tokens: int, money: float) -> str:
    parts = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join(parts + ([f"{money:.2f} spent"] if money else []))


ROOM = 60_000
"""The most characters of `report.md`; a pull request comment holds 65,536."""
_NEEDS, _ROWS, _MOVES, _OUTPUT = 30, 100, 30, 1_500


def render_markdown(report: DeliveryReport) -> str:
    """Return the text of `report.md`."""
    parts = [
        *_render_head(report),
        *_render_needs(report),
        *_render_claims(report),
        *_render_overview(report),
    ]
    spent = sum(map(len, parts))
    tasks = sort_tasks(report)
    for at, task in enumerate(tasks):
        section = "\n\n".join(_render_task(task))
        if spent + len(section) > ROOM:
            parts.append(f"*{plural(len(tasks) - at, 'more task')} in `report.html`.*")
            break
        parts.append(section)
        spent += len(section)
    return replace_unencodable("\n\n".join(parts) + "\n")


def _render_head(report: DeliveryReport) -> Iterator[str]:
    yield f"# {escape_markdown(report.title, 160)}: {report.outcome}"
    yield f"**{escape_markdown(describe_outcome(report))}**"
    spending = format_cost(report.tokens, report.money)
    facts = [
        f"Run {report.run_id}",
        format_utc_time(format_timestamp(report.made_at)),
        f"{format_duration(report.seconds)} at work",
        plural(report.dispatches, "dispatch", "dispatches"),
        *([spending] if spending else []),
    ]
    yield f"{escape_markdown(', '.join(facts))}."
    if report.is_merged:
        merge = format_code(f"git merge {report.branch}", 200)
        yield f"Merged work is on branch {format_code(report.branch)}. Take it with {merge}."
    for note in report.notes[:10]:
        yield f"Note: {escape_markdown(note, 600)}"


def _render_needs(report: DeliveryReport) -> Iterator[str]:
    if not report.needs:
        return
    yield "## Needs a human"
    rows = [
        f"- **{escape_markdown(need.task_id, 128)}** {escape_markdown(need.sentence, 600)}"
        + "".join(f"  \n  {format_code(command)}" for command in need.commands)
        for need in report.needs[:_NEEDS]
    ]
    if (more := len(report.needs) - _NEEDS) > 0:
        rows.append(f"- and {more:,} more")
    yield "\n".join(rows)


def _render_claims(report: DeliveryReport) -> Iterator[str]:
    if not report.accounts:
        return
    yield "## Claims and evidence"
    head = "| agent | role | claimed | verified | refuted | unchecked |\n|---|---|--:|--:|--:|--:|"
    rows = [
        f"| {format_code(each.agent, 120)} | {escape_markdown(each.role, 60)} | {each.claimed:,} |"
        f" {each.verified:,} | {each.refuted:,} | {each.unchecked:,} |"
        for each in report.accounts[:_ROWS]
    ]
    yield "\n".join((head, *rows))


def _render_overview(report: DeliveryReport) -> Iterator[str]:
    yield "## Tasks"
    head = "| task | | state | checks | commit | cost | time |\n|---|---|---|--:|---|--:|--:|"
    tasks = sort_tasks(report)
    rows = [
        f"| {format_code(each.task_id, 128)} | {escape_markdown(each.title, 120)} | "
        f"{_format_state(each)} |"
        f" {each.passed}/{each.checks} | "
        f"{format_code(each.commit[:10])} |"
        f" {format_cost(each.tokens, each.money)} | {format_duration(each.seconds)} |"
        for each in tasks[:_ROWS]
    ]
    if (more := len(tasks) - _ROWS) > 0:
        rows.append(f"| *{plural(more, 'more task')}* | | | | | | |")
    yield "\n".join((head, *rows))


def _render_task(task: TaskReport) -> Iterator[str]:
    yield f"### {escape_markdown(task.task_id, 128)}: {escape_markdown(task.title, 160)}"
    by = f", written by {format_code(task.author, 120)}" if task.author else ""
    merged = f", merged as {format_code(task.commit[:12])}" if task.commit else ""
    yield f"*{_format_state(task)}{merged}{by}, {plural(task.attempts, 'try', 'tries')}*"
    if task.summary:
        yield escape_markdown(task.summary, 1_500)
    if task.word != "complete":
        why = f"Question {task.question_id}: {task.question}" if task.question else task.why
        yield escape_markdown(why, 600)
    looks = build_matrix(task.proofs)
    if looks.rows:
        head = "| check | " + " | ".join(escape_markdown(each, 40) for each in looks.looks) + " |"
        rows = [
            f"| {escape_markdown(name, 120)} | "
            + " | ".join(
                escape_markdown(f"{cell.word} {cell.detail}".strip(), 80) for cell in cells
            )
            + " |"
            for name, cells in looks.rows[:_ROWS]
        ]
        yield "\n".join((head, "|---|" + "---|" * len(looks.looks), *rows))
    if task.word == "failed" and looks.last_failure and looks.last_failure.output:
        yield format_fence(looks.last_failure.output[-_OUTPUT:])
    for name, texts in (
        ("Rules broken", task.violations),
        ("Tests that assert less", task.weakened_tests),
    ):
        if texts:
            yield f"{name}:\n\n" + "\n".join(
                f"- {escape_markdown(each, 300)}" for each in texts[:20]
            )
    if task.moves:
        yield _render_moves(task)


def _render_moves(task: TaskReport) -> str:
    head = "| step | signal | next | why | by |\n|---|---|---|---|---|"
    rows = [
        f"| {escape_markdown(f'{each.step} {each.attempt}', 60)} | "
        f"{escape_markdown(each.signal, 60)} |"
        f" {escape_markdown(each.to, 40)} | {escape_markdown(each.why, 300)} | "
        f"{escape_markdown(each.agent, 80)} |"
        for each in task.moves[:_MOVES]
    ]
    if (more := len(task.moves) - _MOVES) > 0:
        rows.append(f"| *{more:,} more* | | | | |")
    table = "\n".join((head, *rows))
    decisions = plural(len(task.moves), "decision")
    return f"<details><summary>{decisions}</summary>\n\n{table}\n\n</details>"


def _format_state(task: TaskReport) -> str:
    return escape_markdown(task.end or task.word.upper(), 20)


CARDS = 400
BUDGET = 12_000_000
"""The most bytes of cards; further tasks are only listed."""
ROWS = 6_000
_PAGE_OUTPUT = 4_000
_MESSAGE = 4_000


def render_html(report: DeliveryReport) -> str:
    """Return the text of `report.html`."""
    tasks = sort_tasks(report)
    cards = _render_cards(tasks)
    made = _environment()
    style = read_source(made, "page.css") + read_source(made, "delivery.css")
    script = read_source(made, "page.js")
    html = made.get_template("delivery.html.j2").render(
        report=report,
        verdict=describe_outcome(report),
        cards=cards,
        tasks=tasks[:ROWS],
        number=len(cards),
        states=TASK_STATES,
        format_timestamp=format_timestamp,
        format_duration=format_duration,
        format_cost=format_cost,
        style=Markup(style),  # noqa: S704 -- our own files
        script=Markup(script),  # noqa: S704 -- our own file
        policy=build_content_policy(style, script),
    )
    return replace_unencodable(html)


@cache
def _environment() -> Environment:
    made = load_templates("interlock_delivery", "report")
    made.globals["message"] = lambda text: clip_block(text, _MESSAGE)
    return made


def _render_cards(tasks: list[TaskReport]) -> list[Markup]:
    template = _environment().get_template("delivery-task.html.j2")
    found: list[Markup] = []
    spent = 0
    for number, task in enumerate(tasks[:CARDS], 1):
        looks = build_matrix(task.proofs)
        output = looks.last_failure.output if looks.last_failure else ""
        html = template.render(
            task=task,
            number=number,
            looks=looks,
            output=clip_block(output, _PAGE_OUTPUT)[0],
            format_duration=format_duration,
            format_cost=format_cost,
        )
        spent += len(html.encode("utf-8", "replace"))
        if spent > BUDGET:
            break
        found.append(Markup(html))  # noqa: S704 -- escaped by its template
    return found


HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    report: "DeliveryReport", html: Path | None = None, markdown: Path | None = None
) -> list[str]:
    """Write the named files, or both to the run's folder; return the paths."""
    if html is None and markdown is None:
        html, markdown = Path(report.home) / HTML, Path(report.home) / MARKDOWN
    written: list[str] = []
    for path, made in ((html, render_html), (markdown, render_markdown)):
        if path is not None:
            _write_atomically(path, made(report))
            written.append(str(path))
    return written


def _write_atomically(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise SourceError(f"{path} is a folder; name a file for the report")
        write_file(path, text.encode(), mode=0o666)
    except OSError as error:
        raise SourceError(f"{path} cannot be written ({error}); name another file") from None
