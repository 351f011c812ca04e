"""The progress bar of a long run: cases done, in flight, waiting, refused, and what is spent.

Shown on a terminal only. While all rests because of a rate limit, the bar says until when.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interlock.engine.schedule import Spent
from interlock.system.time import hour

if TYPE_CHECKING:
    from interlock.runtime.loop import RunCounts

_EVERY = 0.1


@contextmanager
def progress() -> "Iterator[Callable[[RunCounts, Spent], None]]":
    """A function that is told how the run stands, after every turn."""
    if not sys.stderr.isatty():
        yield lambda _tally, _spent: None
        return
    with _bar() as move:
        yield move


@contextmanager
def _bar() -> "Iterator[Callable[[RunCounts, Spent], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    drawn = limited = 0.0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(tally: "RunCounts", spent: Spent) -> None:
            nonlocal drawn, limited
            if time.monotonic() - drawn < _EVERY and tally.limited_until == limited:
                return
            drawn, limited = time.monotonic(), tally.limited_until
            over = tally.ended + tally.stuck
            words = f"{over}/{tally.cases} cases  {tally.in_flight} in flight"
            words += f"  {tally.questions} ask a human"
            words += _limited(tally)
            words += f"  {tally.refused} refused  {spent.dispatches} dispatches"
            words += f"  {spent.tokens} tokens" if spent.tokens else ""
            words += f"  {spent.money:.2f} spent" if spent.money else ""
            bar.update(task, completed=over, total=tally.cases, description=words)

        yield move


def _limited(tally: "RunCounts") -> str:
    if not tally.limited_until:
        return ""
    until = hour(tally.limited_until, time.time())
    return f"  {tally.limited} rate-limited until {until}"
