"""Render the scorecard as one self-contained HTML file, light and dark.

Nothing from outside is ever markup: the template escapes all text, and the page allows itself
nothing but its own style.
"""

import base64
import hashlib
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from interlock.system.html import load_templates, read_source
from interlock.system.text import format_line, replace_unencodable
from interlock.system.time import format_duration
from interlock_calibrate import text
from interlock_calibrate.benchmark import AnyBenchmark
from interlock_calibrate.prices import format_money
from interlock_calibrate.scorecard import Calibration

_MAX_CASES = 400
"""The most cases that are listed."""


def render_scorecard_html(calibration: Calibration, benchmark: AnyBenchmark) -> str:
    """Return the text of `scorecard.html`."""
    style = read_source(_make_environment(), "scorecard.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    card = calibration.scorecard
    whole = card.parts[0]
    html = (
        _make_environment()
        .get_template("scorecard.html.j2")
        .render(
            card=card,
            whole=whole,
            overall=whole.find_row(benchmark.metrics.overall),
            records=[
                (record, benchmark.describe(record.result))
                for record in calibration.records[:_MAX_CASES]
            ],
            hidden=max(0, len(calibration.records) - _MAX_CASES),
            baselines=list(whole.rows[0].baselines),
            texts=benchmark.texts,
            formulas={metric.id: metric.formula for metric in benchmark.metrics.metrics},
            most=max((cost.tokens for cost in card.spending.by_step.values()), default=0),
            style=Markup(style),  # noqa: S704 -- our own file
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'",
        )
    )
    return replace_unencodable(html)


@cache
def _make_environment() -> Environment:
    made = load_templates("interlock_calibrate", "")
    made.filters.update(
        line=format_line,
        figure=text.format_number,
        around=text.format_interval,
        needed=text.format_bounds,
        money=format_money,
        lasted=format_duration,
    )
    made.globals.update(DASH=text.DASH)
    return made
