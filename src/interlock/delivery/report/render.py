"""`report.md` of a delivery, for a pull request or a chat: what needs a human, then each task.

Knows the order and the room. Refuses to trust a text: all of it goes through `markdown_text`.

A delivery as one HTML file that needs nothing else: what needs a human on top, then each task.

Knows what goes where and how much fits. Style and script are those of the page of root causes, with
a few rules of its own. Nothing from outside is ever markup.

The report of a delivery, written beside its workshop, or where the user says.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from interlock.delivery.report import outline
from interlock.delivery.report.records import Delivered, TaskReport
from interlock.system.errors import SourceError
from interlock.system.files import write_file
from interlock.system.html import content_policy, source_in, templates_of
from interlock.system.text import block, code, counted, fence, prose, when, writable

ROOM = 60_000
"""Characters; a comment on a pull request holds 65,536."""
_NEEDS, _ROWS, _MOVES, _OUTPUT = 30, 100, 30, 1_500


def delivery_markdown(told: Delivered) -> str:
    """`report.md` of a run of deliver."""
    parts = [*_head(told), *_needs(told), *_claims(told), *_overview(told)]
    spent = sum(map(len, parts))
    tasks = outline.ordered(told)
    for at, task in enumerate(tasks):
        section = "\n\n".join(_task(task))
        if spent + len(section) > ROOM:
            parts.append(f"*{counted(len(tasks) - at, 'more task')} in `report.html`.*")
            break
        parts.append(section)
        spent += len(section)
    return writable("\n\n".join(parts) + "\n")


def _head(told: Delivered) -> Iterator[str]:
    yield f"# {prose(told.title, 160)}: {told.outcome}"
    yield f"**{prose(outline.verdict(told))}**"
    cost = outline.cost(told.tokens, told.money)
    facts = [
        f"Run {told.run_id}",
        when(outline.moment(told.made_at)),
        f"{outline.lasted(told.seconds)} at work",
        counted(told.dispatches, "dispatch", "dispatches"),
        *([cost] if cost else []),
    ]
    yield f"{prose(', '.join(facts))}."
    if told.is_merged:
        merge = code(f"git merge {told.branch}", 200)
        yield f"Merged work is on branch {code(told.branch)}. Take it with {merge}."
    for note in told.notes[:10]:
        yield f"Note: {prose(note, 600)}"


def _needs(told: Delivered) -> Iterator[str]:
    if not told.needs:
        return
    yield "## Needs a human"
    rows = [
        f"- **{prose(need.task_id, 128)}** {prose(need.sentence, 600)}"
        + "".join(f"  \n  {code(command)}" for command in need.commands)
        for need in told.needs[:_NEEDS]
    ]
    if (more := len(told.needs) - _NEEDS) > 0:
        rows.append(f"- and {more:,} more")
    yield "\n".join(rows)


def _claims(told: Delivered) -> Iterator[str]:
    if not told.accounts:
        return
    yield "## Claims and evidence"
    head = "| agent | role | claimed | verified | refuted | unchecked |\n|---|---|--:|--:|--:|--:|"
    rows = [
        f"| {code(each.agent, 120)} | {prose(each.role, 60)} | {each.claimed:,} |"
        f" {each.verified:,} | {each.refuted:,} | {each.unchecked:,} |"
        for each in told.accounts[:_ROWS]
    ]
    yield "\n".join((head, *rows))


def _overview(told: Delivered) -> Iterator[str]:
    yield "## Tasks"
    head = "| task | | state | checks | commit | cost | time |\n|---|---|---|--:|---|--:|--:|"
    tasks = outline.ordered(told)
    rows = [
        f"| {code(each.task_id, 128)} | {prose(each.title, 120)} | {_state(each)} |"
        f" {sum(p.passed for p in each.proofs)}/{len(each.proofs)} | {code(each.commit[:10])} |"
        f" {outline.cost(each.tokens, each.money)} | {outline.lasted(each.seconds)} |"
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
    looks = outline.matrix(task.proofs)
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


def delivery_page(told: Delivered) -> str:
    """`report.html` of a run of deliver."""
    tasks = outline.ordered(told)
    cards = _cards(tasks)
    made = _environment()
    style = source_in(made, "page.css") + source_in(made, "delivery.css")
    script = source_in(made, "page.js")
    html = made.get_template("delivery.html.j2").render(
        told=told,
        verdict=outline.verdict(told),
        cards=cards,
        tasks=tasks[:ROWS],
        number=len(cards),
        outline=outline,
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
        looks = outline.matrix(task.proofs)
        output = looks.last_failure.output if looks.last_failure else ""
        html = template.render(
            task=task,
            number=number,
            looks=looks,
            output=block(output, _PAGE_OUTPUT)[0],
            outline=outline,
        )
        spent += len(html.encode("utf-8", "replace"))
        if spent > BUDGET:
            break
        found.append(Markup(html))  # noqa: S704 -- escaped by its template
    return found


HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    told: "Delivered", html: Path | None = None, markdown: Path | None = None
) -> list[str]:
    """The paths that were written; both in the run's own folder if none is named."""

    if html is None and markdown is None:
        html, markdown = Path(told.home) / HTML, Path(told.home) / MARKDOWN
    written: list[str] = []
    for path, made in ((html, delivery_page), (markdown, delivery_markdown)):
        if path is not None:
            _write(path, made(told))
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
