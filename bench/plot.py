"""The picture: docs/benchmarks.svg, horizontal bars on a log scale, one panel for each metric.

Knows geometry and colours, and nothing of measuring. The picture carries its own background in a
light and a dark version, so that it reads on both.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from bench.report import number
from bench.results import Results, Spread

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.axis { font-size: 11px; font-weight: 400; fill: #59636e }
.centred { text-anchor: middle } .name { text-anchor: end }
.card { fill: #ffffff; stroke: #d1d9e0 } .grid { stroke: #d1d9e0 } .range { stroke: #1f2328 }
.ceiling { fill: #afb8c1 } .interlock { fill: #1a7f37 } .peer { fill: #4b7bb5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .axis { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d } .grid { stroke: #3d444d } .range { stroke: #e6edf3 }
  .ceiling { fill: #59636e } .interlock { fill: #3fb950 } .peer { fill: #4f86c6 }
}
"""
LABELS = {
    "ceiling": "ceiling",
    "ceiling, single commits": "ceiling, single",
    "interlock": "Interlock",
    "burr": "Burr",
    "burr, threads": "Burr, threads",
    "langgraph": "LangGraph",
    "dbos": "DBOS",
}
COLUMNS = 2
WIDTH, LABEL, BAR, VALUE = 440, 105, 240, 75
ROW, HEAD, FOOT, GAP, MARGIN = 24, 30, 26, 20, 20


class Panel(msgspec.Struct, frozen=True):
    title: str
    better: str
    measure: str
    metric: str


PANELS = (
    Panel("Steps/s, 64 cases in flight", "more", "many", "steps_per_s"),
    Panel("Steps/s, one case at a time", "more", "single", "steps_per_s"),
    Panel("Resume after kill -9: seconds to all done", "less", "resume", "done_s"),
    Panel("CPU milliseconds per step, 64 in flight", "less", "many", "cpu_ms"),
    Panel("Database bytes per step", "less", "many", "bytes"),
    Panel("Peak memory in MB, 64 in flight", "less", "many", "rss_mb"),
)

Bars = list[tuple[str, Spread]]


class Scale(msgspec.Struct, frozen=True):
    """Whole decades from below the lowest value to above the highest, over BAR pixels."""

    first: int
    last: int

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return LABEL + BAR * share

    def decades(self) -> range:
        return range(self.first, self.last + 1)


def scale_for(bars: Bars) -> Scale:
    lowest = min(found.low for _, found in bars)
    highest = max(found.high for _, found in bars)
    first = math.floor(math.log10(lowest * 0.8))
    return Scale(first=first, last=max(math.ceil(math.log10(highest)), first + 1))


def bars_for(panel: Panel, results: Results) -> Bars:
    found = [(name, results.spread(name, panel.measure, panel.metric)) for name in LABELS]
    return [(name, spread) for name, spread in found if spread and spread.low > 0]


def draw(results: Results) -> str:
    panels = [(panel, bars) for panel in PANELS if (bars := bars_for(panel, results))]
    lines: list[str] = []
    y = MARGIN
    for row in range(0, len(panels), COLUMNS):
        pair = panels[row : row + COLUMNS]
        for column, (panel, bars) in enumerate(pair):
            x = MARGIN + column * (WIDTH + GAP)
            lines += [f'<g transform="translate({x} {y})">', *draw_panel(panel, bars), "</g>"]
        y += max(panel_height(bars) for _, bars in pair) + GAP
    width = 2 * MARGIN + COLUMNS * WIDTH + (COLUMNS - 1) * GAP
    return "\n".join([*opening(width, y + MARGIN), *lines, caption(y), "</svg>"]) + "\n"


def opening(width: int, height: int) -> list[str]:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>Interlock beside its peers</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]


def caption(y: int) -> str:
    text = "Log scale. Bars: median; lines: lowest to highest round. SQLite, WAL, synchronous=FULL."
    return f'<text class="axis" x="{MARGIN}" y="{y}">{text}</text>'


def panel_height(bars: Sequence[object]) -> int:
    return HEAD + ROW * len(bars) + FOOT


def draw_panel(panel: Panel, bars: Bars) -> Iterator[str]:
    scale = scale_for(bars)
    bottom = HEAD + ROW * len(bars)
    better = f'<tspan class="axis" dx="6">{panel.better} is better</tspan>'
    yield f'<text class="title" x="0" y="14">{escape(panel.title)}{better}</text>'
    for decade in scale.decades():
        x = scale.x(10.0**decade)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{HEAD - 4}" y2="{bottom}"/>'
        label = f"{10**decade:,}" if decade >= 0 else f"{10.0**decade:g}"
        yield f'<text class="axis centred" x="{x:.1f}" y="{bottom + 14}">{label}</text>'
    for index, (name, found) in enumerate(bars):
        yield from draw_bar(name, found, scale, HEAD + ROW * index)


def draw_bar(name: str, found: Spread, scale: Scale, y: int) -> Iterator[str]:
    kind = "interlock" if name == "interlock" else "ceiling" if "ceiling" in name else "peer"
    middle, end = y + ROW / 2, scale.x(found.median)
    low, high = scale.x(found.low), scale.x(found.high)
    label = escape(LABELS[name])
    yield f'<text class="name" x="{LABEL - 8}" y="{middle + 4:.0f}">{label}</text>'
    yield (
        f'<rect class="{kind}" x="{LABEL}" y="{y + 3}" width="{max(end - LABEL, 1):.1f}"'
        f' height="{ROW - 7}" rx="2"/>'
    )
    yield f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
    yield f'<text x="{max(end, high) + 6:.1f}" y="{middle + 4:.0f}">{number(found.median)}</text>'
