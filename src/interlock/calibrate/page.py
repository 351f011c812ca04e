"""The scorecard as one HTML file that needs nothing else, light and dark, with plots as SVG.

Nothing from outside is ever markup: the template escapes all text, and the page forbids itself
everything but its own style.
"""

import base64
import hashlib
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from interlock.calibrate import plots, text
from interlock.calibrate.prices import lasted, money
from interlock.calibrate.scorecard import Calibration
from interlock.runtime.benchmark import AnyBenchmark
from interlock.system.html import source_in, templates_of
from interlock.system.text import line, writable

_SHOWN = 400
"""So many cases are listed."""


def scorecard_html(calibration: Calibration, benchmark: AnyBenchmark) -> str:
    """`scorecard.html`."""
    style = source_in(_environment(), "scorecard.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    card = calibration.scorecard
    whole = card.parts[0]
    html = (
        _environment()
        .get_template("scorecard.html.j2")
        .render(
            card=card,
            whole=whole,
            overall=whole.row(benchmark.metrics.overall),
            records=[
                (record, benchmark.describe(record.result))
                for record in calibration.records[:_SHOWN]
            ],
            hidden=max(0, len(calibration.records) - _SHOWN),
            baselines=list(whole.rows[0].baselines),
            texts=benchmark.texts,
            formulas={metric.id: metric.formula for metric in benchmark.metrics.metrics},
            plots=plots,
            style=Markup(style),  # noqa: S704 -- our own file
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'",
        )
    )
    return writable(html)


@cache
def _environment() -> Environment:
    made = templates_of("calibrate")
    made.filters.update(
        line=line,
        figure=text.figure,
        around=text.around,
        needed=text.needed,
        money=money,
        lasted=lasted,
    )
    made.globals.update(DASH=text.DASH)
    return made
