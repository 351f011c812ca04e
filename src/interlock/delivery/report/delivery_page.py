"""A delivery as one HTML file that needs nothing else: what needs a human on top, then each task.

Knows what goes where and how much fits. Style and script are those of the page of root causes, with
a few rules of its own. Nothing from outside is ever markup.
"""

from markupsafe import Markup

from interlock.delivery.report import delivery_outline as outline
from interlock.delivery.report.records import Delivered, TaskReport
from interlock.rca.report.page import policy
from interlock.system.html import render, source
from interlock.system.text import block, writable

CARDS = 400
BUDGET = 12_000_000
"""Bytes for cards; what does not fit is only listed."""
ROWS = 6_000
_OUTPUT = 4_000


def delivery_page(told: Delivered) -> str:
    """`report.html` of a run of deliver."""
    tasks = outline.ordered(told)
    cards = _cards(tasks)
    style, script = source("page.css") + source("delivery.css"), source("page.js")
    html = render(
        "delivery.html.j2",
        told=told,
        verdict=outline.verdict(told),
        cards=cards,
        tasks=tasks[:ROWS],
        number=len(cards),
        outline=outline,
        style=Markup(style),  # noqa: S704 -- our own files
        script=Markup(script),  # noqa: S704 -- our own file
        policy=policy(style, script),
    )
    return writable(html)


def _cards(tasks: list[TaskReport]) -> list[Markup]:
    found: list[Markup] = []
    spent = 0
    for number, task in enumerate(tasks[:CARDS], 1):
        looks = outline.matrix(task.proofs)
        output = looks.last_failure.output if looks.last_failure else ""
        html = render(
            "delivery-task.html.j2",
            task=task,
            number=number,
            looks=looks,
            output=block(output, _OUTPUT)[0],
            outline=outline,
        )
        spent += len(html.encode("utf-8", "replace"))
        if spent > BUDGET:
            break
        found.append(Markup(html))  # noqa: S704 -- escaped by its template
    return found
