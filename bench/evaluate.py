"""`make eval`: the built-in analyst on worlds whose culprits are known, beside trivial baselines.

Prints a table, rewrites docs/analyst-eval.md and its plot. Says where the analyst is bad: every
kind and language has a row, and accusations of the wrong commit are counted with their confidence.
"""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from bench.eval_worlds import LANGUAGES, PLANS, EvalWorld, build_world
from interlock.cli.app import main
from interlock.system.statistics import wilson_interval

DOCS = Path(__file__).parents[1] / "docs"
SURE = 0.7


class EvalResult(msgspec.Struct, frozen=True):
    """What the analyst made of one world."""

    world: EvalWorld
    suspects: tuple[str, ...]
    score: float
    category: str

    @property
    def is_first(self) -> bool:
        return bool(self.world.culprit) and self.suspects[:1] == (self.world.culprit,)

    @property
    def is_listed(self) -> bool:
        return bool(self.world.culprit) and self.world.culprit in self.suspects[:5]

    @property
    def is_wrong(self) -> bool:
        """A wrong commit accused with confidence."""
        return bool(self.suspects) and self.score >= SURE and not self.is_first


def analyze_world(world: EvalWorld, folder: Path) -> EvalResult:
    words = ["interlock", "analyze", str(world.report), "--repo", f"app={world.repo}"]
    words += ["--last-green", "green", "--json"]
    out = io.StringIO()
    before = sys.argv, Path.cwd()
    sys.argv = words
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv = before[0]
        os.chdir(before[1])
    document: dict[str, Any] = json.loads(out.getvalue() or "{}")
    if "findings" not in document:
        print(f"{world.language}, {world.kind}: {document.get('error')}", file=sys.stderr)
    cases: list[dict[str, Any]] = document.get("findings", {}).get("cases", [])
    if not cases:
        return EvalResult(world=world, suspects=(), score=0.0, category="none")
    case = cases[0]
    return EvalResult(
        world=world,
        suspects=tuple(each["commit"] for each in case["suspects"]),
        score=case["score"] or 0.0,
        category=case["triaged"] if case["category"] == "unknown" else case["category"],
    )


def run_worlds(rounds: int, seed: int) -> list[EvalResult]:
    found = []
    with tempfile.TemporaryDirectory(prefix="interlock-eval-") as home:
        for number in range(rounds):
            for language in LANGUAGES:
                for kind in PLANS:
                    folder = Path(home, str(number), language.name, kind.replace(" ", "-"))
                    world = build_world(folder, language, kind, seed + number)
                    found.append(analyze_world(world, folder))
    return found


def format_share(right: int, of: int) -> str:
    interval = wilson_interval(right, of)
    if interval is None:
        return "none"
    return f"{right}/{of} [{interval.low:.2f}, {interval.high:.2f}]"


def list_rows(results: Sequence[EvalResult]) -> list[tuple[str, str, str, str, str, str]]:
    """(group, first, five, last commit, last commit of the stack, wrong and sure)."""
    groups: dict[str, list[EvalResult]] = {"all": list(results)}
    for each in results:
        groups.setdefault(each.world.language, []).append(each)
    for each in results:
        groups.setdefault(each.world.kind, []).append(each)
    return [(name, *_score_group(members)) for name, members in groups.items()]


def _score_group(members: Sequence[EvalResult]) -> tuple[str, str, str, str, str]:
    guilty = [each for each in members if each.world.culprit]
    return (
        format_share(sum(each.is_first for each in guilty), len(guilty)),
        format_share(sum(each.is_listed for each in guilty), len(guilty)),
        format_share(sum(each.world.last == each.world.culprit for each in guilty), len(guilty)),
        format_share(sum(each.world.touched == each.world.culprit for each in guilty), len(guilty)),
        format_share(sum(each.is_wrong for each in members), len(members)),
    )


def score_categories(results: Sequence[EvalResult]) -> tuple[str, str]:
    """The analyst's share of right kinds, and that of always saying the commonest."""
    truth = Counter(each.world.category for each in results)
    right = sum(each.category == each.world.category for each in results)
    return format_share(right, len(results)), format_share(truth.most_common(1)[0][1], len(results))


HEAD = (
    "worlds",
    "first suspect",
    "among five",
    "last commit",
    "last commit of the stack",
    "wrong at ≥ 0.7",
)


def render_page(results: Sequence[EvalResult], words: str) -> str:
    kinds, majority = score_categories(results)
    rows = [f"| {' | '.join(row)} |" for row in list_rows(results)]
    return "\n".join(
        [
            "# The analyst on worlds of its own",
            "",
            f"Made by `make eval` (`{words}`). Shares have their 95 % intervals",
            "(Wilson). Two columns are baselines: the newest commit, and the newest one that",
            "touched a file of the stack.",
            "",
            "![Share of worlds whose culprit is the first suspect](analyst-eval.svg)",
            "",
            f"| {' | '.join(HEAD)} |",
            f"|{'---|' * len(HEAD)}",
            *rows,
            "",
            f"Kinds of failures: right {kinds}; always the commonest {majority}.",
            "",
        ]
    )


def render_plot(results: Sequence[EvalResult]) -> str:
    """Bars of the share of first suspects that are right, by kind, with the interval."""
    kinds = [
        kind for kind in PLANS if any(r.world.kind == kind and r.world.culprit for r in results)
    ]
    parts = []
    for at, kind in enumerate(kinds):
        members = [each for each in results if each.world.kind == kind]
        right = sum(each.is_first for each in members)
        interval = wilson_interval(right, len(members))
        low, high = (interval.low, interval.high) if interval else (0.0, 1.0)
        y = 20 + 26 * at
        parts.append(
            f'<text x="130" y="{y + 12}" text-anchor="end">{escape(kind)}</text>'
            f'<rect x="140" y="{y}" width="{300 * right / len(members):.1f}" height="16" '
            'fill="#3b6ea5"/>'
            f'<line x1="{140 + 300 * low:.1f}" x2="{140 + 300 * high:.1f}" y1="{y + 8}" '
            f'y2="{y + 8}" stroke="#222" stroke-width="2"/>'
            f'<text x="450" y="{y + 12}">{right} of {len(members)}</text>'
        )
    height = 30 + 26 * len(kinds)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 {height}" width="520" '
        f'height="{height}" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )


def format_table(rows: Iterable[Sequence[str]]) -> Iterable[str]:
    table = [HEAD, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(HEAD))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def run(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="worlds of each kind and language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-docs", action="store_true", help="leave the pages as they are")
    given = parser.parse_args(words)
    results = run_worlds(given.rounds, given.seed)
    for line in format_table(list_rows(results)):
        print(line)
    print("kinds: right {}, always the commonest {}".format(*score_categories(results)))
    if not given.no_docs:
        called = f"python -m bench.evaluate --rounds {given.rounds} --seed {given.seed}"
        (DOCS / "analyst-eval.md").write_text(render_page(results, called), encoding="utf-8")
        (DOCS / "analyst-eval.svg").write_text(render_plot(results), encoding="utf-8")


if __name__ == "__main__":
    run()
