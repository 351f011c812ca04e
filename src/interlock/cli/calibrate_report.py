"""What a calibration leaves behind: pages and files, the scorecard shown, gates, the exit code."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from interlock.cli.door import ExitCode
from interlock.cli.show import counted, harmless, say, tell
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.calibrate.calibrate_work import CampaignResult
    from interlock.calibrate.campaign import Campaign
    from interlock.calibrate.prices import Prices
    from interlock.calibrate.scorecard import Calibration, Scorecard
    from interlock.rca.calibration.scenario import Scenario

Gate = tuple[str, float]
Make = Callable[["Calibration"], str]


def gates_of(words: Sequence[str]) -> list[Gate]:
    """`0.85` is of M19, `M1=0.8` of M1."""
    from interlock.calibrate.metric_table import OVERALL, metric_table

    known = [metric.id for metric in metric_table().metrics]
    found: list[Gate] = []
    for word in words:
        metric, equals, text = word.rpartition("=")
        metric = metric if equals else OVERALL
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if metric not in known or not isfinite(value):
            raise SourceError(f"--fail-under {word!r}: write 0.85, or M1=0.8 up to {known[-1]}=…")
        found.append((metric, value))
    return found


def page(told: "Calibration") -> str:
    from interlock.calibrate.scorecard_html import scorecard_html

    return scorecard_html(told)


def whole(told: "Calibration") -> str:
    from interlock.calibrate.scorecard_json import calibration_json

    return calibration_json(told)


def bill(told: "Calibration", prices: "Prices") -> str:
    from interlock.calibrate.cost_bill import cost_bill

    runs = [
        [record.result for record in records]
        for _, records in groupby(told.records, lambda record: record.run)
    ]
    return cost_bill(told.scorecard.scenario, runs, prices)


def write(wanted: Iterable[tuple[Path | None, Make]], told: "Calibration") -> None:
    """The files that were asked for."""
    from interlock.system.safe_file import write_whole

    for path, make in wanted:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, make(told).encode(errors="replace"), sync=False)
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def show(told: "Calibration", *, json: bool) -> None:
    from interlock.calibrate.scorecard_text import scorecard_text

    if json:
        sys.stdout.write(harmless(whole(told)))
        return
    for line in scorecard_text(told.scorecard):
        say(line)


def leaks_told(campaign: "Campaign", scenario: "Scenario", root: Path) -> bool:
    """Whether words of the truth are in what was written for agents; each is told."""
    from interlock.journal.database import reading
    from interlock.rca.calibration.blind import leaks_of

    found = 0
    for number in campaign.plan.numbers:
        if not campaign.store(number).exists():
            continue
        with reading(campaign.store(number)) as connection:
            for leak in leaks_of(connection, number, scenario, root):
                found += 1
                tell(f"leak: {leak.where}: {leak.kind} of {leak.subject}: {leak.text[:80]!r}")
    tell(f"{counted(found, 'leak', 'leaks')} in what agents were shown")
    return found > 0


def leave(
    done: "CampaignResult", card: "Scorecard", gates: Sequence[Gate], *, leaking: bool
) -> None:
    """End the command: what broke off goes before what is not good enough."""
    if not done.whole and done.sat is not None:
        done.sat.leave()
    if leaking:
        raise typer.Exit(ExitCode.FINDINGS)
    missed = [told for metric, least in gates if (told := _missed(card, metric, least))]
    for each in missed:
        tell(each)
    raise typer.Exit(ExitCode.UNHEALTHY if missed else ExitCode.DONE)


def _missed(card: "Scorecard", metric: str, least: float) -> str:
    """The honest value counts: what was not measured is not good enough."""
    value = card.parts[0].row(metric).honest
    if value is not None and value >= least - 1e-12:
        return ""
    shown = "not measured" if value is None else f"{value:.3f}"
    return f"{metric} is {shown}, below {least:g}"
