"""The progress bar of a long run: cases done, in flight, waiting, refused, and what is spent.

Shown on a terminal only; elsewhere just the budget's warning is said.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interlock.cli.show import tell
from interlock.core.plan import Budget, Spent, used
from interlock.runner.tally import Tally

_EVERY = 0.1


@contextmanager
def progress(budget: Budget) -> Iterator[Callable[[Tally, Spent], None]]:
    """A function that is told how the run stands, after every turn."""
    warned: set[str] = set()

    def warn(spent: Spent) -> None:
        for name, part in used(budget, spent).items():
            if part >= 0.8 and name not in warned:
                warned.add(name)
                tell(f"{part:.0%} of the budget's {name} is spent")

    if not sys.stderr.isatty():
        yield lambda _tally, spent: warn(spent)
        return
    with _bar() as move:

        def watch(tally: Tally, spent: Spent) -> None:
            warn(spent)
            move(tally, spent)

        yield watch


@contextmanager
def _bar() -> Iterator[Callable[[Tally, Spent], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    drawn = 0.0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(tally: Tally, spent: Spent) -> None:
            nonlocal drawn
            if time.monotonic() - drawn < _EVERY:
                return
            drawn = time.monotonic()
            over = tally.ended + tally.stuck
            words = f"{over}/{tally.cases} cases  {tally.in_flight} in flight"
            words += f"  {tally.questions} ask a human"
            words += f"  {tally.refused} refused  {spent.dispatches} dispatches"
            words += f"  {spent.tokens} tokens" if spent.tokens else ""
            words += f"  {spent.money:.2f} spent" if spent.money else ""
            bar.update(task, completed=over, total=tally.cases, description=words)

        yield move
